//! Which formats a cluster writes: the newest that every node can read that may have to. They are in the store's format
//! row. Any node that sees that they may be raised raises them, and they are never lowered. A release that does not
//! know them is refused from then on.

use super::hints::ClusterMember;
use campanile_core::ownership::rows::ShardRow;
use campanile_ports::{Leases, StoreError};
use campanile_schema::{
    format::Formats,
    ids::{SessionId, ShardId},
};
use parking_lot::RwLock;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

/// Formats that may be written now. Lower than they could be for a moment after a raise, which everybody reads.
pub struct InUse {
    event: AtomicU32,
    all: RwLock<Formats>,
}

impl InUse {
    pub fn new(formats: Formats) -> Self {
        Self { event: AtomicU32::new(formats.event), all: RwLock::new(formats) }
    }

    /// For each frame.
    pub fn event(&self) -> u32 {
        self.event.load(Ordering::Relaxed)
    }

    pub fn formats(&self) -> Formats {
        *self.all.read()
    }

    fn set(&self, formats: Formats) {
        *self.all.write() = formats;
        self.event.store(formats.event, Ordering::Relaxed);
    }
}

/// The newest formats that every member reads; None: somebody may live of whom that is not known.
fn common(members: &[ClusterMember], rows: &[(ShardId, ShardRow)], over: &[SessionId]) -> Option<Formats> {
    let steady =
        |member: &ClusterMember| !member.suspected && member.refused.is_none() && !over.contains(&member.session);
    // A node that is alone for the moment, cut off from the others, must not decide for them.
    let is_known = |owner: SessionId| members.iter().any(|member| member.session == owner);
    let all_known = !rows.is_empty() && rows.iter().all(|(_, row)| row.owner.is_some_and(is_known));
    let reads = members.iter().map(|member| member.reads).reduce(Formats::common);
    reads.filter(|_| all_known && members.iter().all(steady))
}

/// Looks after the format row for a session.
pub(super) struct Raising {
    pub store: Arc<dyn Leases>,
    pub in_use: Arc<InUse>,
    /// What this build knows.
    pub reads: Formats,
    /// For so long everybody must have been able to read it, so that a release that is tried and taken back costs nothing; and between two looks at the row.
    pub settle: Duration,
    pub failures: mpsc::UnboundedSender<StoreError>,
    since: Option<(Formats, Instant)>,
    looked: Instant,
}

impl Raising {
    pub fn new(
        store: Arc<dyn Leases>,
        in_use: Arc<InUse>,
        reads: Formats,
        settle: Duration,
        failures: mpsc::UnboundedSender<StoreError>,
    ) -> Self {
        Self { store, in_use, reads, settle, failures, since: None, looked: Instant::now() }
    }

    /// To be called whenever the rows were read.
    pub fn look(&mut self, members: &[ClusterMember], rows: &[(ShardId, ShardRow)], over: &[SessionId]) {
        let now = Instant::now();
        let stands = self.in_use.formats();
        let to = common(members, rows, over).map(|common| common.newest(stands)).filter(|to| *to != stands);
        let since = match (to, self.since) {
            (Some(to), Some((same, since))) if to == same => Some((to, since)),
            (to, _) => to.map(|to| (to, now)),
        };
        self.since = since;
        let due = since.filter(|(_, since)| now.duration_since(*since) >= self.settle);
        if due.is_none() && now.duration_since(self.looked) < self.settle {
            return;
        }
        (self.looked, self.since) = (now, since.filter(|_| due.is_none()));
        tokio::spawn(self.ask(due.map(|(to, _)| to)));
    }

    /// Reads the row, or raises it, and goes by what stands.
    fn ask(&self, to: Option<Formats>) -> impl Future<Output = ()> + Send + 'static {
        let (store, in_use, reads, failures) =
            (self.store.clone(), self.in_use.clone(), self.reads, self.failures.clone());
        async move {
            let asked = match to {
                Some(to) => store.raise_formats(to).await,
                None => store.formats().await,
            };
            let stands = match asked {
                Ok(stands) => stands,
                Err(error) => return tracing::debug!(%error, "the formats of the cluster are not known now"),
            };
            if let Err(newer) = reads.check(stands) {
                // What others write from now on cannot be read here.
                let _ = failures.send(StoreError::Refused(newer.to_string()));
            } else if in_use.formats() != stands {
                tracing::info!(
                    event = stands.event,
                    wire = stands.wire,
                    "all nodes read these formats: they are written from now on, and releases that do not know them are refused"
                );
                in_use.set(stands);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campanile_core::placement::{NodeId, Standing};

    fn member(node: u64, event: u32) -> ClusterMember {
        ClusterMember {
            node: NodeId(node),
            session: SessionId(10 + node),
            standing: Standing::Open,
            suspected: false,
            refused: None,
            reads: Formats { event, wire: 1 },
        }
    }

    fn rows(owners: &[u64]) -> Vec<(ShardId, ShardRow)> {
        let row = |owner: &u64| ShardRow { owner: Some(SessionId(*owner)), ..ShardRow::default() };
        owners.iter().enumerate().map(|(n, owner)| (ShardId(n as u16), row(owner))).collect()
    }

    #[test]
    fn what_is_written_is_what_everybody_reads() {
        let event =
            |members: &[ClusterMember], rows: &[(ShardId, ShardRow)]| common(members, rows, &[]).map(|f| f.event);
        let owned = rows(&[11, 12]);
        assert_eq!(event(&[member(1, 2), member(2, 1)], &owned), Some(1));
        assert_eq!(event(&[member(1, 2), member(2, 3)], &owned), Some(2));
        assert_eq!(event(&[member(1, 2)], &owned), None, "the other owner is not seen, and may live");
        assert_eq!(event(&[member(1, 2), ClusterMember { suspected: true, ..member(2, 2) }], &owned), None);
        assert_eq!(common(&[member(1, 2), member(2, 2)], &owned, &[SessionId(12)]), None, "it begins another session");
        assert_eq!(event(&[member(1, 2), member(2, 2)], &[]), None, "the rows were not read yet");
    }
}
