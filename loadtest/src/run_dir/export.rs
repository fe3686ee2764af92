//! The end of a run: waits until nothing is under way, then writes down through the public API what the node says happened.

use crate::{
    limits::CALLS_IN_FLIGHT,
    run_dir::{
        lines::{LedgerLine, Meta},
        record::Record,
    },
};
use campanile_client::{Client, ClientError};
use campanile_schema::{
    error::ErrorCode,
    ids::JobId,
    limits::{LEASE_MS, PAGE_SIZE_MAX},
    time::Timestamp,
    view::{LedgerBody, PageBody},
};
use std::{
    collections::{BTreeMap, HashSet},
    fs, io,
    path::Path,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep},
};

/// A read is tried again for so long: a node of a cluster may be without its lease on a machine that others use.
const PATIENCE: Duration = Duration::from_secs(30);
/// From one try to the next.
const BETWEEN: Duration = Duration::from_millis(200);
/// Open runs none of which moves for so long are stuck, or wait for a person.
const STUCK: Duration = Duration::from_secs(20);

/// Waits until no run is open, or nothing has run or waited for an executor for long: what is open then is stuck, or waits
/// for a person; how many were left.
pub async fn drain(client: &Client, patience: Duration) -> Result<u64, ClientError> {
    drain_all(std::slice::from_ref(client), patience).await
}

/// [`drain`] of a cluster: a client of each node.
pub async fn drain_all(nodes: &[Client], patience: Duration) -> Result<u64, ClientError> {
    let deadline = Instant::now() + patience;
    // Since when nothing moves, and the number of open runs then.
    let mut still = (Instant::now(), u64::MAX);
    loop {
        match open_and_moving(nodes).await {
            Ok((0, _)) => return Ok(0),
            Ok((open, moving)) => {
                if moving || open != still.1 {
                    still = (Instant::now(), open);
                }
                if still.0.elapsed() > STUCK || Instant::now() > deadline {
                    return Ok(open);
                }
            }
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => {}
        }
        sleep(Duration::from_millis(250)).await;
    }
}

async fn open_and_moving(nodes: &[Client]) -> Result<(u64, bool), ClientError> {
    let (mut open, mut moving) = (0, false);
    for client in nodes {
        // Of all nodes, whichever is asked; one that another did not hear is counted by itself.
        let info = client.system_info().await?;
        open = info.open_runs.max(open);
        moving |= !info.missing.is_empty();
        moving |= client.pool_list().await?.items.iter().any(|pool| pool.running + pool.waiting > 0);
    }
    Ok((open, moving))
}

/// What to export, and up to when.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub from_ms: i64,
    pub until_ms: i64,
    /// Nothing was under way.
    pub drained: bool,
    /// As in [`Meta`].
    pub quotas: BTreeMap<String, u32>,
    pub rates: BTreeMap<String, f64>,
    pub queued: BTreeMap<String, u32>,
    pub latest_ms: Option<i64>,
    pub shards: Option<u16>,
    pub uses_all: bool,
    /// Jobs that are DAGs: the nodes of their runs are told too.
    pub dags: HashSet<JobId>,
}

/// Writes `ledger.jsonl`, `runs.jsonl`, `dags.jsonl` where there are DAGs, and, last, `meta.json`. False: some read failed, and the history
/// is not complete.
pub async fn export(client: &Client, jobs: &[JobId], scope: Scope, dir: &Path) -> io::Result<bool> {
    let flush = Duration::from_millis(50);
    let ledger = Arc::new(Record::open(&dir.join("ledger.jsonl"), flush)?);
    let runs = Arc::new(Record::open(&dir.join("runs.jsonl"), flush)?);
    let dags = match scope.dags.is_empty() {
        true => Arc::new(Record::nowhere()?),
        false => Arc::new(Record::open(&dir.join("dags.jsonl"), flush)?),
    };
    let in_flight = Arc::new(Semaphore::new(CALLS_IN_FLIGHT));
    let mut reads = JoinSet::new();
    let mut complete = true;
    for job in jobs.iter().copied() {
        let permit = Arc::clone(&in_flight).acquire_owned().await.map_err(io::Error::other)?;
        let (client, ledger, runs) = (client.clone(), Arc::clone(&ledger), Arc::clone(&runs));
        let dags = scope.dags.contains(&job).then(|| Arc::clone(&dags));
        let (from_ms, until_ms) = (scope.from_ms, scope.until_ms);
        reads.spawn(async move {
            let told = export_ledger(&client, job, (from_ms, until_ms), &ledger).await;
            let listed = export_runs(&client, job, &runs, dags.as_deref()).await;
            drop(permit);
            told && listed
        });
        while let Some(done) = reads.try_join_next() {
            complete &= done.unwrap_or(false);
        }
    }
    while let Some(done) = reads.join_next().await {
        complete &= done.unwrap_or(false);
    }
    for record in [ledger, runs, dags] {
        Arc::into_inner(record).map_or(Ok(()), Record::close)?;
    }
    let Scope { until_ms, drained, quotas, rates, queued, latest_ms, shards, uses_all, .. } = scope;
    let lease_ms = LEASE_MS;
    let meta = Meta { until_ms, complete, drained, lease_ms, latest_ms, queued, shards, quotas, rates, uses_all };
    fs::write(dir.join("meta.json"), serde_json::to_vec_pretty(&meta)?)?;
    Ok(complete)
}

/// Asks again while the node cannot be reached or is not ready; its other refusals are answers.
async fn read<T, F: Future<Output = Result<T, ClientError>>>(ask: impl Fn() -> F) -> Result<T, ClientError> {
    read_within(PATIENCE, BETWEEN, ask).await
}

async fn read_within<T, F>(patience: Duration, between: Duration, ask: impl Fn() -> F) -> Result<T, ClientError>
where
    F: Future<Output = Result<T, ClientError>>,
{
    let until = Instant::now() + patience;
    loop {
        match ask().await {
            Err(error) if passes(&error) && Instant::now() < until => sleep(between).await,
            answer => return answer,
        }
    }
}

/// The same read may succeed soon.
fn passes(error: &ClientError) -> bool {
    match error {
        ClientError::Io { .. } | ClientError::Timeout { .. } => true,
        error => error
            .api()
            .is_some_and(|api| matches!(api.known(), ErrorCode::NotReady | ErrorCode::Overloaded | ErrorCode::Timeout)),
    }
}

/// The job was deleted, and its history with it.
fn is_gone(error: &ClientError) -> bool {
    error.api().is_some_and(|api| api.known() == ErrorCode::NotFound)
}

async fn export_ledger(client: &Client, job: JobId, (from_ms, until_ms): (i64, i64), record: &Record) -> bool {
    let mut from = Timestamp(from_ms);
    loop {
        let body = LedgerBody { from: Some(from), to: Some(Timestamp(until_ms)), page_size: Some(PAGE_SIZE_MAX) };
        match read(|| client.job_ledger(job, body.clone())).await {
            Ok(page) => {
                // A page that does not go on would be asked for without end.
                let more = page.truncated && page.to > from;
                let stuck = page.truncated && !more;
                from = page.to;
                record.line(&LedgerLine { job, page: Some(page), error: None });
                if !more {
                    return !stuck;
                }
            }
            Err(error) => {
                let code = error.api().map_or_else(|| error.to_string(), |api| api.code.clone());
                record.line(&LedgerLine { job, page: None, error: Some(code) });
                return error.api().is_some();
            }
        }
    }
}

/// `dags`: the job is a DAG, and the nodes of its runs are written there.
async fn export_runs(client: &Client, job: JobId, record: &Record, dags: Option<&Record>) -> bool {
    let mut page_token = None;
    loop {
        let body = PageBody { page_token: page_token.take(), page: None, page_size: Some(PAGE_SIZE_MAX) };
        match read(|| client.job_runs(job, body.clone())).await {
            Ok(page) => {
                page.items.iter().for_each(|run| record.line(run));
                for run in page.items.iter().filter(|_| dags.is_some()) {
                    match read(|| client.dag_nodes(run.run_id, None)).await {
                        Ok(shown) => dags.into_iter().for_each(|dags| dags.line(&shown)),
                        // Of a run that never began there is nothing to show.
                        Err(error) if error.api().is_some() => {}
                        Err(_) => return false,
                    }
                }
                match page.next_page_token {
                    Some(token) => page_token = Some(token),
                    None => return true,
                }
            }
            // The ledger's line says so, too.
            Err(error) => return is_gone(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campanile_schema::error::ApiError;
    use std::cell::Cell;

    fn refusal(code: ErrorCode) -> ClientError {
        ClientError::Api(ApiError::new(code, "a test"))
    }

    /// A node that is not ready says nothing of a job: without the second try its runs were missing from the history.
    #[tokio::test]
    async fn a_node_that_is_not_ready_is_asked_again_and_a_job_that_is_gone_is_not() {
        let asked = async |code: ErrorCode| {
            let tries = Cell::new(0);
            let answer = read_within(PATIENCE, Duration::ZERO, || {
                tries.set(tries.get() + 1);
                let refused = tries.get() < 4;
                async move { if refused { Err(refusal(code)) } else { Ok(()) } }
            })
            .await;
            (tries.get(), answer.is_ok())
        };
        assert_eq!(asked(ErrorCode::NotReady).await, (4, true));
        assert_eq!(asked(ErrorCode::NotFound).await, (1, false));
        let never =
            read_within(Duration::ZERO, Duration::ZERO, || async { Err::<(), _>(refusal(ErrorCode::NotReady)) }).await;
        assert!(never.is_err_and(|error| !is_gone(&error)), "the history is not complete");
        assert!(is_gone(&refusal(ErrorCode::NotFound)));
    }
}
