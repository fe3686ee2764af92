//! What lists of several commands share: pages, the columns of runs, and the zone in which instants are told.

use super::{
    failure::Failure,
    output::{self, Column, Format},
    remote::Remote,
};
use serde_json::{Value, json};

/// Which part of a list.
#[derive(clap::Args)]
pub(super) struct PageFlags {
    /// Items of a page, at most 1000
    #[arg(long, value_name = "N")]
    page_size: Option<usize>,
    /// Go on after the page before
    #[arg(long, value_name = "TOKEN")]
    page_token: Option<String>,
    /// All pages
    #[arg(long, conflicts_with_all = ["page_size", "page_token"])]
    all: bool,
}

impl PageFlags {
    pub fn new(page_size: Option<usize>, page_token: Option<String>, all: bool) -> Self {
        Self { page_size, page_token, all }
    }

    /// The page, or everything.
    pub fn read(&self, remote: &Remote, path: &str, query: &[(&str, Option<String>)]) -> Result<Value, Failure> {
        if self.all {
            return Ok(json!({"items": remote.all(path, query)?}));
        }
        let mut query = query.to_vec();
        query.push(("pageSize", self.page_size.map(|size| size.to_string())));
        query.push(("pageToken", self.page_token.clone()));
        remote.get(path, &query)
    }
}

/// Columns of a list of runs.
pub(super) const RUNS: &[Column] = &[
    Column::id("RUN", "runId"),
    Column::state("STATE", "state"),
    Column::text("SOURCE", "source").minor(4),
    Column::time("LOGICAL TIME", "logicalTime").minor(1),
    Column::number("ATTEMPTS", "attemptCount").minor(3),
    Column::time("CREATED", "createdAt").minor(5),
    Column::time("ENDED", "endedAt").minor(2),
    Column::text("ERROR", "lastError").minor(6),
];

/// The zone of the job of this path, where instants are told by it.
pub(super) fn zone_of(remote: &Remote, path: &str, format: Format) -> Result<Option<String>, Failure> {
    if !output::wants_job_zone(format) {
        return Ok(None);
    }
    Ok(remote.get(path, &[])?["trigger"]["timezone"].as_str().map(str::to_owned))
}
