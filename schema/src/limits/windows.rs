//! Limits of windows, blackouts and calendars.

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
/// Dates and ranges of one list of a calendar's rules, count.
pub const CALENDAR_DATES: usize = 2_048;
/// Monthly rules and rules by Easter of one list of a calendar's rules, count.
pub const CALENDAR_RULES: usize = 64;
/// A day of a calendar is looked for so far ahead, days (five years).
pub const CALENDAR_LOOK_DAYS: i64 = 1_827;
/// Largest iCalendar file that is read, bytes.
pub const ICS_BYTES: usize = 1 << 20;
/// Longest event of an iCalendar file, days.
pub const ICS_EVENT_DAYS: i64 = 366;
