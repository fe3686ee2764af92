//! The history of a job's definition: its versions with what each changed, and the way back to one of them.

use super::{Scheduler, jobs::as_stored, unavailable};
use campanile_ports::DefinitionRow;
use campanile_schema::{
    apply::FieldChange,
    error::{Answer, ApiError, ErrorCode},
    ids::JobId,
    job::{JobSpec, JobView},
    limits::DEFINITIONS_KEPT,
    payload::Payload,
    time::Timestamp,
    view::{Page, versions::VersionView},
};
use serde_json::{Map, Value};

impl Scheduler {
    /// Newest first, below `before`. Each with what differs from the version before it, or from `against`. The page token is the version that
    /// the next page begins below.
    pub async fn job_versions(
        &self,
        job: JobId,
        against: Option<u64>,
        before: Option<u64>,
        size: usize,
    ) -> Answer<Page<VersionView>> {
        let handles = self.handles()?;
        let now = self.job(job).await?;
        handles.client.projector.shows_all().await;
        let against = match against {
            None => None,
            Some(version) => Some(self.version(job, version).await?),
        };
        // One more than the page has: the oldest of the page is compared with it.
        let mut rows = self.version_rows(job, before, size + 1).await?;
        if before.is_none() && rows.first().is_none_or(|newest| newest.version < now.version) {
            // An earlier release made it, so there is no row of it.
            unrecorded(&now).into_iter().for_each(|row| rows.insert(0, row));
        }
        let shown = &rows[..rows.len().min(size)];
        let items: Vec<VersionView> = shown
            .iter()
            .enumerate()
            .map(|(index, row)| view(row, against.as_ref().or_else(|| rows.get(index + 1))))
            .collect();
        let more = rows.len() > size;
        let next_page_token = items.last().filter(|_| more).map(|last| last.version.to_string());
        Ok(Page { items, next_page_token })
    }

    /// Gives a job the definition of an earlier version. It becomes a new version.
    ///
    /// Secret params keep their values of now: history has their names only, because a value that was replaced since may have become
    /// known to somebody.
    pub async fn rollback_job(
        &self,
        job: JobId,
        to: u64,
        version: Option<u64>,
        reason: Option<String>,
    ) -> Answer<JobView> {
        let now = self.job(job).await?;
        let version = version.unwrap_or(now.version);
        if to == now.version {
            return Err(ApiError::new(ErrorCode::IllegalState, format!("to: the job has version {to} already")));
        }
        if to > now.version {
            return Err(ApiError::new(ErrorCode::NotFound, format!("the job has no version {to}")));
        }
        let handles = self.handles()?;
        handles.client.projector.shows_all().await;
        let row = self.version(job, to).await?;
        let spec = row.spec.to_spec();
        check_secrets(&spec, &now.spec)?;
        self.because(reason).replace_job(job, version, spec).await
    }

    async fn version(&self, job: JobId, version: u64) -> Answer<DefinitionRow> {
        let found = self.version_rows(job, version.checked_add(1), 1).await?;
        found.into_iter().find(|row| row.version == version).ok_or_else(|| {
            let why = format!(
                "version {version} of the job is not kept: history has the newest {DEFINITIONS_KEPT} versions, and none from \
                 before the release that began to keep them"
            );
            ApiError::new(ErrorCode::NotFound, why)
        })
    }

    async fn version_rows(&self, job: JobId, before: Option<u64>, limit: usize) -> Answer<Vec<DefinitionRow>> {
        let found = self.handles()?.views.definitions(job, before, limit).await;
        found.map_err(|e| unavailable(&e))
    }
}

/// The version of now, of which history has no row: when it was made, and by whom, is not known.
fn unrecorded(now: &JobView) -> Option<DefinitionRow> {
    Some(DefinitionRow {
        job: now.job_id,
        version: now.version,
        at_ms: now.updated_at.ms(),
        spec: as_stored(now)?.into(),
        by: None,
        operation: None,
        reason: None,
    })
}

/// The names that the definition of now has keep their values, so they must be those of the version.
fn check_secrets(spec: &JobSpec, now: &JobSpec) -> Answer<()> {
    let (wanted, have): (Vec<_>, Vec<_>) = (spec.secret_params.keys().collect(), now.secret_params.keys().collect());
    if wanted == have {
        return Ok(());
    }
    let message = format!(
        "secretParams: that version has the names {wanted:?} and the job has {have:?}; history keeps no secret values, so \
         replace the job by that definition with every value"
    );
    Err(ApiError::new(ErrorCode::IllegalState, message))
}

fn view(row: &DefinitionRow, before: Option<&DefinitionRow>) -> VersionView {
    let spec = row.spec.to_spec();
    let origin = row.by.as_ref();
    let text = |text: Option<&campanile_schema::text::Text>| text.map(ToString::to_string);
    VersionView {
        version: row.version,
        at: Timestamp(row.at_ms),
        who: text(origin.and_then(|by| by.who.as_ref())),
        address: text(origin.and_then(|by| by.address.as_ref())),
        operation: text(row.operation.as_ref()),
        reason: text(row.reason.as_ref()),
        compared_with: before.map(|before| before.version),
        changes: before.map(|before| changes(&before.spec.to_spec(), &spec)).unwrap_or_default(),
        spec,
    }
}

/// What differs between two definitions, by the names of their fields.
fn changes(before: &JobSpec, after: &JobSpec) -> Vec<FieldChange> {
    let value = |spec: &JobSpec| serde_json::to_value(spec).unwrap_or_default();
    let mut found = Vec::new();
    compare(String::new(), Some(&value(before)), Some(&value(after)), &mut found);
    found
}

/// Objects are compared field by field, and everything else as a whole. A secret value is masked on both sides.
fn compare<'a>(field: String, before: Option<&'a Value>, after: Option<&'a Value>, found: &mut Vec<FieldChange>) {
    if before == after {
        return;
    }
    let none = Map::new();
    let fields = |value: Option<&'a Value>| match value {
        None => Some(None),
        Some(Value::Object(fields)) => Some(Some(fields)),
        Some(_) => None,
    };
    if let (Some(old), Some(new)) = (fields(before), fields(after))
        && !is_one_value(&field)
    {
        let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
        let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let path = if field.is_empty() { name.clone() } else { format!("{field}.{name}") };
            compare(path, old.get(name), new.get(name), found);
        }
        return;
    }
    let payload = |value: Option<&Value>| value.filter(|value| !value.is_null()).map(Payload::from_value);
    found.push(FieldChange { field, before: payload(before), after: payload(after) });
}

/// The params of a caller are the caller's: their fields are none of a definition.
fn is_one_value(field: &str) -> bool {
    ["params", "action.body", "action.nodes", "action.edges"].contains(&field)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_schema::{job::Trigger, stored::MASK};

    fn told(before: &JobSpec, after: &JobSpec) -> Vec<(String, Option<String>, Option<String>)> {
        let text = |value: Option<Payload>| value.map(|value| value.0);
        changes(before, after).into_iter().map(|c| (c.field, text(c.before), text(c.after))).collect()
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_difference_names_the_field_and_both_values() {
        let before = JobSpec::new("finance", "close", Trigger::cron("0 2 * * *"));
        assert_eq!(told(&before, &before), []);
        let mut after = JobSpec { trigger: Trigger::cron("0 3 * * *"), priority: 200, ..before.clone() };
        after.labels.insert("team".to_owned(), "pay".to_owned());
        after.description = Some("closes the day".to_owned());
        let expected = [
            ("description".to_owned(), None, some(r#""closes the day""#)),
            ("labels.team".to_owned(), None, some(r#""pay""#)),
            ("priority".to_owned(), some("100"), some("200")),
            ("trigger.expr".to_owned(), some(r#""0 2 * * *""#), some(r#""0 3 * * *""#)),
        ];
        assert_eq!(told(&before, &after), expected);
        let back: Vec<_> =
            told(&after, &before).into_iter().map(|(field, before, after)| (field, after, before)).collect();
        assert_eq!(back, expected);
    }

    #[test]
    fn params_are_compared_as_one_value() {
        let with = |params: &str| JobSpec {
            params: Payload(params.to_owned()),
            ..JobSpec::new("finance", "close", Trigger::Manual {})
        };
        let expected = [("params".to_owned(), some(r#"{"a":1}"#), some(r#"{"a":2}"#))];
        assert_eq!(told(&with(r#"{"a":1}"#), &with(r#"{"a":2}"#)), expected);
    }

    #[test]
    fn secrets_are_told_by_their_names_only() {
        let with = |names: &[&str]| JobSpec {
            secret_params: names.iter().map(|name| ((*name).to_owned(), MASK.to_owned())).collect(),
            ..JobSpec::new("finance", "close", Trigger::Manual {})
        };
        assert_eq!(told(&with(&["a"]), &with(&["a", "b"])), [("secretParams.b".to_owned(), None, some(r#""***""#))]);
        assert!(check_secrets(&with(&["a"]), &with(&["a"])).is_ok());
        let refused = check_secrets(&with(&["a"]), &with(&[])).unwrap_err();
        assert_eq!(refused.known(), ErrorCode::IllegalState);
    }
}
