//! A shard that this session holds, from the claim to the release.

use super::{
    replay::SpanEnd,
    rows::{ShardRow, SnapshotPointer},
    trim::Mark,
};
use campanile_schema::ids::{Epoch, SessionId};
use std::collections::VecDeque;

/// How far a shard is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The claim is on its way.
    Claiming,
    /// Claimed; snapshot and spans are being read.
    Loading,
    Serving,
    /// Takes nothing new: goes to this session when all of its frames are acknowledged and it is stopped.
    Stopping {
        successor: SessionId,
        stopped: bool,
    },
    /// Reading whether the successor is active.
    Checking {
        successor: SessionId,
    },
    /// The release is on its way.
    Releasing {
        successor: SessionId,
    },
    /// A release timed out and must not come late: the claim that makes it void is on its way. The state is still in memory.
    Reclaiming,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Hold {
    /// What stands in the store, as far as is known.
    pub row: ShardRow,
    pub phase: Phase,
    pub lane: u16,
    /// What was sent last, until its outcome is known: a claim, a release or a publication.
    pub trying: Option<ShardRow>,
    /// Highest frame of those that no mark stands for.
    pub base: u64,
    /// Rows of the own lane that hold frames, oldest first.
    pub marks: VecDeque<Mark>,
    /// What the load found in the closed spans.
    pub ends: Vec<SpanEnd>,
    /// A snapshot is written; its pointer waits until its frames are acknowledged.
    pub snapshot: Option<SnapshotPointer>,
    /// What was sent last timed out, and the row is being read.
    pub unknown: bool,
}

impl Hold {
    /// Its claim is about to be sent.
    pub fn claiming(row: ShardRow, lane: u16) -> Self {
        Self {
            row,
            phase: Phase::Claiming,
            lane,
            trying: None,
            base: 0,
            marks: VecDeque::new(),
            ends: Vec::new(),
            snapshot: None,
            unknown: false,
        }
    }

    pub fn epoch(&self) -> Epoch {
        self.row.epoch
    }

    /// Whether decisions are made on the shard here. Whether they may be acted on is the session's question.
    pub fn serves(&self) -> bool {
        match self.phase {
            Phase::Serving | Phase::Stopping { stopped: false, .. } => true,
            Phase::Claiming
            | Phase::Loading
            | Phase::Stopping { stopped: true, .. }
            | Phase::Checking { .. }
            | Phase::Releasing { .. }
            | Phase::Reclaiming => false,
        }
    }

    /// Whether a publication or a hand-over goes on when rows of the lane are acknowledged.
    pub fn waits_for_rows(&self) -> bool {
        match self.phase {
            Phase::Serving => self.snapshot.is_some(),
            Phase::Stopping { stopped, .. } => stopped,
            Phase::Claiming | Phase::Loading | Phase::Checking { .. } | Phase::Releasing { .. } | Phase::Reclaiming => {
                false
            }
        }
    }

    /// Highest frame of the shard in the rows of the own lane up to this one, or before them.
    pub fn frame_of(&self, row: u64) -> u64 {
        let newest = self.marks.iter().rev().find(|mark| mark.row <= row);
        newest.map_or(self.base, |mark| mark.frame)
    }

    /// The row of the own lane that holds the shard's newest frame; 0: none does.
    pub fn last_row(&self) -> u64 {
        self.marks.back().map_or(0, |mark| mark.row)
    }

    /// The published spans begin later now: marks before them are of no use.
    pub fn forget_marks(&mut self, from: u64) {
        while let Some(mark) = self.marks.front().filter(|mark| mark.row < from) {
            self.base = mark.frame;
            self.marks.pop_front();
        }
    }
}
