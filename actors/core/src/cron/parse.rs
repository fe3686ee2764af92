//! From text to `CronExpr`: splitting, macros, the choice of the dialect, and what is refused as a whole.

use super::cursor::Cursor;
use super::days::{days_of_month, join, weekdays};
use super::error::CronError;
use super::expr::{CronExpr, Flags};
use super::fields::{Field, Fields, QUARTZ, UNIX};
use super::foreign;
use super::items::{Item, list, mask};
use super::never::why_never;
use campanile_schema::job::Dialect;
use campanile_schema::limits::CRON_TEXT_BYTES;

const FIELDS_MAX: usize = 7;

/// Where the fields of a text are.
struct Split {
    /// Start and end of each field.
    fields: [(usize, usize); FIELDS_MAX],
    count: usize,
}

impl CronExpr {
    /// Compiles `text`. `hash_seed` (from the job's tenant and name) decides the `H` fields.
    ///
    /// The dialect that comes back is `Unix` or `Quartz`; with it and the same seed the text compiles to the same
    /// expression for ever. Refused: what `dialect` does not allow, and what fires in no year at all.
    pub fn parse(text: &str, dialect: Dialect, hash_seed: u64) -> Result<(CronExpr, Dialect), CronError> {
        CronExpr::read(text, dialect, hash_seed).map_err(|error| match error.never_fires {
            true => error,
            false => foreign::refusal(text).unwrap_or(error),
        })
    }

    fn read(text: &str, dialect: Dialect, hash_seed: u64) -> Result<(CronExpr, Dialect), CronError> {
        let split = split(text)?;
        if text.as_bytes()[split.fields[0].0] == b'@' {
            let expr = expand(text, &split)?;
            return Ok((expr, if dialect == Dialect::Quartz { dialect } else { Dialect::Unix }));
        }
        let dialect = resolve(text, &split, dialect)?;
        let expr = compile(text, &split, dialect, hash_seed)?;
        Ok((expr, dialect))
    }
}

/// Finds the fields; refuses what no expression holds.
fn split(text: &str) -> Result<Split, CronError> {
    let bytes = text.as_bytes();
    if bytes.len() > CRON_TEXT_BYTES {
        let message = format!("the expression is {} bytes long, {CRON_TEXT_BYTES} are allowed", bytes.len());
        return Err(CronError::at(CRON_TEXT_BYTES, message));
    }
    let mut split = Split { fields: [(0, 0); FIELDS_MAX], count: 0 };
    let mut extra = None;
    let mut at = 0;
    while at < bytes.len() {
        if matches!(bytes[at], b' ' | b'\t') {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && bytes[at].is_ascii_graphic() {
            at += 1;
        }
        if at < bytes.len() && !matches!(bytes[at], b' ' | b'\t') {
            return Err(not_allowed(text, at));
        }
        if split.count < FIELDS_MAX {
            split.fields[split.count] = (start, at);
        } else {
            extra.get_or_insert(start);
        }
        split.count += 1;
    }
    match (split.count, extra) {
        (0, _) => Err(CronError::at(0, "the expression is empty").suggest("5 to 7 fields, e.g. '0 2 * * *'")),
        (count, Some(at)) => Err(CronError::at(at, format!("{count} fields, 7 are the most"))),
        (_, None) => Ok(split),
    }
}

/// A character that is neither printable ASCII nor a blank.
#[cold]
fn not_allowed(text: &str, at: usize) -> CronError {
    let Some(found) = text.get(at..).and_then(|rest| rest.chars().next()) else {
        return CronError::at(at, "the text breaks off inside a character");
    };
    if found.is_ascii() {
        let name = if matches!(found, '\n' | '\r') { "a line break" } else { "a control character" };
        return CronError::at(at, format!("{name} ({}) is not allowed", found.escape_default()));
    }
    let code = u32::from(found);
    let error = CronError::at(at, format!("'{found}' (U+{code:04X}) is not an ASCII character"));
    match found {
        // Full-width forms are ASCII moved by a constant.
        '\u{ff01}'..='\u{ff5e}' => match char::from_u32(code - 0xfee0) {
            Some(plain) => error.suggest(format!("write '{plain}'")),
            None => error,
        },
        '\u{2217}' | '\u{2731}' | '\u{00d7}' | '\u{066d}' => error.suggest("write '*'"),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => error.suggest("write '-'"),
        '\u{00a0}' | '\u{2000}'..='\u{200b}' | '\u{3000}' | '\u{feff}' => error.suggest("write a plain blank"),
        _ if found.is_numeric() => error.suggest("write the digits 0 to 9"),
        _ => error,
    }
}

/// `@daily` and its kind: the same in every dialect.
fn expand(text: &str, split: &Split) -> Result<CronExpr, CronError> {
    const MACROS: [(&str, &str); 7] = [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ];
    let (start, end) = split.fields[0];
    let word = &text[start..end];
    if let Some((_, meaning)) = MACROS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word))
        && split.count == 1
    {
        return Ok(CronExpr::parse(meaning, Dialect::Unix, 0)?.0);
    }
    let error = CronError::at(start, "this macro is not known");
    Err(match word.to_ascii_lowercase().as_str() {
        "@reboot" => CronError::at(start, "@reboot is not a time").suggest("use a MANUAL trigger"),
        _ if split.count > 1 => CronError::at(split.fields[1].0, "a macro stands alone").suggest("e.g. @daily"),
        _ => error.suggest("known are @yearly, @monthly, @weekly, @daily, @midnight and @hourly"),
    })
}

/// Checks the number of fields and decides AUTO.
fn resolve(text: &str, split: &Split, dialect: Dialect) -> Result<Dialect, CronError> {
    let count = split.count;
    if count < 5 {
        let error = CronError::at(text.len(), format!("{count} of at least 5 fields"));
        return Err(error.suggest("5 fields are minute hour day-of-month month weekday, with blanks between"));
    }
    match dialect {
        Dialect::Unix => Ok(Dialect::Unix),
        Dialect::Quartz if count == 5 => {
            Err(CronError::at(0, "5 fields, QUARTZ needs 6 or 7").suggest("put the second first, or set dialect UNIX"))
        }
        Dialect::Quartz => Ok(Dialect::Quartz),
        Dialect::Auto if count == 5 => Ok(Dialect::Unix),
        Dialect::Auto if text.contains('?') => Ok(Dialect::Quartz),
        Dialect::Auto => match numbered_weekday(text, split.fields[5]) {
            None => Ok(Dialect::Unix),
            Some(at) => Err(CronError::at(at, "this weekday number means one day in UNIX and another in QUARTZ")
                .suggest("write the weekday as a name (MON), or set the dialect")),
        },
    }
}

/// Where a weekday is written as a number; the numbers after `/` and `#` are none.
fn numbered_weekday(text: &str, (start, end): (usize, usize)) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut counts = true;
    for (at, byte) in bytes.iter().enumerate().take(end).skip(start) {
        match byte {
            b'0'..=b'9' if counts => return Some(at),
            b'0'..=b'9' => {}
            b'/' | b'#' => counts = false,
            _ => counts = true,
        }
    }
    None
}

fn compile(text: &str, split: &Split, dialect: Dialect, seed: u64) -> Result<CronExpr, CronError> {
    let Fields { second, minute, hour, day, month, weekday, year } = match dialect {
        Dialect::Quartz => &QUARTZ,
        Dialect::Unix | Dialect::Auto => &UNIX,
    };
    let with_second = split.count > 5;
    let field = |index: usize| split.fields[index + usize::from(with_second)];
    let cursor = |(at, end): (usize, usize)| Cursor { text: text.as_bytes(), at, end };

    let mut expr = CronExpr::EMPTY;
    let mut elapsed = false;
    expr.seconds = 1;
    if with_second {
        let open;
        (expr.seconds, open) = mask(&mut cursor(split.fields[0]), second, seed, &mut expr.flags)?;
        elapsed |= open;
    }
    let (minutes, open) = mask(&mut cursor(field(0)), minute, seed, &mut expr.flags)?;
    expr.minutes = minutes;
    elapsed |= open;
    let (hours, open) = mask(&mut cursor(field(1)), hour, seed, &mut expr.flags)?;
    expr.hours = hours as u32;
    elapsed |= open;
    expr.flags.set(Flags::ELAPSED, elapsed);

    let days_given = days_of_month(&mut cursor(field(2)), day, seed, &mut expr)?;
    let (months, _) = mask(&mut cursor(field(3)), month, seed, &mut expr.flags)?;
    expr.months = months as u16;
    let weekdays_given = weekdays(&mut cursor(field(4)), weekday, seed, &mut expr)?;
    join(&mut expr, dialect, days_given, weekdays_given, field(4).0)?;

    if split.count == FIELDS_MAX && &text[split.fields[6].0..split.fields[6].1] != "*" {
        add_years(&mut cursor(split.fields[6]), year, &mut expr)?;
    } else {
        expr.flags.set(Flags::ANY_YEAR, true);
    }
    if !expr.can_ever_fire() {
        return Err(CronError::never_fires(field(2).0, &why_never(&expr)));
    }
    Ok(expr)
}

fn add_years(cursor: &mut Cursor<'_>, field: &Field, expr: &mut CronExpr) -> Result<(), CronError> {
    let listed = list(cursor, field, 0, |Item { from, to, step, .. }| {
        for year in (from..=to).step_by(step as usize) {
            expr.add_year(year as i32);
        }
    })?;
    listed.note(field, &mut expr.flags);
    Ok(())
}
