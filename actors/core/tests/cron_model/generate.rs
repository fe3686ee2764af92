//! Random expressions with their meaning.

use super::{DayRule, Model, Rng, WeekdayRule};
use campanile_schema::job::Dialect;
use std::collections::BTreeSet;

const MONTHS: [&str; 12] = ["JAN", "feb", "Mar", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "dec"];
const WEEKDAYS: [&str; 7] = ["SUN", "Mon", "TUE", "wed", "THU", "FRI", "SAT"];

/// What a generated expression may hold.
#[derive(Clone, Copy)]
pub struct Shape {
    pub dialect: Dialect,
    /// 5, 6 or 7.
    pub fields: usize,
    /// `L`, `W` and `#`.
    pub specials: bool,
    /// Share of time fields that are open or full, percent: many fires or few.
    pub dense: i64,
    pub years: (i64, i64),
}

struct Field {
    min: i64,
    max: i64,
    /// Size of the circle on which ranges wrap; 0 = they do not.
    wrap: i64,
    /// Largest value of an open end.
    open_max: i64,
}

struct Read {
    text: String,
    values: BTreeSet<i64>,
    open: bool,
}

pub fn model(rng: &mut Rng, shape: Shape) -> Model {
    let quartz = shape.dialect == Dialect::Quartz;
    let plain = |min: i64, max: i64| Field { min, max, wrap: if quartz { max - min + 1 } else { 0 }, open_max: max };
    let seconds = if shape.fields > 5 {
        list(rng, &plain(0, 59), shape.dense, &[])
    } else {
        Read { text: String::new(), values: BTreeSet::from([0]), open: false }
    };
    let minutes = list(rng, &plain(0, 59), shape.dense, &[]);
    let hours = list(rng, &plain(0, 23), shape.dense, &[]);
    let months = list(rng, &plain(1, 12), 70, &MONTHS);
    let years = (shape.fields == 7).then(|| {
        let field = Field { min: shape.years.0, max: shape.years.1, wrap: 0, open_max: shape.years.1 };
        let mut read = list(rng, &field, 0, &[]);
        if read.text.split(',').any(|item| item.contains(['*', '/']) && !item.contains('-')) {
            // An open year ends in 2099, not where the generator's range ends.
            let year = rng.of(shape.years.0, shape.years.1);
            read = Read { text: year.to_string(), values: BTreeSet::from([year]), open: false };
        }
        read
    });
    let (mut day_text, mut days) = days(rng, shape.specials, &plain(1, 31));
    let (mut weekday_text, mut weekdays) = week(rng, shape.specials, quartz);
    if quartz {
        let wildcard = if rng.chance(60) { "?" } else { "*" };
        if rng.chance(50) {
            (day_text, days) = (wildcard.to_owned(), None);
            if wildcard == "?" && weekday_text == "?" {
                weekday_text = "*".to_owned();
            }
        } else {
            (weekday_text, weekdays) = (wildcard.to_owned(), None);
            if wildcard == "?" && day_text == "?" {
                day_text = "*".to_owned();
            }
        }
    }
    let starred = day_text.starts_with('*') || weekday_text.starts_with('*');
    let mut parts = vec![minutes.text, hours.text, day_text, months.text, weekday_text];
    if shape.fields > 5 {
        parts.insert(0, seconds.text);
    }
    let years = years.map(|read| {
        parts.push(read.text);
        read.values
    });
    Model {
        text: parts.join(" "),
        dialect: shape.dialect,
        seconds: seconds.values,
        minutes: minutes.values,
        hours: hours.values,
        months: months.values,
        years,
        both: starred && days.is_some() && weekdays.is_some(),
        days,
        weekdays,
        open: [seconds.open, minutes.open, hours.open],
    }
}

fn list(rng: &mut Rng, field: &Field, dense: i64, names: &[&str]) -> Read {
    if rng.chance(dense) {
        let step = rng.of(1, 4) * 5;
        if rng.chance(50) || step > field.max {
            return Read { text: "*".to_owned(), values: (field.min..=field.open_max).collect(), open: true };
        }
        let values = (field.min..=field.open_max).step_by(step as usize).collect();
        return Read { text: format!("*/{step}"), values, open: true };
    }
    let mut read = item(rng, field, names);
    while rng.chance(35) {
        let more = item(rng, field, names);
        read.text = format!("{},{}", read.text, more.text);
        read.values.extend(more.values);
        read.open = false;
    }
    read
}

fn item(rng: &mut Rng, field: &Field, names: &[&str]) -> Read {
    let Field { min, max, wrap, open_max } = *field;
    let show = |rng: &mut Rng, value: i64| match names.get((value - min) as usize) {
        Some(name) if rng.chance(50) => (*name).to_owned(),
        _ if rng.chance(5) => format!("0{value}"),
        _ => value.to_string(),
    };
    let from = rng.of(min, open_max);
    match rng.of(0, 9) {
        0..=4 => Read { text: show(rng, from), values: BTreeSet::from([from]), open: false },
        5..=7 => {
            let mut to = rng.of(min, max);
            if to < from && wrap == 0 {
                to = rng.of(from, max);
            }
            let length = if to < from { to + wrap - from } else { to - from };
            let (step, suffix) = if length > 1 && rng.chance(50) {
                let step = rng.of(1, length);
                (step, format!("/{step}"))
            } else {
                (1, String::new())
            };
            let values = (from..=from + length).step_by(step as usize);
            Read {
                text: format!("{}-{}{suffix}", show(rng, from), show(rng, to)),
                values: values.map(|value| if value > max { value - wrap } else { value }).collect(),
                open: false,
            }
        }
        8 => {
            let step = rng.of(1, max);
            let text = format!("{}/{step}", show(rng, from));
            Read { text, values: (from..=open_max).step_by(step as usize).collect(), open: true }
        }
        _ => {
            let step = rng.of(1, max);
            let values = (min..=open_max).step_by(step as usize).collect();
            Read { text: format!("*/{step}"), values, open: true }
        }
    }
}

fn days(rng: &mut Rng, specials: bool, field: &Field) -> (String, Option<Vec<DayRule>>) {
    if rng.chance(40) {
        return ("*".to_owned(), None);
    }
    let mut texts = Vec::new();
    let mut rules = Vec::new();
    loop {
        let (text, mut more) = if specials && rng.chance(50) {
            let (text, rule) = special_day(rng);
            (text, vec![rule])
        } else {
            let read = item(rng, field, &[]);
            (read.text, read.values.into_iter().map(|day| DayRule::On(day as i8)).collect())
        };
        texts.push(text);
        rules.append(&mut more);
        if rng.chance(65) {
            return (texts.join(","), Some(rules));
        }
    }
}

fn special_day(rng: &mut Rng) -> (String, DayRule) {
    let day = rng.of(1, 31) as i8;
    let back = rng.of(1, 30) as i8;
    match rng.of(0, 4) {
        0 => ("L".to_owned(), DayRule::FromEnd(0)),
        1 => (format!("L-{back}"), DayRule::FromEnd(back)),
        2 => ("LW".to_owned(), DayRule::NearFromEnd(0)),
        3 => (format!("L-{back}W"), DayRule::NearFromEnd(back)),
        _ => (format!("{day}W"), DayRule::Near(day)),
    }
}

fn week(rng: &mut Rng, specials: bool, quartz: bool) -> (String, Option<Vec<WeekdayRule>>) {
    if rng.chance(50) {
        return ("*".to_owned(), None);
    }
    let field = if quartz {
        Field { min: 1, max: 7, wrap: 7, open_max: 7 }
    } else {
        Field { min: 0, max: 7, wrap: 0, open_max: 6 }
    };
    let from_sunday = |value: i64| ((value - field.min) % 7) as i8;
    let mut texts = Vec::new();
    let mut rules = Vec::new();
    loop {
        let weekday = rng.of(0, 6) as i8;
        let number = i64::from(weekday) + field.min;
        let name = if rng.chance(50) { WEEKDAYS[weekday as usize].to_owned() } else { number.to_string() };
        match rng.of(0, 5) {
            0 if specials => {
                texts.push(format!("{name}L"));
                rules.push(WeekdayRule::Last(weekday));
            }
            1 if specials => {
                let nth = rng.of(1, 5) as i8;
                texts.push(format!("{name}#{nth}"));
                rules.push(WeekdayRule::Nth(weekday, nth));
            }
            2 => {
                texts.push(name);
                rules.push(WeekdayRule::Every(weekday));
            }
            _ => {
                let read = item(rng, &field, &[]);
                texts.push(read.text);
                rules.extend(read.values.into_iter().map(|value| WeekdayRule::Every(from_sunday(value))));
            }
        }
        if rng.chance(70) {
            return (texts.join(","), Some(rules));
        }
    }
}
