//! Bodies of messages: what the receiver needs of the sending run, taken from its record when the message travels.

use campanile_schema::{
    frame::encode, payload::Payload, peer::outbox::HookBody, record::RunRecord, stored::outbox::Message,
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

/// Body of a hook: its params, with what it is told of the run that ended. Params and result of that run are not passed on: they may
/// hold what the other job must not see.
pub fn hook(message: &Message, record: &RunRecord) -> Vec<u8> {
    let error_code = record.attempts.last().and_then(|attempt| attempt.error_code.as_deref());
    let run = json!({"run": {
        "runId": record.run,
        "jobId": record.job,
        "generation": message.generation,
        "state": record.state.as_str(),
        "logicalTimeMs": record.logical_ms,
        "endedAtMs": record.ended_ms,
        "errorCode": error_code,
        "errorMessage": record.last_error(),
    }});
    let params = message.params.clone().unwrap_or_default().laid_over(Some(&Payload::from_value(&run)));
    let reason = format!("onFailure of run {}, generation {}", message.run, message.generation);
    encode(&HookBody { run: message.run, generation: message.generation, params, reason })
}
