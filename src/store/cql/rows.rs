//! Rows of ownership as columns, and back. Columns rather than bytes: an operator reads them with any CQL shell.

use campanile_core::ownership::rows::{Nonce, SessionRow, SessionState, ShardRow, SnapshotPointer, Span};
use campanile_ports::StoreError;
use campanile_schema::ids::{Epoch, SessionId, ShardId};

const STATES: [(SessionState, &str); 4] = [
    (SessionState::Active, "ACTIVE"),
    (SessionState::Draining, "DRAINING"),
    (SessionState::Fenced, "FENCED"),
    (SessionState::Ended, "ENDED"),
];

pub fn state_name(state: SessionState) -> &'static str {
    match state {
        SessionState::Active => STATES[0].1,
        SessionState::Draining => STATES[1].1,
        SessionState::Fenced => STATES[2].1,
        SessionState::Ended => STATES[3].1,
    }
}

fn state(name: &str) -> Result<SessionState, StoreError> {
    let known = STATES.iter().find(|(_, known)| *known == name);
    known
        .map(|(state, _)| *state)
        .ok_or_else(|| StoreError::Corrupt(format!("a session's state is '{name}', which this release does not know")))
}

pub fn signed(numbers: &[u64]) -> Vec<i64> {
    numbers.iter().copied().map(u64::cast_signed).collect()
}

fn unsigned(numbers: Vec<i64>) -> Vec<u64> {
    numbers.into_iter().map(i64::cast_unsigned).collect()
}

fn nonce(session: i64, count: i64) -> Nonce {
    Nonce { session: SessionId(session.cast_unsigned()), count: count.cast_unsigned() }
}

/// `version, nonce_session, nonce_count, state, lease_ms, window, durable, sealed`.
pub type SessionColumns = (i64, i64, i64, String, i64, i64, Vec<i64>, Option<Vec<i64>>);

pub fn session(columns: SessionColumns) -> Result<SessionRow, StoreError> {
    let (version, nonce_session, nonce_count, name, lease_ms, window, durable, sealed) = columns;
    Ok(SessionRow {
        version: version.cast_unsigned(),
        nonce: nonce(nonce_session, nonce_count),
        lease_ms: lease_ms.cast_unsigned(),
        window: window.cast_unsigned(),
        state: state(&name)?,
        durable: unsigned(durable),
        sealed: sealed.map(unsigned),
    })
}

/// `session, lane, from, to`.
pub type SpanColumns = (i64, i32, i64, Option<i64>);

pub fn span_columns(spans: &[Span]) -> Vec<SpanColumns> {
    let columns = |span: &Span| {
        let to = span.to.map(u64::cast_signed);
        (span.session.0.cast_signed(), i32::from(span.lane), span.from.cast_signed(), to)
    };
    spans.iter().map(columns).collect()
}

/// `shard, version, nonce_session, nonce_count, owner, epoch, spans, snapshot_epoch, snapshot_number, snapshot_seq`.
pub type ShardColumns =
    (i32, i64, i64, i64, Option<i64>, i64, Option<Vec<SpanColumns>>, Option<i64>, Option<i64>, Option<i64>);

pub fn shard(columns: ShardColumns) -> Result<(ShardId, ShardRow), StoreError> {
    let (number, version, nonce_session, nonce_count, owner, epoch, spans, in_epoch, snapshot, covered) = columns;
    let snapshot = match (in_epoch, snapshot, covered) {
        (Some(epoch), Some(number), Some(seq)) => Some(SnapshotPointer {
            epoch: Epoch(epoch.cast_unsigned()),
            number: number.cast_unsigned(),
            seq: seq.cast_unsigned(),
        }),
        (..) => None,
    };
    let span = |(session, lane, from, to): SpanColumns| {
        let session = SessionId(session.cast_unsigned());
        Ok(Span { session, lane: small(lane)?, from: from.cast_unsigned(), to: to.map(i64::cast_unsigned) })
    };
    let row = ShardRow {
        version: version.cast_unsigned(),
        nonce: nonce(nonce_session, nonce_count),
        owner: owner.map(|session| SessionId(session.cast_unsigned())),
        epoch: Epoch(epoch.cast_unsigned()),
        spans: spans.unwrap_or_default().into_iter().map(span).collect::<Result<_, StoreError>>()?,
        snapshot,
    };
    Ok((ShardId(small(number)?), row))
}

/// Shards and lanes are `int` columns, as CQL has no unsigned types.
pub fn small(number: i32) -> Result<u16, StoreError> {
    u16::try_from(number).map_err(|_| StoreError::Corrupt(format!("{number} is not the number of a shard or a lane")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_state_has_its_name_and_back() {
        for (known, name) in STATES {
            assert_eq!((state_name(known), state(name).unwrap()), (name, known));
        }
        assert!(matches!(state("PAUSED"), Err(StoreError::Corrupt(_))));
    }
}
