//! A job as callers write it: defaults as in the API's text, unknown fields refused by name, enums in any case, and the way
//! to the stored form and back.

use campanile_schema::{
    event::{Outcome, SkipReason},
    frame,
    job::{
        Action, Backoff, ConcurrencyPolicy, Dialect, Gap, HttpMethod, JobSpec, JobStatus, JobView, MisfirePolicy,
        OnLostContact, Overlap, Trigger,
    },
    payload::Payload,
    record::{AttemptState, RunState, Source},
    stored::{StoredJob, StoredTrigger},
    view::ConfirmDecision,
};
use proptest::{option, prelude::*, sample::select};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::fmt::Debug;

/// The whole job with its defaults, as the API's text shows it.
fn whole() -> Value {
    json!({"name":"daily_billing","tenantId":"default",
        "trigger":{"type":"CRON","expr":"0 2 * * *","dialect":"AUTO","timezone":"UTC","gap":"SHIFT","overlap":"FIRST",
            "startAt":null,"endAt":null,"jitterSec":0,"misfirePolicy":"FIRE_ONCE_NOW","misfireThresholdSec":60,"maxCatchUp":1000},
        "concurrencyPolicy":"FORBID",
        "retryPolicy":{"maxAttempts":3,"backoff":"EXPONENTIAL","baseDelaySec":10.0,"maxDelaySec":3600.0,"jitter":0.2},
        "timeoutSec":3600,"idempotent":true,"onLostContact":"CONTINUE","deadLetter":true,"executorSelector":"default",
        "params":{},"labels":{},"priority":100,"resources":{"cpu":0.1,"memoryMb":64,"storageMb":0}})
}

#[test]
fn defaults_are_those_of_the_api() {
    let short = json!({"name":"daily_billing","trigger":{"type":"CRON","expr":"0 2 * * *"}});
    let spec: JobSpec = serde_json::from_value(short).unwrap();
    assert_eq!(serde_json::to_value(&spec).unwrap(), whole());
    assert_eq!(serde_json::from_value::<JobSpec>(whole()).unwrap(), spec);
    assert_eq!(spec.resolved_action(), Action::Handler { name: "daily_billing".to_owned() });
    // Nobody else has other defaults.
    let built = JobSpec::new("default", "daily_billing", spec.trigger.clone());
    assert_eq!(built, spec);
    let command: Action = serde_json::from_value(json!({"kind":"COMMAND","command":["date"]})).unwrap();
    assert_eq!(
        serde_json::to_value(command).unwrap(),
        json!({"kind":"COMMAND","command":["date"],"env":{},"cwd":null,"stdin":null,"outputCapKb":256})
    );
    let limited = json!({"kind":"COMMAND","command":["date"],"env":{},"cwd":null,"stdin":null,"outputCapKb":256,
        "limits":{"cpuSec":9,"openFiles":64},"nice":5});
    let command: Action = serde_json::from_value(limited.clone()).unwrap();
    assert_eq!(serde_json::to_value(command).unwrap(), limited);
    let request: Action = serde_json::from_value(json!({"kind":"http","url":"https://h/"})).unwrap();
    assert_eq!(
        serde_json::to_value(request).unwrap(),
        json!({"kind":"HTTP","method":"POST","url":"https://h/","headers":{},"body":null,"expectStatus":[200,299],"timeoutSec":30,
            "maxRedirects":0})
    );
}

#[test]
fn unknown_fields_are_refused_by_name() {
    for (pointer, field) in [
        ("", "tenantid"),
        ("/trigger", "misfire"),
        ("/retryPolicy", "baseDelay"),
        ("/resources", "gpu"),
        ("/action", "shell"),
    ] {
        let mut spec = whole();
        spec["action"] = json!({"kind":"COMMAND","command":["date"]});
        spec.pointer_mut(pointer).unwrap()[field] = json!(1);
        let error = serde_json::from_value::<JobSpec>(spec).unwrap_err().to_string();
        assert!(error.contains(&format!("`{field}`")), "{pointer}: {error}");
    }
    for (pointer, value) in [("/trigger/type", "CORN"), ("/concurrencyPolicy", "FORBIT"), ("/trigger/gap", "SHIFTED")] {
        let mut spec = whole();
        *spec.pointer_mut(pointer).unwrap() = json!(value);
        let error = serde_json::from_value::<JobSpec>(spec).unwrap_err().to_string();
        assert!(error.contains(value), "{error}");
        assert!(error.contains("one of"), "{error}");
    }
}

fn any_case<T: Copy + PartialEq + Debug + DeserializeOwned + Serialize>(all: &[T], text: fn(T) -> &'static str) {
    for value in all {
        let upper = text(*value);
        let title = upper[..1].to_owned() + &upper[1..].to_lowercase();
        for written in [upper.to_owned(), upper.to_lowercase(), title] {
            assert_eq!(serde_json::from_value::<T>(json!(written)).unwrap(), *value);
        }
        assert_eq!(serde_json::to_value(value).unwrap(), json!(upper));
        assert!(serde_json::from_value::<T>(json!(format!("{upper}X"))).is_err());
    }
}

#[test]
fn enums_are_read_in_any_case() {
    any_case(Dialect::ALL, Dialect::as_str);
    any_case(Gap::ALL, Gap::as_str);
    any_case(Overlap::ALL, Overlap::as_str);
    any_case(MisfirePolicy::ALL, MisfirePolicy::as_str);
    any_case(ConcurrencyPolicy::ALL, ConcurrencyPolicy::as_str);
    any_case(Backoff::ALL, Backoff::as_str);
    any_case(OnLostContact::ALL, OnLostContact::as_str);
    any_case(JobStatus::ALL, JobStatus::as_str);
    any_case(RunState::ALL, RunState::as_str);
    any_case(AttemptState::ALL, AttemptState::as_str);
    any_case(Source::ALL, Source::as_str);
    any_case(Outcome::ALL, Outcome::as_str);
    any_case(SkipReason::ALL, SkipReason::as_str);
    any_case(ConfirmDecision::ALL, ConfirmDecision::as_str);
    for (tag, rest) in [
        ("CRON", json!({"expr":"0 2 * * *"})),
        ("FIXED_RATE", json!({"everySec":3})),
        ("FIXED_DELAY", json!({"everySec":3})),
        ("ONCE", json!({"delaySec":3})),
        ("MANUAL", json!({})),
    ] {
        let written = |tag: &str| {
            let mut trigger = rest.clone();
            trigger["type"] = json!(tag);
            serde_json::from_value::<Trigger>(trigger).unwrap()
        };
        assert_eq!(written(tag), written(&tag.to_lowercase()));
    }
}

/// What is read as `trigger`, written again.
fn trigger(written: Value) -> Result<Value, String> {
    let read: Trigger = serde_json::from_value(written.clone()).map_err(|error| error.to_string())?;
    // RPC reads the same.
    let packed: Trigger = rmp_serde::from_slice(&rmp_serde::to_vec_named(&written).unwrap()).unwrap();
    assert_eq!(packed, read);
    Ok(serde_json::to_value(read).unwrap())
}

#[test]
fn delay_and_immediate_are_read_as_once() {
    let once = |rest: Value| {
        let mut once = json!({"type":"ONCE","at":null,"misfirePolicy":"FIRE_ONCE_NOW","misfireThresholdSec":60});
        once.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        Ok::<_, String>(once)
    };
    assert_eq!(trigger(json!({"type":"DELAY","delaySec":90})), once(json!({"delaySec":90})));
    assert_eq!(trigger(json!({"type":"delay","delayMs":250})), once(json!({"delayMs":250})));
    assert_eq!(trigger(json!({"type":"IMMEDIATE"})), once(json!({"delaySec":0})));
    assert_eq!(
        trigger(json!({"type":"Immediate","misfirePolicy":"SKIP"})),
        once(json!({"delaySec":0,"misfirePolicy":"SKIP"}))
    );
    for (written, why) in [
        (json!({"type":"DELAY"}), "takes exactly one of 'delaySec' and 'delayMs'"),
        (json!({"type":"DELAY","delaySec":1,"delayMs":1}), "takes exactly one of 'delaySec' and 'delayMs'"),
        (json!({"type":"DELAY","at":"2030-01-01T00:00:00Z"}), "type DELAY has no 'at'"),
        (json!({"type":"IMMEDIATE","delaySec":1}), "type IMMEDIATE has no 'delaySec'"),
        (json!({"type":"DELAY","delaySec":1,"every":1}), "unknown field `every`"),
        (json!({"type":"LATER"}), "unknown variant `LATER`"),
    ] {
        let told = trigger(written.clone()).unwrap_err();
        assert!(told.contains(why), "{written}: {told}");
    }
}

#[test]
fn an_instant_of_a_once_may_be_a_local_time() {
    for (at, written) in [
        ("2026-01-15 10:00:00.000", "2026-01-15T10:00:00.000"),
        ("2026-01-15T10:00", "2026-01-15T10:00:00.000"),
        ("2026-01-15T10:00:00.5+08:00", "2026-01-15T02:00:00.500Z"),
        ("2026-01-15T10:00:00Z", "2026-01-15T10:00:00.000Z"),
    ] {
        assert_eq!(trigger(json!({"type":"ONCE","at":at})).unwrap()["at"], written, "{at}");
    }
    for wrong in ["2026-01-15", "2026-02-30 10:00:00", "2026-01-15T10:00:00+99:00", "10:00:00", "2026-01-15 25:00:00"] {
        let told = trigger(json!({"type":"ONCE","at":wrong})).unwrap_err();
        assert!(told.contains("is not an RFC 3339 instant"), "{wrong}: {told}");
    }
}

/// The shape check and the OpenAPI document are made from it.
#[test]
fn the_schema_of_a_trigger_has_the_other_words() {
    let schema = schemars::schema_for!(Trigger).to_value();
    let of = |word: &str| {
        let kinds = schema["oneOf"].as_array().unwrap();
        kinds.iter().find(|kind| kind["properties"]["type"]["const"] == word).unwrap()["properties"].clone()
    };
    assert!(of("ONCE")["timezone"].is_object());
    assert!(of("DELAY")["delayMs"].is_object());
    assert!(of("DELAY").get("at").is_none());
    assert!(of("IMMEDIATE").get("delaySec").is_none());
    assert_eq!(schema["title"], "Trigger");
}

/// Stable numbers: what is on disk is these.
#[test]
fn codes_are_stable_and_their_own() {
    assert_eq!(RunState::ALL.iter().map(|s| s.code()).collect::<Vec<_>>(), (0..11).collect::<Vec<_>>());
    assert_eq!(SkipReason::ALL.iter().map(|s| s.code()).collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
    assert_eq!(Outcome::ALL.iter().map(|s| s.code()).collect::<Vec<_>>(), (0..6).collect::<Vec<_>>());
    for state in RunState::ALL {
        assert_eq!(RunState::from_code(state.code()), Some(*state));
    }
    assert_eq!(RunState::from_code(11), None);
}

fn spec() -> impl Strategy<Value = JobSpec> {
    let trigger = prop_oneof![
        (select(Dialect::ALL), select(Gap::ALL), select(Overlap::ALL), option::of(0i64..2_000_000_000_000), 0u32..90_000)
            .prop_map(|(dialect, gap, overlap, start, jitter)| json!({
                "type":"CRON","expr":"0 2 * * *","dialect":dialect,"timezone":"Europe/Berlin","gap":gap,"overlap":overlap,
                "startAt":start.map(|s| campanile_schema::time::Timestamp(s).to_string()),"jitterSec":jitter,
            })),
        (1u64..1_000_000, select(MisfirePolicy::ALL), 0u32..1_000, 0u32..2_000).prop_map(
            |(every, misfire, threshold, cap)| json!({
                "type":"FIXED_RATE","everySec":every,"misfirePolicy":misfire,"misfireThresholdSec":threshold,"maxCatchUp":cap,
            })
        ),
        (1u64..1_000_000, select(MisfirePolicy::ALL))
            .prop_map(|(every, misfire)| json!({"type":"FIXED_DELAY","everySec":every,"misfirePolicy":misfire})),
        (0u64..1_000_000, 0u32..1_000)
            .prop_map(|(delay, threshold)| json!({"type":"ONCE","delaySec":delay,"misfireThresholdSec":threshold})),
        Just(json!({"type":"MANUAL"})),
    ];
    let retry = (1u32..101, select(Backoff::ALL), 0u64..100_000, 0u64..10_000_000, 0u32..=1_000);
    let action = option::of(prop_oneof![
        "[a-z]{1,9}".prop_map(|name| json!({"kind":"HANDLER","name":name})),
        (prop::collection::vec("[ -~]{1,9}", 1..4), option::of("[a-z/]{1,9}"), 0u32..1_000).prop_map(
            |(command, cwd, cap)| json!({"kind":"COMMAND","command":command,"env":{"A":"b"},"cwd":cwd,"outputCapKb":cap})
        ),
        (select(HttpMethod::ALL), "[ -~]{1,9}", option::of("[ -~]{0,9}"), 1u32..1_000, 0u8..9).prop_map(
            |(method, url, body, time, more)| json!({"kind":"HTTP","method":method,"url":url,"headers":{"A":"b"},
                "body":body,"expectStatus":[200,204],"timeoutSec":time,"maxRedirects":more})
        ),
    ]);
    let rest = (
        prop::collection::btree_map("[a-z]{1,9}", "[ -~]{0,9}", 0..4),
        0u16..=1_000,
        (0u32..1_000, 0u64..10_000, 0u64..10_000),
        (any::<bool>(), any::<bool>(), select(OnLostContact::ALL), select(ConcurrencyPolicy::ALL)),
        1u64..1_000_000,
        option::of("[a-z]{1,9}"),
    );
    (trigger, retry, action, rest).prop_map(|(trigger, retry, action, rest)| {
        let mut spec = JobSpec::new("finance", "daily", serde_json::from_value(trigger).unwrap());
        let policy = &mut spec.retry_policy;
        (policy.max_attempts, policy.backoff) = (retry.0, retry.1);
        (policy.base_delay_sec, policy.max_delay_sec) = (retry.2 as f64 / 1000.0, retry.3 as f64 / 1000.0);
        policy.jitter = f64::from(retry.4) / 1000.0;
        spec.action = action.map(|a| serde_json::from_value(a).unwrap());
        (spec.labels, spec.priority, spec.timeout_sec) = (rest.0, rest.1, rest.4);
        spec.resources.cpu = f64::from(rest.2.0) / 10.0;
        (spec.resources.memory_mb, spec.resources.storage_mb) = (rest.2.1, rest.2.2);
        (spec.idempotent, spec.dead_letter, spec.on_lost_contact, spec.concurrency_policy) = rest.3;
        spec.params = rest.5.map_or_else(Payload::default, |p| Payload(json!({"p": p}).to_string()));
        spec
    })
}

/// What resolving fills in.
fn resolved(spec: &JobSpec) -> StoredTrigger {
    match &spec.trigger {
        Trigger::Cron { expr, dialect, timezone, gap, overlap, .. } => StoredTrigger::Cron {
            expr: expr.into(),
            dialect: if *dialect == Dialect::Auto { Dialect::Unix } else { *dialect },
            zone: timezone.into(),
            gap: *gap,
            overlap: *overlap,
        },
        Trigger::FixedRate { every_sec, .. } => {
            StoredTrigger::FixedRate { every_ms: *every_sec as i64 * 1000, anchor_ms: crate::golden_forms::samples::AT }
        }
        Trigger::FixedDelay { every_sec, .. } => StoredTrigger::FixedDelay { every_ms: *every_sec as i64 * 1000 },
        Trigger::Once { .. } => StoredTrigger::Once { at_ms: crate::golden_forms::samples::AT },
        Trigger::Manual {} => StoredTrigger::Manual {},
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        rng_seed: proptest::test_runner::RngSeed::Fixed(20_261_121),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// To the stored form, through its bytes, and back: the same but for what resolving fills in.
    #[test]
    fn a_job_comes_back_as_it_was_written(spec in spec()) {
        let stored = StoredJob::from_spec(&spec, resolved(&spec), None);
        let read: StoredJob = frame::decode("definition", &frame::encode(&stored)).unwrap();
        prop_assert_eq!(&read, &stored);
        let back = read.to_spec();
        let mut wanted = spec.clone();
        wanted.action = Some(spec.resolved_action());
        match (&mut wanted.trigger, &back.trigger) {
            (Trigger::Cron { dialect: w, .. }, Trigger::Cron { dialect: b, .. }) => *w = *b,
            (Trigger::FixedRate { anchor_at: w, .. }, Trigger::FixedRate { anchor_at: b, .. }) => *w = *b,
            (Trigger::Once { at: w, delay_sec, .. }, Trigger::Once { at: b, .. }) => (*w, *delay_sec) = (*b, None),
            (_, _) => {}
        }
        prop_assert_eq!(&back, &wanted);
        // What is read may be written again, and is the same job.
        let json = serde_json::to_value(&back).unwrap();
        let again: JobSpec = serde_json::from_value(json).unwrap();
        prop_assert_eq!(StoredJob::from_spec(&again, resolved(&back), None).labels, stored.labels.clone());
        prop_assert_eq!(again, back);
    }
}

/// A job read back is the written one and what the scheduler knows of it, in JSON and in MessagePack.
#[test]
fn a_view_is_the_spec_and_more() {
    let view = JobView {
        job_id: crate::golden_forms::samples::JOB,
        status: JobStatus::Paused,
        version: 3,
        created_at: campanile_schema::time::Timestamp(crate::golden_forms::samples::AT),
        updated_at: campanile_schema::time::Timestamp(crate::golden_forms::samples::AT),
        next_fire_at: None,
        last_run_at: Some(campanile_schema::time::Timestamp(crate::golden_forms::samples::AT)),
        last_run_state: Some(RunState::Failed),
        run_count: 7,
        quarantine_reason: None,
        spec: crate::golden_forms::samples::full().to_spec(),
    };
    let json = serde_json::to_value(&view).unwrap();
    assert_eq!(json["createdAt"], json!("2026-06-21T00:00:00.000Z"));
    assert_eq!(json["secretParams"], json!({"password":"***"}), "secrets are masked");
    assert_eq!(serde_json::from_value::<JobView>(json).unwrap(), view);
    assert_eq!(frame::decode::<JobView>("view", &frame::encode(&view)).unwrap(), view);
}

#[test]
fn a_typical_definition_is_small() {
    for (name, job) in crate::golden_forms::samples::jobs() {
        println!("{name}: {} bytes", frame::encode(&job).len());
    }
    let size = frame::encode(&crate::golden_forms::samples::typical()).len();
    assert!(size <= 300, "{size} bytes");
}
