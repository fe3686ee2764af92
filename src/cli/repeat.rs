//! `--watch`: the same question again and again, for lists and states that have no stream of their own.
//!
//! On a terminal the screen is drawn anew; elsewhere an answer that differs from the one before is a block with a line that says
//! when (`-o json`: a line each). A node that goes away and comes back is told of, and waited for. Ends when it is interrupted,
//! as `run watch` does.

use super::{
    failure::Failure,
    job_flags,
    output::{self, Column, Format, machine_zone, size, style, within},
};
use campanile_schema::error::ErrorCode;
use serde_json::Value;
use std::time::Duration;

/// Clears the screen; only before the first frame, because it flickers.
const CLEAR: &str = "\u{1b}[2J";
const TOP: &str = "\u{1b}[H";
/// The rest of the line, and of the screen.
const REST_OF_LINE: &str = "\u{1b}[K";
const REST: &str = "\u{1b}[J";

#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    /// Ask again and again, each 2 s or TIME: a terminal shows the newest answer, elsewhere each change is a block
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2s",
        value_parser = job_flags::seconds
    )]
    watch: Option<u64>,
}

/// A list, once or again and again.
pub(super) fn list(
    flags: Flags,
    format: Format,
    columns: &[Column],
    read: impl FnMut() -> Result<Value, Failure>,
) -> Result<(), Failure> {
    list_of(flags, format, columns, None, read)
}

/// A list whose instants are those of a job in this zone.
pub(super) fn list_of(
    flags: Flags,
    format: Format,
    columns: &[Column],
    zone: Option<&str>,
    read: impl FnMut() -> Result<Value, Failure>,
) -> Result<(), Failure> {
    drawn(flags, format, read, |value| output::list_text(format, value, columns, zone))
}

/// One thing, once or again and again.
pub(super) fn one(
    flags: Flags,
    format: Format,
    zone: Option<&str>,
    read: impl FnMut() -> Result<Value, Failure>,
) -> Result<(), Failure> {
    drawn(flags, format, read, |value| Ok((output::one_text(format, value, zone)?, String::new())))
}

/// What `draw` makes of the answer (its text, and what is said beside it), once or again and again.
pub(super) fn drawn(
    flags: Flags,
    format: Format,
    mut read: impl FnMut() -> Result<Value, Failure>,
    draw: impl Fn(&Value) -> Result<(String, String), Failure>,
) -> Result<(), Failure> {
    let Some(seconds) = flags.watch else {
        let (text, more) = draw(&read()?)?;
        output::text(&text);
        output::beside(&more);
        return Ok(());
    };
    again(seconds, format, read, draw)
}

/// Until it is interrupted, nobody reads it any more, or the node refuses the question.
fn again(
    seconds: u64,
    format: Format,
    mut read: impl FnMut() -> Result<Value, Failure>,
    draw: impl Fn(&Value) -> Result<(String, String), Failure>,
) -> Result<(), Failure> {
    let seconds = seconds.max(1);
    let mut screen = Screen { terminal: style().terminal, seconds, ..Screen::new(format) };
    loop {
        let (out, err) = match read() {
            Ok(value) => {
                let (text, more) = draw(&value)?;
                screen.answer(&value, text, &more, &clock(format), size())
            }
            // Never at first, when the question itself may be wrong.
            Err(failure) if screen.last.is_some() && failure.code == ErrorCode::NotReady.exit_code() => {
                screen.away(&failure.message, &clock(format), size())
            }
            Err(failure) => return Err(failure),
        };
        if !err.is_empty() {
            output::hint(err.trim_end());
        }
        if !out.is_empty() && output::written(&out).is_err() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(seconds));
    }
}

/// Now: by the user's clock on a terminal, else in UTC.
fn clock(format: Format) -> String {
    let now = jiff::Timestamp::now();
    if style().terminal && format == Format::Table {
        return now.to_zoned(machine_zone()).strftime("%H:%M:%S %Z").to_string();
    }
    format!("{now:.0}")
}

/// What was shown, and so what is to be shown next. Every method gives what goes to stdout and to stderr.
struct Screen {
    format: Format,
    terminal: bool,
    seconds: u64,
    last: Option<Value>,
    /// The text of `last`, and when it came.
    text: (String, String),
    away: bool,
}

impl Screen {
    fn new(format: Format) -> Self {
        Self { format, terminal: false, seconds: 2, last: None, text: Default::default(), away: false }
    }

    fn answer(&mut self, value: &Value, text: String, more: &str, at: &str, size: (usize, usize)) -> (String, String) {
        let is_first = self.last.is_none();
        let changed = self.last.as_ref() != Some(value);
        self.last = Some(value.clone());
        let back = std::mem::take(&mut self.away);
        match self.format {
            Format::Table if self.terminal => {
                let text = if more.is_empty() { text } else { format!("{text}{more}\n") };
                self.text = (text, at.to_owned());
                let clear = if is_first { CLEAR } else { "" };
                (format!("{clear}{}", self.frame(None, at, size)), String::new())
            }
            Format::Table | Format::Json | Format::Yaml => {
                let err = if back { format!("{at}  the node answers again\n") } else { String::new() };
                let out = match self.format {
                    _ if !changed => String::new(),
                    Format::Table => format!("--- {at}\n{text}"),
                    Format::Json => format!("{value}\n"),
                    Format::Yaml => format!("---\n{text}"),
                };
                (out, err)
            }
        }
    }

    fn away(&mut self, why: &str, at: &str, size: (usize, usize)) -> (String, String) {
        let was_away = std::mem::replace(&mut self.away, true);
        if self.terminal && self.format == Format::Table {
            let told = format!("no answer since {}, asking again: {why}", self.text.1);
            return (self.frame(Some(&told), at, size), String::new());
        }
        let err = if was_away { String::new() } else { format!("{at}  no answer, asking again: {why}\n") };
        (String::new(), err)
    }

    /// The whole screen.
    fn frame(&self, trouble: Option<&str>, at: &str, (columns, rows): (usize, usize)) -> String {
        let head = format!("every {} s, {at}", self.seconds);
        let mut lines: Vec<&str> = vec![&head];
        lines.extend(trouble);
        lines.push("");
        lines.extend(self.text.0.lines());
        // The last row stays free for the cursor, and one tells what has no room.
        let room = rows.saturating_sub(2).max(1);
        let hidden = lines.len().saturating_sub(room);
        let rest = format!("... {hidden} more lines");
        if hidden > 0 {
            lines.truncate(room);
            lines.push(&rest);
        }
        let lines: String = lines.iter().map(|line| format!("{}{REST_OF_LINE}\n", within(line, columns))).collect();
        format!("{TOP}{lines}{REST}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SIZE: (usize, usize) = (20, 7);

    fn screen(terminal: bool, format: Format) -> Screen {
        Screen { terminal, ..Screen::new(format) }
    }

    #[test]
    fn without_a_terminal_only_changes_are_told() {
        let mut screen = screen(false, Format::Table);
        let first = screen.answer(&json!([1]), "one\n".to_owned(), "", "T1", SIZE);
        assert_eq!(first, ("--- T1\none\n".to_owned(), String::new()));
        let same = screen.answer(&json!([1]), "one\n".to_owned(), "", "T2", SIZE);
        assert_eq!(same, (String::new(), String::new()));
        let gone = screen.away("it is down", "T3", SIZE);
        assert_eq!(gone, (String::new(), "T3  no answer, asking again: it is down\n".to_owned()));
        assert_eq!(screen.away("it is down", "T4", SIZE), (String::new(), String::new()));
        let back = screen.answer(&json!([1]), "one\n".to_owned(), "", "T5", SIZE);
        assert_eq!(back, (String::new(), "T5  the node answers again\n".to_owned()));
        let other = screen.answer(&json!([2]), "two\n".to_owned(), "", "T6", SIZE);
        assert_eq!(other, ("--- T6\ntwo\n".to_owned(), String::new()));
    }

    #[test]
    fn json_is_a_line_for_each_change_on_a_terminal_too() {
        let mut screen = screen(true, Format::Json);
        let value = json!({"items": [1]});
        let first = screen.answer(&value, "{\n}\n".to_owned(), "", "T1", SIZE);
        assert_eq!(first, ("{\"items\":[1]}\n".to_owned(), String::new()));
        assert_eq!(screen.answer(&value, String::new(), "", "T2", SIZE).0, "");
    }

    #[test]
    fn a_terminal_shows_the_newest_answer_in_its_size() {
        let mut screen = screen(true, Format::Table);
        let text = "a line that is longer than the screen\nb\n".to_owned();
        let (first, _) = screen.answer(&json!([1]), text.clone(), "more", "12:00:00 UTC", SIZE);
        let expected = "\u{1b}[2J\u{1b}[Hevery 2 s, 12:00:00 \u{1b}[K\n\u{1b}[K\na line that is longe\u{1b}[K\nb\u{1b}[K\nmore\u{1b}[K\n\u{1b}[J";
        assert_eq!(first, expected);
        // Drawn again also when nothing has changed: what is relative to now has.
        let (again, _) = screen.answer(&json!([1]), text, "", "12:00:02 UTC", SIZE);
        assert!(again.starts_with("\u{1b}[Hevery"), "{again:?}");
        assert!(!again.contains(CLEAR), "{again:?}");
        let (gone, err) = screen.away("refused", "12:00:04 UTC", (80, 7));
        assert!(gone.contains("no answer since 12:00:02 UTC, asking again: refused"), "{gone:?}");
        assert!(gone.contains("\nb\u{1b}[K"), "{gone:?}");
        assert_eq!(err, "");
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let mut screen = screen(true, Format::Table);
        let text: String = (0..10).map(|n| format!("line {n}\n")).collect();
        let (shown, _) = screen.answer(&json!([1]), text, "", "T", (40, 7));
        assert_eq!(shown.matches('\n').count(), 6);
        assert!(shown.contains("line 2"), "{shown:?}");
        assert!(!shown.contains("line 3"), "{shown:?}");
        assert!(shown.contains("... 7 more lines"), "{shown:?}");
    }
}
