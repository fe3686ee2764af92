//! What goes over the wire, byte for byte. A change of a message shows as a diff in `golden/rpc`, and the examples of
//! `docs/rpc.md` are those files. After a wanted change: `UPDATE_GOLDEN=1 cargo test -p campanile-schema rpc_golden`.

#[path = "operators/mod.rs"]
mod operators;
#[path = "traces/mod.rs"]
mod traces;

use campanile_schema::{
    error::{ApiError, ErrorCode},
    format::WIRE_FORMAT,
    ids::{Epoch, ExecutorSession, JobId, RunId, ShardId, Token},
    job::{Action, HttpMethod, JobSpec, JobStatus, JobView, MisfirePolicy, OnLostContact, Trigger},
    kinds::{ActionKind, Kinds},
    limits::{CREDIT_MS, HEARTBEAT_MS, LEASE_MS, RPC_FRAME_BYTES},
    operations::{JobCreate, JobCreateMany, JobGet, JobTrigger},
    payload::Payload,
    record::{AttemptState, RunState, Source},
    rpc::{
        calls::{CreateCall, Items, JobCall, Listed, NoBody},
        codec::{AFTER_HELLO, Decoder, Message, from_map},
        encode,
        executor::{
            Announce, Announced, Assign, Assignment, ClusterNodes, Credit, Drain, Ended, Finish, FinishOutcome,
            Finished, Heartbeat, Held, Hint, LogChunk, NodeAddress, Register, Registered, Stop,
        },
        hello::{ConnectionRole, Hello, ItemResult, Welcome},
        method,
    },
    time::Timestamp,
    view::{AttemptView, Created, RunView, TriggerBody},
};
use serde::{Serialize, de::DeserializeOwned};
use std::{collections::BTreeMap, fmt::Debug, path::PathBuf};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/rpc")
}

/// What stands there is told in full by whoever wrote it: definitions, where an unknown field must not be passed over, and maps of
/// callers' own keys.
const IN_FULL: &[&str] = &["trigger", "action", "a", "labels", "detail", "s", "retryPolicy", "resources"];

/// An answer that says only that it is done. Callers pass over what else is in it.
#[derive(Debug, PartialEq, Serialize, serde::Deserialize)]
struct Nothing {}

/// All messages by file name.
#[derive(Default)]
struct Golden(BTreeMap<&'static str, Vec<u8>>);

impl Golden {
    fn request<T: Serialize + DeserializeOwned + PartialEq + Debug>(
        &mut self,
        name: &'static str,
        id: u32,
        method: &str,
        params: &T,
    ) {
        let mut out = Vec::new();
        encode::request(&mut out, id, method, params).unwrap();
        let mut decoder = Decoder::new(AFTER_HELLO);
        let Message::Request { params: read, .. } = decoded(&out, &mut decoder) else { panic!("{name}") };
        assert_eq!(&read.read::<T>().unwrap(), params, "{name}");
        // Of an executor of a newer release it is read; a caller's slip is named instead of passed over.
        let newer = crate::golden_forms::samples::grow::grown_but(&out, IN_FULL);
        let mut decoder = Decoder::new(AFTER_HELLO);
        let Message::Request { params: read, .. } = decoded(&newer, &mut decoder) else { panic!("{name}") };
        match read.read::<T>() {
            Ok(read) if of_sessions(method) => assert_eq!(&read, params, "{name}"),
            Ok(_) => panic!("{name}: an unknown field was passed over"),
            Err(why) if of_sessions(method) => panic!("{name}: {why}"),
            Err(why) => assert!(why.to_string().contains("zzz"), "{name}: {why}"),
        }
        self.0.insert(name, out);
    }

    fn notification<T: Serialize + DeserializeOwned + PartialEq + Debug>(
        &mut self,
        name: &'static str,
        method: &str,
        params: &T,
    ) {
        let mut out = Vec::new();
        encode::notification(&mut out, method, params).unwrap();
        let mut decoder = Decoder::new(AFTER_HELLO);
        let Message::Notification { params: read, .. } = decoded(&out, &mut decoder) else { panic!("{name}") };
        assert_eq!(&read.read::<T>().unwrap(), params, "{name}");
        let newer = crate::golden_forms::samples::grow::grown_but(&out, IN_FULL);
        let mut decoder = Decoder::new(AFTER_HELLO);
        let Message::Notification { params: read, .. } = decoded(&newer, &mut decoder) else { panic!("{name}") };
        assert_eq!(&read.read::<T>().unwrap(), params, "{name} of a newer release");
        self.0.insert(name, out);
    }

    fn answer<T: Serialize + DeserializeOwned + PartialEq + Debug>(&mut self, name: &'static str, id: u32, result: &T) {
        let mut out = Vec::new();
        encode::result(&mut out, id, result).unwrap();
        let mut decoder = Decoder::new(AFTER_HELLO);
        let Message::Response { result: read, .. } = decoded(&out, &mut decoder) else { panic!("{name}") };
        assert_eq!(&from_map::<T>(read).unwrap(), result, "{name}");
        let newer = crate::golden_forms::samples::grow::grown_but(&out, IN_FULL);
        let mut decoder = Decoder::new(AFTER_HELLO);
        let Message::Response { result: read, .. } = decoded(&newer, &mut decoder) else { panic!("{name}") };
        assert_eq!(&from_map::<T>(read).unwrap(), result, "{name} of a newer release");
        self.0.insert(name, out);
    }

    fn error(&mut self, name: &'static str, id: u32, error: &ApiError) {
        let mut out = Vec::new();
        encode::error(&mut out, id, error).unwrap();
        let mut decoder = Decoder::new(AFTER_HELLO);
        let Message::Response { error: read, .. } = decoded(&out, &mut decoder) else { panic!("{name}") };
        assert_eq!(&from_map::<ApiError>(read).unwrap(), error, "{name}");
        let newer = crate::golden_forms::samples::grow::grown_but(&out, IN_FULL);
        let mut decoder = Decoder::new(AFTER_HELLO);
        let Message::Response { error: read, .. } = decoded(&newer, &mut decoder) else { panic!("{name}") };
        assert_eq!(&from_map::<ApiError>(read).unwrap(), error, "{name} of a newer release");
        self.0.insert(name, out);
    }
}

/// Between nodes and executors, and the greeting: releases differ there.
fn of_sessions(method: &str) -> bool {
    method.starts_with("executor.") || method == method::HELLO
}

fn decoded<'a>(bytes: &[u8], decoder: &'a mut Decoder) -> Message<'a> {
    decoder.push(bytes);
    decoder.next_message().unwrap().unwrap()
}

fn spec() -> JobSpec {
    let trigger = Trigger::Once {
        at: Some(Timestamp(1_772_000_000_000).into()),
        delay_sec: None,
        delay_ms: None,
        timezone: None,
        misfire_policy: MisfirePolicy::FireOnceNow,
        misfire_threshold_sec: 60,
    };
    let mut spec = JobSpec::new("finance", "daily_billing", trigger);
    spec.params = Payload(r#"{"customer":7}"#.to_owned());
    spec
}

fn run() -> RunView {
    RunView {
        run_id: RunId(4_194_305),
        job_id: JobId(8_193),
        tenant_id: "finance".to_owned(),
        state: RunState::Success,
        source: Source::Manual,
        logical_time: None,
        key: Some("manual_1".to_owned()),
        generation: 1,
        attempt_count: 1,
        next_retry_at: None,
        deadline_at: None,
        deadline_missed: None,
        suspicious: None,
        executor_id: Some("billing-1".to_owned()),
        created_at: Timestamp(1_771_900_000_000),
        started_at: Some(Timestamp(1_771_900_000_012)),
        ended_at: Some(Timestamp(1_771_900_000_345)),
        last_error: None,
        wait_reason: None,
        stopping: None,
        dead_letter: false,
        params: None,
        effective_params: None,
        secret_params: BTreeMap::new(),
        result: Some(Payload("42".to_owned())),
        reason: Some("test".to_owned()),
        triggered_by: None,
        trace_id: None,
        failed_hooks: Vec::new(),
        compensated: false,
        priority: None,
        attempts: vec![AttemptView {
            attempt: 1,
            generation: 1,
            token: 1,
            state: AttemptState::Success,
            executor_id: "billing-1".to_owned(),
            started_at: Timestamp(1_771_900_000_012),
            ended_at: Some(Timestamp(1_771_900_000_345)),
            error_code: None,
            error_message: None,
            cpu_ms: None,
            max_rss_kb: None,
            permanent: false,
        }],
        dag_run_id: None,
        backfill_id: None,
        dag_node: None,
    }
}

fn assignment() -> Assignment {
    Assignment {
        run: RunId(4_194_305),
        job: JobId(8_193),
        job_name: "daily_billing".into(),
        tenant: "finance".into(),
        attempt: 1,
        generation: 1,
        token: Token(1),
        shard: ShardId(1),
        epoch: Epoch(3),
        cluster_id: 77,
        credit_stamp_ms: 123_456,
        source: Source::Schedule,
        logical_time: Some(Timestamp(1_772_000_000_000)),
        timeout_sec: 3600,
        on_lost_contact: OnLostContact::Continue,
        action: Action::Handler { name: "daily_billing".to_owned() },
        params: Payload(r#"{"customer":7}"#.to_owned()),
        secrets: BTreeMap::new(),
        traceparent: None,
        checkpoint: None,
    }
}

#[test]
fn an_assignment_is_shown_without_its_secrets() {
    let secrets = BTreeMap::from([("api-key".to_owned(), "hunter2".to_owned())]);
    let shown = format!("{:?}", Assignment { secrets, ..assignment() });
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("api-key"), "{shown}");
    assert!(shown.contains("daily_billing"), "{shown}");
}

fn held() -> Held {
    Held { run: RunId(4_194_305), job: JobId(8_193), token: Token(1) }
}

fn of_callers(golden: &mut Golden) {
    let hello =
        |role| Hello { protocol: WIRE_FORMAT, token: "secret".to_owned(), role, client: "example/1".to_owned() };
    golden.request("hello_request", 1, method::HELLO, &hello(ConnectionRole::Caller));
    golden.request("hello_executor_request", 1, method::HELLO, &hello(ConnectionRole::Executor));
    let welcome = Welcome {
        protocol: WIRE_FORMAT,
        server: "campanile/0.1.0".to_owned(),
        cluster_id: 77,
        node: "node-1".to_owned(),
        max_frame_bytes: RPC_FRAME_BYTES,
        heartbeat_ms: HEARTBEAT_MS,
        lease_ms: LEASE_MS,
        credit_ms: CREDIT_MS,
    };
    golden.answer("hello_answer", 1, &welcome);
    golden.error("hello_refused", 1, &ApiError::new(ErrorCode::Unauthenticated, "this token is not known"));
    golden.notification(
        "session_error",
        method::SESSION_ERROR,
        &ApiError::new(ErrorCode::BodyTooLarge, "a frame is larger than 4194304 bytes"),
    );
    golden.request("job_create_request", 2, JobCreate::NAME, &CreateCall::new("key-1".to_owned(), spec()));
    let created =
        Created { job_id: JobId(8_193), status: JobStatus::Enabled, next_fire_at: Some(Timestamp(1_772_000_000_000)) };
    golden.answer("job_create_answer", 2, &created);
    golden.request("job_create_many_request", 3, JobCreateMany::NAME, &Items { items: vec![spec()] });
    let taken = ApiError::new(ErrorCode::DuplicateName, "the name is taken");
    let items = vec![ItemResult::from(Ok(created)), ItemResult::from(Err(taken))];
    golden.answer("job_create_many_answer", 3, &Listed { items });
    golden.request("job_get_request", 4, JobGet::NAME, &JobCall::new(JobId(8_193), NoBody {}));
    let view = JobView {
        job_id: JobId(8_193),
        status: JobStatus::Enabled,
        version: 1,
        created_at: Timestamp(1_771_900_000_000),
        updated_at: Timestamp(1_771_900_000_000),
        next_fire_at: Some(Timestamp(1_772_000_000_000)),
        last_run_at: None,
        last_run_state: None,
        run_count: 0,
        quarantine_reason: None,
        spec: spec(),
    };
    golden.answer("job_get_answer", 4, &view);
    let body = TriggerBody {
        manual_run_id: Some("manual_1".to_owned()),
        params: Some(Payload(r#"{"customer":21}"#.to_owned())),
        reason: Some("test".to_owned()),
        callback: None,
    };
    golden.request("job_trigger_request", 5, JobTrigger::NAME, &JobCall::new(JobId(8_193), body));
    golden.answer("run_answer", 5, &run());
    golden.answer("done_answer", 6, &Nothing {});
}

fn of_executors(golden: &mut Golden) {
    let register = Register {
        executor_id: "billing-1".to_owned(),
        session: ExecutorSession(1_234_567_890),
        pools: vec!["default".to_owned()],
        slots: 8,
        handlers: vec!["daily_billing".to_owned()],
        any_handler: false,
        kinds: Kinds::NONE,
        labels: BTreeMap::from([("zone".to_owned(), "a".to_owned())]),
        cpu: 0.0,
        memory_mb: 0,
        storage_mb: 0,
        stop_grace_sec: None,
    };
    golden.request("register_request", 2, method::EXECUTOR_REGISTER, &register);
    let register = Register { stop_grace_sec: Some(5.0), ..register };
    golden.request("register_grace_request", 2, method::EXECUTOR_REGISTER, &register);
    let kinds = [ActionKind::Command, ActionKind::Http].into_iter().collect();
    let register = Register { handlers: Vec::new(), kinds, ..register };
    golden.request("register_kinds_request", 2, method::EXECUTOR_REGISTER, &register);
    let epochs = vec![(ShardId(0), Epoch(3)), (ShardId(1), Epoch(3))];
    golden.answer("register_answer", 2, &Registered { cluster_id: 77, epochs });
    golden.request("announce_request", 3, method::EXECUTOR_ANNOUNCE, &Announce { held: vec![held()], more: false });
    golden.answer("announce_answer", 3, &Announced { stop: vec![held()] });
    let credit = Credit { stamp_ms: 123_456, slots: 8, received: Some(0), load: 0.0 };
    golden.notification("credit", method::EXECUTOR_CREDIT, &credit);
    golden.request("heartbeat_request", 4, method::EXECUTOR_HEARTBEAT, &Heartbeat { running: 1 });
    golden.notification("assign", method::ASSIGN, &Assign { items: vec![assignment()] });
    let mut command = assignment();
    command.action = Action::Command {
        command: vec!["/bin/echo".to_owned(), "hello".to_owned()],
        env: BTreeMap::from([("LANG".to_owned(), "C".to_owned())]),
        cwd: None,
        stdin: None,
        output_cap_kb: 256,
        limits: Default::default(),
        nice: 0,
    };
    command.on_lost_contact = OnLostContact::Stop;
    command.secrets = BTreeMap::from([("password".to_owned(), "opened".to_owned())]);
    golden.notification("assign_command", method::ASSIGN, &Assign { items: vec![command] });
    let mut request = assignment();
    request.action = Action::Http {
        method: HttpMethod::Post,
        url: "https://example.org/hook?run={{runId}}".to_owned(),
        headers: BTreeMap::from([("X-Team".to_owned(), "pay".to_owned())]),
        body: Some(Payload("{\"customer\":\"{{params.customer}}\"}".to_owned())),
        expect_status: (200, 299),
        timeout_sec: 30,
        max_redirects: 0,
    };
    golden.notification("assign_http", method::ASSIGN, &Assign { items: vec![request] });
    let chunk = LogChunk { run: RunId(4_194_305), token: Token(1), attempt: 1, data: b"billing 7\n".to_vec() };
    golden.notification("log", method::EXECUTOR_LOG, &chunk);
    let success = Ended {
        run: RunId(4_194_305),
        job: JobId(8_193),
        token: Token(1),
        state: AttemptState::Success,
        error_code: None,
        error_message: None,
        result: Some(Payload("42".to_owned())),
        cpu_ms: None,
        max_rss_kb: None,
        permanent: false,
    };
    let failed = Ended {
        token: Token(2),
        state: AttemptState::Failed,
        error_code: Some("DISK_FULL".to_owned()),
        error_message: Some("no space left".to_owned()),
        result: None,
        ..success.clone()
    };
    let credit = Credit { stamp_ms: 124_000, slots: 8, received: Some(2), load: 0.125 };
    golden.request(
        "finish_request",
        5,
        method::EXECUTOR_FINISH,
        &Finish { items: vec![success, failed.clone()], credit: Some(credit) },
    );
    let permanent = Ended {
        error_code: Some("NO_CUSTOMER".to_owned()),
        error_message: Some("there is no customer 7".to_owned()),
        permanent: true,
        ..failed.clone()
    };
    golden.request(
        "finish_permanent_request",
        6,
        method::EXECUTOR_FINISH,
        &Finish { items: vec![permanent], credit: None },
    );
    golden.answer("finish_answer", 5, &Finished { outcomes: vec![FinishOutcome::Durable, FinishOutcome::Stale] });
    let taken = Registered { cluster_id: 7, epochs: vec![(ShardId(3), Epoch(9))] };
    golden.notification("epochs", method::EPOCHS, &taken);
    let node = |node: &str, address: &str| NodeAddress { node: node.to_owned(), address: address.to_owned() };
    let nodes = vec![node("node-1", "10.0.0.1:7701"), node("node-2", "node-2.bells.example:7701")];
    golden.notification("members", method::MEMBERS, &ClusterNodes { nodes });
    golden.notification("hint", method::HINT, &Hint { waiting: true });
    golden.notification("stop", method::STOP, &Stop { items: vec![held()], ended: Vec::new() });
    golden.notification("stop_ended", method::STOP, &Stop { items: Vec::new(), ended: vec![held()] });
    golden.notification("drain", method::EXECUTOR_DRAIN, &Drain {});
}

/// The message in words, then its bytes.
fn text(bytes: &[u8]) -> String {
    let mut text = crate::golden_forms::diagnostic::of(bytes);
    text.push_str("\n\n");
    for line in bytes.chunks(32) {
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        text.push_str(&hex.join(" "));
        text.push('\n');
    }
    text
}

#[test]
fn messages_are_as_they_were() {
    let mut golden = Golden::default();
    of_callers(&mut golden);
    of_executors(&mut golden);
    operators::of_definitions(&mut golden);
    operators::of_watches(&mut golden);
    operators::of_clusters(&mut golden);
    operators::of_errors(&mut golden);
    operators::of_audit(&mut golden);
    traces::all(&mut golden);
    let write = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut files: Vec<String> = Vec::new();
    for (name, bytes) in &golden.0 {
        let path = folder().join(format!("{name}.txt"));
        if write {
            std::fs::write(&path, text(bytes)).unwrap();
        }
        let known = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(known, text(bytes), "{name} has changed; see this file's first lines");
        files.push(format!("{name}.txt"));
    }
    let mut present: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".txt"))
        .collect();
    present.sort();
    files.sort();
    assert_eq!(present, files, "files that no message makes");
}

/// An assignment written by the server's own batch encoder is the same message, but for the width of one length.
#[test]
fn the_batch_encoder_writes_the_same_assignments() {
    let items = vec![assignment(), assignment(), assignment()];
    let mut out = Vec::new();
    assert_eq!(encode::assign(&mut out, &items, RPC_FRAME_BYTES).unwrap(), 3);
    let mut decoder = Decoder::new(AFTER_HELLO);
    let Message::Notification { method: method::ASSIGN, params } = decoded(&out, &mut decoder) else { panic!() };
    assert_eq!(params.read::<Assign>().unwrap().items, items);
    // Cut where the bound is reached, but never below one.
    let mut out = Vec::new();
    assert_eq!(encode::assign(&mut out, &items, 1).unwrap(), 1);
    let Message::Notification { params, .. } = decoded(&out, &mut decoder) else { panic!() };
    assert_eq!(params.read::<Assign>().unwrap().items, items[..1]);
}

/// Blocks after `<!-- golden: NAME -->` in the wire spec are the golden files.
#[test]
fn the_spec_shows_these_bytes() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/rpc.md");
    let spec = std::fs::read_to_string(&path).unwrap();
    let mut shown = 0;
    for part in spec.split("<!-- golden: ").skip(1) {
        let (name, rest) = part.split_once(" -->\n```text\n").unwrap();
        let (block, _) = rest.split_once("```").unwrap();
        let known = std::fs::read_to_string(folder().join(format!("{name}.txt"))).unwrap();
        assert_eq!(block, known, "{name}: copy the golden file into docs/rpc.md");
        shown += 1;
    }
    assert!(shown >= 8, "{shown} examples");
}
