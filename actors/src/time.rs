//! The node's guarded time: the time that decisions use as "now", and whether the node may fire.

use campanile_core::clock::{ClockGuard, Reading, Saved, Verdict, trusted_us};
use campanile_ports::Clock;
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

/// No nodes agree, or there are none.
const NOBODY: i64 = i64::MIN;

/// What most nodes' clocks say: membership asks them, the guard goes by it. Nobody says anything on a node alone.
#[derive(Clone)]
pub struct AgreedTime(Arc<AtomicI64>);

impl Default for AgreedTime {
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(NOBODY)))
    }
}

impl AgreedTime {
    /// Their wall clock minus this node's CLOCK_BOOTTIME, milliseconds.
    pub fn set(&self, offset_ms: Option<i64>) {
        self.0.store(offset_ms.map_or(NOBODY, |ms| ms * 1_000), Ordering::Relaxed);
    }

    fn offset_us(&self) -> Option<i64> {
        let offset_us = self.0.load(Ordering::Relaxed);
        (offset_us != NOBODY).then_some(offset_us)
    }
}

/// See the module's text.
pub struct NodeTime {
    clock: Arc<dyn Clock>,
    agreed: AgreedTime,
    guard: Mutex<ClockGuard>,
    verdict: Mutex<Verdict>,
    /// Wall - boot that the guard believes, microseconds: kept beside it, because every decision asks.
    believed_us: AtomicI64,
}

impl NodeTime {
    /// `last_us`: newest time in the journal; `saved`: reading of an earlier start.
    pub fn start(
        clock: Arc<dyn Clock>,
        boot_id: &str,
        last_us: Option<i64>,
        saved: Option<&Saved>,
        agreed: AgreedTime,
    ) -> Arc<Self> {
        let now = read(&*clock);
        let guard = ClockGuard::start(now, boot_id, last_us, saved, 0);
        let believed_us = AtomicI64::new(guard.believed_us());
        let time = Self { clock, agreed, guard: Mutex::new(guard), verdict: Mutex::new(Verdict::Run), believed_us };
        time.tick();
        Arc::new(time)
    }

    /// Looks at the clocks; true = firing may go on.
    pub fn tick(&self) -> bool {
        let verdict = {
            let mut guard = self.guard.lock();
            guard.agree(self.agreed.offset_us());
            let verdict = guard.tick(read(&*self.clock));
            self.believed_us.store(guard.believed_us(), Ordering::Relaxed);
            verdict
        };
        let runs = verdict == Verdict::Run;
        let mut last = self.verdict.lock();
        if *last != verdict {
            match &verdict {
                Verdict::Run => tracing::info!("the clock is trusted again; firing goes on"),
                Verdict::Paused => tracing::warn!("the wall clock jumped; firing pauses until two readings agree"),
                Verdict::Halted(reason) => tracing::error!(%reason, "firing is halted"),
            }
            metrics::counter!("campanile_clock_verdict_changes_total").increment(1);
            *last = verdict;
        }
        runs
    }

    /// Why firing is halted.
    pub fn halted(&self) -> Option<String> {
        match &*self.verdict.lock() {
            Verdict::Run => None,
            Verdict::Paused => Some("the wall clock jumped; firing pauses until two readings agree".to_owned()),
            Verdict::Halted(reason) => Some(reason.clone()),
        }
    }

    /// The operator says that the clock is right.
    pub fn accept(&self) {
        let mut guard = self.guard.lock();
        guard.accept();
        self.believed_us.store(guard.believed_us(), Ordering::Relaxed);
    }

    pub fn now_ms(&self) -> i64 {
        self.now_us() / 1000
    }
    /// The wall clock, while it is believed.
    pub fn now_us(&self) -> i64 {
        trusted_us(read(&*self.clock), self.believed_us.load(Ordering::Relaxed))
    }
    /// Never jumps; for leases and idle times.
    pub fn boot_ms(&self) -> i64 {
        (self.clock.boot_us() / 1000) as i64
    }
    /// To be saved for the next start.
    pub fn reading(&self, boot_id: &str) -> Saved {
        let r = read(&*self.clock);
        Saved { boot_id: boot_id.to_owned(), wall_us: r.wall_us, boot_us: r.boot_us }
    }
}

fn read(clock: &dyn Clock) -> Reading {
    Reading { wall_us: clock.wall_us(), boot_us: clock.boot_us() }
}
