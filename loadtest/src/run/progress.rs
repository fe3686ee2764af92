//! One line of live figures: drawn over itself on a terminal, now and then a plain line elsewhere.

use crate::report::Second;
use std::io::{IsTerminal, Write};

/// Seconds between two plain lines.
const PLAIN_EVERY: i64 = 5;

/// Tells how a run goes, on stderr.
pub(super) struct Progress {
    name: String,
    length_s: u64,
    terminal: bool,
    drawn: std::cell::Cell<bool>,
}

impl Progress {
    pub fn new(name: &str, length_s: u64) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { name: name.to_owned(), length_s, terminal, drawn: std::cell::Cell::new(false) }
    }

    /// A sentence of its own.
    pub fn tell(&self, text: &str) {
        self.clear();
        eprintln!("{}: {text}", self.name);
    }

    fn clear(&self) {
        if self.drawn.replace(false) {
            eprint!("\r\x1b[2K");
        }
    }

    /// The figures of a second.
    pub fn second(&self, s: &Second, phase: &str) {
        let second = s.second + 1;
        if !self.terminal && second % PLAIN_EVERY != 0 {
            return;
        }
        let ms = |value: Option<f64>| value.map_or("-".to_owned(), |ms| format!("{ms:.0}"));
        let whole = |value: Option<f64>| value.map_or("-".to_owned(), |n| format!("{n:.0}"));
        let node = s.node.map_or("-".to_owned(), |u| format!("{:.2} cores {:.0} MB", u.cores, u.rss_mb));
        let text = format!(
            "{} {second}/{} s {phase}: due {}/s received {}/s, p50 {} p99 {} p99.9 {} ms, node {node}, open {} waiting {} lag {}",
            self.name,
            self.length_s,
            s.due,
            s.received,
            ms(s.start_p50_ms),
            ms(s.start_p99_ms),
            ms(s.start_p999_ms),
            whole(s.open_runs),
            whole(s.waiting),
            whole(s.lag_events)
        );
        if self.terminal {
            eprint!("\r\x1b[2K{text}");
            // Nothing can be done for a terminal that is gone.
            let _ = std::io::stderr().flush();
            self.drawn.set(true);
        } else {
            eprintln!("{text}");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
