//! Random expressions as people write them in each system, and as they get them wrong.

use super::{Difference, Said};
use campanile_core::mix::{STEP, mix};

/// SplitMix64: the same cases in every run.
pub struct Rng(pub u64);

impl Rng {
    fn next(&mut self) -> u64 {
        let number = mix(self.0);
        self.0 = self.0.wrapping_add(STEP);
        number
    }

    /// A number of `from..=to`.
    fn of(&mut self, from: u32, to: u32) -> u32 {
        from + (self.next() % u64::from(to - from + 1)) as u32
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.of(0, 99) < percent
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.of(0, words.len() as u32 - 1) as usize]
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Words {
    Kubernetes,
    Cron,
    Quartz,
}

const MONTHS: [&str; 12] = ["JAN", "feb", "Mar", "APR", "MAY", "JUN", "jul", "AUG", "SEP", "OCT", "NOV", "dec"];
const WEEKDAYS: [&str; 7] = ["SUN", "Mon", "TUE", "wed", "THU", "FRI", "SAT"];

struct Field {
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

pub fn expression(rng: &mut Rng, words: Words) -> String {
    if words != Words::Quartz && rng.chance(2) {
        return rng.pick(&["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"]).to_owned();
    }
    let plain = |min, max| Field { min, max, names: &[] };
    let weekday = match words {
        Words::Quartz => Field { min: 1, max: 7, names: &WEEKDAYS },
        Words::Kubernetes => Field { min: 0, max: 6, names: &WEEKDAYS },
        Words::Cron => Field { min: 0, max: 7, names: &WEEKDAYS },
    };
    let minute = list(rng, &plain(0, 59), words, 25);
    let hour = list(rng, &plain(0, 23), words, 30);
    let mut day = list(rng, &plain(1, 31), words, 40);
    let month = list(rng, &Field { min: 1, max: 12, names: &MONTHS }, words, 60);
    let mut of_week = list(rng, &weekday, words, 40);
    if words != Words::Quartz {
        return format!("{minute} {hour} {day} {month} {of_week}");
    }
    if rng.chance(30) {
        day = special_day(rng);
    } else if rng.chance(30) {
        of_week = special_weekday(rng);
    }
    // Quartz wants a question mark in exactly one of the day fields; mostly it gets it.
    match rng.of(0, 19) {
        0 => {}
        1..=10 => of_week = "?".to_owned(),
        _ => day = "?".to_owned(),
    }
    let second = list(rng, &plain(0, 59), words, 10);
    let year = if rng.chance(15) { format!(" {}", list(rng, &plain(2026, 2028), words, 40)) } else { String::new() };
    format!("{second} {minute} {hour} {day} {month} {of_week}{year}")
}

fn list(rng: &mut Rng, field: &Field, words: Words, star: u32) -> String {
    if rng.chance(star) {
        return if words == Words::Kubernetes && rng.chance(10) { "?".to_owned() } else { "*".to_owned() };
    }
    let mut text = item(rng, field, words);
    while rng.chance(25) {
        let comma = if words == Words::Kubernetes && rng.chance(3) { ",," } else { "," };
        text = format!("{text}{comma}{}", item(rng, field, words));
    }
    if words == Words::Cron && rng.chance(3) {
        text.push_str(rng.pick(&["#2", "-", "x", "/", ".5", ",", "#1,3", "~9"]));
    }
    text
}

fn item(rng: &mut Rng, field: &Field, words: Words) -> String {
    let Field { min, max, .. } = *field;
    // Now and then out of range.
    let value = |rng: &mut Rng| if rng.chance(2) { max + 1 } else { rng.of(min, max) };
    let show = |rng: &mut Rng, value: u32| match field.names.get(value.wrapping_sub(min) as usize) {
        Some(name) if rng.chance(40) => match words {
            // Quartz reads names in capitals, and makes them so.
            Words::Quartz => name.to_uppercase(),
            Words::Kubernetes | Words::Cron => (*name).to_owned(),
        },
        _ if rng.chance(5) => format!("0{value}"),
        _ if words == Words::Kubernetes && rng.chance(3) => format!("+{value}"),
        _ => value.to_string(),
    };
    let step = |rng: &mut Rng| if rng.chance(15) { rng.of(max, 3 * max) } else { rng.of(1, max) };
    let from = value(rng);
    match rng.of(0, 9) {
        0..=3 => show(rng, from),
        4..=5 => {
            let to = if rng.chance(90) { from.max(value(rng)) } else { value(rng) };
            format!("{}-{}", show(rng, from), show(rng, to))
        }
        6 => {
            let to = if rng.chance(90) { from.max(value(rng)) } else { value(rng) };
            format!("{}-{}/{}", from, to, step(rng))
        }
        7 if words != Words::Cron || rng.chance(20) => format!("{from}/{}", step(rng)),
        8 if words == Words::Kubernetes && rng.chance(30) => format!("?/{}", step(rng)),
        _ => format!("*/{}", step(rng)),
    }
}

fn special_day(rng: &mut Rng) -> String {
    let (day, back) = (rng.of(1, 31), rng.of(1, 30));
    match rng.of(0, 4) {
        0 => "L".to_owned(),
        1 => format!("L-{back}"),
        2 => "LW".to_owned(),
        3 => format!("L-{back}W"),
        _ => format!("{day}W"),
    }
}

fn special_weekday(rng: &mut Rng) -> String {
    let weekday = rng.of(1, 7);
    let name = if rng.chance(50) { WEEKDAYS[weekday as usize - 1].to_uppercase() } else { weekday.to_string() };
    match rng.of(0, 2) {
        0 => format!("{name}L"),
        1 => format!("{name}#{}", rng.of(1, 5)),
        _ => "L".to_owned(),
    }
}

/// Where the QUARTZ dialect differs from Quartz on purpose.
pub const QUARTZ_DIFFERS: [Difference; 3] = [
    ("a lone * in a day field counts as ? here; Quartz wants a ? in one of them", |text, _, _| !text.contains('?')),
    ("a range may mix a name and a number here (MAR-5); Quartz refuses it", |text, _, _| {
        text.split([' ', ',']).any(|item| {
            let is_name = |end: &str| end.starts_with(|c: char| c.is_ascii_alphabetic());
            let range = item.split('/').next().unwrap_or_default().split_once('-');
            range.is_some_and(|(from, to)| is_name(from) != is_name(to))
        })
    }),
    ("all times of a W day are due here; Quartz leaves some of them out in some months", |text, theirs, ours| {
        let (Said::Fires(theirs), Said::Fires(ours)) = (theirs, ours) else { return false };
        let (Some(first), Some(last)) = (ours.first(), ours.last()) else { return false };
        // It adds none, and begins on the same day.
        text.split(' ').nth(3).is_some_and(|day| day.contains('W'))
            && theirs.first().is_some_and(|begun| begun / 86_400 == first / 86_400)
            && theirs.iter().all(|at| at > last || ours.contains(at))
    }),
];
