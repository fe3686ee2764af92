//! What people do beside creating and triggering: edits, decisions about runs and dead letters, pauses of tenants and of the system.

use super::{CallOutcome, Caller, PATIENCE, RETRY_PAUSE};
use crate::run_dir::lines::{BackfillLine, CallEvent, CallerLine, Verb};
use campanile_client::{Client, ClientError};
use campanile_schema::{
    ids::{BackfillId, JobId, RunId},
    job::JobSpec,
    time::Timestamp,
    view::{ConfirmBody, ConfirmDecision, RetryBody, RunView, Spread, backfill::BackfillBody},
};
use std::{future::Future, time::Duration};
use tokio::time::{Instant, sleep};

/// Why people do what they do here, as the node writes it down.
const WHY: Option<&str> = Some("loadtest");

/// A pause is asked for once: repeated until a shard that nobody serves holds it too, it would keep all others paused meanwhile.
const ONCE: Duration = Duration::ZERO;

fn again(force: bool) -> RetryBody {
    RetryBody { reason: WHY.map(str::to_owned), force }
}

/// The run as the answer shows it.
fn shown(run: &RunView, line: CallerLine) -> CallerLine {
    CallerLine { generation: Some(run.generation), ..line }
}

impl Caller {
    fn about_run(&self, verb: Verb, job: JobId, run: RunId) -> CallerLine {
        CallerLine { run: Some(run), ..self.about(verb, job) }
    }

    /// Replaces the job's specification; refused when somebody else has changed the job since.
    pub async fn edit(&self, job: JobId, spec: JobSpec) -> CallOutcome<()> {
        let Ok(known) = self.client.job_get(job).await else { return CallOutcome::Open };
        let line = CallerLine { spec: Some(spec.clone()), ..self.about(Verb::Edit, job) };
        let edit = |client: Client| {
            let spec = spec.clone();
            async move { client.job_replace(job, known.version, spec).await.map(drop) }
        };
        self.ask(&line, true, |(), line| line, edit).await
    }

    /// A person's word on a run of a job that is not idempotent.
    pub async fn confirm(&self, job: JobId, run: RunId, decision: ConfirmDecision) -> CallOutcome<()> {
        let line = CallerLine { decision: Some(decision), ..self.about_run(Verb::Confirm, job, run) };
        let confirm = |client: Client| async move {
            client.run_confirm(run, ConfirmBody { decision, reason: WHY.map(str::to_owned) }).await
        };
        self.of_run(&line, confirm).await
    }

    pub async fn cancel(&self, job: JobId, run: RunId) -> CallOutcome<()> {
        let line = self.about_run(Verb::Cancel, job, run);
        self.of_run(&line, |client| async move { client.run_cancel(run, WHY).await }).await
    }

    pub async fn retry(&self, job: JobId, run: RunId) -> CallOutcome<()> {
        let line = self.about_run(Verb::Retry, job, run);
        self.of_run(&line, |client| async move { client.run_retry(run, again(false)).await }).await
    }

    /// Also where what the run did was undone.
    pub async fn retry_undone(&self, job: JobId, run: RunId) -> CallOutcome<()> {
        let line = self.about_run(Verb::Retry, job, run);
        self.of_run(&line, |client| async move { client.run_retry(run, again(true)).await }).await
    }

    pub async fn redrive(&self, job: JobId, run: RunId) -> CallOutcome<()> {
        let line = self.about_run(Verb::Redrive, job, run);
        self.of_run(&line, |client| async move { client.dlq_redrive(run, again(false)).await }).await
    }

    pub async fn discard(&self, job: JobId, run: RunId) -> CallOutcome<()> {
        let line = self.about_run(Verb::Discard, job, run);
        self.ask(&line, true, |(), line| line, |client| async move { client.dlq_discard(run, WHY).await }).await
    }

    async fn of_run<F>(&self, line: &CallerLine, call: impl Fn(Client) -> F) -> CallOutcome<()>
    where
        F: Future<Output = Result<RunView, ClientError>>,
    {
        match self.ask(line, true, shown, call).await {
            CallOutcome::Done(_) => CallOutcome::Done(()),
            CallOutcome::Refused(code) => CallOutcome::Refused(code),
            CallOutcome::Open => CallOutcome::Open,
        }
    }

    /// Runs the instants of a stretch that made no run. `line.id` is of no matter.
    pub async fn backfill(&self, job: JobId, line: BackfillLine) -> CallOutcome<BackfillId> {
        let asked = CallerLine { backfill: Some(line), ..self.about(Verb::Backfill, job) };
        let body = BackfillBody {
            from: Timestamp(line.from_ms),
            to: Timestamp(line.to_ms),
            parallelism: Some(line.parallelism),
            mode: Some(line.mode),
            reason: WHY.map(str::to_owned),
            ..BackfillBody::default()
        };
        let create = |client: Client| {
            let body = body.clone();
            async move {
                let made = client.job_backfill(job, body).await?;
                made.backfill_id.ok_or_else(|| ClientError::Protocol("a backfill without an id".to_owned()))
            }
        };
        let told = |id: &BackfillId, asked: CallerLine| CallerLine {
            backfill: asked.backfill.map(|line| BackfillLine { id: Some(id.0), ..line }),
            ..asked
        };
        self.ask(&asked, true, told, create).await
    }

    pub async fn cancel_backfill(&self, job: JobId, line: BackfillLine) -> CallOutcome<()> {
        let asked = CallerLine { backfill: Some(line), ..self.about(Verb::CancelBackfill, job) };
        let id = BackfillId(line.id.unwrap_or_default());
        let cancel = |client: Client| async move { client.backfill_cancel(id, WHY).await.map(drop) };
        self.ask(&asked, true, |(), line| line, cancel).await
    }

    pub async fn pause_tenant(&self, tenant: &str) -> CallOutcome<()> {
        let pause = |client: Client| async move { client.tenant_pause(tenant, WHY).await };
        self.spread(Verb::PauseTenant, Some(tenant), ONCE, pause).await
    }

    pub async fn resume_tenant(&self, tenant: &str) -> CallOutcome<()> {
        let resume = |client: Client| async move { client.tenant_resume(tenant, WHY).await };
        self.spread(Verb::ResumeTenant, Some(tenant), PATIENCE, resume).await
    }

    pub async fn pause_system(&self) -> CallOutcome<()> {
        self.spread(Verb::PauseSystem, None, ONCE, |client| async move { client.system_pause(WHY).await }).await
    }

    pub async fn resume_system(&self) -> CallOutcome<()> {
        self.spread(Verb::ResumeSystem, None, PATIENCE, |client| async move { client.system_resume(WHY).await }).await
    }

    /// A call that every shard must hear. It is done once none is outstanding; until then nobody knows where it holds, and it is
    /// said again while there is patience.
    async fn spread<F>(
        &self,
        verb: Verb,
        tenant: Option<&str>,
        patience: Duration,
        call: impl Fn(Client) -> F,
    ) -> CallOutcome<()>
    where
        F: Future<Output = Result<Spread, ClientError>>,
    {
        let line =
            CallerLine { tenant: tenant.map(str::to_owned), ..CallerLine::new(CallEvent::Sent, self.number(), verb) };
        let deadline = Instant::now() + patience;
        let mut open = false;
        loop {
            self.note(CallEvent::Sent, &line);
            match self.once(&call).await {
                Ok(answer) if answer.outstanding.is_empty() => {
                    self.note(CallEvent::Ack, &line);
                    return CallOutcome::Done(());
                }
                Ok(answer) => {
                    open = true;
                    let code = Some(format!("OUTSTANDING: {} shards", answer.outstanding.len()));
                    self.note(CallEvent::Unknown, &CallerLine { code, ..line.clone() });
                }
                Err(error) => match super::effect(&error) {
                    Ok(code) if super::is_later(code) => {
                        // Some shards may have heard it.
                        open = true;
                        let code = Some(code.as_str().to_owned());
                        self.note(CallEvent::Unknown, &CallerLine { code, ..line.clone() });
                    }
                    Ok(code) => {
                        let text = Some(code.as_str().to_owned());
                        self.note(CallEvent::Refused, &CallerLine { code: text, ..line.clone() });
                        return if open { CallOutcome::Open } else { CallOutcome::Refused(code) };
                    }
                    Err(why) => {
                        open = true;
                        self.note(CallEvent::Unknown, &CallerLine { code: Some(why), ..line.clone() });
                    }
                },
            }
            if Instant::now() >= deadline {
                return CallOutcome::Open;
            }
            sleep(RETRY_PAUSE).await;
        }
    }
}
