//! How far something is that takes longer than a second: one line on a terminal's stderr, gone when it is done. Nothing where
//! stderr is no terminal, and with `--quiet`.

use super::output::{size, style, within};
use parking_lot::{Condvar, Mutex};
use std::{
    fmt::Write as _,
    io::{self, Read, Write as _},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// What ends sooner shows nothing.
const FIRST: Duration = Duration::from_secs(1);
/// Between two drawings.
const REDRAW_PAUSE: Duration = Duration::from_millis(250);
/// Of the bar, columns.
const BAR: std::ops::RangeInclusive<usize> = 10..=30;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Bytes,
    /// `jobs`.
    Things(&'static str),
    /// Nothing: only time passes.
    Time,
}

/// Drawn from its making until it is dropped.
pub(super) struct Progress {
    shared: Arc<Shared>,
    drawing: Option<JoinHandle<()>>,
}

struct Shared {
    what: Mutex<String>,
    unit: Unit,
    /// Of [`Progress::add`].
    done: AtomicU64,
    total: Option<u64>,
    began: Instant,
    ended: Mutex<bool>,
    end: Condvar,
}

impl Progress {
    /// `total`: how much it will be, where that is known.
    pub fn new(what: impl Into<String>, unit: Unit, total: Option<u64>) -> Self {
        Self::drawn(what, unit, total, style().draws())
    }

    /// Counts, and shows nothing.
    pub fn hidden() -> Self {
        Self::drawn("", Unit::Time, None, false)
    }

    fn drawn(what: impl Into<String>, unit: Unit, total: Option<u64>, draws: bool) -> Self {
        let shared = Arc::new(Shared {
            what: Mutex::new(what.into()),
            unit,
            done: AtomicU64::new(0),
            total,
            began: Instant::now(),
            ended: Mutex::new(false),
            end: Condvar::new(),
        });
        let drawing = draws.then(|| {
            let shared = shared.clone();
            std::thread::spawn(move || shared.draw())
        });
        Self { shared, drawing }
    }

    pub fn add(&self, count: u64) {
        self.shared.done.fetch_add(count, Ordering::Relaxed);
    }

    /// What is going on now.
    pub fn name(&self, what: impl Into<String>) {
        *self.shared.what.lock() = what.into();
    }

    /// A line on stderr that stays.
    pub fn say(&self, line: &str) {
        // Not between two drawings of the other thread.
        let _still = self.shared.ended.lock();
        let clear = if self.drawing.is_some() { "\r\u{1b}[K" } else { "" };
        eprintln!("{clear}{line}");
    }

    /// What is read through it is counted in bytes.
    pub fn counting<R: Read>(&self, input: R) -> Counting<R> {
        Counting { input, shared: self.shared.clone() }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        *self.shared.ended.lock() = true;
        self.shared.end.notify_all();
        if let Some(drawing) = self.drawing.take() {
            // It only draws: what went wrong there is no failure of the work.
            let _ = drawing.join();
        }
    }
}

impl Shared {
    fn draw(&self) {
        let mut ended = self.ended.lock();
        let mut pause = FIRST;
        let mut drawn = false;
        loop {
            // Woken at the end only; a wait that is over too soon draws once more.
            self.end.wait_for(&mut ended, pause);
            if *ended {
                break;
            }
            let seen = ProgressNow {
                what: &self.what.lock(),
                unit: self.unit,
                done: self.done.load(Ordering::Relaxed),
                total: self.total,
                elapsed: self.began.elapsed(),
            };
            // One column stays free: a full line would wrap on some terminals.
            let line = seen.line(size().0.saturating_sub(1));
            let _ = write!(io::stderr(), "\r{line}\u{1b}[K");
            (drawn, pause) = (true, REDRAW_PAUSE);
        }
        if drawn {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

/// See [`Progress::counting`].
pub(super) struct Counting<R> {
    input: R,
    shared: Arc<Shared>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.input.read(buffer)?;
        self.shared.done.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}

/// How far it is at one moment.
struct ProgressNow<'a> {
    what: &'a str,
    unit: Unit,
    done: u64,
    total: Option<u64>,
    elapsed: Duration,
}

impl ProgressNow<'_> {
    /// One line of at most so many columns.
    fn line(&self, width: usize) -> String {
        let mut numbers = String::new();
        if self.unit != Unit::Time {
            // Writing to a String cannot fail.
            let _ = match self.total {
                Some(total) => write!(numbers, "  {} of {}", amount(self.done, self.unit), amount(total, self.unit)),
                None => write!(numbers, "  {}", amount(self.done, self.unit)),
            };
            let _ = write!(numbers, "  {}/s", amount(self.rate(), bare(self.unit)));
        }
        let _ = match self.left() {
            Some(left) => write!(numbers, "  {} left", length(left)),
            None => write!(numbers, "  {}", length(self.elapsed)),
        };
        let room = width.saturating_sub(self.what.chars().count() + numbers.chars().count() + "  [] 100%".len());
        let bar = match self.total.filter(|total| *total > 0 && room >= *BAR.start()) {
            Some(total) => self.bar(total, room.min(*BAR.end())),
            None => String::new(),
        };
        within(&format!("{}{bar}{numbers}", self.what), width)
    }

    fn bar(&self, total: u64, columns: usize) -> String {
        let part = self.done.min(total) as f64 / total as f64;
        let full = (part * columns as f64) as usize;
        format!("  [{}{}] {:>3}%", "#".repeat(full), ".".repeat(columns - full), (part * 100.0) as u64)
    }

    /// Each second, from the beginning on.
    fn rate(&self) -> u64 {
        (self.done as f64 / self.elapsed.as_secs_f64().max(0.001)) as u64
    }

    /// How long it will take, when it goes on as before.
    fn left(&self) -> Option<Duration> {
        let total = self.total?;
        if self.done == 0 || self.done >= total {
            return None;
        }
        Some(self.elapsed.mul_f64((total - self.done) as f64 / self.done as f64))
    }
}

fn bare(unit: Unit) -> Unit {
    match unit {
        Unit::Things(_) => Unit::Things(""),
        Unit::Bytes | Unit::Time => unit,
    }
}

fn amount(count: u64, unit: Unit) -> String {
    match unit {
        Unit::Things("") | Unit::Time => count.to_string(),
        Unit::Things(name) => format!("{count} {name}"),
        Unit::Bytes => {
            let scales = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
            match scales.iter().find(|(scale, _)| count >= *scale) {
                Some((scale, name)) => format!("{:.1} {name}", count as f64 / *scale as f64),
                None => format!("{count} B"),
            }
        }
    }
}

fn length(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn seen(what: &'static str, unit: Unit, done: u64, total: Option<u64>, seconds: u64) -> ProgressNow<'static> {
        ProgressNow { what, unit, done, total, elapsed: Duration::from_secs(seconds) }
    }

    #[test]
    fn a_line_says_how_far_how_fast_and_how_long_yet() {
        let lines = [
            seen("verify", Unit::Bytes, 1_500_000_000, Some(6_000_000_000), 30).line(100),
            seen("verify", Unit::Bytes, 6_000_000_000, Some(6_000_000_000), 120).line(100),
            seen("verify", Unit::Bytes, 0, Some(6_000_000_000), 2).line(100),
            seen("verify", Unit::Bytes, 1_500_000_000, Some(6_000_000_000), 30).line(60),
            seen("verify", Unit::Bytes, 1_500_000_000, Some(6_000_000_000), 30).line(24),
            seen("backup", Unit::Bytes, 999, None, 3_700).line(100),
            seen("bulk", Unit::Things("jobs"), 20_000, None, 10).line(100),
            seen("import", Unit::Things("jobs"), 1, Some(4_000), 1).line(80),
            seen("empty", Unit::Things("jobs"), 0, Some(0), 1).line(80),
            seen("run 8193 is RUNNING", Unit::Time, 0, None, 61).line(100),
        ];
        insta::assert_snapshot!("progress-lines", lines.join("\n"));
        assert!(lines.iter().zip([100, 100, 100, 60, 24]).all(|(line, width)| line.chars().count() <= width));
    }

    #[test]
    fn what_is_read_is_counted_and_nothing_is_drawn_without_a_terminal() {
        let progress = Progress::hidden();
        assert!(progress.drawing.is_none());
        let mut text = String::new();
        progress.counting(&b"twelve bytes"[..]).read_to_string(&mut text).unwrap();
        progress.add(3);
        assert_eq!((text.as_str(), progress.shared.done.load(Ordering::Relaxed)), ("twelve bytes", 15));
    }
}
