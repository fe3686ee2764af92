//! The tables of special days in `docs/guides/schedules.md`, evaluated by the parser that jobs use.

use campanile_core::cron::{CronExpr, CronSchedule};
use campanile_schema::{
    job::{Dialect, Gap, Overlap},
    time::Timestamp,
};

const PAGE: &str = include_str!("../../docs/guides/schedules.md");

/// The cells of the table that begins with this head.
fn table(head: &str) -> Vec<Vec<&'static str>> {
    let rows = PAGE.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect();
    rows.take_while(|line| line.starts_with('|')).map(cells).collect()
}

/// The texts between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The first fires from February 2026 on, UTC.
fn fires(expression: &str, dialect: Dialect, count: usize) -> Vec<String> {
    // Any job's seed: it only counts for `H`.
    let (expr, _) = CronExpr::parse(expression, dialect, 7).unwrap_or_else(|error| panic!("{expression}: {error}"));
    let schedule = CronSchedule::new(expr, "UTC", Gap::Shift, Overlap::First).unwrap();
    let before = "2026-01-31T23:59:59Z".parse::<Timestamp>().unwrap().ms();
    let next = |after: &i64| schedule.next_fire(*after);
    std::iter::successors(next(&before), next).take(count).map(|at| Timestamp(at).to_string()).collect()
}

/// `2026-02-28T18:00:00.000Z` as the page writes it: `Feb 28`.
fn day(instant: &str) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let number = |from: usize| instant[from..from + 2].parse::<usize>().unwrap();
    format!("{} {}", MONTHS[number(5) - 1], number(8))
}

#[test]
fn each_form_is_due_on_the_days_that_the_guide_names() {
    let rows = table("| written |");
    for row in &rows {
        let [written, _, examples, due] = row[..] else { panic!("four cells: {row:?}") };
        let examples = quoted(examples);
        assert!(!examples.is_empty(), "{written} has no example");
        let first = fires(examples[0], Dialect::Unix, 3);
        assert_eq!(first.iter().map(|at| day(at)).collect::<Vec<_>>().join(", "), due, "{written}");
        for other in &examples[1..] {
            assert_eq!(fires(other, Dialect::Unix, 30), fires(examples[0], Dialect::Unix, 30), "{written}");
        }
    }
    let forms: Vec<&str> = rows.iter().flat_map(|row| quoted(row[0])).collect();
    for form in ["L", "L-n", "nW", "LW", "nL", "n#k", "H", "@daily"] {
        assert!(forms.contains(&form), "{form} is not in the table: {forms:?}");
    }
}

#[test]
fn both_dialects_of_a_row_mean_the_same() {
    let rows = table("| UNIX |");
    assert!(rows.len() >= 5, "{rows:?}");
    for row in rows {
        let (unix, quartz) = (quoted(row[0])[0], quoted(row[1])[0]);
        assert_eq!(fires(unix, Dialect::Unix, 30), fires(quartz, Dialect::Quartz, 30), "{unix} and {quartz}");
    }
}
