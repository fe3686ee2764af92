//! Watches over connections that break, of nodes that restart, and for readers who are slow; and what is asked again by itself.
#![allow(clippy::unwrap_used)]

mod fake_node;

use campanile_client::{
    Changes, Client, ClientError, ClientOptions, Cron, Every, Job, Retry, WatchEvent, blocking,
    schema::{
        error::{ApiError, ErrorCode},
        ids::{JobId, RunId},
        job::{Action, Gap, JobSpec, JobStatus, MisfirePolicy, Trigger},
        limits::CLIENT_CHANGES_WAITING,
        operations::{JobCreate, JobTrigger},
        record::{RunState, Source},
        rpc::method,
        time::Timestamp,
        view::{Created, TriggerBody},
        watch::{Changed, RunChange, StopWatch, WatchEnded, WatchRuns, Watching},
    },
};
use fake_node::{FakeLink, FakeNode, within};
use std::time::Duration;

fn change(run: u64) -> RunChange {
    RunChange {
        at: Timestamp(1),
        run_id: RunId(run),
        job_id: JobId(1),
        job_name: "j".to_owned(),
        tenant_id: "fin".to_owned(),
        state: RunState::Running,
        source: Source::Manual,
        logical_time: None,
        generation: 1,
        attempt_count: 1,
        executor_id: None,
        next_retry_at: None,
        last_error: None,
    }
}

async fn tell(link: &mut FakeLink, watch_id: u32, run: u64, cursor: &str, dropped: u64) {
    let changed = Changed { watch_id, items: vec![change(run)], cursor: cursor.to_owned(), dropped };
    link.notify(method::RUN_CHANGED, &changed).await;
}

/// Answers a request to watch; what it asked for.
async fn open(link: &mut FakeLink, watch_id: u32) -> WatchRuns {
    let (id, body) = link.expect::<WatchRuns>(method::RUN_WATCH).await;
    link.answer(id, &Watching { watch_id, cursor: "a-0".to_owned() }).await;
    body
}

async fn run(changes: &mut Changes<RunChange>) -> u64 {
    match within(changes.next()).await.unwrap() {
        Some(WatchEvent::Change(change)) => change.run_id.0,
        other => panic!("{other:?}"),
    }
}

async fn connected(node: &FakeNode) -> (Client, FakeLink) {
    let (client, link) = tokio::join!(Client::connect(node.address.to_string(), "token"), node.accept());
    (client.unwrap(), link)
}

#[tokio::test]
async fn a_watch_goes_on_over_the_next_connection() {
    let node = FakeNode::start().await;
    let (client, mut link) = connected(&node).await;
    let wanted = WatchRuns { tenant_id: Some("fin".to_owned()), ..WatchRuns::default() };
    let (changes, asked) = tokio::join!(client.run_watch(wanted.clone()), async {
        let asked = open(&mut link, 1).await;
        tell(&mut link, 1, 7, "a-1", 0).await;
        asked
    });
    assert_eq!(asked, wanted);
    let mut changes = changes.unwrap();
    assert_eq!((run(&mut changes).await, changes.cursor()), (7, Some("a-1")));
    drop(link);
    let (heard, asked) = tokio::join!(within(changes.next()), async {
        let mut link = node.accept().await;
        let asked = open(&mut link, 9).await;
        tell(&mut link, 9, 8, "a-5", 3).await;
        // Its node restarts.
        let ended = WatchEnded { watch_id: 9, code: Some("503_NOT_READY".to_owned()), message: None };
        link.notify(method::WATCH_ENDED, &ended).await;
        (asked, link)
    });
    let (asked, mut link) = asked;
    assert_eq!(asked.after.as_deref(), Some("a-1"));
    assert_eq!(heard.unwrap(), Some(WatchEvent::Dropped(3)));
    assert_eq!(run(&mut changes).await, 8);
    let (heard, asked) = tokio::join!(within(changes.next()), async {
        let asked = open(&mut link, 10).await;
        link.notify(method::WATCH_ENDED, &WatchEnded { watch_id: 10, code: None, message: None }).await;
        asked
    });
    assert_eq!(asked.after.as_deref(), Some("a-5"));
    assert_eq!(heard.unwrap(), None, "everything was told");
}

#[tokio::test]
async fn one_who_does_not_keep_up_begins_again_where_it_was() {
    let node = FakeNode::start().await;
    let (client, mut link) = connected(&node).await;
    let (changes, _) = tokio::join!(client.run_watch(WatchRuns::default()), open(&mut link, 1));
    let mut changes = changes.unwrap();
    let held = CLIENT_CHANGES_WAITING as u64;
    for number in 1..=held + 1 {
        tell(&mut link, 1, number, &format!("a-{number}"), 0).await;
    }
    let (_, stopped) = link.expect::<StopWatch>(method::WATCH_STOP).await;
    assert_eq!(stopped.watch_id, 1);
    for number in 1..=held {
        assert_eq!(run(&mut changes).await, number);
    }
    let (next, asked) = tokio::join!(run(&mut changes), async {
        let asked = open(&mut link, 2).await;
        tell(&mut link, 2, held + 1, "a-x", 0).await;
        asked
    });
    assert_eq!((next, asked.after), (held + 1, Some(format!("a-{held}"))));
    // One that is dropped is stopped with the next thing that it would be told.
    drop(changes);
    tell(&mut link, 2, 1, "a-y", 0).await;
    let (_, stopped) = link.expect::<StopWatch>(method::WATCH_STOP).await;
    assert_eq!(stopped.watch_id, 2);
}

#[tokio::test]
async fn a_refused_watch_is_told_and_ends_with_what_the_node_says() {
    let node = FakeNode::start().await;
    let (client, mut link) = connected(&node).await;
    let (refused, ()) = tokio::join!(client.run_watch(WatchRuns::default()), async {
        let (id, _) = link.expect::<WatchRuns>(method::RUN_WATCH).await;
        link.fail(id, &ApiError::new(ErrorCode::NotFound, "no such run")).await;
    });
    assert_eq!(refused.err().unwrap().api().unwrap().known(), ErrorCode::NotFound);
    let (changes, _) = tokio::join!(client.run_watch(WatchRuns::default()), open(&mut link, 1));
    let ended = WatchEnded { watch_id: 1, code: Some("403_FORBIDDEN".to_owned()), message: Some("gone".to_owned()) };
    link.notify(method::WATCH_ENDED, &ended).await;
    let error = within(changes.unwrap().next()).await.unwrap_err();
    assert_eq!(error.api().unwrap().known(), ErrorCode::Forbidden);
}

fn created(id: u64) -> Created {
    Created { job_id: JobId(id), status: JobStatus::Enabled, next_fire_at: None }
}

fn quick() -> Retry {
    Retry { attempts: 3, first: Duration::from_millis(2), longest: Duration::from_millis(5), refusals: true }
}

#[tokio::test]
async fn only_what_is_safe_is_asked_again() {
    let node = FakeNode::start().await;
    let options = ClientOptions::new(vec![node.address.to_string()], "token").retry(quick());
    let (client, link) = tokio::join!(Client::connect_with(options), node.accept());
    let (client, mut link) = (client.unwrap(), link);
    let busy = ApiError::new(ErrorCode::Overloaded, "busy");
    // With a key: twice refused, then done.
    let (made, ()) = tokio::join!(client.job_create_once(Job::manual("a"), "key"), async {
        for _ in 0..2 {
            let (id, _) = link.expect::<serde::de::IgnoredAny>(JobCreate::NAME).await;
            link.fail(id, &busy).await;
        }
        let (id, _) = link.expect::<serde::de::IgnoredAny>(JobCreate::NAME).await;
        link.answer(id, &created(5)).await;
    });
    assert_eq!(made.unwrap().job_id, JobId(5));
    // Without one: once.
    let (refused, ()) = tokio::join!(client.job_create(Job::manual("a")), async {
        let (id, _) = link.expect::<serde::de::IgnoredAny>(JobCreate::NAME).await;
        link.fail(id, &busy).await;
    });
    assert_eq!(refused.unwrap_err().api().unwrap().known(), ErrorCode::Overloaded);
    // Not without end.
    let keyed = TriggerBody { manual_run_id: Some("k".to_owned()), ..TriggerBody::default() };
    let (refused, ()) = tokio::join!(client.job_trigger(JobId(5), keyed), async {
        for _ in 0..3 {
            let (id, _) = link.expect::<serde::de::IgnoredAny>(JobTrigger::NAME).await;
            link.fail(id, &busy).await;
        }
    });
    assert!(matches!(refused, Err(ClientError::Api(_))));
}

#[tokio::test]
async fn connections_are_spread_and_a_lost_node_leaves_the_others() {
    let (one, two) = (FakeNode::start().await, FakeNode::start().await);
    let options = ClientOptions::new(vec![one.address.to_string(), two.address.to_string()], "token").connections(2);
    let (client, first) = tokio::join!(Client::connect_with(options), one.accept());
    let client = client.unwrap();
    let mut second = two.accept().await;
    drop((one, first));
    // What would go over the lost connection goes to the other node.
    let mut other = None;
    for number in 0..4 {
        let call = tokio::spawn({
            let client = client.clone();
            async move { client.job_create_once(Job::manual("a"), "key").await }
        });
        let answering = async {
            loop {
                let heard = match &mut other {
                    None => tokio::select! {
                        link = two.accept() => { other = Some(link); continue }
                        said = second.expect::<serde::de::IgnoredAny>(JobCreate::NAME) => (said.0, true),
                    },
                    Some(link) => tokio::select! {
                        said = link.expect::<serde::de::IgnoredAny>(JobCreate::NAME) => (said.0, false),
                        said = second.expect::<serde::de::IgnoredAny>(JobCreate::NAME) => (said.0, true),
                    },
                };
                let link = if heard.1 { &mut second } else { other.as_mut().unwrap() };
                return link.answer(heard.0, &created(number)).await;
            }
        };
        within(answering).await;
        assert_eq!(within(call).await.unwrap().unwrap().job_id, JobId(number));
    }
}

#[test]
fn a_blocking_client_calls_and_watches() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let node = runtime.block_on(FakeNode::start());
    let address = node.address.to_string();
    let serving = runtime.spawn(async move {
        let mut link = node.accept().await;
        let (id, spec) = link.expect::<JobSpec>(JobCreate::NAME).await;
        assert_eq!(spec.name, "a");
        link.answer(id, &created(3)).await;
        open(&mut link, 1).await;
        tell(&mut link, 1, 7, "a-1", 0).await;
        link.notify(method::WATCH_ENDED, &WatchEnded { watch_id: 1, code: None, message: None }).await;
        // Until the client has gone.
        while link.hear().await.is_some() {}
    });
    let client = blocking::Client::connect(address, "token").unwrap();
    assert_eq!(client.job_create(Job::manual("a")).unwrap().job_id, JobId(3));
    let heard: Vec<_> = client.run_watch(WatchRuns::default()).unwrap().map(Result::unwrap).collect();
    assert_eq!(heard, [WatchEvent::Change(change(7))]);
    drop(client);
    runtime.block_on(within(serving)).unwrap();
}

#[test]
fn builders_say_what_was_said_and_leave_the_rest_at_its_default() {
    let cron = Cron::new("0 2 * * *").timezone("Europe/Berlin").gap(Gap::Skip).misfire(MisfirePolicy::Skip);
    let job = Job::new("daily", cron.jitter(Duration::from_secs(9)))
        .tenant("fin")
        .handler("bill")
        .params(&serde_json::json!({"customer": 7}))
        .unwrap()
        .label("team", "pay")
        .attempts(5)
        .timeout(Duration::from_secs(60));
    let written: JobSpec = serde_json::from_value(serde_json::json!({
        "name": "daily", "tenantId": "fin", "params": {"customer": 7}, "labels": {"team": "pay"}, "timeoutSec": 60,
        "action": {"kind": "HANDLER", "name": "bill"}, "retryPolicy": {"maxAttempts": 5},
        "trigger": {"type": "CRON", "expr": "0 2 * * *", "timezone": "Europe/Berlin", "gap": "SKIP", "jitterSec": 9,
            "misfirePolicy": "SKIP"},
    }))
    .unwrap();
    assert_eq!(JobSpec::from(job), written);
    let spec = |job: Job| JobSpec::from(job);
    let same = |job: Job, trigger: serde_json::Value| {
        assert_eq!(spec(job).trigger, serde_json::from_value::<Trigger>(trigger).unwrap());
    };
    let five = Duration::from_secs(5);
    same(Job::every("a", five), serde_json::json!({"type": "FIXED_RATE", "everySec": 5}));
    same(Job::after_each("a", five), serde_json::json!({"type": "FIXED_DELAY", "everySec": 5}));
    same(Job::after("a", five), serde_json::json!({"type": "ONCE", "delaySec": 5}));
    same(Job::at("a", Timestamp(7)), serde_json::json!({"type": "ONCE", "at": 7}));
    same(Job::manual("a"), serde_json::json!({"type": "MANUAL"}));
    let anchored = Every::new(five).anchor_at(Timestamp(3)).max_catch_up(7);
    let trigger = serde_json::json!({"type": "FIXED_RATE", "everySec": 5, "anchorAt": 3, "maxCatchUp": 7});
    same(Job::new("a", anchored), trigger);
    let command = spec(Job::manual("a").command(["/bin/echo", "x"])).action;
    assert!(matches!(command, Some(Action::Command { command, .. }) if command == ["/bin/echo", "x"]));
    assert_eq!(spec(Job::manual("a")), JobSpec::new("default", "a", Trigger::Manual {}));
}
