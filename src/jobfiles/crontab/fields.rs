//! The five time fields of a line by cron's own rules, as an expression of our UNIX dialect.
//!
//! Nearly all mean the same in both and stay as they are. Debian's cron (Vixie's) also takes three forms that our dialect
//! refuses: a range that runs backwards, which holds no value; characters behind an item, which it passes over with the
//! rest of the field; and a range that ends on Sunday as 0. They are written out here, and each is told.
//!
//! The meaning is held against the parser of Debian's cron by `make foreign-schedules`; `docs/foreign-schedules.md` tells it.

/// What cron makes of the fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronFields {
    /// Of our UNIX dialect, with the same meaning. `None`: no value is left in a field, so it never fires.
    pub expr: Option<String>,
    /// What differs from the text, or from one cron to another.
    pub notes: Vec<String>,
    /// Debian's cron and cronie refuse the line, or it holds a `~`: cronie draws a time there, Debian's cron passes over it.
    pub is_refused: bool,
}

struct Field {
    name: &'static str,
    min: u32,
    max: u32,
    names: &'static str,
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", min: 0, max: 59, names: "" },
    Field { name: "hour", min: 0, max: 23, names: "" },
    Field { name: "day-of-month", min: 1, max: 31, names: "" },
    Field { name: "month", min: 1, max: 12, names: "jan feb mar apr may jun jul aug sep oct nov dec" },
    Field { name: "weekday", min: 0, max: 7, names: "sun mon tue wed thu fri sat" },
];
const DAY: usize = 2;
const WEEKDAY: usize = 4;

/// One field as cron reads it.
struct Read {
    /// Without values that cron does not take; empty when none is left.
    text: String,
    notes: Vec<String>,
}

/// `fields`: five, with one blank between them.
pub fn meaning(fields: &str) -> CronFields {
    let written: Vec<&str> = fields.split(' ').collect();
    let read: Option<Vec<Read>> =
        written.iter().zip(&FIELDS).map(|(text, field)| list(text, field)).collect::<Option<Vec<_>>>();
    let (Some(read), 5, false) = (read, written.len(), fields.contains('~')) else {
        return CronFields { expr: Some(fields.to_owned()), notes: Vec::new(), is_refused: true };
    };
    let starred = |place: usize| written[place].starts_with('*');
    let is_empty = |place: usize| read[place].text.is_empty();
    let mut texts: Vec<&str> = read.iter().map(|read| read.text.as_str()).collect();
    // Without a star either day field is enough: the one that has values decides alone.
    let (mut empty, other_decides) = ((0..5).any(is_empty), !starred(DAY) && !starred(WEEKDAY));
    for (place, other) in [(DAY, WEEKDAY), (WEEKDAY, DAY)] {
        if is_empty(place) && !is_empty(other) && other_decides && (0..5).all(|at| at == place || !is_empty(at)) {
            texts[place] = "*";
            empty = false;
        }
    }
    CronFields {
        expr: (!empty).then(|| texts.join(" ")),
        notes: read.iter().flat_map(|read| read.notes.iter().cloned()).collect(),
        is_refused: false,
    }
}

/// `None`: cron refuses the line.
fn list(text: &str, field: &Field) -> Option<Read> {
    let (mut kept, mut notes) = (Vec::new(), Vec::new());
    let mut rest = text;
    loop {
        let (item, after) = item(rest, field)?;
        let shown = &rest[..rest.len() - after.len()];
        match item {
            Item::Values => kept.push(shown.to_owned()),
            Item::UpToSunday { from, step } => {
                kept.push(format!("{from}-7{step}"));
                notes.push(format!(
                    "{shown} in the {} field runs up to Sunday, as in cronie; Debian's cron finds no day in it",
                    field.name
                ));
            }
            Item::Backwards => notes.push(format!(
                "the range {shown} of the {} field runs backwards: cron takes it and finds no value in it",
                field.name
            )),
        }
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => {
                if !after.is_empty() {
                    notes.push(format!(
                        "Debian's cron passes over '{after}' in the {} field, so it is left out; cronie refuses the line",
                        field.name
                    ));
                }
                // A field is starred by its first character. What now stands first must not make it so.
                if let Some(first) = kept.first_mut()
                    && let Some(rest) = first.strip_prefix('*')
                    && !text.starts_with('*')
                {
                    *first = format!("{}-{}{rest}", field.min, field.max);
                }
                return Some(Read { text: kept.join(","), notes });
            }
        }
    }
}

enum Item {
    Values,
    /// No value.
    Backwards,
    /// `FRI-SUN`, `5-0`.
    UpToSunday {
        from: String,
        step: String,
    },
}

/// One item and what follows it.
fn item<'t>(text: &'t str, field: &Field) -> Option<(Item, &'t str)> {
    if let Some(after) = text.strip_prefix('*') {
        let (_, after) = step(after)?;
        return Some((Item::Values, after));
    }
    let (low, after) = value(text, field)?;
    let from = &text[..text.len() - after.len()];
    let Some(after) = after.strip_prefix('-') else {
        return (!after.starts_with('/')).then_some((Item::Values, after));
    };
    let (high, end) = value(after, field)?;
    let (step, after) = step(end)?;
    let item = match high >= low {
        true => Item::Values,
        false if field.max == 7 && high == 0 => Item::UpToSunday { from: from.to_owned(), step: step.to_owned() },
        false => Item::Backwards,
    };
    Some((item, after))
}

/// `/n`, if there is one, and what follows.
fn step(text: &str) -> Option<(&str, &str)> {
    let Some(after) = text.strip_prefix('/') else { return Some(("", text)) };
    let (word, rest) = word(after);
    let step = word.parse::<i32>().ok().filter(|_| word.bytes().all(|byte| byte.is_ascii_digit()))?;
    (step > 0).then(|| (&text[..=word.len()], rest))
}

fn value<'t>(text: &'t str, field: &Field) -> Option<(u32, &'t str)> {
    let (word, rest) = word(text);
    let lower = word.to_ascii_lowercase();
    let name = (lower.len() == 3).then(|| field.names.find(&lower)).flatten().filter(|at| at % 4 == 0);
    let number = match name {
        Some(at) => at as u32 / 4 + field.min,
        None => word.parse::<u32>().ok().filter(|_| word.bytes().all(|byte| byte.is_ascii_digit()))?,
    };
    (field.min..=field.max).contains(&number).then_some((number, rest))
}

/// Letters and digits, as cron takes them together.
fn word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_by_the_rules_of_cron() {
        for (fields, expr, note) in [
            ("0 5 * * *", Some("0 5 * * *"), None),
            ("*/60 * * * *", Some("*/60 * * * *"), None),
            ("10-10/5 * * * *", Some("10-10/5 * * * *"), None),
            ("0 0 31 2 *", Some("0 0 31 2 *"), None),
            ("0 14 */10 * 1-5", Some("0 14 */10 * 1-5"), None),
            ("09,39 * * jan-Mar mon", Some("09,39 * * jan-Mar mon"), None),
            // Debian's cron passes over the rest of the field, cronie refuses the line.
            ("0 5 * * 1#2", Some("0 5 * * 1"), Some("passes over '#2'")),
            ("0 5 * * 1#2,3", Some("0 5 * * 1"), Some("passes over '#2,3'")),
            ("*- 5 * * *", Some("* 5 * * *"), Some("passes over '-'")),
            // A range that runs backwards holds nothing.
            ("0 22-6,12 * * *", Some("0 12 * * *"), Some("runs backwards")),
            ("0 22-6 * * *", None, Some("runs backwards")),
            ("0 0 20-10 * 1", Some("0 0 * * 1"), Some("runs backwards")),
            // It does not begin with a star, so either day field is enough.
            ("0 0 3 * 5-4,*/4", Some("0 0 3 * 0-7/4"), Some("runs backwards")),
            ("0 0 20-10 * *", None, Some("runs backwards")),
            ("0 0 20-10 5-3 1", None, Some("runs backwards")),
            ("0 0 20-10 * 5-4", None, Some("runs backwards")),
            ("0 0 * * fri-sun", Some("0 0 * * fri-7"), Some("cronie")),
            ("0 0 * * 5-0/2", Some("0 0 * * 5-7/2"), Some("cronie")),
        ] {
            let read = meaning(fields);
            assert_eq!((read.expr.as_deref(), read.is_refused), (expr, false), "{fields}");
            assert_eq!(
                read.notes.len(),
                usize::from(note.is_some()) + usize::from(fields.contains("5-") && fields.contains("20-")),
                "{fields}: {:?}",
                read.notes
            );
            assert!(note.is_none_or(|note| read.notes[0].contains(note)), "{fields}: {:?}", read.notes);
        }
        for fields in [
            "61 * * * *",
            "5/10 * * * *",
            "0 5 L * *",
            "0 5 ? * 1",
            "0 5 15W * *",
            "0 5 * * 5L",
            "*/0 * * * *",
            "1, * * * *",
            "0 0 * * monday",
            "0~9 * * * *",
            "H * * * *",
        ] {
            assert!(meaning(fields).is_refused, "{fields}");
        }
    }
}
