//! Resident memory of the node, second by second, for each life of its process.

use super::plan::warm_s;
use crate::process::proc_stat::Usage;
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::task::JoinHandle;

/// What memory may grow by, MiB a minute.
pub const MOST_MIB_PER_MIN: f64 = 1.0;
/// A slope over less than this says nothing, seconds.
pub const LEAST_S: f64 = 300.0;
const EVERY: Duration = Duration::from_secs(1);

/// One process.
struct Life {
    pid: u32,
    begin: Instant,
    /// Seconds since its start, MiB.
    samples: Vec<(f64, f64)>,
}

/// What is known of the memory of one process.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LifeReport {
    pub seconds: f64,
    /// At the end of the part that is left out, at the end, and at most.
    pub after_warm_up_mib: Option<f64>,
    pub last_mib: f64,
    pub most_mib: f64,
    /// By least squares over all seconds after the part that is left out.
    pub slope_mib_per_min: Option<f64>,
    /// The part that the slope is of, seconds.
    pub slope_of_s: f64,
    /// None: the part is too short to say anything.
    pub held: Option<bool>,
}

/// Samples the node that runs.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<Vec<Life>>>);

impl Memory {
    fn lives(&self) -> MutexGuard<'_, Vec<Life>> {
        // Whoever panicked has at worst left one sample out.
        self.0.lock()
    }

    /// A new process takes the place of the one before.
    pub fn begins(&self, pid: u32) {
        self.lives().push(Life { pid, begin: Instant::now(), samples: Vec::new() });
    }

    /// Until it is aborted.
    pub fn sample(&self) -> JoinHandle<()> {
        let memory = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(EVERY).await;
                if let Some(life) = memory.lives().last_mut()
                    // A process that was killed has no memory any more.
                    && let Some(rss_kb) = Usage::of(life.pid).ok().map(|usage| usage.rss_kb).filter(|kb| *kb > 0)
                {
                    life.samples.push((life.begin.elapsed().as_secs_f64(), rss_kb as f64 / 1024.0));
                }
            }
        })
    }

    /// Of a run of so many seconds.
    pub fn report(&self, seconds: u64) -> Vec<LifeReport> {
        let warm = warm_s(seconds) as f64;
        self.lives().iter().filter_map(|life| report(&life.samples, warm)).collect()
    }
}

fn report(samples: &[(f64, f64)], warm_s: f64) -> Option<LifeReport> {
    let (seconds, last_mib) = samples.last().copied()?;
    let later: Vec<(f64, f64)> = samples.iter().copied().filter(|(at, _)| *at >= warm_s).collect();
    let slope = slope_per_min(&later);
    let slope_of_s = (seconds - warm_s).max(0.0);
    Some(LifeReport {
        seconds,
        after_warm_up_mib: later.first().map(|(_, mib)| *mib),
        last_mib,
        most_mib: samples.iter().map(|(_, mib)| *mib).fold(0.0, f64::max),
        slope_mib_per_min: slope,
        slope_of_s,
        held: slope.filter(|_| slope_of_s >= LEAST_S).map(|slope| slope < MOST_MIB_PER_MIN),
    })
}

/// By least squares. None: one point has no slope.
fn slope_per_min(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() < 2 {
        return None;
    }
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let over: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let under: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    Some(over / under * 60.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Memory that grows by so much a minute behind a first part in which it grows fast.
    fn life(seconds: u32, per_min: f64) -> Vec<(f64, f64)> {
        (0..seconds).map(f64::from).map(|at| (at, if at < 600.0 { at } else { 600.0 + at * per_min / 60.0 })).collect()
    }

    #[test]
    fn a_slope_is_of_what_comes_after_the_first_part() {
        let seen = report(&life(1_800, 2.0), 600.0).unwrap();
        assert!((seen.slope_mib_per_min.unwrap() - 2.0).abs() < 1e-9, "{seen:?}");
        assert_eq!((seen.held, seen.after_warm_up_mib), (Some(false), Some(620.0)));
        assert_eq!(report(&life(1_800, 0.5), 600.0).unwrap().held, Some(true));
    }

    #[test]
    fn a_short_part_is_told_and_not_judged() {
        let seen = report(&life(700, 50.0), 600.0).unwrap();
        assert!(seen.slope_mib_per_min.unwrap() > 49.0);
        assert_eq!(seen.held, None);
        assert_eq!(report(&life(500, 50.0), 600.0).unwrap().slope_mib_per_min, None);
        assert_eq!(report(&[], 600.0), None);
    }
}
