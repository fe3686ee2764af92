//! The end of a run: waits until nothing is under way, then writes down through the public API what the node says happened.

use crate::{
    limits::CALLS_IN_FLIGHT,
    lines::{LedgerLine, Meta},
    record::Record,
};
use campanile_client::{Client, ClientError};
use campanile_schema::{
    ids::JobId,
    limits::{LEASE_MS, PAGE_SIZE_MAX},
    time::Timestamp,
    view::{LedgerBody, PageBody},
};
use std::{collections::BTreeMap, fs, io, path::Path, sync::Arc, time::Duration};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep},
};

/// Tries of one read.
const TRIES: u32 = 5;
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
}

/// Writes `ledger.jsonl`, `runs.jsonl` and, last, `meta.json`. False: some read failed, and the history is not complete.
pub async fn export(client: &Client, jobs: &[JobId], scope: Scope, dir: &Path) -> io::Result<bool> {
    let flush = Duration::from_millis(50);
    let ledger = Arc::new(Record::open(&dir.join("ledger.jsonl"), flush)?);
    let runs = Arc::new(Record::open(&dir.join("runs.jsonl"), flush)?);
    let in_flight = Arc::new(Semaphore::new(CALLS_IN_FLIGHT));
    let mut reads = JoinSet::new();
    let mut complete = true;
    for job in jobs.iter().copied() {
        let permit = Arc::clone(&in_flight).acquire_owned().await.map_err(io::Error::other)?;
        let (client, ledger, runs) = (client.clone(), Arc::clone(&ledger), Arc::clone(&runs));
        let (from_ms, until_ms) = (scope.from_ms, scope.until_ms);
        reads.spawn(async move {
            let told = export_ledger(&client, job, (from_ms, until_ms), &ledger).await;
            let listed = export_runs(&client, job, &runs).await;
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
    for record in [ledger, runs] {
        Arc::into_inner(record).map_or(Ok(()), Record::close)?;
    }
    let Scope { until_ms, drained, quotas, rates, queued, latest_ms, shards, .. } = scope;
    let lease_ms = LEASE_MS;
    let meta = Meta { until_ms, complete, drained, lease_ms, latest_ms, queued, shards, quotas, rates };
    fs::write(dir.join("meta.json"), serde_json::to_vec_pretty(&meta)?)?;
    Ok(complete)
}

/// Asks again while the node cannot be reached; its refusals are answers.
async fn read<T, F: Future<Output = Result<T, ClientError>>>(ask: impl Fn() -> F) -> Result<T, ClientError> {
    let mut tries = 0;
    loop {
        match ask().await {
            Err(ClientError::Io { .. } | ClientError::Timeout { .. }) if tries < TRIES => {
                tries += 1;
                sleep(Duration::from_millis(200)).await;
            }
            answer => return answer,
        }
    }
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

async fn export_runs(client: &Client, job: JobId, record: &Record) -> bool {
    let mut page_token = None;
    loop {
        let body = PageBody { page_token: page_token.take(), page: None, page_size: Some(PAGE_SIZE_MAX) };
        match read(|| client.job_runs(job, body.clone())).await {
            Ok(page) => {
                page.items.iter().for_each(|run| record.line(run));
                match page.next_page_token {
                    Some(token) => page_token = Some(token),
                    None => return true,
                }
            }
            // The job is gone, which the ledger's line says.
            Err(error) => return error.api().is_some(),
        }
    }
}
