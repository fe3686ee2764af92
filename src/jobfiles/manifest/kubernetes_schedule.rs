//! `schedule` of a Kubernetes CronJob, which Kubernetes reads with Go's robfig/cron, in the words of our UNIX dialect.
//!
//! Most expressions mean the same in both and stay as they are. What differs is the rule for the two day fields: to
//! robfig/cron a step of more than 1 takes the star's special meaning away, so in `0 14 */10 * 1-5` either field is
//! enough; here (as in cron) a field that begins with `*` makes both necessary. Such a field is written as the range that
//! it stands for, `1-31/10`, which every release reads in the same way.
//!
//! The meaning is held against the real robfig/cron by `make foreign-schedules`; `docs/foreign-schedules.md` tells it.

use campanile_core::cron::go_duration;

/// A schedule of a CronJob in our words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A UNIX expression; `note` says how it differs from what was written.
    Cron { expr: String, note: Option<String> },
    /// `@every`: whole seconds.
    Every(u64),
}

struct Field {
    min: u32,
    max: u32,
    names: &'static str,
}

/// Minute, hour, day of the month, month, weekday. Sunday is 0 only.
const FIELDS: [Field; 5] = [
    Field { min: 0, max: 59, names: "" },
    Field { min: 0, max: 23, names: "" },
    Field { min: 1, max: 31, names: "" },
    Field { min: 1, max: 12, names: "jan feb mar apr may jun jul aug sep oct nov dec" },
    Field { min: 0, max: 6, names: "sun mon tue wed thu fri sat" },
];
const DAY: usize = 2;
const WEEKDAY: usize = 4;
/// Larger steps reach nothing more, and our own grammar reads six digits.
const STEP_SHOWN: u64 = 999_999;

/// One item of a list.
struct Item {
    text: String,
    /// `*` or `?` without a step, or with the step 1: all values, and the mark that makes both day fields necessary.
    is_star: bool,
    /// `*` or `?` with a larger step.
    stepped_star: Option<u64>,
}

/// What Kubernetes makes of `schedule`. An expression that it refuses is left as it is, and `note` says so.
pub fn meaning(schedule: &str) -> Meaning {
    if let Some(duration) = schedule.trim().strip_prefix("@every ")
        && let Some(seconds) = go_duration(duration)
    {
        return Meaning::Every(seconds);
    }
    if schedule.trim().starts_with('@') {
        return Meaning::Cron { expr: schedule.to_owned(), note: None };
    }
    let Some(fields) = items(schedule) else {
        let note = "Kubernetes itself refuses this schedule; here it is read as an expression of the UNIX dialect";
        return Meaning::Cron { expr: schedule.to_owned(), note: Some(note.to_owned()) };
    };
    let has_star = |place: usize| fields[place].iter().any(|item| item.is_star);
    let either_is_enough = !has_star(DAY) && !has_star(WEEKDAY);
    let written: Vec<String> = fields
        .iter()
        .enumerate()
        .map(|(place, items)| {
            let is_day = place == DAY || place == WEEKDAY;
            if is_day && items.len() > 1 && has_star(place) {
                return "*".to_owned();
            }
            let one = |item: &Item| match item.stepped_star {
                Some(step) if is_day && either_is_enough => {
                    format!("{}-{}/{step}", FIELDS[place].min, FIELDS[place].max)
                }
                _ => item.text.clone(),
            };
            items.iter().map(one).collect::<Vec<_>>().join(",")
        })
        .collect();
    let expr = written.join(" ");
    let note = (!schedule.split_whitespace().eq(expr.split(' ')))
        .then(|| format!("'{schedule}' is kept as '{expr}', which means here what the schedule means to Kubernetes"));
    Meaning::Cron { expr, note }
}

/// The fields as robfig/cron reads them; `None` when it refuses them.
fn items(schedule: &str) -> Option<Vec<Vec<Item>>> {
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return None;
    }
    let list = |(text, field): (&&str, &Field)| {
        // It passes over empty items. A field of nothing but commas is no value at all.
        let items: Option<Vec<Item>> =
            text.split(',').filter(|part| !part.is_empty()).map(|part| item(part, field)).collect();
        items.filter(|items| !items.is_empty())
    };
    fields.iter().zip(&FIELDS).map(list).collect()
}

/// `number | name | * | ?`, with `-end` and `/step`.
fn item(text: &str, field: &Field) -> Option<Item> {
    let (range, step) = match text.split_once('/') {
        Some((range, step)) => (range, Some(number(step).filter(|step| *step > 0)?)),
        None => (text, None),
    };
    let (low, high) = match range.split_once('-') {
        Some((low, high)) => (low, Some(high)),
        None => (range, None),
    };
    let suffix = step.map_or_else(String::new, |step| format!("/{}", step.min(STEP_SHOWN)));
    if low == "*" || low == "?" {
        // What follows a dash is not even looked at.
        let stepped_star = step.filter(|step| *step > 1).map(|step| step.min(STEP_SHOWN));
        return Some(Item { text: format!("*{suffix}"), is_star: stepped_star.is_none(), stepped_star });
    }
    let value = |text: &str| {
        let named = |name: &str| (!name.is_empty()).then(|| field.names.find(name)).flatten();
        let lower = text.to_ascii_lowercase();
        let name = (lower.len() == 3).then(|| named(&lower)).flatten().filter(|at| at % 4 == 0);
        let value = match name {
            Some(at) => at as u64 / 4 + u64::from(field.min),
            None => number(text)?,
        };
        (u64::from(field.min)..=u64::from(field.max)).contains(&value).then_some(value)
    };
    let from = value(low)?;
    let to = high.map(value);
    if let Some(to) = to {
        to.filter(|to| *to >= from)?;
    }
    let text = match high {
        Some(high) => format!("{}-{}{suffix}", plain(low), plain(high)),
        None => format!("{}{suffix}", plain(low)),
    };
    Some(Item { text, is_star: false, stepped_star: None })
}

/// Go's `strconv.Atoi` of what is not negative.
fn number(text: &str) -> Option<u64> {
    let digits = plain(text);
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    is_number.then(|| digits.parse::<u64>().ok().filter(|number| i64::try_from(*number).is_ok())).flatten()
}

fn plain(text: &str) -> &str {
    text.strip_prefix('+').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_kept_or_written_so_that_they_mean_the_same_here() {
        for (schedule, expr) in [
            // Either day field is enough, for a step takes the star away.
            ("0 14 */10 * 1-5", "0 14 1-31/10 * 1-5"),
            ("0 14 1-5 * */2", "0 14 1-5 * 0-6/2"),
            ("0 14 */10,5 * */2", "0 14 1-31/10,5 * 0-6/2"),
            ("0 14 ?/10 * MON", "0 14 1-31/10 * MON"),
            // They mean the same in both.
            ("0 14 1-31/2 * MON", "0 14 1-31/2 * MON"),
            ("0 14 */1 * MON", "0 14 */1 * MON"),
            ("0 14 */10 * *", "0 14 */10 * *"),
            ("0 14 * * */2", "0 14 * * */2"),
            ("*/5 8-18/2 * jan,Jul 1-5", "*/5 8-18/2 * jan,Jul 1-5"),
            ("30 4 1,15 * 5", "30 4 1,15 * 5"),
            ("*/90 0 1 1 *", "*/90 0 1 1 *"),
            ("@daily", "@daily"),
            // What only robfig/cron reads.
            ("? ? ? * ?", "* * * * *"),
            ("0 14 5,* * MON", "0 14 * * MON"),
            ("0,,30 4 , * 1", "0,,30 4 , * 1"),
            ("0,,30 4 1, * 1", "0,30 4 1 * 1"),
            ("+5 4 *-7 * 1", "5 4 * * 1"),
        ] {
            let Meaning::Cron { expr: kept, note } = meaning(schedule) else { panic!("{schedule}") };
            assert_eq!(kept, expr, "{schedule}");
            assert_eq!(note.is_some(), schedule != expr || schedule.contains(" , "), "{schedule}: {note:?}");
        }
        // Kubernetes refuses these, which is told.
        for schedule in
            ["0 0 * * 7", "0 0 L * *", "0 0 12 * * *", "61 * * * *", "*/0 * * * *", "0 22-6 * * *", "0 0 * * MONDAY"]
        {
            let Meaning::Cron { expr, note } = meaning(schedule) else { panic!("{schedule}") };
            assert_eq!(expr, schedule, "{schedule}");
            assert!(note.is_some_and(|note| note.contains("refuses")), "{schedule}");
        }
        assert_eq!(meaning("@every 1h30m"), Meaning::Every(5_400));
    }
}
