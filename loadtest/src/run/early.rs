//! Why a run ends early. Each step of a run says so to the one that called it.

/// Why a run ended before its time.
pub(super) enum Early {
    Interrupted,
    /// The system did not do what it should.
    Red(String),
    /// The run could not be made, or not to its end.
    NotRun(String),
}
