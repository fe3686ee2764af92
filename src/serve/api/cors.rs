//! Which web pages may call from a browser: none, unless the operator names their origins.
//!
//! This is for browsers alone, which ask before they let a page of another origin read an answer; who calls otherwise needs a token all the
//! same. Credentials of the browser (cookies) are never asked for.

use axum::http::{HeaderName, HeaderValue, Method, Uri, header};
use campanile_schema::limits::CORS_MAX_AGE_SEC;
use std::time::Duration;
use tower_http::cors::CorsLayer;

/// Origins such as `https://console.example.org`; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(Vec<HeaderValue>);

/// What callers send beside what every page may.
const SENT: [HeaderName; 5] = [
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static("x-request-id"),
];
/// What a page may read of an answer beside its body.
const TOLD: [HeaderName; 3] = [header::LOCATION, header::RETRY_AFTER, HeaderName::from_static("x-request-id")];

impl Origins {
    /// The error names the origin. `*` is refused: whoever has a token in a browser would answer to every page.
    pub fn parse<T: AsRef<str>>(origins: &[T]) -> Result<Self, String> {
        let one = |origin: &str| {
            let uri = origin.parse::<Uri>().ok()?;
            let whole =
                matches!(uri.scheme_str(), Some("http" | "https")) && !origin.ends_with('/') && uri.path() == "/";
            let plain = uri.query().is_none() && !uri.authority()?.as_str().contains('@');
            (whole && plain && origin == origin.to_ascii_lowercase()).then(|| HeaderValue::from_str(origin).ok())?
        };
        let parsed = origins.iter().map(|origin| {
            let origin = origin.as_ref().trim();
            one(origin).ok_or_else(|| {
                format!("'{origin}' is no origin: write https://console.example.org, in small letters, without a path")
            })
        });
        parsed.collect::<Result<_, _>>().map(Self)
    }

    /// None: browsers are told nothing, and so let no page read an answer.
    pub(super) fn layer(&self) -> Option<CorsLayer> {
        (!self.0.is_empty()).then(|| {
            CorsLayer::new()
                .allow_origin(self.0.clone())
                .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
                .allow_headers(SENT)
                .expose_headers(TOLD)
                .max_age(Duration::from_secs(CORS_MAX_AGE_SEC))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_whole_origins_are_taken() {
        for fine in ["https://console.example.org", "http://localhost:5173", "http://[::1]:5173"] {
            assert_eq!(Origins::parse(&[fine]).unwrap().0, [fine]);
        }
        for wrong in [
            "",
            "*",
            "null",
            "console.example.org",
            "https://x/",
            "https://x/y",
            "https://x?y",
            "https://u@x",
            "https://X",
            "ftp://x",
        ] {
            assert!(Origins::parse(&[wrong]).unwrap_err().contains("is no origin"), "{wrong}");
        }
        assert!(Origins::default().layer().is_none());
    }
}
