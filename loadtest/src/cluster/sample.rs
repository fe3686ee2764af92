//! The resources that all processes have used so far: nodes, the store's server, executors, this process, and the
//! machine.

use super::metrics::Counters;
use crate::{
    process::{
        node::ExecutorProcess,
        proc_stat::{Usage, machine_cpu_us},
    },
    test_cluster::{TestCluster, store::Store},
};
use std::{error::Error, time::Instant};

/// See the module's text.
pub struct Sample {
    at: Instant,
    /// Of the nodes that live.
    nodes: Vec<Usage>,
    store: Vec<Usage>,
    executors: Vec<Usage>,
    harness: Usage,
    machine_cpu_us: u64,
    pub counters: Counters,
}

/// What was used between two of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    pub seconds: f64,
    /// CPU, microseconds.
    pub nodes_us: u64,
    pub store_us: u64,
    pub executors_us: u64,
    pub harness_us: u64,
    /// Of all others on the machine; the kernel's own threads are among them.
    pub others_us: u64,
    /// At the end, MB.
    pub node_rss_mb: u64,
    pub store_rss_mb: u64,
    pub store_written_bytes: u64,
}

fn usages(pids: impl Iterator<Item = u32>) -> std::io::Result<Vec<Usage>> {
    pids.map(Usage::of).collect()
}

fn cpu(of: &[Usage]) -> u64 {
    of.iter().map(|usage| usage.cpu_us).sum()
}

impl Sample {
    /// Blocks.
    pub fn take(cluster: &TestCluster, store: &Store, executors: &[ExecutorProcess]) -> Result<Self, Box<dyn Error>> {
        let mut counters = Counters::default();
        for n in (0..cluster.len()).filter(|n| cluster.is_up(*n)) {
            counters.add(&Counters::read(&cluster.http_of(n), &cluster.token)?);
        }
        Ok(Self {
            at: Instant::now(),
            nodes: usages((0..cluster.len()).filter_map(|n| cluster.pid(n)))?,
            store: usages(store.pids.iter().copied())?,
            executors: usages(executors.iter().map(ExecutorProcess::pid))?,
            harness: Usage::of(std::process::id())?,
            machine_cpu_us: machine_cpu_us()?,
            counters,
        })
    }

    /// From then until this one; between them no process came or went.
    pub fn since(&self, then: &Self) -> Used {
        let rise = |now: &[Usage], before: &[Usage]| cpu(now).saturating_sub(cpu(before));
        let (nodes_us, store_us) = (rise(&self.nodes, &then.nodes), rise(&self.store, &then.store));
        let executors_us = rise(&self.executors, &then.executors);
        let harness_us = self.harness.cpu_us.saturating_sub(then.harness.cpu_us);
        let all_us = self.machine_cpu_us.saturating_sub(then.machine_cpu_us);
        let rss = |of: &[Usage]| of.iter().map(|usage| usage.rss_kb).sum::<u64>() / 1024;
        let written = |of: &[Usage]| of.iter().map(|usage| usage.write_bytes).sum::<u64>();
        Used {
            seconds: self.at.duration_since(then.at).as_secs_f64(),
            nodes_us,
            store_us,
            executors_us,
            harness_us,
            others_us: all_us.saturating_sub(nodes_us + store_us + executors_us + harness_us),
            node_rss_mb: rss(&self.nodes),
            store_rss_mb: rss(&self.store),
            store_written_bytes: written(&self.store).saturating_sub(written(&then.store)),
        }
    }
}
