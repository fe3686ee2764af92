//! Measures one rate of our own scheduler: `bench` with the same window, the same body that does nothing and the same
//! clock.

use super::{
    ladder::LadderKind,
    step::{Cpu, Step},
};
use crate::bench::{BenchArgs, measure};
use std::{error::Error, fs, path::Path};

pub const NAME: &str = "campanile";
/// First guess of what a create takes, microseconds; it is about 9.
const CREATE_US: u64 = 20;
/// Between the last create and the first instant, milliseconds.
const LEAD_MS: i64 = 4_000;
/// Executor processes, and bodies at once in each.
const EXECUTORS: u32 = 2;
const SLOTS: u32 = 4_096;

pub fn settings() -> String {
    format!(
        "embedded store with its defaults (fdatasync before each acknowledgement), {EXECUTORS} executor processes of {SLOTS} slots \
         that also write down each start and end"
    )
}

/// Measures in `dir`, which must be new, and removes it: a node's data is large.
pub async fn measure_rung(
    server_bin: &Path,
    dir: &Path,
    kind: LadderKind,
    rate: u64,
    seconds: u64,
) -> Result<Step, Box<dyn Error>> {
    let args = BenchArgs {
        server_bin: server_bin.to_owned(),
        jobs: rate,
        rate: rate as f64,
        seconds,
        executors: EXECUTORS,
        slots: SLOTS,
        dir: dir.to_owned(),
        lead_ms: LEAD_MS,
        once: kind == LadderKind::Once,
        create_us: CREATE_US,
        check: false,
        p99_ms: None,
    };
    let seen = measure(&args).await?;
    let ran = seen.lateness.start.count;
    let us = |per_trigger: f64| (per_trigger * ran as f64) as u64;
    let parts = [
        ("node", us(seen.server_cpu_us_per_trigger)),
        ("executors", us(seen.executors_cpu_us_per_trigger)),
        ("harness", us(seen.harness_cpu_us_per_trigger)),
    ];
    let parts_us = parts.into_iter().map(|(name, us)| (name.to_owned(), us)).collect();
    fs::remove_dir_all(dir)?;
    Ok(Step::new(
        rate,
        seen.instants,
        ran,
        // As of the rivals: what began later than a second after the window was not started.
        seen.lateness.start_in_time,
        Cpu { parts_us, others_cores: Some(seen.others_cores) },
    ))
}
