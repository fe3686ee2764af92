//! Errors as `application/problem+json` (RFC 9457), and the one-line title of every code.

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
    /// What is wrong here and what to do.
    pub detail: String,
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
            title: title(code).to_owned(),
            status: code.status(),
            code: code.as_str().to_owned(),
            detail: error.message,
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
    let body = serde_json::to_vec(&Problem::new(error, request_id)).unwrap_or_default();
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

/// What a code means, in one line.
pub fn title(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::InvalidArgument => "A field or parameter has a wrong value, type or name",
        ErrorCode::MalformedBody => "The body is not JSON, MessagePack or UTF-8",
        ErrorCode::InvalidSchedule => "The cron expression cannot be understood",
        ErrorCode::ScheduleNeverFires => "The schedule has no instant in the future",
        ErrorCode::UnknownTimezone => "The time zone is not in the database",
        ErrorCode::NoSecretKey => "Secret params need a key in the configuration ([secrets] key_file)",
        ErrorCode::Unauthenticated => "No token, or one that is not known",
        ErrorCode::Forbidden => "This credential may not do that",
        ErrorCode::NotFound => "There is no such thing, or it belongs to another tenant",
        ErrorCode::UnknownMethod => "There is no such path or RPC method",
        ErrorCode::MethodNotAllowed => "The path exists, but not with this method",
        ErrorCode::DuplicateName => "The tenant has a job of this name",
        ErrorCode::IdempotencyKeyReused => "The Idempotency-Key came with another body before",
        ErrorCode::StaleVersion => "Somebody else changed it meanwhile: read it again",
        ErrorCode::IllegalState => "Its state does not allow this",
        ErrorCode::RunActive => "A run of the job is active and its concurrency policy allows one",
        ErrorCode::StaleToken => "The result belongs to an attempt that is not the newest",
        ErrorCode::DagCycle => "The edges of the DAG make a cycle",
        ErrorCode::BodyTooLarge => "The body is larger than allowed",
        ErrorCode::UnsupportedMediaType => "The body is not declared as JSON",
        ErrorCode::JobPaused => "The job, its tenant or the system is paused",
        ErrorCode::TenantQuota => "A limit of the tenant is reached",
        ErrorCode::JobQueueFull => "The job has too many open runs",
        ErrorCode::Internal => "A bug: please report it with the request id",
        ErrorCode::Overloaded => "The node has too much to do: try again",
        ErrorCode::NotReady => "The node is starting, stopping, or cannot write or tell the time",
        ErrorCode::Timeout => "No answer in time: the call may or may not have been carried out",
    }
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
