//! Many definitions at once: what would be done with them (`job.plan`), and doing it (`job.apply`). Files, one body of HTTP or RPC,
//! and the directory that a node reads all come here.
//!
//! Nothing is changed while anything is wrong with any manifest. What is changed goes through the same operations as single
//! calls, so that permissions, limits and the audit log are theirs. Jobs do not depend on each other: when one is refused in the
//! middle, that is told with it, and applying the same again does what is left.
//!
//! Files: `gather` a body to jobs, with all that is wrong; `plan` jobs beside those that exist; `forecast` what a plan means for fires,
//! minutes and limits; `carry` a plan carried out.

mod carry;
mod forecast;
mod gather;
mod plan;

pub use gather::DesiredJob;
pub use plan::{GonePolicy, Planned, Set};

use super::{Answer, Operations, invalid};
use campanile_schema::{
    apply::{AppliedView, ApplyBody, PlanView},
    error::{ApiError, ErrorCode},
    operations::{Handle, JobApply, JobPlan},
};
use campanile_security::auth::Caller;

/// Label with the one whose jobs these are.
pub const LABEL_OWNER: &str = "apply.owner";
/// Label with the file of a node's directory that a job comes from.
pub const LABEL_FILE: &str = "apply.file";
/// Label of a job that was paused because its file, or its line, is gone.
pub const LABEL_GONE: &str = "apply.gone";
pub use campanile_jobfiles::LABELS;

/// What `job.apply` would do with the same body. Changes nothing.
impl Handle<JobPlan> for Operations {
    async fn handle(&self, caller: &Caller, body: ApplyBody) -> Answer<PlanView> {
        let wants_forecast = body.forecast;
        let mut planned = self.planned(caller, body).await?;
        if !wants_forecast {
            return Ok(planned.view());
        }
        let turns = std::mem::take(&mut planned.turns);
        let items = planned.items.iter_mut().map(|(item, _)| item).collect();
        let forecast = forecast::of(self, caller, items, turns).await?;
        Ok(PlanView { forecast: Some(forecast), ..planned.view() })
    }
}

/// Brings the jobs to what their manifests say.
impl Handle<JobApply> for Operations {
    async fn handle(&self, caller: &Caller, body: ApplyBody) -> Answer<AppliedView> {
        let plan_id = body.plan_id.clone();
        let planned = self.planned(caller, body).await?;
        if let Some(wanted) = plan_id
            && wanted != planned.id()
        {
            let message = "planId: something else would be done by now than this plan says: make a new plan";
            return Err(ApiError::new(ErrorCode::StaleVersion, message));
        }
        self.carried_out(caller, planned).await
    }
}

impl Operations {
    /// Begun is carried on, whether or not the caller waits for the answer.
    pub async fn carried_out(&self, caller: &Caller, planned: Planned) -> Answer<AppliedView> {
        let (ops, caller) = (self.clone(), caller.clone());
        let carrying = tokio::spawn(async move { carry::out(&ops, &caller, planned).await });
        carrying.await.map_err(|_| ApiError::new(ErrorCode::Internal, "the apply broke off; apply again to go on"))
    }

    async fn planned(&self, caller: &Caller, body: ApplyBody) -> Answer<Planned> {
        let who = caller.clone();
        let set = self.parsers.run(move |go_on| gather::gather(&who, body, &|| go_on.now())).await??;
        self.plan_of(caller, set).await
    }

    /// Compares with what there is. The error has everything that is wrong.
    pub async fn plan_of(&self, caller: &Caller, set: Set) -> Answer<Planned> {
        plan::plan(self, caller, set).await
    }
}

fn check_owner(owner: &str) -> Answer<()> {
    campanile_core::spec::check_tenant("owner", owner).map_err(|why| invalid(why.message))
}
