//! Asks the home shards of tenants what this node may use of their limits, wherever they are.

use super::{PoolDeps, PoolState};
use crate::{
    ask::ask,
    call_error::CallError,
    calls::ShardCall,
    lending::{REPORT_MS, TenantShare},
    messages::PoolMsg,
};
use campanile_schema::ids::ShardId;
use hashbrown::HashSet;
use ractor::ActorRef;
use tokio::sync::oneshot;

/// What is under way.
#[derive(Default)]
pub(super) struct Borrowing {
    /// Home shards that are being asked: one question at a time.
    asked: HashSet<ShardId>,
    /// The next round of all tenants, CLOCK_BOOTTIME ms.
    next_round_ms: i64,
    /// Shards that are to be another node's as soon as their runs are counted.
    pub leaving: Vec<(ShardId, oneshot::Sender<()>)>,
}

impl PoolState {
    /// Tells home shards what they should know.
    pub(super) fn report(&mut self, deps: &PoolDeps, myself: &ActorRef<PoolMsg>) {
        if deps.shards.is_alone() || !deps.shards.may_act() {
            return;
        }
        let now = deps.time.boot_ms();
        let all = now >= self.borrowing.next_round_ms;
        if all {
            self.borrowing.next_round_ms = now + REPORT_MS;
        }
        let asked = &self.borrowing.asked;
        for (home, reports) in self.quotas.reports(all, now, |home| !asked.contains(&home)) {
            self.borrowing.asked.insert(home);
            let (client, session, myself) = (deps.client.clone(), deps.identity.session, myself.clone());
            tokio::spawn(async move {
                let call = ShardCall::Borrow { session, reports };
                let answer = ask::<Vec<TenantShare>>(&client, home, call).await;
                // The session may be over.
                let _ = myself.cast(PoolMsg::Shares(home, answer));
            });
        }
    }

    pub(super) fn take_shares(&mut self, deps: &PoolDeps, home: ShardId, answer: Result<Vec<TenantShare>, CallError>) {
        self.borrowing.asked.remove(&home);
        match answer {
            Ok(shares) => {
                let now = deps.time.boot_ms();
                shares.into_iter().for_each(|share| self.quotas.take_share(share, now));
            }
            // Questions stand until they are answered: they are asked again with the next round.
            Err(error) => tracing::debug!(%home, %error, "a home shard did not say what it lends"),
        }
        self.let_go();
    }

    /// Tells of shards whose runs are counted.
    pub(super) fn let_go(&mut self) {
        for (shard, port) in std::mem::take(&mut self.borrowing.leaving) {
            if self.quotas.settled(shard) {
                // Nobody waits any more when the session is over.
                let _ = port.send(());
            } else {
                self.borrowing.leaving.push((shard, port));
            }
        }
    }
}
