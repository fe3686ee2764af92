//! `campanile store migrate`: a stopped node's directory into the CQL store of a cluster.

use super::{
    archives::{now_ms, show},
    failure::{Failure, of_store},
    output::Format,
    schema::options,
    server::on_runtime,
};
use campanile_archive::{
    directory,
    migrate::{Cluster, into_cluster},
};
use campanile_store::{
    cql::{CqlStore, schema},
    embedded::restore::mark_moved,
};
use std::path::PathBuf;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Data directory of a stopped node
    dir: PathBuf,
    /// Configuration file of a node of the cluster: its [cql], [cluster] and [node] say where to
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(super) fn run(args: Args, format: Format) -> Result<(), Failure> {
    let options = options(args.config)?;
    if options.cluster.is_empty() {
        return Err(Failure::usage("a directory moves into a cluster: set [cluster] name"));
    }
    on_runtime(async move {
        let now_ms = now_ms();
        let who = format!("{} (process {})", options.node, std::process::id());
        schema::apply(&options, &who, now_ms).await.map_err(|e| of_store(&e))?;
        let (store, row) = CqlStore::connect(&options).await.map_err(|e| of_store(&e))?;
        let keyspace = options.keyspace.clone();
        // It waits for the store call by call.
        let moved = tokio::task::spawn_blocking(move || {
            let to = Cluster { leases: &*store, snapshots: &*store, views: &*store, shards: row.shards };
            let moved = directory::with_reader(&args.dir, now_ms, |reader| {
                into_cluster(reader, &to, &mut |what| eprintln!("moving {what}"))
            })?;
            // Two of one job would fire.
            mark_moved(&args.dir, &format!("the cluster '{}', keyspace {keyspace}", options.cluster))?;
            Ok(moved)
        });
        let moved = moved.await.map_err(|error| Failure::here(error.to_string()))?.map_err(|e| of_store(&e))?;
        show(&moved, format)?;
        eprintln!("moved; the directory cannot be started any more. Start the nodes of the cluster");
        Ok(())
    })
}
