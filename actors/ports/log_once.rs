//! Logs a failure that lasts when it begins, now and then while it lasts, and when it is over, instead of each time that it
//! happens. A node that is cut off from its store sees the same failure thousands of times a minute.

use parking_lot::Mutex;
use std::{
    fmt::Display,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// Between two lines about the same failure.
pub const TELL_EVERY: Duration = Duration::from_secs(10);
/// The failure is over when something succeeds and it was not seen for so long: while some statements fail and others do not, it lasts.
pub const QUIET: Duration = Duration::from_secs(3);

/// One kind of failure. Shared by all who may see it.
#[derive(Debug)]
pub struct LogOnce {
    /// What goes wrong: the line's text.
    what: &'static str,
    every: Duration,
    quiet: Duration,
    /// Asked after each success, without the lock.
    lasting: AtomicBool,
    course: Mutex<Course>,
}

/// What is to be told.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Begun,
    /// So often since the last line.
    Lasting {
        times: u64,
        since: Duration,
    },
    /// It was seen first and last so far apart.
    Over {
        times: u64,
        lasted: Duration,
    },
}

/// How it went so far. Pure: the time is an argument.
#[derive(Debug, Default)]
struct Course {
    /// First and last time that it was seen; None = all is well.
    failed: Option<(Instant, Instant)>,
    told: Option<Instant>,
    untold: u64,
    times: u64,
}

impl Course {
    /// Told again after `every`.
    fn failed(&mut self, now: Instant, every: Duration) -> Option<Line> {
        let Some((first, last)) = &mut self.failed else {
            *self = Self { failed: Some((now, now)), told: Some(now), untold: 0, times: 1 };
            return Some(Line::Begun);
        };
        *last = now.max(*last);
        self.times += 1;
        self.untold += 1;
        if self.told.is_some_and(|told| now.saturating_duration_since(told) < every) {
            return None;
        }
        self.told = Some(now);
        Some(Line::Lasting { times: std::mem::take(&mut self.untold), since: now.saturating_duration_since(*first) })
    }

    /// `quiet`: not before it was not seen for so long.
    fn recovered(&mut self, now: Instant, quiet: Duration) -> Option<Line> {
        let (first, last) = self.failed.filter(|(_, last)| now.saturating_duration_since(*last) >= quiet)?;
        let over = Line::Over { times: self.times, lasted: last.saturating_duration_since(first) };
        *self = Self::default();
        Some(over)
    }
}

impl LogOnce {
    /// `what` as a sentence without its end, such as "the read model cannot be written".
    #[must_use]
    pub fn new(what: &'static str) -> Self {
        Self { what, every: TELL_EVERY, quiet: QUIET, lasting: AtomicBool::new(false), course: Mutex::default() }
    }

    /// For a failure that is looked for seldom and lasts for days: logged so often, and over when it was not seen for as long.
    #[must_use]
    pub fn every(self, every: Duration) -> Self {
        Self { every, quiet: every, ..self }
    }

    /// It failed.
    pub fn failed(&self, error: &dyn Display) {
        let mut course = self.course.lock();
        let line = course.failed(Instant::now(), self.every);
        // Under the lock, as its opposite: they must not overtake each other.
        self.lasting.store(true, Ordering::Release);
        drop(course);
        match line {
            Some(Line::Begun) => tracing::warn!(%error, "{}", self.what),
            Some(Line::Lasting { times, since }) => {
                tracing::warn!(%error, times, for_ms = since.as_millis() as u64, "{}, still", self.what);
            }
            Some(Line::Over { .. }) | None => tracing::trace!(%error, "{}", self.what),
        }
    }

    /// What could have failed did not.
    pub fn recovered(&self) {
        self.end_after(self.quiet);
    }

    /// It is over now, and is not looked for any more.
    pub fn end(&self) {
        self.end_after(Duration::ZERO);
    }

    fn end_after(&self, quiet: Duration) {
        if !self.lasting.load(Ordering::Acquire) {
            return;
        }
        let mut course = self.course.lock();
        let line = course.recovered(Instant::now(), quiet);
        if line.is_some() {
            self.lasting.store(false, Ordering::Release);
        }
        drop(course);
        if let Some(Line::Over { times, lasted }) = line {
            tracing::info!(times, lasted_ms = lasted.as_millis() as u64, "over: {}", self.what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeMap, sync::Arc};
    use tracing::{
        Event, Level, Metadata, Subscriber,
        span::{Attributes, Id, Record},
    };

    /// Counts log lines by level.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<BTreeMap<Level, usize>>>);

    impl Subscriber for Lines {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() <= Level::INFO
        }
        fn event(&self, event: &Event<'_>) {
            *self.0.lock().entry(*event.metadata().level()).or_default() += 1;
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn thousands_of_failures_are_one_line_and_their_end_another() {
        let lines = Lines::default();
        tracing::subscriber::with_default(lines.clone(), || {
            let log = LogOnce::new("nothing answers");
            log.recovered();
            log.end();
            assert!(lines.0.lock().is_empty());
            for n in 0..10_000 {
                log.failed(&"no answer");
                // Not over yet: the next one fails again.
                if n % 3 == 0 {
                    log.recovered();
                }
            }
            assert_eq!(*lines.0.lock(), BTreeMap::from([(Level::WARN, 1)]));
            log.end();
            log.end();
            assert_eq!(*lines.0.lock(), BTreeMap::from([(Level::WARN, 1), (Level::INFO, 1)]));
        });
    }

    #[test]
    fn a_minute_of_failures_is_a_few_lines_and_its_end_is_told_once() {
        let begin = Instant::now();
        let at = |ms: u64| begin + Duration::from_millis(ms);
        let mut course = Course::default();
        let mut lines = Vec::new();
        // Each 20 ms, while now and then something succeeds.
        for n in 0..3_000 {
            lines.extend(course.failed(at(n * 20), TELL_EVERY));
            if n % 50 == 0 {
                lines.extend(course.recovered(at(n * 20 + 1), QUIET));
            }
        }
        assert_eq!(lines.len(), 6, "{lines:?}");
        assert_eq!(lines[0], Line::Begun);
        assert_eq!(lines[1], Line::Lasting { times: 500, since: Duration::from_secs(10) });
        assert_eq!(lines[5], Line::Lasting { times: 500, since: Duration::from_secs(50) });
        let end = 2_999 * 20;
        assert_eq!(course.recovered(at(end + 2_999), QUIET), None, "it may come back");
        let over = Line::Over { times: 3_000, lasted: Duration::from_millis(end) };
        assert_eq!(course.recovered(at(end + 3_000), QUIET), Some(over));
        assert_eq!(course.recovered(at(end + 9_000), QUIET), None, "told once");
        assert_eq!(course.failed(at(end + 10_000), TELL_EVERY), Some(Line::Begun));
    }
    #[test]
    fn what_is_looked_for_each_minute_is_told_each_ten_and_comes_and_goes_in_silence() {
        let (every, begin) = (Duration::from_secs(600), Instant::now());
        let minute = |n: u32| begin + Duration::from_secs(60) * n;
        let mut course = Course::default();
        let mut lines = Vec::new();
        for n in 0..60 {
            // Met each other time, as free room does that is near a limit.
            lines.extend(if n % 2 == 0 { course.failed(minute(n), every) } else { course.recovered(minute(n), every) });
        }
        assert_eq!(lines.len(), 6, "{lines:?}");
        assert_eq!(course.recovered(minute(67), every), None);
        assert!(matches!(course.recovered(minute(68), every), Some(Line::Over { times: 30, .. })));
        let log = LogOnce::new("x").every(every);
        assert_eq!((log.every, log.quiet), (every, every));
    }
}
