//! Watches the disk of the node's data directory: how much the directory takes, how much is free, and whether that is
//! enough. A node whose disk is full cannot write and ends its session. This task warns before that happens, in the
//! log, in metrics and in `/readyz`.
//!
//! It deletes nothing and refuses nothing: retention deletes, and the operator who reads the warning decides.

use crate::{
    disk_pressure::{DiskPressure, FREE_LEAST_BYTES},
    health::Health,
    maintenance::Retention,
};
use campanile_ports::{DiskRoom, LocalViews, log_once::LogOnce};
use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};
use tokio::time::{Instant, MissedTickBehavior};

/// History that is kept for ever is looked at so far ahead, days.
const FOR_EVER_DAYS: u32 = 30;
/// From one look to the next.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// How long the pace of history is measured.
const PACE_OVER: Duration = Duration::from_secs(3_600);
/// Between two lines about a disk that is short of room: it may be so for days.
const TELL_EVERY: Duration = Duration::from_secs(600);

/// What the log says of it.
fn log_of(why: DiskPressure) -> LogOnce {
    let what = match why {
        DiskPressure::FreeRoomLow => "FREE_ROOM_LOW: little room is left on the disk of the data directory",
        DiskPressure::HistoryOutgrowsDisk => {
            "HISTORY_OUTGROWS_DISK: history will need more room until its retention than is free"
        }
    };
    LogOnce::new(what).every(TELL_EVERY)
}

/// How fast history grows.
#[derive(Debug, Default)]
struct Pace {
    /// Bytes of history at the looks of the last hour, the oldest first: one is an hour old or more once there were enough.
    looks: VecDeque<(Instant, u64)>,
}

impl Pace {
    /// Bytes that history grows by in an hour, at a look; None until an hour has passed: a merge of tables makes minutes look like anything.
    fn look(&mut self, now: Instant, history: u64) -> Option<u64> {
        self.looks.push_back((now, history));
        let age = |at: &Instant| now.saturating_duration_since(*at);
        while self.looks.get(1).is_some_and(|(at, _)| age(at) >= PACE_OVER) {
            self.looks.pop_front();
        }
        let (at, before) = self.looks.front()?;
        let passed = age(at);
        let grown = history.saturating_sub(*before) as f64;
        (passed >= PACE_OVER).then(|| (grown * PACE_OVER.as_secs_f64() / passed.as_secs_f64()) as u64)
    }
}

/// What history will need besides what it has, bytes, if it goes on as in the last hour: until as many days are there as it is kept, or for
/// [`FOR_EVER_DAYS`] more. Once days go as they come it does not grow, and needs nothing. A limit of its size bounds it, with half as much
/// again while room is given back.
fn history_needs(retention: Retention, an_hour: u64, history: u64) -> u64 {
    let hours = |days: u32| u64::from(days) * 24;
    let will_be = match retention.days {
        0 => history.saturating_add(an_hour.saturating_mul(hours(FOR_EVER_DAYS))),
        days => an_hour.saturating_mul(hours(days)),
    };
    let most = match retention.max_bytes {
        0 => u64::MAX,
        bytes => bytes.saturating_add(bytes / 2),
    };
    will_be.min(most).saturating_sub(history)
}

/// What was read of the disk at one time.
#[derive(Clone, Copy, Debug)]
struct DiskReading {
    room: DiskRoom,
    /// None: not known yet.
    needs: Option<u64>,
}

impl DiskReading {
    fn is_short(&self, why: DiskPressure) -> bool {
        match why {
            DiskPressure::FreeRoomLow => self.room.free < FREE_LEAST_BYTES,
            DiskPressure::HistoryOutgrowsDisk => self.needs.is_some_and(|needs| needs > self.room.free),
        }
    }

    fn measure(&self) {
        let DiskRoom { journal, snapshots, history, free, size } = self.room;
        metrics::gauge!("campanile_journal_stored_bytes").set(journal as f64);
        metrics::gauge!("campanile_snapshots_stored_bytes").set(snapshots as f64);
        metrics::gauge!("campanile_history_stored_bytes").set(history as f64);
        metrics::gauge!("campanile_disk_free_bytes").set(free as f64);
        metrics::gauge!("campanile_disk_size_bytes").set(size as f64);
        if let Some(needs) = self.needs {
            metrics::gauge!("campanile_history_needs_bytes").set(needs as f64);
        }
        for why in DiskPressure::ALL {
            let short = if self.is_short(why) { 1.0 } else { 0.0 };
            metrics::gauge!("campanile_disk_short", "reason" => why.as_str()).set(short);
        }
    }
}

impl fmt::Display for DiskReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes >> 20;
        let DiskRoom { journal, snapshots, history, free, size } = self.room;
        write!(f, "{} of {} MiB are free; history takes {}", mib(free), mib(size), mib(history))?;
        if let Some(needs) = self.needs {
            write!(f, " and will need {} more", mib(needs))?;
        }
        write!(f, ", the journal {}, snapshots {}. ", mib(journal), mib(snapshots))?;
        f.write_str("Make room, or keep less history: retention_days and max_mb in [history]")
    }
}

/// Looks at the disk until it is aborted; ends at once where there is none.
pub async fn watch(health: Arc<Health>, views: Arc<dyn LocalViews>, retention: Retention) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let logs = DiskPressure::ALL.map(|why| (why, log_of(why)));
    let unseen = LogOnce::new("the room on the disk of the data directory cannot be read").every(TELL_EVERY);
    let mut pace = Pace::default();
    loop {
        looks.tick().await;
        let room = match views.room().await {
            Ok(Some(room)) => room,
            Ok(None) => return,
            Err(error) => {
                unseen.failed(&error);
                continue;
            }
        };
        unseen.recovered();
        let an_hour = pace.look(Instant::now(), room.history);
        let reading =
            DiskReading { room, needs: an_hour.map(|an_hour| history_needs(retention, an_hour, room.history)) };
        reading.measure();
        let mut short_of = Vec::new();
        for (why, log) in &logs {
            if reading.is_short(*why) {
                log.failed(&reading);
                short_of.push(*why);
            } else {
                log.recovered();
            }
        }
        health.set_disk(short_of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn kept(days: u32, max_bytes: u64) -> Retention {
        Retention { days, max_bytes, audit_days: 0 }
    }

    #[test]
    fn the_pace_is_that_of_the_last_hour() {
        let begin = Instant::now();
        let mut pace = Pace::default();
        let mut minute = |n: u64, history: u64| pace.look(begin + LOOK_EVERY * n as u32, history);
        for n in 0..60 {
            assert_eq!(minute(n, n * 10), None, "minute {n}");
        }
        assert_eq!(minute(60, 600), Some(600));
        // It stands still: an hour later nothing is left of the pace before.
        assert_eq!(minute(90, 600), Some(300));
        for n in 91..150 {
            minute(n, 600);
        }
        assert_eq!(minute(150, 600), Some(0));
        assert_eq!(minute(151, 100), Some(0), "room was given back");
        assert!(pace.looks.len() <= 62);
    }

    #[test]
    fn what_history_will_need_follows_from_its_retention() {
        // 1 GiB an hour for ten days are 240; 40 are there.
        assert_eq!(history_needs(kept(10, 0), GIB, 40 * GIB), 200 * GIB);
        assert_eq!(history_needs(kept(10, 0), GIB, 240 * GIB), 0);
        assert_eq!(history_needs(kept(10, 0), 0, 40 * GIB), 0, "as much goes as comes");
        assert_eq!(history_needs(kept(0, 0), GIB, 40 * GIB), 720 * GIB, "thirty days more");
        assert_eq!(history_needs(kept(10, 60 * GIB), GIB, 40 * GIB), 50 * GIB, "the limit and half of it");
        assert_eq!(history_needs(kept(10, 600 * GIB), GIB, 40 * GIB), 200 * GIB, "less than the limit");
        assert_eq!(history_needs(kept(36_500, 0), u64::MAX, 0), u64::MAX);
    }

    #[test]
    fn a_disk_is_short_of_what_is_free_or_of_what_history_will_need() {
        let short = |free: u64, needs: Option<u64>| {
            let reading = DiskReading { room: DiskRoom { free, size: 500 * GIB, ..DiskRoom::default() }, needs };
            DiskPressure::ALL
                .into_iter()
                .filter(|why| reading.is_short(*why))
                .map(DiskPressure::as_str)
                .collect::<Vec<_>>()
        };
        assert_eq!(short(FREE_LEAST_BYTES, None), [""; 0]);
        assert_eq!(short(FREE_LEAST_BYTES - 1, None), ["FREE_ROOM_LOW"]);
        assert_eq!(short(10 * GIB, Some(10 * GIB)), [""; 0]);
        assert_eq!(short(10 * GIB, Some(10 * GIB + 1)), ["HISTORY_OUTGROWS_DISK"]);
        assert_eq!(short(GIB, Some(3 * GIB)), ["FREE_ROOM_LOW", "HISTORY_OUTGROWS_DISK"]);
    }

    #[test]
    fn the_line_says_what_there_is_and_what_to_do() {
        let room = DiskRoom { journal: 3 << 20, snapshots: 2 << 20, history: 40 * GIB, free: GIB, size: 50 * GIB };
        let told = DiskReading { room, needs: Some(GIB) }.to_string();
        assert_eq!(
            told,
            "1024 of 51200 MiB are free; history takes 40960 and will need 1024 more, the journal 3, snapshots 2. Make room, or keep less \
             history: retention_days and max_mb in [history]"
        );
    }
}
