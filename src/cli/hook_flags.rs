//! The hooks of a job as flags. Each flag can be given up to four times.

use serde_json::{Map, Value, json};

#[derive(clap::Args, Default)]
pub(super) struct HookFlags {
    /// A job of the same tenant that is started when a run fails for good; up to four times
    #[arg(long, value_name = "JOB")]
    on_failure: Vec<String>,
    /// The same, when a run succeeds
    #[arg(long, value_name = "JOB")]
    on_success: Vec<String>,
    /// The same, when a run ends TIMEOUT for good, besides --on-failure
    #[arg(long, value_name = "JOB")]
    on_timeout: Vec<String>,
    /// The same, when a run becomes a dead letter, besides --on-failure
    #[arg(long, value_name = "JOB")]
    on_dead_letter: Vec<String>,
    /// The same, when a run misses the deadline of the job
    #[arg(long, value_name = "JOB")]
    on_deadline: Vec<String>,
    /// A job that undoes what a run did that fails for good: started once for a run
    #[arg(long, value_name = "JOB")]
    compensation: Vec<String>,
}

impl HookFlags {
    /// As the field `hooks` of a definition.
    pub fn value(self) -> Option<Value> {
        let plain = |jobs: Vec<String>| jobs.into_iter().map(|job| json!({"job": job})).collect::<Vec<_>>();
        let mut on_failure = plain(self.on_failure);
        on_failure.extend(self.compensation.into_iter().map(|job| json!({"job": job, "compensation": true})));
        let all = [
            ("onFailure", on_failure),
            ("onSuccess", plain(self.on_success)),
            ("onTimeout", plain(self.on_timeout)),
            ("onDeadLetter", plain(self.on_dead_letter)),
            ("onDeadline", plain(self.on_deadline)),
        ];
        let given = all.into_iter().filter(|(_, hooks)| !hooks.is_empty());
        let hooks: Map<String, Value> = given.map(|(name, hooks)| (name.to_owned(), hooks.into())).collect();
        (!hooks.is_empty()).then_some(Value::Object(hooks))
    }
}
