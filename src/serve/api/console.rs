//! The console: the files that `make console` makes, compiled into the node by `build.rs`.
//!
//! `/` and every path that a browser opens as a page are answered with `index.html`; the console finds the page by the
//! path. The other files have names with a hash of what is in them, so browsers keep them for good. All are packed when
//! they are made. A node that was built without them says how to get them.
//!
//! Never: inline script or style, or anything of another origin; the headers forbid both.

use super::{
    pages,
    route::{Answered, Route, page},
};
use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header},
};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    operations::{API, rows},
};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// A file of the console, as it is and packed.
struct File {
    name: &'static str,
    plain: &'static [u8],
    gzip: Option<&'static [u8]>,
    brotli: Option<&'static [u8]>,
}

include!(concat!(env!("OUT_DIR"), "/console.rs"));

const INDEX: &str = "index.html";
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; style-src 'self'; object-src 'none'; base-uri 'none'; \
                                       form-action 'none'; frame-ancestors 'none'";
/// A year.
const FOR_GOOD: &str = "public, max-age=31536000, immutable";

fn find(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}

/// `/`.
pub(super) fn root(_: &Uri, headers: &HeaderMap, routes: fn() -> Vec<Route>) -> Answered {
    index(headers).map_or_else(|| pages::without_console(routes), Ok)
}

/// The page of the console. None: the node was built without it.
pub(super) fn index(headers: &HeaderMap) -> Option<Response<Body>> {
    static TAG: LazyLock<Option<HeaderValue>> = LazyLock::new(|| {
        let digest = Sha256::digest(find(INDEX)?.plain);
        let hex: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        HeaderValue::from_str(&format!("W/\"{hex}\"")).ok()
    });
    let file = find(INDEX)?;
    let known = TAG.as_ref().is_some_and(|tag| headers.get(header::IF_NONE_MATCH) == Some(tag));
    let mut response = sent(file, headers);
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(header::CONTENT_ENCODING);
    }
    let answered = response.headers_mut();
    for (name, value) in [
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        answered.insert(name, HeaderValue::from_static(value));
    }
    // One path has the page for browsers and a problem for programs.
    answered.append(header::VARY, HeaderValue::from_static("accept"));
    if let Some(tag) = &*TAG {
        answered.insert(header::ETAG, tag.clone());
    }
    Some(response)
}

/// A file beside the page.
pub(super) fn asset(uri: &Uri, headers: &HeaderMap, _: fn() -> Vec<Route>) -> Answered {
    let Some(file) = find(uri.path().trim_start_matches('/')).filter(|file| file.name != INDEX) else {
        let message = "the console has no such file; a page of an earlier release asks for it: load the page again";
        return Err(ApiError::new(ErrorCode::NotFound, message));
    };
    let mut response = sent(file, headers);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(FOR_GOOD));
    Ok(response)
}

/// Whether a browser opens this as a page. Programs ask for other types, and paths of the API are never pages.
pub(super) fn opens_page<B>(request: &Request<B>) -> bool {
    let path = request.uri().path();
    let of = |known: &str| path.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let wants_html = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    matches!(*request.method(), Method::GET | Method::HEAD)
        && !of(API)
        && !of(rows::PAGE_API.path())
        && !path.starts_with(rows::PAGE_ASSET.path().trim_end_matches("{file}"))
        && wants_html.is_some_and(|accept| accept.contains("text/html"))
}

/// In the smallest form that the caller takes.
fn sent(file: &'static File, headers: &HeaderMap) -> Response<Body> {
    let takes = |coding| takes(headers, coding);
    let (coding, bytes) = match (file.brotli.filter(|_| takes("br")), file.gzip.filter(|_| takes("gzip"))) {
        (Some(brotli), _) => (Some("br"), brotli),
        (None, Some(gzip)) => (Some("gzip"), gzip),
        (None, None) => (None, file.plain),
    };
    let mut response = page(media(file.name), Bytes::from_static(bytes));
    if let Some(coding) = coding {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    response
}

fn takes(headers: &HeaderMap, coding: &str) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|item| {
        let mut parts = item.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(coding));
        let quality = parts.find_map(|part| part.strip_prefix("q="));
        named && quality.is_none_or(|quality| quality.parse::<f32>().is_ok_and(|quality| quality > 0.0))
    })
}

fn media(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn request(method: Method, path: &str, accept: Option<&str>) -> Request<()> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(accept) = accept {
            request = request.header(header::ACCEPT, accept);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn only_what_a_browser_opens_as_a_page_is_a_page() {
        const BROWSER: Option<&str> = Some("text/html,application/xhtml+xml,*/*;q=0.8");
        for path in ["/", "/jobs", "/jobs/4128", "/runs/7?attempt=2", "/apiary", "/assetsx"] {
            assert!(opens_page(&request(Method::GET, path, BROWSER)), "{path}");
            assert!(!opens_page(&request(Method::GET, path, Some("*/*"))), "{path}");
            assert!(!opens_page(&request(Method::GET, path, None)), "{path}");
            assert!(!opens_page(&request(Method::POST, path, BROWSER)), "{path}");
        }
        for path in ["/api", "/api/", "/api/v1", "/api/v1/jobx", "/assets/", "/assets/old-1234.js"] {
            assert!(!opens_page(&request(Method::GET, path, BROWSER)), "{path}");
        }
    }

    #[test]
    fn a_coding_is_sent_to_those_who_take_it() {
        let with = |value: &str| HeaderMap::from_iter([(header::ACCEPT_ENCODING, value.parse().unwrap())]);
        assert!(takes(&with("gzip, deflate, br"), "br"));
        assert!(takes(&with("br;q=0.5"), "br"));
        assert!(!takes(&with("gzip, br;q=0"), "br"));
        assert!(!takes(&with("brotli"), "br"));
        assert!(!takes(&HeaderMap::new(), "gzip"));
    }

    #[test]
    fn what_is_compiled_in_is_whole() {
        if find(INDEX).is_none() {
            assert!(FILES.is_empty(), "files without a page");
            return;
        }
        for file in FILES {
            assert!(file.name == INDEX || file.name.starts_with("assets/"), "{}: nobody can ask for it", file.name);
            assert_ne!(media(file.name), "application/octet-stream", "{}: of no known type", file.name);
        }
        let index = std::str::from_utf8(find(INDEX).unwrap().plain).unwrap();
        assert!(!index.contains("<style"), "an inline style is refused by the browser");
        let scripts = index.matches("<script").count();
        assert_eq!(scripts, index.matches(" src=\"/assets/").count(), "an inline script is refused by the browser");
    }
}
