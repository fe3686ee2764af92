//! The jobs of `campanile dev`: one of each kind of thing that can happen. Made once; at a restart they are found.

use super::failure::Failure;
use campanile_schema::{
    error::ErrorCode,
    job::{Action, Backoff, ConcurrencyPolicy, Dialect, JobSpec, RetryPolicy, Trigger},
    operations::{JobCreate, JobPause},
    rpc::calls::{CreateCall, JobCall},
    view::ReasonBody,
};
use campanile_security::auth::Caller;
use campanile_serve::ops::Operations;
use serde_json::json;

const TENANT: &str = "default";

/// The demo jobs that are to be there.
fn specs() -> Vec<JobSpec> {
    let quick = |attempts| RetryPolicy {
        max_attempts: attempts,
        backoff: Backoff::Fixed,
        base_delay_sec: 1.0,
        max_delay_sec: 1.0,
        jitter: 0.0,
        max_elapsed_sec: None,
    };
    let mut tick = job("demo/tick", cron("*/5 * * * * *"), "echo \"tick $CAMPANILE_LOGICAL_TIME\"");
    tick.labels.insert("demo".to_owned(), "cron".to_owned());
    let rate = job("demo/every-7-seconds", every(7), "echo \"$CAMPANILE_JOB_NAME, attempt $CAMPANILE_ATTEMPT\"");
    let mut third = job(
        "demo/third-time-lucky",
        every(15),
        "echo \"attempt $CAMPANILE_ATTEMPT\"; test \"$CAMPANILE_ATTEMPT\" -ge 3 || { echo 'not yet' >&2; exit 1; }",
    );
    third.retry_policy = quick(3);
    let mut dead = job("demo/dead-letter", every(20), "echo 'this never works' >&2; exit 3");
    dead.retry_policy = quick(2);
    let mut overlap = job("demo/never-twice-at-once", every(4), "echo begin; sleep 6; echo end");
    overlap.concurrency_policy = ConcurrencyPolicy::Forbid;
    let paused = job("demo/paused", cron("0 * * * * *"), "echo 'resume me: campanile job resume demo/paused'");
    vec![tick, rate, third, dead, overlap, paused]
}

fn cron(expr: &str) -> Trigger {
    trigger(
        &json!({"type": "CRON", "expr": expr, "dialect": Dialect::Unix, "misfirePolicy": "SKIP", "misfireThresholdSec": 2}),
    )
}

/// A laptop that slept shall not make up for the night.
fn every(seconds: u64) -> Trigger {
    trigger(&json!({"type": "FIXED_RATE", "everySec": seconds, "misfirePolicy": "SKIP", "misfireThresholdSec": 2}))
}

/// The defaults of the fields that are not named are those of callers.
fn trigger(json: &serde_json::Value) -> Trigger {
    Trigger::deserialize(json).unwrap_or(Trigger::Manual {})
}

fn job(name: &str, trigger: Trigger, script: &str) -> JobSpec {
    let mut spec = JobSpec::new(TENANT, name, trigger);
    spec.action = Some(Action::Command {
        command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        cwd: None,
        stdin: None,
        output_cap_kb: 64,
        limits: Default::default(),
        nice: 0,
    });
    spec.timeout_sec = 60;
    spec
}

/// Makes those that are not there yet. Answers with their names.
pub(super) async fn create(operations: &Operations, caller: &Caller) -> Result<String, Failure> {
    let mut names = Vec::new();
    for spec in specs() {
        let name = spec.name.clone();
        match operations.call::<JobCreate>(caller, CreateCall { field: None, body: spec }).await {
            Ok(created) => {
                if name == "demo/paused" {
                    let body = ReasonBody { reason: Some("to show a paused job".to_owned()) };
                    operations.call::<JobPause>(caller, JobCall::new(created.job_id, body)).await?;
                }
            }
            // Of an earlier start, and perhaps changed or resumed by its owner since.
            Err(error) if error.known() == ErrorCode::DuplicateName => {}
            Err(error) => return Err(error.into()),
        }
        names.push(name);
    }
    Ok(names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_jobs_are_what_they_say() {
        let specs = specs();
        assert_eq!(specs.len(), 6);
        for spec in &specs {
            assert_ne!(spec.trigger, Trigger::Manual {}, "{}: its trigger was not understood", spec.name);
        }
    }
}
