//! Instants for people: how long ago, or by the clock of a zone. Programs get RFC 3339 in UTC, always.

use campanile_core::cron::find_zone;
use campanile_jobfiles::{crontab::machine, suggest::closest};
use campanile_schema::time::Timestamp;
use jiff::tz::TimeZone;
use std::str::FromStr;

/// `--time`.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) enum TimeForm {
    /// `in 3 min`, `2 h ago`.
    Relative,
    /// By this machine's zone.
    Local,
    /// As nodes say them.
    Utc,
    /// By the zone of the job's schedule; UTC for those that have none.
    Job,
    /// By this zone.
    Zone(TimeZone),
}

const WORDS: [&str; 4] = ["relative", "local", "utc", "job"];

impl FromStr for TimeForm {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "relative" => Ok(Self::Relative),
            "local" => Ok(Self::Local),
            "utc" => Ok(Self::Utc),
            "job" => Ok(Self::Job),
            word => find_zone(text).map(Self::Zone).map_err(|unknown| match closest(word, WORDS) {
                Some(meant) if !text.contains('/') => {
                    format!(
                        "neither a form nor a time zone; did you mean {meant}? (relative, local, utc, job, or a zone)"
                    )
                }
                Some(_) | None => unknown.to_string(),
            }),
        }
    }
}

/// The zone of this machine.
pub(in crate::cli) fn machine_zone() -> TimeZone {
    find_zone(&machine::zone()).unwrap_or(TimeZone::UTC)
}

/// The zone of a name that a node said; UTC for one that this program does not know.
pub(in crate::cli) fn zone_or_utc(name: Option<&str>) -> TimeZone {
    name.and_then(|name| find_zone(name).ok()).unwrap_or(TimeZone::UTC)
}

/// Whether a field of this name holds an instant. What callers put in is theirs, whatever it is called.
pub(super) fn is_instant(field: &str) -> bool {
    if ["params.", "result.", "labels."].iter().any(|theirs| field.starts_with(theirs)) {
        return false;
    }
    let name = field.rsplit('.').next().unwrap_or(field);
    matches!(name, "at" | "now" | "from" | "to" | "until" | "logicalTime") || name.ends_with("At")
}

/// The length between an instant and now, in its largest whole unit.
pub(in crate::cli) fn relative(at: Timestamp, now: Timestamp) -> String {
    const UNITS: [(i64, i64, &str); 5] = [
        (60, 1, "s"),
        (3_600, 60, "min"),
        (172_800, 3_600, "h"),
        (63_072_000, 86_400, "d"),
        (i64::MAX, 31_536_000, "y"),
    ];
    let ms = at.ms().saturating_sub(now.ms());
    let seconds = ms.saturating_abs() / 1_000;
    if seconds == 0 {
        return "now".to_owned();
    }
    let unit = UNITS.iter().find(|(below, ..)| seconds < *below);
    let length = unit.map_or_else(String::new, |(_, unit, name)| format!("{} {name}", seconds / unit));
    if ms > 0 { format!("in {length}") } else { format!("{length} ago") }
}

/// Date and time of day in a zone, with its abbreviation and offset: `2026-03-29 03:00:00 CEST (+02:00)`.
pub(in crate::cli) fn absolute(at: Timestamp, zone: &TimeZone) -> String {
    let Ok(instant) = jiff::Timestamp::from_millisecond(at.ms()) else { return at.to_string() };
    let zoned = instant.to_zoned(zone.clone());
    let abbreviation = zoned.strftime("%Z").to_string();
    // Zones without a name of their own are called by their offset.
    let named = abbreviation.chars().all(|c| c.is_ascii_alphabetic());
    let form = match named {
        true if abbreviation == "UTC" => "%Y-%m-%d %H:%M:%S UTC",
        true => "%Y-%m-%d %H:%M:%S %Z (%:z)",
        false => "%Y-%m-%d %H:%M:%S %:z",
    };
    zoned.strftime(form).to_string()
}

/// An instant in a list.
pub(super) fn in_list(
    at: Timestamp,
    form: Option<&TimeForm>,
    terminal: bool,
    now: Timestamp,
    zone: &TimeZone,
) -> String {
    match form {
        Some(TimeForm::Relative) => relative(at, now),
        None if terminal => relative(at, now),
        None | Some(TimeForm::Utc) => at.to_string(),
        Some(TimeForm::Local) => absolute(at, &machine_zone()),
        Some(TimeForm::Job) => absolute(at, zone),
        Some(TimeForm::Zone(zone)) => absolute(at, zone),
    }
}

/// An instant of one thing that is shown whole: the absolute form is always there, on a terminal the relative one too.
pub(super) fn of_one(
    at: Timestamp,
    form: Option<&TimeForm>,
    terminal: bool,
    now: Timestamp,
    zone: &TimeZone,
) -> String {
    let shown = match form {
        None if terminal => absolute(at, zone),
        None | Some(TimeForm::Utc) => at.to_string(),
        Some(TimeForm::Relative | TimeForm::Job) => absolute(at, zone),
        Some(TimeForm::Local) => absolute(at, &machine_zone()),
        Some(TimeForm::Zone(zone)) => absolute(at, zone),
    };
    match form {
        Some(TimeForm::Relative) => format!("{shown}, {}", relative(at, now)),
        Some(_) | None if terminal => format!("{shown}, {}", relative(at, now)),
        Some(_) | None => shown,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn lengths_are_told_in_their_largest_whole_unit() {
        let now = at("2026-06-01T12:00:00Z");
        let told = |seconds: i64| relative(Timestamp(now.ms() + seconds * 1_000), now);
        assert_eq!(relative(Timestamp(now.ms() - 999), now), "now");
        for (seconds, expected) in [
            (0, "now"),
            (1, "in 1 s"),
            (-59, "59 s ago"),
            (60, "in 1 min"),
            (-3_599, "59 min ago"),
            (3_600, "in 1 h"),
            (-172_799, "47 h ago"),
            (172_800, "in 2 d"),
            (-63_071_999, "729 d ago"),
            (63_072_000, "in 2 y"),
        ] {
            assert_eq!(told(seconds), expected, "{seconds}");
        }
        assert!(relative(Timestamp(i64::MIN), now).ends_with("y ago"));
    }

    #[test]
    fn a_zone_is_named_with_its_offset_on_both_sides_of_a_change() {
        let shown = |text: &str, zone: &str| absolute(at(text), &find_zone(zone).unwrap());
        // Forward: 02:00 to 03:00.
        assert_eq!(shown("2026-03-29T00:59:59Z", "Europe/Berlin"), "2026-03-29 01:59:59 CET (+01:00)");
        assert_eq!(shown("2026-03-29T01:00:00Z", "Europe/Berlin"), "2026-03-29 03:00:00 CEST (+02:00)");
        // Back: half past two is twice, and only the offset tells which.
        assert_eq!(shown("2026-10-25T00:30:00Z", "Europe/Berlin"), "2026-10-25 02:30:00 CEST (+02:00)");
        assert_eq!(shown("2026-10-25T01:30:00Z", "Europe/Berlin"), "2026-10-25 02:30:00 CET (+01:00)");
        // By half an hour, south of the equator; without a name of its own; and none at all.
        assert_eq!(shown("2026-04-04T15:30:00Z", "Australia/Lord_Howe"), "2026-04-05 02:00:00 +10:30");
        assert_eq!(shown("2026-11-01T06:30:00Z", "America/New_York"), "2026-11-01 01:30:00 EST (-05:00)");
        assert_eq!(shown("2026-11-01T06:30:00Z", "UTC"), "2026-11-01 06:30:00 UTC");
    }

    #[test]
    fn lists_are_short_and_one_thing_is_told_twice() {
        let (now, then) = (at("2026-03-29T00:00:00Z"), at("2026-03-29T01:00:00Z"));
        let berlin = find_zone("Europe/Berlin").unwrap();
        let listed = |form: Option<&TimeForm>, terminal| in_list(then, form, terminal, now, &berlin);
        let told = |form: Option<&TimeForm>, terminal| of_one(then, form, terminal, now, &berlin);
        let raw = "2026-03-29T01:00:00.000Z";
        assert_eq!((listed(None, true).as_str(), listed(None, false).as_str()), ("in 1 h", raw));
        assert_eq!(
            (told(None, true).as_str(), told(None, false).as_str()),
            ("2026-03-29 03:00:00 CEST (+02:00), in 1 h", raw)
        );
        assert_eq!(listed(Some(&TimeForm::Job), false), "2026-03-29 03:00:00 CEST (+02:00)");
        assert_eq!(listed(Some(&TimeForm::Utc), true), raw);
        assert_eq!(listed(Some(&"asia/tokyo".parse().unwrap()), false), "2026-03-29 10:00:00 JST (+09:00)");
        assert_eq!(told(Some(&TimeForm::Relative), false), "2026-03-29 03:00:00 CEST (+02:00), in 1 h");
    }

    #[test]
    fn an_unknown_form_names_the_nearest() {
        let refused = |text: &str| text.parse::<TimeForm>().unwrap_err();
        assert!(refused("Europe/Berln").ends_with("did you mean Europe/Berlin?"), "{}", refused("Europe/Berln"));
        assert!(refused("relativ").contains("did you mean relative?"), "{}", refused("relativ"));
        assert!(refused("nonsense").contains("unknown time zone 'nonsense'"), "{}", refused("nonsense"));
        for form in WORDS {
            assert!(form.to_uppercase().parse::<TimeForm>().is_ok(), "{form}");
        }
    }

    #[test]
    fn fields_of_instants_are_known_by_their_names() {
        for field in ["nextFireAt", "attempts.1.startedAt", "logicalTime", "trigger.startAt", "at"] {
            assert!(is_instant(field), "{field}");
        }
        for field in ["name", "format", "flat", "params.lastSeenAt"] {
            assert!(!is_instant(field), "{field}");
        }
    }
}
