//! The rules of the outbox by name, so that its model can break each one and see the consequence.

use crate::breakable::breakable;

breakable! {
    /// One rule. Where the shell keeps it, this says so.
    pub enum Rule {
        /// A message is in the frame of the decision that causes it. Kept by the shell.
        SentInTheFrame,
        /// It leaves the node only when that frame is durable. Kept by the shell.
        SendWhenDurable,
        /// It is settled by its receiver's answer, not by having been sent.
        SettleOnAnswer,
        /// An answer settles the messages that it names, and no others.
        SettleOnlyNamed,
        /// A `Deliver` without an answer is sent again.
        RepeatUnanswered,
        /// After a restart or a move the state says what is owed.
        OweAfterRestart,
        /// One `Deliver` is under way for each pair of shards.
        OneUnderWay,
        /// A node has a limited number of them under way.
        WindowOfNode,
        /// A `Deliver` has a limited size.
        DeliverBytes,
        /// A message that must wait holds up no other.
        LaterHoldsNoOthers,
        /// Repeats wait longer and longer, and as long as the receiver asks for.
        BackOff,
        /// A message is sent for a day at most, also after its sender was away.
        DayLimit,
        /// A message that is given up is recorded with its reason.
        FailureIsRecorded,
        /// What the receiver cannot read or what makes it panic is given up after twenty tries.
        PoisonedAfterTries,
        /// Messages of a shard are limited in count.
        RoomCount,
        /// ... and in bytes.
        RoomBytes,
        /// Hooks of a shard are limited.
        HookRoom,
        /// ... and for one destination.
        HookRoomOfOne,
        /// A tenant has a quarter of each at most.
        TenantPart,
        /// An END always has room: it was reserved with the child.
        EndsHaveRoom,
        /// The children whose ENDs a shard will owe are limited.
        EndRoomIsReserved,
        /// A hook without room is recorded.
        DropIsRecorded,
        /// A `Settled` event has at most a batch, and waits for a second at most.
        SettleInBatches,
        /// A message may be sent again by hand only while its key lives.
        ByHandWithinKey,

        /// The receiver acts once for each key.
        IdempotentByKey,
        /// It answers when what it made is durable. Kept by the shell.
        AnswerWhenDurable,
        /// Also to the repeat of a message whose run is not durable yet. Kept by the shell.
        RepeatWaitsToo,
        /// Also that it refuses. Kept by the shell.
        RefuseWhenDurable,
        /// A look-up of a key that is too old is made again.
        LookUpIsFresh,
        /// Memory keeps a key for longer than a look-up counts.
        KeyOutlivesLookUp,
        /// A look-up counts only for the epoch in which it was made.
        LookUpOfThisEpoch,
        /// The owner of a shard knows the keys that the view does not show yet. Kept by the shell.
        UnshownKeysRebuilt,
        /// Key rows live for two days after the end of their runs, whatever retention says.
        KeyRowsLive,
        /// The run that has the key must be of the source that the message makes.
        SourceIsChecked,
        /// Callers' keys cannot look like those of messages.
        CallersKeysAreOthers,
        /// A message makes runs of its own tenant only.
        TenantIsChecked,
        /// The key of a compensation has no generation: a second failure does not undo twice.
        CompensationOnce,
        /// The key of any other hook has one.
        HookPerGeneration,
        /// A job that was created after the message was decided is another one than that which it meant.
        NewerJobIsAnother,
        /// A shard whose mailbox is half full takes none.
        HalfFullIsLater,
        /// Taking a message needs no room in the receiver's own outbox.
        TakeWithoutRoom,
        /// A kind that the receiver does not know waits until a release does.
        UnknownKindWaits,
        /// A `Deliver` that waited on its way for long is not taken.
        StaleIsLater,
        /// The chain of messages is limited.
        DepthIsChecked,

        /// A restore marks what is owed.
        RestoreMarks,
        /// Messages of runs that are older than the restore, or that a marked message made, are marked too.
        MarkIsInherited,
        /// The run of a marked message waits for a person if its job is not idempotent.
        MarkedAsks,
        /// The day of a restored message begins anew.
        DayAfterRestore,
        /// Key rows of a restored store live two days from the restore on.
        KeysAfterRestore,
        /// A migration moves a message to the shard of the slot that sent it.
        MigrateBySlot,
        /// ... under a new number.
        MigrateNewIds,
    }
}
