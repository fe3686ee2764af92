//! Reads the past of a job for a backfill: rows of the ledger, keys and records of runs. What they mean is decided in the core
//! (`campanile_core::backfill`); a page of it is handed to the job, which starts the runs.
//!
//! Nobody waits for it in a shard's turn. A page is read when the view shows all that the shard had decided when it asked for the page, so
//! a run that a backfill made before is found by its key.

mod look_up;
mod page;
mod plan;

pub use page::ReadPage;
pub(crate) use page::read_page;
pub(crate) use plan::plan;

use campanile_core::backfill::{Past, Wish};
use campanile_ports::{StoreError, Views};
use campanile_schema::{
    ids::{JobId, ShardId},
    limits::{BACKFILL_LOOK_MS, BACKFILL_SHOWN_MS},
    stored::backfill::BackfillMode,
};
use std::{sync::Arc, time::Duration};

/// What is looked at, and for what.
#[derive(Clone)]
pub(crate) struct PastOf {
    pub views: Arc<dyn Views>,
    pub job: JobId,
    pub past: Past,
    pub wish: Wish,
}

impl PastOf {
    pub fn mode(&self) -> BackfillMode {
        self.wish.mode
    }
}

/// Waits until the view shows so many frames of a shard.
pub(crate) async fn shown(views: &dyn Views, shard: ShardId, seq: u64) -> Result<(), StoreError> {
    let until = tokio::time::Instant::now() + Duration::from_millis(BACKFILL_SHOWN_MS);
    while views.applied(shard).await? < seq {
        if tokio::time::Instant::now() >= until {
            let why = format!("the read model does not show yet what shard {shard} has decided; try again");
            return Err(StoreError::Unavailable(why));
        }
        tokio::time::sleep(Duration::from_millis(BACKFILL_LOOK_MS)).await;
    }
    Ok(())
}
