//! Errors as `application/problem+json` (RFC 9457).

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
};
use campanile_schema::error::{ApiError, ErrorCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Body of every refusal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Where the code is described.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the code means, the same for every such problem.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// Stable code, e.g. `423_JOB_PAUSED`.
    pub code: String,
    /// What is wrong here.
    pub detail: String,
    /// What to do about such a problem.
    #[serde(default)]
    pub advice: String,
    /// More about it: the field, the position, the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<serde_json::Value>,
    /// Seconds after which a retry makes sense; also as the header Retry-After.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_sec: Option<f64>,
    /// The id under which the server's log speaks of this request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl Problem {
    pub fn new(error: ApiError, request_id: Option<String>) -> Self {
        let code = error.known();
        Self {
            kind: format!("/errors#{}", code.as_str()),
            title: code.title().to_owned(),
            status: code.status(),
            code: code.as_str().to_owned(),
            detail: error.message,
            advice: code.advice().to_owned(),
            context: error.detail,
            retry_after_sec: error.retry_after_sec,
            request_id,
        }
    }

    /// Back to the error that it was made of.
    pub fn into_error(self) -> ApiError {
        ApiError { code: self.code, message: self.detail, detail: self.context, retry_after_sec: self.retry_after_sec }
    }
}

/// The answer to a refused request.
pub(super) fn response(error: ApiError, request_id: Option<String>) -> Response<Body> {
    let code = error.known();
    let retry_after = error.retry_after_sec;
    let body =
        serde_json::to_vec(&Problem::new(error, request_id)).expect("a problem is plain data, written into memory");
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    if let Some(seconds) = retry_after {
        // Whole seconds, never sooner than what was said.
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds.ceil().clamp(0.0, 86_400.0) as u32));
    }
    if code == ErrorCode::Unauthenticated {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"campanile\""));
    }
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_code_becomes_its_status_and_comes_back() {
        for code in ErrorCode::ALL {
            let error = ApiError::new(*code, "why").with_detail(serde_json::json!({"field": "x"})).retry_after(1.2);
            let response = response(error.clone(), Some("r1".into()));
            assert_eq!(response.status().as_u16(), code.status());
            assert!(code.as_str().starts_with(&format!("{}_", code.status())), "{code:?}");
            assert_eq!(response.headers()["retry-after"], "2");
            assert_eq!(response.headers()["content-type"], "application/problem+json");
            assert_eq!(response.headers().contains_key("www-authenticate"), *code == ErrorCode::Unauthenticated);
            let problem = Problem::new(error.clone(), None);
            let again: Problem = serde_json::from_str(&serde_json::to_string(&problem).unwrap()).unwrap();
            assert_eq!(again.into_error(), error);
        }
    }
}
