//! Observes a cluster from outside during faults: which nodes answer, second by second, and how late bodies begin.

use super::disturb::Owners;
use crate::run_dir::lines::{CallerLine, ExecutorEvent, ExecutorLine, now_us};
use campanile_client::Client;
use campanile_schema::{
    cluster::{ShardFilter, ShardView},
    job::ConcurrencyPolicy,
};
use std::{
    collections::{BTreeMap, BTreeSet},
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
    task: JoinHandle<(Availability, Owners)>,
}

/// A look at a node: whether it says that it is ready, and who it says owns each shard.
async fn look(node: Client) -> (bool, Option<(i64, Vec<ShardView>)>) {
    let ready = matches!(timeout(EVERY, node.system_info()).await, Ok(Ok(info)) if info.ready);
    let shards = match timeout(EVERY, node.cluster_shards(ShardFilter::default())).await {
        Ok(Ok(shards)) => Some((now_us(), shards)),
        Ok(Err(_)) | Err(_) => None,
    };
    (ready, shards)
}

pub fn start(nodes: Vec<Client>) -> Probing {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let task = tokio::spawn(async move {
        let (mut seen, mut owners) = (Availability::default(), Owners::default());
        let mut next = Instant::now();
        while !stopped.load(Ordering::Relaxed) {
            next += EVERY;
            let looks: Vec<_> = nodes.iter().cloned().map(|node| tokio::spawn(look(node))).collect();
            let mut ready = 0;
            for look in looks {
                let Ok((is_ready, shards)) = look.await else { continue };
                ready += usize::from(is_ready);
                if let Some((t_us, shards)) = shards {
                    owners.add(t_us, &shards);
                }
            }
            seen.0.push(ready);
            sleep_until(next).await;
        }
        (seen, owners)
    });
    Probing { stop, task }
}

impl Probing {
    pub async fn end(self) -> (Availability, Owners) {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap_or_default()
    }
}

/// From each instant that was due in `(from, to]` to the beginning of its first body, milliseconds, sorted. Jobs whose runs wait for each
/// other (QUEUE_ONE) are left out: how late those are is their own doing.
pub fn lateness(dir: &Path, from_ms: i64, to_ms: i64) -> io::Result<Vec<i64>> {
    let in_turn = jobs_in_turn(dir)?;
    let mut first: BTreeMap<u64, i64> = BTreeMap::new();
    for text in files(dir, "executor-")? {
        for line in text.lines() {
            // The last line of a killed executor may be torn.
            let Ok(line) = serde_json::from_str::<ExecutorLine>(line) else { continue };
            let Some(logical) = line.logical.filter(|at| *at > from_ms && *at <= to_ms) else { continue };
            if line.event == ExecutorEvent::Start && line.attempt == 1 && !in_turn.contains(&line.job) {
                let late = line.t_us / 1000 - logical;
                first.entry(line.run).and_modify(|known| *known = late.min(*known)).or_insert(late);
            }
        }
    }
    let mut all: Vec<i64> = first.into_values().collect();
    all.sort_unstable();
    Ok(all)
}

/// Jobs with a run that may wait for the one before it.
fn jobs_in_turn(dir: &Path) -> io::Result<BTreeSet<u64>> {
    let mut jobs = BTreeSet::new();
    for text in files(dir, "caller-")? {
        let mut creates = BTreeSet::new();
        for line in text.lines() {
            let Ok(line) = serde_json::from_str::<CallerLine>(line) else { continue };
            if line.spec.is_some_and(|spec| spec.concurrency_policy == ConcurrencyPolicy::QueueOne) {
                creates.insert(line.call);
            } else if let Some(job) = line.job.filter(|_| creates.contains(&line.call)) {
                jobs.insert(job.0);
            }
        }
    }
    Ok(jobs)
}

/// What stands in the files of one kind.
fn files(dir: &Path, kind: &str) -> io::Result<Vec<String>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with(kind) && name.ends_with(".jsonl") {
            texts.push(fs::read_to_string(&path)?);
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_whose_runs_wait_for_each_other_say_nothing_of_the_scheduler() {
        let dir = std::env::temp_dir().join(format!("lateness-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let create = |call: u64, job: u64, policy: &str| {
            let spec = format!(
                r#"{{"name":"j{job}","tenantId":"t","trigger":{{"type":"MANUAL"}},"concurrencyPolicy":"{policy}"}}"#
            );
            format!(
                "{{\"event\":\"SENT\",\"t_us\":1,\"call\":{call},\"verb\":\"CREATE\",\"spec\":{spec}}}\n\
                 {{\"event\":\"ACK\",\"t_us\":2,\"call\":{call},\"verb\":\"CREATE\",\"job\":{job}}}\n"
            )
        };
        fs::write(dir.join("caller-1.jsonl"), create(1, 10, "QUEUE_ONE") + &create(2, 20, "ALLOW")).unwrap();
        let start = |job: u64, run: u64, late_ms: i64| {
            let line = ExecutorLine {
                event: ExecutorEvent::Start,
                t_us: (1_000 + late_ms) * 1_000,
                job,
                run,
                attempt: 1,
                logical: Some(1_000),
                ..ExecutorLine::up()
            };
            serde_json::to_string(&line).unwrap() + "\n"
        };
        fs::write(dir.join("executor-1.jsonl"), start(10, 1, 1_700) + &start(20, 2, 30)).unwrap();
        assert_eq!(lateness(&dir, 0, 2_000).unwrap(), [30]);
        fs::remove_dir_all(&dir).unwrap();
    }
}
