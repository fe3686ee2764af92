//! Reads one field of the text: characters, numbers, names, and what to say about a character that does not fit.

use super::error::CronError;
use super::fields::Field;

/// Reads one field of the text.
pub(super) struct Cursor<'t> {
    pub text: &'t [u8],
    pub at: usize,
    /// End of the field.
    pub end: usize,
}

impl Cursor<'_> {
    pub fn peek(&self) -> Option<u8> {
        if self.at < self.end { Some(self.text[self.at]) } else { None }
    }

    pub fn peek_upper(&self) -> Option<u8> {
        self.peek().map(|byte| byte.to_ascii_uppercase())
    }

    /// Takes `byte` (a letter in any case) if it is next.
    pub fn take(&mut self, byte: u8) -> bool {
        let taken = self.peek_upper() == Some(byte);
        self.at += usize::from(taken);
        taken
    }

    /// A number if a digit is next. Over 6 digits stay what they are: out of every range.
    pub fn number(&mut self) -> Option<u32> {
        let start = self.at;
        let mut value = 0_u32;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            value = (value * 10 + u32::from(digit - b'0')).min(9_999_999);
            self.at += 1;
        }
        (self.at > start).then_some(value)
    }

    /// The text from `start` to here.
    pub fn since(&self, start: usize) -> String {
        String::from_utf8_lossy(&self.text[start..self.at]).into_owned()
    }

    /// After an item: true if another one follows the comma, false at the end of the field.
    pub fn another(&mut self, field: &Field) -> Result<bool, CronError> {
        match self.peek() {
            None => Ok(false),
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(_) => Err(self.unexpected(field)),
        }
    }

    #[cold]
    pub fn unexpected(&self, field: &Field) -> CronError {
        let name = field.name;
        match self.peek() {
            None => CronError::at(self.at, format!("a value is missing in the {name} field")),
            Some(b',') => CronError::at(self.at, format!("an item of the list is empty in the {name} field")),
            Some(b'?') => CronError::at(self.at, format!("'?' cannot stand here in the {name} field"))
                .suggest("'?' stands alone, in the day-of-month or the weekday field"),
            Some(byte) => {
                let found = char::from(byte);
                let error = CronError::at(self.at, format!("'{found}' cannot stand here in the {name} field"));
                match byte.to_ascii_uppercase() {
                    b'L' | b'W' | b'#' => error.suggest("L, W and # belong to the day fields"),
                    b'/' => error.suggest("a step is written */5, 10/5 or 10-30/5"),
                    b'A'..=b'Z' if field.names.is_empty() => {
                        error.suggest("names belong to the month and the weekday field")
                    }
                    _ => error,
                }
            }
        }
    }
}

/// A number or a name, in the field's own numbering.
pub(super) fn value(cursor: &mut Cursor<'_>, field: &Field) -> Result<u32, CronError> {
    let start = cursor.at;
    match cursor.number() {
        Some(value) if (field.min..=field.max).contains(&value) => Ok(value),
        Some(value) => Err(out_of_range(field, value, start, &cursor.since(start))),
        None if !field.names.is_empty() => name(cursor, field),
        None => Err(cursor.unexpected(field)),
    }
}

#[cold]
fn out_of_range(field: &Field, value: u32, start: usize, text: &str) -> CronError {
    let Field { name, min, max, .. } = field;
    let text = shorten(text);
    let error = CronError::at(start, format!("{name} {text} is out of range: {min} to {max}"));
    match (*name, value) {
        ("second" | "minute", 60) => error.suggest("the full minute or hour is 0"),
        ("hour", 24) => error.suggest("midnight is hour 0"),
        ("day-of-month", 32..) => error.suggest("the last day of every month is L"),
        ("weekday", 0) => error.suggest("QUARTZ counts from 1 = Sunday; or write SUN"),
        _ => error,
    }
}

/// A name of three letters, any case.
fn name(cursor: &mut Cursor<'_>, field: &Field) -> Result<u32, CronError> {
    let start = cursor.at;
    let rest = &cursor.text[start..cursor.end];
    let letters = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    if letters == 0 {
        return Err(cursor.unexpected(field));
    }
    let found = (letters >= 3)
        .then(|| field.names.iter().position(|name| name.as_bytes().eq_ignore_ascii_case(&rest[..3])))
        .flatten();
    // `MONL` is the last Monday; `MONDAY` is not a name.
    let suffix = letters == 4 && field.names.len() == 7 && rest[3].eq_ignore_ascii_case(&b'L');
    match found {
        Some(index) if letters == 3 || suffix => {
            cursor.at += 3;
            Ok(field.first_name + index as u32)
        }
        Some(index) => {
            let word = String::from_utf8_lossy(&rest[..letters]).into_owned();
            let message = format!("'{}' is not a name of the {} field", shorten(&word), field.name);
            Err(CronError::at(start, message).suggest(format!("write {}", field.names[index])))
        }
        None => {
            let word = String::from_utf8_lossy(&rest[..letters]).into_owned();
            let message = format!("'{}' is not a name of the {} field", shorten(&word), field.name);
            Err(CronError::at(start, message).suggest(format!(
                "names are {} to {}",
                field.names[0],
                field.names[field.names.len() - 1]
            )))
        }
    }
}

/// Callers' text in a message, cut to a readable length.
pub(super) fn shorten(text: &str) -> String {
    const SHOWN: usize = 20;
    if text.len() <= SHOWN { text.to_owned() } else { format!("{}...", &text[..SHOWN]) }
}
