//! The report of a proof: `report.json` for programs, `report.md` for people, and the table of scenarios of docs/reliability.md.

use super::{Broken, PARTS, is_commit, is_green, rows_of, shown};
use crate::{
    chaos::results::{Figures, Row, Word},
    report::machine::Machine,
};
use serde::Serialize;
use std::{fmt::Write, fs, io, path::Path};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    verdict: &'a str,
    machine: &'a Machine,
    parts: Vec<PartReport>,
    scenarios: &'a [Row],
    defects: &'a [Row],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PartReport {
    part: &'static str,
    what: &'static str,
    /// GREEN, RED, or NOT RUN.
    verdict: &'static str,
    #[serde(flatten)]
    shown: Option<super::PartResult>,
}

/// Writes both files; the text for people.
pub fn write(dir: &Path, machine: &Machine) -> io::Result<String> {
    let known = shown(dir, &machine.commit)?;
    let scenarios = rows_of(dir, Broken::No, &machine.commit)?;
    let defects = rows_of(dir, Broken::Yes, &machine.commit)?;
    let mut parts = Vec::new();
    for part in &PARTS {
        let shown = known.get(part.name).cloned();
        let verdict = match (&shown, is_green(part, dir, &machine.commit)?) {
            (None, _) => "NOT RUN",
            (Some(_), true) => "GREEN",
            (Some(_), false) => "RED",
        };
        parts.push(PartReport { part: part.name, what: part.what, verdict, shown });
    }
    let whole = |word: &str| parts.iter().all(|part| part.verdict == word);
    let verdict = if parts.iter().any(|part| part.verdict == "RED") {
        "RED"
    } else if !whole("GREEN") {
        "NOT WHOLE"
    } else if is_commit(&machine.commit) {
        "GREEN"
    } else {
        "GREEN, OF A TREE WITH CHANGES"
    };
    let text = text(verdict, machine, &parts, &scenarios, &defects);
    let report = Report { verdict, machine, parts, scenarios: &scenarios, defects: &defects };
    fs::write(dir.join("report.json"), serde_json::to_vec_pretty(&report)?)?;
    fs::write(dir.join("report.md"), &text)?;
    Ok(text)
}

fn text(verdict: &str, machine: &Machine, parts: &[PartReport], scenarios: &[Row], defects: &[Row]) -> String {
    let mut text = format!(
        "# Proof of {}: {verdict}\n\n{}, {} x {}, {} MiB, {}.\n\n| part | what it shows | verdict | seconds | date |\n|---|---|---|---|---|\n",
        machine.commit, machine.date, machine.cpus, machine.cpu, machine.memory_mb, machine.kernel
    );
    for part in parts {
        let (seconds, date) =
            part.shown.as_ref().map_or((String::new(), ""), |s| (s.seconds.to_string(), s.date.as_str()));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| `make {}` | {} | {} | {seconds} | {date} |", part.part, part.what, part.verdict);
    }
    for part in parts {
        let Some(shown) = part.shown.as_ref().filter(|shown| !shown.closing.is_empty()) else { continue };
        let settings: Vec<String> = shown.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let _ = write!(text, "\n## {}\n\n`{} {}`\n\n```\n", part.part, shown.command, settings.join(" "));
        for line in &shown.closing {
            let _ = writeln!(text, "{line}");
        }
        text.push_str("```\n");
    }
    if !scenarios.is_empty() || !defects.is_empty() {
        text.push_str("\n## Scenarios of chaos\n\n");
        text.push_str(&chaos_table(scenarios, defects));
    }
    text
}

/// Milliseconds as people read them.
fn time(ms: i64) -> String {
    if ms < 1_000 { format!("{ms} ms") } else { format!("{:.1} s", ms as f64 / 1_000.0) }
}

/// A row for each scenario: what it showed, and the defect that it found.
pub fn chaos_table(scenarios: &[Row], defects: &[Row]) -> String {
    let mut text = "| scenario | verdict | p50 | p99 | worst | worst of all | hand-overs | ready | calls answered by each node | seen red with |\n\
                    |---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for row in scenarios {
        let word = match row.word {
            Word::Green => "green",
            Word::Red => "RED",
            Word::Skipped => "SKIPPED",
        };
        let figures = row.figures.as_ref().map_or_else(|| " | | | | | | ".to_owned(), cells);
        let defect = defects.iter().find(|defect| defect.scenario == row.scenario).map_or(String::new(), found);
        let _ = writeln!(text, "| {}: {} | {word} | {figures} | {defect} |", row.scenario, row.what);
    }
    text
}

fn cells(f: &Figures) -> String {
    let answered: Vec<String> = f.calls_answered.iter().map(u64::to_string).collect();
    format!(
        "{} | {} | {} | {} | {} | {} of {} s | {}",
        time(f.p50_ms),
        time(f.p99_ms),
        time(f.worst_ms),
        time(f.worst_of_all_ms),
        f.hand_overs,
        f.ready_s,
        f.seconds,
        answered.join(", ")
    )
}

fn found(row: &Row) -> String {
    let names: Vec<String> = row
        .defect
        .as_deref()
        .unwrap_or_default()
        .split(';')
        .map(|part| format!("`{}`", part.trim_start_matches("mutation:")))
        .collect();
    let what = match row.word {
        Word::Green if row.found.is_empty() => row.why.clone(),
        Word::Green => row.found.join(", "),
        Word::Red => format!("NOT FOUND ({})", row.why),
        Word::Skipped => "SKIPPED".to_owned(),
    };
    format!("{}: {what}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_for_each_scenario_and_what_its_defect_was_found_as() {
        let figures = Figures {
            p50_ms: 17,
            p99_ms: 2_640,
            worst_ms: 2_700,
            instants: 500,
            worst_of_all_ms: 2_700,
            latest_ms: 10_000,
            recovers_ms: 15_000,
            hand_overs: 31,
            ready_s: 35,
            seconds: 35,
            waiting_for_a_person: 0,
            calls_answered: vec![81, 67, 100],
        };
        let row = Row {
            commit: "abc".to_owned(),
            scenario: "kill-owner".to_owned(),
            what: "kill -9 of a node".to_owned(),
            word: Word::Green,
            why: String::new(),
            defect: None,
            found: Vec::new(),
            figures: Some(figures),
            used: Default::default(),
            load_ms: 0,
            took_s: 60,
        };
        let defect = Row {
            defect: Some("mutation:forget_tail".to_owned()),
            found: vec!["OutcomeMissing x 211".to_owned()],
            figures: None,
            ..row.clone()
        };
        let table = chaos_table(&[row], &[defect]);
        let last = table.lines().last().unwrap();
        assert_eq!(
            last,
            "| kill-owner: kill -9 of a node | green | 17 ms | 2.6 s | 2.7 s | 2.7 s | 31 | 35 of 35 s | 81, 67, 100 | \
             `forget_tail`: OutcomeMissing x 211 |"
        );
    }
}
