//! `campanile job versions` and `campanile job rollback`: the history of a job's definition, and the way back.

use super::{
    change::{self, Change, DryRun},
    failure::Failure,
    job_ref::JobRef,
    listing::PageFlags,
    output::{self, Column, Format},
    remote::Remote,
    repeat,
};
use serde_json::{Value, json};

#[derive(clap::Args)]
pub(super) struct VersionsArgs {
    #[command(flatten)]
    job: JobRef,
    /// Compare each with this version instead of the one before it
    #[arg(long, value_name = "VERSION")]
    against: Option<u64>,
    #[command(flatten)]
    page: PageFlags,
    #[command(flatten)]
    watch: repeat::Flags,
}

#[derive(clap::Args)]
pub(super) struct RollbackArgs {
    #[command(flatten)]
    job: JobRef,
    /// The version whose definition the job gets
    #[arg(long, value_name = "VERSION")]
    to: u64,
    /// Refuse when the job is not of this version any more [default: whichever it has]
    #[arg(long)]
    version: Option<u64>,
    #[command(flatten)]
    change: Change,
}

const VERSIONS: &[Column] = &[
    Column::number("VERSION", "version"),
    Column::time("AT", "at"),
    Column::text("WHO", "who").minor(2),
    Column::text("OPERATION", "operation").minor(3),
    Column::text("CHANGED", "changed").minor(1),
    Column::text("REASON", "reason").minor(4),
];

pub(super) fn list(args: VersionsArgs, remote: &Remote, format: Format) -> Result<(), Failure> {
    let VersionsArgs { job, against, page, watch } = args;
    let path = format!("{}/versions", job.path(remote)?);
    let query = [("against", against.map(|version| version.to_string()))];
    repeat::drawn(
        watch,
        format,
        || page.read(remote, &path, &query),
        |view| match format {
            Format::Table => output::list_text(format, &named(view), VERSIONS, None),
            Format::Json | Format::Yaml => output::list_text(format, view, VERSIONS, None),
        },
    )
}

/// With the names of what changed as one text.
fn named(view: &Value) -> Value {
    let mut view = view.clone();
    for item in view["items"].as_array_mut().into_iter().flatten() {
        let fields = item["changes"].as_array().into_iter().flatten().filter_map(|change| change["field"].as_str());
        let changed = fields.collect::<Vec<_>>().join(", ");
        item["changed"] = json!(changed);
    }
    view
}

pub(super) fn rollback(args: RollbackArgs, remote: &Remote, format: Format) -> Result<(), Failure> {
    let RollbackArgs { job, to, version, change } = args;
    let path = job.path(remote)?;
    if change.dry.dry_run {
        let (now, against) = (remote.get(&path, &[])?, Some(to.to_string()));
        let page =
            remote.get(&format!("{path}/versions"), &[("against", against), ("pageSize", Some("1".to_owned()))])?;
        let changed = named(&page)["items"][0]["changed"].as_str().unwrap_or_default().to_owned();
        let what = if changed.is_empty() { "nothing differs".to_owned() } else { format!("changes {changed}") };
        return DryRun::told(&format!("give {} the definition of version {to}: {what}", change::job(&now)));
    }
    let body = json!({"to": to, "version": version, "reason": change.reason});
    output::one(format, &remote.post(&format!("{path}/rollback"), &body)?)
}

#[cfg(test)]
mod tests {
    use super::named;
    use serde_json::json;

    #[test]
    fn the_fields_that_changed_are_named_together() {
        let view = json!({"items": [{"version": 2, "changes": [{"field": "priority"}, {"field": "trigger.expr"}]}]});
        assert_eq!(named(&view)["items"][0]["changed"], "priority, trigger.expr");
    }
}
