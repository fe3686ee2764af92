//! Bulk operations: one change for all jobs or runs that a filter names. Create, list, read, abort, undo.

use super::{Answer, Operations, at_most, check_reason, invalid, labels, paging};
use campanile_schema::{
    job::JobStatus,
    limits::{BULK_FILTER_BYTES, BULK_GRACE_MAX_MS},
    operations::{BulkAbort, BulkCreate, BulkGet, BulkList, BulkUndo, Handle},
    record::RunState,
    rpc::calls::{BulkCall, NoBody},
    stored::bulk::{BulkAction, StoredBulk, StoredBulkFilter},
    text::Text,
    view::{
        Page, ReasonBody, TenantPageBody,
        bulk::{BulkBody, BulkFilter, BulkView},
    },
};
use campanile_security::auth::Caller;

/// The tenant is the caller's own, unless an operator calls.
impl Handle<BulkCreate> for Operations {
    fn check(request: &BulkBody) -> Answer<()> {
        stored(request).map(drop)
    }

    async fn handle(&self, _: &Caller, body: BulkBody) -> Answer<BulkView> {
        if body.action == BulkAction::Redrive && body.tenant_id.is_none() {
            return Err(invalid("tenantId: dead letters are listed by tenant; name one"));
        }
        self.scheduler.create_bulk(stored(&body)?, body.dry_run).await
    }
}

impl Handle<BulkList> for Operations {
    async fn handle(&self, _: &Caller, body: TenantPageBody) -> Answer<Page<BulkView>> {
        let wanted = paging::wanted(body.page_token, body.page, body.page_size)?;
        let tenant = body.tenant_id.as_deref();
        paging::read(wanted, |token, size| self.scheduler.bulks(tenant, token, size)).await
    }
}

impl Handle<BulkGet> for Operations {
    async fn handle(&self, _: &Caller, request: BulkCall<NoBody>) -> Answer<BulkView> {
        let (id, NoBody {}) = request.parts()?;
        self.scheduler.bulk(id).await
    }
}

/// Asked for again while the last page is being finished, it is the same abort.
impl Handle<BulkAbort> for Operations {
    async fn handle(&self, _: &Caller, request: BulkCall<ReasonBody>) -> Answer<BulkView> {
        let (id, body) = request.parts()?;
        self.scheduler.abort_bulk(id, body.reason).await
    }
}

impl Handle<BulkUndo> for Operations {
    async fn handle(&self, _: &Caller, request: BulkCall<ReasonBody>) -> Answer<BulkView> {
        let (id, body) = request.parts()?;
        self.scheduler.undo_bulk(id, body.reason).await
    }
}

/// Fields of the filter that actions take.
const OF_JOBS: &[&str] = &["status", "labels", "text"];
const OF_RUNS: &[&str] = &["state", "jobId", "labels", "source", "from", "to"];
const OF_DEAD_LETTERS: &[&str] = &["jobId", "from", "to", "cause"];

fn fields(action: BulkAction) -> &'static [&'static str] {
    match action {
        BulkAction::Pause | BulkAction::Resume | BulkAction::Trigger | BulkAction::Delete => OF_JOBS,
        BulkAction::Cancel | BulkAction::Retry => OF_RUNS,
        BulkAction::Redrive => OF_DEAD_LETTERS,
    }
}

/// What a caller asks for, checked.
fn stored(body: &BulkBody) -> Answer<StoredBulk> {
    check_reason(body.reason.as_deref())?;
    let filter = filter(body.action, &body.filter)?;
    let empty = filter == StoredBulkFilter::default();
    if empty && !body.all {
        return Err(invalid(format!(
            "filter: has no field, so it would mean everything; give one of {}, or \"all\": true",
            fields(body.action).join(", ")
        )));
    }
    if !empty && body.all {
        return Err(invalid("all: with a filter it has no meaning; give one of the two"));
    }
    if body.grace_sec.is_some() && body.action != BulkAction::Delete {
        return Err(invalid(format!("graceSec: only a DELETE has a grace, and this is a {}", body.action)));
    }
    let grace_ms = body.grace_sec.map(|sec| i64::try_from(sec).unwrap_or(i64::MAX).saturating_mul(1000));
    if grace_ms.is_some_and(|ms| ms == 0 || ms > BULK_GRACE_MAX_MS) {
        return Err(invalid(format!("graceSec: 1 to {}", BULK_GRACE_MAX_MS / 1000)));
    }
    Ok(StoredBulk {
        action: body.action,
        tenant: body.tenant_id.as_deref().map(Text::from),
        filter,
        reason: body.reason.as_deref().map(Text::from),
        grace_ms,
        ..StoredBulk::default()
    })
}

fn filter(action: BulkAction, given: &BulkFilter) -> Answer<StoredBulkFilter> {
    let BulkFilter { status, labels, text, state, job_id, source, from, to, cause } = given;
    let given = [
        ("status", status.is_some()),
        ("labels", labels.is_some()),
        ("text", text.is_some()),
        ("state", state.is_some()),
        ("jobId", job_id.is_some()),
        ("source", source.is_some()),
        ("from", from.is_some()),
        ("to", to.is_some()),
        ("cause", cause.is_some()),
    ];
    let known = fields(action);
    if let Some((wrong, _)) = given.iter().find(|(name, given)| *given && !known.contains(name)) {
        return Err(invalid(format!("filter.{wrong}: {action} takes {}", known.join(", "))));
    }
    for (name, words) in [("labels", labels), ("text", text), ("state", state), ("cause", cause)] {
        if words.as_deref() == Some("") {
            return Err(invalid(format!("filter.{name}: must not be empty; leave it out")));
        }
        at_most(&format!("filter.{name}"), words.as_deref(), BULK_FILTER_BYTES)?;
    }
    labels.iter().try_for_each(|selector| labels::check(selector).map_err(|why| invalid(format!("filter.{why}"))))?;
    if let (Some(from), Some(to)) = (from, to)
        && from > to
    {
        return Err(invalid(format!("filter.from: {from} is after to, {to}")));
    }
    if *status == Some(JobStatus::Deleted) {
        return Err(invalid("filter.status: jobs that were deleted are gone; give ENABLED or PAUSED"));
    }
    Ok(StoredBulkFilter {
        status: status.map(JobStatus::code),
        labels: labels.clone(),
        text: text.clone(),
        states: states(action, state.as_deref())?,
        job: *job_id,
        source: source.map(|source| source.code()),
        from_ms: from.map(|from| from.ms()),
        to_ms: to.map(|to| to.ms()),
        cause: cause.clone(),
    })
}

/// Only those that the action can do something with.
fn states(action: BulkAction, words: Option<&str>) -> Answer<Vec<u8>> {
    let parse = |word: &str| {
        let state = word.trim().parse::<RunState>().map_err(|why| invalid(format!("filter.state: {why}")))?;
        let of_ended = matches!(state, RunState::Failed | RunState::Timeout | RunState::Canceled);
        let fits = if action == BulkAction::Cancel { !state.is_final() } else { of_ended };
        if fits {
            return Ok(state.code());
        }
        let which = if action == BulkAction::Cancel { "open runs" } else { "FAILED, TIMEOUT and CANCELED runs" };
        Err(invalid(format!("filter.state: {action} is for {which}, not for {state}")))
    };
    words.map_or(Ok(Vec::new()), |words| words.split(',').map(parse).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_schema::{error::ErrorCode, time::Timestamp};

    fn told(body: &BulkBody) -> String {
        let error = stored(body).unwrap_err();
        assert_eq!(error.known(), ErrorCode::InvalidArgument);
        error.message
    }

    #[test]
    fn a_filter_without_a_field_needs_all() {
        let body = BulkBody::default();
        assert!(told(&body).contains("\"all\": true"), "{}", told(&body));
        assert_eq!(stored(&BulkBody { all: true, ..body }).unwrap().filter, StoredBulkFilter::default());
        let both = BulkBody {
            all: true,
            filter: BulkFilter { text: Some("x".to_owned()), ..BulkFilter::default() },
            ..BulkBody::default()
        };
        assert!(told(&both).starts_with("all: "));
    }

    #[test]
    fn each_action_has_its_fields_and_its_states() {
        let of = |action, filter| BulkBody { action, filter, ..BulkBody::default() };
        let state = |word: &str| BulkFilter { state: Some(word.to_owned()), ..BulkFilter::default() };
        assert!(told(&of(BulkAction::Pause, state("QUEUED"))).starts_with("filter.state: PAUSE takes status, labels"));
        assert!(told(&of(BulkAction::Cancel, state("FAILED"))).contains("CANCEL is for open runs, not for FAILED"));
        assert!(told(&of(BulkAction::Retry, state("RUNNING"))).contains("not for RUNNING"));
        assert!(told(&of(BulkAction::Retry, state("LOST"))).starts_with("filter.state: "));
        assert_eq!(stored(&of(BulkAction::Retry, state("FAILED, TIMEOUT"))).unwrap().filter.states.len(), 2);
        let times = BulkFilter { from: Some(Timestamp(2)), to: Some(Timestamp(1)), ..BulkFilter::default() };
        assert!(told(&of(BulkAction::Redrive, times)).starts_with("filter.from: "));
        let labels = BulkFilter { labels: Some("=b".to_owned()), ..BulkFilter::default() };
        assert!(told(&of(BulkAction::Pause, labels)).starts_with("filter.labels: term 1"));
        let empty = BulkFilter { text: Some(String::new()), ..BulkFilter::default() };
        assert!(told(&of(BulkAction::Pause, empty)).starts_with("filter.text: must not be empty"));
        let gone = BulkFilter { status: Some(JobStatus::Deleted), ..BulkFilter::default() };
        assert!(told(&of(BulkAction::Resume, gone)).starts_with("filter.status: "));
    }

    #[test]
    fn a_grace_is_of_a_delete_and_has_bounds() {
        let of = |action, grace_sec| BulkBody { action, all: true, grace_sec: Some(grace_sec), ..BulkBody::default() };
        assert!(told(&of(BulkAction::Pause, 60)).starts_with("graceSec: only a DELETE"));
        assert!(told(&of(BulkAction::Delete, 0)).starts_with("graceSec: 1 to"));
        assert!(told(&of(BulkAction::Delete, u64::MAX)).starts_with("graceSec: 1 to"));
        assert_eq!(stored(&of(BulkAction::Delete, 60)).unwrap().grace_ms, Some(60_000));
    }
}
