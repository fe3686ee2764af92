//! Windows, blackouts and the calendar of a job as flags.

use serde_json::{Map, Value, json};

/// Days of the week, from Monday.
const DAYS: [&str; 7] = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];

#[derive(clap::Args, Default)]
pub(super) struct WindowFlags {
    /// Instants count only in it: 'MON-FRI 09:00-17:00', with days, times or both, and a zone at the end if it is not that of the
    /// job; may be repeated
    #[arg(long = "window", value_name = "WINDOW", value_parser = window)]
    allow: Vec<Value>,
    /// Instants do not count in it, written as --window is; may be repeated
    #[arg(long = "deny-window", value_name = "WINDOW", value_parser = window)]
    deny: Vec<Value>,
    /// Instants do not count from the first instant to the second: 2026-12-24T00:00:00Z/2026-12-27T00:00:00Z; may be repeated
    #[arg(long = "blackout", value_name = "FROM/TO", value_parser = blackout)]
    blackouts: Vec<Value>,
    /// Instants count only on the days of this calendar of the tenant
    #[arg(long, value_name = "CALENDAR")]
    only_on: Option<String>,
    /// Instants do not count on the days of this calendar of the tenant
    #[arg(long, value_name = "CALENDAR", conflicts_with = "only_on")]
    not_on: Option<String>,
}

impl WindowFlags {
    /// As fields of a definition.
    pub fn fields(self) -> Vec<(&'static str, Value)> {
        let mut windows = self.allow;
        windows.extend(self.deny.into_iter().map(|mut window| {
            window["effect"] = json!("DENY");
            window
        }));
        let all = [("windows", windows), ("blackouts", self.blackouts)];
        let lists =
            all.into_iter().filter(|(_, given)| !given.is_empty()).map(|(name, given)| (name, Value::from(given)));
        let only_on = self.only_on.map(|name| json!({"name": name, "rule": "ONLY_ON"}));
        let calendar = only_on.or_else(|| self.not_on.map(|name| json!({"name": name, "rule": "NOT_ON"})));
        lists.chain(calendar.map(|calendar| ("calendar", calendar))).collect()
    }
}

fn window(text: &str) -> Result<Value, String> {
    let mut fields = Map::new();
    for word in text.split_ascii_whitespace() {
        let (name, value) = if let Some(days) = days(word) {
            ("days", json!(days))
        } else if let Some((from, to)) =
            word.split_once('-').filter(|(from, to)| from.contains(':') && to.contains(':'))
        {
            fields.insert("from".to_owned(), json!(from));
            ("to", json!(to))
        } else {
            ("timezone", json!(word))
        };
        if fields.insert(name.to_owned(), value).is_some() {
            return Err(format!("'{word}' is one too many; write days, times and a zone once: MON-FRI 09:00-17:00"));
        }
    }
    if fields.contains_key("days") || fields.contains_key("to") {
        return Ok(Value::Object(fields));
    }
    Err("name days, times or both: MON-FRI 09:00-17:00".to_owned())
}

/// `MON`, `SAT-SUN`, `MON,WED-FRI`, also over the end of the week. None: it is something else.
fn days(word: &str) -> Option<Vec<&'static str>> {
    let day = |name: &str| DAYS.iter().position(|day| day.eq_ignore_ascii_case(name));
    let mut found = [false; 7];
    for part in word.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (day(first)?, day(last)?);
        let count = (last + 7 - first) % 7;
        (0..=count).for_each(|n| found[(first + n) % 7] = true);
    }
    Some(DAYS.iter().zip(found).filter(|(_, named)| *named).map(|(day, _)| *day).collect())
}

fn blackout(text: &str) -> Result<Value, String> {
    match text.split_once('/') {
        Some((from, to)) => Ok(json!({"from": from, "to": to})),
        None => Err("write two instants: 2026-12-24T00:00:00Z/2026-12-27T00:00:00Z".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_window_is_written_with_days_times_and_a_zone_in_any_order() {
        for (text, wanted) in [
            (
                "MON-FRI 09:00-17:00 Europe/Berlin",
                json!({"days": ["MON", "TUE", "WED", "THU", "FRI"], "from": "09:00", "to": "17:00", "timezone": "Europe/Berlin"}),
            ),
            ("sat-mon", json!({"days": ["MON", "SAT", "SUN"]})),
            ("22:00-02:00 TUE,FRI", json!({"days": ["TUE", "FRI"], "from": "22:00", "to": "02:00"})),
        ] {
            assert_eq!(window(text), Ok(wanted), "{text}");
        }
        for wrong in ["", "Europe/Berlin", "MON TUE", "09:00-10:00 11:00-12:00", "MON UTC Asia/Tokyo"] {
            assert!(window(wrong).unwrap_err().contains("MON-FRI 09:00-17:00"), "{wrong}");
        }
        assert!(blackout("2026-12-24T00:00:00Z").is_err());
    }
}
