//! Watching: which changes a caller may hear of, as they become durable.

use super::{Answer, Operations, access, invalid, labels};
use campanile_actors::changes::watch::Watch;
use campanile_schema::{
    operations::RunGet,
    rpc::calls::RunCall,
    view::RunGetBody,
    watch::{WatchJobs, WatchRuns},
};
use campanile_security::auth::Caller;

impl Operations {
    /// Runs as they change: of one run, a job, a tenant, or all that the caller may see.
    pub async fn run_watch(&self, caller: &Caller, body: WatchRuns) -> Answer<Watch> {
        let mut body = body;
        if body.run_id.is_some() && body.state.is_some() {
            return Err(invalid("state: a watch of one run tells all of its states; leave state out"));
        }
        body.tenant_id = access::scope(caller, body.tenant_id)?;
        check_labels(&mut body.labels)?;
        if let Some(run) = body.run_id {
            self.own_run(caller, run).await?;
        }
        if let Some(job) = body.job_id {
            self.own_job(caller, job).await?;
        }
        let watch = self.scheduler.watch((&body).into(), body.after.as_deref()).await?;
        // A run that is not there would be waited for without end.
        if let Some(run) = body.run_id {
            self.call::<RunGet>(caller, RunCall::new(run, RunGetBody::default())).await?;
        }
        Ok(watch)
    }

    /// Definitions of jobs as they change.
    pub async fn job_watch(&self, caller: &Caller, body: WatchJobs) -> Answer<Watch> {
        let mut body = body;
        body.tenant_id = access::scope(caller, body.tenant_id)?;
        check_labels(&mut body.labels)?;
        if let Some(job) = body.job_id {
            self.own_job(caller, job).await?;
        }
        self.scheduler.watch((&body).into(), body.after.as_deref()).await
    }
}

fn check_labels(selector: &mut Option<String>) -> Answer<()> {
    if selector.as_ref().is_some_and(String::is_empty) {
        *selector = None;
    }
    selector.iter().try_for_each(|selector| labels::check(selector).map_err(invalid))
}
