//! Limits of the outbox: messages by which one job makes a run of another.

/// Messages of one shard that are not settled, count. Ends of child runs are not counted: each took its room with its child.
pub const OUTBOX_MESSAGES: usize = 65_536;
/// The same, bytes.
pub const OUTBOX_BYTES: usize = 16 << 20;
/// Hooks among them, count.
pub const OUTBOX_HOOKS: usize = 16_384;
/// Hooks among them for one destination shard, count.
pub const OUTBOX_HOOKS_TO_ONE: usize = 1_024;
/// Parts into which each of these limits is divided, count: a tenant has one of them at most.
pub const OUTBOX_TENANT_PART: usize = 4;
/// Child runs of one shard that are open or whose end is not settled, count; over it the shard answers START with Later.
pub const OUTBOX_ENDS: usize = 65_536;
/// Bodies that travel in one `Deliver`, bytes. Well below [`super::GATEWAY_MESSAGE_BYTES`].
pub const DELIVER_BYTES: usize = 256 << 10;
/// Messages in one `Deliver`, count.
pub const DELIVER_MESSAGES: usize = 1_024;
/// `Deliver` calls of one node that are not answered, count.
pub const DELIVERS_IN_FLIGHT: usize = 64;
/// Those of them to one other node, count: a node that does not answer leaves places for the others.
pub const DELIVERS_TO_ONE_NODE: usize = DELIVERS_IN_FLIGHT / 4;
/// Keys of one `Deliver` that are looked up side by side, count.
pub const DELIVER_LOOK_UPS: usize = 32;
/// A `Deliver` that is not answered within this time is sent again, milliseconds.
pub const DELIVER_ANSWER_MS: u64 = 10_000;
/// A `Deliver` that was sent longer ago is not taken, milliseconds: it waited somewhere, and its keys may be gone.
pub const DELIVER_STALE_MS: i64 = 600_000;
/// First wait before a message is sent again that was not answered, milliseconds. It doubles up to [`DELIVER_AGAIN_MAX_MS`].
pub const DELIVER_AGAIN_MS: i64 = 100;
/// Longest wait before a message is sent again, milliseconds; also the longest that a receiver may ask for.
pub const DELIVER_AGAIN_MAX_MS: i64 = 30_000;
/// What a receiver asks for that cannot take a message now and does not know when it can, milliseconds.
pub const DELIVER_LATER_MS: u32 = 1_000;
/// Tries after which a message is given up that the receiver cannot decode or that makes it panic, count.
pub const POISONED_AFTER: u32 = 20;
/// Answered messages that one `Settled` event names, count.
pub const SETTLE_BATCH: usize = 256;
/// Longest wait of an answered message for its `Settled` event, milliseconds.
pub const SETTLE_MS: i64 = 1_000;
/// A message is repeated for this long, milliseconds: a day. Then it is UNDELIVERED.
pub const DELIVER_FOR_MS: i64 = 86_400_000;
/// Key rows of runs that messages made live this long after the run's end, milliseconds: two days.
pub const MESSAGE_KEY_MS: i64 = 2 * 86_400_000;
/// A message may be sent again by hand until this long after it was decided, milliseconds: an hour less than its key lives.
pub const SEND_BY_HAND_MS: i64 = MESSAGE_KEY_MS - 3_600_000;
/// Memory keeps a message's key for this long after the view shows it, milliseconds.
pub const KEY_KEPT_MS: i64 = 60_000;
/// A look-up of a message's key that is older is made again, milliseconds. Half of [`KEY_KEPT_MS`] at most.
pub const KEY_LOOK_UP_MS: i64 = 30_000;
/// Messages that lead from one run to the next one, count: over it a hook is refused.
pub const MESSAGE_DEPTH: u32 = 8;
/// Messages of one shard that were given up and are shown until a person sends or discards them, count. The oldest go first.
pub const OUTBOX_FAILED: usize = 512;
/// The same, bytes.
pub const OUTBOX_FAILED_BYTES: usize = 1 << 20;
/// Hooks whose jobs were not started that the record of a run names, count. The oldest go first.
pub const FAILED_HOOKS_KEPT: usize = 16;
/// Hooks of one kind of one job, count.
pub const HOOKS_OF_KIND: usize = 4;
/// Runs of hooks to which one end of a run may lead, all that follow from them included, count.
pub const HOOK_BUDGET: u32 = 64;
/// Runs of one job whose deadlines are decided at once, count; the others follow at once.
pub const DEADLINES_PER_WAKE: usize = 64;
/// Attempts of channels that a node runs at once unless it is configured otherwise, count.
pub const CHANNEL_SLOTS: u32 = 64;
/// Attempts of the channels of one tenant at once on a node, count: one receiver that does not answer keeps no other tenant's back.
pub const CHANNEL_RUNS_PER_TENANT: u32 = 16;
/// Longest time of one webhook, seconds.
pub const WEBHOOK_TIMEOUT_SEC: u32 = 60;
/// Largest `params` of a hook, bytes of JSON.
pub const HOOK_PARAMS_BYTES: usize = 16 << 10;
