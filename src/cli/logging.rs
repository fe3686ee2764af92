//! Logs of `dev`, `server` and `executor`, on stderr.

use super::failure::Failure;
use crate::config::{LogFormat, LogSection};
use tracing_subscriber::{EnvFilter, filter::LevelFilter};

/// Prints every message between nodes with its bytes at debug: slow, and not for logs.
const NEVER_LOUDER: &str = "ractor_cluster=info";

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
    let lines = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(filter)
        // Told on stderr, where it just failed, and a failure there is a panic: whoever logs on a full disk would end.
        .log_internal_errors(false);
    let started = match log.format {
        LogFormat::Text => {
            let colors = std::io::IsTerminal::is_terminal(&std::io::stderr());
            lines.with_ansi(colors).try_init()
        }
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| wrong(&error))
}
