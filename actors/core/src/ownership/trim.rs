//! Finds what can be deleted: spans that no replay needs, and journal rows that no span names.

use super::{
    replay::SpanEnd,
    rows::{ShardRow, Span},
    rules::{Rule, kept},
};
use campanile_schema::ids::{SessionId, ShardId};
use std::collections::VecDeque;

/// A row of the own lane that holds frames of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Of the row.
    pub row: u64,
    /// Highest frame of the shard in it.
    pub frame: u64,
}

/// The spans that a replay from the lower of snapshot and projection still needs. `ends`: what the load found in closed spans.
/// `marks`: the owner's own rows. `next`: seq of the own lane's next new row.
pub fn needed_spans(
    spans: &[Span],
    ends: &[SpanEnd],
    marks: &VecDeque<Mark>,
    next: u64,
    snapshot: u64,
    projected: u64,
) -> Vec<Span> {
    let covered = if kept(Rule::TrimAfterProjection) { snapshot.min(projected) } else { snapshot };
    let mut needed = Vec::with_capacity(spans.len());
    for span in spans {
        if span.to.is_none() {
            let first = marks.iter().find(|mark| mark.frame > covered).map_or(next, |mark| mark.row);
            needed.push(Span { from: first.max(span.from), ..span.clone() });
            continue;
        }
        let known = ends.iter().find(|end| end.span == *span);
        if known.is_none_or(|end| end.last.is_some_and(|last| last > covered)) {
            needed.push(span.clone());
        }
    }
    needed
}

/// Rows of a session's lane up to which (inclusive) no shard needs any; `end`: the last row there can be.
pub fn deletable(rows: &[(ShardId, ShardRow)], session: SessionId, lane: u16, end: u64) -> u64 {
    let spans = rows.iter().flat_map(|(_, row)| &row.spans);
    let named = spans.filter(|span| span.session == session && span.lane == lane);
    named.map(|span| span.from - 1).min().unwrap_or(end).min(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_stays_until_both_cover_it() {
        let old = Span { session: SessionId(1), lane: 0, from: 3, to: Some(8) };
        let own = Span { session: SessionId(2), lane: 0, from: 1, to: None };
        let ends = [SpanEnd { span: old.clone(), last: Some(20) }];
        let marks = VecDeque::from([Mark { row: 2, frame: 22 }, Mark { row: 5, frame: 24 }]);
        let spans = [old.clone(), own.clone()];
        let needed = |snapshot, projected| needed_spans(&spans, &ends, &marks, 9, snapshot, projected);
        assert_eq!(needed(30, 19), [old.clone(), Span { from: 2, ..own.clone() }]);
        assert_eq!(needed(19, 30), [old, Span { from: 2, ..own.clone() }]);
        assert_eq!(needed(20, 21), [Span { from: 2, ..own.clone() }]);
        assert_eq!(needed(22, 22), [Span { from: 5, ..own.clone() }]);
        assert_eq!(needed(30, 30), [Span { from: 9, ..own }]);
    }

    #[test]
    fn rows_stay_while_a_span_names_them() {
        let span = |session, from| Span { session: SessionId(session), lane: 1, from, to: None };
        let row = ShardRow { spans: vec![span(1, 7), span(2, 3)], ..ShardRow::default() };
        let rows = [(ShardId(1), row)];
        assert_eq!(deletable(&rows, SessionId(1), 1, 50), 6);
        assert_eq!(deletable(&rows, SessionId(1), 1, 5), 5);
        assert_eq!(deletable(&rows, SessionId(1), 0, 50), 50);
    }
}
