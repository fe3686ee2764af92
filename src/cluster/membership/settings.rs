//! How the protocol is set. Measured: a process that is killed is known to all in 1.7 s, of 50 members in 2.7 s.

use super::{card, seal};
use campanile_schema::limits::{GOSSIP_CARD_BYTES, GOSSIP_PACKET_BYTES};
use foca::PeriodicParams;
use std::{
    num::{NonZeroU8, NonZeroUsize},
    time::Duration,
};

/// A suspect has this long to say that it is there.
pub(super) const SUSPECT_MS: u64 = 1_250;
/// A timer that comes later than this says that this process slept, and nothing of others.
pub(super) const LATE_MS: u64 = 250;
/// Between two looks at what is missing: seeds, cards, other processes with our id.
pub(super) const UPKEEP_MS: u64 = 100;
/// Between two attempts to join.
pub(super) const JOIN_MS: u64 = 500;
/// Between two attempts of a node that is refused.
pub(super) const REFUSED_MS: u64 = 1_000;
/// Between two looks whether seeds are members.
pub(super) const SEEDS_MS: u64 = 5_000;
/// Between two questions for one card. The first comes so long after its node was seen: most cards come by themselves.
pub(super) const CARD_MS: u64 = 300;
/// A leaving node says so this often, [`UPKEEP_MS`] apart.
pub(super) const FAREWELLS: u32 = 3;
/// Packets of a process after which its clock's offset is looked at anew.
pub(super) const OFFSET_PACKETS: u32 = 16;
/// Between two looks at the members' clocks.
pub(super) const CLOCKS_MS: u64 = 50;
/// A clock that was not heard for longer says nothing.
pub(super) const CLOCK_HEARD_MS: u64 = 10_000;
/// A clock that moved by less is not told again.
pub(super) const OFFSET_STEP_MS: u64 = 100;

/// What a sealed packet has beside the protocol's message: identity, numbers, lengths.
const AROUND_BYTES: usize = 112;
const MESSAGE_BYTES: usize = GOSSIP_PACKET_BYTES - seal::SEAL_BYTES - GOSSIP_CARD_BYTES - AROUND_BYTES;

const fn count(number: usize) -> NonZeroUsize {
    match NonZeroUsize::new(number) {
        Some(number) => number,
        None => NonZeroUsize::MIN,
    }
}

fn every(ms: u64, members: usize) -> Option<PeriodicParams> {
    Some(PeriodicParams { frequency: Duration::from_millis(ms), num_members: count(members) })
}

pub(super) fn swim() -> foca::Config {
    foca::Config {
        probe_period: Duration::from_millis(250),
        probe_rtt: Duration::from_millis(80),
        num_indirect_probes: count(3),
        max_transmissions: NonZeroU8::new(15).unwrap_or(NonZeroU8::MIN),
        suspect_to_down_after: Duration::from_millis(SUSPECT_MS),
        // Whom to look for after a partition; and how long an address keeps the generations that were there.
        remove_down_after: Some(Duration::from_secs(3_600)),
        max_packet_size: count(MESSAGE_BYTES),
        notify_down_members: true,
        periodic_announce: every(10_000, 1),
        periodic_announce_to_down_members: every(2_000, 2),
        periodic_gossip: every(50, 3),
    }
}

/// As it is set for saying farewell: to everybody, and as often as it takes.
pub(super) fn farewell(members: usize) -> foca::Config {
    foca::Config { num_indirect_probes: count(members.max(1)), max_transmissions: NonZeroU8::MAX, ..swim() }
}

/// Oldest format that this build still reads.
const OLDEST: u32 = 1;

/// Versions of a format that a build reads which knows it up to this one.
pub fn up_to(newest: u32) -> card::Versions {
    card::Versions(OLDEST, newest)
}
