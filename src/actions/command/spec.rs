//! What to run, for which attempt, and how it ended.

use campanile_schema::{
    job::{Action, CommandLimits},
    time::Timestamp,
};
use std::collections::BTreeMap;

/// A COMMAND action: which program, with what.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandSpec {
    /// Program and arguments. No shell is involved.
    pub command: Vec<String>,
    /// Added to the base environment; the attempt's own `CAMPANILE_*` variables win over it.
    pub env: BTreeMap<String, String>,
    /// Default: `HOME` of the command's environment when that is a directory, else `/`.
    pub cwd: Option<String>,
    /// Text the command reads on its standard input; without one it reads end of file.
    pub stdin: Option<String>,
    /// Output kept of one attempt, KiB; at most `LOG_BYTES_PER_ATTEMPT`.
    pub output_cap_kb: u32,
    pub limits: CommandLimits,
    /// 0..=19.
    pub nice: u8,
}

impl CommandSpec {
    /// The command of an action; `None` when the action is of another kind.
    pub fn from_action(action: &Action) -> Option<Self> {
        match action {
            Action::Command { command, env, cwd, stdin, output_cap_kb, limits, nice } => Some(Self {
                command: command.clone(),
                env: env.clone(),
                cwd: cwd.clone(),
                stdin: stdin.clone(),
                output_cap_kb: *output_cap_kb,
                limits: *limits,
                nice: *nice,
            }),
            Action::Handler { .. } | Action::Http { .. } | Action::Webhook { .. } | Action::Dag(_) => None,
        }
    }
}

/// What the attempt tells its command, as `CAMPANILE_*` variables.
#[derive(Clone, Default, PartialEq)]
pub struct AttemptEnv {
    pub job_id: u64,
    pub job_name: String,
    pub run_id: u64,
    pub attempt: u32,
    pub token: u64,
    /// Absent for runs that no schedule made.
    pub logical_time: Option<Timestamp>,
    /// `SCHEDULE`, `MANUAL`, ...
    pub source: String,
    /// The params as JSON text.
    pub params_json: String,
    pub traceparent: Option<String>,
    /// Opened secret params: `CAMPANILE_SECRET_<name>`, and `***` wherever their values show in the output.
    pub secrets: BTreeMap<String, String>,
}

campanile_schema::redacted_debug!(AttemptEnv {
    job_id, job_name, run_id, attempt, token, logical_time, source, params_json, traceparent,
} hides { secrets });

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    Exited {
        code: i32,
    },
    Signaled {
        signal: i32,
    },
    /// Ended because a stop was asked for.
    Stopped,
    /// Nothing of the command ran. `code` is stable, see [`super::StartFault`].
    FailedToStart {
        code: &'static str,
        message: String,
    },
}

/// The end of one attempt's command and what it cost.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandReport {
    pub end: CommandEnd,
    /// User and system time of the command and all that it started, milliseconds.
    pub cpu_ms: u64,
    /// Largest resident memory of a single process of the tree, KiB; none: it was small, and ended before anybody could look.
    pub max_rss_kb: Option<u64>,
    /// The last bytes of the output, for the error message of a failed attempt.
    pub last_output: String,
    /// Processes that the command left running and that were ended with it, count.
    pub left_behind: u32,
}

impl CommandReport {
    pub(super) fn failed_to_start(code: &'static str, message: String) -> Self {
        let end = CommandEnd::FailedToStart { code, message };
        Self { end, cpu_ms: 0, max_rss_kb: None, last_output: String::new(), left_behind: 0 }
    }
}
