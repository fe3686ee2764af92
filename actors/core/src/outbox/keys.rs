//! The keys of effects. A message has its effect once because its receiver acts once for each key.
//!
//! A key of ours begins with U+0001, which callers' keys may not contain, and with a letter for its source. No caller
//! can therefore take the key of a message, and no two sources share one.

use super::rules::{Rule, kept};
use crate::deadline::rules as deadline_rules;
use campanile_schema::{
    ids::{BackfillId, Digest, JobId, RunId},
    limits::MESSAGE_KEY_MS,
    record::{MESSAGE_KEY, Source},
    stored::outbox::{Message, MessageKind},
};

/// No key of a caller contains it.
pub const RESERVED: char = MESSAGE_KEY;

/// Of the run that a message makes, ends or tells of.
pub fn of(message: &Message) -> String {
    let (run, generation, index) = (message.run, message.generation, message.index);
    match message.kind {
        MessageKind::Start | MessageKind::Cancel => node(run, index),
        // A run has one end in each generation.
        MessageKind::End => format!("{RESERVED}e{run}/{generation}"),
        MessageKind::Hook if kept(Rule::HookPerGeneration) => format!("{RESERVED}h{run}/{generation}/{index}"),
        MessageKind::Hook => format!("{RESERVED}h{run}/{index}"),
        // No generation: what was undone is not undone again when the run fails a second time.
        MessageKind::Compensation if kept(Rule::CompensationOnce) => format!("{RESERVED}ccomp/{run}/{index}"),
        MessageKind::Compensation => format!("{RESERVED}ccomp/{run}/{generation}/{index}"),
        MessageKind::Deadline => {
            let of_instant = deadline_rules::kept(deadline_rules::Rule::KeyOfInstant);
            let missed = message.deadline.as_deref().filter(|missed| missed.of_instant && of_instant);
            match missed.and_then(|missed| Some((missed.job, missed.instant_ms?))) {
                Some((job, instant_ms)) => deadline(job, instant_ms, index),
                None => format!("{RESERVED}ddr/{run}/{generation}/{index}"),
            }
        }
    }
}

/// Of the run of a DAG's node.
pub fn node(dag: RunId, node: u32) -> String {
    format!("{RESERVED}n{dag}/{node}")
}

/// Of the run that a hook of a job's missed deadline makes: an instant has one deadline, with a run or without.
pub fn deadline(job: JobId, instant_ms: i64, hook: u32) -> String {
    format!("{RESERVED}ddl/{job}/{instant_ms}/{hook}")
}

/// Of the run that a backfill makes for an instant that is missing: two of them make one.
pub fn backfill(instant_ms: i64) -> String {
    format!("{RESERVED}bbf/{instant_ms}")
}

/// Of the run that one backfill or replay makes for an instant, whatever others have made.
pub fn of_backfill(id: BackfillId, instant_ms: i64) -> String {
    format!("{RESERVED}b{id}/{instant_ms}")
}

/// Of the run that an event of outside makes. The digest is of tenant, source and id.
pub fn event(digest: Digest) -> String {
    format!("{RESERVED}v{}", hex::encode(digest.0))
}

/// Whether a key could be one of ours.
pub fn is_reserved(key: &str) -> bool {
    kept(Rule::CallersKeysAreOthers) && key.contains(RESERVED)
}

/// Source of the run that a message makes; None: it makes none.
pub fn source(kind: MessageKind) -> Option<Source> {
    match kind {
        MessageKind::Start | MessageKind::Cancel => Some(Source::Dag),
        MessageKind::End => None,
        MessageKind::Hook | MessageKind::Deadline => Some(Source::Event),
        MessageKind::Compensation => Some(Source::Compensation),
    }
}

/// Until when the key row of a run that a message made must stay. `restored_ms`: when the store was last restored from a backup; its
/// messages have a new day from then on.
pub fn keep_until(ended_ms: i64, restored_ms: Option<i64>) -> i64 {
    if !kept(Rule::KeyRowsLive) {
        return ended_ms;
    }
    let restored_ms = restored_ms.filter(|_| kept(Rule::KeysAfterRestore));
    restored_ms.map_or(ended_ms, |at_ms| at_ms.max(ended_ms)).saturating_add(MESSAGE_KEY_MS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::outbox::sending::tests::message;

    #[test]
    fn the_keys_are_those_of_the_design() {
        let of = |kind| of(&message(kind));
        assert_eq!(of(MessageKind::Start), "\u{1}n4097/7");
        assert_eq!(of(MessageKind::Cancel), of(MessageKind::Start), "a cancel that comes first is found by the start");
        assert_eq!(of(MessageKind::End), "\u{1}e4097/2");
        assert_eq!(of(MessageKind::Hook), "\u{1}h4097/2/7");
        assert_eq!(of(MessageKind::Compensation), "\u{1}ccomp/4097/7");
        assert_eq!(of(MessageKind::Deadline), "\u{1}ddr/4097/2/7", "of a run that no schedule made");
        assert_eq!(deadline(JobId(5), 60_000, 1_024), "\u{1}ddl/5/60000/1024");
        assert_eq!(event(Digest([0xab; 16])), format!("\u{1}v{}", "ab".repeat(16)));
        assert_eq!(
            (backfill(60_000), of_backfill(BackfillId(9), 60_000)),
            ("\u{1}bbf/60000".to_owned(), "\u{1}b9/60000".to_owned())
        );
        assert!(is_reserved(&of(MessageKind::Hook)));
        assert!(!is_reserved("h4097/2/7"));
        assert!(is_reserved("order\u{1}7"), "wherever it stands");
    }

    #[test]
    fn a_key_outlives_every_repeat_of_its_message() {
        use campanile_schema::limits::{DELIVER_FOR_MS, DELIVER_STALE_MS, SEND_BY_HAND_MS};
        // The run ends at once, and the last repeat leaves at the end of the message's time and is late on its way.
        for longest in [DELIVER_FOR_MS, SEND_BY_HAND_MS] {
            assert!(keep_until(0, None) > longest + DELIVER_STALE_MS);
        }
        assert_eq!(keep_until(0, Some(1_000)), 1_000 + MESSAGE_KEY_MS, "a restored message has a new day");
    }
}
