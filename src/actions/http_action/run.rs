//! One attempt of an HTTP action from end to end.

use super::{
    Failed, Fault, Outbound,
    exchange::{self, AcceptedResponse},
    request::Prepared,
    transcript::Transcript,
};
use campanile_client::{Context, JobError, Report};
use campanile_schema::payload::Payload;
use tokio::time::timeout;

/// Runs the attempt; ends at once when it is told to stop.
pub async fn run(outbound: &Outbound, context: Context) -> Report {
    let mut transcript = Transcript::new(context.secrets());
    let ended = tokio::select! {
        // A stop that comes with the answer counts as a stop for the SDK too.
        ended = attempt(outbound, &context, &mut transcript) => ended,
        reason = context.canceled() => {
            transcript.line(&format!("[campanile: the request was ended: {reason:?}]"));
            context.log(String::from_utf8_lossy(&transcript.take()).trim_end());
            return Report::failed(JobError::new("STOPPED", "the request was ended on request"));
        }
    };
    let report = match ended {
        Ok(answer) => {
            let result = serde_json::json!({ "status": answer.status.as_u16(), "bodyBytes": answer.bytes });
            Report::success(Some(Payload::from_value(&result)))
        }
        Err(Failed { fault, message }) => {
            let message = transcript.masked(&message);
            transcript.line(&format!("[campanile: {}: {message}]", fault.code()));
            Report::failed(match fault {
                // The same params give the same request.
                Fault::Template => JobError::permanent(fault.code(), message),
                Fault::NameNotFound
                | Fault::AddressRefused
                | Fault::ConnectFailed
                | Fault::TlsFailed
                | Fault::Timeout
                | Fault::AnswerInvalid
                | Fault::Redirected
                | Fault::Status => JobError::new(fault.code(), message),
            })
        }
    };
    context.write_log(&transcript.take()).await;
    report
}

async fn attempt(
    outbound: &Outbound,
    context: &Context,
    transcript: &mut Transcript,
) -> Result<AcceptedResponse, Failed> {
    let request = Prepared::of(context.assignment())
        .unwrap_or_else(|| Err(Failed::new(Fault::Template, "this runs HTTP actions only")))?;
    let limit = request.timeout;
    match timeout(limit, exchange::send(outbound, request, transcript)).await {
        Ok(ended) => ended,
        Err(_) => {
            Err(Failed::new(Fault::Timeout, format!("no whole answer within timeoutSec ({} s)", limit.as_secs())))
        }
    }
}
