//! What the session sends: announcements, credit, logs and results. It writes as much as a connection takes now; the rest
//! goes on a later turn.

use super::{
    session::SessionTask,
    share::share,
    upstream::{LinkStage, Upstream, WaitingRequest},
};
use crate::clock::boot_ms;
use campanile_schema::{
    limits::{EXECUTOR_BATCH, EXECUTOR_RESULTS_WAITING, FINISH_GATHER_MS, LOG_CHUNK_BYTES},
    rpc::{
        executor::{Announce, Credit, Ended, Held, LogChunk},
        method,
    },
};
use serde::Serialize;
use std::time::Duration;
use tokio::time::Instant;

/// For so long the slots that cannot be shared out evenly are one node's, ms.
const REST_TURN_MS: u64 = 500;
/// Credit is moved between nodes at most this often, ms.
const MOVE_CREDIT_MS: u64 = 50;

/// [`campanile_schema::rpc::executor::Finish`] without owning the results.
#[derive(Serialize)]
struct FinishRef<'a> {
    items: &'a [&'a Ended],
    credit: Credit,
}

impl SessionTask {
    /// The complete list of what is held, in parts.
    pub(super) fn announce(&mut self, link: usize) {
        self.announce_again[link] = false;
        let held = self.attempts.held();
        let mut parts = held.chunks(EXECUTOR_BATCH).peekable();
        let none: &[Held] = &[];
        let mut part = parts.next().unwrap_or(none);
        loop {
            let more = parts.peek().is_some();
            let announce = Announce { held: part.to_vec(), more };
            self.upstreams[link].request(
                method::EXECUTOR_ANNOUNCE,
                &announce,
                WaitingRequest::Announce { last: !more },
            );
            match parts.next() {
                Some(next) => part = next,
                None => return,
            }
        }
    }

    /// This link's share of the free slots.
    fn share(&self, link: usize, now_ms: u64) -> u32 {
        if self.draining_until_ms.is_some() || self.attempts.unacknowledged() > EXECUTOR_RESULTS_WAITING {
            return 0;
        }
        let free = (self.config.register.slots as usize).saturating_sub(self.attempts.running());
        let ready = |u: &&Upstream| u.stage() == LinkStage::Ready;
        let wanting: Vec<bool> = self.upstreams.iter().filter(ready).map(Upstream::may_want_credit).collect();
        let node = self.upstreams[..link].iter().filter(ready).count();
        share(free, &wanting, node, (now_ms / REST_TURN_MS) as usize) as u32
    }

    fn load(&self) -> f32 {
        self.attempts.running() as f32 / self.config.register.slots as f32
    }

    pub(super) fn give_credit(&mut self, link: usize, now_ms: u64) {
        let (slots, load) = (self.share(link, now_ms), self.load());
        let credit = self.upstreams[link].credit(slots, load, now_ms);
        self.upstreams[link].notify(method::EXECUTOR_CREDIT, &credit);
    }

    /// Gives nodes their shares anew where those have changed, first those that lose: what is free is not to be given twice.
    fn move_credit(&mut self) {
        let now_ms = boot_ms();
        if !self.shares_changed || now_ms.saturating_sub(self.shared_ms) < MOVE_CREDIT_MS {
            return;
        }
        self.shares_changed = false;
        self.shared_ms = now_ms;
        let ready = (0..self.upstreams.len()).filter(|link| self.upstreams[*link].stage() == LinkStage::Ready);
        let more = |link: usize| i64::from(self.share(link, now_ms)) - i64::from(self.upstreams[link].given());
        let mut moves: Vec<(i64, usize)> =
            ready.map(|link| (more(link), link)).filter(|(more, _)| *more != 0).collect();
        moves.sort_unstable();
        for (_, link) in moves {
            self.give_credit(link, now_ms);
        }
    }

    /// Results wait for others to join them.
    pub(super) fn gathers(&self) -> bool {
        (0..self.upstreams.len()).any(|link| self.attempts.has_unsent(link)) && Instant::now() < self.finish_from
    }

    /// Sends what can be sent now.
    pub(super) fn flush(&mut self) {
        self.flush_logs();
        let finishing = Instant::now() >= self.finish_from;
        for link in 0..self.upstreams.len() {
            if self.announce_again[link] && self.upstreams[link].stage() == LinkStage::Ready {
                self.announce(link);
            }
            while finishing && self.attempts.has_unsent(link) && self.upstreams[link].can_finish() {
                self.finish_from = Instant::now() + Duration::from_millis(FINISH_GATHER_MS);
                let (slots, load) = (self.share(link, boot_ms()), self.load());
                let batch = self.attempts.batch(link);
                if batch.keys.is_empty() {
                    break;
                }
                let upstream = &mut self.upstreams[link];
                for chunk in &batch.logs {
                    upstream.notify(method::EXECUTOR_LOG, chunk);
                }
                let credit = upstream.credit(slots, load, boot_ms());
                let finish = FinishRef { items: &batch.items, credit };
                upstream.request(method::EXECUTOR_FINISH, &finish, WaitingRequest::Finish(batch.keys));
                // What this node's runs gave back may be another's.
                self.shares_changed |= self.upstreams.iter().enumerate().any(|(at, u)| at != link && u.hints());
            }
        }
        self.move_credit();
    }

    fn flush_logs(&mut self) {
        for _ in 0..self.log_queue.len() {
            let Some(key) = self.log_queue.pop_front() else {
                return;
            };
            // Of an attempt that has ended: its result takes the rest along.
            let Some((ctx, link)) = self.attempts.context(key) else {
                continue;
            };
            if !self.upstreams[link].can_log() {
                self.log_queue.push_back(key);
                continue;
            }
            if let Some(data) = ctx.take_log(false) {
                let chunk = LogChunk { run: key.run, token: key.token, attempt: ctx.attempt(), data };
                let full = chunk.data.len() == LOG_CHUNK_BYTES;
                self.upstreams[link].request(method::EXECUTOR_LOG, &chunk, WaitingRequest::Log);
                if full {
                    self.log_queue.push_back(key);
                }
            }
        }
    }
}
