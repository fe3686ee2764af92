//! The metrics: the name of every metric with its help text, and the measurements that a job actor takes of its own
//! decisions.
//!
//! Names that the required alerts use have no prefix (`trigger_delay_ms`, `misfire_count`, ...); all others begin with
//! `campanile_`. No metric has a label for each job, run or tenant, because their number has no bound.

use campanile_core::{job::Job, ownership::Transition};
use campanile_schema::{
    event::{Event, Outcome},
    record::RunState,
};
use metrics::{Counter, Histogram};
use std::sync::OnceLock;

/// Upper bounds of the buckets of `*_ms` histograms, milliseconds.
pub const MS_BUCKETS: [f64; 14] =
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0, 10_000.0, 60_000.0];
/// Upper bounds of the buckets of `*_seconds` histograms.
pub const SECOND_BUCKETS: [f64; 10] = [0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0];

/// Gives the exporter the help texts. Called once, when the recorder is there.
pub fn describe() {
    use metrics::{describe_counter, describe_gauge as gauge, describe_histogram as histogram};
    // A counter that comes into being with its first event hides that event from `increase()`.
    macro_rules! counter {
        ($name:literal, $help:literal) => {
            describe_counter!($name, $help);
            metrics::counter!($name).increment(0);
        };
        ($name:literal, $help:literal, by $label:literal) => {
            describe_counter!($name, $help);
        };
    }
    let finals = RunState::ALL.iter().filter(|state| state.is_final()).map(|state| state.as_str());
    at_zero("runs_ended_total", "state", finals);
    let without_a_run = [Outcome::Coalesced, Outcome::Skipped, Outcome::Missed, Outcome::DstSkipped];
    at_zero("campanile_ledger_instants_total", "outcome", without_a_run.map(|outcome| outcome.as_str()));
    let transitions = Transition::ALL.iter().map(|transition| transition.name());
    at_zero("campanile_ownership_transitions_total", "transition", transitions);
    histogram!("trigger_delay_ms", "From the due instant (with its jitter) to the creation of its run, ms");
    histogram!("dispatch_delay_ms", "From the creation of a run to its first attempt, ms");
    counter!("schedule_fires_total", "Runs created by schedules; its rate is schedule_qps");
    counter!("misfire_count", "Due instants that were not fired in time: late, coalesced, skipped or missed");
    counter!("executor_heartbeat_lost", "Executor sessions whose lease ended");
    counter!("campanile_node_away_total", "Times that the node stood still and began the leases of its executors anew");
    gauge!("dispatch_queue_lag", "Runs with a permit that wait for an executor");
    gauge!("retry_queue_depth", "Runs that wait for their next attempt");
    counter!("runs_ended_total", "Ended runs by state: success rate and timeout rate come from it", by "state");
    counter!("dead_letters_total", "Dead letters made; its rate is dlq_growth_rate");
    counter!("campanile_ledger_instants_total", "Instants closed without a run, by outcome", by "outcome");
    counter!("campanile_manual_triggers_total", "Accepted manual triggers, repeated ones included");
    counter!("campanile_assignments_total", "Assignments sent to executors");
    counter!("campanile_job_activations_total", "Jobs that became actors");
    counter!("campanile_job_actor_panics_total", "Turns of jobs that failed; nothing of them was kept");
    counter!("campanile_jobs_postponed_total", "Jobs with due instants that waited for the read model to catch up");
    gauge!("campanile_active_job_actors", "Jobs that are actors now");
    counter!("campanile_shards_taken_total", "Shards of a cluster that this node began to serve");
    counter!("campanile_replayed_frames_total", "Frames read when shards were taken");
    counter!("campanile_replayed_rows_total", "Rows of lanes read when shards were taken; shards of a lane share them");
    counter!("campanile_replayed_bytes_total", "Bytes of these rows");
    counter!("campanile_shards_read_ahead_total", "Shards that were read, at least in part, before they were claimed");
    counter!("campanile_snapshot_bytes_read_total", "Bytes of snapshots read at the start, or when shards were taken");
    counter!("campanile_shard_load_failures_total", "Taken shards that could not be loaded at once");
    counter!("campanile_ownership_transitions_total", "Steps of the ownership protocol, by name", by "transition");
    counter!("campanile_ownership_unknown_answers_total", "Requests of ownership without an answer in time");
    counter!("campanile_projection_failures_total", "Batches of rows that the store did not take at once");
    gauge!("campanile_files_broken", "Files put aside, and 1 when nothing of the directory is applied");
    counter!("campanile_files_jobs_changed_total", "Jobs changed by the node's directory of files");
    gauge!("campanile_jobs", "Jobs, deleted ones left out");
    gauge!("campanile_open_runs", "Runs that are not final");
    gauge!("campanile_attempts_running", "Attempts that executors hold");
    gauge!("campanile_attempts_stopping", "Attempts whose body was told to stop and has not ended");
    gauge!("campanile_attempts_stop_overdue", "Of them those that take longer than the executor's stopGraceSec");
    gauge!("campanile_executors", "Executor sessions");
    gauge!("campanile_wheel_entries", "Entries of the timing wheels, stale ones included");
    gauge!("campanile_journal_in_flight_frames", "Frames handed to the journal and not yet durable");
    gauge!("campanile_projection_lag_events", "Durable events that the read model does not show yet");
    gauge!("campanile_projection_lag_seconds", "How long the oldest of them has waited since it was durable, s");
    counter!("campanile_journal_frames_total", "Frames made durable");
    counter!("campanile_journal_bytes_total", "Bytes of frames made durable");
    counter!("campanile_journal_batches_total", "Journal batches (one sync each)");
    histogram!("campanile_journal_append_seconds", "One batch: write and sync, s");
    gauge!("campanile_journal_stored_bytes", "Bytes of the journal on disk");
    counter!("campanile_projected_rows_total", "Rows written to the read model");
    counter!("campanile_hooks_total", "Hooks of ended runs, by outcome: started, refused, undelivered, dropped");
    gauge!("campanile_outbox_messages", "Messages between jobs that are not settled");
    gauge!("campanile_outbox_given_up", "Messages between jobs that were given up and not sent again or put away");
    counter!("campanile_snapshots_total", "Snapshots published");
    counter!("campanile_snapshot_failures_total", "Snapshots that could not be written");
    gauge!("campanile_snapshot_owed_seconds", "Longest time for which a shard of this node has owed a snapshot, s");
    counter!("campanile_history_rows_expired_total", "History rows deleted by retention");
    counter!("campanile_history_compactions_total", "Times that all history was written anew to give room back");
    gauge!("campanile_history_stored_bytes", "Bytes of history and of attempts' logs on disk");
    gauge!("campanile_snapshots_stored_bytes", "Bytes of snapshots on disk");
    gauge!("campanile_history_needs_bytes", "What history will need besides, by the last hour's pace");
    gauge!("campanile_disk_free_bytes", "Free bytes of the data directory's file system");
    gauge!("campanile_disk_size_bytes", "Bytes of the data directory's file system");
    gauge!("campanile_disk_short", "1 while the disk will not do, by reason");
    gauge!("campanile_watches", "Watches of runs and jobs, over RPC and HTTP");
    counter!("campanile_overloaded_total", "Calls refused because queues were full");
    counter!("campanile_clock_verdict_changes_total", "Times that the clock guard changed its mind");
    counter!("campanile_store_journal_bytes_total", "Bytes written to journal files, headers and padding too");
    histogram!("campanile_store_journal_sync_seconds", "The sync alone of one batch, s");
    counter!("campanile_cql_requests_total", "Requests to the CQL servers, by what they are for; a batch is one", by "kind");
    counter!("campanile_cql_rows_written_total", "Rows of the read model written to the CQL servers");
    counter!("campanile_cql_errors_total", "Requests to the CQL servers that failed or were not answered in time");
    counter!("campanile_cql_unknown_lwts_total", "LWTs of which nobody knows whether they were applied");
    counter!("campanile_store_log_bytes_dropped_total", "Bytes of output dropped beyond the limit of an attempt");
    counter!("campanile_http_connections_refused_total", "HTTP connections without a place, by reason", by "reason");
    counter!("campanile_http_requests_total", "HTTP requests by operation and status", by "operation");
    histogram!("campanile_http_request_ms", "HTTP requests by operation, from the head's arrival to the answer, ms");
    gauge!("campanile_rpc_connections", "RPC connections");
    counter!("campanile_rpc_calls_total", "RPC requests and notifications after the hello");
    counter!("campanile_audit_refusals_total", "Calls refused that the audit trail counts; equal ones are one record");
    counter!("campanile_audit_lost_total", "Records of the audit trail that could not be written and were given up");
    counter!("campanile_rpc_hellos_refused_total", "RPC connections refused at the hello");
    counter!("campanile_executor_claims_refused_total", "What executors said of attempts that are not theirs");
    counter!("campanile_executor_guessers_closed_total", "Connections closed for naming too many such attempts");
    gauge!("campanile_token_file_in_force", "1 while the token file as it is on disk is in force, else 0");
    gauge!("campanile_tls_certificate_expiry_timestamp_seconds", "End of the TLS certificate in use, Unix time");
    counter!("campanile_tls_reload_failures_total", "Times that a new TLS certificate or key could not be used");
    counter!("campanile_tls_handshakes_failed_total", "TLS handshakes that failed, by port and reason", by "port");
    gauge!("campanile_members", "Members of the cluster that live, this node included");
    gauge!("campanile_members_suspect", "Members that did not answer and are not given up yet");
    counter!("campanile_membership_packets_total", "Packets of membership, by way", by "way");
    counter!("campanile_membership_refused_total", "Packets of membership that were refused, by reason", by "reason");
    counter!("campanile_membership_downs_total", "Members that were seen to go, restarts included");
    counter!("campanile_membership_rejoins_total", "Times that others took this node for down");
    gauge!("campanile_gateway_links", "Nodes to which calls can be sent");
    counter!("campanile_gateway_calls_total", "Calls to other nodes, by result", by "result");
    counter!("campanile_gateway_parcels_total", "Parcels of requests and answers sent to other nodes");
    counter!("campanile_gateway_items_total", "Requests and answers sent to other nodes");
    counter!("campanile_gateway_refused_total", "Requests of other nodes refused because too many were under way");
    counter!("campanile_gateway_handshakes_refused_total", "Connections of other nodes that were refused");
    counter!("campanile_log_bytes_refused_total", "Bytes of output that came faster than they could be stored");
}

/// A counter exists from the start with each value of its label.
pub fn at_zero(name: &'static str, label: &'static str, values: impl IntoIterator<Item = &'static str>) {
    values.into_iter().for_each(|value| metrics::counter!(name, label => value).increment(0));
}

/// What is counted several times for each run. Looking a metric up by its name takes as long as a small decision.
pub(crate) struct Hot {
    trigger_delay: Histogram,
    dispatch_delay: Histogram,
    fires: Counter,
    misfires: Counter,
    pub activations: Counter,
    pub assignments: Counter,
    ended: Vec<(RunState, Counter)>,
}

impl Hot {
    fn new() -> Self {
        let ended = |state: RunState| (state, metrics::counter!("runs_ended_total", "state" => state.as_str()));
        Self {
            trigger_delay: metrics::histogram!("trigger_delay_ms"),
            dispatch_delay: metrics::histogram!("dispatch_delay_ms"),
            fires: metrics::counter!("schedule_fires_total"),
            misfires: metrics::counter!("misfire_count"),
            activations: metrics::counter!("campanile_job_activations_total"),
            assignments: metrics::counter!("campanile_assignments_total"),
            ended: RunState::ALL.iter().copied().filter(|s| s.is_final()).map(ended).collect(),
        }
    }
}

/// Not before the recorder is there: handles made earlier would count nothing.
pub(crate) fn hot() -> &'static Hot {
    static HOT: OnceLock<Hot> = OnceLock::new();
    HOT.get_or_init(Hot::new)
}

/// Delays and counts of one decision; `before` and `after` are the job around it.
pub(crate) fn decision(before: &Job, after: &Job, events: &[Event]) {
    for event in events {
        match event {
            Event::RunCreated { logical_ms: Some(at), at_ms, interval: Some(_), late, .. } => {
                let delay = (at_ms - after.due_with_jitter(*at)).max(0);
                hot().trigger_delay.record(delay as f64);
                hot().fires.increment(1);
                if *late {
                    hot().misfires.increment(1);
                }
            }
            Event::AttemptStarted { run, attempt: 1, at_ms, .. } => {
                if let Some(open) = after.run(*run) {
                    hot().dispatch_delay.record((at_ms - open.record.created_ms).max(0) as f64);
                }
            }
            Event::CursorMoved { entries, .. } => {
                for entry in entries {
                    metrics::counter!("campanile_ledger_instants_total", "outcome" => entry.outcome.as_str())
                        .increment(entry.count);
                    if matches!(entry.outcome, Outcome::Coalesced | Outcome::Skipped | Outcome::Missed) {
                        hot().misfires.increment(entry.count);
                    }
                }
            }
            Event::RunEnded { record, .. } => {
                if let Some((_, ended)) = hot().ended.iter().find(|(state, _)| *state == record.state) {
                    ended.increment(1);
                }
                if record.dead_letter {
                    metrics::counter!("dead_letters_total").increment(1);
                }
            }
            Event::RunCreated { .. }
            | Event::AttemptStarted { .. }
            | Event::TenantSet { .. }
            | Event::TenantDeleted { .. }
            | Event::Lent { .. }
            | Event::PauseSet { .. }
            | Event::CreateKept { .. }
            | Event::Outbox { .. }
            | Event::HookFailed { .. }
            | Event::Audited { .. }
            | Event::JobCreated { .. }
            | Event::JobReplaced { .. }
            | Event::JobPaused { .. }
            | Event::JobResumed { .. }
            | Event::JobDeleted { .. }
            | Event::JobQuarantined { .. }
            | Event::RunReleased { .. }
            | Event::RetryDue { .. }
            | Event::AttemptSuspected { .. }
            | Event::AttemptHeard { .. }
            | Event::AttemptStopping { .. }
            | Event::AttemptEnded { .. }
            | Event::RunConfirmed { .. }
            | Event::RunReopened { .. }
            | Event::DeadLetterDiscarded { .. } => {}
        }
    }
    let change = retries(after) - retries(before);
    if change != 0.0 {
        metrics::gauge!("retry_queue_depth").increment(change);
    }
}

/// Runs of a job that wait for their next attempt.
pub(crate) fn retries(job: &Job) -> f64 {
    job.hot.runs.iter().filter(|r| r.state() == RunState::RetryWait).count() as f64
}
