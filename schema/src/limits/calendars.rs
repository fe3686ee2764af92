//! Limits of calendars.

/// Largest definition of a calendar, with those that it takes away, bytes of JSON.
pub const CALENDAR_BYTES: usize = 64 << 10;
/// Calendars of a tenant that are not deleted, count.
pub const CALENDARS_PER_TENANT: usize = 64;
/// Names that a tenant has used for calendars, count. A deleted calendar keeps its name, so that its versions count on.
pub const CALENDAR_NAMES_PER_TENANT: usize = 256;
/// Versions of a calendar that are kept, count. An instant that is older than all of them is decided by the oldest one.
pub const CALENDAR_VERSIONS: usize = 8;
/// A version takes effect at least so long after it was set, milliseconds: by then every shard holds it.
pub const CALENDAR_AHEAD_MS: i64 = 60_000;
/// Jobs whose next instant a shard computes anew in one turn because a calendar has a new version, count.
pub const CALENDAR_JOBS_A_TURN: usize = 1_024;
/// Calendars that one message brings to a shard, bytes of their definitions; one that is larger travels alone.
pub const CALENDAR_MESSAGE_BYTES: usize = 256 << 10;
/// Days that a preview of a calendar tells at most, count.
pub const CALENDAR_PREVIEW_DAYS: usize = 366;
/// Jobs that a preview of a calendar looks at, count.
pub const CALENDAR_PREVIEW_JOBS: usize = 1_000;
/// Next instants of a job that a preview of a calendar compares, count.
pub const CALENDAR_PREVIEW_FIRES: usize = 20;
