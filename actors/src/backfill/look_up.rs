//! Looks up runs of instants, some side by side.

use campanile_core::outbox::keys;
use campanile_ports::{StoreError, Views};
use campanile_schema::{
    ids::{JobId, RunId},
    limits::BACKFILL_LOOK_UPS,
    record::{RunRecord, RunState},
};
use std::{future::Future, sync::Arc};
use tokio::task::JoinSet;

/// The run that a backfill has made for each of these instants.
pub(super) async fn runs_of_backfills(
    views: &Arc<dyn Views>,
    job: JobId,
    instants: &[i64],
) -> Result<Vec<Option<RunId>>, StoreError> {
    each(instants, |at_ms| {
        let views = views.clone();
        async move { views.find_key(job, &keys::backfill(at_ms)).await }
    })
    .await
}

pub(super) fn has_failed(record: &RunRecord) -> bool {
    matches!(record.state, RunState::Failed | RunState::Timeout)
}

/// The records of these runs.
pub(super) async fn records(
    views: &Arc<dyn Views>,
    runs: &[Option<RunId>],
) -> Result<Vec<Option<RunRecord>>, StoreError> {
    each(runs, |run| {
        let views = views.clone();
        async move {
            match run {
                Some(run) => views.run(run).await,
                None => Ok(None),
            }
        }
    })
    .await
}

/// The answers in the order of the questions.
async fn each<Q, A, F>(asked: &[Q], ask: impl Fn(Q) -> F) -> Result<Vec<Option<A>>, StoreError>
where
    Q: Copy,
    A: Send + 'static,
    F: Future<Output = Result<Option<A>, StoreError>> + Send + 'static,
{
    let mut found: Vec<Option<A>> = Vec::with_capacity(asked.len());
    for some in asked.chunks(BACKFILL_LOOK_UPS) {
        let begin = found.len();
        found.extend(some.iter().map(|_| None));
        let mut asking = JoinSet::new();
        for (place, question) in some.iter().enumerate() {
            let answer = ask(*question);
            asking.spawn(async move { (place, answer.await) });
        }
        while let Some(answer) = asking.join_next().await {
            let (place, answer) =
                answer.map_err(|error| StoreError::Unavailable(format!("a look-up broke off: {error}")))?;
            found[begin + place] = answer?;
        }
    }
    Ok(found)
}
