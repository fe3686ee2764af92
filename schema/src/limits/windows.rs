//! Limits of windows and blackouts.

/// Windows of a job, count.
pub const WINDOWS: usize = 16;
/// Blackouts of a job, count.
pub const BLACKOUTS: usize = 64;
/// Longest reason of a blackout, characters.
pub const BLACKOUT_REASON_CHARS: usize = 256;
/// Closed stretches of time that one search for the next instant passes over, count; behind them a schedule is taken for one that never
/// fires. A schedule that is due once a day is looked at for eleven years.
pub const CLOSED_STRETCHES: usize = 4_096;
/// Stretches of removed instants that a preview tells, count.
pub const PREVIEW_REMOVED: usize = 100;
