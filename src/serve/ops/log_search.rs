//! Searches the log of an attempt: which of its lines the filters leave.
//!
//! A log has at most 1 MiB, so it is read whole from whichever store keeps it and looked at here, line by line. Nothing is indexed.

use campanile_schema::view::{LogBody, LogLevel};
use serde_json::Value;
use std::collections::VecDeque;

/// Words of a line among which its level is looked for.
const WORDS: usize = 8;
/// Bytes of a word that can name a level.
const WORD_BYTES: usize = 12;

/// What was found.
#[derive(Debug, PartialEq)]
pub(super) struct Found {
    pub text: String,
    /// Numbers of its lines, from 1.
    pub lines: Vec<u64>,
    /// Bytes that were looked at: whole lines, and of a log that has ended all of it.
    pub read: usize,
}

/// `ended`: nothing more is written to the log, so a last line without its end is whole.
pub(super) fn search(log: &[u8], body: &LogBody, ended: bool) -> Found {
    let read = if ended { log.len() } else { log.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1) };
    let wanted = body.contains.as_deref().map(str::to_lowercase);
    let most = body.tail.map_or(usize::MAX, |tail| tail as usize);
    let mut kept: VecDeque<(u64, String)> = VecDeque::new();
    let mut level = None;
    for (number, line) in (1..).zip(log[..read].split_inclusive(|b| *b == b'\n')) {
        let line = String::from_utf8_lossy(line);
        // Also of lines that are left out: lines without a level follow them.
        if body.level.is_some() {
            level = level_of(&line).or(level);
        }
        let is_severe = body.level.is_none_or(|least| level >= Some(least));
        let has_text = wanted.as_ref().is_none_or(|wanted| line.to_lowercase().contains(wanted));
        if is_severe && has_text {
            kept.push_back((number, line.into_owned()));
            if kept.len() > most {
                kept.pop_front();
            }
        }
    }
    let lines = kept.iter().map(|(number, _)| *number).collect();
    Found { text: kept.into_iter().map(|(_, line)| line).collect(), lines, read }
}

/// The level that a line names.
fn level_of(line: &str) -> Option<LogLevel> {
    let line = line.trim();
    if line.starts_with('{')
        && let Ok(Value::Object(members)) = serde_json::from_str(line)
    {
        return ["level", "severity", "lvl", "levelname"].iter().find_map(|name| named(members.get(*name)?));
    }
    let words = line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.take(WORDS).find_map(of_word)
}

/// A level in JSON: a word, or a number as pino and bunyan write it (10 to 60).
fn named(value: &Value) -> Option<LogLevel> {
    match value {
        Value::String(word) => any_case(word),
        Value::Number(number) => match number.as_u64()? {
            10..20 => Some(LogLevel::Trace),
            20..30 => Some(LogLevel::Debug),
            30..40 => Some(LogLevel::Info),
            40..50 => Some(LogLevel::Warn),
            50..=60 => Some(LogLevel::Error),
            _ => None,
        },
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A word of a line of text: in large letters, because "error" and "info" are words of any sentence.
fn of_word(word: &str) -> Option<LogLevel> {
    let is_large = word.len() <= WORD_BYTES && word.bytes().all(|b| b.is_ascii_uppercase());
    if is_large { any_case(word) } else { None }
}

fn any_case(word: &str) -> Option<LogLevel> {
    match word.to_ascii_uppercase().as_str() {
        "TRACE" => Some(LogLevel::Trace),
        "DEBUG" => Some(LogLevel::Debug),
        "INFO" | "INFORMATION" | "NOTICE" => Some(LogLevel::Info),
        "WARN" | "WARNING" => Some(LogLevel::Warn),
        "ERROR" | "ERR" | "FATAL" | "CRITICAL" | "ALERT" | "EMERGENCY" | "PANIC" | "SEVERE" => Some(LogLevel::Error),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LOG: &str = "starting\n\
        2026-01-01 10:00:00 INFO billing: 7 customers\n\
        2026-01-01 10:00:01 WARN billing: customer 3 is slow\n\
        2026-01-01 10:00:02 [ERROR] billing: Customer 5 refused\n\
        \tat Billing.charge(Billing.java:17)\n\
        {\"level\":\"info\",\"msg\":\"done\"}\n\
        {\"level\":50,\"msg\":\"customer 6\"}\n\
        half a li";

    fn found(body: &LogBody, ended: bool) -> (Vec<u64>, String) {
        let found = search(LOG.as_bytes(), body, ended);
        (found.lines, found.text)
    }

    fn level(level: LogLevel) -> LogBody {
        LogBody { level: Some(level), ..LogBody::default() }
    }

    #[test]
    fn text_is_found_in_large_and_small_letters() {
        let body = LogBody { contains: Some("CUSTOMER ".to_owned()), ..LogBody::default() };
        assert_eq!(found(&body, true).0, [3, 4, 7]);
    }

    #[test]
    fn a_level_finds_it_and_worse_and_the_lines_below() {
        assert_eq!(found(&level(LogLevel::Warn), true).0, [3, 4, 5, 7, 8]);
        assert_eq!(found(&level(LogLevel::Error), true).0, [4, 5, 7, 8]);
        assert_eq!(found(&level(LogLevel::Trace), true).0, [2, 3, 4, 5, 6, 7, 8], "the first line has no level");
    }

    #[test]
    fn the_last_lines_are_counted_behind_the_other_filters() {
        let last = LogBody { tail: Some(2), ..LogBody::default() };
        assert_eq!(found(&last, true), (vec![7, 8], "{\"level\":50,\"msg\":\"customer 6\"}\nhalf a li".to_owned()));
        let warnings = LogBody { tail: Some(1), contains: Some("billing".to_owned()), ..level(LogLevel::Warn) };
        assert_eq!(found(&warnings, true).0, [5], "Billing in the stack trace");
        assert_eq!(found(&LogBody { tail: Some(0), ..LogBody::default() }, true).0, [0_u64; 0]);
    }

    #[test]
    fn a_line_that_is_still_written_is_left_for_later() {
        let all = LogBody { tail: Some(100), ..LogBody::default() };
        let growing = search(LOG.as_bytes(), &all, false);
        assert_eq!(growing.lines, [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(&LOG[growing.read..], "half a li");
        assert_eq!(search(LOG.as_bytes(), &all, true).read, LOG.len());
        assert_eq!(search(b"half", &all, false).read, 0);
    }

    #[test]
    fn bytes_that_are_no_text_do_not_move_the_place_to_go_on() {
        let log = b"a \xff\xfe b\nnext\npart";
        let found = search(log, &LogBody { contains: Some("NEXT".to_owned()), ..LogBody::default() }, false);
        assert_eq!((found.lines, found.read), (vec![2], log.len() - 4));
    }

    #[test]
    fn small_letters_in_a_sentence_are_no_level() {
        assert_eq!(level_of("no error here"), None);
        assert_eq!(level_of("E/W: ERROR"), Some(LogLevel::Error));
        assert_eq!(level_of("time=1 level=warn msg=x"), None, "logfmt in small letters is not looked into");
    }
}
