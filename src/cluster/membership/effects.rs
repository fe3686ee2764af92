//! What the protocol wants done: packets, timers, news.

use super::identity::Identity;
use foca::{Notification, OwnedNotification, Runtime, Timer};
use std::{collections::BTreeMap, time::Duration};

/// Gathered during one call of foca.
#[derive(Default)]
pub(super) struct Effects {
    pub packets: Vec<(Identity, Vec<u8>)>,
    pub timers: Vec<(Duration, Timer<Identity>)>,
    pub news: Vec<OwnedNotification<Identity>>,
}

impl Runtime<Identity> for Effects {
    fn notify(&mut self, notification: Notification<'_, Identity>) {
        self.news.push(notification.to_owned());
    }

    fn send_to(&mut self, to: Identity, data: &[u8]) {
        self.packets.push((to, data.to_vec()));
    }

    fn submit_after(&mut self, event: Timer<Identity>, after: Duration) {
        self.timers.push((after, event));
    }
}

/// Timers by the moment when they are due. Those of one moment in the order that foca asks for: an indirect probe before the next one.
#[derive(Default)]
pub(super) struct Timers {
    due: BTreeMap<(u64, u8, u64), Timer<Identity>>,
    added: u64,
}

impl Timers {
    pub fn add(&mut self, due_ms: u64, timer: Timer<Identity>) {
        self.added += 1;
        self.due.insert((due_ms, rank(&timer), self.added), timer);
    }

    /// The first one that is due, with its moment.
    pub fn take(&mut self, now_ms: u64) -> Option<(u64, Timer<Identity>)> {
        let first = self.due.first_entry().filter(|first| first.key().0 <= now_ms)?;
        let due = first.key().0;
        Some((due, first.remove()))
    }

    pub fn next_ms(&self) -> Option<u64> {
        self.due.first_key_value().map(|((due, ..), _)| *due)
    }

    pub fn clear(&mut self) {
        self.due.clear();
    }
}

fn rank(timer: &Timer<Identity>) -> u8 {
    match timer {
        Timer::SendIndirectProbe { .. } => 0,
        Timer::ProbeRandomMember(_) => 1,
        Timer::ChangeSuspectToDown { .. } => 2,
        Timer::PeriodicAnnounce(_) => 3,
        Timer::PeriodicGossip(_) => 4,
        Timer::RemoveDown(_) => 5,
        Timer::PeriodicAnnounceDown(_) => 6,
    }
}
