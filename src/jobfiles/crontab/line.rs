//! One line of a crontab: blank, a comment, an environment setting, or an entry. The rules of vixie cron and cronie.

use campanile_core::action::unusable;
use campanile_schema::limits::CRONTAB_LINE_BYTES;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Nothing, or a comment.
    Blank,
    Setting {
        name: String,
        value: String,
        /// Something about the value that its author may not expect.
        doubt: Option<&'static str>,
    },
    Entry(Entry<'a>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub when: When,
    pub user: Option<&'a str>,
    /// As written, with its `%`.
    pub command: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Five fields with one blank between them; macros are written out.
    Fields(String),
    Reboot,
}

/// Why a line makes no job, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub reason: String,
    pub advice: String,
}

impl Refusal {
    pub fn new(reason: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { reason: reason.into(), advice: advice.into() }
    }
}

const MACROS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

fn blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

/// The next word and what follows it, blanks before both removed.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(blank);
    if text.is_empty() {
        return None;
    }
    let end = text.find(blank).unwrap_or(text.len());
    Some((&text[..end], text[end..].trim_start_matches(blank)))
}

/// `with_user`: the format has a user column.
pub(super) fn parse(text: &str, with_user: bool) -> Result<Line<'_>, Refusal> {
    if text.len() > CRONTAB_LINE_BYTES {
        let reason = format!("the line is {} bytes long, {CRONTAB_LINE_BYTES} are allowed", text.len());
        return Err(Refusal::new(reason, "put the command into a script and call that"));
    }
    let text = text.trim_matches(|c: char| blank(c) || c == '\r');
    if text.is_empty() || text.starts_with('#') {
        return Ok(Line::Blank);
    }
    if let Some(setting) = setting(text)? {
        return Ok(setting);
    }
    entry(text, with_user).map(Line::Entry)
}

/// `name = value`, with quotes around either. `None`: it is no setting.
fn setting(text: &str) -> Result<Option<Line<'_>>, Refusal> {
    let (name, rest) = match text.chars().next() {
        Some(quote @ ('"' | '\'')) => match text[1..].split_once(quote) {
            Some(parts) => parts,
            None => return Ok(None),
        },
        _ => text.split_at(text.find(|c| blank(c) || c == '=').unwrap_or(text.len())),
    };
    let Some(value) = rest.trim_start_matches(blank).strip_prefix('=') else {
        return Ok(None);
    };
    let value = value.trim_matches(blank);
    if let Some(what) = unusable(name, value) {
        let reason = format!("the environment variable {what}");
        return Err(Refusal::new(reason, "write NAME=value; or begin a comment with #"));
    }
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    let inner = quote.and_then(|q| value[1..].strip_suffix(q));
    let doubt = if inner.is_none() && quote.is_some() {
        Some("begins with a quote that the end of the line does not close: the quotes are part of the value")
    } else if inner.is_none() && value.contains(" #") {
        Some("holds a '#': cron knows no comments here, they are part of the value")
    } else if value.contains('$') || value.starts_with('~') {
        Some("holds a '$' or '~': cron does not expand them, they are taken literally")
    } else {
        None
    };
    let value = inner.unwrap_or(value).to_owned();
    Ok(Some(Line::Setting { name: name.to_owned(), value, doubt }))
}

fn entry(text: &str, with_user: bool) -> Result<Entry<'_>, Refusal> {
    // cronie: a leading minus keeps the start out of the system log.
    let text = text.strip_prefix('-').unwrap_or(text);
    let (when, rest) = if text.starts_with('@') { named(text)? } else { fields(text)? };
    let (user, command) = if with_user { with_column(rest)? } else { (None, rest) };
    if command.is_empty() {
        return Err(Refusal::new("no command follows the time", "write the command at the end of the line"));
    }
    Ok(Entry { when, user, command })
}

fn named(text: &str) -> Result<(When, &str), Refusal> {
    let (name, rest) = word(text).unwrap_or((text, ""));
    if name == "@reboot" {
        return Ok((When::Reboot, rest));
    }
    if let Some((_, fields)) = MACROS.iter().find(|(known, _)| *known == name) {
        return Ok((When::Fields((*fields).to_owned()), rest));
    }
    let lower = name.to_ascii_lowercase();
    let advice = match lower.as_str() {
        "@every_minute" => "write * * * * *".to_owned(),
        _ if lower == "@reboot" || MACROS.iter().any(|(known, _)| *known == lower) => {
            format!("write {lower}")
        }
        _ => "use five time fields, or @reboot @yearly @monthly @weekly @daily @hourly".to_owned(),
    };
    Err(Refusal::new(format!("cron does not know {name}"), advice))
}

fn fields(text: &str) -> Result<(When, &str), Refusal> {
    let mut rest = text;
    let mut fields = Vec::with_capacity(5);
    for _ in 0..5 {
        let Some((field, after)) = word(rest) else {
            let reason = format!("the line has {} of the five time fields and no command", fields.len());
            return Err(Refusal::new(
                reason,
                "write: minute hour day-of-month month day-of-week command; or NAME=value; or begin a comment with #",
            ));
        };
        fields.push(field);
        rest = after;
    }
    Ok((When::Fields(fields.join(" ")), rest))
}

fn with_column(rest: &str) -> Result<(Option<&str>, &str), Refusal> {
    let Some((user, command)) = word(rest) else {
        return Err(Refusal::new("neither a user nor a command follows the time", "write the user, then the command"));
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-$:".contains(c);
    if !user.chars().all(plain) || user.starts_with('-') {
        return Err(Refusal::new(
            format!("'{user}' stands where a system crontab has the user, and is no name of one"),
            "write the user before the command; or read the file as a user crontab (format USER)",
        ));
    }
    Ok((Some(user), command))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn user_entry(text: &str) -> (String, String) {
        match parse(text, false).unwrap() {
            Line::Entry(Entry { when: When::Fields(fields), command, .. }) => (fields, command.to_owned()),
            other => panic!("{text:?} is {other:?}"),
        }
    }
    fn value(text: &str) -> (String, String) {
        match parse(text, false).unwrap() {
            Line::Setting { name, value, .. } => (name, value),
            other => panic!("{text:?} is {other:?}"),
        }
    }
    fn refusal(text: &str, with_user: bool) -> Refusal {
        parse(text, with_user).unwrap_err()
    }

    #[test]
    fn blank_lines_and_comments() {
        for text in ["", "   \t", "# x", "  # 1 2 3 4 5 x", "\r"] {
            assert_eq!(parse(text, true).unwrap(), Line::Blank, "{text:?}");
        }
    }

    #[test]
    fn entries() {
        for (text, fields, command) in [
            ("0 5 * * * echo hi", "0 5 * * *", "echo hi"),
            ("\t 0\t5  *\t* *\t\techo  hi  \r", "0 5 * * *", "echo  hi"),
            ("-*/5 * * * * quiet", "*/5 * * * *", "quiet"),
            ("09,39 * * jan-mar mon a # b", "09,39 * * jan-mar mon", "a # b"),
            ("@daily A=b c", "0 0 * * *", "A=b c"),
            ("@midnight x", "0 0 * * *", "x"),
            ("@hourly\tx", "0 * * * *", "x"),
            ("@weekly x", "0 0 * * 0", "x"),
            ("@monthly x", "0 0 1 * *", "x"),
            ("@yearly x", "0 0 1 1 *", "x"),
            ("@annually x", "0 0 1 1 *", "x"),
            ("0 0 * * * date +\\%F % in", "0 0 * * *", "date +\\%F % in"),
        ] {
            assert_eq!(user_entry(text), (fields.to_owned(), command.to_owned()), "{text:?}");
        }
        let reboot = parse("@reboot /bin/x", false).unwrap();
        assert_eq!(reboot, Line::Entry(Entry { when: When::Reboot, user: None, command: "/bin/x" }));
    }

    #[test]
    fn the_user_column() {
        let line = parse("17 *\t* * *\troot\tcd / && x", true).unwrap();
        let Line::Entry(entry) = line else { panic!("{line:?}") };
        assert_eq!((entry.user, entry.command), (Some("root"), "cd / && x"));
        assert!(refusal("17 * * * * /bin/x", true).reason.contains("is no name of one"));
        assert!(refusal("17 * * * * root", true).reason.contains("no command"));
        assert!(refusal("17 * * * *", true).reason.contains("neither"));
    }

    #[test]
    fn settings() {
        for (text, name, expected) in [
            ("SHELL=/bin/bash", "SHELL", "/bin/bash"),
            ("  PATH = /a:/b  ", "PATH", "/a:/b"),
            ("MAILTO=\"\"", "MAILTO", ""),
            ("MAILTO=", "MAILTO", ""),
            ("GREETING=\"  padded  \"", "GREETING", "  padded  "),
            ("GREETING='it is'", "GREETING", "it is"),
            ("\"QUOTED\" = x", "QUOTED", "x"),
            ("A=b=c", "A", "b=c"),
            ("A=\"it's\"", "A", "it's"),
            ("A=\"open", "A", "\"open"),
            ("A=x # no comment", "A", "x # no comment"),
            // As cron, and as `--env` of `job create`.
            ("APP-ENV=prod", "APP-ENV", "prod"),
            ("2X = y", "2X", "y"),
            ("\"a b\"=c", "a b", "c"),
        ] {
            assert_eq!(value(text), (name.to_owned(), expected.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn doubtful_values_are_told() {
        for (text, word) in
            [("A=\"x\" # y", "quote"), ("A=x # y", "comments"), ("PATH=$PATH:/x", "expand"), ("A=~/x", "expand")]
        {
            let Line::Setting { doubt, .. } = parse(text, false).unwrap() else { panic!("{text}") };
            assert!(doubt.unwrap().contains(word), "{text}");
        }
    }

    #[test]
    fn refusals_say_what_to_do() {
        assert!(refusal("hello", false).reason.contains("1 of the five"));
        assert!(refusal("0 5 * * *", false).reason.contains("no command"));
        assert!(refusal("=y", false).reason.contains("empty name"));
        assert!(refusal("@Daily x", false).advice.contains("@daily"));
        assert!(refusal("@every_minute x", false).advice.contains("* * * * *"));
        assert!(refusal("@fortnightly x", false).advice.contains("five time fields"));
        assert!(refusal("@reboot", false).reason.contains("no command"));
        assert!(refusal(&"x".repeat(20_000), false).reason.contains("bytes long"));
    }
}
