//! Everything that a run creates on a node that is not its own, and its removal: jobs, and limits of tenants. The
//! removal takes no longer than necessary, ends when somebody asks for it, and reports what it has left.

use super::stop::Stop;
use crate::{limits::CALLS_IN_FLIGHT, random::mix};
use campanile_client::{Client, ClientError};
use campanile_schema::{
    error::ErrorCode,
    ids::JobId,
    view::{JobFilter, TenantBody},
};
use parking_lot::{Mutex, MutexGuard};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

/// It ends when nothing has gone for so long: nobody answers.
const NOTHING_GOES: Duration = Duration::from_secs(10);
/// It ends after this time in any case.
const LONGEST: Duration = Duration::from_secs(600);
/// Between two tries of one job.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Jobs that are listed at once, count.
const PAGE: usize = 500;

#[derive(Default)]
struct CreatedThings {
    jobs: BTreeSet<JobId>,
    /// Tenants with their limits as they were; None: there was no such tenant.
    limits: Vec<(String, Option<TenantBody>)>,
}

/// What is known of it. Cheap to clone: creates in flight tell too.
#[derive(Clone, Default)]
pub(super) struct Traces(Arc<Mutex<CreatedThings>>);

impl Traces {
    fn known(&self) -> MutexGuard<'_, CreatedThings> {
        // A panic while holding it leaves at worst one job out.
        self.0.lock()
    }

    pub fn add_jobs(&self, jobs: impl IntoIterator<Item = JobId>) {
        self.known().jobs.extend(jobs);
    }

    pub fn add_limits(&self, tenant: &str, before: Option<TenantBody>) {
        self.known().limits.push((tenant.to_owned(), before));
    }

    /// Removes it all. `sweep`: the mark in the names of this run's jobs, when some may be there of which nobody heard.
    /// None: nothing is left.
    pub async fn clean(
        &self,
        client: &Client,
        stop: &Stop,
        sweep: Option<&str>,
        tell: &dyn Fn(&str),
    ) -> Option<String> {
        let (jobs, mut limits) = {
            let mut known = self.known();
            (std::mem::take(&mut known.jobs), std::mem::take(&mut known.limits))
        };
        if jobs.is_empty() && limits.is_empty() && sweep.is_none() {
            return None;
        }
        let times = stop.once_more();
        let count = jobs.len();
        tell(&format!("deleting {count} jobs; Ctrl-C ends that"));
        let mut left = jobs;
        let patience = Patience { stop, times, begin: Instant::now() };
        let mut ended = patience.delete(client, &mut left).await;
        if let (None, Some(mark)) = (&ended, sweep) {
            ended = patience.sweep(client, mark, &mut left).await;
        }
        let jobs_stay = ended.is_some();
        if ended.is_none() {
            ended = patience.set_back(client, &mut limits).await;
        }
        let why = ended?;
        let mut what = Vec::new();
        if jobs_stay {
            what.push(format!("at least {} of {count} jobs (label from=loadtest)", left.len()));
        }
        if !limits.is_empty() {
            let tenants: Vec<&str> = limits.iter().map(|(tenant, _)| tenant.as_str()).collect();
            what.push(format!("the limits of the tenants {}", tenants.join(", ")));
        }
        Some(format!("left behind on the node: {} ({why})", what.join(" and ")))
    }
}

/// When cleaning ends without having come to its end.
struct Patience<'a> {
    stop: &'a Stop,
    times: u32,
    begin: Instant,
}

impl Patience<'_> {
    async fn ends(&self, since: Instant) -> String {
        tokio::select! {
            () = self.stop.times(self.times) => "somebody stopped it".to_owned(),
            () = sleep_until(since + NOTHING_GOES) => format!("the node does not do it for {} s", NOTHING_GOES.as_secs()),
            () = sleep_until(self.begin + LONGEST) => format!("it took longer than {} s", LONGEST.as_secs()),
        }
    }

    /// Deletes jobs; what is gone is taken out. Why it ended before.
    async fn delete(&self, client: &Client, jobs: &mut BTreeSet<JobId>) -> Option<String> {
        let mut next: Vec<JobId> = jobs.iter().copied().collect();
        // Neighbours are in one shard.
        next.sort_unstable_by_key(|job| mix(job.0));
        let (mut calls, mut progress) = (JoinSet::new(), Instant::now());
        while !jobs.is_empty() {
            while calls.len() < CALLS_IN_FLIGHT
                && let Some(job) = next.pop()
            {
                let client = client.clone();
                calls.spawn(async move {
                    let gone = is_gone(&client.job_delete(job, None).await);
                    if !gone {
                        sleep(RETRY_PAUSE).await;
                    }
                    (job, gone)
                });
            }
            tokio::select! {
                Some(done) = calls.join_next() => match done {
                    Ok((job, true)) => {
                        jobs.remove(&job);
                        progress = Instant::now();
                    }
                    Ok((job, false)) => next.push(job),
                    Err(error) => return Some(error.to_string()),
                },
                why = self.ends(progress) => return Some(why),
            }
        }
        None
    }

    /// Deletes what has the mark in its name, until nothing has.
    async fn sweep(&self, client: &Client, mark: &str, left: &mut BTreeSet<JobId>) -> Option<String> {
        let since = Instant::now();
        loop {
            let filter = JobFilter { text: Some(format!("/{mark}-")), page_size: Some(PAGE), ..JobFilter::default() };
            let page = tokio::select! {
                page = client.job_list(filter) => page,
                why = self.ends(since) => return Some(why),
            };
            match page {
                Ok(page) if page.items.is_empty() => return None,
                Ok(page) => left.extend(page.items.iter().map(|job| job.job_id)),
                Err(error) => return Some(error.to_string()),
            }
            if let Some(why) = self.delete(client, left).await {
                return Some(why);
            }
        }
    }

    /// Limits as they were; those that are so again are taken out.
    async fn set_back(&self, client: &Client, limits: &mut Vec<(String, Option<TenantBody>)>) -> Option<String> {
        while let Some((tenant, before)) = limits.last().cloned() {
            let since = Instant::now();
            let set = async {
                match before {
                    Some(before) => client.tenant_set(&tenant, before).await.map(drop),
                    None => no_tenant(client, &tenant).await,
                }
            };
            let set = tokio::select! {
                set = set => set,
                why = self.ends(since) => return Some(why),
            };
            if let Err(error) = set {
                return Some(error.to_string());
            }
            limits.pop();
        }
        None
    }
}

/// The tenant goes, or at least its limits: runs of its jobs may still be open.
async fn no_tenant(client: &Client, tenant: &str) -> Result<(), ClientError> {
    let deleted = client.tenant_delete(tenant, None).await;
    if is_gone(&deleted) { Ok(()) } else { client.tenant_set(tenant, TenantBody::default()).await.map(drop) }
}

fn is_gone(answer: &Result<(), ClientError>) -> bool {
    match answer {
        Ok(()) => true,
        Err(ClientError::Api(api)) => api.known() == ErrorCode::NotFound,
        Err(ClientError::Io { .. } | ClientError::Timeout { .. } | ClientError::Protocol(_)) => false,
    }
}
