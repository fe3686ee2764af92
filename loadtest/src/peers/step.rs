//! The result of one window, of a rival or of ours: what happened, and what it cost.

use super::ladder::holds;
use crate::{
    load::latency::{HIGHEST_US, Percentiles, percentiles},
    process::proc_stat::{Usage, machine_cpu_us, tree_cpu_us},
    run_dir::lines::now_us,
};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::{collections::BTreeMap, io};

/// CPU of processes at one moment.
pub struct Probe {
    at_us: i64,
    machine_us: u64,
    parts_us: Vec<(&'static str, u64)>,
}

impl Probe {
    /// Of these processes with all that descend from them, and of this one alone, which waits.
    pub fn take(trees: &[(&'static str, u32)]) -> io::Result<Self> {
        let mut parts_us = vec![("harness", Usage::of(std::process::id())?.cpu_us)];
        for (name, pid) in trees {
            parts_us.push((name, tree_cpu_us(*pid)?));
        }
        Ok(Self { at_us: now_us(), machine_us: machine_cpu_us()?, parts_us })
    }
}

/// CPU between two moments, microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cpu {
    pub parts_us: BTreeMap<String, u64>,
    /// Of all others on the machine meanwhile, cores; the kernel's own threads are among them. None: not known.
    pub others_cores: Option<f64>,
}

impl Cpu {
    pub fn between(before: &Probe, after: &Probe) -> Self {
        let was = |name: &str| before.parts_us.iter().find(|(known, _)| *known == name).map_or(0, |(_, us)| *us);
        let parts_us: BTreeMap<String, u64> =
            after.parts_us.iter().map(|(name, us)| ((*name).to_owned(), us.saturating_sub(was(name)))).collect();
        let ours: u64 = parts_us.values().sum();
        let others = after.machine_us.saturating_sub(before.machine_us).saturating_sub(ours);
        let elapsed_us = (after.at_us - before.at_us).max(1);
        Self { parts_us, others_cores: Some(others as f64 / elapsed_us as f64) }
    }
}

/// One rung: what was asked, what was seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Instants per second.
    pub rate: u64,
    /// Instants in the window.
    pub due: u64,
    /// Of those, started no later than a second after the window.
    pub started: u64,
    pub lateness: Percentiles,
    pub cpu_us_per_job: f64,
    pub cpu_parts_us_per_job: BTreeMap<String, f64>,
    pub others_cores: Option<f64>,
    pub holds: bool,
}

impl Step {
    /// `ran`: bodies that began while the CPU was measured. They may have been due before, or be fewer than were due.
    pub fn of(rate: u64, due: u64, ran: u64, late_us: &[i64], cpu: Cpu) -> io::Result<Self> {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, HIGHEST_US, 3).map_err(io::Error::other)?;
        late_us.iter().for_each(|us| histogram.saturating_record(u64::try_from(*us).unwrap_or(0).max(1)));
        Ok(Self::new(rate, due, ran, percentiles(&histogram), cpu))
    }

    pub fn new(rate: u64, due: u64, ran: u64, lateness: Percentiles, cpu: Cpu) -> Self {
        let started = lateness.count;
        let per_job = |us: u64| us as f64 / ran.max(1) as f64;
        let share = started as f64 / due.max(1) as f64;
        Self {
            rate,
            due,
            started,
            holds: holds(share, lateness.p99_ms),
            lateness,
            cpu_us_per_job: per_job(cpu.parts_us.values().sum()),
            cpu_parts_us_per_job: cpu.parts_us.iter().map(|(name, us)| (name.clone(), per_job(*us))).collect(),
            others_cores: cpu.others_cores,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn cpu(parts: &[(&str, u64)]) -> Cpu {
        Cpu { parts_us: parts.iter().map(|(name, us)| ((*name).to_owned(), *us)).collect(), others_cores: None }
    }

    #[test]
    fn a_step_counts_all_processes_for_each_body_that_began() {
        let late: Vec<i64> = (0..99).map(|n| n * 1000).collect();
        let step = Step::of(10, 100, 110, &late, cpu(&[("database", 1_100), ("program", 550)])).unwrap();
        assert_eq!((step.started, step.due, step.holds), (99, 100, true));
        assert!((step.cpu_us_per_job - 15.0).abs() < 1e-9, "{step:?}");
        assert!((step.cpu_parts_us_per_job["database"] - 10.0).abs() < 1e-9);
        assert!((step.lateness.max_ms - 98.0).abs() < 0.1);
    }

    #[test]
    fn too_few_or_too_late_does_not_hold() {
        assert!(!Step::of(10, 100, 98, &[1_000; 98], cpu(&[])).unwrap().holds);
        let mut late = vec![1_000; 100];
        assert!(Step::of(10, 100, 100, &late, cpu(&[])).unwrap().holds);
        late[..2].fill(1_100_000);
        assert!(!Step::of(10, 100, 100, &late, cpu(&[])).unwrap().holds);
        // A clock of milliseconds puts a start before its instant.
        assert!(Step::of(10, 1, 1, &[-700], cpu(&[])).unwrap().lateness.max_ms < 0.01);
    }

    #[test]
    fn what_others_used_is_what_is_left() {
        let probe = |at_us, machine_us, database| Probe {
            at_us,
            machine_us,
            parts_us: vec![("database", database), ("harness", 5)],
        };
        let cpu = Cpu::between(&probe(0, 1_000, 100), &probe(1_000_000, 1_501_000, 1_000_100));
        assert_eq!((cpu.parts_us["database"], cpu.parts_us["harness"]), (1_000_000, 0));
        assert!((cpu.others_cores.unwrap() - 0.5).abs() < 1e-9);
    }
}
