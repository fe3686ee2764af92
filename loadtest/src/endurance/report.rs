//! What a run found, for people and for programs.

use super::memory::{LEAST_S, LifeReport, MOST_MIB_PER_MIN};
use crate::{checker::Verdict, report::machine::Machine};
use serde::Serialize;
use std::{fmt::Write, fs, io, path::Path};

/// One thing that was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PerformedAct {
    /// Seconds from the start of the load.
    pub at_s: u64,
    pub what: String,
    /// What came of it; what went wrong, when it did not come out as it must.
    pub told: String,
    pub held: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub machine: Machine,
    pub seconds: u64,
    pub rate: f64,
    pub jobs: u64,
    pub executors: usize,
    pub warm_up_s: u64,
    pub most_mib_per_min: f64,
    pub acts: Vec<PerformedAct>,
    pub memory: Vec<LifeReport>,
    /// Bytes of the node's directory at the end.
    pub stored_bytes: u64,
    /// `campanile store check` of the directory after the end.
    pub store_is_whole: bool,
    pub verdict: Verdict,
    /// What did not hold, a sentence each. Nothing: green.
    pub broken: Vec<String>,
}

impl Report {
    /// What did not hold of the facts that are there.
    pub fn judge(&mut self) {
        let mut broken = Vec::new();
        if !self.verdict.green {
            broken.push("the history checker found broken promises".to_owned());
        }
        broken.extend(self.acts.iter().filter(|done| !done.held).map(|done| format!("{}: {}", done.what, done.told)));
        for (n, life) in (1..).zip(&self.memory) {
            if life.held == Some(false) {
                let slope = life.slope_mib_per_min.unwrap_or_default();
                broken.push(format!("memory grew by {slope:.2} MiB a minute in life {n} of the node"));
            }
        }
        if !self.store_is_whole {
            broken.push("the store is not whole".to_owned());
        }
        self.broken = broken;
    }

    pub fn is_green(&self) -> bool {
        self.broken.is_empty()
    }

    pub fn write(&self, dir: &Path) -> io::Result<()> {
        fs::write(dir.join("report.json"), serde_json::to_vec_pretty(self)?)?;
        fs::write(dir.join("report.md"), self.text())
    }

    /// Markdown, which is also what the terminal shows.
    pub fn text(&self) -> String {
        let mut out = String::from("# Endurance\n\n");
        let m = &self.machine;
        // Writing into a String cannot fail.
        let _ = writeln!(
            out,
            "{}; {} CPUs ({}), {} MB, {}; commit {}; Campanile {}. {} s of {:.0} triggers a second, {} jobs of all kinds, {} executors.\n",
            m.date,
            m.cpus,
            m.cpu,
            m.memory_mb,
            m.kernel,
            m.commit,
            m.server_version,
            self.seconds,
            self.rate,
            self.jobs,
            self.executors
        );
        let _ = writeln!(out, "| second | what was done | what came of it |\n|---|---|---|");
        for done in &self.acts {
            let _ = writeln!(
                out,
                "| {} | {} | {}{} |",
                done.at_s,
                done.what,
                if done.held { "" } else { "**FAILED** " },
                done.told
            );
        }
        let _ = writeln!(
            out,
            "\nResident memory of the node, for each life of its process. The slope is by least squares over what comes after the first {} s and \
             must be below {MOST_MIB_PER_MIN:.1} MiB a minute; over less than {LEAST_S:.0} s it is not judged.\n\n\
             | life | seconds | MiB after the first part | at the end | at most | slope, MiB a minute | of s | held |\n|---|---|---|---|---|---|---|---|",
            self.warm_up_s
        );
        for (n, life) in (1..).zip(&self.memory) {
            let number = |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |v| format!("{v:.digits$}"));
            let held = match life.held {
                Some(true) => "yes",
                Some(false) => "**no**",
                None => "not judged",
            };
            let _ = writeln!(
                out,
                "| {n} | {:.0} | {} | {:.0} | {:.0} | {} | {:.0} | {held} |",
                life.seconds,
                number(life.after_warm_up_mib, 0),
                life.last_mib,
                life.most_mib,
                number(life.slope_mib_per_min, 2),
                life.slope_of_s,
            );
        }
        let _ = writeln!(
            out,
            "\nThe node's directory holds {} MB and is {}.\n\n```text\n{}\n```\n",
            self.stored_bytes / 1_000_000,
            if self.store_is_whole { "whole" } else { "NOT whole" },
            self.verdict
        );
        for broken in &self.broken {
            let _ = writeln!(out, "- broken: {broken}");
        }
        let _ = writeln!(out, "{}", if self.is_green() { "GREEN endurance" } else { "RED endurance" });
        out
    }
}
