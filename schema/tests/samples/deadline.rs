//! Deadlines of jobs, runs and nodes, and what becomes of them.

use super::{AT, JOB, RUN, Sample, runs, sample};
use campanile_schema::{
    event::{Event, SkipReason},
    graph::StoredNode,
    payload::Payload,
    peer::outbox::NodeBody,
    record::{RunRecord, RunState},
    stored::{
        OtherHooks, StoredHook, StoredJob,
        deadline::{
            DeadlineChange, MissedDeadline, OwedDeadline, RunDeadline, RunTiming, StoredDeadline, StoredTiming,
        },
        outbox::{Message, MessageKind},
    },
};

const UNTIL: i64 = AT + 900_000;

pub fn by() -> StoredDeadline {
    StoredDeadline::By { second: 14_400, zone: "Europe/Berlin".into() }
}

fn definitions() -> Vec<(&'static str, StoredJob)> {
    let timed = |deadline, min_duration_sec| {
        let timing = Some(Box::new(StoredTiming { deadline, min_duration_sec }));
        StoredJob { timing, ..super::typical() }
    };
    let mut told = timed(Some(StoredDeadline::Due { within_sec: 900 }), Some(60));
    let on_deadline = vec![StoredHook { job: "tell".into(), params: Payload::default(), compensation: false }];
    told.other_hooks = Some(Box::new(OtherHooks { on_deadline, ..OtherHooks::default() }));
    vec![
        ("with a deadline by a time of day", timed(Some(by()), None)),
        ("with a deadline from its start", timed(Some(StoredDeadline::Start { within_sec: 900 }), None)),
        ("with a deadline, a hook and a least duration", told),
    ]
}

pub fn owed() -> OwedDeadline {
    OwedDeadline { instant_ms: AT, until_ms: UNTIL, reason: SkipReason::RunActive }
}

fn changes() -> Vec<(&'static str, DeadlineChange)> {
    let set = |deadline| DeadlineChange::Set { run: RUN, deadline };
    vec![
        ("Set", set(RunDeadline::Until(UNTIL))),
        ("Set, from the start", set(RunDeadline::FromStart(900))),
        ("Owed", DeadlineChange::Owed(owed())),
        ("Missed", DeadlineChange::Missed { run: Some(RUN), until_ms: UNTIL }),
        ("Missed, without a run", DeadlineChange::Missed { run: None, until_ms: UNTIL }),
        ("Excused", DeadlineChange::Excused { run: RUN }),
    ]
}

fn of_change(change: DeadlineChange) -> Event {
    Event::DeadlineChanged { job: JOB, change, at_ms: AT }
}

pub fn event() -> Event {
    of_change(changes()[0].1)
}

fn messages() -> Vec<(&'static str, Message)> {
    let of_run = MissedDeadline {
        job: JOB,
        instant_ms: Some(AT),
        until_ms: UNTIL,
        state: Some(RunState::Running),
        reason: None,
        of_instant: true,
    };
    let of_instant = MissedDeadline { state: None, reason: Some(SkipReason::Misfire), ..of_run.clone() };
    let of_other = MissedDeadline { instant_ms: None, of_instant: false, ..of_run.clone() };
    let message = |deadline: MissedDeadline| Message {
        kind: MessageKind::Deadline,
        index: 1_024,
        deadline: Some(Box::new(deadline)),
        ..super::outbox::full()
    };
    vec![
        ("of a deadline that a run missed", message(of_run)),
        ("of a deadline of an instant without a run", message(of_instant)),
        ("of a deadline of a run of no schedule", message(of_other)),
    ]
}

pub fn samples() -> Vec<Sample> {
    let run = runs().remove(0).1;
    let timing = |missed_ms, min_duration_sec| {
        let timing = Some(Box::new(RunTiming { missed_ms, min_duration_sec }));
        RunRecord { timing, ..run.clone() }
    };
    let node = NodeBody { deadline: Some(by()), scheduled: true, ..super::graph::node_body_of_backfill() };
    let mut graph = super::graph::graphs().remove(0).1;
    graph.nodes = vec![StoredNode { deadline: Some(by()), ..graph.nodes[0].clone() }];
    graph.edges = Vec::new();
    let mut samples = vec![
        sample("run", "that missed its deadline", &timing(Some(UNTIL), None)),
        sample("run", "suspiciously short", &timing(None, Some(60))),
        sample("node body", "with a deadline", &node),
        sample("graph", "with a deadline of a node", &graph),
    ];
    samples.extend(definitions().iter().map(|(name, job)| sample("job", name, job)));
    let events = changes().into_iter();
    samples
        .extend(events.map(|(name, change)| sample("event", &format!("DeadlineChanged, {name}"), &of_change(change))));
    samples.extend(messages().iter().map(|(name, message)| sample("message", name, message)));
    samples
}
