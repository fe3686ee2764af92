//! What the executor and a shim say to each other, as lines of JSON.
//!
//! Executor to shim (the shim's standard input): one [`Order`], then nothing. The closing of this pipe is the stop.
//! Shim to executor (the shim's standard error): [`Report`]s. A line that is none (a panic's text) is kept as a
//! diagnostic. The shim's standard output is the command's output, untouched.

use campanile_schema::job::CommandLimits;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a shim is to start.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub command: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: Option<String>,
    pub stdin: Option<String>,
    /// Between SIGTERM and SIGKILL, milliseconds.
    pub grace_ms: u64,
    pub limits: CommandLimits,
    /// 0..=19.
    pub nice: u8,
}

/// What a shim reports. `Starting` and `Stuck` come at most once each; `Failed` or `Ended` is the last.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Report {
    /// Said before the command is started: a shim that is lost without it has started nothing.
    Starting,
    Failed {
        fault: StartFault,
        message: String,
    },
    /// So many processes do not end by SIGKILL: they hang in the kernel. The shim tries on until they are gone.
    Stuck {
        unkillable: u32,
    },
    Ended {
        /// Exit code; none when a signal ended the command.
        code: Option<i32>,
        signal: Option<i32>,
        /// The stop came before the command's own end.
        stopped: bool,
        #[serde(flatten)]
        usage: Usage,
        left_behind: u32,
        /// Processes that SIGKILL did not end at once (hung in the kernel), count.
        unkillable: u32,
    },
}

/// What a command and all that it started used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage {
    /// User and system time, milliseconds.
    pub cpu_ms: u64,
    /// Largest resident memory of a single process, KiB; none: it ended before anybody could look.
    pub max_rss_kb: Option<u64>,
}

/// Why nothing of a command ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartFault {
    /// `command` is an empty list or its first word is empty.
    Empty,
    /// No such program, or the interpreter of its `#!` line is missing.
    NotFound,
    /// The file is there but is a directory, lacks the permission, or is no program.
    NotExecutable,
    /// `cwd` is missing, no directory, or closed to the executor's user.
    CwdMissing,
    /// A variable's name or value cannot be passed on (empty name, `=` in a name, a NUL).
    EnvInvalid,
    /// Arguments and environment are larger than the system takes.
    TooLarge,
    /// The system refused for another reason (processes, memory, files).
    StartFailed,
    /// The stop came before the start.
    StoppedBefore,
    /// The shim itself could not do its work.
    ShimFailed,
}

impl StartFault {
    pub const ALL: &'static [Self] = &[
        Self::Empty,
        Self::NotFound,
        Self::NotExecutable,
        Self::CwdMissing,
        Self::EnvInvalid,
        Self::TooLarge,
        Self::StartFailed,
        Self::StoppedBefore,
        Self::ShimFailed,
    ];

    /// Stable code, shown as the attempt's `errorCode`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Empty => "COMMAND_EMPTY",
            Self::NotFound => "COMMAND_NOT_FOUND",
            Self::NotExecutable => "COMMAND_NOT_EXECUTABLE",
            Self::CwdMissing => "COMMAND_CWD_MISSING",
            Self::EnvInvalid => "COMMAND_ENV_INVALID",
            Self::TooLarge => "COMMAND_TOO_LARGE",
            Self::StartFailed => "COMMAND_START_FAILED",
            Self::StoppedBefore => "COMMAND_STOPPED_BEFORE_START",
            Self::ShimFailed => "COMMAND_SHIM_FAILED",
        }
    }
}

/// A fault with its text for people.
#[derive(Debug)]
pub(super) struct Fault {
    pub fault: StartFault,
    pub message: String,
}

impl Fault {
    pub fn new(fault: StartFault, message: impl Into<String>) -> Self {
        Self { fault, message: message.into() }
    }
}

/// One line for a pipe, newline included.
pub(super) fn line<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(value).expect("strings and numbers always have a JSON form");
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_line_has_one_newline_whatever_the_text() {
        let order = Order {
            command: vec!["printf".into(), "a\nb\u{2028}\0".into()],
            env: BTreeMap::from([("A".into(), "1\n2".into())]),
            cwd: None,
            stdin: Some("x\r\ny".into()),
            grace_ms: 5,
            limits: CommandLimits::default(),
            nice: 0,
        };
        let bytes = line(&order);
        assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), 1);
        let back: Order = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(back.command, order.command);
        assert_eq!(back.stdin, order.stdin);
    }

    #[test]
    fn codes_are_unique_and_tell_the_subject() {
        let codes: std::collections::BTreeSet<_> = StartFault::ALL.iter().map(|f| f.code()).collect();
        assert_eq!(codes.len(), StartFault::ALL.len());
        assert!(codes.iter().all(|c| c.starts_with("COMMAND_")));
    }
}
