//! What every command that changes something takes: why, and whether to only show what it would do.

use super::{failure::Failure, output};
use campanile_schema::error::ErrorCode;
use serde_json::{Value, json};

#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct Change {
    /// Why; kept with the change
    #[arg(long)]
    pub reason: Option<String>,
    #[command(flatten)]
    pub dry: DryRun,
}

#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(super) struct DryRun {
    /// Only show what would be done: the node is asked what is there, and nothing is changed
    #[arg(long)]
    pub dry_run: bool,
}

impl Change {
    pub fn body(&self) -> Value {
        json!({"reason": self.reason})
    }
}

impl DryRun {
    /// A sentence for what would be done.
    pub fn told(what: &str) -> Result<(), Failure> {
        output::said(&format!("would {what}"), &json!({"dryRun": true, "would": what}))?;
        Self::nothing_changed();
        Ok(())
    }

    /// The end of every dry run.
    pub fn nothing_changed() {
        output::hint("nothing was changed: a dry run");
    }
}

/// Of what starts a run again.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(super) struct Again {
    /// Also if the run was compensated: a job that undoes what it did was started
    #[arg(long)]
    pub force: bool,
}

impl Again {
    pub fn body(self, change: &Change) -> Value {
        let mut body = change.body();
        if self.force {
            body["force"] = json!(true);
        }
        body
    }

    /// What the node would say to a run without `--force`.
    pub fn allowed(run: &Value) -> Result<(), Failure> {
        let code = ErrorCode::Compensated;
        if run["compensated"] == true { Err(refused(code, code.title())) } else { Ok(()) }
    }
}

/// What a node would answer to a change that it refuses.
pub(super) fn refused(code: ErrorCode, message: impl std::fmt::Display) -> Failure {
    Failure {
        error: Some(code),
        advice: code.advice(),
        ..Failure::new(code.exit_code(), format!("{}: {message}", code.as_str()))
    }
}

/// A change of every shard, as the node answered it: its sentence, and its fields with what was changed.
pub(super) fn spread_said(what: &str, verb: &str, answer: Value) -> Result<(), Failure> {
    let sentence = if what.is_empty() {
        format!("{verb}: {}", spread(&answer))
    } else {
        format!("{what}: {verb} {}", spread(&answer))
    };
    let mut value = match answer {
        Value::Object(fields) => Value::Object(fields),
        _ => json!({}),
    };
    value["done"] = json!(verb);
    if !what.is_empty() {
        value["tenantId"] = json!(what);
    }
    output::said(&sentence, &value)
}

/// How far a change of every shard has come.
pub(super) fn spread(answer: &Value) -> String {
    let outstanding = answer["outstanding"].as_array().map(Vec::as_slice).unwrap_or_default();
    if outstanding.is_empty() {
        return "done".to_owned();
    }
    let shards: Vec<String> = outstanding.iter().map(Value::to_string).collect();
    format!(
        "The change is kept. The node goes on telling the shards that have not confirmed it yet: {}",
        shards.join(", ")
    )
}

/// `job 8193 default/report (PAUSED)`.
pub(super) fn job(view: &Value) -> String {
    let text = |field: &str| view[field].as_str().unwrap_or("?").to_owned();
    format!("job {} {}/{} ({})", view["jobId"], text("tenantId"), text("name"), text("status"))
}

/// `run 4097 of job 8193 (RUNNING)`.
pub(super) fn run(view: &Value) -> String {
    format!("run {} of job {} ({})", view["runId"], view["jobId"], view["state"].as_str().unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outstanding_is_named() {
        assert_eq!(spread(&Value::Null), "done");
        assert_eq!(spread(&json!({})), "done");
        assert!(spread(&json!({"outstanding": [3, 17]})).ends_with("confirmed it yet: 3, 17"));
    }
}
