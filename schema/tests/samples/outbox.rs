//! Samples of the outbox: what is stored of messages, and what travels.

use super::{AT, JOB, RUN, Sample, sample};
use campanile_schema::{
    event::Event,
    ids::{RunId, ShardId},
    payload::Payload,
    peer::outbox::{Deliver, Delivered, EndBody, HookBody, Parcel, RunFacts, Said},
    record::{FailedHook, HookFailure, RunRecord, RunState, Source},
    stored::{
        OtherHooks, Sealed, StoredHook,
        outbox::{
            DropReason, Failure, GiveUp, Message, MessageId, MessageKind, OutboxEvent, OutboxHead, OutboxItem, Refusal,
        },
    },
    trace::TraceContext,
};
use std::sync::Arc;

/// With every field.
pub fn full() -> Message {
    Message {
        id: MessageId(70_000),
        from: 3_752,
        to: 17,
        kind: MessageKind::Compensation,
        tenant: "finance".into(),
        run: RUN,
        generation: 2,
        index: 3,
        parent: Some(RunId(16_040)),
        job: Some("refund".into()),
        params: Some(Payload("{\"amount\":12}".to_owned())),
        depth: 1,
        bytes: 4_096,
        at_ms: AT,
        marked: true,
        until_ms: Some(AT + 86_400_000),
        budget: None,
        deadline: None,
    }
}

/// An end: as short as a message gets.
fn end() -> Message {
    Message {
        kind: MessageKind::End,
        generation: 1,
        index: 0,
        job: None,
        params: None,
        depth: 0,
        marked: false,
        until_ms: None,
        ..full()
    }
}

/// A hook, and how many runs of hooks may follow from its run.
fn with_budget(budget: u32) -> Message {
    Message { kind: MessageKind::Hook, index: 257, budget: Some(budget), ..full() }
}

fn events() -> Vec<(&'static str, OutboxEvent)> {
    let id = MessageId(70_000);
    vec![
        ("Sent, every field", OutboxEvent::Sent(full())),
        ("Sent, an end", OutboxEvent::Sent(end())),
        ("Dropped", OutboxEvent::Dropped { message: end(), why: DropReason::OutboxFull }),
        ("Dropped, over the budget", OutboxEvent::Dropped { message: with_budget(0), why: DropReason::Budget }),
        ("Settled", OutboxEvent::Settled { ids: vec![MessageId(1), MessageId(300), id] }),
        ("Failed, refused", OutboxEvent::Failed { id, why: Failure::Refused(Refusal::Poisoned), at_ms: AT }),
        ("Failed, undelivered", OutboxEvent::Failed { id, why: Failure::Undelivered, at_ms: AT }),
        ("Restored", OutboxEvent::Restored { at_ms: AT }),
        ("Cleared", OutboxEvent::Cleared { ids: vec![MessageId(1), id] }),
    ]
}

fn delivers() -> Vec<(&'static str, Deliver)> {
    let hook = Parcel {
        id: MessageId(70_000),
        kind: MessageKind::Hook.code(),
        tenant: "finance".into(),
        job: Some("refund".into()),
        key: "\u{1}h11944/2/3".to_owned(),
        decided_ms: AT,
        marked: true,
        depth: 1,
        body: vec![0x81, 0xa1, 0x72, 7],
    };
    // Of a later release.
    let unknown = Parcel { kind: 200, job: None, marked: false, depth: 0, body: vec![1], ..hook.clone() };
    vec![("two kinds", Deliver { from: ShardId(3), to: ShardId(17), at_ms: AT, parcels: vec![hook, unknown] })]
}

fn answers() -> Vec<(&'static str, Delivered)> {
    let run = RunFacts { run: RUN, generation: 2, state: RunState::NeedsConfirmation };
    let each = vec![
        (MessageId(1), Said::Settled { run: None }),
        (MessageId(2), Said::Settled { run: Some(run) }),
        (MessageId(3), Said::Refused(Refusal::JobDeleted)),
        (MessageId(4), Said::Later(1_000)),
        (MessageId(5), Said::Broken),
    ];
    let end = EndBody { dag: RUN, node: 1, run: RunId(16_040), generation: 2, state: RunState::Canceled, result: None };
    vec![
        ("each", Delivered::Each(each)),
        ("later", Delivered::Later(1_000)),
        ("of a node that has ended", Delivered::Each(vec![(MessageId(6), Said::Ended(Box::new(end)))])),
    ]
}

/// As a snapshot holds them.
fn items() -> Vec<(&'static str, OutboxItem)> {
    let record = Some(Arc::new(super::runs()[0].1.clone()));
    let owed = |newest| OutboxItem { message: full(), record: record.clone(), given_up: None, newest, partial: false };
    let given_up =
        |why| OutboxItem { message: end(), record: None, given_up: Some((why, AT)), newest: None, partial: false };
    vec![
        ("owed", owed(None)),
        ("owed, of a run that was started again", owed(record.clone())),
        ("owed, sent again by hand", OutboxItem { partial: true, ..owed(None) }),
        ("undelivered", given_up(GiveUp::Failed(Failure::Undelivered))),
        ("refused", given_up(GiveUp::Failed(Failure::Refused(Refusal::JobDeleted)))),
        ("dropped", given_up(GiveUp::Dropped(DropReason::OutboxFull))),
        ("dropped, over the budget", given_up(GiveUp::Dropped(DropReason::Budget))),
    ]
}

/// As an event of the shard.
pub fn event() -> Event {
    Event::Outbox { change: OutboxEvent::Settled { ids: vec![MessageId(1), MessageId(300)] } }
}

pub fn failed_hook() -> FailedHook {
    FailedHook {
        generation: 2,
        index: 1,
        job: "refund".into(),
        state: HookFailure::Refused,
        reason: Some("JOB_DELETED".into()),
        at_ms: AT,
    }
}

/// A hook whose job was not started, of a run that is open again; and a run that tells of such hooks.
fn failed_hooks() -> Vec<Sample> {
    let (_, run) = super::runs().remove(0);
    let short = FailedHook { generation: 1, index: 0, state: HookFailure::Undelivered, reason: None, ..failed_hook() };
    let told = RunRecord { failed_hooks: vec![short.clone(), failed_hook()], ..run };
    let open = Event::HookFailed { job: JOB, run: RUN, failed: short, record: None };
    vec![sample("run", "with failed hooks", &told), sample("event", "HookFailed, of an open run", &open)]
}

/// A run that a message made, as it begins and ends, and a job with a hook.
fn of_hooks() -> Vec<Sample> {
    let made = Event::RunCreated {
        job: JOB,
        run: RUN,
        source: Source::Event,
        logical_ms: Some(AT),
        key: Some("\u{1}h11944/2/0".to_owned()),
        params: Some(Payload("{\"run\":{\"runId\":11944}}".to_owned())),
        reason: Some("onFailure of run 11944, generation 2".to_owned()),
        by: None,
        held: false,
        at_ms: AT,
        interval: None,
        late: false,
        dag: None,
        depth: 2,
        marked: true,
        timeout_sec: None,
        backfill: None,
        budget: None,
        sealed: None,
    };
    let record = RunRecord { source: Source::Event, depth: 2, marked: true, ..super::runs()[0].1.clone() };
    let mut job = super::typical();
    job.on_failure = vec![stored_hook("refund", false)];
    let mut every = job.clone();
    every.on_failure.push(stored_hook("undo", true));
    every.other_hooks = Some(Box::new(OtherHooks {
        on_success: vec![stored_hook("thank", false)],
        on_timeout: vec![stored_hook("undo", true), stored_hook("tell", false)],
        on_dead_letter: vec![stored_hook("tell", false)],
        on_deadline: Vec::new(),
    }));
    let mut led = made.clone();
    if let Event::RunCreated { budget, .. } = &mut led {
        *budget = Some(20);
    }
    let told = RunRecord { sealed: Some(sealed().into()), ..super::runs()[0].1.clone() };
    let mut tells = made.clone();
    if let Event::RunCreated { sealed: of, .. } = &mut tells {
        *of = Some(sealed().into());
    }
    let undone = RunRecord { budget: Some(20), compensated: true, ..record.clone() };
    vec![
        sample("event", "RunCreated, by a message", &made),
        sample("event", "RunCreated, by a hook with a budget", &led),
        sample("run", "of a hook with a budget, and compensated", &undone),
        sample("run", "with a callback", &told),
        sample("event", "RunCreated, by a callback", &tells),
        sample("job", "with hooks of every kind", &every),
        sample("run", "made by a message", &record),
        sample("job", "with a hook", &job),
    ]
}

fn stored_hook(job: &str, compensation: bool) -> StoredHook {
    StoredHook { job: job.into(), params: Payload("{\"amount\":12}".to_owned()), compensation }
}

/// Of one run.
pub fn sealed() -> Sealed {
    let names = vec!["secret".to_owned(), "url".to_owned()];
    Sealed { names, key_id: "k1".to_owned(), nonce: vec![7; 24], ciphertext: vec![1, 2, 3] }
}

fn hook_body(trace: Option<TraceContext>) -> HookBody {
    let params = Payload("{\"a\":1}".to_owned());
    HookBody {
        run: RUN,
        generation: 2,
        params,
        reason: "onFailure of run 11944".to_owned(),
        trace,
        budget: None,
        sealed: None,
    }
}

pub fn samples() -> Vec<Sample> {
    let mut samples = vec![
        sample("message", "every field", &full()),
        sample("message", "an end", &end()),
        sample("hook body", "plain", &hook_body(None)),
        sample("hook body", "of a callback", &HookBody { sealed: Some(sealed().into()), ..hook_body(None) }),
        sample("hook body", "with a budget", &HookBody { budget: Some(20), ..hook_body(None) }),
        sample("message", "a hook with a budget", &with_budget(20)),
        sample("hook body", "in a trace", &hook_body(Some(super::audit::trace()))),
        sample("outbox head", "plain", &OutboxHead { last: MessageId(70_000), restored_ms: None }),
        sample("outbox head", "restored", &OutboxHead { last: MessageId(70_000), restored_ms: Some(AT) }),
    ];
    samples.extend(of_hooks());
    samples.extend(failed_hooks());
    samples.extend(items().iter().map(|(name, item)| sample("outbox item", name, item)));
    samples.extend(events().iter().map(|(name, event)| sample("outbox event", name, event)));
    samples.extend(delivers().iter().map(|(name, deliver)| sample("deliver", name, deliver)));
    samples.extend(answers().iter().map(|(name, answer)| sample("delivered", name, answer)));
    samples
}
