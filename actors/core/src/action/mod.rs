//! What a job does, checked when it is created.

mod command;
pub mod http;
pub mod template;
pub mod webhook;

use crate::{graph::compile::prepare, reject::Rejection};
use campanile_schema::{
    error::ErrorCode,
    graph::GraphSpec,
    job::{Action, JobSpec},
    limits as bounds,
    shape::shortened,
};

fn invalid(message: impl Into<String>) -> Rejection {
    Rejection::new(ErrorCode::InvalidArgument, message)
}

/// Why no command can have such a variable of its environment. None: it can. The one rule, wherever variables are written.
pub fn unusable(name: &str, value: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("has an empty name")
    } else if name.contains('=') {
        Some("has a '=' in its name")
    } else if name.contains('\0') || value.contains('\0') {
        Some("holds a NUL")
    } else {
        None
    }
}

/// Refuses an action that no executor could carry out; the message names the field.
pub fn check(spec: &JobSpec) -> Result<(), Rejection> {
    match &spec.action {
        Some(Action::Command { command, env, output_cap_kb, limits, nice, .. }) => {
            for (name, value) in env {
                if let Some(why) = unusable(name, value) {
                    return Err(invalid(format!("action.env: the variable '{}' {why}", shortened(name))));
                }
            }
            if command.first().is_none_or(String::is_empty) {
                return Err(invalid("action.command must name a program, for example [\"/bin/sh\",\"-c\",\"date\"]"));
            }
            if *output_cap_kb as usize > bounds::LOG_BYTES_PER_ATTEMPT / 1024 {
                return Err(invalid(format!(
                    "action.outputCapKb must be 0 to {}",
                    bounds::LOG_BYTES_PER_ATTEMPT / 1024
                )));
            }
            command::check_limits(limits, *nice).map_err(|why| invalid(format!("action.{why}")))
        }
        Some(Action::Handler { name }) if name.is_empty() || name.len() > bounds::NAME_CHARS => {
            Err(invalid(format!("action.name must be 1 to {} characters", bounds::NAME_CHARS)))
        }
        Some(Action::Handler { .. }) | None => Ok(()),
        Some(Action::Dag(spec)) => dag(spec),
        Some(Action::Webhook { url, timeout_sec }) => webhook::check(url, *timeout_sec, spec).map_err(invalid),
        Some(Action::Http { method, url, headers, body, expect_status, timeout_sec, max_redirects }) => {
            let request = http::Request { method: *method, url, headers, body: body.as_ref() };
            request.check(&spec.secret_params).map_err(|why| invalid(format!("action.{why}")))?;
            http::check_numbers(*expect_status, *timeout_sec, *max_redirects)
                .map_err(|why| invalid(format!("action.{why}")))
        }
    }
}

/// Whether the jobs of its nodes are there is for the caller to ask.
fn dag(spec: &GraphSpec) -> Result<(), Rejection> {
    prepare(spec).map(drop).map_err(|refused| {
        // It names a field of the graph, or the graph.
        let names_field =
            ["nodes[", "edges[", "maxParallel", "timeoutSec"].iter().any(|name| refused.message.starts_with(name));
        let mark = if names_field { "." } else { ": " };
        Rejection::new(refused.code, format!("action{mark}{}", refused.message))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::check;
    use campanile_schema::{
        ids::{Epoch, JobId, RunId, ShardId, Token},
        job::{Action, JobSpec, OnLostContact, Trigger},
        payload::Payload,
        record::Source,
        rpc::executor::Assignment,
        time::Timestamp,
    };

    /// An attempt with something of everything.
    pub(crate) fn assignment() -> Assignment {
        let params =
            r#"{"customer":{"name":"Ada \"A\"","vip":true},"list":[10,20],"none":null,"line":"a\r\nb","way":".."}"#;
        Assignment {
            run: RunId(11_944),
            job: JobId(7_848),
            job_name: "daily/billing".into(),
            tenant: "finance".into(),
            attempt: 2,
            generation: 3,
            token: Token(41),
            shard: ShardId(1),
            epoch: Epoch(1),
            cluster_id: 1,
            credit_stamp_ms: 0,
            source: Source::Schedule,
            logical_time: Some(Timestamp(1_782_000_000_000)),
            timeout_sec: 60,
            on_lost_contact: OnLostContact::Continue,
            action: Action::Handler { name: "x".to_owned() },
            params: Payload(params.to_owned()),
            secrets: [("key".to_owned(), "s3cret".to_owned())].into(),
            traceparent: None,
            checkpoint: None,
        }
    }

    #[test]
    fn a_variable_that_no_command_can_have_is_refused() {
        let with = |name: &str, value: &str| {
            let action = serde_json::json!({"kind": "COMMAND", "command": ["true"], "env": {name: value}});
            let mut spec = JobSpec::new("default", "job", Trigger::Manual {});
            spec.action = serde_json::from_value(action).ok();
            check(&spec).map_err(|why| why.message)
        };
        // Names that a shell cannot use are no mistake: cron and every program take them.
        for name in ["APP-ENV", "a.b", "1", "ü"] {
            assert_eq!(with(name, "prod"), Ok(()), "{name}");
        }
        for (name, value, why) in [("", "x", "empty name"), ("A=B", "x", "'=' in its name"), ("A", "x\0", "NUL")] {
            let told = with(name, value);
            assert!(
                told.as_ref().is_err_and(|told| told.starts_with("action.env: ") && told.contains(why)),
                "{told:?}"
            );
        }
    }
}
