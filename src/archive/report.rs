//! What an archive holds, for people and programs.

use super::image::Image;
use campanile_ports::StoreError;
use campanile_schema::{ids::ClusterId, job::JobStatus, stored::target_of, time::Timestamp};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// See the module's text.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub archive_format: u16,
    pub release: String,
    pub cluster_id: ClusterId,
    pub shards: u16,
    /// When the cut was made.
    pub cut_at: Timestamp,
    /// Session and number of the last batch of the journal in it.
    pub cut: [u64; 2],
    pub bytes: u64,
    pub jobs: u64,
    pub tenants: u64,
    pub open_runs: BTreeMap<&'static str, u64>,
    /// Rows of the history: ended runs and intervals of the ledger.
    pub history_rows: u64,
    pub log_pieces: u64,
    pub journal_batches: u64,
    /// Keys that secret params are sealed with. The archive holds none of them.
    pub secret_keys: BTreeSet<String>,
}

impl Report {
    pub fn of(image: &Image) -> Result<Self, StoreError> {
        let (mut jobs, mut tenants) = (0, 0);
        let mut open_runs = BTreeMap::new();
        let mut secret_keys = BTreeSet::new();
        for shard in &image.shards {
            tenants += shard.state().tenants.keys().filter(|name| target_of(name).is_none()).count() as u64;
            for job in shard.jobs() {
                let job = job?;
                jobs += u64::from(job.hot.status != JobStatus::Deleted);
                for run in &job.hot.runs {
                    *open_runs.entry(run.state().as_str()).or_default() += 1;
                }
                if let Some(sealed) = &job.def.secrets {
                    secret_keys.insert(sealed.key_id.clone());
                }
            }
        }
        let head = &image.head;
        Ok(Self {
            archive_format: head.archive_format,
            release: head.release.clone(),
            cluster_id: head.store.cluster_id,
            shards: head.store.shards,
            cut_at: Timestamp(head.at_ms),
            cut: [head.cut.session.0, head.cut.seq],
            bytes: image.bytes,
            jobs,
            tenants,
            open_runs,
            history_rows: image.totals.rows,
            log_pieces: image.totals.logs,
            journal_batches: image.totals.batches,
            secret_keys,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "archive    form {}, release {}, {} bytes", self.archive_format, self.release, self.bytes)?;
        writeln!(f, "store      cluster {}, {} shards", self.cluster_id, self.shards)?;
        writeln!(f, "cut        {}, session {} seq {}", self.cut_at, self.cut[0], self.cut[1])?;
        let open: Vec<String> = self.open_runs.iter().map(|(state, n)| format!("{n} {state}")).collect();
        let open = if open.is_empty() { "none".to_owned() } else { open.join(", ") };
        writeln!(f, "jobs       {}, tenants with limits {}, open runs: {open}", self.jobs, self.tenants)?;
        writeln!(
            f,
            "history    {} rows and {} pieces of logs, {} batches of the journal behind them",
            self.history_rows, self.log_pieces, self.journal_batches
        )?;
        if !self.secret_keys.is_empty() {
            let keys: Vec<&str> = self.secret_keys.iter().map(String::as_str).collect();
            writeln!(f, "secrets    sealed with {}: the node needs these keys in its key file", keys.join(", "))?;
        }
        Ok(())
    }
}
