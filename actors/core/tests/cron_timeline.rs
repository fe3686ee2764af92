//! Named cases on the time line of a zone: gaps, overlaps, skipped days, the ends of time; and what is told about them.

use campanile_core::cron::{
    CronError, CronExpr, CronSchedule, OccurrenceKind, describe, hazards, known_zone_names, tzdb_version,
};
use campanile_schema::job::{Dialect, Gap, Overlap};
use jiff::Timestamp;

fn parse(text: &str, dialect: Dialect) -> Result<(CronExpr, Dialect), CronError> {
    CronExpr::parse(text, dialect, 42)
}

fn expr(text: &str) -> CronExpr {
    parse(text, Dialect::Auto).unwrap().0
}

fn schedule(text: &str, zone: &str, gap: Gap, overlap: Overlap) -> CronSchedule {
    CronSchedule::new(expr(text), zone, gap, overlap).unwrap()
}

fn ms(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_millisecond()
}

/// Occurrences after one instant up to another; skipped ones with an `x`.
fn occurrences(schedule: &CronSchedule, after: &str, until: &str) -> Vec<String> {
    let mut at = ms(after);
    let mut all = Vec::new();
    while let Some(found) = schedule.next_occurrence(at, ms(until)) {
        at = found.at_ms;
        let mark = if found.kind == OccurrenceKind::DstSkipped { "x" } else { "" };
        all.push(format!("{mark}{}", Timestamp::from_millisecond(at).unwrap()));
    }
    all
}

#[test]
fn a_skipped_day_is_one_gap() {
    // Samoa left out 30 December 2011.
    let daily = schedule("0 2 * * *", "Pacific/Apia", Gap::Shift, Overlap::First);
    let (after, until) = ("2011-12-29T12:00:00Z", "2011-12-31T13:00:00Z");
    assert_eq!(
        occurrences(&daily, after, until),
        ["2011-12-30T10:00:00Z", "2011-12-30T12:00:00Z", "2011-12-31T12:00:00Z"]
    );
    let skip = schedule("0 2 * * *", "Pacific/Apia", Gap::Skip, Overlap::First);
    assert_eq!(
        occurrences(&skip, after, until),
        ["x2011-12-30T10:00:00Z", "2011-12-30T12:00:00Z", "2011-12-31T12:00:00Z"]
    );
    // The skipped midnight is the regular one of the next day: one fire.
    let midnight = schedule("0 0 * * *", "Pacific/Apia", Gap::Skip, Overlap::First);
    assert_eq!(occurrences(&midnight, after, until), ["2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"]);
    assert_eq!(midnight.count_fires(ms(after), ms(until)), 2);
}

#[test]
fn an_instant_that_falls_away_is_told_and_its_twin_fires() {
    let (after, until) = ("2026-10-25T00:00:00Z", "2026-10-25T12:00:00Z");
    let of = |overlap| occurrences(&schedule("30 2 * * *", "Europe/Berlin", Gap::Shift, overlap), after, until);
    assert_eq!(of(Overlap::First), ["2026-10-25T00:30:00Z", "x2026-10-25T01:30:00Z"]);
    assert_eq!(of(Overlap::Second), ["x2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]);
    assert_eq!(of(Overlap::Both), ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]);
    // Half an hour in Lord Howe: several fall away into one.
    let (after, until) = ("2026-10-03T15:00:00Z", "2026-10-03T16:00:00Z");
    let of = |gap| occurrences(&schedule("5,10,15 2 * * *", "Australia/Lord_Howe", gap, Overlap::First), after, until);
    assert_eq!(of(Gap::Shift), ["2026-10-03T15:30:00Z"]);
    assert_eq!(of(Gap::Skip), ["x2026-10-03T15:30:00Z"]);
}

#[test]
fn searches_that_find_nothing_end() {
    let now = ms("2026-01-01T00:00:00Z");
    let past = schedule("0 0 0 1 1 ? 2010-2020", "Europe/Berlin", Gap::Shift, Overlap::First);
    assert_eq!(past.next_fire(now), None);
    assert_eq!(past.next_occurrence(now, i64::MAX), None);
    assert_eq!(past.count_fires(now, i64::MAX), 0);
    assert_eq!(past.count_fires(i64::MIN, i64::MAX), 11);
    // The second Sunday of March at 02:30 never exists in New York.
    let eaten = schedule("30 2 * 3 SUN#2", "America/New_York", Gap::Skip, Overlap::First);
    assert_eq!(eaten.next_fire(now), None);
    assert_eq!(occurrences(&eaten, "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"), ["x2026-03-08T07:00:00Z"]);
    // 29 February on a Sunday: every 28 years, or 40 across 2100.
    let rare = schedule("0 0 29 2 */7", "UTC", Gap::Shift, Overlap::First);
    assert_eq!(rare.next_fire(ms("2088-03-01T00:00:00Z")), Some(ms("2128-02-29T00:00:00Z")));
    // The last years of the year field, and a year beyond it where none is named.
    let last = |year| schedule(&format!("0 0 0 1 1 ? {year}"), "UTC", Gap::Shift, Overlap::First).next_fire(now);
    assert_eq!(last(2097), Some(ms("2097-01-01T00:00:00Z")));
    assert_eq!(last(2098), Some(ms("2098-01-01T00:00:00Z")));
    assert_eq!(last(2099), Some(ms("2099-01-01T00:00:00Z")));
    let open = schedule("0 0 1 1 *", "UTC", Gap::Shift, Overlap::First);
    assert_eq!(open.next_fire(ms("2099-06-01T00:00:00Z")), Some(ms("2100-01-01T00:00:00Z")));
    assert_eq!(open.next_fire(i64::MIN), Some(0));
    assert_eq!(open.next_fire(i64::MAX), None);
    assert!(expr("0 0 29 2 *").can_ever_fire());
}

#[test]
fn counting_a_year_of_seconds_is_exact() {
    let every = schedule("* * * * * *", "Europe/Berlin", Gap::Shift, Overlap::First);
    let from = ms("2025-12-31T23:00:00Z") - 1;
    assert_eq!(every.count_fires(from, ms("2026-12-31T23:00:00Z") - 1), 365 * 86_400);
    // Fixed times: the lost hour comes as one fire, the repeated one falls away.
    let fixed = schedule("0-59 0-59 0-23 * * *", "Europe/Berlin", Gap::Shift, Overlap::First);
    assert_eq!(fixed.count_fires(from, ms("2026-12-31T23:00:00Z") - 1), 365 * 86_400 - 3_600);
}

#[test]
fn an_unknown_zone_names_the_nearest() {
    let nearest = |name: &str| CronSchedule::new(expr("@daily"), name, Gap::Shift, Overlap::First).unwrap_err();
    assert_eq!(nearest("Berlin").nearest, ["Europe/Berlin"]);
    assert_eq!(nearest("Europe/Berln").to_string(), "unknown time zone 'Europe/Berln'; did you mean Europe/Berlin?");
    assert_eq!(nearest("america/new york").nearest, ["America/New_York"]);
    assert!(nearest("Mars/Olympus_Mons").to_string().contains("IANA"));
    assert!(nearest("").nearest.is_empty());
    assert!(nearest("Etc/Unknown").to_string().contains("unknown time zone"));
    assert!(nearest(&"x".repeat(100_000)).to_string().len() < 200);
    assert!(CronSchedule::new(expr("@daily"), "europe/berlin", Gap::Shift, Overlap::First).is_ok());
    let names = known_zone_names();
    assert!(names.len() > 400);
    assert!(names.is_sorted());
    assert!(names.iter().any(|name| name == "Asia/Shanghai"));
    assert!(tzdb_version().starts_with("20"), "{}", tzdb_version());
}

#[test]
fn descriptions_read_as_english() {
    for (text, english) in [
        ("0 2 * * *", "at 02:00 every day"),
        ("0 0 2 * * ?", "at 02:00 every day"),
        ("15,45 30 12 * * *", "at 12:30:15 and 12:30:45 every day"),
        ("*/5 * * * *", "every 5 minutes"),
        ("* * * * * *", "every second"),
        ("0 * * * *", "every hour"),
        ("15 */2 * * *", "every 2 hours at minute 15"),
        ("0 9-17 * * MON-FRI", "every hour from 09:00 to 17:00 on Monday to Friday"),
        ("*/10 9-17 * * SAT-SUN", "every 10 minutes from 09:00 to 17:59 on Saturday and Sunday"),
        ("0 0 L * *", "at 00:00 on the last day of the month"),
        ("0 8 LW * *", "at 08:00 on the last working day (Monday to Friday) of the month"),
        ("0 0 * * TUE#2", "at 00:00 on the 2nd Tuesday of the month"),
        ("0 0 * * FRIL", "at 00:00 on the last Friday of the month"),
        ("0 0 13 * FRI", "at 00:00 on day 13 of the month and also on Friday (UNIX: either is enough)"),
        ("0 0 1-7 * */7", "at 00:00 on days 1 to 7 of the month, only when that is Sunday"),
        ("0 0 0 1 1 ? 2027-2029,2031", "at 00:00 on day 1 of the month in January in 2027 to 2029 and 2031"),
    ] {
        let (expr, dialect) = parse(text, Dialect::Auto).unwrap();
        assert_eq!(describe(&expr, dialect), english, "{text}");
    }
}

#[test]
fn hazards_name_the_dates_and_what_the_policy_does() {
    let from = ms("2026-01-01T00:00:00Z");
    let of = |text: &str, zone, gap, overlap| hazards(&schedule(text, zone, gap, overlap), from);
    let daily = of("30 2 * * *", "Europe/Berlin", Gap::Shift, Overlap::First);
    assert_eq!(daily.len(), 4);
    assert_eq!(
        daily[0],
        "2026-03-29 02:30 does not exist in Europe/Berlin: the clock goes from 02:00 to 03:00; gap SHIFT: it fires \
         once, at 2026-03-29 01:00 UTC"
    );
    assert_eq!(
        daily[1],
        "2026-10-25 02:30 comes twice in Europe/Berlin: the clock goes back from 03:00 to 02:00; overlap FIRST: it \
         fires at 2026-10-25 00:30 UTC, not at 2026-10-25 01:30 UTC"
    );
    let skip = of("0,30 2 * * *", "America/New_York", Gap::Skip, Overlap::Both);
    assert!(skip[0].contains("2026-03-08 02:00 and 1 other time do not exist"));
    assert!(skip[0].ends_with("does not fire"));
    assert!(of("*/10 * * * *", "Europe/Berlin", Gap::Shift, Overlap::First).is_empty());
    assert!(of("30 12 * * *", "Europe/Berlin", Gap::Shift, Overlap::First).is_empty());
    assert!(
        of("*/10 2 * * *", "Europe/Berlin", Gap::Shift, Overlap::First)[0]
            .contains("it has an open time field, so nothing runs instead")
    );
    assert!(of("0 0 31 * *", "UTC", Gap::Shift, Overlap::First)[0].contains("without a day 31"));
    assert!(of("0 0 31 1,3 *", "UTC", Gap::Shift, Overlap::First).is_empty());
    assert!(of("0 0 13 * FRI", "UTC", Gap::Shift, Overlap::First)[0].contains("either"));
    assert!(of("*/7 * * * *", "UTC", Gap::Shift, Overlap::First)[0].contains("4 minutes after the last"));
}
