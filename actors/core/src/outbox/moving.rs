//! What happens to messages when their store is restored from a backup or moved to another number of shards, and when a person sends
//! one again.

use super::rules::{Rule, kept};
use campanile_schema::{
    ids::{ShardId, shard_of_slot},
    limits::{DELIVER_FOR_MS, SEND_BY_HAND_MS},
    stored::outbox::{Message, MessageId, OutboxHead},
};

/// A restore marks a message that is owed: where the backup was made it may have been delivered since. Its day begins anew, or all
/// messages of a backup of yesterday would be undelivered at once.
pub(super) fn mark(message: &mut Message, at_ms: i64) {
    if kept(Rule::RestoreMarks) {
        message.marked = true;
    }
    if kept(Rule::DayAfterRestore) {
        message.until_ms = Some(at_ms.saturating_add(DELIVER_FOR_MS));
    }
}

/// Whether a message is marked from the start. A run that is older than the restore goes on in the restored store, and may have gone on
/// where the backup was made, with this same message; so may a run that a marked message has made.
pub fn marks(run_created_ms: i64, run_marked: bool, restored_ms: Option<i64>) -> bool {
    kept(Rule::MarkIsInherited) && (run_marked || restored_ms.is_some_and(|at_ms| run_created_ms <= at_ms))
}

/// The messages of all shards of a store, for a store with another number of shards: each goes to the shard of the slot that sent it,
/// where its run is, under a number that no message had.
pub fn migrate(old: Vec<(OutboxHead, Vec<Message>)>, shards: u16) -> Vec<(ShardId, OutboxHead, Vec<Message>)> {
    let last = old.iter().map(|(head, _)| head.last).max().unwrap_or_default();
    let restored_ms = old.iter().filter_map(|(head, _)| head.restored_ms).max();
    let mut messages: Vec<Message> = old.into_iter().flat_map(|(_, messages)| messages).collect();
    messages.sort_by_key(|message| (message.at_ms, message.from, message.id));
    let shard = |message: &Message| {
        let slot = if kept(Rule::MigrateBySlot) { message.from } else { message.to };
        shard_of_slot(u64::from(slot), shards)
    };
    let mut new: Vec<(ShardId, OutboxHead, Vec<Message>)> =
        (0..shards).map(|n| (ShardId(n), OutboxHead { last, restored_ms }, Vec::new())).collect();
    for mut message in messages {
        let Some((_, head, owed)) = new.get_mut(usize::from(shard(&message).0)) else { continue };
        if kept(Rule::MigrateNewIds) {
            message.id = MessageId(head.last.0 + 1);
            head.last = message.id;
        }
        owed.push(message);
    }
    new
}

/// An undelivered message may have reached its receiver, whose key for it lives for two days only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLate;

/// An undelivered message for a person who sends it again, only while its key lives. [`super::Sending::send_again`] gives it a new number. The
/// shard's head is that of now.
pub fn by_hand(failed: &Message, head: &OutboxHead, now_ms: i64) -> Result<Message, TooLate> {
    let born_ms = head.restored_ms.map_or(failed.at_ms, |at_ms| at_ms.max(failed.at_ms));
    let last_ms = if kept(Rule::ByHandWithinKey) { born_ms.saturating_add(SEND_BY_HAND_MS) } else { i64::MAX };
    if now_ms >= last_ms {
        return Err(TooLate);
    }
    let until_ms = now_ms.saturating_add(DELIVER_FOR_MS).min(last_ms);
    // Where the backup was made, somebody may have sent it again since.
    let restored = head.restored_ms.is_some_and(|at_ms| failed.at_ms <= at_ms) && kept(Rule::RestoreMarks);
    Ok(Message { until_ms: Some(until_ms), marked: failed.marked || restored, ..failed.clone() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::outbox::sending::tests::message;
    use campanile_schema::stored::outbox::MessageKind;

    #[test]
    fn a_message_that_was_given_up_before_a_backup_is_marked_when_it_is_sent_again_after_the_restore() {
        let failed = message(MessageKind::Hook);
        let marked = |restored_ms| {
            let head = OutboxHead { restored_ms, ..OutboxHead::default() };
            by_hand(&failed, &head, failed.at_ms + 10).unwrap().marked
        };
        assert!(!marked(None));
        assert!(marked(Some(failed.at_ms + 5)));
        assert!(!marked(Some(failed.at_ms - 1)), "it was decided in the restored store");
    }
}
