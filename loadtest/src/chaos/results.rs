//! The results of scenarios, as lines of JSON. Each line is appended when its scenario has ended, so that an
//! interrupted run keeps its results, and a later run of the same program need not repeat them. `make proof` makes its
//! tables from them.

use super::{
    run_scenario::ScenarioResult,
    scenario::{Bound, Scenario},
};
use crate::checker::Usage;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
};

/// How a scenario ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Word {
    /// All held; of nodes with a defect: it was found.
    Green,
    Red,
    /// It could not be run here, or broke off.
    Skipped,
}

/// A scenario's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Of what was run, as the caller told it; empty where it did not.
    pub commit: String,
    pub scenario: String,
    pub what: String,
    pub word: Word,
    /// Why it is not green, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The defect that was switched on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defect: Option<String>,
    /// Kinds of violation, with how many of each.
    #[serde(default)]
    pub found: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
    /// What its callers used, in so long a time of load, milliseconds.
    #[serde(default)]
    pub used: Usage,
    #[serde(default)]
    pub load_ms: i64,
    /// How long it took, seconds.
    pub took_s: u64,
}

/// What it looked like from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// From the due instant to the start of the first body, of what was due within 8 s of the first act, milliseconds.
    pub p50_ms: i64,
    pub p99_ms: i64,
    pub worst_ms: i64,
    pub instants: usize,
    /// The worst of what was due until 8 s after the last act.
    pub worst_of_all_ms: i64,
    /// What was allowed: see `Scenario`.
    pub latest_ms: i64,
    pub recovers_ms: i64,
    pub hand_overs: usize,
    pub ready_s: usize,
    pub seconds: usize,
    pub waiting_for_a_person: u64,
    pub calls_answered: Vec<u64>,
}

impl Figures {
    pub fn of(scenario: &Scenario, shown: &ScenarioResult, quiet_machine: bool) -> Self {
        let late = |share: f64| {
            let at = (shown.lateness_ms.len() as f64 * share) as usize;
            shown.lateness_ms.get(at.min(shown.lateness_ms.len().saturating_sub(1))).copied().unwrap_or(0)
        };
        let on = |bound: Bound| bound.on(quiet_machine);
        Self {
            p50_ms: late(0.5),
            p99_ms: late(0.99),
            worst_ms: late(1.0),
            instants: shown.lateness_ms.len(),
            worst_of_all_ms: shown.latest_ms,
            latest_ms: on(scenario.latest),
            recovers_ms: on(scenario.recovers),
            hand_overs: shown.hand_overs,
            ready_s: shown.availability.some(),
            seconds: shown.availability.seconds(),
            waiting_for_a_person: shown.open,
            calls_answered: shown.calls_answered.clone(),
        }
    }
}

impl Row {
    /// For people: one line.
    pub fn line(&self) -> String {
        let word = match (self.word, &self.defect) {
            (Word::Green, None) => "green",
            (Word::Green, Some(_)) => "red, as it must be",
            (Word::Red, Some(_)) => "NOT FOUND",
            (Word::Red, None) => "RED",
            (Word::Skipped, _) => "SKIPPED",
        };
        let mut line = format!("{:<19} {word}", self.scenario);
        let mut add = |text: &str| {
            if !text.is_empty() {
                line.push_str("; ");
                line.push_str(text);
            }
        };
        add(&self.why);
        add(self.defect.as_deref().unwrap_or_default());
        add(&self.found.join(", "));
        if let Some(f) = &self.figures {
            let answered: Vec<String> = f.calls_answered.iter().map(u64::to_string).collect();
            add(&format!(
                "lateness p50 {} p99 {} worst {} ms of {} instants, {} ms of all; {} hand-overs; ready {} of {} s; {} runs wait for a \
                 person; calls answered by each node: {}",
                f.p50_ms,
                f.p99_ms,
                f.worst_ms,
                f.instants,
                f.worst_of_all_ms,
                f.hand_overs,
                f.ready_s,
                f.seconds,
                f.waiting_for_a_person,
                answered.join(" ")
            ));
        }
        line
    }
}

/// All rows of a file; none where there is no file.
pub fn read(path: &Path) -> io::Result<Vec<Row>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    // The last line of a run that was killed may be torn; its scenario is run again.
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

pub fn append(path: &Path, row: &Row) -> io::Result<()> {
    let mut line = serde_json::to_vec(row)?;
    line.push(b'\n');
    OpenOptions::new().create(true).append(true).open(path)?.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_dir::lines::Verb;

    #[test]
    fn rows_read_back_and_a_torn_one_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.jsonl");
        assert_eq!(read(&path).unwrap(), []);
        let row = Row {
            commit: "abc".to_owned(),
            scenario: "split".to_owned(),
            what: "x".to_owned(),
            word: Word::Red,
            why: "it broke off".to_owned(),
            defect: None,
            found: vec!["OutcomeMissing x 3".to_owned()],
            figures: None,
            used: Usage { calls: [(Verb::Edit, 3)].into(), ..Usage::default() },
            load_ms: 20_000,
            took_s: 7,
        };
        append(&path, &row).unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"commit\":\"a").unwrap();
        assert_eq!(read(&path).unwrap(), std::slice::from_ref(&row));
        assert_eq!(row.line(), format!("{:<19} RED; it broke off; OutcomeMissing x 3", "split"));
    }
}
