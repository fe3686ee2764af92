//! How far the views are: the applied frame of each shard, and the journal position that covers all of them.
//!
//! Recovery trusts only what a flush covered. After a restart the progress is therefore what the last flush wrote down,
//! not what the tables happen to contain: they may be ahead in one place and behind in another. Rows are applied again
//! from that position.

use campanile_ports::{Position, ViewBatch};
use campanile_schema::ids::ShardId;
use serde::{Deserialize, Serialize};

/// What was applied, or what a flush covered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub position: Position,
    /// Indexed by shard; shards beyond the end have none.
    pub applied: Vec<u64>,
}

impl Progress {
    /// Takes in a batch that was applied.
    pub fn note(&mut self, batch: &ViewBatch) {
        for (shard, seq) in &batch.applied {
            let at = usize::from(shard.0);
            if self.applied.len() <= at {
                self.applied.resize(at + 1, 0);
            }
            self.applied[at] = self.applied[at].max(*seq);
        }
        self.position = self.position.max(batch.position);
    }

    pub fn of(&self, shard: ShardId) -> u64 {
        self.applied.get(usize::from(shard.0)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden_forms::{Coding, Forms};
    use campanile_schema::ids::SessionId;

    /// Golden lines of the forms that this crate has: `golden/forms.jsonl`.
    #[test]
    fn forms_keep_their_bytes() {
        let mut forms = Forms::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/forms.jsonl"));
        let position = Position { session: SessionId(12), lane: 1, seq: 70_000 };
        let all =
            [("nothing", Progress::default()), ("three shards", Progress { position, applied: vec![1_000, 0, 7] })];
        forms.samples("progress::Progress", Coding::json(), all);
        forms.hold();
    }
}
