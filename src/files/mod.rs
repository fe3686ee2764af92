//! A directory of manifests and crontabs that a node keeps its jobs by.
//!
//! **What.** [`watch`] looks at the directory every few seconds. When something has changed, and then stayed as it is for one look,
//! its files are read and applied as one set, with the same meaning as `campanile apply`.
//!
//! **Rules.** `.yaml`, `.yml` and `.json` are manifests; `.cron`, `.crontab` and a file named `crontab` are crontabs of the node's
//! own user; hidden and other files are passed over, and so are directories within it. A file that cannot be read or understood
//! changes nothing: its jobs stay as they are, the other files count. Jobs whose file or line is gone are paused, deleted or left, as
//! `files.gone` says; a paused one that comes back fires again. When the directory itself cannot be read nothing is gone.
//!
//! Each job has the labels `apply.owner` (`files.owner`) and `apply.file`. Everything rests on what jobs there are, nothing on what
//! this node remembers: one that was killed in the middle goes on at its next start.
//!
//! **Never:** it writes no file, and does not look at jobs without its label.
//!
//! Files: `look` the directory as it is; `read` files to jobs.

mod look;
mod read;

use campanile_schema::{
    apply::{ApplyOutcome, ManifestProblem},
    error::{ApiError, ErrorCode},
    time::Timestamp,
};
use campanile_security::auth::{Caller, Role};
use campanile_serve::ops::{Operations, apply::GonePolicy};
use std::{path::PathBuf, time::Duration};
use tokio::sync::watch::Receiver;

/// The directory, and what is done with it. From `[files]` of the configuration.
#[derive(Clone, Debug)]
pub struct FilesOptions {
    pub dir: PathBuf,
    /// Whose jobs they are: the label `apply.owner`.
    pub owner: String,
    /// Of manifests without a namespace, and of crontabs.
    pub tenant: String,
    /// Pool of crontab lines.
    pub pool: String,
    pub gone: WhenGone,
    pub scan: Duration,
}

/// What becomes of a job whose file, or whose line, is no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenGone {
    Pause,
    Delete,
    Keep,
}

impl From<WhenGone> for GonePolicy {
    fn from(when: WhenGone) -> Self {
        match when {
            WhenGone::Pause => Self::Pause,
            WhenGone::Delete => Self::Delete,
            WhenGone::Keep => Self::Stay,
        }
    }
}

/// Until the node stops.
pub(crate) async fn watch(ops: Operations, options: FilesOptions, mut stop: Receiver<bool>) {
    let caller = Caller { name: "files".to_owned(), role: Role::Operator, tenant: None, pools: Vec::new() };
    let (mut seen, mut applied) = (None, None);
    let mut ticks = tokio::time::interval(options.scan);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stop.wait_for(|stopped| *stopped) => return,
            _ = ticks.tick() => {}
        }
        let dir = options.dir.clone();
        let looked = match tokio::task::spawn_blocking(move || look::look(&dir)).await {
            Ok(Ok(looked)) => looked,
            Ok(Err(error)) => {
                ops.files.unreadable(&options.dir, &error.to_string());
                (seen, applied) = (None, None);
                continue;
            }
            Err(error) => {
                ops.files.unreadable(&options.dir, &error.to_string());
                continue;
            }
        };
        // What is being written is left alone until it is done.
        let is_quiet = seen.is_none() || seen.as_ref() == Some(&looked);
        seen = Some(looked.clone());
        if !is_quiet || applied.as_ref() == Some(&looked) {
            continue;
        }
        let scanned = (options.clone(), looked.clone(), stop.clone());
        let read = move || read::read(&scanned.0, &scanned.1, &|| *scanned.2.borrow());
        let Ok(files) = tokio::task::spawn_blocking(read).await else {
            continue;
        };
        if *stop.borrow() {
            return;
        }
        match apply(&ops, &caller, &options, files).await {
            Ok(()) => applied = Some(looked),
            // Tried again at the next look.
            Err(error) => ops.files.failed(&options.dir, &error.to_string()),
        }
    }
}

/// Applies what can be understood. A file in which something is wrong that only shows beside the jobs is put aside as well.
async fn apply(
    ops: &Operations,
    caller: &Caller,
    options: &FilesOptions,
    mut files: read::Files,
) -> Result<(), ApiError> {
    let planned = loop {
        match ops.plan_of(caller, files.set(options)).await {
            Ok(planned) => break planned,
            Err(error) => {
                let found = error.detail.as_ref().map(|detail| detail["errors"].clone());
                let problems: Vec<ManifestProblem> =
                    found.and_then(|found| serde_json::from_value(found).ok()).unwrap_or_default();
                // Every round puts at least one more file aside.
                if !files.put_aside(problems) {
                    return Err(error);
                }
            }
        }
    };
    let done = ops.carried_out(caller, planned).await?;
    let failed: Vec<String> = done
        .items
        .iter()
        .filter(|item| item.outcome != Some(ApplyOutcome::Done))
        .map(|item| {
            let why = item
                .error
                .as_ref()
                .map_or_else(|| "not begun".to_owned(), |error| format!("{}: {}", error.code, error.message));
            format!("{}/{}: {why}", item.tenant_id, item.name)
        })
        .collect();
    let changed = done.created + done.changed + done.deleted;
    metrics::counter!("campanile_files_jobs_changed_total").increment(changed);
    if changed > 0 {
        ops.note_files(caller, &options.dir.display().to_string(), &done).await;
        tracing::info!(
            dir = %options.dir.display(), created = done.created, changed = done.changed, deleted = done.deleted,
            unchanged = done.unchanged, "files applied"
        );
    }
    if !failed.is_empty() {
        return Err(ApiError::new(ErrorCode::IllegalState, failed.join("; ")));
    }
    let now = ops.scheduler.now_ms().ok().map(Timestamp);
    ops.files.applied(&options.dir, &files.broken, (files.count, files.jobs()), now);
    Ok(())
}
