//! Windows and blackouts by the civil clock of each zone, one moment at a time: written apart from `campanile_core::windows`, to judge it.

use super::make::ms;
use campanile_core::cron::find_zone;
use campanile_schema::{
    event::SkipReason,
    stored::{StoredBlackout, StoredWindow, StoredWindows},
};
use proptest::{collection::vec, prelude::*, sample::select};

/// Why an instant does not count.
pub fn closed(windows: &StoredWindows, at_ms: i64) -> Option<SkipReason> {
    if windows.blackouts.iter().any(|blackout| blackout.from_ms <= at_ms && at_ms < blackout.to_ms) {
        return Some(SkipReason::Blackout);
    }
    let inside = |window: &&StoredWindow| holds(window, at_ms);
    let (denying, allowing): (Vec<_>, Vec<_>) = windows.windows.iter().partition(|window| window.deny);
    let is_open = allowing.is_empty() || allowing.iter().any(inside);
    (!is_open || denying.iter().any(inside)).then_some(SkipReason::Window)
}

fn holds(window: &StoredWindow, at_ms: i64) -> bool {
    let local = jiff::Timestamp::from_millisecond(at_ms).unwrap().to_zoned(find_zone(&window.zone).unwrap());
    let minute = u16::try_from(i32::from(local.hour()) * 60 + i32::from(local.minute())).unwrap();
    let today = local.weekday().to_monday_zero_offset();
    let begins_on = |day: i8| window.days >> day.rem_euclid(7) & 1 == 1;
    if window.from < window.to {
        begins_on(today) && window.from <= minute && minute < window.to
    } else {
        (begins_on(today) && window.from <= minute) || (begins_on(today - 1) && minute < window.to)
    }
}

const ZONES: [&str; 6] =
    ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kolkata"];

fn window() -> impl Strategy<Value = StoredWindow> {
    let minute = || prop_oneof![6 => (0u16..96).prop_map(|quarter| quarter * 15), 1 => 0u16..1_440];
    let days = prop_oneof![2 => Just(0x7f_u8), 2 => Just(0x1f), 1 => Just(0x60), 3 => 1u8..0x80];
    (prop::bool::weighted(0.3), days, minute(), prop_oneof![minute(), Just(1_440)], select(&ZONES[..]))
        .prop_map(|(deny, days, from, to, zone)| StoredWindow { deny, days, from, to, zone: zone.into() })
}

/// Some of both, about the time.
pub fn windows(base_ms: i64) -> impl Strategy<Value = StoredWindows> {
    let blackout = (-4_000i64..4_000, 1i64..3_000).prop_map(move |(from, minutes)| {
        let from_ms = base_ms + from * 60_000;
        StoredBlackout { from_ms, to_ms: from_ms + minutes * 60_000, reason: None }
    });
    (vec(window(), 0..4), vec(blackout, 0..3))
        .prop_filter("neither", |(windows, blackouts)| !windows.is_empty() || !blackouts.is_empty())
        .prop_map(|(windows, blackouts)| StoredWindows { windows, blackouts })
}

#[test]
fn the_reference_reads_the_clock_of_the_zone() {
    let of = |days: u8, from: u16, to: u16| StoredWindow { deny: false, days, from, to, zone: "Europe/Berlin".into() };
    // Monday to Friday from 9 to 17, and Friday night.
    let windows = StoredWindows { windows: vec![of(0x1f, 540, 1_020), of(0x10, 1_320, 60)], blackouts: Vec::new() };
    for (at, open) in [
        ("2026-02-02T07:59:59Z", false), // Monday
        ("2026-02-02T08:00:00Z", true),
        ("2026-02-02T15:59:59Z", true),
        ("2026-02-02T16:00:00Z", false),
        ("2026-02-06T21:00:00Z", true), // Friday
        ("2026-02-06T23:59:59Z", true),
        ("2026-02-07T00:00:00Z", false), // Saturday, 01:00
        ("2026-02-07T21:00:00Z", false),
        ("2026-07-06T07:00:00Z", true), // in summer
    ] {
        assert_eq!(closed(&windows, ms(at)).is_none(), open, "{at}");
    }
}
