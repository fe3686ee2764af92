//! Unit files: sections with settings. A later setting of one name adds to a list, and an empty one clears it.

use super::super::{ImportError, Place, source};
use campanile_schema::limits::IMPORT_UNIT_BYTES;
use std::path::Path;

#[derive(Clone, Debug)]
pub struct Setting {
    pub section: String,
    pub name: String,
    pub value: String,
    pub place: Place,
}

/// A unit with its drop-ins.
#[derive(Clone, Debug, Default)]
pub struct Unit {
    pub settings: Vec<Setting>,
    /// Lines that are no settings.
    pub odd: Vec<Place>,
}

impl Unit {
    /// A file, and the `.conf` files of the directory `NAME.d` beside it.
    pub fn read(path: &Path) -> Result<Self, ImportError> {
        let mut unit = Self::default();
        unit.add(path)?;
        let drop_ins = path.with_file_name(format!("{}.d", source::file_name(path)));
        if drop_ins.is_dir() {
            match source::files(&[drop_ins], &["conf"]) {
                Ok(files) => files.iter().try_for_each(|file| unit.add(file))?,
                // It is empty.
                Err(ImportError::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(unit)
    }

    fn add(&mut self, path: &Path) -> Result<(), ImportError> {
        let file = source::shown(path);
        let text = source::text(path, IMPORT_UNIT_BYTES)?;
        let (mut section, mut joined): (String, Option<(String, u64)>) = (String::new(), None);
        for (line, number) in text.lines().zip(1..) {
            let is_comment = line.trim_start().starts_with(['#', ';']);
            // Comments within a setting of several lines are left out of it.
            if is_comment || (line.trim().is_empty() && joined.is_none()) {
                continue;
            }
            let (before, begin) = joined.take().unwrap_or((String::new(), number));
            let whole = before + line;
            if let Some(open) = whole.strip_suffix('\\').filter(|open| ends_unescaped(open)) {
                joined = Some((format!("{open} "), begin));
                continue;
            }
            self.line(whole.trim(), &mut section, Place { file: file.clone(), line: begin });
        }
        if let Some((whole, begin)) = joined {
            self.line(whole.trim(), &mut section, Place { file, line: begin });
        }
        Ok(())
    }

    fn line(&mut self, line: &str, section: &mut String, place: Place) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            name.clone_into(section);
            return;
        }
        match line.split_once('=') {
            Some((name, value)) if !section.is_empty() && !name.trim().is_empty() => self.settings.push(Setting {
                section: section.clone(),
                name: name.trim().to_owned(),
                value: value.trim().to_owned(),
                place,
            }),
            Some(_) | None => self.odd.push(place),
        }
    }

    /// All values since the last empty one.
    pub fn list(&self, section: &str, name: &str) -> Vec<&Setting> {
        self.group(section, &[name])
    }

    /// All values of several settings since the last empty one of any of them.
    pub fn group(&self, section: &str, names: &[&str]) -> Vec<&Setting> {
        let is_one = |setting: &&Setting| setting.section == section && names.contains(&setting.name.as_str());
        let all = self.settings.iter().filter(is_one);
        let mut found = Vec::new();
        for setting in all {
            if setting.value.is_empty() {
                found.clear();
            } else {
                found.push(setting);
            }
        }
        found
    }

    /// The value that counts.
    pub fn last(&self, section: &str, name: &str) -> Option<&Setting> {
        self.list(section, name).pop()
    }
}

/// Whether a backslash behind `text` is one that joins lines: two of them are one character of the value.
fn ends_unescaped(text: &str) -> bool {
    text.bytes().rev().take_while(|byte| *byte == b'\\').count().is_multiple_of(2)
}

/// `yes`, `true`, `on`, `1`.
pub fn is_true(value: &str) -> bool {
    ["1", "yes", "y", "true", "t", "on"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Milliseconds of a time such as `1h 30min`, `90` (seconds) or `1.5h`.
pub fn span_ms(text: &str) -> Option<u64> {
    const UNITS: [(&[&str], f64); 9] = [
        (&["usec", "us", "µs"], 1e-3),
        (&["msec", "ms"], 1.0),
        (&["seconds", "second", "sec", "s", ""], 1e3),
        (&["minutes", "minute", "min", "m"], 60e3),
        (&["hours", "hour", "hr", "h"], 3_600e3),
        (&["days", "day", "d"], 86_400e3),
        (&["weeks", "week", "w"], 604_800e3),
        (&["months", "month", "M"], 2_629_800e3),
        (&["years", "year", "y"], 31_557_600e3),
    ];
    let mut rest = text.trim();
    let (mut sum, mut parts) = (0.0, 0);
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len()));
        let after = after.trim_start();
        let (unit, after) = after.split_at(after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len()));
        let (_, of_unit) = UNITS.iter().find(|(names, _)| names.contains(&unit))?;
        sum += number.parse::<f64>().ok()? * of_unit;
        (rest, parts) = (after.trim_start(), parts + 1);
    }
    // Of a float that is nearly whole the whole number is meant.
    (parts > 0 && sum < 1e15).then_some((sum + 1e-6) as u64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn settings_with_comments_joined_lines_resets_and_drop_ins() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.timer");
        let text = "# comment\n[Timer]\nOnCalendar=daily\nOnCalendar=\nOnCalendar = 02:30\nodd\n[Service]\nExecStart=/bin/a \\\n\
                    # x\n  b \\\n  c\nSyslogIdentifier=d\\\\\nNice=1\n";
        std::fs::write(&path, text).unwrap();
        std::fs::create_dir(dir.path().join("a.timer.d")).unwrap();
        std::fs::write(dir.path().join("a.timer.d/x.conf"), "[Timer]\nOnCalendar=03:00\n").unwrap();
        let unit = Unit::read(&path).unwrap();
        let values: Vec<&str> = unit.list("Timer", "OnCalendar").iter().map(|setting| setting.value.as_str()).collect();
        assert_eq!(values, ["02:30", "03:00"]);
        let exec = unit.last("Service", "ExecStart").unwrap();
        assert_eq!(exec.value.split_whitespace().collect::<Vec<_>>(), ["/bin/a", "b", "c"]);
        assert_eq!((exec.place.line, unit.odd[0].line), (8, 6));
        // Two backslashes at the end of a line are one that is meant.
        assert_eq!(unit.last("Service", "Nice").unwrap().value, "1");
    }

    #[test]
    fn spans_of_time() {
        for (text, ms) in [
            ("90", Some(90_000)),
            ("5min", Some(300_000)),
            ("1h 30min", Some(5_400_000)),
            ("1.5h", Some(5_400_000)),
            ("1d2h", Some(93_600_000)),
            ("500ms", Some(500)),
            ("1w", Some(604_800_000)),
            ("", None),
            ("soon", None),
            ("5 fortnights", None),
        ] {
            assert_eq!(span_ms(text), ms, "{text}");
        }
        assert!(is_true("Yes"));
        assert!(!is_true("no"));
    }
}
