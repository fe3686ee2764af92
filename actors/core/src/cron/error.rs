//! Why an expression or a zone was refused. Both are the caller's doing: nothing has changed.

use std::fmt;

/// An expression that was refused: where, why, and what might have been meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronError {
    /// Byte offset in the text, from 0; the length of the text when something is missing at its end.
    pub position: usize,
    /// One clear line.
    pub message: String,
    /// What to write instead, when that can be told.
    pub suggestion: Option<String>,
    /// It is well written, but no calendar holds such a day.
    pub never_fires: bool,
}

impl CronError {
    #[cold]
    pub(super) fn at(position: usize, message: impl Into<String>) -> CronError {
        CronError { position, message: message.into(), suggestion: None, never_fires: false }
    }

    #[cold]
    pub(super) fn never_fires(position: usize, why: &str) -> CronError {
        CronError { never_fires: true, ..CronError::at(position, format!("this never fires: {why}")) }
    }

    pub(super) fn suggest(mut self, suggestion: impl Into<String>) -> CronError {
        self.suggestion = Some(suggestion.into());
        self
    }
}

impl fmt::Display for CronError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at character {})", self.message, self.position + 1)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; {suggestion}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for CronError {}

/// A time zone that the database does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneError {
    pub name: String,
    /// Known names that are close to it, the closest first.
    pub nearest: Vec<String>,
}

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown time zone '{}'", self.name.escape_debug())?;
        match self.nearest.as_slice() {
            [] => write!(f, "; write an IANA name such as Europe/Berlin or UTC"),
            names => write!(f, "; did you mean {}?", names.join(" or ")),
        }
    }
}

impl std::error::Error for ZoneError {}
