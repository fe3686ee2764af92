//! Who a request is from: its bearer token, the session of a browser, or in dev mode a program of this machine.

use super::{
    Api,
    listener::Peer,
    session::{self, bearer},
};
use axum::http::{HeaderMap, Request, Version, header};
use campanile_schema::error::{ApiError, ErrorCode};
use campanile_security::auth::Caller;
use std::future::Future;

/// The caller of a request, or 401 with what to do.
pub(super) fn caller(api: &Api, headers: &HeaderMap, peer: Option<Peer>) -> Result<Caller, ApiError> {
    let refused = |message: &str| Err(ApiError::new(ErrorCode::Unauthenticated, message));
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        let session = session::opened(api, headers);
        if let Some(caller) = session.as_ref().and_then(|session| api.authenticator.check(&session.token)) {
            return Ok(caller);
        }
        return match &api.open_to_loopback {
            Some(caller) if from_this_machine(headers, peer) => Ok(caller.clone()),
            Some(_) => refused(
                "without a token only programs of this machine may call (not other sites' pages in a browser); \
                 send Authorization: Bearer TOKEN",
            ),
            None if session::has_cookie(headers) => refused("the session has ended: sign in again"),
            None => refused("send a token of the token file: Authorization: Bearer TOKEN"),
        };
    };
    match bearer(value).map(|token| api.authenticator.check(token)) {
        Some(Some(caller)) => Ok(caller),
        Some(None) => refused("the token is not known; make one with `campanile token new`"),
        None => refused("the Authorization header is not of the form: Bearer TOKEN"),
    }
}

/// Waits until the token of a request that was let in stands for its caller no more. Without a token, in dev mode, that never comes.
pub(super) fn revoked(api: &Api, headers: &HeaderMap, caller: &Caller) -> impl Future<Output = ()> + Send + use<> {
    let token = headers.get(header::AUTHORIZATION).and_then(bearer).map(str::to_owned);
    let token = token.or_else(|| session::opened(api, headers).map(|session| session.token));
    let (authenticator, caller) = (api.authenticator.clone(), caller.clone());
    async move {
        let watched = token.and_then(|token| Some((token, authenticator.changes()?)));
        let Some((token, mut changes)) = watched else { return std::future::pending().await };
        // Looked at first: it may have been taken back since the request was let in.
        while authenticator.check(&token).as_ref() == Some(&caller) {
            if changes.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

/// What is told when [`revoked`] comes.
pub(super) fn no_longer_valid() -> ApiError {
    ApiError::new(ErrorCode::Unauthenticated, "this token is not valid any more")
}

/// Waits for something that changes nothing, and so may be left halfway, unless the token is taken back before.
pub(super) async fn while_valid<T>(
    revoked: impl Future<Output = ()>,
    answering: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    tokio::select! {
        biased;
        answered = answering => answered,
        () = revoked => Err(no_longer_valid()),
    }
}

/// A program on this machine, and not a page of another site that a browser on this machine was made to show: such a
/// page can send requests to the loopback address too, under its own origin or under a name of its own that resolves
/// to it.
fn from_this_machine(headers: &HeaderMap, peer: Option<Peer>) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text("host").unwrap_or("?");
    peer.is_some_and(|Peer(address)| address.ip().to_canonical().is_loopback())
        && is_loopback_name(host)
        && text("origin").is_none_or(|origin| {
            let (http, https) = (origin.strip_prefix("http://"), origin.strip_prefix("https://"));
            http.or(https) == Some(host)
        })
        && text("sec-fetch-site").is_none_or(|site| matches!(site, "same-origin" | "none"))
}

/// One Host header of the form of an authority, as RFC 9112 wants it of every request since HTTP/1.1; and a target that names no
/// other host.
pub(super) fn check_host<B>(request: &Request<B>) -> Result<(), ApiError> {
    let refused = |message: &str| Err(ApiError::new(ErrorCode::InvalidArgument, message));
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().unwrap_or("?"),
        (Some(_), Some(_)) => return refused("the request has several Host headers: send one"),
        (None, _) if request.version() < Version::HTTP_11 => return Ok(()),
        (None, _) => return refused("the request has no Host header: send Host: NAME:PORT"),
    };
    if host_of(host).is_none() {
        return refused("the Host header is not of the form NAME:PORT");
    }
    match request.uri().authority() {
        Some(target) if !target.as_str().eq_ignore_ascii_case(host) => {
            refused("the request's target names another host than its Host header")
        }
        Some(_) | None => Ok(()),
    }
}

/// The host of an authority without user and password; None: it is not one.
fn host_of(authority: &str) -> Option<&str> {
    let (host, rest) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, rest)
        }
        None => {
            let (host, rest) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
            let fits = |b: u8| b.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&b);
            if host.is_empty() || !host.bytes().all(fits) {
                return None;
            }
            (host, rest)
        }
    };
    let is_port =
        |port: &str| port.bytes().all(|b| b.is_ascii_digit()) && (port.is_empty() || port.parse::<u16>().is_ok());
    match rest.strip_prefix(':') {
        Some(port) if is_port(port) => Some(host),
        None if rest.is_empty() => Some(host),
        Some(_) | None => None,
    }
}

fn is_loopback_name(host: &str) -> bool {
    host_of(host).is_some_and(|name| {
        name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_programs_of_this_machine_are_let_in_without_a_token() {
        let here = Some(Peer("127.0.0.1:5000".parse().unwrap()));
        let there = Some(Peer("192.0.2.1:5000".parse().unwrap()));
        let with = |pairs: &[(&'static str, &str)]| {
            pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect::<HeaderMap>()
        };
        let host = ("host", "127.0.0.1:7700");
        assert!(from_this_machine(&with(&[host]), here));
        assert!(from_this_machine(&with(&[("host", "localhost:7700")]), here));
        assert!(from_this_machine(&with(&[("host", "[::1]:7700")]), Some(Peer("[::1]:1".parse().unwrap()))));
        assert!(from_this_machine(&with(&[host, ("origin", "http://127.0.0.1:7700")]), here));
        assert!(from_this_machine(&with(&[host, ("origin", "https://127.0.0.1:7700")]), here));
        assert!(from_this_machine(&with(&[host, ("sec-fetch-site", "none")]), here));
        assert!(!from_this_machine(&with(&[host]), there));
        assert!(!from_this_machine(&with(&[host]), None));
        assert!(!from_this_machine(&with(&[]), here));
        for host in [
            "rebound.example:7700",
            "[::1].evil:1",
            "[::1]evil",
            "localhost:80@evil.example",
            "user@localhost",
            "localhost:x",
            "localhost:",
            "localhost:99999",
            "localhost:80:80",
            "[::1",
            "[localhost]",
            "",
            "localhost/",
            "127.0.0.1.evil",
            "localhost.evil",
            "::1",
            "0x7f.1",
            " localhost",
            "localhost#",
            "localhost:80/x",
        ] {
            assert_eq!(from_this_machine(&with(&[("host", host)]), here), host == "localhost:", "{host}");
        }
        assert!(!from_this_machine(&with(&[host, ("origin", "https://elsewhere.example")]), here));
        assert!(!from_this_machine(&with(&[host, ("origin", "null")]), here));
        assert!(!from_this_machine(&with(&[host, ("sec-fetch-site", "cross-site")]), here));
    }

    #[test]
    fn a_request_names_one_host() {
        let checked = |version: Version, uri: &str, hosts: &[&str]| {
            let mut request = Request::builder().version(version).uri(uri);
            for host in hosts {
                request = request.header("host", *host);
            }
            check_host(&request.body(()).unwrap()).is_ok()
        };
        let new = Version::HTTP_11;
        for good in ["localhost", "node-1.example:7700", "[::1]:7700", "10.0.0.1", "[2001:db8::1]"] {
            assert!(checked(new, "/", &[good]), "{good}");
        }
        assert!(checked(Version::HTTP_10, "/", &[]));
        assert!(checked(new, "http://a.example/x", &["a.example"]));
        assert!(!checked(new, "http://b.example/x", &["a.example"]));
        assert!(!checked(new, "/", &[]));
        assert!(!checked(new, "/", &["a", "a"]));
        assert!(!checked(Version::HTTP_10, "/", &["a", "b"]));
        for bad in ["", "a b", "a@b", "[::1].evil:1", "a:b", "a/b"] {
            assert!(!checked(new, "/", &[bad]), "{bad}");
        }
    }
}
