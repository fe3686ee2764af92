//! `campanile cron next --jsonl`: many schedules at once, a JSON object a line, an answer a line.

use super::{
    cron_query::{CronQuery, fires, instant, whole_seconds},
    failure::Failure,
};
use campanile_schema::{
    job::{Dialect, Gap, Overlap},
    limits::PREVIEW_INSTANTS,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead, Write};

/// A schedule. Other fields are left alone: files that hold expected answers can be fed as they are.
#[derive(Deserialize)]
struct Line {
    expr: String,
    #[serde(default)]
    dialect: Dialect,
    #[serde(default)]
    tz: Option<String>,
    #[serde(default)]
    after: Option<String>,
    #[serde(default)]
    gap: Option<Gap>,
    #[serde(default)]
    overlap: Option<Overlap>,
    #[serde(default)]
    count: Option<usize>,
    /// `gap-skip`, `overlap-both` ...: another way to write `gap` and `overlap`, which win over it. Anything else, as
    /// `false`, means nothing.
    #[serde(default)]
    policy: Value,
}

/// Fires of a line that names no count.
const COUNT: usize = 5;

/// Answers every line until the input ends.
pub(super) fn answer(input: impl BufRead, output: impl Write) -> Result<(), Failure> {
    let mut output = std::io::BufWriter::new(output);
    let broken = |error: std::io::Error| Failure::here(format!("stdin or stdout: {error}"));
    for (number, line) in input.split(b'\n').enumerate() {
        let mut line = line.map_err(broken)?;
        if number == 0 {
            campanile_security::text::unmark(&mut line);
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let answer = next(&line).unwrap_or_else(|error| json!({"error": error}));
        writeln!(output, "{answer}").map_err(broken)?;
    }
    output.flush().map_err(broken)
}

fn next(line: &[u8]) -> Result<Value, String> {
    let line: Line = serde_json::from_slice(line).map_err(|error| format!("the line cannot be read: {error}"))?;
    let (mut gap, mut overlap) = (None, None);
    if let Some((which, value)) = line.policy.as_str().and_then(|policy| policy.split_once('-')) {
        match which {
            "gap" => gap = Some(value.parse()?),
            "overlap" => overlap = Some(value.parse()?),
            _ => {}
        }
    }
    let query = CronQuery {
        expr: line.expr,
        dialect: line.dialect,
        tz: line.tz.unwrap_or_else(|| "UTC".to_owned()),
        gap: line.gap.or(gap).unwrap_or_default(),
        overlap: line.overlap.or(overlap).unwrap_or_default(),
    };
    let (schedule, _) = query.compile()?;
    let after = instant(line.after.as_deref(), &schedule.zone)?;
    let count = line.count.unwrap_or(COUNT);
    if count > PREVIEW_INSTANTS {
        return Err(format!("count: at most {PREVIEW_INSTANTS}"));
    }
    let fires = fires(&schedule, after, count)?;
    Ok(json!({"next": fires.into_iter().map(whole_seconds).collect::<Vec<_>>()}))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn answers(input: &str) -> Vec<Value> {
        let mut out = Vec::new();
        answer(input.as_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn an_answer_for_each_line() {
        let input = r#"{"expr": "0 0 8 LW 2 ?", "dialect": "quartz", "tz": "Europe/Berlin", "after": "2028-02-29T07:30:00+01:00", "next": ["x"], "policy": false, "agree": []}

{"expr":"0 0 * * *","after":"2030-01-01T00:00:00Z","count":1}
{"expr":"61 * * * *"}
{"expr":"0 0 0 1 1 ? 2020","after":"2021-01-01T00:00:00Z"}
nonsense
{"expr":"30 2 * * *","tz":"Europe/Berlin","after":"2026-03-29T00:00:00Z","count":1,"policy":"gap-skip"}
{"expr":"30 2 * * *","tz":"Europe/Berlin","after":"2026-03-29T00:00:00Z","count":1}
{"expr":"30 2 * * *","tz":"Europe/Berlin","after":"2026-03-29T00:00:00Z","count":1,"gap":"shift","policy":"gap-skip"}
"#;
        let answers = answers(input);
        assert_eq!(answers.len(), 8);
        assert_eq!(answers[0]["next"][0], "2028-02-29T07:00:00Z");
        assert_eq!(answers[0]["next"].as_array().unwrap().len(), 5);
        assert_eq!(answers[1], json!({"next": ["2030-01-02T00:00:00Z"]}));
        for wrong in [2, 3, 4] {
            assert!(answers[wrong]["error"].is_string(), "{}", answers[wrong]);
        }
        assert_eq!(answers[5], json!({"next": ["2026-03-30T00:30:00Z"]}));
        assert_eq!(answers[6], json!({"next": ["2026-03-29T01:00:00Z"]}));
        assert_eq!(answers[7], answers[6]);
    }
}
