//! The request of one attempt as it is sent: what its author wrote, filled in, and the headers that tell of the attempt.

use super::{Failed, Fault, connect::Origin};
use crate::webhook::Told;
use bytes::Bytes;
use campanile_core::action::{
    http::{OWN_HEADERS, Request, TRACEPARENT, absolute},
    template::Facts,
    webhook::URL,
};
use campanile_schema::{job::Action, rpc::executor::Assignment, shape::shortened};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use url::Url;

const USER_AGENT: &str = concat!("campanile/", env!("CARGO_PKG_VERSION"));
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// See the module's text.
#[derive(Debug)]
pub(super) struct Prepared {
    pub method: Method,
    pub url: Uri,
    /// The path as its author wrote it, with facts still in braces: what the log shows. None: of a redirect.
    pub written: Option<String>,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// From and to, both included.
    pub expect: (u16, u16),
    pub timeout: Duration,
    pub redirects_left: u8,
}

impl Prepared {
    /// None: the action is of another kind.
    pub fn of(assignment: &Assignment) -> Option<Result<Self, Failed>> {
        let (method, url, headers, body, expect_status, timeout_sec, max_redirects) = match &assignment.action {
            Action::Http { method, url, headers, body, expect_status, timeout_sec, max_redirects } => {
                (method, url, headers, body, expect_status, timeout_sec, max_redirects)
            }
            Action::Webhook { url, timeout_sec } => return Some(Self::webhook(assignment, url, *timeout_sec)),
            Action::Handler { .. } | Action::Command { .. } | Action::Dag(_) => return None,
        };
        let request = Request { method: *method, url, headers, body: body.as_ref() };
        let filled = match request.fill(&Facts::of(assignment)) {
            Ok(filled) => filled,
            Err(why) => return Some(Err(Failed::new(Fault::Template, format!("action.{why}")))),
        };
        let mut all = about(assignment);
        for (name, value) in filled.headers {
            all.insert(name, value);
        }
        Some(Ok(Self {
            // Every one of ours is one of HTTP's.
            method: method.as_str().parse().unwrap_or(Method::POST),
            url: filled.url,
            written: Some(written(url)),
            headers: all,
            body: filled.body.map(Bytes::from).unwrap_or_default(),
            expect: *expect_status,
            timeout: Duration::from_secs(u64::from(*timeout_sec)),
            redirects_left: *max_redirects,
        }))
    }

    /// A webhook: what is told, signed; and no redirect is followed.
    fn webhook(assignment: &Assignment, url: &str, timeout_sec: u32) -> Result<Self, Failed> {
        let wrong = |why: String| Failed::new(Fault::Template, why);
        // That of a callback is of the run.
        let own = assignment.secrets.get(URL).filter(|_| url.is_empty());
        let url = absolute(own.map_or(url, String::as_str)).map_err(|why| wrong(format!("action.{why}")))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let Told { headers: signed, body } = Told::of(assignment, now).map_err(wrong)?;
        let mut headers = about(assignment);
        headers.extend(signed);
        Ok(Self {
            method: Method::POST,
            url,
            // It may hold a token: only the host is shown.
            written: Some("/***".to_owned()),
            headers,
            body: Bytes::from(body),
            expect: (200, 299),
            timeout: Duration::from_secs(u64::from(timeout_sec)),
            redirects_left: 0,
        })
    }

    /// The request that a redirect asks for. To another origin only what describes the body goes along: the rest was meant for
    /// the first one.
    pub fn redirected(&mut self, status: StatusCode, location: &str) -> Result<(), Failed> {
        let wrong = |why: String| Failed::new(Fault::Redirected, format!("the answer {status} leads to {why}"));
        let url = join(&self.url, location).map_err(&wrong)?;
        let url = absolute(&url).map_err(|why| wrong(format!("a URL that is not called: {why}")))?;
        let (from, to) = (Origin::of(&self.url), Origin::of(&url));
        if from.https && !to.https {
            return Err(wrong("a URL without TLS".to_owned()));
        }
        if from != to {
            let along = [header::CONTENT_TYPE, header::ACCEPT, header::USER_AGENT, IDEMPOTENCY_KEY];
            let kept = along.into_iter().filter_map(|name| Some((self.headers.get(&name)?.clone(), name)));
            self.headers = kept.map(|(value, name)| (name, value)).collect();
        }
        let again = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        if !again && self.method != Method::GET && self.method != Method::HEAD {
            self.method = Method::GET;
            self.body = Bytes::new();
            self.headers.remove(header::CONTENT_TYPE);
        }
        self.url = url;
        self.written = None;
        Ok(())
    }
}

/// The path of a template of a URL, without the query, which is long and often personal.
fn written(url: &str) -> String {
    let behind = url.split_once("://").map_or(url, |(_, behind)| behind);
    let path = behind.find(['/', '?']).map_or("", |at| &behind[at..]);
    let path = path.split('?').next().unwrap_or_default();
    if path.is_empty() { "/".to_owned() } else { path.to_owned() }
}

/// The URL that a Location names, without its fragment.
fn join(base: &Uri, location: &str) -> Result<String, String> {
    let mut url = Url::parse(&base.to_string())
        .and_then(|base| base.join(location))
        .map_err(|error| format!("'{}', which is not a URL: {error}", shortened(location)))?;
    url.set_fragment(None);
    Ok(url.into())
}

/// What a command gets as environment. Author's headers of the same name win where they may have one.
fn about(a: &Assignment) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut put = |name: HeaderName, value: &str| {
        // Ids, and names of letters, digits and marks: always fit for a header.
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    put(header::USER_AGENT, USER_AGENT);
    put(IDEMPOTENCY_KEY, &a.invocation_id());
    if let Some(traceparent) = &a.traceparent {
        put(HeaderName::from_static(TRACEPARENT), traceparent);
    }
    let logical_time = a.logical_time.map(|at| at.to_string());
    let facts = [
        ("job-id", Some(a.job.to_string())),
        ("job-name", Some(a.job_name.to_string())),
        ("run-id", Some(a.run.to_string())),
        ("attempt", Some(a.attempt.to_string())),
        ("token", Some(a.token.0.to_string())),
        ("source", Some(a.source.to_string())),
        ("logical-time", logical_time),
    ];
    for (name, value) in facts {
        if let (Ok(name), Some(value)) = (HeaderName::try_from(format!("{OWN_HEADERS}{name}")), value) {
            put(name, &value);
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn prepared(url: &str) -> Prepared {
        let secret = HeaderValue::from_static("Bearer x");
        Prepared {
            method: Method::POST,
            url: url.parse().unwrap(),
            written: None,
            headers: [(header::AUTHORIZATION, secret.clone()), (header::CONTENT_TYPE, secret)].into_iter().collect(),
            body: Bytes::from_static(b"{}"),
            expect: (200, 299),
            timeout: Duration::from_secs(1),
            redirects_left: 1,
        }
    }

    fn redirected(status: u16, location: &str) -> Result<Prepared, Failed> {
        let mut request = prepared("https://a.example/x/y?q=1");
        request.redirected(StatusCode::from_u16(status).unwrap(), location).map(|()| request)
    }

    #[test]
    fn locations_are_read_from_where_they_stand() {
        for (location, url) in [
            ("https://b.example/z", "https://b.example/z"),
            ("//b.example/z", "https://b.example/z"),
            ("/z?a=/b://c#d", "https://a.example/z?a=/b://c"),
            ("?p=2", "https://a.example/x/y?p=2"),
            ("z", "https://a.example/x/z"),
            ("../z", "https://a.example/z"),
            ("/a/%2e%2E/z", "https://a.example/z"),
            ("", "https://a.example/x/y?q=1"),
        ] {
            assert_eq!(redirected(307, location).unwrap().url, url, "{location}");
        }
        for location in ["http://a.example/", "ftp://a.example/", "https://u:p@a.example/", "https://", "https://a b/"]
        {
            let failed = redirected(307, location).map(|request| request.url);
            assert!(failed.is_err(), "{location} {failed:?}");
        }
    }

    #[test]
    fn the_log_shows_the_path_as_it_was_written() {
        for (url, path) in [
            ("https://a.example/hook/{{secrets.k}}?day={{logicalTime}}", "/hook/{{secrets.k}}"),
            ("https://a.example?x=1", "/"),
            ("https://a.example", "/"),
            ("https://a.example/", "/"),
        ] {
            assert_eq!(written(url), path);
        }
    }

    #[test]
    fn what_was_meant_for_one_server_does_not_reach_another() {
        let same = redirected(307, "/z").unwrap();
        assert_eq!((same.method, same.body.as_ref(), same.headers.len()), (Method::POST, &b"{}"[..], 2));
        for other in ["https://b.example/", "https://a.example:8443/", "https://sub.a.example/"] {
            let headers = redirected(308, other).unwrap().headers;
            assert!(headers.get(header::AUTHORIZATION).is_none(), "{other}");
            assert_eq!(headers.len(), 1, "{other}");
        }
        let asked_for_a_page = redirected(302, "/z").unwrap();
        assert_eq!((asked_for_a_page.method, asked_for_a_page.body.len()), (Method::GET, 0));
        assert!(asked_for_a_page.headers.get(header::CONTENT_TYPE).is_none());
    }
}
