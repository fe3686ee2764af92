//! Bodies of messages: what the receiver needs of the sending run, taken from its record when the message travels.

use campanile_schema::{
    frame::encode,
    payload::Payload,
    peer::outbox::HookBody,
    record::{AttemptRecord, RunRecord},
    stored::outbox::Message,
};
use serde_json::json;

/// Bytes that the body of a hook takes besides what is counted by name, at most.
const HOOK_BYTES: usize = 512;

/// Bytes that a hook takes while it is owed, without its own params: its body, and the params and the result of the run, which stay in
/// memory with it.
pub fn hook_bytes(record: &RunRecord) -> usize {
    let kept = [&record.params, &record.result].into_iter().flatten().map(Payload::len);
    HOOK_BYTES + record.last_error().map_or(0, str::len) * 2 + kept.sum::<usize>()
}

/// What a hook tells of a run, without what it does not tell: so much is kept of the run of a hook that was given up.
#[must_use]
pub fn essence(record: &RunRecord) -> RunRecord {
    let told = |attempt: &&AttemptRecord| attempt.error_message.is_some();
    let attempts = match record.attempts.as_slice() {
        [.., last] if last.error_message.is_some() => vec![last.clone()],
        [earlier @ .., last] => earlier.iter().rev().find(told).into_iter().chain([last]).cloned().collect(),
        [] => Vec::new(),
    };
    RunRecord { params: None, result: None, reason: None, key: None, attempts, ..record.clone() }
}

/// Body of a hook: its params, with what it is told of the run that ended. Params and result of that run are not passed on: they may
/// hold what the other job must not see.
pub fn hook(message: &Message, record: Option<&RunRecord>) -> Vec<u8> {
    let mut run = json!({"runId": message.run, "generation": message.generation});
    // It is there, but a hook must not wait for ever for a record that a defect has lost.
    if let (Some(record), Some(run)) = (record, run.as_object_mut()) {
        let error_code = record.attempts.last().and_then(|attempt| attempt.error_code.as_deref());
        run.extend([
            ("jobId".to_owned(), json!(record.job)),
            ("state".to_owned(), json!(record.state.as_str())),
            ("logicalTimeMs".to_owned(), json!(record.logical_ms)),
            ("endedAtMs".to_owned(), json!(record.ended_ms)),
            ("errorCode".to_owned(), json!(error_code)),
            ("errorMessage".to_owned(), json!(record.last_error())),
        ]);
    }
    let run = Payload::from_value(&json!({"run": run}));
    let params = message.params.clone().unwrap_or_default().laid_over(Some(&run));
    let reason = format!("onFailure of run {}, generation {}", message.run, message.generation);
    encode(&HookBody { run: message.run, generation: message.generation, params, reason })
}
