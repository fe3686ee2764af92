//! Properties of schedules: against a walk along the time line, and among the three questions themselves.

use crate::cron_model::generate::{Shape, model};
use crate::cron_model::oracle::Walk;
use crate::cron_model::{Model, Rng};
use campanile_core::cron::{CronError, CronExpr, CronSchedule, OccurrenceKind, describe, hazards, known_zone_names};
use campanile_schema::job::{Dialect, Gap, Overlap};
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Half-hour and quarter-hour changes, changes at midnight, days without a midnight, a day that was skipped, a day
/// that came twice, negative summer time, two hours of summer time, offsets with seconds.
const ZONES: [&str; 26] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Kwajalein",
    "America/Sao_Paulo",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "Antarctica/Casey",
    "America/Havana",
    "America/Santiago",
    "Asia/Gaza",
    "Africa/Cairo",
    "Asia/Tehran",
    "Asia/Beirut",
    "America/St_Johns",
    "Europe/Dublin",
    "Asia/Kathmandu",
    "Asia/Pyongyang",
    "America/Caracas",
    "Pacific/Chatham",
    "Asia/Amman",
    "America/Scoresbysund",
    "Europe/Istanbul",
    "Pacific/Fakaofo",
];
const GAPS: [Gap; 2] = [Gap::Shift, Gap::Skip];
const OVERLAPS: [Overlap; 3] = [Overlap::First, Overlap::Second, Overlap::Both];

fn shape(rng: &mut Rng) -> Shape {
    let (dialect, fields) = *rng.pick(&[
        (Dialect::Unix, 5),
        (Dialect::Unix, 5),
        (Dialect::Unix, 6),
        (Dialect::Unix, 7),
        (Dialect::Quartz, 6),
        (Dialect::Quartz, 7),
    ]);
    Shape { dialect, fields, specials: rng.chance(40), dense: *rng.pick(&[0, 30, 80]), years: (1970, 2099) }
}

/// A parsed schedule of a model; `None` if it was refused because it never fires.
fn parsed(model: &Model, zone: &str, gap: Gap, overlap: Overlap) -> Option<CronSchedule> {
    match CronExpr::parse(&model.text, model.dialect, 1) {
        Ok((expr, dialect)) => {
            assert_eq!(dialect, model.dialect);
            assert_eq!(expr.follows_elapsed_time(), model.elapsed(), "{}", model.text);
            Some(CronSchedule::new(expr, zone, gap, overlap).unwrap())
        }
        Err(error) => {
            assert!(error.message.contains("never fires"), "{}: {error}", model.text);
            None
        }
    }
}

/// A change of a zone's clock between 1970 and 2045, or any instant in a zone that has none.
fn change(rng: &mut Rng, zone: &TimeZone) -> i64 {
    let changes: Vec<i64> = zone
        .following(Timestamp::from_second(10 * 86_400).unwrap())
        .map(|change| change.timestamp().as_second())
        .take_while(|at| *at < 2_366_841_600)
        .collect();
    if changes.is_empty() { rng.of(864_000, 2_366_841_600) } else { *rng.pick(&changes) }
}

/// Compares all three questions with the walk over `days` around a change of the clock.
fn agrees_with_walk(rng: &mut Rng, days: i64, step: i64) -> bool {
    // Liberia's offset had seconds until 1972; a walk by minutes would step over its change.
    let seconds = step == 1 && rng.chance(20);
    let name = if seconds { "Africa/Monrovia" } else { *rng.pick(&ZONES) };
    let zone = TimeZone::get(name).unwrap();
    let (gap, overlap) = (*rng.pick(&GAPS), *rng.pick(&OVERLAPS));
    let mut shape = shape(rng);
    if step >= 60 {
        shape.fields = if shape.dialect == Dialect::Unix { 5 } else { 6 };
    }
    let centre = change(rng, &zone);
    let mut model = model(rng, shape);
    // Most random dates are far from the change: make them fit it.
    let near = zone.to_datetime(Timestamp::from_second(centre).unwrap());
    model = fit(rng, model, shape, near.date());
    if step >= 60 && shape.fields == 6 {
        model = on_full_minutes(model);
    }
    let Some(schedule) = parsed(&model, name, gap, overlap) else {
        return false;
    };
    let from = (centre - days * 43_200).div_euclid(step) * step + step;
    let to = from + days * 86_400;
    let walk = Walk { zone: &zone, gap, overlap, step };
    let expected = walk.occurrences(&model, from.max(0), to);
    let context = || format!("{} {name} {gap} {overlap} from {}", model.text, Timestamp::from_second(from).unwrap());

    let mut found = Vec::new();
    let mut at = from * 1_000 - 1;
    while let Some(occurrence) = schedule.next_occurrence(at, to * 1_000) {
        assert!(occurrence.at_ms > at, "{}", context());
        assert_eq!(occurrence.at_ms % 1_000, 0, "{}", context());
        at = occurrence.at_ms;
        found.push((at / 1_000, occurrence.kind));
    }
    assert_eq!(found, expected, "{}", context());

    let fires: Vec<i64> =
        expected.iter().filter(|(_, kind)| *kind == OccurrenceKind::Fire).map(|(at, _)| at * 1_000).collect();
    for _ in 0..20 {
        let (mut a, mut b) = (rng.of(from * 1_000, to * 1_000), rng.of(from * 1_000, to * 1_000));
        if a > b {
            (a, b) = (b, a);
        }
        let next = fires.iter().copied().find(|fire| *fire > a);
        if let Some(next) = next {
            assert_eq!(schedule.next_fire(a), Some(next), "{} after {a}", context());
        } else {
            assert!(schedule.next_fire(a).is_none_or(|fire| fire > to * 1_000), "{} after {a}", context());
        }
        let between = fires.iter().filter(|fire| (a + 1..=b).contains(*fire)).count() as u64;
        assert_eq!(schedule.count_fires(a, b), between, "{} in {a}..={b}", context());
    }
    !expected.is_empty()
}

/// Lets the dates of a model include the days around `near`, most of the time.
fn fit(rng: &mut Rng, model: Model, shape: Shape, near: Date) -> Model {
    if rng.chance(20) {
        return model;
    }
    let mut fields: Vec<String> = model.text.split(' ').map(str::to_owned).collect();
    let first = usize::from(shape.fields > 5);
    let mut model = model;
    if rng.chance(50) {
        (fields[first + 2], model.days) = ("*".to_owned(), None);
        (fields[first + 4], model.weekdays) =
            (if shape.dialect == Dialect::Quartz { "?" } else { "*" }.to_owned(), None);
        model.both = false;
    }
    if shape.fields == 7 {
        fields[6] = format!("{}", near.year());
        model.years = Some([i64::from(near.year())].into());
    }
    if rng.chance(60) {
        let near = near.checked_add(rng.of(-1, 1).days()).unwrap();
        fields[first + 3] = near.month().to_string();
        model.months = [i64::from(near.month())].into();
    }
    model.text = fields.join(" ");
    model
}

/// Puts 0 into the second field: the walk goes by minutes.
fn on_full_minutes(mut model: Model) -> Model {
    if let Some((_, rest)) = model.text.split_once(' ') {
        model.text = format!("0 {rest}");
    }
    model.seconds = [0].into();
    model.open[0] = false;
    model
}

#[test]
fn occurrences_and_counts_agree_with_a_walk_minute_by_minute() {
    let mut rng = Rng(1);
    let told = (0..1_500).filter(|_| agrees_with_walk(&mut rng, 4, 60)).count();
    assert!(told > 500, "only {told} cases had an occurrence");
}

#[test]
fn occurrences_and_counts_agree_with_a_walk_second_by_second() {
    let mut rng = Rng(2);
    let told = (0..40).filter(|_| agrees_with_walk(&mut rng, 1, 1)).count();
    assert!(told > 8, "only {told} cases had an occurrence");
}

#[test]
fn the_days_of_a_year_agree_with_a_plain_calendar() {
    let mut rng = Rng(3);
    for _ in 0..400 {
        let mut shape = shape(&mut rng);
        shape.specials = true;
        let model = model(&mut rng, shape);
        let Some(schedule) = parsed(&model, "UTC", Gap::Shift, Overlap::First) else {
            // 28 years hold every kind of year; the named years must be searched themselves.
            let years = model.years.clone().unwrap_or_else(|| (2000..=2027).collect());
            assert!(years.iter().all(|year| days_of(&model, *year as i16).is_empty()), "{}", model.text);
            continue;
        };
        let year = rng.of(1971, 2098) as i16;
        let expected = days_of(&model, year);
        let mut found = Vec::new();
        let mut after = ms(date(year, 1, 1)) - 1;
        let end = ms(date(year + 1, 1, 1));
        while let Some(at) = schedule.next_fire(after).filter(|at| *at < end) {
            let day = Timestamp::from_millisecond(at).unwrap().to_zoned(TimeZone::UTC).date();
            found.push(day);
            after = ms(day.tomorrow().unwrap()) - 1;
        }
        assert_eq!(found, expected, "{} in {year}", model.text);
        let times = (model.seconds.len() * model.minutes.len() * model.hours.len()) as u64;
        let count = schedule.count_fires(ms(date(year, 1, 1)) - 1, end - 1);
        assert_eq!(count, expected.len() as u64 * times, "{} in {year}", model.text);
    }
}

fn days_of(model: &Model, year: i16) -> Vec<Date> {
    date(year, 1, 1)
        .series(1.day())
        .take_while(|day| day.year() == year)
        .filter(|day| model.matches_date(*day))
        .collect()
}

/// What schedules rest on: a zone's list of changes and its offsets tell the same, and no change is larger than a day.
#[test]
fn transitions_and_offsets_of_all_zones_agree() {
    for name in known_zone_names() {
        let zone = TimeZone::get(&name).unwrap();
        let offset = |at| zone.to_offset(Timestamp::from_second(at).unwrap()).seconds();
        let mut before = offset(-86_400);
        for change in zone.following(Timestamp::from_second(-86_400).unwrap()) {
            let at = change.timestamp().as_second();
            if at > 5_000_000_000 {
                break;
            }
            assert_eq!(offset(at - 1), before, "{name} {}", change.timestamp());
            assert_eq!(offset(at), change.offset().seconds(), "{name} {}", change.timestamp());
            assert!((change.offset().seconds() - before).abs() <= 86_400, "{name} {}", change.timestamp());
            before = change.offset().seconds();
        }
    }
}

fn ms(day: Date) -> i64 {
    day.to_zoned(TimeZone::UTC).unwrap().timestamp().as_millisecond()
}

#[test]
fn counts_over_years_are_sums_of_parts_and_of_fires() {
    let mut rng = Rng(4);
    for _ in 0..300 {
        let model = {
            let shape = shape(&mut rng);
            model(&mut rng, shape)
        };
        let name = *rng.pick(&ZONES);
        let Some(schedule) = parsed(&model, name, *rng.pick(&GAPS), *rng.pick(&OVERLAPS)) else {
            continue;
        };
        let from = rng.of(0, 3_000_000_000_000);
        let until = from + rng.of(0, 400_000_000_000);
        let middle = rng.of(from, until);
        let whole = schedule.count_fires(from, until);
        assert_eq!(
            schedule.count_fires(from, middle) + schedule.count_fires(middle, until),
            whole,
            "{} {name} {from} {middle} {until}",
            model.text
        );
        if whole < 2_000 {
            let mut at = from;
            for _ in 0..whole {
                at = schedule.next_fire(at).unwrap();
            }
            assert!(at <= until, "{} {name}", model.text);
            assert!(schedule.next_fire(at).is_none_or(|next| next > until), "{} {name}", model.text);
        }
    }
}

/// Runs `test` on generated values, the same ones in every run.
fn check<S: Strategy>(cases: u32, strategy: &S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(config, rng).run(strategy, test).unwrap();
}

fn sound(text: &str, error: &CronError) -> Result<(), TestCaseError> {
    prop_assert!(error.position <= text.len(), "{:?}", error);
    prop_assert!(text.is_char_boundary(error.position), "{:?}", error);
    prop_assert!(!error.message.is_empty(), "{}", error);
    prop_assert_eq!(error.to_string().lines().count(), 1, "{}", error);
    Ok(())
}

#[test]
fn parsing_never_panics_and_what_it_accepts_can_be_asked_everything() {
    let alphabet = proptest::sample::select(b"0123456789*/-,?LW#H()@ \tMONJAFRIdaily\0\n.+x".to_vec());
    let cronlike = proptest::collection::vec(alphabet, 0..40).prop_map(|bytes| String::from_utf8(bytes).unwrap());
    let item = "(\\*|\\?|H|L|LW|[0-9]{1,2}|[0-9]{1,2}-[0-9]{1,2}|\\*/[0-9]{1,2}|[0-9]{1,2}/[0-9]|H/[0-9]{1,2}|H\\([0-9]-[0-9]{1,2}\\)|MON|JAN|[0-7]L|[0-7]#[0-6]|[0-9]{1,2}W|L-[0-9]{1,2})";
    let fields = proptest::string::string_regex(&format!("{item}(,{item})?( {item}){{4,6}}")).unwrap();
    let wild = proptest::string::string_regex("(?s).{0,40}").unwrap();
    let text = prop_oneof![cronlike, fields, wild];
    let dialect = proptest::sample::select(Dialect::ALL);
    let input = (text, dialect, any::<u64>(), any::<i64>(), any::<i64>());
    check(20_000, &input, |(text, dialect, seed, a, b)| {
        let (expr, resolved) = match CronExpr::parse(&text, dialect, seed) {
            Ok(parsed) => parsed,
            Err(error) => return sound(&text, &error),
        };
        prop_assert!(resolved != Dialect::Auto);
        // What is stored is the resolved dialect: it must give the same expression again.
        prop_assert_eq!(CronExpr::parse(&text, resolved, seed), Ok((expr, resolved)));
        prop_assert!(expr.can_ever_fire());
        prop_assert!(!describe(&expr, resolved).is_empty());
        let zone = ZONES[(seed % ZONES.len() as u64) as usize];
        let schedule = CronSchedule::new(expr, zone, GAPS[(seed % 2) as usize], OVERLAPS[(seed % 3) as usize]).unwrap();
        // Extreme instants must not overflow.
        for after in [a, a % 10_000_000_000_000, i64::MIN, i64::MAX] {
            if let Some(next) = schedule.next_fire(after) {
                prop_assert!(next > after);
                prop_assert_eq!(schedule.count_fires(after, next), 1);
                prop_assert_eq!(schedule.count_fires(after, next - 1), 0);
            }
            let occurrence = schedule.next_occurrence(after, b);
            prop_assert!(occurrence.is_none_or(|found| found.at_ms > after && found.at_ms <= b));
        }
        prop_assert!(hazards(&schedule, a % 4_000_000_000_000).iter().all(|line| !line.is_empty()));
        Ok(())
    });
}
