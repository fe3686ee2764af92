//! What one connection watches: a task for each watch writes its changes as notifications, the next ones when those before are
//! written. A peer that reads slowly so loses changes and is told how many; nothing piles up here.

use super::writer::Outgoing;
use crate::ops::Operations;
use campanile_actors::changes::{
    ChangedItem,
    watch::{Batch, Watch},
};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    limits::WATCHES_PER_CONNECTION,
    rpc::{
        calls::NoBody,
        codec::Params,
        encode::{self, EncodeError},
        method as m,
    },
    watch::{Changed, StopWatch, WatchEnded, WatchJobs, WatchRuns, Watching},
};
use campanile_security::auth::Caller;
use parking_lot::{Mutex, MutexGuard};
use std::{collections::HashMap, sync::Arc};
use tokio::{
    sync::{Semaphore, mpsc},
    task::AbortHandle,
};

/// Under way on one connection; None: it is being opened.
type Open = HashMap<u32, Option<AbortHandle>>;

/// See the module's text. Its watches end with it.
pub(super) struct Watches {
    open: Arc<Mutex<Open>>,
    last: u32,
}

/// Of what a watch tells.
#[derive(Clone, Copy)]
enum WatchKind {
    Runs,
    Jobs,
}

pub(super) fn is_watching(method: &str) -> bool {
    matches!(method, m::RUN_WATCH | m::JOB_WATCH | m::WATCH_STOP)
}

fn locked(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock()
}

impl Watches {
    pub fn new() -> Self {
        Self { open: Arc::default(), last: 0 }
    }

    /// A number for a new watch, and its place among those of the connection.
    pub fn reserve(&mut self) -> Result<Reserved, ApiError> {
        let mut open = locked(&self.open);
        if open.len() >= WATCHES_PER_CONNECTION {
            let message =
                format!("this connection has {WATCHES_PER_CONNECTION} watches; stop one with {}", m::WATCH_STOP);
            return Err(ApiError::new(ErrorCode::IllegalState, message));
        }
        self.last += 1;
        open.insert(self.last, None);
        drop(open);
        Ok(Reserved { id: self.last, open: self.open.clone(), kept: false })
    }

    pub fn stop(&self, params: Params<'_>) -> Result<NoBody, ApiError> {
        let StopWatch { watch_id } = params.read()?;
        match locked(&self.open).remove(&watch_id) {
            Some(task) => {
                task.iter().for_each(AbortHandle::abort);
                Ok(NoBody {})
            }
            None => Err(ApiError::new(ErrorCode::NotFound, format!("there is no watch {watch_id} on this connection"))),
        }
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        let mut open = locked(&self.open);
        open.values().flatten().for_each(AbortHandle::abort);
        open.clear();
    }
}

/// A place that is given back unless a watch begins in it.
pub(super) struct Reserved {
    id: u32,
    open: Arc<Mutex<Open>>,
    kept: bool,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if !self.kept {
            locked(&self.open).remove(&self.id);
        }
    }
}

/// What a request to watch asks for, opened.
pub(super) struct Opened {
    reserved: Reserved,
    watch: Watch,
    kind: WatchKind,
}

pub(super) async fn open(
    ops: &Operations,
    who: &Caller,
    method: &str,
    params: Params<'_>,
    reserved: Reserved,
) -> Result<Opened, ApiError> {
    let (watch, kind) = if method == m::RUN_WATCH {
        (ops.run_watch(who, super::calls::read::<WatchRuns>(params)?).await?, WatchKind::Runs)
    } else {
        (ops.job_watch(who, super::calls::read::<WatchJobs>(params)?).await?, WatchKind::Jobs)
    };
    Ok(Opened { reserved, watch, kind })
}

impl Opened {
    pub fn answer(&self) -> Watching {
        Watching { watch_id: self.reserved.id, cursor: self.watch.cursor() }
    }

    /// Tells from now on. After the answer was handed over, so that the number is known before it is used.
    pub fn begin(mut self, out: mpsc::Sender<Outgoing>) {
        let mut open = locked(&self.reserved.open);
        // Stopped, or the connection ended, while it was opened.
        let Some(place) = open.get_mut(&self.reserved.id) else { return };
        let (id, kind, among) = (self.reserved.id, self.kind, self.reserved.open.clone());
        let mut watch = self.watch;
        let task = tokio::spawn(async move {
            if let Some(ended) = tell(id, kind, &mut watch, &out).await {
                let mut bytes = Vec::new();
                if encode::notification(&mut bytes, m::WATCH_ENDED, &ended).is_ok() {
                    let _ = out.send(Outgoing::Frame { bytes, permit: None }).await;
                }
            }
            locked(&among).remove(&id);
        });
        *place = Some(task.abort_handle());
        drop(open);
        self.reserved.kept = true;
    }
}

/// Tells until the watch ends; None: the connection is gone.
async fn tell(id: u32, kind: WatchKind, watch: &mut Watch, out: &mpsc::Sender<Outgoing>) -> Option<WatchEnded> {
    let room = Arc::new(Semaphore::new(1));
    loop {
        // Back when the notification before is written.
        let permit = room.clone().acquire_owned().await.ok();
        let batch = match watch.next().await {
            Ok(Some(batch)) => batch,
            Ok(None) => return Some(WatchEnded { watch_id: id, code: None, message: None }),
            Err(error) => return Some(failed(id, &error)),
        };
        let mut bytes = Vec::new();
        if let Err(error) = notification(&mut bytes, id, kind, &batch) {
            return Some(failed(id, &error.into()));
        }
        if out.send(Outgoing::Frame { bytes, permit }).await.is_err() {
            return None;
        }
    }
}

fn failed(watch_id: u32, error: &ApiError) -> WatchEnded {
    WatchEnded { watch_id, code: Some(error.code.clone()), message: Some(error.message.clone()) }
}

fn notification(out: &mut Vec<u8>, watch_id: u32, kind: WatchKind, batch: &Batch) -> Result<(), EncodeError> {
    let (cursor, dropped) = (batch.cursor.clone(), batch.dropped);
    match kind {
        WatchKind::Runs => {
            let items = batch.items.iter().filter_map(|change| match &change.what {
                ChangedItem::Run(run) => Some(run),
                ChangedItem::Job(_) => None,
            });
            encode::notification(out, m::RUN_CHANGED, &Changed { watch_id, items: items.collect(), cursor, dropped })
        }
        WatchKind::Jobs => {
            let items = batch.items.iter().filter_map(|change| match &change.what {
                ChangedItem::Job(job) => Some(job),
                ChangedItem::Run(_) => None,
            });
            encode::notification(out, m::JOB_CHANGED, &Changed { watch_id, items: items.collect(), cursor, dropped })
        }
    }
}
