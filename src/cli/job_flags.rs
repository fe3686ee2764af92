//! A job from flags: the usual ones; a file says all the rest.

use super::{failure::Failure, hook_flags::HookFlags, window_flags::WindowFlags};
use campanile_core::action::unusable;
use campanile_jobfiles::manifest::Seconds;
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
    /// Time zone of the cron expression, or of an --at without an offset, an IANA name [default: UTC for --cron]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// Due again and again: 30, 30s, 5m, 2h, 1d
    #[arg(long, value_name = "TIME", group = "trigger", value_parser = seconds)]
    every: Option<u64>,
    /// Due so long after the last run has ended
    #[arg(long, value_name = "TIME", group = "trigger", value_parser = seconds)]
    after_last: Option<u64>,
    /// Due once, at an instant such as 2026-02-01T08:00:00+01:00, or with --tz at a local time such as '2026-02-01 08:00:00'
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
    /// A request: --http POST https://example.org/hook. `{{runId}}`, `{{params.x}}` and others stand for facts of the attempt
    #[arg(long, value_names = ["METHOD", "URL"], num_args = 2, group = "action")]
    http: Option<Vec<String>>,
    /// A header of the request
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header, requires = "http")]
    headers: Vec<(String, String)>,
    /// The request's body: JSON, or any other text, or @FILE [default: none]
    #[arg(long, value_name = "BODY", requires = "http")]
    body: Option<String>,
    /// Status of an answer that is a success: 200 or 200-299 [default: 200-299]
    #[arg(long, value_name = "STATUS", value_parser = status, requires = "http")]
    expect_status: Option<(u16, u16)>,
    /// Longest time of the request [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = seconds, requires = "http")]
    http_timeout: Option<u64>,
    /// Redirects that are followed [default: 0]
    #[arg(long, value_name = "N", requires = "http")]
    max_redirects: Option<u8>,
    /// A program with its arguments, at the end: -- /usr/bin/backup --all
    #[arg(last = true, value_name = "COMMAND", group = "action")]
    command: Vec<String>,
    /// Environment of the command
    #[arg(long = "env", value_name = "KEY=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// What each of the command's processes may use: cpuSec, memoryMb, openFiles, fileSizeMb, processes
    #[arg(long = "limit", value_name = "NAME=NUMBER", value_parser = limit)]
    limits: Vec<(String, u64)>,
    /// How much others go before the command in the use of CPU, 0 to 19 [default: 0]
    #[arg(long, value_name = "N")]
    nice: Option<u8>,
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
    /// No attempt begins later than so long after the first one
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    max_elapsed: Option<u64>,
    /// Longest time of all attempts of a run together
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    max_runtime: Option<u64>,
    /// 0 to 1000, higher first
    #[arg(long)]
    priority: Option<u16>,
    /// The named system that bodies call, which has limits, a breaker and a budget of retries
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    #[command(flatten)]
    hooks: HookFlags,
    #[command(flatten)]
    windows: WindowFlags,
    /// The name that people read, in any language
    #[arg(long, value_name = "TEXT")]
    display_name: Option<String>,
    /// What the job is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Who answers for the job
    #[arg(long, value_name = "TEXT")]
    owner: Option<String>,
    #[arg(long = "annotation", value_name = "KEY=TEXT", value_parser = pair)]
    annotations: Vec<(String, String)>,
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
        let mut retry = Map::new();
        retry.extend(self.max_attempts.map(|attempts| ("maxAttempts".to_owned(), json!(attempts))));
        retry.extend(self.max_elapsed.map(|seconds| ("maxElapsedSec".to_owned(), json!(seconds))));
        set("retryPolicy", (!retry.is_empty()).then_some(Value::Object(retry)));
        set("maxRuntimeSec", self.max_runtime.map(Value::from));
        set("priority", self.priority.map(Value::from));
        set("target", self.target.map(Value::from));
        set("hooks", self.hooks.value());
        self.windows.fields().into_iter().for_each(|(name, value)| set(name, Some(value)));
        set("displayName", self.display_name.map(Value::from));
        set("description", self.description.map(Value::from));
        set("owner", self.owner.map(Value::from));
        set("annotations", (!self.annotations.is_empty()).then(|| object(self.annotations)));
        Ok(Value::Object(spec))
    }

    fn trigger(&self) -> Result<Value, Failure> {
        if self.cron.is_none() && self.dialect.is_some() {
            return Err(Failure::usage("--dialect is for --cron"));
        }
        if self.cron.is_none() && self.at.is_none() && self.tz.is_some() {
            return Err(Failure::usage("--tz is for --cron and --at"));
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
            let mut once = json!({"type": "ONCE", "at": at});
            if let Some(zone) = &self.tz {
                once["timezone"] = json!(zone);
            }
            once
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

    fn request(&self, method: &str, url: &str) -> Result<Value, Failure> {
        let mut action = json!({"kind": "HTTP", "method": method, "url": url, "headers": object(self.headers.clone())});
        if let Some(text) = &self.body {
            action["body"] = body(text)?;
        }
        if let Some((from, to)) = self.expect_status {
            action["expectStatus"] = json!([from, to]);
        }
        if let Some(seconds) = self.http_timeout {
            action["timeoutSec"] = json!(seconds);
        }
        if let Some(redirects) = self.max_redirects {
            action["maxRedirects"] = json!(redirects);
        }
        Ok(action)
    }

    fn action(&self) -> Result<Option<Value>, Failure> {
        let command = match (&self.sh, self.command.as_slice()) {
            (Some(script), _) => vec!["/bin/sh".to_owned(), "-c".to_owned(), script.clone()],
            (None, command) => command.to_vec(),
        };
        if command.is_empty() {
            if !self.env.is_empty() || !self.limits.is_empty() || self.nice.is_some() {
                return Err(Failure::usage("--env, --limit and --nice are for commands: --sh SCRIPT or -- COMMAND"));
            }
            if let Some([method, url]) = self.http.as_deref() {
                return self.request(method, url).map(Some);
            }
            return Ok(self.handler.as_ref().map(|name| json!({"kind": "HANDLER", "name": name})));
        }
        let mut action = json!({"kind": "COMMAND", "command": command, "env": object(self.env.clone())});
        if !self.limits.is_empty() {
            action["limits"] = self.limits.iter().map(|(name, limit)| (name.clone(), json!(limit))).collect();
        }
        if let Some(nice) = self.nice {
            action["nice"] = json!(nice);
        }
        Ok(Some(action))
    }
}

/// What is JSON goes as JSON, so that values are written into it as JSON needs; all else is text.
fn body(text: &str) -> Result<Value, Failure> {
    let text = match text.strip_prefix('@') {
        Some(file) => campanile_security::text::read(file.as_ref(), false)
            .map_err(|error| Failure::usage(format!("--body @{file}: {error}")))?,
        None => text.to_owned(),
    };
    Ok(campanile_serve::api::parse_json(text.as_bytes()).unwrap_or(Value::String(text)))
}

/// `--params`: any JSON.
pub(super) fn params(text: &str) -> Result<Value, Failure> {
    campanile_serve::api::parse_json(text.as_bytes())
        .map_err(|error| Failure::usage(format!("--params: {}", error.message)))
}

fn object(pairs: Vec<(String, String)>) -> Value {
    Value::Object(pairs.into_iter().map(|(key, value)| (key, Value::String(value))).collect())
}

/// `KEY=VALUE`.
pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// `KEY=VALUE` for the environment of a command, by the rule of what starts it.
fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = pair(text)?;
    match unusable(&name, &value) {
        Some(what) => Err(format!("the variable {what}")),
        None => Ok((name, value)),
    }
}

/// `NAME=NUMBER`.
fn limit(text: &str) -> Result<(String, u64), String> {
    let (name, number) = pair(text)?;
    number.parse().map(|number| (name, number)).map_err(|_| format!("'{number}' is not a whole number"))
}

/// `NAME: VALUE`, as curl takes it.
fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write 'NAME: VALUE'")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// `200` or `200-299`.
fn status(text: &str) -> Result<(u16, u16), String> {
    let number = |text: &str| text.parse().map_err(|_| "write 200 or 200-299".to_owned());
    match text.split_once('-') {
        Some((from, to)) => Ok((number(from)?, number(to)?)),
        None => number(text).map(|status| (status, status)),
    }
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
            (
                "--name a --at 2030-01-01T08:00:00 --tz Asia/Shanghai",
                json!({"type": "ONCE", "at": "2030-01-01T08:00:00", "timezone": "Asia/Shanghai"}),
            ),
            ("--name a --manual --label k=v --max-attempts 1 --params {\"n\":1} -- echo hi", json!({"type": "MANUAL"})),
        ] {
            let spec = spec(line).unwrap();
            assert_eq!(spec["trigger"], trigger, "{line}");
            let understood: JobSpec = serde_json::from_value(spec.clone()).unwrap();
            assert_eq!(understood.name, "a");
        }
        let limited = spec("--name a --manual --sh x --limit cpuSec=9 --limit openFiles=64 --nice 5").unwrap();
        let in_time = spec("--name a --manual --max-attempts 9 --max-elapsed 10m --max-runtime 1h --sh x").unwrap();
        let retry = json!({"maxAttempts": 9, "maxElapsedSec": 600});
        assert_eq!((&in_time["retryPolicy"], &in_time["maxRuntimeSec"]), (&retry, &json!(3600)));
        let limits = json!({"cpuSec": 9, "openFiles": 64});
        assert_eq!((&limited["action"]["limits"], &limited["action"]["nice"]), (&limits, &json!(5)));
        let command = spec("--name a --manual --env K=V -- echo -n hi").unwrap();
        assert_eq!(command["action"], json!({"kind": "COMMAND", "command": ["echo", "-n", "hi"], "env": {"K": "V"}}));
    }

    #[test]
    fn requests_are_made_of_flags() {
        let words = ["x", "--name", "a", "--manual", "--http", "put", "http://h/{{runId}}", "--header", "X-A: b: c"];
        let words = words.iter().chain(&[
            "--body",
            "{\"n\":\"{{params.n}}\"}",
            "--expect-status",
            "200-204",
            "--http-timeout",
            "2m",
        ]);
        let spec = Line::try_parse_from(words).unwrap().flags.spec().unwrap();
        let request = json!({
            "kind": "HTTP", "method": "put", "url": "http://h/{{runId}}", "headers": {"X-A": "b: c"},
            "body": {"n": "{{params.n}}"}, "expectStatus": [200, 204], "timeoutSec": 120,
        });
        assert_eq!(spec["action"], request);
        let understood: JobSpec = serde_json::from_value(spec).unwrap();
        assert!(matches!(understood.action, Some(campanile_schema::job::Action::Http { max_redirects: 0, .. })));
        assert_eq!(body("Dear {{params.n}}").unwrap(), json!("Dear {{params.n}}"));
        assert_eq!(status("204"), Ok((204, 204)));
        assert!(status("ok").is_err());
        assert!(header("x").is_err());
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        for line in [
            "--name a",
            "--name a --cron x --every 5",
            "--name a --manual --env K=V",
            "--name a --manual --limit cpuSec=9",
            "--name a --manual --sh x --limit cpuSec=much",
            "--name a --every 5x",
            "--name a --manual --header a:b",
            "--name a --manual --http GET http://h --sh x",
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
