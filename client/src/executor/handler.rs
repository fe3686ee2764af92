//! From a typed async function to a body, and from what it returns to a report.

use super::{
    context::Context,
    report::{JobError, Report, code, panic_error},
};
use campanile_schema::{limits::RESULT_BYTES, payload::Payload};
use serde::{Serialize, de::DeserializeOwned};
use std::{future::Future, pin::Pin, sync::Arc};

/// A running body.
pub type BodyFuture = Pin<Box<dyn Future<Output = Report> + Send>>;
/// Makes a body for an attempt.
pub(super) type Body = Arc<dyn Fn(Context) -> BodyFuture + Send + Sync>;

/// Wraps a handler with typed params.
pub(super) fn typed<P, R, F, Fut>(handler: F) -> Body
where
    P: DeserializeOwned + Send + 'static,
    R: Serialize,
    F: Fn(Context, P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, JobError>> + Send + 'static,
{
    Arc::new(move |ctx: Context| {
        let params = serde_json::from_str::<P>(&ctx.assignment().params.0);
        match params {
            Ok(params) => {
                let body = handler(ctx.clone(), params);
                Box::pin(async move {
                    match body.await {
                        Ok(result) => finished(&ctx, &result),
                        Err(error) => Report::failed(error),
                    }
                }) as BodyFuture
            }
            // The next attempt would get the same.
            Err(e) => Box::pin(std::future::ready(Report::failed(JobError::permanent(
                code::INVALID_PARAMS,
                format!("params do not fit the handler: {e}"),
            )))),
        }
    })
}

/// Why blocking work gave no result: it panicked, or the runtime is gone.
pub(super) fn failed(error: tokio::task::JoinError) -> JobError {
    match error.try_into_panic() {
        Ok(panic) => panic_error(&*panic),
        Err(error) => JobError::new(code::BODY_ABORTED, error.to_string()),
    }
}

fn finished<R: Serialize>(ctx: &Context, result: &R) -> Report {
    match serde_json::to_string(result) {
        // What a handler without a result returns.
        Ok(text) if text == "null" => Report::success(None),
        Ok(text) => {
            if text.len() > RESULT_BYTES {
                ctx.log(format!("[the result of {} bytes is not kept; at most {RESULT_BYTES} are]", text.len()));
            }
            Report::success(Some(Payload(text)))
        }
        Err(e) => Report::failed(JobError::new(code::INVALID_RESULT, format!("the result is not JSON: {e}"))),
    }
}
