//! Sessions of the console in a browser ([`campanile_security::sessions`]).
//!
//! A call with a token opens one; the answer sets a cookie that no script can read and that no other site's page sends
//! (`HttpOnly; SameSite=Strict`). Pages of another port or subdomain count as the same site, so the cookie alone is not
//! enough: a call counts as the session's only if it has the header `X-Campanile-Console`, which a page of another origin
//! cannot send, and if the browser does not say that the call is from another origin.
//!
//! Never here: what a caller may do. A session is its token, no more and no less.

use super::{
    Api,
    route::{Call, Reply, page},
};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    time::Timestamp,
    view::{CallerKind, KnownBy, SessionView},
};
use campanile_security::{auth::Role, sessions::OpenedSession};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::{SystemTime, UNIX_EPOCH};

/// What the console sends with each call.
const OURS: &str = "x-campanile-console";
/// In front of the port in the name of a cookie. Cookies do not know ports, and two nodes may be on one machine.
const NAME: &str = "campanile-session-";
/// Browsers take a cookie of such a name only from the host itself, over TLS.
const SECURE_NAME: &str = "__Host-campanile-session-";

/// No parameters.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoQuery {}

/// The session that a request is of.
pub(super) fn opened(api: &Api, headers: &HeaderMap) -> Option<OpenedSession> {
    if !is_from_the_console(headers) {
        return None;
    }
    cookies(headers).find_map(|value| api.sessions.open(value, now_ms()))
}

/// The token of the header `Authorization`.
pub(super) fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Whether a request has the cookie of a session, whatever it is worth.
pub(super) fn has_cookie(headers: &HeaderMap) -> bool {
    cookies(headers).next().is_some()
}

/// The values of our cookies of this port, those that came over TLS first.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let names = [SECURE_NAME, NAME].map(|name| format!("{name}{}", port(headers)));
    let pairs = move || {
        let sent = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        sent.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='))
    };
    names.into_iter().flat_map(move |name| pairs().filter(move |(known, _)| *known == name).map(|(_, value)| value))
}

/// The port that the browser called; 0: it named none.
fn port(headers: &HeaderMap) -> u16 {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    host.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(0)
}

fn is_from_the_console(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text("host").unwrap_or("?");
    headers.contains_key(OURS)
        && text("sec-fetch-site").is_none_or(|site| site == "same-origin")
        && text("origin").is_none_or(|origin| {
            let (http, https) = (origin.strip_prefix("http://"), origin.strip_prefix("https://"));
            http.or(https) == Some(host)
        })
}

/// A call with a token, or of this machine in dev mode, which needs no session.
pub(super) async fn open(call: Call, _: NoQuery) -> Result<Reply<SessionView>, ApiError> {
    let view = of_caller(&call)?;
    let Some(token) = call.headers.get(header::AUTHORIZATION).and_then(bearer) else {
        return Ok(Reply::Json(view));
    };
    let sealed = call.shared.api.sessions.seal(token, now_ms());
    let (value, until_ms) =
        sealed.ok_or_else(|| ApiError::new(ErrorCode::Internal, "the system gives no randomness for a session"))?;
    let view = SessionView { expires_at: Some(Timestamp(until_ms)), known_by: KnownBy::Session, ..view };
    answered(&view, &cookie(&call.headers, &value, ""))
}

/// Whose call this is.
pub(super) async fn get(call: Call, _: NoQuery) -> Result<Reply<SessionView>, ApiError> {
    of_caller(&call).map(Reply::Json)
}

/// The browser forgets the cookie. What was sealed stands for the token until its time is over or the token is taken back.
pub(super) async fn close(call: Call, _: NoQuery) -> Result<Reply<SessionView>, ApiError> {
    kind_of(&call)?;
    let mut response = Response::new(axum::body::Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(header::SET_COOKIE, in_header(&cookie(&call.headers, "", "; Max-Age=0"))?);
    Ok(Reply::Other(response))
}

fn answered(view: &SessionView, cookie: &str) -> Result<Reply<SessionView>, ApiError> {
    let body = serde_json::to_vec(view)
        .map_err(|why| ApiError::new(ErrorCode::Internal, format!("the answer cannot be written: {why}")))?;
    let mut response = page("application/json", body);
    response.headers_mut().insert(header::SET_COOKIE, in_header(cookie)?);
    Ok(Reply::Other(response))
}

fn in_header(cookie: &str) -> Result<HeaderValue, ApiError> {
    HeaderValue::from_str(cookie).map_err(|why| ApiError::new(ErrorCode::Internal, format!("no cookie: {why}")))
}

/// The page says in `Origin` whether it came over TLS, also where a proxy ends the TLS.
fn cookie(headers: &HeaderMap, value: &str, more: &str) -> String {
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok()).unwrap_or_default();
    let port = port(headers);
    if origin.starts_with("https://") {
        format!("{SECURE_NAME}{port}={value}; Path=/; HttpOnly; SameSite=Strict; Secure{more}")
    } else {
        format!("{NAME}{port}={value}; Path=/; HttpOnly; SameSite=Strict{more}")
    }
}

/// Executors and what reads metrics have nothing to see.
fn kind_of(call: &Call) -> Result<CallerKind, ApiError> {
    let refused = |message: &str| Err(ApiError::new(ErrorCode::Forbidden, message));
    match call.caller.role {
        Role::Operator => Ok(CallerKind::Operator),
        Role::Tenant => Ok(CallerKind::Tenant),
        Role::Executor => refused("an executor's credential cannot use the console"),
        Role::Metrics => refused("a credential for metrics reads /metrics only"),
    }
}

fn of_caller(call: &Call) -> Result<SessionView, ApiError> {
    let role = kind_of(call)?;
    let (known_by, expires_at) = if call.headers.contains_key(header::AUTHORIZATION) {
        (KnownBy::Token, None)
    } else {
        match opened(&call.shared.api, &call.headers) {
            Some(session) => (KnownBy::Session, Some(Timestamp(session.until_ms))),
            None => (KnownBy::Loopback, None),
        }
    };
    Ok(SessionView {
        name: call.caller.name.clone(),
        role,
        tenant_id: call.caller.tenant.clone(),
        known_by,
        expires_at,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn with(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_call_of_another_origin_is_not_the_sessions() {
        let (host, ours) = (("host", "node.example:7700"), (OURS, "1"));
        assert!(is_from_the_console(&with(&[host, ours])));
        assert!(is_from_the_console(&with(&[host, ours, ("origin", "https://node.example:7700")])));
        assert!(is_from_the_console(&with(&[host, ours, ("sec-fetch-site", "same-origin")])));
        // A form or a link cannot send the header; a script of another origin has to ask first.
        assert!(!is_from_the_console(&with(&[host])));
        assert!(!is_from_the_console(&with(&[host, ours, ("sec-fetch-site", "same-site")])));
        assert!(!is_from_the_console(&with(&[host, ours, ("sec-fetch-site", "none")])));
        for origin in ["http://node.example:7701", "https://evil.example", "null", "http://node.example"] {
            assert!(!is_from_the_console(&with(&[host, ours, ("origin", origin)])), "{origin}");
        }
    }

    #[test]
    fn a_cookie_is_of_its_port() {
        let sent = "campanile-session-7700=a; other=b; campanile-session-7701=c; __Host-campanile-session-7700=d";
        let headers = with(&[("host", "localhost:7700"), ("cookie", sent)]);
        assert_eq!(cookies(&headers).collect::<Vec<_>>(), ["d", "a"]);
        assert_eq!(cookies(&with(&[("host", "localhost"), ("cookie", sent)])).count(), 0);
        assert_eq!(cookies(&with(&[("host", "localhost:7700")])).count(), 0);
    }

    #[test]
    fn a_cookie_is_for_the_node_alone_and_no_script_reads_it() {
        let plain = cookie(&with(&[("host", "10.0.0.5:7700"), ("origin", "http://10.0.0.5:7700")]), "x", "");
        assert_eq!(plain, "campanile-session-7700=x; Path=/; HttpOnly; SameSite=Strict");
        let tls = cookie(&with(&[("host", "jobs.example"), ("origin", "https://jobs.example")]), "x", "; Max-Age=0");
        let wanted = "__Host-campanile-session-0=x; Path=/; HttpOnly; SameSite=Strict; Secure; Max-Age=0";
        assert_eq!(tls, wanted);
    }
}
