//! The list of runs over all jobs. Open runs come from the owners of their shards, newest first; ended ones from the read model, the one
//! that ended last first.
//!
//! No store has a list for every filter. Of one job there is one, and of a tenant one of the runs that failed. Of all ended runs a node on
//! its own directory has one; a cluster has none, because it would be one more row for each run.

use super::{
    Scheduler,
    jobs::clamp_page,
    queries::RunQuery,
    runs::{parse_token, token},
    unavailable,
};
use crate::{ask::ask, call_error::CallError, calls::ShardCall, filter::JobMatcher, handles::SessionHandles};
use campanile_ports::{EndedQuery, RunPage};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    ids::{JobId, ShardId},
    limits,
    peer::runs::{OpenRunsPart, RunFilter, RunPlace},
    record::{RunRecord, RunState},
    view::{JobFilter, Page, RunView},
};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

/// Runs that each shard is asked for beyond twice its part of a page.
const SPARE: usize = 4;
/// A page of the read model counts for at least so many runs that were looked at: a filter that fits few of them makes small pages.
const LOOKS_PER_PAGE: usize = 50;

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ListPlace {
    /// Among the open runs, behind this one.
    Open(Option<RunPlace>),
    /// Among the ended ones: a token of the store.
    Ended(Option<Vec<u8>>),
    /// Among those of one tenant after the other.
    EndedOf { tenant: String, inner: Option<Vec<u8>> },
}

impl ListPlace {
    fn parse(text: &str) -> Answer<Self> {
        let bad = || ApiError::new(ErrorCode::InvalidArgument, "pageToken is not one that this server gave");
        let inner = |hex: &str| if hex.is_empty() { Ok(None) } else { parse_token(hex).map(Some) };
        match text.split_once('.') {
            Some(("o", place)) => {
                let (created, run) = place.split_once('.').ok_or_else(bad)?;
                let (created, run) = (created.parse(), run.parse());
                let place = created.ok().zip(run.ok()).map(|(created_ms, run)| RunPlace { created_ms, run });
                Ok(Self::Open(Some(place.ok_or_else(bad)?)))
            }
            Some(("e", hex)) => Ok(Self::Ended(inner(hex)?)),
            Some(("t", rest)) => {
                let (hex, tenant) = rest.split_once('.').ok_or_else(bad)?;
                Ok(Self::EndedOf { tenant: tenant.to_owned(), inner: inner(hex)? })
            }
            Some(_) | None => Err(bad()),
        }
    }

    fn token(&self) -> String {
        let hex = |inner: &Option<Vec<u8>>| inner.as_deref().map(token).unwrap_or_default();
        match self {
            Self::Open(None) => "e.".to_owned(),
            Self::Open(Some(RunPlace { created_ms, run })) => format!("o.{created_ms}.{run}"),
            Self::Ended(inner) => format!("e.{}", hex(inner)),
            Self::EndedOf { tenant, inner } => format!("t.{}.{tenant}", hex(inner)),
        }
    }
}

/// A page that is being filled with ended runs.
struct EndedPart<'a> {
    scheduler: &'a Scheduler,
    filter: &'a RunFilter,
    query: EndedQuery,
    labels: Option<JobMatcher>,
    /// Whether the jobs have the labels, as far as they were asked.
    jobs: HashMap<JobId, bool>,
    items: Vec<RunView>,
    size: usize,
    looked: usize,
}

impl EndedPart<'_> {
    fn is_full(&self) -> bool {
        self.items.len() >= self.size || self.looked >= limits::ENDED_RUN_LOOKS
    }

    fn left(&self) -> usize {
        self.size - self.items.len()
    }

    async fn take(&mut self, records: Vec<RunRecord>) {
        self.looked += records.len().max(LOOKS_PER_PAGE);
        for record in records {
            let fits = self.query.fits(&record)
                && self.filter.job.is_none_or(|job| job == record.job)
                && self.filter.has_source(record.source);
            if fits && self.has_labels(record.job).await && !self.items.iter().any(|run| run.run_id == record.run) {
                self.items.push(RunView::from(&record));
            }
        }
    }

    /// A job that was deleted has none.
    async fn has_labels(&mut self, job: JobId) -> bool {
        let Some(labels) = &self.labels else { return true };
        if let Some(known) = self.jobs.get(&job) {
            return *known;
        }
        let has = self.scheduler.job(job).await.is_ok_and(|view| labels.labels(&view.spec.labels));
        self.jobs.insert(job, has);
        has
    }
}

impl Scheduler {
    /// Runs of all jobs. With an error about the state the store has no list of what is asked for.
    pub async fn run_list(
        &self,
        query: &RunQuery,
        page_token: Option<String>,
        page_size: usize,
    ) -> Answer<Page<RunView>> {
        let handles = self.handles()?;
        let size = clamp_page(page_size);
        let place = page_token.as_deref().map_or(Ok(ListPlace::Open(None)), ListPlace::parse)?;
        let mut items = Vec::new();
        let place = match place {
            ListPlace::Open(after) => {
                if !query.states(false).is_empty() {
                    let (found, next) = open_runs(&handles, &query.filter, after, size).await?;
                    items = found;
                    if let Some(next) = next {
                        return Ok(page(items, Some(ListPlace::Open(Some(next)))));
                    }
                }
                ListPlace::Ended(None)
            }
            place @ (ListPlace::Ended(_) | ListPlace::EndedOf { .. }) => place,
        };
        if query.states(true).is_empty() {
            return Ok(page(items, None));
        }
        if items.len() >= size {
            return Ok(page(items, Some(place)));
        }
        handles.client.projector.shows_all().await;
        let filter = &query.filter;
        let labels = JobFilter { labels: filter.labels.clone(), ..JobFilter::default() };
        let part = EndedPart {
            scheduler: self,
            filter,
            query: query.ended(),
            labels: filter.labels.is_some().then(|| JobMatcher::lenient(&labels)),
            jobs: HashMap::new(),
            items,
            size,
            looked: 0,
        };
        self.ended_runs(&handles, part, place).await
    }

    async fn ended_runs(
        &self,
        handles: &SessionHandles,
        mut part: EndedPart<'_>,
        place: ListPlace,
    ) -> Answer<Page<RunView>> {
        let (of_failed, job, tenant) = (part.query.is_of_failed(), part.filter.job, part.query.tenant.clone());
        let mut after = match place {
            ListPlace::Open(_) => None,
            ListPlace::Ended(inner) => inner,
            ListPlace::EndedOf { tenant, inner } => {
                return self.failed_of_all(handles, part, Some((tenant, inner))).await;
            }
        };
        loop {
            let views = &handles.views;
            let found = match (job, &tenant) {
                (Some(job), _) => views.job_runs(job, after.clone(), part.left()).await.map(Some),
                (None, Some(tenant)) if of_failed => {
                    views.failed_runs(tenant, after.clone(), part.left()).await.map(Some)
                }
                (None, _) => views.ended_runs(part.query.clone(), after.clone(), part.left()).await,
            };
            let Some(RunPage { items, next }) = found.map_err(|e| unavailable(&e))? else {
                return if of_failed { self.failed_of_all(handles, part, None).await } else { Err(no_list()) };
            };
            let older = job.is_none() && is_before(&items, part.query.from_ms);
            part.take(items).await;
            after = next;
            if after.is_none() || older {
                return Ok(page(part.items, None));
            }
            if part.is_full() {
                return Ok(page(part.items, after.map(|after| ListPlace::Ended(Some(after)))));
            }
        }
    }

    /// Failed runs where there is no list of all: of one tenant after the other.
    async fn failed_of_all(
        &self,
        handles: &SessionHandles,
        mut part: EndedPart<'_>,
        begin: Option<(String, Option<Vec<u8>>)>,
    ) -> Answer<Page<RunView>> {
        let mut names: Vec<String> = self.tenants().await?.into_iter().map(|tenant| tenant.tenant_id).collect();
        names.sort_unstable();
        let (first, mut inner) = begin.unwrap_or_default();
        for tenant in names.into_iter().filter(|tenant| *tenant >= first) {
            // The token belongs to the tenant that it names, also when that one is gone by now.
            let mut after = inner.take().filter(|_| tenant == first);
            loop {
                if part.is_full() {
                    return Ok(page(part.items, Some(ListPlace::EndedOf { tenant, inner: after })));
                }
                let found = handles.views.failed_runs(&tenant, after, part.left()).await;
                let RunPage { items, next } = found.map_err(|e| unavailable(&e))?;
                let older = is_before(&items, part.query.from_ms);
                part.take(items).await;
                after = next;
                if after.is_none() || older {
                    break;
                }
            }
        }
        Ok(page(part.items, None))
    }
}

fn page(items: Vec<RunView>, next: Option<ListPlace>) -> Page<RunView> {
    Page { items, next_page_token: next.map(|place| place.token()) }
}

/// Of a list in the order of ends: what follows ended before.
fn is_before(records: &[RunRecord], from_ms: i64) -> bool {
    records.last().is_some_and(|last| last.ended_ms.is_some_and(|ended| ended < from_ms))
}

fn no_list() -> ApiError {
    let message = "state: a cluster lists the runs of all jobs while they are open, and those that are FAILED or TIMEOUT; for other states \
                   give jobId";
    ApiError::new(ErrorCode::InvalidArgument, message)
}

/// Some open runs of a tenant in these states, the newest.
pub(super) async fn some_open_runs(
    handles: &Arc<SessionHandles>,
    tenant: &str,
    states: &[RunState],
    count: usize,
) -> Answer<Vec<RunView>> {
    let states = states.iter().map(|state| state.code()).collect();
    let filter = RunFilter { tenant: Some(tenant.to_owned()), states, ..RunFilter::default() };
    Ok(open_runs(handles, &filter, None, count).await?.0)
}

/// What is known of one shard's part while parts are merged.
struct ShardPart {
    shard: ShardId,
    /// It was looked at up to here.
    after: Option<RunPlace>,
    /// Fetched and not taken yet, newest first.
    ready: VecDeque<RunView>,
    /// There is nothing behind what is ready.
    ended: bool,
}

/// The first runs of all shards behind a place, newest first, and where the next page begins if more may follow.
async fn open_runs(
    handles: &Arc<SessionHandles>,
    filter: &RunFilter,
    after: Option<RunPlace>,
    size: usize,
) -> Answer<(Vec<RunView>, Option<RunPlace>)> {
    let shards = handles.identity.shards;
    let states = RunState::ALL.iter().filter(|state| !state.is_final() && filter.has_state(**state));
    let filter = Arc::new(RunFilter { states: states.map(|state| state.code()).collect(), ..filter.clone() });
    let asked: Vec<ShardId> = match filter.job {
        Some(job) => vec![job.shard(shards)],
        None => (0..shards).map(ShardId).collect(),
    };
    let limit = (size * 2 / asked.len() + SPARE).min(size + 1);
    let part = |shard| ShardPart { shard, after, ready: VecDeque::new(), ended: false };
    let mut parts: Vec<ShardPart> = asked.into_iter().map(part).collect();
    let mut runs: Vec<RunView> = Vec::new();
    for _ in 0..limits::OPEN_RUN_ROUNDS {
        ask_parts(handles, &filter, &mut parts, limit).await?;
        take_newest(&mut parts, &mut runs, size + 1);
        if runs.len() > size {
            runs.truncate(size);
            let last = runs.last().map(RunPlace::from);
            return Ok((runs, last));
        }
        if parts.iter().all(|part| part.ended) {
            return Ok((runs, None));
        }
    }
    Ok((runs, horizon(&parts)))
}

/// Shards have shown all their runs that are newer than this. None: all that they have.
fn horizon(parts: &[ShardPart]) -> Option<RunPlace> {
    parts.iter().filter(|part| !part.ended && part.ready.is_empty()).filter_map(|part| part.after).max()
}

/// Takes what comes next of all parts, as long as no shard can have anything before it.
fn take_newest(parts: &mut [ShardPart], runs: &mut Vec<RunView>, size: usize) {
    while runs.len() < size {
        let horizon = horizon(parts);
        let newest = parts.iter_mut().filter(|part| !part.ready.is_empty());
        let Some(newest) = newest.max_by_key(|part| part.ready.front().map(RunPlace::from)) else { return };
        let place = newest.ready.front().map(RunPlace::from);
        if horizon.is_some() && place < horizon {
            return;
        }
        runs.extend(newest.ready.pop_front());
    }
}

/// Asks those that have run out of what they gave.
async fn ask_parts(
    handles: &Arc<SessionHandles>,
    filter: &Arc<RunFilter>,
    parts: &mut [ShardPart],
    limit: usize,
) -> Answer<()> {
    let mut asked = Vec::new();
    for part in parts.iter_mut().filter(|part| !part.ended && part.ready.is_empty()) {
        let (handles, shard) = (handles.clone(), part.shard);
        let call = ShardCall::ListRuns { filter: filter.clone(), after: part.after, limit };
        asked.push((part, tokio::spawn(async move { ask::<OpenRunsPart>(&handles.client, shard, call).await })));
    }
    for (part, answer) in asked {
        let OpenRunsPart { items, next } = match answer.await.map_err(|_| CallError::Unanswered)? {
            Err(CallError::UnknownCall) => return Err(upgrading()),
            said => said?,
        };
        part.ended = next.is_none();
        part.after = next.or(part.after);
        part.ready = items.into();
    }
    Ok(())
}

fn upgrading() -> ApiError {
    let why = "a node of the cluster runs a release that has no list of runs; repeat the call when all run the new one";
    ApiError::new(ErrorCode::UpgradeUnderWay, why).retry_after(10.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_schema::ids::RunId;

    #[test]
    fn a_place_comes_back_from_its_token_and_nothing_else_does() {
        let open = RunPlace { created_ms: -7, run: RunId(4_097) };
        let places = [
            ListPlace::Open(Some(open)),
            ListPlace::Ended(None),
            ListPlace::Ended(Some(vec![1, 255])),
            ListPlace::EndedOf { tenant: "a.b-c".to_owned(), inner: None },
            ListPlace::EndedOf { tenant: "finance".to_owned(), inner: Some(vec![0]) },
        ];
        for place in places {
            assert_eq!(ListPlace::parse(&place.token()).unwrap(), place);
        }
        for wrong in ["", "o.1", "o.a.b", "x.1", "e.zz", "t.00"] {
            assert!(ListPlace::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_shard_that_has_found_nothing_holds_back_only_what_may_stand_behind_it() {
        let run = |created_ms: i64| -> RunView {
            let text = format!(
                r#"{{"runId":{created_ms},"jobId":1,"tenantId":"t","state":"QUEUED","source":"MANUAL","generation":1,
                    "attemptCount":0,"createdAt":{created_ms},"deadLetter":false,"attempts":[]}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let place = |created_ms: i64| RunPlace { created_ms, run: RunId(created_ms.cast_unsigned()) };
        let part = |ready: &[i64], after: Option<i64>, ended| ShardPart {
            shard: ShardId(0),
            after: after.map(place),
            ready: ready.iter().map(|created_ms| run(*created_ms)).collect(),
            ended,
        };
        let mut parts = [part(&[500, 90], Some(80), false), part(&[], Some(100), false), part(&[300], None, true)];
        let mut runs = Vec::new();
        take_newest(&mut parts, &mut runs, 9);
        assert_eq!(runs.iter().map(|run| run.created_at.ms()).collect::<Vec<_>>(), [500, 300]);
        assert_eq!(horizon(&parts), Some(place(100)), "the next page goes on there, and 90 comes again");
        parts[1].ended = true;
        take_newest(&mut parts, &mut runs, 9);
        assert_eq!(runs.len(), 3);
    }

    #[test]
    fn the_states_are_split_into_those_of_open_and_of_ended_runs() {
        let of = |states: &[RunState]| {
            let states = states.iter().map(|state| state.code()).collect();
            RunQuery { filter: RunFilter { states, ..RunFilter::default() } }
        };
        let both = of(&[RunState::Queued, RunState::Failed]);
        assert_eq!((both.states(false), both.states(true)), (vec![RunState::Queued], vec![RunState::Failed]));
        assert_eq!(of(&[]).states(false).len() + of(&[]).states(true).len(), RunState::ALL.len());
        assert!(of(&[RunState::Failed]).ended().is_of_failed());
    }
}
