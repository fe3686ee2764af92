//! Logs of `dev`, `server` and `executor`, on stderr.

use super::failure::Failure;
use crate::config::{LogFormat, LogSection};
use tracing_subscriber::EnvFilter;

/// Starts logging for the life of the process.
pub(super) fn start(log: &LogSection) -> Result<(), Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("log.level: {error}"));
    let filter = EnvFilter::builder().parse(&log.level).map_err(|error| wrong(&error))?;
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter);
    let started = match log.format {
        LogFormat::Text => {
            let colors = std::io::IsTerminal::is_terminal(&std::io::stderr());
            lines.with_ansi(colors).try_init()
        }
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| wrong(&error))
}
