//! How a shard's row changes: claim, release, and what the owner publishes. Each gives the next version of the row, written
//! `IF version = the one read`.

use super::{
    rows::{Nonce, ShardRow, SnapshotPointer, Span},
    rules::{Rule, kept},
};
use campanile_schema::ids::{Epoch, SessionId};

/// Takes a shard: raises the epoch and appends a span that begins at `from`, the seq of the lane's next new row. `sealed` gives
/// where a lane of a session that is over ends; without an answer for an open span the shard cannot be taken yet.
/// `keep_own`: this session wrote frames to its open span and goes on with it.
pub fn claim(
    row: &ShardRow,
    me: SessionId,
    nonce: Nonce,
    lane: u16,
    from: u64,
    keep_own: bool,
    sealed: impl Fn(SessionId, u16) -> Option<u64>,
) -> Option<ShardRow> {
    let mut spans = Vec::with_capacity(row.spans.len() + 1);
    let mut own = false;
    for span in &row.spans {
        let mut span = span.clone();
        if span.to.is_none() && span.session == me {
            if !keep_own {
                continue;
            }
            own = true;
        } else if span.to.is_none() {
            let end = sealed(span.session, span.lane);
            if end.is_none() && kept(Rule::ClaimAfterSeal) {
                return None;
            }
            span.to = end;
        }
        if span.to.is_none_or(|to| to >= span.from) {
            spans.push(span);
        }
    }
    if !kept(Rule::SpansAreAList) {
        spans.clear();
        own = false;
    }
    if !own {
        spans.push(Span { session: me, lane, from, to: None });
    }
    let epoch = Epoch(row.epoch.0 + 1);
    Some(ShardRow { version: row.version + 1, nonce, owner: Some(me), epoch, spans, snapshot: row.snapshot })
}

/// Gives a shard to a successor, which must claim it before it serves. `upto`: the lane's acknowledged position, behind which no
/// frame of the shard stands.
pub fn release(row: &ShardRow, me: SessionId, nonce: Nonce, successor: SessionId, upto: u64) -> ShardRow {
    let mut spans = row.spans.clone();
    for span in spans.iter_mut().filter(|span| span.session == me && span.to.is_none()) {
        span.to = Some(upto);
    }
    spans.retain(|span| span.to.is_none_or(|to| to >= span.from));
    ShardRow { version: row.version + 1, nonce, owner: Some(successor), spans, ..row.clone() }
}

/// Names a new snapshot, or drops spans that nobody needs.
pub fn publish(row: &ShardRow, nonce: Nonce, snapshot: Option<SnapshotPointer>, spans: Vec<Span>) -> ShardRow {
    ShardRow { version: row.version + 1, nonce, snapshot, spans, ..row.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(session: u64, from: u64, to: Option<u64>) -> Span {
        Span { session: SessionId(session), lane: 0, from, to }
    }

    #[test]
    fn a_claim_closes_the_span_before_and_appends_its_own() {
        let (me, nonce) = (SessionId(3), Nonce::default());
        let spans = vec![span(1, 1, Some(4)), span(2, 5, None)];
        let row = ShardRow { owner: Some(SessionId(2)), epoch: Epoch(2), version: 8, spans, ..ShardRow::default() };
        assert_eq!(claim(&row, me, nonce, 0, 1, false, |_, _| None), None, "not sealed");
        let claimed = claim(&row, me, nonce, 0, 1, false, |_, _| Some(9)).unwrap();
        assert_eq!((claimed.epoch, claimed.version, claimed.owner), (Epoch(3), 9, Some(me)));
        assert_eq!(claimed.spans, [span(1, 1, Some(4)), span(2, 5, Some(9)), span(3, 1, None)]);
        let again = claim(&claimed, me, nonce, 0, 7, true, |_, _| None).unwrap();
        assert_eq!((again.epoch, &again.spans), (Epoch(4), &claimed.spans), "its own open span stays");
        let anew = claim(&claimed, me, nonce, 0, 7, false, |_, _| None).unwrap();
        assert_eq!(anew.spans[2], span(3, 7, None), "nothing was written to it");
        let nothing = claim(&row, me, nonce, 0, 1, false, |_, _| Some(4)).unwrap();
        assert_eq!(nothing.spans.len(), 2, "a span without a row goes");
    }

    #[test]
    fn a_release_closes_the_own_span() {
        let (me, nonce, next) = (SessionId(3), Nonce::default(), SessionId(4));
        let row = ShardRow { owner: Some(me), epoch: Epoch(3), spans: vec![span(3, 2, None)], ..ShardRow::default() };
        let released = release(&row, me, nonce, next, 6);
        assert_eq!((released.owner, released.epoch), (Some(next), Epoch(3)));
        assert_eq!(released.spans, [span(3, 2, Some(6))]);
        assert_eq!(release(&row, me, nonce, next, 1).spans, [], "nothing was written");
    }
}
