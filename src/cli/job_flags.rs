//! A job from flags: the usual ones; a file says all the rest.

use super::failure::Failure;
use crate::manifest::Seconds;
use serde_json::{Map, Value, json};

#[derive(clap::Args, Default)]
pub(super) struct JobFlags {
    /// The job's name
    #[arg(long)]
    name: Option<String>,
    #[arg(long)]
    tenant: Option<String>,
    /// Due by a cron expression
    #[arg(long, value_name = "EXPR", group = "trigger")]
    cron: Option<String>,
    /// Reading of the cron expression: auto, unix or quartz
    #[arg(long)]
    dialect: Option<String>,
    /// Time zone of the cron expression, an IANA name [default: UTC]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// Due again and again: 30, 30s, 5m, 2h, 1d
    #[arg(long, value_name = "TIME", group = "trigger", value_parser = seconds)]
    every: Option<u64>,
    /// Due so long after the last run has ended
    #[arg(long, value_name = "TIME", group = "trigger", value_parser = seconds)]
    after_last: Option<u64>,
    /// Due once, at an instant such as 2026-02-01T08:00:00+01:00
    #[arg(long, value_name = "INSTANT", group = "trigger")]
    at: Option<String>,
    /// Due once, so long from now
    #[arg(long = "in", value_name = "TIME", group = "trigger", value_parser = seconds)]
    within: Option<u64>,
    /// Only by hand
    #[arg(long, group = "trigger")]
    manual: bool,
    /// A shell script: /bin/sh -c SCRIPT
    #[arg(long, value_name = "SCRIPT", group = "action")]
    sh: Option<String>,
    /// A function that an executor registered under this name [default: the job's name]
    #[arg(long, value_name = "NAME", group = "action")]
    handler: Option<String>,
    /// A program with its arguments, at the end: -- /usr/bin/backup --all
    #[arg(last = true, value_name = "COMMAND", group = "action")]
    command: Vec<String>,
    /// Environment of the command
    #[arg(long = "env", value_name = "KEY=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,
    /// A JSON object for the run
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = pair)]
    labels: Vec<(String, String)>,
    /// The pool whose executors run it
    #[arg(long)]
    pool: Option<String>,
    /// allow, forbid, replace or queue_one
    #[arg(long)]
    concurrency: Option<String>,
    /// skip, fire_once_now or fire_all_missed
    #[arg(long)]
    misfire: Option<String>,
    /// Longest time of an attempt
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    timeout: Option<u64>,
    /// The first try counted
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// 0 to 1000, higher first
    #[arg(long)]
    priority: Option<u16>,
}

impl JobFlags {
    /// Whether any flag says something about a job.
    pub fn given(&self) -> bool {
        self.name.is_some()
    }

    /// The body of the create.
    pub fn spec(self) -> Result<Value, Failure> {
        let trigger = self.trigger()?;
        let mut spec = Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                spec.insert(name.to_owned(), value);
            }
        };
        set("trigger", Some(trigger));
        set("action", self.action()?);
        set("params", self.params.as_deref().map(params).transpose()?);
        set("name", self.name.map(Value::from));
        set("tenantId", self.tenant.map(Value::from));
        set("labels", (!self.labels.is_empty()).then(|| object(self.labels)));
        set("executorSelector", self.pool.map(Value::from));
        set("concurrencyPolicy", self.concurrency.map(Value::from));
        set("timeoutSec", self.timeout.map(Value::from));
        set("retryPolicy", self.max_attempts.map(|attempts| json!({"maxAttempts": attempts})));
        set("priority", self.priority.map(Value::from));
        Ok(Value::Object(spec))
    }

    fn trigger(&self) -> Result<Value, Failure> {
        if self.cron.is_none() && (self.tz.is_some() || self.dialect.is_some()) {
            return Err(Failure::usage("--tz and --dialect are for --cron"));
        }
        let mut trigger = if let Some(expr) = &self.cron {
            let mut cron = json!({"type": "CRON", "expr": expr});
            for (name, value) in [("dialect", &self.dialect), ("timezone", &self.tz)] {
                if let Some(value) = value {
                    cron[name] = json!(value);
                }
            }
            cron
        } else if let Some(every) = self.every {
            json!({"type": "FIXED_RATE", "everySec": every})
        } else if let Some(every) = self.after_last {
            json!({"type": "FIXED_DELAY", "everySec": every})
        } else if let Some(at) = &self.at {
            json!({"type": "ONCE", "at": at})
        } else if let Some(delay) = self.within {
            json!({"type": "ONCE", "delaySec": delay})
        } else if self.manual {
            json!({"type": "MANUAL"})
        } else {
            let when = "when is it due? --cron EXPR, --every 5m, --after-last 5m, --at INSTANT, --in 10s or --manual";
            return Err(Failure::usage(when));
        };
        if let Some(misfire) = &self.misfire {
            trigger["misfirePolicy"] = json!(misfire);
        }
        Ok(trigger)
    }

    fn action(&self) -> Result<Option<Value>, Failure> {
        let command = match (&self.sh, self.command.as_slice()) {
            (Some(script), _) => vec!["/bin/sh".to_owned(), "-c".to_owned(), script.clone()],
            (None, command) => command.to_vec(),
        };
        if command.is_empty() {
            if !self.env.is_empty() {
                return Err(Failure::usage("--env is for commands: --sh SCRIPT or -- COMMAND"));
            }
            return Ok(self.handler.as_ref().map(|name| json!({"kind": "HANDLER", "name": name})));
        }
        Ok(Some(json!({"kind": "COMMAND", "command": command, "env": object(self.env.clone())})))
    }
}

/// `--params`: any JSON.
pub(super) fn params(text: &str) -> Result<Value, Failure> {
    crate::api::parse_json(text.as_bytes()).map_err(|error| Failure::usage(format!("--params: {}", error.message)))
}

fn object(pairs: Vec<(String, String)>) -> Value {
    Value::Object(pairs.into_iter().map(|(key, value)| (key, Value::String(value))).collect())
}

/// `KEY=VALUE`.
pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// `30`, `30s`, `5m`, `2h`, `1h30m`, `1d` in seconds.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    text.parse().map(|Seconds(seconds)| seconds)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_schema::job::JobSpec;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: JobFlags,
    }

    fn spec(line: &str) -> Result<Value, Failure> {
        let words = std::iter::once("x").chain(line.split(' '));
        Line::try_parse_from(words).map_err(|error| Failure::usage(error.to_string()))?.flags.spec()
    }

    #[test]
    fn flags_make_specs_that_a_node_understands() {
        for (line, trigger) in [
            (
                "--name a --cron @hourly --tz Europe/Berlin",
                json!({"type": "CRON", "expr": "@hourly", "timezone": "Europe/Berlin"}),
            ),
            ("--name a --every 5m", json!({"type": "FIXED_RATE", "everySec": 300})),
            ("--name a --after-last 2h", json!({"type": "FIXED_DELAY", "everySec": 7200})),
            ("--name a --in 10", json!({"type": "ONCE", "delaySec": 10})),
            ("--name a --at 2030-01-01T00:00:00Z", json!({"type": "ONCE", "at": "2030-01-01T00:00:00Z"})),
            ("--name a --manual --label k=v --max-attempts 1 --params {\"n\":1} -- echo hi", json!({"type": "MANUAL"})),
        ] {
            let spec = spec(line).unwrap();
            assert_eq!(spec["trigger"], trigger, "{line}");
            let understood: JobSpec = serde_json::from_value(spec.clone()).unwrap();
            assert_eq!(understood.name, "a");
        }
        let command = spec("--name a --manual --env K=V -- echo -n hi").unwrap();
        assert_eq!(command["action"], json!({"kind": "COMMAND", "command": ["echo", "-n", "hi"], "env": {"K": "V"}}));
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        for line in [
            "--name a",
            "--name a --cron x --every 5",
            "--name a --manual --env K=V",
            "--name a --every 5x",
            "--name a --manual --params {",
            "--tz UTC --name a --manual",
        ] {
            assert_eq!(spec(line).unwrap_err().code, super::super::failure::USAGE, "{line}");
        }
        assert_eq!(
            seconds("99999999999999999999"),
            Err("'99999999999999999999' is not a time: write 30, 30s, 5m, 2h, 1h30m or 1d".to_owned())
        );
    }
}
