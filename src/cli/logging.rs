//! Logs of `dev`, `server` and `executor`, on stderr.

use super::failure::Failure;
use crate::config::{LogFormat, LogSection};
use campanile_schema::text::is_shown;
use std::io::{self, Stderr, Write};
use tracing_subscriber::{EnvFilter, filter::LevelFilter};

/// Prints every message between nodes with its bytes at debug: slow, and not for logs.
const NEVER_LOUDER: &str = "ractor_cluster=info";

/// How lines look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Plain,
    /// With escape sequences of our own.
    Colored,
}

/// Writes whole lines. What peers say can be part of any value, and a line of theirs must not look like one of the node's: control
/// characters within a line are written as escapes.
struct Lines<W> {
    out: W,
    form: Form,
}

impl<W: Write> Write for Lines<W> {
    /// A whole event, as the formatter writes it.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        match self.form {
            // Its strings are escaped by its own rules.
            Form::Json => self.out.write_all(event)?,
            Form::Plain => self.out.write_all(&escaped(event, false))?,
            Form::Colored => self.out.write_all(&escaped(event, true))?,
        }
        Ok(event.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn escaped(event: &[u8], colored: bool) -> Vec<u8> {
    let (line, end) = match event.strip_suffix(b"\n") {
        Some(line) => (line, "\n"),
        None => (event, ""),
    };
    let mut out = Vec::with_capacity(event.len());
    for c in String::from_utf8_lossy(line).chars() {
        // The formatter escapes ESC in values by itself.
        let ours = colored && c == '\u{1b}';
        if is_shown(c) || ours {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            out.extend(c.escape_default().map(|c| c as u8));
        }
    }
    out.extend_from_slice(end.as_bytes());
    out
}

fn lines(form: Form) -> impl Fn() -> Lines<Stderr> {
    move || Lines { out: io::stderr(), form }
}

/// Starts logging for the life of the process.
pub(super) fn start(log: &LogSection) -> Result<(), Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("log.level: {error}"));
    let filter = EnvFilter::builder().parse(&log.level).map_err(|error| wrong(&error))?;
    // Somebody who names it gets what was asked for.
    let asked = log.level.contains("ractor_cluster");
    let loud = filter.max_level_hint().is_none_or(|most| most > LevelFilter::INFO);
    let filter = if loud && !asked {
        filter.add_directive(NEVER_LOUDER.parse().map_err(|error| wrong(&error))?)
    } else {
        filter
    };
    let form = match log.format {
        LogFormat::Json => Form::Json,
        LogFormat::Text if io::IsTerminal::is_terminal(&io::stderr()) => Form::Colored,
        LogFormat::Text => Form::Plain,
    };
    let lines = tracing_subscriber::fmt()
        .with_writer(lines(form))
        .with_env_filter(filter)
        // Told on stderr, where it just failed, and a failure there is a panic: whoever logs on a full disk would end.
        .log_internal_errors(false);
    let started = match log.format {
        LogFormat::Text => lines.with_ansi(form == Form::Colored).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_begin_a_line_of_its_own() {
        let shown = |event: &str, colored| String::from_utf8(escaped(event.as_bytes(), colored)).unwrap_or_default();
        let forged = "registered executor=a\n INFO audit: all is well\r\u{1b}[2J\u{202e}\u{9b}1m\n";
        let line = "registered executor=a\\n INFO audit: all is well\\r\\u{1b}[2J\\u{202e}\\u{9b}1m\n";
        assert_eq!(shown(forged, false), line);
        assert_eq!(shown("\u{1b}[32m INFO\u{1b}[0m ä: a\nb\n", true), "\u{1b}[32m INFO\u{1b}[0m ä: a\\nb\n");
        assert_eq!(shown("", false), "");
        for (form, whole) in [(Form::Plain, line), (Form::Json, forged)] {
            let mut lines = Lines { out: Vec::new(), form };
            lines.write_all(forged.as_bytes()).unwrap_or_default();
            assert_eq!(String::from_utf8_lossy(&lines.out), whole);
        }
    }
}
