//! Appending to the own lanes, and acknowledging what is durable while the session may act.

use super::{Output, Ownership, Purpose, Refused, Transition};
use crate::ownership::{
    rules::{Rule, kept},
    store::{Batch, StoreAnswer},
    trim::Mark,
};
use campanile_schema::ids::ShardId;

impl Ownership {
    /// Takes one row for a lane: `frames` says which frame of which shard is in it, in order. Gives the row's seq.
    pub fn append(&mut self, now_ms: u64, lane: u16, frames: &[(ShardId, u64)], batch: Batch) -> Result<u64, Refused> {
        if !self.may_act(now_ms) {
            return Err(Refused::NoLease);
        }
        if !frames.iter().all(|(shard, _)| self.serves(*shard)) {
            return Err(Refused::NotServed);
        }
        let journal = &mut self.lanes[usize::from(lane)];
        if !journal.has_room() {
            self.took(Transition::WindowFull);
            return Err(Refused::Full);
        }
        let (seq, statement) = journal.append(batch);
        for (shard, frame) in frames {
            let mark = Mark { row: seq, frame: *frame };
            let Some(hold) = self.holds.get_mut(shard) else { continue };
            match hold.marks.back_mut().filter(|last| last.row == seq) {
                Some(last) => *last = mark,
                None => hold.marks.push_back(mark),
            }
        }
        self.ask(Purpose::Append { lane, seq }, statement);
        Ok(seq)
    }

    pub(super) fn append_answered(&mut self, lane: u16, seq: u64, answer: &StoreAnswer) {
        let journal = &mut self.lanes[usize::from(lane)];
        if *answer == StoreAnswer::Done {
            journal.written(seq);
        } else if let Some(statement) = journal.again(seq) {
            self.took(Transition::AppendRepeated);
            self.ask(Purpose::Append { lane, seq }, statement);
        }
    }

    pub(super) fn acknowledge(&mut self, now_ms: u64) {
        if !self.may_act(now_ms) && kept(Rule::CheckAfterWrite) {
            return;
        }
        for lane in &self.lanes {
            let (index, upto) = (lane.index(), lane.acknowledged());
            let done = &mut self.acknowledged[usize::from(index)];
            if upto > *done {
                *done = upto;
                self.out.push(Output::Acknowledge { lane: index, upto });
            }
        }
    }
}
