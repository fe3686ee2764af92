//! Loading a shard from its spans: every row must be there, and the shard's frames must follow each other. A hole is refused.

use super::{
    rows::{SnapshotPointer, Span},
    rules::{Rule, kept},
};
use campanile_schema::ids::SessionId;
use std::cmp::Ordering;

/// Something that must be there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Hole {
    #[error("session {session}, lane {lane}: row {seq} is missing")]
    Row { session: SessionId, lane: u16, seq: u64 },
    #[error("frame {expected} of the shard is missing; the next one found is {found}")]
    Frame { expected: u64, found: u64 },
    #[error("the journal ends with frame {last} of the shard; the snapshot holds {snapshot}")]
    End { last: u64, snapshot: u64 },
}

/// Highest frame of the shard that a span holds; None: no frame of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanEnd {
    pub span: Span,
    pub last: Option<u64>,
}

/// Takes the rows of a shard's spans in order, and says which frames are to be applied.
#[derive(Clone, Debug)]
pub struct Replay {
    spans: Vec<SpanEnd>,
    /// Span and row that come next.
    at: usize,
    row: u64,
    /// Frames up to here are not needed: snapshot and projection both have them.
    covered: u64,
    snapshot: u64,
    last: Option<u64>,
}

impl Replay {
    /// `spans`: the closed ones of the shard's row, oldest first. `projected`: highest frame that the views have.
    pub fn new(spans: &[Span], snapshot: Option<SnapshotPointer>, projected: u64) -> Self {
        let snapshot = snapshot.map_or(0, |pointer| pointer.seq);
        let row = spans.first().map_or(0, |span| span.from);
        let spans = spans.iter().map(|span| SpanEnd { span: span.clone(), last: None }).collect();
        Self { spans, at: 0, row, covered: snapshot.min(projected), snapshot, last: None }
    }

    /// Whether a frame is to be applied or projected.
    pub fn needs(&self, frame: u64) -> bool {
        frame > self.covered
    }

    /// A row of a span, with the seqs of the shard's frames in it. Rows come in the order of the spans.
    pub fn row(&mut self, session: SessionId, lane: u16, seq: u64, frames: &[u64]) -> Result<(), Hole> {
        self.skip_to(session, lane)?;
        let Some(end) = self.spans.get_mut(self.at) else { return Ok(()) };
        if seq != self.row {
            return Err(Hole::Row { session, lane, seq: self.row });
        }
        self.row += 1;
        for &frame in frames {
            let expected = self.last.map_or(self.covered + 1, |last| last + 1);
            // Before the first one that is needed, older ones may be there or not.
            let older = self.last.is_none() && frame <= self.covered;
            if frame != expected && !older {
                return Err(Hole::Frame { expected, found: frame });
            }
            if !older {
                self.last = Some(frame);
            }
            end.last = Some(frame);
        }
        Ok(())
    }

    /// The row that comes next of a span, by its place in the list; behind all rows when the span is done with.
    pub fn next_row(&self, span: usize) -> u64 {
        match span.cmp(&self.at) {
            Ordering::Less => u64::MAX,
            Ordering::Equal => self.row,
            Ordering::Greater => self.spans.get(span).map_or(u64::MAX, |end| end.span.from),
        }
    }

    /// The spans as the claim has them, when reading began before it, with an open one: false when what was read is not a beginning of
    /// these. Rows never change, so only how far they count can have been misjudged.
    pub fn claimed(&mut self, spans: &[Span]) -> bool {
        let same = |(index, (known, span)): (usize, (&SpanEnd, &Span))| {
            let known = &known.span;
            let read = match index.cmp(&self.at) {
                Ordering::Less => known.to == span.to,
                Ordering::Equal => span.to.is_none_or(|to| self.row <= to + 1) || !kept(Rule::ReadAheadFits),
                Ordering::Greater => true,
            };
            (known.session, known.lane, known.from) == (span.session, span.lane, span.from) && read
        };
        if self.spans.len() != spans.len() || !self.spans.iter().zip(spans).enumerate().all(same) {
            return false;
        }
        for (known, span) in self.spans.iter_mut().zip(spans) {
            known.span.to = span.to;
        }
        true
    }

    /// All rows were given: the highest frame of the shard, and what each span holds.
    pub fn end(mut self) -> Result<(u64, Vec<SpanEnd>), Hole> {
        while let Some(end) = self.spans.get(self.at) {
            self.closed(end)?;
            self.next_span();
        }
        let last = self.last.unwrap_or(self.covered);
        if last < self.snapshot {
            return Err(Hole::End { last, snapshot: self.snapshot });
        }
        Ok((last, self.spans))
    }

    fn skip_to(&mut self, session: SessionId, lane: u16) -> Result<(), Hole> {
        while let Some(end) = self.spans.get(self.at) {
            let here = end.span.session == session && end.span.lane == lane;
            if here && end.span.to.is_none_or(|to| self.row <= to) {
                return Ok(());
            }
            self.closed(end)?;
            self.next_span();
        }
        Ok(())
    }

    fn closed(&self, end: &SpanEnd) -> Result<(), Hole> {
        let Span { session, lane, to, .. } = end.span;
        if to.is_some_and(|to| self.row <= to) {
            return Err(Hole::Row { session, lane, seq: self.row });
        }
        Ok(())
    }

    fn next_span(&mut self) {
        self.at += 1;
        self.row = self.spans.get(self.at).map_or(0, |end| end.span.from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campanile_schema::ids::Epoch;

    const ONE: SessionId = SessionId(1);
    const TWO: SessionId = SessionId(2);

    fn replay(snapshot: u64, projected: u64) -> Replay {
        let span = |session, from, to| Span { session, lane: 0, from, to: Some(to) };
        let pointer = SnapshotPointer { epoch: Epoch(1), number: 1, seq: snapshot };
        Replay::new(&[span(ONE, 4, 5), span(TWO, 1, 2)], (snapshot > 0).then_some(pointer), projected)
    }

    #[test]
    fn rows_and_frames_follow_each_other() {
        let mut whole = replay(2, 1);
        for (session, seq, frames) in [(ONE, 4, &[1, 2][..]), (ONE, 5, &[]), (TWO, 1, &[3]), (TWO, 2, &[4])] {
            whole.row(session, 0, seq, frames).unwrap();
        }
        let (last, ends) = whole.end().unwrap();
        assert_eq!((last, ends[0].last, ends[1].last), (4, Some(2), Some(4)));
    }

    #[test]
    fn a_hole_is_refused() {
        let missing = |session, seq| Hole::Row { session, lane: 0, seq };
        assert_eq!(replay(0, 0).row(ONE, 0, 5, &[1]), Err(missing(ONE, 4)));
        let mut short = replay(0, 0);
        short.row(ONE, 0, 4, &[1]).unwrap();
        assert_eq!(short.row(TWO, 0, 1, &[2]), Err(missing(ONE, 5)));
        assert_eq!(short.end(), Err(missing(ONE, 5)));
        assert_eq!(replay(9, 1).row(ONE, 0, 4, &[3]), Err(Hole::Frame { expected: 2, found: 3 }));
        let mut behind = replay(9, 1);
        for (session, seq, frames) in [(ONE, 4, &[2][..]), (ONE, 5, &[]), (TWO, 1, &[]), (TWO, 2, &[])] {
            behind.row(session, 0, seq, frames).unwrap();
        }
        assert_eq!(behind.end(), Err(Hole::End { last: 2, snapshot: 9 }));
    }

    #[test]
    fn what_was_read_before_the_claim_counts_when_it_is_a_beginning() {
        let span = |session, from, to| Span { session, lane: 0, from, to };
        let begun = || {
            let mut replay = Replay::new(&[span(ONE, 4, Some(5)), span(TWO, 1, None)], None, 0);
            assert_eq!((replay.next_row(0), replay.next_row(1), replay.next_row(2)), (4, 1, u64::MAX));
            for (session, seq, frames) in [(ONE, 4, &[1][..]), (ONE, 5, &[2]), (TWO, 1, &[]), (TWO, 2, &[3])] {
                replay.row(session, 0, seq, frames).unwrap();
            }
            assert_eq!((replay.next_row(0), replay.next_row(1)), (u64::MAX, 3));
            replay
        };
        let claimed = |end| [span(ONE, 4, Some(5)), span(TWO, 1, Some(end))];
        for end in [2, 3] {
            let mut replay = begun();
            assert!(replay.claimed(&claimed(end)));
            if end == 3 {
                assert_eq!(replay.clone().end(), Err(Hole::Row { session: TWO, lane: 0, seq: 3 }));
                replay.row(TWO, 0, 3, &[4]).unwrap();
            }
            assert_eq!(replay.end().unwrap().0, end + 1);
        }
        assert!(!begun().claimed(&claimed(1)), "a row that does not count was read");
        assert!(!begun().claimed(&claimed(2)[1..]), "another list");
        let other = |first: Span, second: Span| !begun().claimed(&[first, second]);
        assert!(other(span(ONE, 4, Some(6)), span(TWO, 1, Some(2))), "a closed span has another end");
        assert!(other(span(ONE, 3, Some(5)), span(TWO, 1, Some(2))), "or another beginning");
        assert!(other(span(ONE, 4, Some(5)), span(ONE, 1, Some(2))), "or is of another session");
    }
}
