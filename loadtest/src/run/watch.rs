//! Observes the node from outside: its process in `/proc`, its `/metrics`, its files, and whether it answers.

use super::system::Address;
use crate::{limits::PROBE_MS, process::proc_stat::Usage, run_dir::lines::now_us};
use campanile_client::{Client, ClientError};
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::{MissedTickBehavior, timeout},
};

/// Figures of the node's `/metrics`; None where they are not to be had.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Metrics {
    pub open_runs: Option<f64>,
    pub waiting: Option<f64>,
    pub retrying: Option<f64>,
    pub lag_events: Option<f64>,
    pub lag_s: Option<f64>,
    /// So far.
    pub batches: Option<f64>,
}

impl Metrics {
    /// Of Prometheus' text form.
    fn of(text: &str) -> Self {
        let sum = |name: &str| {
            let values = text.lines().filter_map(|line| {
                let rest = line.strip_prefix(name)?;
                // Another metric may begin with the same name.
                rest.starts_with([' ', '{']).then(|| rest.rsplit(' ').next()?.parse::<f64>().ok()).flatten()
            });
            values.reduce(|a, b| a + b)
        };
        Self {
            open_runs: sum("campanile_open_runs"),
            waiting: sum("dispatch_queue_lag"),
            retrying: sum("retry_queue_depth"),
            lag_events: sum("campanile_projection_lag_events"),
            lag_s: sum("campanile_projection_lag_seconds"),
            batches: sum("campanile_journal_batches_total"),
        }
    }
}

/// Reads `/metrics`; nothing when it is not to be had in time.
pub(super) async fn metrics(address: &Address) -> Metrics {
    let Some(base) = address.http.clone() else { return Metrics::default() };
    let token = address.token.clone();
    let read = spawn_blocking(move || get(&format!("{base}/metrics"), &token).map(|text| Metrics::of(&text)));
    read.await.ok().flatten().unwrap_or_default()
}

/// Body of a good answer within [`PROBE_MS`]. Blocks.
fn get(url: &str, token: &str) -> Option<String> {
    let limit = Some(Duration::from_millis(PROBE_MS));
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(limit).build().into();
    let mut answer = agent.get(url).header("Authorization", format!("Bearer {token}")).call().ok()?;
    answer.body_mut().read_to_string().ok()
}

/// Use of several processes together; those that are gone count nothing.
pub(super) fn usage(pids: &[u32]) -> Usage {
    let all = pids.iter().filter_map(|pid| Usage::of(*pid).ok());
    all.fold(Usage::default(), |sum, one| Usage {
        cpu_us: sum.cpu_us + one.cpu_us,
        rss_kb: sum.rss_kb + one.rss_kb,
        peak_rss_kb: sum.peak_rss_kb + one.peak_rss_kb,
        write_bytes: sum.write_bytes + one.write_bytes,
    })
}

/// What a probe got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probed {
    Ready,
    /// It answers, and does not call itself ready.
    NotReady,
    /// No answer in time, on no way.
    Silent,
}

/// Second since 1970 -> what its probe got.
pub(super) type Answers = Arc<Mutex<BTreeMap<i64, Probed>>>;

/// Newest probes in a row without an answer.
pub(super) fn silent_in_a_row(answers: &Answers) -> usize {
    let answers = answers.lock();
    answers.values().rev().take_while(|probed| **probed == Probed::Silent).count()
}

/// Asks until it is dropped.
pub(super) struct Prober(JoinHandle<()>);

impl Drop for Prober {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Asks each second, also while an earlier answer is still out.
pub(super) fn probe(address: Address, client: Client, answers: &Answers) -> Prober {
    let told = Arc::clone(answers);
    Prober(tokio::spawn(async move {
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tick.tick().await;
            let second = now_us().div_euclid(1_000_000);
            let (address, client, told) = (address.clone(), client.clone(), Arc::clone(&told));
            tokio::spawn(async move {
                let probed = ask(&address, &client).await;
                told.lock().insert(second, probed);
            });
        }
    }))
}

/// `/readyz` where HTTP is known, otherwise `system.info`.
async fn ask(address: &Address, client: &Client) -> Probed {
    let ready = match &address.http {
        Some(base) => {
            let (url, token) = (format!("{base}/readyz"), address.token.clone());
            Some(spawn_blocking(move || get(&url, &token).is_some()).await.unwrap_or(false))
        }
        None => None,
    };
    if ready == Some(true) {
        return Probed::Ready;
    }
    // A node that is not ready answers calls all the same, and so does one whose HTTP address is wrong.
    match timeout(Duration::from_millis(PROBE_MS), client.system_info()).await {
        Ok(Ok(info)) if info.ready && ready.is_none() => Probed::Ready,
        Ok(Ok(_) | Err(ClientError::Api(_) | ClientError::Protocol(_))) => Probed::NotReady,
        Ok(Err(ClientError::Io { .. } | ClientError::Timeout { .. })) | Err(_) => Probed::Silent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_probes_count_as_silence() {
        let answers = Answers::default();
        let told = [Probed::Silent, Probed::NotReady, Probed::Silent, Probed::Silent];
        answers.lock().extend((1..).zip(told));
        assert_eq!(silent_in_a_row(&answers), 2);
        answers.lock().insert(5, Probed::Ready);
        assert_eq!(silent_in_a_row(&answers), 0);
    }

    #[test]
    fn metrics_are_read_with_and_without_labels() {
        let text = "# TYPE campanile_open_runs gauge\ncampanile_open_runs 12\ncampanile_open_runs_other 5\n\
                    dispatch_queue_lag{pool=\"a b\"} 3\ndispatch_queue_lag{pool=\"c\"} 4\n\ncampanile_journal_batches_total 1e3\n";
        let read = Metrics::of(text);
        let sought = Metrics { open_runs: Some(12.0), waiting: Some(7.0), batches: Some(1000.0), ..Metrics::default() };
        assert_eq!(read, sought);
    }
}
