//! The outbox in a small world with all its faults: ADR 0028.

use crate::outbox_model::trouble::play;

/// Seeds of the default run, and steps of each: OUTBOX_SEEDS and OUTBOX_STEPS say others, OUTBOX_FIRST the first seed.
const SEEDS: u64 = 1_500;
const STEPS: u64 = 1_500;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn every_message_has_its_effect_once() {
    let (first, seeds, steps) =
        (setting("OUTBOX_FIRST", 0), setting("OUTBOX_SEEDS", SEEDS), setting("OUTBOX_STEPS", STEPS));
    for seed in first..first + seeds {
        if let Some(found) = play(seed, steps, false).judge.found {
            let story = play(seed, steps, true).trace.unwrap();
            let tail = &story[story.len().saturating_sub(200)..];
            panic!("seed {seed}: {found:?}\n{}", tail.join("\n"));
        }
    }
}

/// Every rule, broken on purpose, is found out: here by chance, or in `outbox_model/holes.rs` by a history of its own.
#[cfg(feature = "faults")]
mod broken {
    use super::*;
    use crate::outbox_model::checks::ViolationKind;
    use campanile_core::outbox::rules::{Rule, break_rule};

    /// Seeds that are tried at most.
    const SEEDS: u64 = 3_000;

    fn found(rule: Rule, kind: ViolationKind) {
        for seed in 0..SEEDS {
            break_rule(Some(rule));
            let violation = play(seed, STEPS, false).judge.found.filter(|found| found.kind == kind);
            break_rule(None);
            if let Some(violation) = violation {
                println!("{rule:?}: seed {seed}: {violation:?}");
                let sound = play(seed, STEPS, false).judge.found;
                assert_eq!(sound, None, "with the rule kept, the same seed violates nothing");
                return;
            }
        }
        panic!("{rule:?} is not found out in {SEEDS} seeds");
    }

    macro_rules! broken {
        ($($name:ident: $rule:ident => $kind:ident,)*) => {
            $(#[test] fn $name() { found(Rule::$rule, ViolationKind::$kind); })*
            const HERE: &[Rule] = &[$(Rule::$rule,)*];
        };
    }

    broken!(
        a_message_in_a_frame_of_its_own: SentInTheFrame => Lost,
        sent_before_it_is_durable: SendWhenDurable => Phantom,
        settled_when_sent: SettleOnAnswer => Lost,
        all_of_a_deliver_settled: SettleOnlyNamed => Lost,
        not_sent_again: RepeatUnanswered => Stuck,
        forgotten_at_a_restart: OweAfterRestart => Stuck,
        two_delivers_of_a_pair: OneUnderWay => Bounds,
        more_delivers_than_the_node_may: WindowOfNode => Bounds,
        a_deliver_that_is_too_large: DeliverBytes => Bounds,
        sent_for_ever: DayLimit => TooLate,
        given_up_without_a_record: FailureIsRecorded => Lost,
        poison_is_sent_for_a_day: PoisonedAfterTries => Stuck,
        too_many_messages: RoomCount => Bounds,
        too_many_hooks: HookRoom => Bounds,
        too_many_hooks_for_one: HookRoomOfOne => Bounds,
        a_tenant_takes_all: TenantPart => Bounds,
        an_end_without_room: EndsHaveRoom => Lost,
        more_children_than_ends: EndRoomIsReserved => Bounds,
        dropped_in_silence: DropIsRecorded => Lost,
        made_each_time: IdempotentByKey => Double,
        answered_before_durable: AnswerWhenDurable => Lost,
        a_repeat_answered_before_durable: RepeatWaitsToo => Lost,
        refused_before_durable: RefuseWhenDurable => WrongFailure,
        memory_forgets_at_once: KeyOutlivesLookUp => Double,
        unshown_keys_forgotten: UnshownKeysRebuilt => Double,
        keys_as_short_as_history: KeyRowsLive => Double,
        undone_twice: CompensationOnce => Double,
        the_second_failure_has_no_hook: HookPerGeneration => Lost,
        a_new_job_of_the_name: NewerJobIsAnother => Double,
        a_mailbox_that_fills: HalfFullIsLater => Bounds,
        full_shards_wait_for_each_other: TakeWithoutRoom => Stuck,
        an_unknown_kind_refused: UnknownKindWaits => WrongFailure,
        no_marks: RestoreMarks => Double,
        marks_do_not_travel: MarkIsInherited => Double,
        marks_do_not_ask: MarkedAsks => Double,
        undelivered_at_once_after_a_restore: DayAfterRestore => WrongFailure,
        moved_to_the_receivers_shard: MigrateBySlot => Lost,
        moved_under_old_numbers: MigrateNewIds => Lost,
    );

    /// In `outbox_model/holes.rs`.
    const TOLD: &[Rule] = &[
        Rule::RoomBytes,
        Rule::LaterHoldsNoOthers,
        Rule::BackOff,
        Rule::SettleInBatches,
        Rule::ByHandWithinKey,
        Rule::LookUpIsFresh,
        Rule::LookUpOfThisEpoch,
        Rule::SourceIsChecked,
        Rule::CallersKeysAreOthers,
        Rule::TenantIsChecked,
        Rule::StaleIsLater,
        Rule::DepthIsChecked,
        Rule::KeysAfterRestore,
    ];

    #[test]
    fn no_rule_is_left_out() {
        let left: Vec<_> = Rule::ALL.into_iter().filter(|rule| !HERE.contains(rule) && !TOLD.contains(rule)).collect();
        assert_eq!(left, []);
    }
}
