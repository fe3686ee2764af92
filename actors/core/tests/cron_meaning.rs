//! What single expressions, policies, zones and refusals mean, one by one.

use campanile_core::cron::{CronError, CronExpr, CronSchedule, OccurrenceKind, describe, hazards};
use campanile_schema::job::{Dialect, Gap, Overlap};
use jiff::Timestamp;

fn parse(text: &str, dialect: Dialect) -> Result<(CronExpr, Dialect), CronError> {
    CronExpr::parse(text, dialect, 42)
}

fn expr(text: &str) -> CronExpr {
    parse(text, Dialect::Auto).unwrap().0
}

fn refused(text: &str, dialect: Dialect) -> (usize, String) {
    let error = parse(text, dialect).unwrap_err();
    (error.position, error.to_string())
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
fn a_compiled_expression_is_small_and_copied() {
    assert!(size_of::<CronExpr>() <= 64);
    let one = expr("*/5 * * * *");
    let copy = one;
    assert_eq!(one, copy);
}

#[test]
fn auto_takes_5_fields_as_unix_a_question_mark_as_quartz_and_asks_about_weekday_numbers() {
    let resolved = |text| parse(text, Dialect::Auto).map(|(_, dialect)| dialect);
    assert_eq!(resolved("0 2 * * 1"), Ok(Dialect::Unix));
    assert_eq!(resolved("0 2 ? * 1"), Ok(Dialect::Unix));
    assert_eq!(resolved("0 0 2 * * ?"), Ok(Dialect::Quartz));
    assert_eq!(resolved("0 0 2 ? * 2 2027"), Ok(Dialect::Quartz));
    assert_eq!(resolved("0 0 2 * * *"), Ok(Dialect::Unix));
    assert_eq!(resolved("0 0 2 * * MON-FRI 2027"), Ok(Dialect::Unix));
    assert_eq!(resolved("0 0 2 * * FRI#2"), Ok(Dialect::Unix));
    assert_eq!(resolved("0 0 2 * * */2"), Ok(Dialect::Unix));
    assert_eq!(resolved("@daily"), Ok(Dialect::Unix));
    for (text, position) in [
        ("0 0 2 * * 1", 10),
        ("0 0 2 * * MON,5", 14),
        ("0 0 2 * * 1#2 2027", 10),
        ("0 0 2 * * */2,3", 14),
        ("0 0 2 * * H(1-5)", 12),
    ] {
        let (at, message) = refused(text, Dialect::Auto);
        assert_eq!(at, position, "{text}");
        assert!(message.contains("UNIX"), "{message}");
        assert!(message.contains("QUARTZ"), "{message}");
        // Asked, it is one thing or the other.
        assert!(parse(text, Dialect::Unix).is_ok());
    }
    // Monday in one, Sunday in the other.
    let (unix, _) = parse("0 0 2 * * 1", Dialect::Unix).unwrap();
    let (quartz, _) = parse("0 0 2 ? * 1", Dialect::Quartz).unwrap();
    assert_eq!(unix, expr("0 0 2 * * MON"));
    assert_eq!(quartz, expr("0 0 2 ? * SUN"));
}

#[test]
fn the_day_fields_follow_their_dialect() {
    let same = |one: &str, other: &str| {
        let (one, other) =
            (schedule(one, "UTC", Gap::Shift, Overlap::First), schedule(other, "UTC", Gap::Shift, Overlap::First));
        let days = |of: &CronSchedule| occurrences(of, "2026-01-01T00:00:00Z", "2028-01-01T00:00:00Z");
        assert_eq!(days(&one), days(&other));
    };
    // The first Sunday of the month, as crontabs write it.
    same("0 5 1-7 * */7", "0 5 * * SUN#1");
    same("0 5 */1 * MON", "0 5 * * MON");
    same("0 5 ? * MON", "0 5 * * 1");
    same("0 5 L * ?", "0 0 5 L * ?");
    same("0 0 5 ? * L", "0 5 * * SAT");
    same("0 0 5 * * MON", "0 5 * * MON");
    same("0 5 * * 0,7", "0 5 * * SUN");
    same("0 5 * * sat-sun", "0 5 * * 6-7");
    assert!(parse("0 0 5 * * *", Dialect::Quartz).is_ok());
    assert!(refused("0 0 5 ? * ?", Dialect::Quartz).1.contains("both day fields"));
    assert!(refused("0 0 5 1 * MON", Dialect::Quartz).1.contains("not both"));
}

#[test]
fn hash_fields_are_fixed_by_the_seed_and_stay_in_their_range() {
    let (first, dialect) = CronExpr::parse("H H * * *", Dialect::Auto, 7).unwrap();
    assert_eq!(describe(&first, dialect), "at 21:06 every day");
    assert_eq!(CronExpr::parse("H H * * *", Dialect::Auto, 7).unwrap().0, first);
    let different = (0..100).filter(|seed| CronExpr::parse("H H * * *", Dialect::Auto, *seed).unwrap().0 != first);
    assert!(different.count() > 90);
    assert!(!first.follows_elapsed_time());
    for seed in 0..200 {
        let fires = |text: &str| {
            let (expr, _) = CronExpr::parse(text, Dialect::Unix, seed).unwrap();
            let schedule = CronSchedule::new(expr, "UTC", Gap::Shift, Overlap::First).unwrap();
            occurrences(&schedule, "2027-01-31T23:59:59Z", "2027-02-28T23:59:59Z")
        };
        // Every month has the day, and it comes once.
        assert_eq!(fires("0 0 H * *").len(), 1);
        assert_eq!(fires("0 0 * * H").len(), 4);
        assert_eq!(fires("H/15 3 5 * *").len(), 4);
        let minute: u32 = fires("H(10-19) 0 1 * *")[0][14..16].parse().unwrap();
        assert!((10..20).contains(&minute));
        assert_eq!(fires("H(0-29)/10 0 1 * *").len(), 3);
    }
    let (stepped, _) = CronExpr::parse("H/15 3 * * *", Dialect::Unix, 7).unwrap();
    assert!(stepped.follows_elapsed_time());
    assert!(refused("0 0 0 1 1 ? H", Dialect::Quartz).1.contains("year"));
    assert!(refused("H(5 * * * *", Dialect::Unix).1.contains("range"));
}

#[test]
fn refusals_say_where_and_what_to_write() {
    for (text, dialect, position, part) in [
        ("0 24 * * *", Dialect::Unix, 2, "midnight is hour 0"),
        ("0 0 1,,2 * *", Dialect::Unix, 6, "empty"),
        (",1 * * * *", Dialect::Unix, 0, "empty"),
        ("0 0 * * FRI-MON", Dialect::Unix, 8, "write 5-7,0-1"),
        ("0 22-6 * * *", Dialect::Unix, 2, "write 22-23,0-6"),
        ("0 */60 * * * ?", Dialect::Quartz, 4, "largest step here is 59"),
        ("0 0 5/24 * * ?", Dialect::Quartz, 6, "over the end of the field"),
        ("0 0 0 ? * 2/8", Dialect::Quartz, 12, "largest step here is 7"),
        ("*/1000000 * * * *", Dialect::Unix, 2, "over the end of the field"),
        ("H/60 * * * *", Dialect::Unix, 2, "largest step here is 59"),
        ("H(0-9)/20 * * * *", Dialect::Unix, 7, "over the end of the range"),
        ("0 0 * * MONDAY", Dialect::Unix, 8, "write MON"),
        ("0 0 * JANUARY *", Dialect::Unix, 6, "write JAN"),
        ("0 0 * XYZ *", Dialect::Unix, 6, "JAN to DEC"),
        ("0 0 W * *", Dialect::Unix, 4, "15W"),
        ("0 0 L-31 * *", Dialect::Unix, 6, "0 to 30"),
        ("0 0 * * 5W", Dialect::Unix, 9, "day fields"),
        ("0 0 * * MON-FRI#2", Dialect::Unix, 15, "cannot stand here"),
        ("0 0 0 ? * 0", Dialect::Quartz, 10, "1 = Sunday"),
        ("0 0 0 1 1 ? 2027-2025", Dialect::Quartz, 12, "backwards"),
        ("0 0 0 1 1 ? 2100", Dialect::Quartz, 12, "1970 to 2099"),
        ("0 0 0 1 1 ? 2027 9", Dialect::Quartz, 17, "8 fields"),
        ("*\n* * * *", Dialect::Unix, 1, "line break"),
        ("0 0 \u{a0}* * *", Dialect::Unix, 4, "plain blank"),
        ("0 \u{2013}5 * * *", Dialect::Unix, 2, "write '-'"),
        ("/5 * * * *", Dialect::Unix, 0, "*/5"),
        ("-5 * * * *", Dialect::Unix, 0, "cannot stand"),
        ("@every 5m", Dialect::Unix, 0, "FIXED_RATE"),
        ("@fortnightly", Dialect::Quartz, 0, "@weekly"),
        ("0 0 31 2 *", Dialect::Unix, 4, "February has no 31st"),
        ("0 0 0 L-30 2 ?", Dialect::Quartz, 6, "February has no such day"),
    ] {
        let (at, message) = refused(text, dialect);
        assert_eq!(at, position, "{text}: {message}");
        assert!(message.contains(part), "{text}: {message}");
        assert!(message.contains(&format!("character {}", position + 1)), "{message}");
    }
    // What only looks odd is taken.
    for text in [
        "0\t2\t*\t*\t*",
        "  0 2 * * *  ",
        "05 02 * * *",
        "0 0 1 */12 *",
        "0 0 1 1/12 *",
        "0 0 */31 * *",
        "1-59/58 * * * *",
    ] {
        assert!(parse(text, Dialect::Unix).is_ok(), "{text}");
    }
}

#[test]
fn macros_mean_the_same_in_every_dialect() {
    for (text, meaning) in [
        ("@yearly", "0 0 1 1 *"),
        ("@ANNUALLY", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * SUN"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ] {
        for dialect in [Dialect::Auto, Dialect::Unix, Dialect::Quartz] {
            assert_eq!(parse(text, dialect).unwrap().0, expr(meaning));
        }
    }
}

#[test]
fn schedules_with_an_open_time_field_follow_elapsed_time() {
    for text in ["* * * * *", "*/5 2 * * *", "0 * * * *", "5/10 2 * * *", "* 30 2 * * ?", "@hourly", "0 2/3 * * *"] {
        assert!(expr(text).follows_elapsed_time(), "{text}");
    }
    for text in ["0 2 * * *", "0-59 2 * * *", "5-50/15 1 * * *", "0,30 1-5 * * *", "0 0 2 * * ?", "@daily"] {
        assert!(!expr(text).follows_elapsed_time(), "{text}");
    }
}

/// As cron takes it, and Quartz behind a range: the first value is due, no other is reached.
#[test]
fn a_step_beyond_the_range_means_the_first_value() {
    for (text, dialect, same) in [
        ("*/60 * * * *", Dialect::Unix, "0 * * * *"),
        ("10-10/5 * * * *", Dialect::Unix, "10 * * * *"),
        ("10-20/15 * * * *", Dialect::Unix, "10 * * * *"),
        ("0 */24 * * *", Dialect::Unix, "0 0 * * *"),
        ("0 0 */40 * *", Dialect::Unix, "0 0 1 * *"),
        ("0 0 1 */13 *", Dialect::Unix, "0 0 1 1 *"),
        ("0 0 * * */9", Dialect::Unix, "0 0 * * 0"),
        ("50/20,5 0 * * *", Dialect::Unix, "5,50 0 * * *"),
        ("0 0 3-9/7 * * ?", Dialect::Quartz, "0 0 3 * * ?"),
        ("0 0 3-9/60 * * ?", Dialect::Quartz, "0 0 3 * * ?"),
        ("0 0 0 1 1 ? 2030/200", Dialect::Quartz, "0 0 0 1 1 ? 2030"),
    ] {
        let of = |text: &str| {
            let (expr, _) = parse(text, dialect).unwrap_or_else(|error| panic!("{text}: {error}"));
            let schedule = CronSchedule::new(expr, "UTC", Gap::Shift, Overlap::First).unwrap();
            let told = hazards(&schedule, 0).iter().any(|line| line.contains("goes beyond the end of its range"));
            (occurrences(&schedule, "2029-12-31T00:00:00Z", "2030-02-10T00:00:00Z"), told)
        };
        let (beyond, plain) = (of(text), of(same));
        assert_eq!(beyond.0, plain.0, "{text}");
        assert_eq!((beyond.1, plain.1), (true, false), "{text}");
    }
}

/// Every step that does not come out even is told, however many values it has; a list of the same values is not.
#[test]
fn steps_that_start_anew_are_told() {
    let told = |text: &str| {
        let schedule = schedule(text, "UTC", Gap::Shift, Overlap::First);
        hazards(&schedule, 0).into_iter().find(|line| line.contains("start anew"))
    };
    for (text, words) in [
        ("*/7 * * * *", "7 minutes do not fill the hour: the steps start anew in each hour, 4 minutes after the last"),
        (
            "*/45 * * * *",
            "45 minutes do not fill the hour: the steps start anew in each hour, 15 minutes after the last",
        ),
        ("*/59 * * * *", "59 minutes do not fill the hour: the steps start anew in each hour, 1 minute after the last"),
        (
            "*/40 * * * * *",
            "40 seconds do not fill the minute: the steps start anew in each minute, 20 seconds after the last",
        ),
        ("0 */18 * * *", "18 hours do not fill the day: the steps start anew in each day, 6 hours after the last"),
        ("0-59/45 * * * *", "45 minutes do not fill the hour"),
        ("0 0 */2 * *", "2 days do not fill the month: the steps start anew in each month, day 1 comes after"),
        ("0 0 */20 * *", "20 days do not fill the month"),
        ("0 0 1 */5 *", "5 months do not fill the year: the steps start anew in each year, 2 months after the last"),
        ("0 0 1 */7 *", "7 months do not fill the year: the steps start anew in each year, 5 months after the last"),
        ("0 0 * * */2", "2 days do not fill the week: the steps start anew in each week, 1 day after the last"),
    ] {
        assert!(told(text).is_some_and(|line| line.starts_with(words)), "{text}: {:?}", told(text));
    }
    for text in [
        "*/5 * * * *",
        "0,45 * * * *",
        "*/30 * * * *",
        "10,50 * * * *",
        "0 */12 * * *",
        "0 5,20 * * *",
        "0 0 1 */3 *",
        "0 0 1,15 * *",
        "0 0 * * 1,4",
        "0 9-17/3 * * *",
    ] {
        assert_eq!(told(text), None, "{text}");
    }
}

/// Such an expression is well written: whoever creates the job answers with another code than for a slip.
#[test]
fn what_never_fires_says_why() {
    for (text, dialect, why) in [
        ("0 0 30 2 *", Dialect::Unix, "February has no 30th"),
        ("0 0 30,31 2 *", Dialect::Unix, "February has no 30th"),
        ("0 0 31 4,6,9,11 *", Dialect::Unix, "April, June, September and November have no 31st"),
        ("0 0 0 30W 2 ?", Dialect::Quartz, "February has no 30th"),
        ("0 0 0 31 2 ? 2028", Dialect::Quartz, "February has no 31st"),
        ("0 0 0 29 2 ? 2029-2031", Dialect::Quartz, "February has no 29th in 2029 to 2031"),
        ("0 0 0 ? 2 2#5 2027", Dialect::Quartz, "February has no such day in 2027"),
        ("0 0 0 L-29,30 2 ? 2027", Dialect::Quartz, "February has no such day in 2027"),
    ] {
        let error = parse(text, dialect).unwrap_err();
        assert!(error.never_fires, "{text}: {error}");
        assert_eq!(error.message, format!("this never fires: {why}"), "{text}");
    }
    for slip in ["61 * * * *", "0 0 32 2 *", "@reboot"] {
        assert!(!parse(slip, Dialect::Unix).unwrap_err().never_fires, "{slip}");
    }
}
