//! `POST /api/v1/jobs/bulk`: a job a line, and an answer a line, in order, while the rest still comes.
//!
//! What is in memory is bounded: some batches that are being made durable, and the answers that the caller has not read. All
//! answers of one call may wait, so that a caller who writes everything before it reads anything gets through.

use super::{
    access,
    body::{check_written_tenant, parse_json},
    lines::Lines,
    problem::Problem,
    route::{Answered, Call},
    stream,
};
use crate::ops::Operations;
use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, header},
};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    job::JobSpec,
    limits::{BULK_BATCH_LINES, BULK_BATCHES_IN_FLIGHT, CREATE_MANY_JOBS, ERROR_MESSAGE_BYTES},
    view::Created,
};
use campanile_security::auth::Caller;
use schemars::JsonSchema;
use serde::Serialize;
use std::{future::Future, pin::pin};
use tokio::{sync::mpsc, task::JoinHandle};
use tracing::Instrument;

pub(super) const MEDIA: &str = "application/x-ndjson";

/// The answer of one line: the job that was made, or why none was.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BulkLine {
    /// Number of the line, from 1. Blank lines count and have no answer.
    pub line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<Created>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Problem>,
}

type Made = Vec<(u64, Result<Created, ApiError>)>;
/// A batch that is being made durable, and its lines, in case that breaks.
type Making = (Vec<u64>, JoinHandle<Made>);

pub(super) async fn create(call: Call, body: Body) -> Answered {
    let key = call.idempotency_key.clone();
    call.ops.check_bulk(&call.caller, key.as_deref())?;
    check_type(&call.headers)?;
    let Ok(place) = call.shared.bulk.clone().try_acquire_owned() else {
        let message = "the node takes no more bulk creates at once; nothing of this one was read";
        return Err(ApiError::new(ErrorCode::Overloaded, message).retry_after(1.0));
    };
    // Of a batch for each line, in the worst case.
    let (answers, response) = stream::answer(MEDIA, CREATE_MANY_JOBS + 1);
    let (making, made) = mpsc::channel(BULK_BATCHES_IN_FLIGHT);
    let revoked = call.revoked();
    tokio::spawn(
        async move {
            tokio::join!(read(call.ops, call.caller, key, Lines::new(body), revoked, making), write(made, answers));
            drop(place);
        }
        .in_current_span(),
    );
    Ok(response)
}

/// Not declared at all counts as lines of JSON.
fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let declared = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?"));
    let kind = declared.map(|declared| declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    match kind.as_deref() {
        None | Some(MEDIA | "application/ndjson" | "application/jsonl" | "application/x-jsonlines") => Ok(()),
        Some(other) => Err(ApiError::new(
            ErrorCode::UnsupportedMediaType,
            format!("the body is declared as '{}'; send Content-Type: {MEDIA}", other.escape_debug()),
        )),
    }
}

/// Starts batch after batch; waits while enough of them are under way. Ends when nobody wants the answers any more, and when the
/// token is taken back: the line that comes next is told so.
async fn read(
    ops: Operations,
    caller: Caller,
    key: Option<String>,
    mut lines: Lines,
    revoked: impl Future<Output = ()>,
    making: mpsc::Sender<Making>,
) {
    let mut revoked = pin!(revoked);
    let mut is_valid = true;
    while is_valid {
        let came = tokio::select! {
            biased;
            () = &mut revoked => {
                is_valid = false;
                vec![lines.ends_with(access::no_longer_valid())]
            }
            came = lines.next() => match came {
                Some(came) => came,
                None => return,
            },
        };
        let mut came = came.into_iter().peekable();
        while came.peek().is_some() {
            let batch: Vec<_> = came.by_ref().take(BULK_BATCH_LINES).collect();
            let numbers = batch.iter().map(|(number, _)| *number).collect();
            let (ops, caller, key) = (ops.clone(), caller.clone(), key.clone());
            // A place first: a task that was begun is carried out, whoever waits for it.
            let Ok(place) = making.reserve().await else { return };
            place.send((
                numbers,
                tokio::spawn(async move { make(&ops, &caller, batch, key.as_deref()).await }.in_current_span()),
            ));
        }
    }
}

async fn make(ops: &Operations, caller: &Caller, batch: Vec<super::lines::Line>, key: Option<&str>) -> Made {
    let (mut made, mut wanted) = (Made::new(), Vec::new());
    for (number, line) in batch {
        match line.and_then(|line| spec(caller, &line)) {
            Ok(spec) => wanted.push((number, spec)),
            Err(error) => made.push((number, Err(error))),
        }
    }
    made.extend(ops.job_create_lines(caller, wanted, key).await);
    made.sort_by_key(|(number, _)| *number);
    made
}

fn spec(caller: &Caller, line: &[u8]) -> Result<JobSpec, ApiError> {
    let spec = parse_json(line).map_err(|mut error| {
        // The line is told beside it; the one within it is always the first.
        error.message = error.message.replace("(line 1, column ", "(column ");
        error.detail = None;
        error
    })?;
    check_written_tenant(caller, line)?;
    Ok(spec)
}

async fn write(mut made: mpsc::Receiver<Making>, answers: mpsc::Sender<Bytes>) {
    while let Some((numbers, making)) = made.recv().await {
        let made = making.await.unwrap_or_else(|_| {
            let broke =
                || ApiError::new(ErrorCode::Internal, "the create broke; read what there is before you repeat it");
            numbers.iter().map(|number| (*number, Err(broke()))).collect()
        });
        let mut text = Vec::new();
        for (line, made) in made {
            let (ok, error) = match made {
                Ok(created) => (Some(created), None),
                Err(error) => (None, Some(problem(error))),
            };
            // Our own types become JSON, always.
            if serde_json::to_writer(&mut text, &BulkLine { line, ok, error }).is_ok() {
                text.push(b'\n');
            }
        }
        if answers.send(text.into()).await.is_err() {
            return;
        }
    }
}

/// Bounded: a caller's own text stands in some messages, and there are many lines.
fn problem(mut error: ApiError) -> Problem {
    if error.message.len() > ERROR_MESSAGE_BYTES {
        error.message.truncate(error.message.floor_char_boundary(ERROR_MESSAGE_BYTES));
        error.message.push_str("...");
    }
    Problem::new(error, None)
}
