//! What a cluster looks like from outside while things go wrong: who answers, second by second, and how late bodies begin.

use crate::lines::{ExecutorEvent, ExecutorLine};
use campanile_client::Client;
use std::{
    fs, io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};

/// Between two looks, and how long each may take.
const EVERY: Duration = Duration::from_secs(1);

/// How many nodes said that they are ready, second by second.
#[derive(Clone, Debug, Default)]
pub struct Availability(Vec<usize>);

impl Availability {
    pub fn seconds(&self) -> usize {
        self.0.len()
    }

    /// Seconds in which at least one node was ready.
    pub fn some(&self) -> usize {
        self.0.iter().filter(|ready| **ready > 0).count()
    }

    /// A number for each second, in lines of a minute.
    pub fn by_second(&self) -> String {
        let minutes = self.0.chunks(60).map(|minute| minute.iter().map(usize::to_string).collect::<String>() + "\n");
        minutes.collect()
    }
}

/// A probe under way.
pub struct Probing {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Availability>,
}

pub fn start(nodes: Vec<Client>) -> Probing {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let task = tokio::spawn(async move {
        let mut seen = Availability::default();
        let mut next = Instant::now();
        while !stopped.load(Ordering::Relaxed) {
            next += EVERY;
            let looks: Vec<_> = nodes
                .iter()
                .cloned()
                .map(|node| tokio::spawn(async move { timeout(EVERY, node.system_info()).await }))
                .collect();
            let mut ready = 0;
            for look in looks {
                ready += usize::from(matches!(look.await, Ok(Ok(Ok(info))) if info.ready));
            }
            seen.0.push(ready);
            sleep_until(next).await;
        }
        seen
    });
    Probing { stop, task }
}

impl Probing {
    pub async fn end(self) -> Availability {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap_or_default()
    }
}

/// From each instant that was due in `(from, to]` to the beginning of its first body, milliseconds, sorted.
pub fn lateness(dir: &Path, from_ms: i64, to_ms: i64) -> io::Result<Vec<i64>> {
    let mut first: std::collections::BTreeMap<u64, i64> = std::collections::BTreeMap::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with("executor-") || !name.ends_with(".jsonl") {
            continue;
        }
        for line in fs::read_to_string(&path)?.lines() {
            // The last line of a killed executor may be torn.
            let Ok(line) = serde_json::from_str::<ExecutorLine>(line) else { continue };
            let Some(logical) = line.logical.filter(|at| *at > from_ms && *at <= to_ms) else { continue };
            if line.event == ExecutorEvent::Start && line.attempt == 1 {
                let late = line.t_us / 1000 - logical;
                first.entry(line.run).and_modify(|known| *known = late.min(*known)).or_insert(late);
            }
        }
    }
    let mut all: Vec<i64> = first.into_values().collect();
    all.sort_unstable();
    Ok(all)
}
