//! Bulk operations: one call that changes several jobs, or a run that a filter finds.
//!
//! The checker is told of a call for each job or run. It is sent when the operation is asked for, and acknowledged when the operation
//! says that it has done all of them. So whatever holds for a pause of one job holds for a pause of many.

use super::{CallOutcome, Caller, PATIENCE, RETRY_PAUSE, effect, is_later};
use crate::run_dir::lines::{CallEvent, CallerLine, Verb};
use campanile_client::{Client, ClientError};
use campanile_schema::{
    error::ErrorCode,
    ids::{BulkId, JobId},
    stored::bulk::{BulkAction, BulkState},
    time::Timestamp,
    view::{
        RunView, TenantPageBody,
        bulk::{BulkBody, BulkFilter, BulkView},
    },
};
use std::future::Future;
use tokio::time::{Instant, sleep};

/// Between two looks at an operation.
const LOOK: std::time::Duration = std::time::Duration::from_millis(100);
/// Operations that are looked through for one that goes on, count.
const LISTED: usize = 50;
/// What became of a call whose operation found nothing.
const NOTHING: &str = "NOTHING_FOUND";

fn of_label(action: BulkAction, label: &str) -> BulkBody {
    let filter = BulkFilter { labels: Some(label.to_owned()), ..BulkFilter::default() };
    BulkBody { action, filter, tenant_id: Some("default".to_owned()), ..BulkBody::default() }
}

fn has_ended(bulk: &BulkView) -> bool {
    bulk.state.is_none_or(BulkState::is_final)
}

impl Caller {
    /// Pauses the jobs, which are all that have the label.
    pub async fn bulk_pause(&self, jobs: &[JobId], label: &str) -> CallOutcome<BulkId> {
        let body = of_label(BulkAction::Pause, label);
        self.of_jobs(Verb::BulkPause, jobs, |client| {
            let body = body.clone();
            async move { client.bulk_create(body).await }
        })
        .await
    }

    pub async fn bulk_resume(&self, jobs: &[JobId], label: &str) -> CallOutcome<BulkId> {
        let body = of_label(BulkAction::Resume, label);
        self.of_jobs(Verb::BulkResume, jobs, |client| {
            let body = body.clone();
            async move { client.bulk_create(body).await }
        })
        .await
    }

    /// Resumes the jobs by taking back the operation that has paused them.
    pub async fn bulk_undo(&self, jobs: &[JobId], paused: BulkId) -> CallOutcome<BulkId> {
        self.of_jobs(Verb::BulkResume, jobs, |client| async move { client.bulk_undo(paused, None).await }).await
    }

    /// Runs a failed run again, as what a filter finds that only this run fits.
    pub async fn bulk_retry(&self, run: &RunView, ended_at: Timestamp) -> CallOutcome<()> {
        let filter =
            BulkFilter { job_id: Some(run.job_id), from: Some(ended_at), to: Some(ended_at), ..BulkFilter::default() };
        let body = BulkBody {
            action: BulkAction::Retry,
            filter,
            tenant_id: Some("default".to_owned()),
            ..BulkBody::default()
        };
        let line = [CallerLine { run: Some(run.run_id), ..self.about(Verb::BulkRetry, run.job_id) }];
        let begun = self.begun(&line, |client| {
            let body = body.clone();
            async move { client.bulk_create(body).await }
        });
        let (bulk, open) = match begun.await {
            CallOutcome::Done(begun) => begun,
            CallOutcome::Refused(code) => return CallOutcome::Refused(code),
            CallOutcome::Open => return CallOutcome::Open,
        };
        match self.ended(bulk).await {
            Some(bulk) if bulk.done > 0 => {
                let told = CallerLine { generation: Some(run.generation + 1), ..line[0].clone() };
                self.note(CallEvent::Ack, &told);
                CallOutcome::Done(())
            }
            // The read model did not show it yet.
            Some(bulk) if bulk.state == Some(BulkState::Done) && !open => {
                self.note(CallEvent::Refused, &CallerLine { code: Some(NOTHING.to_owned()), ..line[0].clone() });
                CallOutcome::Refused(ErrorCode::NotFound)
            }
            Some(_) | None => self.unknown(&line, "NOT_ENDED"),
        }
    }

    async fn of_jobs<F>(&self, verb: Verb, jobs: &[JobId], call: impl Fn(Client) -> F) -> CallOutcome<BulkId>
    where
        F: Future<Output = Result<BulkView, ClientError>>,
    {
        let lines: Vec<CallerLine> = jobs.iter().map(|job| self.about(verb, *job)).collect();
        let (bulk, _) = match self.begun(&lines, call).await {
            CallOutcome::Done(begun) => begun,
            CallOutcome::Refused(code) => return CallOutcome::Refused(code),
            CallOutcome::Open => return CallOutcome::Open,
        };
        // One of whose beginning nobody was told goes on beside it.
        self.others_ended().await;
        match self.ended(bulk).await {
            Some(bulk) if bulk.state == Some(BulkState::Done) && changed_all(&bulk, jobs.len()) => {
                lines.iter().for_each(|line| self.note(CallEvent::Ack, line));
                bulk.bulk_id.map_or(CallOutcome::Open, CallOutcome::Done)
            }
            Some(_) | None => self.unknown(&lines, "NOT_ALL"),
        }
    }

    fn unknown<T>(&self, lines: &[CallerLine], why: &str) -> CallOutcome<T> {
        let code = Some(why.to_owned());
        lines.iter().for_each(|line| self.note(CallEvent::Unknown, &CallerLine { code: code.clone(), ..line.clone() }));
        CallOutcome::Open
    }

    /// The operation when it has been accepted, and whether one may have begun of which nobody was told.
    async fn begun<F>(&self, lines: &[CallerLine], call: impl Fn(Client) -> F) -> CallOutcome<(BulkView, bool)>
    where
        F: Future<Output = Result<BulkView, ClientError>>,
    {
        let deadline = Instant::now() + PATIENCE;
        let mut open = false;
        loop {
            lines.iter().for_each(|line| self.note(CallEvent::Sent, line));
            match self.once(&call).await {
                Ok(bulk) => return CallOutcome::Done((bulk, open)),
                Err(error) => match effect(&error) {
                    Ok(code) if is_later(code) && Instant::now() < deadline => {}
                    Ok(code) => {
                        let text = Some(code.as_str().to_owned());
                        for line in lines {
                            self.note(CallEvent::Refused, &CallerLine { code: text.clone(), ..line.clone() });
                        }
                        return if open { CallOutcome::Open } else { CallOutcome::Refused(code) };
                    }
                    Err(why) => {
                        open = true;
                        let outcome = self.unknown(lines, &why);
                        if Instant::now() >= deadline {
                            return outcome;
                        }
                    }
                },
            }
            sleep(RETRY_PAUSE).await;
        }
    }

    /// The operation when it has ended. None: not in time, or the node has forgotten it.
    async fn ended(&self, bulk: BulkView) -> Option<BulkView> {
        let (deadline, id) = (Instant::now() + PATIENCE, bulk.bulk_id?);
        while Instant::now() < deadline {
            match self.client.bulk_get(id).await {
                Ok(shown) if has_ended(&shown) => return Some(shown),
                Err(ClientError::Api(api)) if api.known() == ErrorCode::NotFound => return None,
                Ok(_) | Err(_) => sleep(LOOK).await,
            }
        }
        None
    }

    /// Waits for every operation that goes on now.
    async fn others_ended(&self) {
        let deadline = Instant::now() + PATIENCE;
        let body = TenantPageBody {
            tenant_id: Some("default".to_owned()),
            page_size: Some(LISTED),
            ..TenantPageBody::default()
        };
        let listed = loop {
            match self.client.bulk_list(body.clone()).await {
                Ok(page) => break page.items,
                Err(_) if Instant::now() >= deadline => return,
                Err(_) => sleep(LOOK).await,
            }
        };
        for bulk in listed.into_iter().filter(|bulk| !has_ended(bulk)) {
            self.ended(bulk).await;
        }
    }
}

/// Each of them, however it was before.
fn changed_all(bulk: &BulkView, count: usize) -> bool {
    // An undo leaves alone what its operation has found as it should be: those are not resumed.
    let unchanged = if bulk.undo_of.is_some() { 0 } else { bulk.unchanged };
    bulk.failed == 0 && bulk.done + unchanged == count as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_counts_only_with_every_job_and_an_undo_only_with_those_that_it_has_changed() {
        let bulk = BulkView { done: 5, unchanged: 3, ..BulkView::default() };
        assert!(changed_all(&bulk, 8));
        assert!(!changed_all(&bulk, 9));
        assert!(!changed_all(&BulkView { failed: 1, ..bulk.clone() }, 8));
        let undo = BulkView { undo_of: Some(BulkId(7)), ..bulk };
        assert!(!changed_all(&undo, 8));
        assert!(changed_all(&BulkView { done: 8, unchanged: 0, ..undo }, 8));
    }
}
