//! The metrics: the name of every metric with its help text ([`table`]), the measurements that a job actor takes of its own
//! decisions (`decision`), and figures by tenant and pool ([`shares`]).
//!
//! Names that the required alerts use have no prefix (`trigger_delay_ms`, `misfire_count`, ...), and those of the process
//! are the ones that Prometheus' own clients use (`process_...`); all others begin with `campanile_`. No metric has a label
//! for each job or run, because their number has no bound. The labels `tenant` and `pool` have a bounded number of values
//! ([`shares`]).
//!
//! `docs/reference/metrics.md` is made from [`table`], and compared with the page of a real node.

mod decision;
mod metric;
mod page;
pub mod shares;

pub use metric::{Kind, Metric};
pub use page::Page;

use campanile_core::ownership::Transition;
use campanile_schema::{
    event::{Outcome, SkipReason},
    record::RunState,
    stored::backfill::BackfillState,
    view::DegradationLevel,
};
pub(crate) use decision::{decision, hot, retries};
use std::sync::LazyLock;

/// Upper bounds of the buckets of `*_ms` histograms, milliseconds.
pub const MS_BUCKETS: [f64; 14] =
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0, 10_000.0, 60_000.0];
/// Upper bounds of the buckets of `*_seconds` histograms.
pub const SECOND_BUCKETS: [f64; 10] = [0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0];

/// Upper bounds of the buckets of `campanile_run_duration_ms`: from 10 ms to a day.
pub const DURATION_BUCKETS: [f64; 14] = [
    10.0,
    100.0,
    500.0,
    1_000.0,
    5_000.0,
    10_000.0,
    30_000.0,
    60_000.0,
    300_000.0,
    900_000.0,
    3_600_000.0,
    14_400_000.0,
    43_200_000.0,
    86_400_000.0,
];

/// Every metric of a node.
pub fn table() -> Vec<Metric> {
    let mut table = Vec::new();
    let mut add = |kind, name, help, labels: &'static [&'static str], when: Option<&'static str>, derived| {
        table.push(Metric { name, kind, help, labels, when, derived });
    };
    macro_rules! counter {
        ($name:literal, $help:literal $(, by $($label:literal),+)?) => {
            add(Kind::Counter, $name, $help, &[$($($label),+)?], None, false);
        };
    }
    macro_rules! gauge {
        ($name:literal, $help:literal $(, by $($label:literal),+)? $(, when $when:literal)?) => {
            add(Kind::Gauge, $name, $help, &[$($($label),+)?], None$(.or(Some($when)))?, false);
        };
    }
    macro_rules! histogram {
        ($name:literal, $help:literal $(, by $($label:literal),+)?) => {
            add(Kind::Histogram, $name, $help, &[$($($label),+)?], None, false);
        };
    }
    macro_rules! derived {
        ($kind:ident, $name:literal, $help:literal $(, by $($label:literal),+)? $(, when $when:literal)?) => {
            add(Kind::$kind, $name, $help, &[$($($label),+)?], None$(.or(Some($when)))?, true);
        };
    }
    histogram!("trigger_delay_ms", "From the due instant (with its jitter) to the creation of its run, ms");
    histogram!("dispatch_delay_ms", "From the creation of a run to its first attempt, ms");
    counter!("schedule_fires_total", "Runs created by schedules; its rate is schedule_qps");
    counter!("misfire_count", "Due instants that were decided later than the misfire threshold of their job");
    counter!("executor_heartbeat_lost", "Executor sessions whose lease ended");
    counter!("campanile_node_away_total", "Times that the node was suspended and restarted its executors' leases");
    gauge!("dispatch_queue_lag", "Runs with a permit that wait for an executor");
    gauge!("retry_queue_depth", "Runs that wait for their next attempt");
    counter!("runs_ended_total", "Ended runs by state: success rate and timeout rate come from it", by "state");
    counter!("dead_letters_total", "Dead letters made; its rate is dlq_growth_rate");
    counter!("campanile_ledger_instants_total", "Instants closed without a run, by outcome", by "outcome");
    counter!("campanile_instants_skipped_total", "Instants skipped or missed, by reason", by "reason");
    counter!("campanile_retries_total", "Attempts that ended with another attempt to follow after a delay");
    histogram!("campanile_run_duration_ms", "From the first attempt of a run to its end, ms");
    counter!("campanile_manual_triggers_total", "Accepted manual triggers, repeated ones included");
    counter!("campanile_assignments_total", "Assignments sent to executors");
    counter!("campanile_job_activations_total", "Jobs that became actors");
    counter!("campanile_job_actor_panics_total", "Turns of jobs that failed; nothing of them was kept");
    counter!("campanile_jobs_postponed_total", "Jobs with due instants that waited for the read model to catch up");
    gauge!("campanile_active_job_actors", "Jobs that are actors now");
    counter!("campanile_shards_taken_total", "Shards of a cluster that this node began to serve");
    counter!("campanile_replayed_frames_total", "Frames read when shards were taken");
    counter!("campanile_replayed_rows_total", "Rows of lanes read when shards were taken; shards of a lane share them");
    counter!("campanile_replayed_bytes_total", "Bytes of the rows of lanes read when shards were taken");
    counter!("campanile_shards_read_ahead_total", "Shards that were read, at least in part, before they were claimed");
    counter!("campanile_snapshot_bytes_read_total", "Bytes of snapshots read at the start, or when shards were taken");
    counter!("campanile_shard_load_failures_total", "Failures to load a shard that was taken");
    counter!("campanile_ownership_transitions_total", "Steps of the ownership protocol, by name", by "transition");
    counter!("campanile_ownership_unknown_answers_total", "Requests of ownership without an answer in time");
    counter!("campanile_projection_failures_total", "Batches of rows whose first write failed");
    gauge!("campanile_files_broken", "Files of jobs that cannot be applied, and 1 more if the directory cannot");
    counter!("campanile_files_jobs_changed_total", "Jobs changed by the node's directory of files");
    gauge!("campanile_jobs", "Jobs, deleted ones left out");
    gauge!("campanile_open_runs", "Runs that are not final");
    gauge!("campanile_attempts_running", "Attempts that executors hold");
    gauge!("campanile_attempts_stopping", "Attempts whose body was told to stop and has not ended");
    gauge!("campanile_attempts_stop_overdue", "Stopping attempts that take longer than the executor's stopGraceSec");
    gauge!("campanile_executors", "Executor sessions");
    gauge!("campanile_executor_sessions", "Executor sessions by state", by "state");
    gauge!("campanile_shards_served", "Shards that this node serves");
    gauge!("campanile_wheel_entries", "Entries of the timing wheels, stale ones included");
    gauge!("campanile_journal_in_flight_frames", "Frames handed to the journal and not yet durable");
    gauge!("campanile_projection_lag_events", "Durable events that the read model does not show yet");
    gauge!("campanile_projection_lag_seconds", "Time since the oldest of these events became durable, s");
    counter!("campanile_journal_frames_total", "Frames made durable");
    counter!("campanile_journal_bytes_total", "Bytes of frames made durable");
    counter!("campanile_journal_batches_total", "Journal batches (one sync each)");
    histogram!("campanile_journal_append_seconds", "One batch: write and sync, s");
    gauge!("campanile_journal_stored_bytes", "Bytes of the journal on disk", when "the node has a directory of its own");
    counter!("campanile_projected_rows_total", "Rows written to the read model");
    counter!("campanile_hooks_total", "Hooks of ended runs, by outcome: started, refused, undelivered, dropped", by "outcome");
    gauge!("campanile_outbox_messages", "Messages between jobs that are not settled");
    counter!("campanile_target_breaker_opened_total", "Times that the breaker of a target opened on this node");
    gauge!("campanile_degradation_level", "What the node does without, 0 = nothing, to 4");
    counter!("campanile_degradations_total", "Times that the node entered a level of degradation", by "level");
    gauge!("campanile_backfills_open", "Backfills and replays that have not ended, paused ones included");
    counter!("campanile_backfill_runs_total", "Runs that backfills and replays made");
    counter!(
        "campanile_deadlines_missed_total",
        "Runs that did not end by their deadline, and instants that made no run, once each"
    );
    counter!("campanile_suspicious_runs_total", "Runs that succeeded in less than the minDurationSec of their job");
    counter!("campanile_backfills_ended_total", "Backfills and replays that have ended", by "state");
    gauge!("campanile_outbox_given_up", "Messages between jobs that were given up and not sent again or put away");
    counter!("campanile_snapshots_total", "Snapshots published");
    counter!("campanile_snapshot_failures_total", "Snapshots that could not be written");
    gauge!("campanile_snapshot_owed_seconds", "Longest time for which a shard of this node has owed a snapshot, s");
    counter!("campanile_history_rows_expired_total", "History rows deleted by retention");
    counter!("campanile_history_compactions_total", "Times that all history was rewritten to free space");
    gauge!("campanile_history_stored_bytes", "Bytes of history and of attempts' logs on disk", when "the node has a directory of its own");
    gauge!("campanile_snapshots_stored_bytes", "Bytes of snapshots on disk", when "the node has a directory of its own");
    gauge!("campanile_history_needs_bytes", "Space that history will need in addition, by the rate of the last hour", when "the node has run for an hour");
    gauge!("campanile_disk_free_bytes", "Free bytes of the data directory's file system", when "the node has a directory of its own");
    gauge!("campanile_disk_size_bytes", "Bytes of the data directory's file system", when "the node has a directory of its own");
    gauge!("campanile_disk_short", "1 while there is too little free space, by reason", by "reason", when "the node has a directory of its own");
    gauge!("campanile_watches", "Watches of runs and jobs, over RPC and HTTP");
    counter!("campanile_overloaded_total", "Calls refused because queues were full");
    counter!("campanile_clock_verdict_changes_total", "Changes of the clock guard's verdict");
    counter!("campanile_store_journal_bytes_total", "Bytes written to journal files, headers and padding too");
    histogram!("campanile_store_journal_sync_seconds", "The sync alone of one batch, s");
    counter!("campanile_cql_requests_total", "Requests to the CQL servers, by what they are for; a batch is one", by "kind");
    counter!("campanile_cql_rows_written_total", "Rows of the read model written to the CQL servers");
    counter!("campanile_cql_errors_total", "Requests to the CQL servers that failed or were not answered in time");
    counter!("campanile_cql_unknown_lwts_total", "LWTs whose outcome is not known");
    counter!("campanile_store_log_bytes_dropped_total", "Bytes of output dropped beyond the limit of an attempt");
    counter!("campanile_http_connections_refused_total", "HTTP connections refused because all places were taken, by reason", by "reason");
    counter!("campanile_http_requests_total", "HTTP requests by operation and status", by "operation", "status");
    histogram!("campanile_http_request_ms", "HTTP requests by operation, from the head's arrival to the answer, ms", by "operation");
    gauge!("campanile_rpc_connections", "RPC connections");
    counter!("campanile_rpc_calls_total", "RPC requests and notifications after the hello");
    counter!("campanile_trace_spans_total", "Spans of traces, by outcome: sent, failed (not taken by the collector), dropped (too many at once)", by "outcome");
    counter!("campanile_audit_refusals_total", "Calls refused that the audit trail counts; equal ones are one record");
    counter!("campanile_audit_lost_total", "Records of the audit trail that could not be written and were given up");
    counter!("campanile_rpc_hellos_refused_total", "RPC connections refused at the hello");
    counter!("campanile_executor_claims_refused_total", "Messages of executors about attempts that are not theirs");
    counter!("campanile_executor_guessers_closed_total", "Connections closed for naming too many such attempts");
    gauge!("campanile_token_file_in_force", "1 while the token file as it is on disk is in force, else 0", when "the node has a token file");
    gauge!("campanile_tls_certificate_expiry_timestamp_seconds", "End of the TLS certificate in use, Unix time", when "the node speaks TLS");
    counter!("campanile_tls_reload_failures_total", "Times that a new TLS certificate or key could not be used");
    counter!("campanile_tls_handshakes_failed_total", "TLS handshakes that failed, by port and reason", by "port", "reason");
    gauge!("campanile_members", "Members of the cluster that live, this node included");
    gauge!("campanile_members_suspect", "Members that did not answer and are not given up yet");
    counter!("campanile_membership_packets_total", "Packets of membership that were sent or received", by "way");
    counter!("campanile_membership_refused_total", "Packets of membership that were refused, by reason", by "reason");
    counter!("campanile_membership_downs_total", "Members that left or were declared down, restarts included");
    counter!("campanile_membership_rejoins_total", "Times that other nodes declared this node down");
    gauge!("campanile_gateway_links", "Nodes to which calls can be sent");
    counter!("campanile_gateway_calls_total", "Calls to other nodes, by result", by "result");
    counter!("campanile_gateway_parcels_total", "Parcels of requests and answers sent to other nodes");
    counter!("campanile_gateway_items_total", "Requests and answers sent to other nodes");
    counter!("campanile_gateway_refused_total", "Requests of other nodes refused because too many were under way");
    counter!("campanile_gateway_handshakes_refused_total", "Connections of other nodes that were refused");
    counter!("campanile_log_bytes_refused_total", "Bytes of output that came faster than they could be stored");
    derived!(Gauge, "campanile_host_cpus", "Processors that the node may use");
    derived!(Gauge, "campanile_host_memory_bytes", "Memory of the machine, or of the control group if that has less");
    derived!(Counter, "process_cpu_seconds_total", "Processor time of the node, user and system, s");
    derived!(Gauge, "process_resident_memory_bytes", "Memory of the node that is in RAM");
    derived!(Gauge, "process_virtual_memory_bytes", "Address space of the node");
    derived!(Gauge, "process_open_fds", "Open files and sockets of the node");
    derived!(Gauge, "process_max_fds", "Files and sockets that it may have open");
    derived!(Gauge, "process_threads", "Threads of the node");
    derived!(Gauge, "process_start_time_seconds", "Start of the node, Unix time");
    derived!(Counter, "campanile_tenant_fires_total", "Runs created by schedules, by tenant", by "tenant");
    derived!(Counter, "campanile_tenant_misfires_total", "As misfire_count, by tenant", by "tenant");
    derived!(Counter, "campanile_tenant_runs_started_total", "Runs whose first attempt started, by tenant", by "tenant");
    derived!(Counter, "campanile_tenant_dispatch_seconds_total", "Time from creation to first attempt of these, s", by "tenant");
    derived!(Counter, "campanile_tenant_retries_total", "As campanile_retries_total, by tenant", by "tenant");
    derived!(Counter, "campanile_tenant_runs_ended_total", "Ended runs, by tenant and state", by "tenant", "state");
    derived!(Counter, "campanile_tenant_run_seconds_total", "Time from first attempt to end of these, s", by "tenant");
    derived!(Counter, "campanile_tenant_dead_letters_total", "Dead letters made, by tenant", by "tenant");
    derived!(Gauge, "campanile_tenant_jobs", "Jobs, by tenant", by "tenant");
    derived!(Gauge, "campanile_tenant_jobs_limit", "maxJobs of the tenant", by "tenant", when "the tenant has this limit");
    derived!(Gauge, "campanile_tenant_running", "Runs that hold a permit, by tenant", by "tenant");
    derived!(Gauge, "campanile_tenant_running_limit", "maxConcurrentRuns of the tenant", by "tenant", when "the tenant has this limit");
    derived!(Gauge, "campanile_tenant_waiting", "Runs that wait for a permit or an executor, by tenant", by "tenant");
    derived!(Gauge, "campanile_tenant_waiting_limit", "maxQueuedRuns of the tenant", by "tenant", when "the tenant has this limit");
    derived!(Counter, "campanile_pool_fires_total", "Runs created by schedules, by pool", by "pool");
    derived!(Counter, "campanile_pool_misfires_total", "As misfire_count, by pool", by "pool");
    derived!(Counter, "campanile_pool_runs_started_total", "Runs whose first attempt started, by pool", by "pool");
    derived!(Counter, "campanile_pool_dispatch_seconds_total", "Time from creation to first attempt of these, s", by "pool");
    derived!(Counter, "campanile_pool_retries_total", "As campanile_retries_total, by pool", by "pool");
    derived!(Counter, "campanile_pool_runs_ended_total", "Ended runs, by pool and state", by "pool", "state");
    derived!(Counter, "campanile_pool_run_seconds_total", "Time from first attempt to end of these, s", by "pool");
    derived!(Counter, "campanile_pool_dead_letters_total", "Dead letters made, by pool", by "pool");
    derived!(Gauge, "campanile_pool_executors", "Executors that are connected, by pool", by "pool");
    derived!(Gauge, "campanile_pool_slots", "Attempts that these may run at once, by pool", by "pool");
    derived!(Gauge, "campanile_pool_credit", "Runs that these would take now, by pool", by "pool");
    derived!(Gauge, "campanile_pool_running", "Attempts that executors hold, by pool; one of several pools counts for each", by "pool");
    derived!(Gauge, "campanile_pool_waiting", "Runs with a permit that wait for an executor, by pool", by "pool");
    table
}

/// Gives the recorder the help texts. Called once, when the recorder is there.
pub fn describe() {
    for Metric { name, kind, help, labels, when, .. } in table().into_iter().filter(|metric| !metric.derived) {
        // A counter that comes into being with its first event hides that event from `increase()`.
        let from_the_start = labels.is_empty() && when.is_none();
        match kind {
            Kind::Counter => {
                metrics::describe_counter!(name, help);
                if from_the_start {
                    metrics::counter!(name).increment(0);
                }
            }
            Kind::Gauge => {
                metrics::describe_gauge!(name, help);
                if from_the_start {
                    metrics::gauge!(name).set(0.0);
                }
            }
            Kind::Histogram => {
                metrics::describe_histogram!(name, help);
                if from_the_start {
                    // With the handle alone it is shown, with nothing in it.
                    drop(metrics::histogram!(name));
                }
            }
        }
    }
    let finals = RunState::ALL.iter().filter(|state| state.is_final()).map(|state| state.as_str());
    at_zero("runs_ended_total", "state", finals);
    let without_a_run = [Outcome::Coalesced, Outcome::Skipped, Outcome::Missed, Outcome::DstSkipped];
    at_zero("campanile_ledger_instants_total", "outcome", without_a_run.map(|outcome| outcome.as_str()));
    let transitions = Transition::ALL.iter().map(|transition| transition.name());
    at_zero("campanile_ownership_transitions_total", "transition", transitions);
    let skipped = SkipReason::ALL.iter().map(|reason| reason.as_str());
    at_zero("campanile_instants_skipped_total", "reason", skipped);
    at_zero("campanile_hooks_total", "outcome", HOOK_OUTCOMES);
    let ended = [BackfillState::Canceled, BackfillState::Done];
    at_zero("campanile_backfills_ended_total", "state", ended.map(BackfillState::as_str));
    let levels = DegradationLevel::ALL.iter().filter(|level| **level > DegradationLevel::Normal);
    at_zero("campanile_degradations_total", "level", levels.map(|level| level.as_str()));
    // Until it hears of others a node is the only member that it knows.
    metrics::gauge!("campanile_members").set(1.0);
}

/// What becomes of hooks.
const HOOK_OUTCOMES: [&str; 4] = ["started", "refused", "undelivered", "dropped"];

/// A page for the metrics that the recorder does not have.
pub fn page() -> Page {
    static TABLE: LazyLock<Vec<Metric>> = LazyLock::new(table);
    Page::new(&TABLE)
}

/// Writes the series by tenant and by pool.
pub fn by_label(page: &mut Page) {
    shares::tenants().show(page);
    shares::pools().show(page);
}

/// A counter exists from the start with each value of its label.
pub fn at_zero(name: &'static str, label: &'static str, values: impl IntoIterator<Item = &'static str>) {
    values.into_iter().for_each(|value| metrics::counter!(name, label => value).increment(0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_by_label_is_in_the_table_and_every_metric_is_there_once() {
        let table = table();
        let mut page = page();
        by_label(&mut page);
        let text = page.text();
        for metric in table.iter().filter(|metric| metric.derived && !metric.labels.is_empty()) {
            let Metric { name, kind, .. } = metric;
            assert!(text.contains(&format!("# TYPE {name} {}\n", kind.as_str())), "{name} is not shown");
        }
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let name = line.split('{').next().unwrap_or_default();
            assert!(text.contains(&format!("# TYPE {name} ")), "{name} is not in the table");
        }
        let mut names: Vec<&str> = table.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
