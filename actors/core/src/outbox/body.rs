//! Bodies of messages: what the receiver needs of the sending run, taken from its record when the message travels.

use crate::hooks;
use campanile_schema::{
    frame::encode,
    hooks::CALLBACK,
    ids::RunId,
    limits::PARAMS_BYTES,
    payload::Payload,
    peer::outbox::{EndBody, HookBody, NodeBody},
    record::{AttemptRecord, RunRecord, RunState, Source},
    stored::{
        audit::CallOrigin,
        deadline::{MissedDeadline, StoredDeadline},
        outbox::Message,
    },
    trace::TraceContext,
};
use serde_json::{Map, Value, json};

/// Bytes that the body of a hook takes besides what is counted by name, at most.
const HOOK_BYTES: usize = 512;
/// A trace in the record of a run, as `traceparent`.
const TRACE_BYTES: usize = 64;
/// The same of an attempt in memory.
const ATTEMPT_BYTES: usize = 192;

/// Bytes that a hook takes while it is owed, without its own params: the record of the run, which stays in memory with it. Its body is no
/// larger: it has parts of the record only.
pub fn hook_bytes(record: &RunRecord) -> usize {
    let RunRecord { params, result, key, reason, by, attempts, graph, sealed, .. } = record;
    let sealed = sealed.as_ref().map_or(0, |sealed| encode(&**sealed).len());
    let payloads: usize = [params, result].into_iter().flatten().map(Payload::len).sum();
    let texts: usize = [key, reason].into_iter().flatten().map(String::len).sum();
    let origin = by.as_deref().map_or(0, |CallOrigin { who, address, request, trace }| {
        let trace = if trace.is_some() { TRACE_BYTES } else { 0 };
        trace + [who, address, request].into_iter().flatten().map(|text| text.len()).sum::<usize>()
    });
    let attempt = |attempt: &AttemptRecord| {
        let texts = [&attempt.error_code, &attempt.error_message];
        ATTEMPT_BYTES + attempt.executor.len() + texts.into_iter().flatten().map(String::len).sum::<usize>()
    };
    // Once more the text that is longer in JSON.
    let told = record.last_error().map_or(0, str::len);
    let graph = graph.as_ref().map_or(0, |graph| encode(graph).len());
    HOOK_BYTES + sealed + payloads + texts + origin + attempts.iter().map(attempt).sum::<usize>() + graph + told
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
    let by = record.trace().map(|trace| CallOrigin::in_trace(trace).into());
    RunRecord { reason: None, key: None, by, graph: None, attempts, ..record.clone() }
}

/// Bytes that the body of a START or a CANCEL takes besides its params, at most.
pub const NODE_BYTES: usize = 128;

/// Bytes that the hook of a deadline takes besides its params, at most.
pub const DEADLINE_BYTES: usize = 512;

/// Bytes that the body of an END takes at most.
pub fn end_bytes(record: &RunRecord) -> usize {
    NODE_BYTES + record.result.as_ref().map_or(0, Payload::len)
}

/// Body of a START or a CANCEL.
/// `dag`: the run of the DAG, whose instant and lane the run of the node has, and `nodes` how many it has. `trace`: the span of that run.
pub fn node(
    message: &Message,
    params: Payload,
    (timeout_sec, deadline): (Option<u64>, Option<StoredDeadline>),
    (dag, nodes): (&RunRecord, usize),
    trace: Option<TraceContext>,
) -> Vec<u8> {
    let (node, generation) = (message.index, message.generation);
    let (logical_ms, back) = (dag.logical_ms, dag.is_back());
    let budget = hooks::of_node(dag.budget, nodes);
    let scheduled = dag.source == Source::Schedule;
    encode(&NodeBody {
        dag: message.run,
        node,
        generation,
        params,
        timeout_sec,
        logical_ms,
        trace,
        back,
        budget,
        deadline,
        scheduled,
    })
}

/// How the run of a node has ended; None: it is no such run, or has not.
pub fn end(record: &RunRecord) -> Option<EndBody> {
    let (dag, node) = record.dag.filter(|_| record.state.is_final())?;
    Some(EndBody {
        dag: RunId(dag),
        node,
        run: record.run,
        generation: record.generation,
        state: record.state,
        result: record.result.clone().filter(|_| record.state == RunState::Success),
    })
}

/// Body of a hook: its params, with what it is told of the run that ended; together no more than a caller may give with a trigger.
pub fn hook(message: &Message, record: Option<&RunRecord>, trace: Option<TraceContext>) -> Vec<u8> {
    let run = Payload::from_value(&json!({"run": told(message, record)}));
    let params = message.params.clone().unwrap_or_default().laid_over(Some(&run));
    let reason = format!("{} of run {}, generation {}", kind_of(message), message.run, message.generation);
    let (run, generation, budget) = (message.run, message.generation, message.budget);
    let sealed = record.and_then(|record| record.sealed.clone()).filter(|_| message.index == CALLBACK);
    encode(&HookBody { run, generation, params, reason, trace, budget, sealed })
}

/// Body of the hook of a deadline. All that it tells is in the message.
pub fn deadline(message: &Message, missed: &MissedDeadline) -> Vec<u8> {
    let never_began = missed.state.is_none();
    let mut run = json!({
        "hook": kind_of(message),
        "jobId": missed.job,
        "generation": message.generation,
        "state": missed.state.map_or("NOT_STARTED", RunState::as_str),
        "logicalTimeMs": missed.instant_ms,
        "deadlineMs": missed.until_ms,
    });
    if let Some(members) = run.as_object_mut() {
        let more = match missed.reason {
            Some(reason) => ("reason", json!(reason)),
            None => ("runId", json!(message.run)),
        };
        members.insert(more.0.to_owned(), more.1);
    }
    let run = Payload::from_value(&json!({ "run": run }));
    let params = message.params.clone().unwrap_or_default().laid_over(Some(&run));
    let of = if never_began { "job" } else { "run" };
    let reason = format!("{} of {of} {}, generation {}", kind_of(message), message.run, message.generation);
    let (run, generation, budget) = (message.run, message.generation, message.budget);
    encode(&HookBody { run, generation, params, reason, trace: None, budget, sealed: None })
}

fn kind_of(message: &Message) -> &'static str {
    campanile_schema::hooks::name_of(message.index)
}

/// The run that ended. Its params and its result are left out, and named, when there is no room for them. Secret params are in no record.
fn told(message: &Message, record: Option<&RunRecord>) -> Value {
    let mut run = json!({"runId": message.run, "generation": message.generation, "hook": kind_of(message)});
    // It is there, but a hook must not wait for ever for a record that a defect has lost.
    let (Some(record), Some(members)) = (record, run.as_object_mut()) else { return run };
    let error_code = record.attempts.last().and_then(|attempt| attempt.error_code.as_deref());
    members.extend([
        ("jobId".to_owned(), json!(record.job)),
        ("state".to_owned(), json!(record.state.as_str())),
        ("logicalTimeMs".to_owned(), json!(record.logical_ms)),
        ("endedAtMs".to_owned(), json!(record.ended_ms)),
        ("errorCode".to_owned(), json!(error_code)),
        ("errorMessage".to_owned(), json!(record.last_error())),
    ]);
    let own = message.params.as_ref().map_or(0, |own| own.to_value().to_string().len());
    let data = [("params", &record.params), ("result", &record.result)];
    add_what_fits(members, &data, PARAMS_BYTES.saturating_sub(own));
    run
}

/// Adds members one after the other while all of them take no more than `room`, and the names of those that are left out.
fn add_what_fits(members: &mut Map<String, Value>, data: &[(&'static str, &Option<Payload>)], room: usize) {
    /// A name with what stands around it, here and in `omitted`.
    const NAME_BYTES: usize = 32;
    let begun = serde_json::to_vec(members).map_or(room, |bytes| bytes.len() + 2 * NAME_BYTES);
    let mut left = room.saturating_sub(begun);
    let mut omitted = Vec::new();
    for (name, data) in data {
        let Some(data) = data else { continue };
        let value = data.to_value();
        // As it will be written: the text of the caller may have had other spaces and escapes.
        let bytes = value.to_string().len() + NAME_BYTES;
        if bytes <= left {
            left -= bytes;
            members.insert((*name).to_owned(), value);
        } else {
            omitted.push(name);
        }
    }
    if !omitted.is_empty() {
        members.insert("omitted".to_owned(), json!(omitted));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::outbox::sending::tests::message;
    use campanile_schema::{
        ids::{JobId, RunId, Token},
        limits::{ATTEMPTS_KEPT, ERROR_MESSAGE_BYTES, HOOK_PARAMS_BYTES, RESULT_BYTES},
        record::{AttemptState, RunState, Source},
        stored::outbox::MessageKind,
    };

    fn attempt(attempt: u32, error: String) -> AttemptRecord {
        AttemptRecord {
            attempt,
            generation: 2,
            state: AttemptState::Failed,
            token: Token(7),
            executor: "executor-1".into(),
            started_ms: 1,
            ended_ms: Some(2),
            error_code: Some("EXIT_3".to_owned()),
            error_message: Some(error),
            cpu_ms: None,
            max_rss_kb: None,
            permanent: false,
        }
    }

    fn failed(params: Option<&str>, result: Option<&str>, errors: Vec<String>) -> RunRecord {
        let payload = |text: Option<&str>| text.map(|text| Payload(text.to_owned()));
        RunRecord {
            run: RunId(4_097),
            job: JobId(9),
            tenant: "acme".into(),
            state: RunState::Failed,
            source: Source::Manual,
            logical_ms: Some(1),
            key: Some("order-7".to_owned()),
            generation: 2,
            created_ms: 1,
            started_ms: Some(1),
            ended_ms: Some(2),
            params: payload(params),
            result: payload(result),
            reason: Some("by hand".to_owned()),
            by: Some(CallOrigin { who: Some("w".repeat(128).into()), ..CallOrigin::default() }.into()),
            dead_letter: true,
            attempts: (1..).zip(errors).map(|(number, error)| attempt(number, error)).collect(),
            dag: None,
            depth: 0,
            marked: false,
            failed_hooks: Vec::new(),
            timeout_sec: None,
            graph: None,
            backfill: None,
            budget: None,
            compensated: false,
            priority: None,
            timing: None,
            sealed: None,
        }
    }

    fn body_of(record: &RunRecord, params: Option<String>) -> Value {
        let message = Message { params: params.map(Payload), index: 0, ..message(MessageKind::Hook) };
        let body: HookBody = campanile_schema::frame::decode("hook", &hook(&message, Some(record), None)).unwrap();
        body.params.to_value()
    }

    #[test]
    fn a_hook_gets_the_params_and_the_result_of_the_run() {
        let record = failed(Some(r#"{"order":7}"#), Some("[1]"), vec!["no luck".to_owned()]);
        let own = || Some(r#"{"channel":"card"}"#.to_owned());
        let expected = json!({"channel": "card", "run": {
            "runId": 4_097, "generation": 2, "hook": "onFailure", "jobId": 9, "state": "FAILED", "logicalTimeMs": 1, "endedAtMs": 2,
            "errorCode": "EXIT_3", "errorMessage": "no luck", "params": {"order": 7}, "result": [1],
        }});
        assert_eq!(body_of(&record, own()), expected);
        assert_eq!(body_of(&essence(&record), own()), expected, "also when it is sent again by hand");
    }

    fn text(bytes: usize) -> String {
        format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8))
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_named_and_the_rest_stays() {
        let fits = failed(Some(&text(PARAMS_BYTES / 2)), Some(&text(RESULT_BYTES)), vec!["no luck".to_owned()]);
        assert_eq!(body_of(&fits, None)["run"]["omitted"], Value::Null);
        let large = failed(Some(&text(PARAMS_BYTES)), Some(&text(RESULT_BYTES)), vec!["no luck".to_owned()]);
        let run = &body_of(&large, None)["run"];
        assert_eq!(run["omitted"], json!(["params"]));
        assert_eq!(run["params"], Value::Null);
        assert!(run["result"]["a"].is_string());
    }

    /// Control characters take six bytes of JSON each.
    #[test]
    fn neither_the_params_nor_what_stays_in_memory_takes_more_than_is_counted() {
        for params in [PARAMS_BYTES / 4, PARAMS_BYTES / 2, PARAMS_BYTES - RESULT_BYTES, PARAMS_BYTES] {
            for error in ["x", "\u{1}"] {
                let errors = vec![error.repeat(ERROR_MESSAGE_BYTES); ATTEMPTS_KEPT];
                let record = failed(Some(&text(params)), Some(&text(RESULT_BYTES)), errors);
                let counted = hook_bytes(&record);
                assert!(counted >= encode(&record).len(), "{params}: {counted}");
                for own in [None, Some(text(HOOK_PARAMS_BYTES))] {
                    let bytes = body_of(&record, own).to_string().len();
                    assert!(bytes <= PARAMS_BYTES, "{params}: {bytes}");
                }
            }
        }
    }
}
