//! One crontab from top to bottom: settings hold for the lines below them, entries become jobs or are refused.

use super::{
    Import, ImportOptions, Refused, job,
    line::{self, Line, Refusal},
    reading::LineLocation,
    settings::Settings,
    sources::{Source, SourceKind},
    surprises,
};
use std::collections::BTreeSet;

/// Longest part of a refused line that is shown, characters.
const SHOWN_CHARS: usize = 200;
/// Adds what one file holds to `import`. `shown` is its name in labels and messages.
pub(super) fn read_file(
    source: &Source,
    shown: &str,
    bytes: &[u8],
    options: &ImportOptions,
    users: &BTreeSet<String>,
    go_on: &dyn Fn() -> bool,
    import: &mut Import,
) {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        import.refused.push(Refused {
            file: shown.to_owned(),
            line: 0,
            text: String::new(),
            reason: "the file is UTF-16".to_owned(),
            advice: "save it as UTF-8, for example with iconv".to_owned(),
        });
        return;
    }
    let lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
    let (with_user, owner) = match &source.kind {
        SourceKind::System => (true, None),
        SourceKind::User { owner } => (false, owner.clone()),
        SourceKind::Unknown => {
            let system = looks_like_system(&lines, options, users);
            if system {
                let why = "read with a user column, because each line names a user where such a file has it";
                import.notes.push(format!("{shown}: {why}; format USER reads it otherwise"));
            }
            (system, None)
        }
    };
    let owner = owner.unwrap_or_else(|| options.self_user.clone());
    let mut settings = Settings::default();
    let before = (import.jobs.len(), import.refused.len());
    for (index, raw) in lines.iter().enumerate() {
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        if !go_on() {
            import.refused.push(Refused {
                file: shown.to_owned(),
                line: number,
                text: String::new(),
                reason: "reading the file took too long and was given up here".to_owned(),
                advice: "split it into several".to_owned(),
            });
            break;
        }
        let place = LineLocation { file: shown, line: number, owner: &owner, known_users: users };
        let made = read_line(raw, with_user, &mut settings, &place, options);
        match made {
            Ok(Some(mut job)) => {
                if index + 1 == lines.len() {
                    job.hazards.push(surprises::NO_NEWLINE.to_owned());
                }
                import.jobs.push(job);
            }
            Ok(None) => {}
            Err(refusal) => import.refused.push(Refused {
                file: shown.to_owned(),
                line: number,
                text: String::from_utf8_lossy(raw).trim().chars().take(SHOWN_CHARS).collect(),
                reason: refusal.reason,
                advice: refusal.advice,
            }),
        }
    }
    if bytes.contains(&b'\r') {
        import.notes.push(format!("{shown}: lines end as on Windows; the carriage returns were left out"));
    }
    if before == (import.jobs.len(), import.refused.len()) {
        import.notes.push(format!("{shown}: no line starts anything"));
    }
}

fn read_line(
    raw: &[u8],
    with_user: bool,
    settings: &mut Settings,
    place: &LineLocation<'_>,
    options: &ImportOptions,
) -> Result<Option<super::ImportedJob>, Refusal> {
    let Ok(text) = std::str::from_utf8(raw) else {
        // What a comment holds means nothing.
        if raw.trim_ascii_start().starts_with(b"#") {
            return Ok(None);
        }
        return Err(Refusal::new("the line is not UTF-8", "convert the file, for example with iconv"));
    };
    if text.contains('\0') {
        return Err(Refusal::new("the line holds a NUL", "remove it"));
    }
    match line::parse(text, with_user)? {
        Line::Blank => Ok(None),
        Line::Setting { name, value, doubt } => settings.set(name, value, doubt).map(|()| None),
        Line::Entry(entry) => job::of_entry(&entry, settings, place, options).map(Some),
    }
}

/// A file that lies in no known place: every entry's sixth word is a user with a command behind it, and one of them is
/// root or ourselves (else `mail -s ...` would be the user mail).
fn looks_like_system(lines: &[&[u8]], options: &ImportOptions, users: &BTreeSet<String>) -> bool {
    let mut sure = false;
    for raw in lines {
        let Ok(Line::Entry(entry)) = line::parse(std::str::from_utf8(raw).unwrap_or(""), true) else {
            continue;
        };
        let Some(user) = entry.user else { return false };
        let usual = user == "root" || user == options.self_user;
        if !usual && !users.contains(user) {
            return false;
        }
        sure |= usual;
    }
    // A line without anything after its sixth word is a user's command.
    let alone = lines.iter().any(|raw| {
        let text = std::str::from_utf8(raw).unwrap_or("");
        line::parse(text, true).is_err() && line::parse(text, false).is_ok()
    });
    sure && !alone
}
