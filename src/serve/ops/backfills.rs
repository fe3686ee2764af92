//! Backfills and replays of jobs: create, read, pause, resume, cancel.

use super::{Answer, Operations};
use campanile_schema::{
    operations::{
        BackfillCancel, BackfillGet, BackfillPause, BackfillResume, Handle, JobBackfill, JobBackfillGet, JobReplay,
    },
    rpc::calls::{BackfillCall, JobCall, NoBody},
    view::{
        ReasonBody,
        backfill::{BackfillBody, BackfillView, ReplayBody},
    },
};
use campanile_security::auth::Caller;

impl Handle<JobBackfill> for Operations {
    async fn handle(&self, _: &Caller, request: JobCall<BackfillBody>) -> Answer<BackfillView> {
        let (job, body) = request.parts()?;
        self.scheduler.backfill(job, body).await
    }
}

impl Handle<JobReplay> for Operations {
    async fn handle(&self, _: &Caller, request: JobCall<ReplayBody>) -> Answer<BackfillView> {
        let (job, body) = request.parts()?;
        self.scheduler.replay(job, body).await
    }
}

impl Handle<JobBackfillGet> for Operations {
    async fn handle(&self, _: &Caller, request: JobCall<NoBody>) -> Answer<BackfillView> {
        let (job, NoBody {}) = request.parts()?;
        self.scheduler.backfill_of_job(job).await
    }
}

impl Handle<BackfillGet> for Operations {
    async fn handle(&self, _: &Caller, request: BackfillCall<NoBody>) -> Answer<BackfillView> {
        let (id, NoBody {}) = request.parts()?;
        self.scheduler.backfill_by_id(id).await
    }
}

/// Asked for again, the same cancel goes on.
impl Handle<BackfillCancel> for Operations {
    async fn handle(&self, _: &Caller, request: BackfillCall<ReasonBody>) -> Answer<BackfillView> {
        let (id, body) = request.parts()?;
        self.scheduler.cancel_backfill(id, body.reason).await
    }
}

impl Handle<BackfillPause> for Operations {
    async fn handle(&self, _: &Caller, request: BackfillCall<ReasonBody>) -> Answer<BackfillView> {
        let (id, body) = request.parts()?;
        self.scheduler.pause_backfill(id, body.reason).await
    }
}

impl Handle<BackfillResume> for Operations {
    async fn handle(&self, _: &Caller, request: BackfillCall<ReasonBody>) -> Answer<BackfillView> {
        let (id, body) = request.parts()?;
        self.scheduler.resume_backfill(id, body.reason).await
    }
}
