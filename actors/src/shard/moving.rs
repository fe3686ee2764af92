//! A shard that is given to another node, or stays after all.

use super::Shard;
use crate::messages::PoolMsg;
use campanile_schema::{ids::Epoch, job::JobStatus};
use tokio::sync::oneshot;

impl Shard {
    /// Nothing new is decided; answered when all that was is durable.
    pub(super) fn stop(&mut self, port: oneshot::Sender<()>) {
        self.stopping = true;
        self.deps.shards.set_wake(self.id, i64::MAX);
        self.when_durable(move || {
            let _ = port.send(());
        });
    }

    /// It is ours, at this epoch.
    pub(super) fn serve(&mut self, epoch: Epoch) {
        self.epoch = epoch;
        self.stopping = false;
        self.post.stays(epoch);
        self.deps.pool.send(PoolMsg::ShardServed(self.id, epoch));
    }

    /// The actor ends: what the node counts of its jobs and runs goes.
    pub(super) fn hand_back(&mut self) {
        if self.deps.ended.is_over() {
            return;
        }
        let ids: Vec<_> = self.jobs.keys().copied().collect();
        for id in ids {
            let Some(job) = self.materialize(id) else { continue };
            metrics::gauge!("retry_queue_depth").decrement(crate::measure::retries(&job));
            if job.hot.status != JobStatus::Deleted {
                self.deps.tenants.count_jobs(&job.def.tenant, &job.def.name, -1);
            }
        }
        // Behind all that the shard ever sent there.
        self.deps.pool.send(PoolMsg::ShardGone(self.id));
    }
}
