//! Jobs that tell somebody: beside the pause, the queue and the permits of their tenant, and never behind each other. What holds for them
//! does not hold for any other job; each clause is broken once, and that is seen.

use crate::support::make::{job_id, plain};
use campanile_core::{
    channels::{Rule, rules::break_rule},
    job::{Command, Context, Effect, Ids, Job, Reply, Taken, apply::created, decide_next},
    outbox::{Bounds, Outbox, Sending, body},
    shard::Pause,
};
use campanile_schema::{
    error::ErrorCode,
    event::{Event, SkipReason},
    frame::decode,
    ids::{Epoch, ExecutorSession, RunId},
    payload::Payload,
    peer::outbox::HookBody,
    record::{AttemptState, RunState, Source},
    rpc::executor::Ended,
    stored::{Sealed, StoredAction, StoredJob, StoredTrigger, outbox::OutboxEvent},
};
use std::sync::Arc;

const NOW: i64 = 1_782_000_000_000;

fn context(pause: Option<SkipReason>, queue_full: bool) -> Context {
    Context {
        now_ms: NOW,
        ids: Ids { first: 100, count: 64 },
        epoch: Epoch(1),
        pauses: pause.map(|reason| Pause { from_ms: NOW - 1_000, to_ms: None, reason }).into_iter().collect(),
        queue_full,
        queue_half: queue_full,
        node_room: 0,
        overloaded: false,
        held: None,
        tzdb: "2026b",
        sampling: None,
    }
}

fn job(channel: bool) -> Job {
    let mut def = plain(StoredTrigger::Manual {});
    let webhook = StoredAction::Webhook { url: "https://example.org/hook".to_owned(), timeout_sec: 15 };
    def.action = channel.then_some(webhook);
    created(job_id(), def, NOW - 10_000)
}

fn trigger() -> Command {
    Command::Trigger { key: None, params: None, reason: None, by: None, sealed: None }
}

/// A hook names the job.
fn take() -> Command {
    let taken = Taken {
        key: "\u{1}h1/1/0".to_owned(),
        source: Source::Event,
        params: Payload::default(),
        reason: String::new(),
        depth: 1,
        confirm: false,
        marked: false,
        trace: None,
        budget: None,
        sealed: None,
    };
    Command::Take(Box::new(taken))
}

fn run_of(reply: &Reply) -> (RunId, RunState) {
    let Reply::Run(view) = reply else { panic!("{reply:?}") };
    (view.run_id, view.state)
}

/// Whether it starts and runs while its tenant, or the system, is paused.
fn runs_in(pause: SkipReason, channel: bool) -> bool {
    let context = context(Some(pause), false);
    let Ok((decision, job)) = decide_next(&job(channel), &trigger(), &context) else { return false };
    let start = Command::Start {
        run: run_of(&decision.reply).0,
        executor: "node".into(),
        session: ExecutorSession(1),
        credential: None,
        credit_stamp_ms: 0,
    };
    let context = Context { ids: Ids { first: 200, count: 64 }, ..context };
    decide_next(&job, &start, &context).is_ok()
}

/// Whether a trigger and a hook find room while as many runs of the tenant wait as may.
fn has_room(channel: bool) -> bool {
    let of = |command: &Command| decide_next(&job(channel), command, &context(None, true)).map(|_| ());
    let refused = [of(&trigger()), of(&take())].map(|result| result.map_err(|refused| refused.code));
    assert!(refused.iter().all(|result| {
        matches!(result, Ok(()) | Err(ErrorCode::TenantQuota | ErrorCode::JobQueueFull | ErrorCode::RunActive))
    }));
    refused == [Ok(()), Ok(())]
}

/// Whether a second run starts beside the first one.
fn goes_beside(channel: bool) -> bool {
    let (_, job) = decide_next(&job(channel), &trigger(), &context(None, false)).unwrap();
    let context = Context { ids: Ids { first: 200, count: 64 }, ..context(None, false) };
    decide_next(&job, &take(), &context).is_ok_and(|(decision, _)| run_of(&decision.reply).1 == RunState::Queued)
}

/// Where a run asks for its permit, and where it gives it back.
fn permits(channel: bool) -> [String; 3] {
    let (decision, job) = decide_next(&job(channel), &trigger(), &context(None, false)).unwrap();
    let [Effect::Enqueue(waiting)] = decision.effects.as_slice() else { panic!("{:?}", decision.effects) };
    let (asked, pool) = (waiting.tenant.to_string(), waiting.pool.to_string());
    let (run, session) = (waiting.run, ExecutorSession(1));
    let start = Command::Start { run, executor: "node".into(), session, credential: None, credit_stamp_ms: 0 };
    let context = Context { ids: Ids { first: 200, count: 64 }, ..context(None, false) };
    let (_, job) = decide_next(&job, &start, &context).unwrap();
    let ended = Ended {
        run,
        job: job.id,
        token: job.run(run).unwrap().token().unwrap(),
        state: AttemptState::Success,
        error_code: None,
        error_message: None,
        result: None,
        cpu_ms: None,
        max_rss_kb: None,
        permanent: false,
    };
    let (decision, _) = decide_next(&job, &Command::Finish(Box::new(ended)), &context).unwrap();
    let back = decision.effects.iter().find_map(|effect| match effect {
        Effect::Ended { tenant, .. } => Some(tenant.to_string()),
        _ => None,
    });
    [asked, pool, back.unwrap()]
}

/// Whether an edit that makes a channel of another job, or the other way round, is refused, and any other edit is not.
fn keeps_its_kind(channel: bool) -> bool {
    let (of, other) = (job(channel), job(!channel));
    let edited = |spec: &StoredJob| {
        let replace = Command::Replace { version: of.hot.version, spec: spec.clone().into() };
        decide_next(&of, &replace, &context(None, false)).map(|_| ()).map_err(|refused| refused.code)
    };
    assert_eq!(edited(&StoredJob { timeout_sec: 7, ..StoredJob::clone(&of.def) }), Ok(()));
    edited(&StoredJob { name: of.def.name.clone(), ..StoredJob::clone(&other.def) }) == Err(ErrorCode::InvalidArgument)
}

/// What the end of a run that has a callback sends to the channel.
fn callback() -> Option<HookBody> {
    let sealed =
        Sealed { names: vec!["url".to_owned()], key_id: "k1".to_owned(), nonce: vec![7; 24], ciphertext: vec![1] };
    let sealed = Some(Arc::new(sealed));
    let trigger = Command::Trigger { key: None, params: None, reason: None, by: None, sealed: sealed.clone() };
    let (decision, job) = decide_next(&job(false), &trigger, &context(None, false)).unwrap();
    let cancel = Command::Cancel { run: run_of(&decision.reply).0, reason: None };
    let (decision, _) = decide_next(&job, &cancel, &context(None, false)).unwrap();
    let record = decision.events.iter().find_map(|event| match event {
        Event::RunEnded { record, .. } => Some(record.clone()),
        _ => None,
    });
    let record = record.unwrap();
    let outbox = Outbox::new(1, Bounds::default());
    let mut sending = Sending::new(&outbox, NOW);
    decision.sends.into_iter().for_each(|wanted| sending.send(wanted).unwrap());
    let [OutboxEvent::Sent(message)] = sending.events.as_slice() else { return None };
    assert_eq!(message.job.as_deref(), Some("~callback"));
    let told: HookBody = decode("hook", &body::hook(message, Some(&record), None)).unwrap();
    assert_eq!(told.sealed, sealed);
    assert_eq!(told.params.to_value()["run"]["hook"], "callback");
    Some(told)
}

/// The secret params of an attempt of a channel that tells of one run, and of another job.
#[test]
fn only_a_channel_gets_what_was_sealed_for_it() {
    let sealed =
        Sealed { names: vec!["url".to_owned()], key_id: "k1".to_owned(), nonce: vec![7; 24], ciphertext: vec![1] };
    for channel in [true, false] {
        let sealed = Some(Arc::new(sealed.clone()));
        let trigger = Command::Trigger { key: None, params: None, reason: None, by: None, sealed };
        let (decision, job) = decide_next(&job(channel), &trigger, &context(None, false)).unwrap();
        let (run, session) = (run_of(&decision.reply).0, ExecutorSession(1));
        let start = Command::Start { run, executor: "node".into(), session, credential: None, credit_stamp_ms: 0 };
        let context = Context { ids: Ids { first: 200, count: 64 }, ..context(None, false) };
        let (decision, _) = decide_next(&job, &start, &context).unwrap();
        let [Effect::Assign(assign)] = decision.effects.as_slice() else { panic!("{:?}", decision.effects) };
        assert_eq!(assign.secrets.is_some(), channel);
    }
}

fn holds(rule: Rule) -> bool {
    match rule {
        Rule::OwnPermits => permits(true) == ["~default", "~channels", "~default"],
        Rule::BesideThePause => runs_in(SkipReason::TenantPaused, true),
        Rule::BesideTheQueue => has_room(true),
        Rule::NeverWaits => goes_beside(true),
        Rule::CallbackIsSent => callback().is_some(),
        Rule::StaysChannel => keeps_its_kind(true) && keeps_its_kind(false),
    }
}

#[test]
fn each_clause_holds_and_is_missed_when_it_is_broken() {
    for rule in Rule::ALL {
        assert!(holds(rule), "{rule:?}");
        break_rule(Some(rule));
        let broken = holds(rule);
        break_rule(None);
        assert!(!broken, "{rule:?} is broken, and nothing shows it");
    }
}

#[test]
fn other_jobs_and_the_pause_of_the_system_are_as_before() {
    assert!(!runs_in(SkipReason::SystemPaused, true), "the whole system is paused");
    assert!(!runs_in(SkipReason::TenantPaused, false));
    assert!(!has_room(false));
    assert!(!goes_beside(false));
    assert_eq!(permits(false), ["default", "default", "default"]);
}
