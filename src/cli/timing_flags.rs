//! How long runs of a job may take, and how long they take at least, as flags.

use serde_json::{Value, json};

#[derive(clap::Args, Default)]
pub(super) struct TimingFlags {
    /// Seconds after its due instant in which a run has to end; else jobs of --on-deadline are started, and the run goes on
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["deadline_from_start", "deadline_by"])]
    deadline: Option<u64>,
    /// The same, from the start of its first attempt
    #[arg(long, value_name = "SECONDS", conflicts_with = "deadline_by")]
    deadline_from_start: Option<u64>,
    /// A time of day by which a run has to end, for example 04:00
    #[arg(long, value_name = "TIME")]
    deadline_by: Option<String>,
    /// Zone of --deadline-by; UTC unless it is given
    #[arg(long, value_name = "ZONE", requires = "deadline_by")]
    deadline_timezone: Option<String>,
    /// An attempt that succeeds in fewer seconds is marked as suspicious
    #[arg(long, value_name = "SECONDS")]
    min_duration: Option<u64>,
}

impl TimingFlags {
    /// As the field `minDurationSec` of a definition.
    pub fn min_duration(&self) -> Option<Value> {
        self.min_duration.map(Value::from)
    }

    /// As the field `deadline` of a definition.
    pub fn deadline(self) -> Option<Value> {
        let within = |seconds: u64, of: &str| json!({"withinSec": seconds, "of": of});
        let due = self.deadline.map(|seconds| within(seconds, "DUE"));
        let start = self.deadline_from_start.map(|seconds| within(seconds, "START"));
        let zone = self.deadline_timezone.unwrap_or_else(|| "UTC".to_owned());
        due.or(start).or_else(|| self.deadline_by.map(|by| json!({"by": by, "timezone": zone})))
    }
}
