//! Who a request is from: its bearer token, or in dev mode a program of this machine.

use super::{Api, listener::Peer};
use crate::auth::Caller;
use axum::http::{HeaderMap, header};
use campanile_schema::error::{ApiError, ErrorCode};

/// The caller of a request, or 401 with what to do.
pub(super) fn caller(api: &Api, headers: &HeaderMap, peer: Option<Peer>) -> Result<Caller, ApiError> {
    let refused = |message: &str| Err(ApiError::new(ErrorCode::Unauthenticated, message));
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return match &api.open_to_loopback {
            Some(caller) if from_this_machine(headers, peer) => Ok(caller.clone()),
            Some(_) => refused(
                "without a token only programs of this machine may call (not other sites' pages in a browser); \
                 send Authorization: Bearer TOKEN",
            ),
            None => refused("send a token of the token file: Authorization: Bearer TOKEN"),
        };
    };
    let token = value.to_str().ok().and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    match token.map(|token| api.authenticator.check(token)) {
        Some(Some(caller)) => Ok(caller),
        Some(None) => refused("the token is not known; make one with `campanile token new`"),
        None => refused("the Authorization header is not of the form: Bearer TOKEN"),
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

fn is_loopback_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.split(':').next().unwrap_or(host),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
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
        assert!(!from_this_machine(&with(&[("host", "rebound.example:7700")]), here));
        assert!(!from_this_machine(&with(&[host, ("origin", "https://elsewhere.example")]), here));
        assert!(!from_this_machine(&with(&[host, ("origin", "null")]), here));
        assert!(!from_this_machine(&with(&[host, ("sec-fetch-site", "cross-site")]), here));
    }
}
