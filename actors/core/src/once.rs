//! The instant of a trigger of type ONCE, from what a caller wrote: an instant, a local time of a zone, or a delay.

use crate::{cron::find_zone, reject::Rejection};
use campanile_schema::{error::ErrorCode, limits, time::Moment};
use jiff::{
    civil::DateTime,
    tz::{AmbiguousOffset, TimeZone},
};

/// Last instant that a definition may name, ms: the end of the year 9998 UTC, as for cron.
pub(crate) const LAST_INSTANT_MS: i64 = 253_370_764_799_999;

fn invalid(message: impl Into<String>) -> Rejection {
    Rejection::new(ErrorCode::InvalidArgument, message)
}

/// What a ONCE says about its instant.
pub(crate) struct Written<'a> {
    pub at: Option<Moment>,
    pub delay_sec: Option<u64>,
    pub delay_ms: Option<u64>,
    pub timezone: Option<&'a str>,
}

/// Milliseconds since 1970 UTC.
pub(crate) fn instant_ms(written: &Written<'_>, now_ms: i64) -> Result<i64, Rejection> {
    let delay = |name: &str, value: u64, most: u64| {
        i64::try_from(value)
            .ok()
            .filter(|_| value <= most)
            .ok_or_else(|| invalid(format!("trigger.{name} must be 0 to {most}")))
    };
    let Written { at, delay_sec, delay_ms, timezone } = *written;
    match (at, delay_sec, delay_ms) {
        (Some(at), None, None) => at_ms(at, timezone),
        (None, Some(_), None) | (None, None, Some(_)) if timezone.is_some() => {
            Err(invalid("trigger.timezone belongs to 'at'; a delay has no time zone, so leave it out"))
        }
        (None, Some(sec), None) => Ok(now_ms + delay("delaySec", sec, limits::SECONDS_MAX)? * 1000),
        (None, None, Some(ms)) => Ok(now_ms + delay("delayMs", ms, limits::SECONDS_MAX * 1000)?),
        (None, None, None) | (Some(_), Some(_), _) | (Some(_), None, Some(_)) | (None, Some(_), Some(_)) => {
            Err(invalid("trigger of type ONCE takes exactly one of 'at', 'delaySec' and 'delayMs'"))
        }
    }
}

fn at_ms(at: Moment, timezone: Option<&str>) -> Result<i64, Rejection> {
    let zone = timezone
        .map(find_zone)
        .transpose()
        .map_err(|e| Rejection::new(ErrorCode::UnknownTimezone, format!("trigger.timezone: {e}")))?;
    let local = match (at, zone) {
        (Moment::Instant(instant), _) => return Ok(instant.ms()),
        (Moment::Local(local), Some(zone)) => local_ms(local, &zone),
        (Moment::Local(_), None) => {
            return Err(invalid(format!(
                "trigger.at '{at}' has no offset: add \"timezone\" (a name such as Asia/Shanghai), or write the offset (2026-01-15T10:00:00+08:00, or Z for UTC)"
            )));
        }
    };
    let known = local.ok().filter(|ms| (0..=LAST_INSTANT_MS).contains(ms));
    known.ok_or_else(|| invalid("trigger.at must lie between the years 1970 and 9998"))
}

/// As fixed times of cron schedules do by default: a time that the clocks skip is the first instant after the gap, and of
/// a time that comes twice it is the first.
fn local_ms(local: DateTime, zone: &TimeZone) -> Result<i64, jiff::Error> {
    let instant = match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            offset.to_timestamp(local)?
        }
        AmbiguousOffset::Gap { after, .. } => {
            // With the offset that applies after the gap, a time within it is an instant before the change.
            let before_change = after.to_timestamp(local)?;
            zone.following(before_change).next().map_or(before_change, |change| change.timestamp())
        }
    };
    Ok(instant.as_millisecond())
}
