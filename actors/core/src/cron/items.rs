//! The grammar of a field: lists of values, ranges, steps, names and `H`.
//!
//! What differs between the fields and the dialects is in the `Field` descriptions. The extra forms of the two day
//! fields are in `days`.

use super::cursor::{Cursor, shorten, value};
use super::error::CronError;
use super::expr::Flags;
use super::fields::Field;
use super::hash::spread;

/// The largest step that is read where the dialect has no bound of its own: more digits are a slip.
const STEP_MAX: u32 = 999_999;

/// One item of a list: every `step`th value of `from..=to`; `from > to` runs over the field's end.
#[derive(Clone, Copy)]
pub(super) struct Item {
    pub from: u32,
    pub to: u32,
    pub step: u32,
    /// `*`, `*/n`, `a/n` or `H/n`: it has no end of its own.
    pub open: bool,
    /// A step of more than 1 that is longer than the range: only the first value is reached.
    pub beyond: bool,
}

impl Item {
    pub fn one(value: u32) -> Item {
        Item { from: value, to: value, step: 1, open: false, beyond: false }
    }
}

/// What a list was, besides its values.
#[derive(Clone, Copy, Default)]
pub(super) struct Listed {
    items: u32,
    open: bool,
    stepped: bool,
    beyond: bool,
}

impl Listed {
    pub fn add(&mut self, item: Item) {
        self.items += 1;
        self.open |= item.open;
        self.stepped |= item.step > 1;
        self.beyond |= item.beyond;
    }

    /// One open item.
    pub fn open(self) -> bool {
        self.items == 1 && self.open
    }

    /// Notes in `flags` what hazards are told from.
    pub fn note(self, field: &Field, flags: &mut Flags) {
        flags.set(Flags::stepped(field.place), self.items == 1 && self.stepped);
        flags.set(Flags::STEP_BEYOND, self.items > 1 && self.beyond);
    }
}

/// Reads the list of a field and hands over its items.
pub(super) fn list(
    cursor: &mut Cursor<'_>,
    field: &Field,
    seed: u64,
    mut add: impl FnMut(Item),
) -> Result<Listed, CronError> {
    let mut listed = Listed::default();
    loop {
        let item = item(cursor, field, seed)?;
        listed.add(item);
        add(item);
        if !cursor.another(field)? {
            return Ok(listed);
        }
    }
}

/// Reads a list into a mask, bit n for the value n.
pub(super) fn mask(
    cursor: &mut Cursor<'_>,
    field: &Field,
    seed: u64,
    flags: &mut Flags,
) -> Result<(u64, bool), CronError> {
    let mut mask = 0;
    let listed = list(cursor, field, seed, |item| mask |= bits(item, field))?;
    listed.note(field, flags);
    Ok((mask, listed.open()))
}

/// The values of an item as bits.
pub(super) fn bits(item: Item, field: &Field) -> u64 {
    let Item { from, to, step, .. } = item;
    if step == 1 && from <= to {
        return (u64::MAX >> (63 - to)) & (u64::MAX << from);
    }
    let size = field.max - field.min + 1;
    let end = if from <= to { to } else { to + size };
    let mut bits = 0;
    for value in (from..=end).step_by(step as usize) {
        bits |= 1 << if value > field.max { value - size } else { value };
    }
    bits
}

/// Reads one item of a list.
pub(super) fn item(cursor: &mut Cursor<'_>, field: &Field, seed: u64) -> Result<Item, CronError> {
    if cursor.peek() == Some(b'*') {
        cursor.at += 1;
        let step = open_step(cursor, field)?;
        return Ok(open_item(field, field.min, step.unwrap_or(1)));
    }
    if let Some(hash) = field.hash
        && cursor.take(b'H')
    {
        return hashed(cursor, field, hash, seed);
    }
    let start = cursor.at;
    let from = value(cursor, field)?;
    if cursor.peek() == Some(b'-') {
        cursor.at += 1;
        let (from, to) = range_to(cursor, field, start, from)?;
        // Neither cron nor Quartz bounds the step of a range.
        let step = if cursor.peek() == Some(b'/') { step(cursor, field, None)? } else { 1 };
        let size = field.max - field.min + 1;
        let length = if to >= from { to - from } else { to + size - from };
        return Ok(Item { from, to, step, open: false, beyond: step > 1 && step > length });
    }
    match open_step(cursor, field)? {
        Some(step) => Ok(open_item(field, from, step)),
        None => Ok(Item::one(from)),
    }
}

/// `*`, `*/n` or `a/n`. To cron the 7 of a weekday field is a value of its own: `*/7` there is every Sunday and no slip.
fn open_item(field: &Field, from: u32, step: u32) -> Item {
    let beyond = step > 1 && step > field.max - from;
    Item { from, to: from.max(field.open_max), step, open: true, beyond }
}

/// The end of a range whose start was read; both, as numbers that run forwards unless the field wraps.
fn range_to(cursor: &mut Cursor<'_>, field: &Field, start: usize, from: u32) -> Result<(u32, u32), CronError> {
    let named = cursor.peek().is_some_and(|byte| byte.is_ascii_alphabetic());
    let mut to = value(cursor, field)?;
    // SAT-SUN: as an end Sunday is the 7 of a field that has one.
    if named && to < from && to == field.min && field.open_max < field.max {
        to = field.max;
    }
    if to < from && !field.wraps {
        let range = cursor.since(start);
        let error = CronError::at(start, format!("the range {range} of the {} field runs backwards", field.name));
        return Err(match (field.name == "year", to > field.min) {
            (true, _) => error,
            (false, true) => error.suggest(format!("write {from}-{},{}-{to}", field.max, field.min)),
            (false, false) => error.suggest(format!("write {from}-{},{to}", field.max)),
        });
    }
    Ok((from, to))
}

/// `/n` after `*`, a single value or `H`, if there is one.
fn open_step(cursor: &mut Cursor<'_>, field: &Field) -> Result<Option<u32>, CronError> {
    if cursor.peek() != Some(b'/') {
        return Ok(None);
    }
    step(cursor, field, field.step_max.map(|max| (max, "field"))).map(Some)
}

/// Reads `/n`. A step beyond the end of the range is taken, as cron takes it: it reaches the first value only, and is told
/// as a hazard. `largest`: the largest step, and of what, where one is refused.
fn step(cursor: &mut Cursor<'_>, field: &Field, largest: Option<(u32, &str)>) -> Result<u32, CronError> {
    cursor.at += 1;
    let start = cursor.at;
    let name = field.name;
    match cursor.number() {
        None if cursor.peek().is_none_or(|byte| byte == b',') => {
            Err(CronError::at(cursor.at, format!("the step is missing after '/' in the {name} field")))
        }
        None => Err(CronError::at(cursor.at, format!("the step of the {name} field is not a number"))),
        Some(0) => Err(CronError::at(start, format!("the step of the {name} field cannot be 0"))),
        Some(step) => match largest.unwrap_or((STEP_MAX, "field")) {
            (largest, of) if step > largest => {
                let step = cursor.since(start);
                let message = format!("the step {} of the {name} field goes over the end of the {of}", shorten(&step));
                Err(CronError::at(start, message).suggest(format!("the largest step here is {largest}")))
            }
            (_, _) => Ok(step),
        },
    }
}

/// The rest of `H`, `H/n`, `H(a-b)`, `H(a-b)/n`.
fn hashed(cursor: &mut Cursor<'_>, field: &Field, whole: (u32, u32), seed: u64) -> Result<Item, CronError> {
    let (mut from, mut to) = whole;
    let ranged = cursor.peek() == Some(b'(');
    if ranged {
        cursor.at += 1;
        let start = cursor.at;
        from = value(cursor, field)?;
        if !cursor.take(b'-') {
            return Err(CronError::at(cursor.at, format!("H takes a range in the {} field", field.name))
                .suggest(format!("write H({}-{})", field.min, field.open_max)));
        }
        to = value(cursor, field)?;
        if to < from {
            return Err(CronError::at(start, format!("the range of H in the {} field runs backwards", field.name)));
        }
        if !cursor.take(b')') {
            return Err(CronError::at(cursor.at, format!("')' is missing after H( in the {} field", field.name)));
        }
    }
    let step = if ranged && cursor.peek() == Some(b'/') {
        Some(step(cursor, field, Some(((to - from).max(1), "range")))?)
    } else if cursor.peek() == Some(b'/') {
        // No cron knows H: what goes over the end is refused, as in Jenkins.
        Some(step(cursor, field, Some((field.max, "field")))?)
    } else {
        None
    };
    match step {
        None => Ok(Item::one(spread(seed, field.hash_key, from, to))),
        Some(step) => {
            let first = spread(seed, field.hash_key, from, to.min(from + step - 1));
            Ok(Item { from: first, to, step, open: !ranged, beyond: false })
        }
    }
}
