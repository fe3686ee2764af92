#!/usr/bin/env python3
"""Writes the Grafana boards of this folder: change the panels here, run it, and commit `dashboards` with it.

    deploy/grafana/boards.py            writes dashboards/*.json
    deploy/grafana/boards.py --check    fails when they are not what this file says

A panel has a title, a unit, a description, and queries with their legends. Panels stand three to a row, or six if they are small, in
their order. Every query names `$job`; boards of one node, one tenant or one pool have a variable for it. `make test-prometheus`
runs every query on a real node.
"""

import json
import pathlib
import sys
from typing import NamedTuple

FOLDER = pathlib.Path(__file__).resolve().parent / "dashboards"
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Columns of a board.
WIDTH = 24


class Query(NamedTuple):
    expression: str
    legend: str


class Panel(NamedTuple):
    title: str
    description: str
    unit: str
    queries: list[Query]
    kind: str = "timeseries"
    stacked: bool = False

    @property
    def size(self) -> tuple[int, int]:
        return (4, 4) if self.kind == "stat" else (8, 8)


class Board(NamedTuple):
    uid: str
    title: str
    description: str
    variables: list[tuple[str, str]]
    rows: list[tuple[str, list[Panel]]]


def stat(title: str, unit: str, expression: str, description: str) -> Panel:
    return Panel(title, description, unit, [Query(expression, title)], "stat")


def lines(title: str, unit: str, description: str, *queries: tuple[str, str]) -> Panel:
    return Panel(title, description, unit, [Query(*query) for query in queries])


def stack(title: str, unit: str, description: str, *queries: tuple[str, str]) -> Panel:
    return Panel(title, description, unit, [Query(*query) for query in queries], stacked=True)


def row(title: str, *panels: Panel) -> tuple[str, list[Panel]]:
    return title, list(panels)


def quantile(q: str, metric: str, by: str = "le", of: str = 'job="$job"') -> str:
    """A quantile of a histogram."""
    return f"histogram_quantile({q}, sum by ({by}) (rate({metric}_bucket{{{of}}}[$__rate_interval])))"


def quantiles(metric: str, of: str = 'job="$job"') -> list[tuple[str, str]]:
    """Three quantiles of a histogram, with their legends."""
    return [(quantile(q, metric, of=of), legend) for q, legend in (("0.5", "p50"), ("0.95", "p95"), ("0.99", "p99"))]


def per_second(metric: str, by: str, more: str = "") -> str:
    return f'sum by ({by}) (rate({metric}{{job="$job"{more}}}[$__rate_interval]))'


def level(metric: str, by: str, more: str = "") -> str:
    return f'sum by ({by}) ({metric}{{job="$job"{more}}})'


NODE = ', instance=~"$instance"'
TENANT = ', tenant=~"$tenant"'
POOL = ', pool=~"$pool"'
ENDED = ', state=~"SUCCESS|FAILED|TIMEOUT"'

OVERVIEW = Board(
    "campanile-overview",
    "Campanile / overview",
    "Is anything wrong now? All nodes of a cluster together.",
    [],
    [
        row(
            "Now",
            stat("Nodes up", "none", 'sum(up{job="$job"})', "Nodes that answer Prometheus."),
            stat(
                "Firing alerts",
                "none",
                'count(ALERTS{job="$job", alertstate="firing"}) or vector(0)',
                "Alerts of deploy/prometheus that fire. Each has a page in docs/runbooks.",
            ),
            stat(
                "Fires a second",
                "reqps",
                'schedule_qps{job="$job"}',
                "Runs that schedules created, a second, over five minutes (schedule_qps).",
            ),
            stat(
                "Success rate",
                "percentunit",
                'run_success_rate{job="$job"}',
                "Runs that succeeded, of those that ended and were not canceled, over five minutes (run_success_rate).",
            ),
            stat(
                "Trigger delay p95",
                "ms",
                'trigger_delay_ms_p95{job="$job"}',
                "95 % of the runs are created within this time after they are due (trigger_delay_ms_p95). The alert is at 2,000 ms.",
            ),
            stat(
                "Dead letters a minute",
                "none",
                'dlq_growth_rate{job="$job"}',
                "Runs that failed after their last attempt, a minute (dlq_growth_rate). The alert is at 500.",
            ),
        ),
        row(
            "Schedules",
            lines(
                "Trigger delay",
                "ms",
                "From the due instant to the creation of the run. It grows when a node lacks processor time or its disk is slow.",
                *quantiles("trigger_delay_ms"),
            ),
            lines(
                "Runs created",
                "reqps",
                "Runs that schedules fire, and that callers trigger.",
                (per_second("schedule_fires_total", "job"), "schedules"),
                (per_second("campanile_manual_triggers_total", "job"), "callers"),
            ),
            lines(
                "Misfires",
                "reqps",
                "Due instants that were decided later than the misfire threshold of their job. The alert is at three times the average.",
                (per_second("misfire_count", "job"), "misfires"),
                ('campanile:misfire_count:baseline1d{job="$job"}', "average of a day"),
            ),
            stack(
                "Instants without a run, by reason",
                "reqps",
                "Due instants that made no run of their own, and why: pauses, policies, misfires.",
                (per_second("campanile_instants_skipped_total", "reason"), "{{reason}}"),
            ),
        ),
        row(
            "Runs",
            lines(
                "Dispatch delay",
                "ms",
                "From the creation of a run to its first attempt. It grows when executors or permits are missing.",
                *quantiles("dispatch_delay_ms"),
            ),
            stack(
                "Runs ended, by state",
                "reqps",
                "How runs end, all attempts counted.",
                (per_second("runs_ended_total", "state"), "{{state}}"),
            ),
            lines("Duration of runs", "ms", "From the first attempt of a run to its end.", *quantiles("campanile_run_duration_ms")),
            lines(
                "Failures and timeouts",
                "percentunit",
                "Shares of the runs that ended and were not canceled. The alerts are at 5 %.",
                ('run_failure_rate{job="$job"}', "failed or timed out"),
                ('run_timeout_rate{job="$job"}', "timed out"),
            ),
            lines(
                "Retries",
                "none",
                "Runs that wait for their next attempt, and attempts a second that ended with another one to follow.",
                (level("retry_queue_depth", "job"), "waiting"),
                (per_second("campanile_retries_total", "job"), "retries a second"),
            ),
            lines(
                "Dead letters",
                "reqps",
                "Runs that failed after their last attempt.",
                (per_second("dead_letters_total", "job"), "dead letters a second"),
            ),
        ),
        row(
            "Work at hand",
            lines(
                "Open runs",
                "none",
                "Runs that have not ended, those that executors hold, and those that wait for an executor (dispatch_queue_lag).",
                (level("campanile_open_runs", "job"), "open"),
                (level("campanile_attempts_running", "job"), "running"),
                (level("dispatch_queue_lag", "job"), "wait for an executor"),
            ),
            lines(
                "Executors",
                "none",
                "Executor sessions by state, and sessions lost in the last five minutes.",
                (level("campanile_executor_sessions", "state"), "{{state}}"),
                ('campanile:executor_heartbeat_lost:increase5m{job="$job"}', "lost in 5 min"),
            ),
            lines("Jobs", "none", "Jobs that are not deleted.", (level("campanile_jobs", "job"), "jobs")),
        ),
    ],
)

TENANTS = Board(
    "campanile-tenant",
    "Campanile / tenant",
    "What a tenant does, and how near it is to its limits. A node names the tenants with most activity; the others together are `other`.",
    [("tenant", 'label_values(campanile_tenant_jobs{job="$job"}, tenant)')],
    [
        row(
            "Limits",
            lines(
                "Running",
                "none",
                "Runs that hold a permit, and the limit maxConcurrentRuns where there is one.",
                (level("campanile_tenant_running", "tenant", TENANT), "{{tenant}}"),
                (f'max by (tenant) (campanile_tenant_running_limit{{job="$job"{TENANT}}})', "{{tenant}} limit"),
            ),
            lines(
                "Waiting",
                "none",
                "Runs that wait for a permit or an executor, and the limit maxQueuedRuns where there is one.",
                (level("campanile_tenant_waiting", "tenant", TENANT), "{{tenant}}"),
                (f'max by (tenant) (campanile_tenant_waiting_limit{{job="$job"{TENANT}}})', "{{tenant}} limit"),
            ),
            lines(
                "Jobs",
                "none",
                "Jobs that are not deleted, and the limit maxJobs where there is one.",
                (level("campanile_tenant_jobs", "tenant", TENANT), "{{tenant}}"),
                (f'max by (tenant) (campanile_tenant_jobs_limit{{job="$job"{TENANT}}})', "{{tenant}} limit"),
            ),
        ),
        row(
            "Runs",
            lines(
                "Runs fired",
                "reqps",
                "Runs that schedules created.",
                (per_second("campanile_tenant_fires_total", "tenant", TENANT), "{{tenant}}"),
            ),
            stack(
                "Runs ended, by state",
                "reqps",
                "How runs end, all attempts counted.",
                (per_second("campanile_tenant_runs_ended_total", "tenant, state", TENANT), "{{tenant}} {{state}}"),
            ),
            lines(
                "Success rate",
                "percentunit",
                "Runs that succeeded, of those that ended and were not canceled.",
                (
                    per_second("campanile_tenant_runs_ended_total", "tenant", TENANT + ', state="SUCCESS"')
                    + " / ("
                    + per_second("campanile_tenant_runs_ended_total", "tenant", TENANT + ENDED)
                    + " > 0)",
                    "{{tenant}}",
                ),
            ),
            lines(
                "Mean wait for an executor",
                "s",
                "From the creation of a run to its first attempt, on average.",
                (
                    per_second("campanile_tenant_dispatch_seconds_total", "tenant", TENANT)
                    + " / ("
                    + per_second("campanile_tenant_runs_started_total", "tenant", TENANT)
                    + " > 0)",
                    "{{tenant}}",
                ),
            ),
            lines(
                "Mean duration",
                "s",
                "From the first attempt of a run to its end, on average.",
                (
                    per_second("campanile_tenant_run_seconds_total", "tenant", TENANT)
                    + " / ("
                    + per_second("campanile_tenant_runs_ended_total", "tenant", TENANT)
                    + " > 0)",
                    "{{tenant}}",
                ),
            ),
            lines(
                "Runs at once",
                "none",
                "Runs that are running, on average: seconds of runs that ended, a second.",
                (per_second("campanile_tenant_run_seconds_total", "tenant", TENANT), "{{tenant}}"),
            ),
        ),
        row(
            "Trouble",
            lines(
                "Retries",
                "reqps",
                "Attempts that ended with another attempt to follow.",
                (per_second("campanile_tenant_retries_total", "tenant", TENANT), "{{tenant}}"),
            ),
            lines(
                "Dead letters",
                "reqps",
                "Runs that failed after their last attempt.",
                (per_second("campanile_tenant_dead_letters_total", "tenant", TENANT), "{{tenant}}"),
            ),
            lines(
                "Misfires",
                "reqps",
                "Due instants that were decided later than the misfire threshold of their job.",
                (per_second("campanile_tenant_misfires_total", "tenant", TENANT), "{{tenant}}"),
            ),
        ),
    ],
)

INSTANCES = ("instance", 'label_values(campanile_jobs{job="$job"}, instance)')

NODES = Board(
    "campanile-node-and-cluster",
    "Campanile / node and cluster",
    "Each node by itself: its machine, its interfaces, its part of the cluster.",
    [INSTANCES],
    [
        row(
            "Machine",
            lines(
                "Processor",
                "percentunit",
                "Processor time of the node, of what it may use. The alert is at 80 %.",
                (f'campanile:cpu_use:rate5m{{job="$job"{NODE}}}', "{{instance}}"),
            ),
            lines(
                "Memory",
                "percentunit",
                "Memory of the node, of what it may use. The alert is at 80 %.",
                (f'campanile:memory_use:ratio{{job="$job"{NODE}}}', "{{instance}}"),
            ),
            lines(
                "Memory in bytes",
                "bytes",
                "Memory of the node that is in RAM.",
                (level("process_resident_memory_bytes", "instance", NODE), "{{instance}}"),
            ),
            lines(
                "Open files",
                "percentunit",
                "Files and sockets, of those that the node may have open.",
                (f'process_open_fds{{job="$job"{NODE}}} / process_max_fds', "{{instance}}"),
            ),
            lines("Threads", "none", "Threads of the process.", (level("process_threads", "instance", NODE), "{{instance}}")),
            lines(
                "Time since the start",
                "s",
                "It falls to 0 when a node starts.",
                (f'time() - process_start_time_seconds{{job="$job"{NODE}}}', "{{instance}}"),
            ),
        ),
        row(
            "Cluster",
            lines("Shards", "none", "Shards that each node serves.", (level("campanile_shards_served", "instance", NODE), "{{instance}}")),
            lines(
                "Members",
                "none",
                "Nodes that each node believes to live, and those of them that did not answer of late.",
                (level("campanile_members", "instance", NODE), "{{instance}} live"),
                (level("campanile_members_suspect", "instance", NODE), "{{instance}} suspected"),
            ),
            lines(
                "Shards taken",
                "reqps",
                "Shards that a node began to serve, and those that could not be loaded at once.",
                (per_second("campanile_shards_taken_total", "instance", NODE), "{{instance}}"),
                (per_second("campanile_shard_load_failures_total", "instance", NODE), "{{instance}} failed"),
            ),
            stack(
                "Calls to other nodes",
                "reqps",
                "Calls over the gateway, by result.",
                (per_second("campanile_gateway_calls_total", "result", NODE), "{{result}}"),
            ),
            stack(
                "Steps of the ownership protocol",
                "reqps",
                "Heartbeats, claims, fences and hand-overs; requests to the store that were not answered in time.",
                (per_second("campanile_ownership_transitions_total", "transition", NODE), "{{transition}}"),
                (per_second("campanile_ownership_unknown_answers_total", "job", NODE), "not answered"),
            ),
            lines(
                "Membership",
                "pps",
                "Packets that nodes sent and received, and packets that were refused.",
                (per_second("campanile_membership_packets_total", "way", NODE), "{{way}}"),
                (per_second("campanile_membership_refused_total", "job", NODE), "refused"),
            ),
            lines(
                "Links",
                "none",
                "Nodes to which calls can be sent.",
                (level("campanile_gateway_links", "instance", NODE), "{{instance}}"),
            ),
            lines(
                "Members that went",
                "reqps",
                "Members that were seen to go, and times that others took the node for down.",
                (per_second("campanile_membership_downs_total", "instance", NODE), "{{instance}} saw one go"),
                (per_second("campanile_membership_rejoins_total", "instance", NODE), "{{instance}} was taken for down"),
            ),
            lines(
                "Stalls and clocks",
                "reqps",
                "Times that the node stood still, and that its clock guard changed its mind.",
                (per_second("campanile_node_away_total", "instance", NODE), "{{instance}} stood still"),
                (per_second("campanile_clock_verdict_changes_total", "instance", NODE), "{{instance}} clock"),
            ),
        ),
        row(
            "Interfaces",
            stack(
                "HTTP requests by status",
                "reqps",
                "Requests, by the status of their answer.",
                (per_second("campanile_http_requests_total", "status", NODE), "{{status}}"),
            ),
            lines(
                "HTTP p95 by operation",
                "ms",
                "95 % of the requests of an operation are answered within this time.",
                (
                    quantile("0.95", "campanile_http_request_ms", "le, operation", 'job="$job"' + NODE),
                    "{{operation}}",
                ),
            ),
            lines(
                "RPC",
                "none",
                "Connections, and calls a second.",
                (level("campanile_rpc_connections", "instance", NODE), "{{instance}} connections"),
                (per_second("campanile_rpc_calls_total", "instance", NODE), "{{instance}} calls a second"),
            ),
            lines(
                "Refused",
                "reqps",
                "Calls refused because queues were full, connections without a place, greetings and handshakes refused.",
                (per_second("campanile_overloaded_total", "job", NODE), "overloaded"),
                (per_second("campanile_http_connections_refused_total", "job", NODE), "HTTP connections"),
                (per_second("campanile_rpc_hellos_refused_total", "job", NODE), "RPC greetings"),
                (per_second("campanile_tls_handshakes_failed_total", "job", NODE), "TLS handshakes"),
                (per_second("campanile_gateway_refused_total", "job", NODE), "calls of other nodes"),
            ),
            lines(
                "Watches",
                "none",
                "Watches of runs and jobs, over RPC and HTTP.",
                (level("campanile_watches", "instance", NODE), "{{instance}}"),
            ),
            lines(
                "Audit trail",
                "reqps",
                "Refused calls that are counted in the audit trail, and records that were lost.",
                (per_second("campanile_audit_refusals_total", "job", NODE), "refusals"),
                (per_second("campanile_audit_lost_total", "job", NODE), "lost"),
            ),
        ),
        row(
            "Inside",
            lines(
                "Job actors",
                "none",
                "Jobs that are actors now, and entries of the timing wheels.",
                (level("campanile_active_job_actors", "instance", NODE), "{{instance}} actors"),
                (level("campanile_wheel_entries", "instance", NODE), "{{instance}} wheel"),
            ),
            lines(
                "Activations and panics",
                "reqps",
                "Jobs that became actors; turns that failed; jobs that waited for the read model.",
                (per_second("campanile_job_activations_total", "instance", NODE), "{{instance}}"),
                (per_second("campanile_job_actor_panics_total", "instance", NODE), "{{instance}} failed"),
                (per_second("campanile_jobs_postponed_total", "instance", NODE), "{{instance}} postponed"),
            ),
            lines(
                "Messages between jobs",
                "none",
                "Messages that are not settled, and those that were given up.",
                (level("campanile_outbox_messages", "instance", NODE), "{{instance}}"),
                (level("campanile_outbox_given_up", "instance", NODE), "{{instance}} given up"),
            ),
            stack(
                "Hooks",
                "reqps",
                "Hooks of ended runs, by outcome.",
                (per_second("campanile_hooks_total", "outcome", NODE), "{{outcome}}"),
            ),
            lines(
                "Jobs from files",
                "none",
                "Files that were put aside, and jobs that the directory of files changed, a second.",
                (level("campanile_files_broken", "instance", NODE), "{{instance}} broken"),
                (per_second("campanile_files_jobs_changed_total", "instance", NODE), "{{instance}} changes a second"),
            ),
        ),
    ],
)

STORE = Board(
    "campanile-store",
    "Campanile / store",
    "Journal, read model, history, snapshots and disk; the CQL store of a cluster.",
    [INSTANCES],
    [
        row(
            "Journal",
            lines(
                "Append",
                "s",
                "One batch: write and sync. It is part of every answer.",
                *quantiles("campanile_journal_append_seconds", of='job="$job"' + NODE),
            ),
            lines(
                "Sync alone",
                "s",
                "The sync of one batch, of a node with a directory of its own.",
                *quantiles("campanile_store_journal_sync_seconds", of='job="$job"' + NODE),
            ),
            lines(
                "Frames and batches",
                "reqps",
                "Frames made durable, and batches, which share a sync.",
                (per_second("campanile_journal_frames_total", "instance", NODE), "{{instance}} frames"),
                (per_second("campanile_journal_batches_total", "instance", NODE), "{{instance}} batches"),
            ),
            lines(
                "Bytes written",
                "Bps",
                "Bytes of frames, and of journal files with headers and padding.",
                (per_second("campanile_journal_bytes_total", "instance", NODE), "{{instance}} frames"),
                (per_second("campanile_store_journal_bytes_total", "instance", NODE), "{{instance}} files"),
            ),
            lines(
                "Frames in flight",
                "none",
                "Frames handed to the journal and not yet durable.",
                (level("campanile_journal_in_flight_frames", "instance", NODE), "{{instance}}"),
            ),
        ),
        row(
            "Read model",
            lines(
                "Lag",
                "s",
                "How long the oldest durable event has waited for the read model. The alert is at 60 s.",
                (f'campanile_projection_lag_seconds{{job="$job"{NODE}}}', "{{instance}}"),
            ),
            lines(
                "Lag in events",
                "none",
                "Durable events that the read model does not show yet.",
                (level("campanile_projection_lag_events", "instance", NODE), "{{instance}}"),
            ),
            lines(
                "Rows",
                "reqps",
                "Rows written, and batches that the store did not take at once.",
                (per_second("campanile_projected_rows_total", "instance", NODE), "{{instance}}"),
                (per_second("campanile_projection_failures_total", "instance", NODE), "{{instance}} failed"),
            ),
        ),
        row(
            "Space",
            lines(
                "Stored",
                "bytes",
                "What takes the space of the directory.",
                (level("campanile_history_stored_bytes", "instance", NODE), "{{instance}} history"),
                (level("campanile_journal_stored_bytes", "instance", NODE), "{{instance}} journal"),
                (level("campanile_snapshots_stored_bytes", "instance", NODE), "{{instance}} snapshots"),
            ),
            lines(
                "Disk",
                "bytes",
                "Free space of the file system, and its size.",
                (level("campanile_disk_free_bytes", "instance", NODE), "{{instance}} free"),
                (level("campanile_disk_size_bytes", "instance", NODE), "{{instance}} size"),
            ),
            lines(
                "Too little space",
                "none",
                "1 while there is too little space, by reason.",
                (f'campanile_disk_short{{job="$job"{NODE}}}', "{{instance}} {{reason}}"),
            ),
            lines(
                "History deleted",
                "reqps",
                "Rows that retention deleted, and compactions of all history.",
                (per_second("campanile_history_rows_expired_total", "instance", NODE), "{{instance}} rows"),
                (per_second("campanile_history_compactions_total", "instance", NODE), "{{instance}} compactions"),
            ),
        ),
        row(
            "Snapshots",
            lines(
                "Snapshots",
                "reqps",
                "Snapshots that were published, and those that could not be written.",
                (per_second("campanile_snapshots_total", "instance", NODE), "{{instance}}"),
                (per_second("campanile_snapshot_failures_total", "instance", NODE), "{{instance}} failed"),
            ),
            lines(
                "Owed",
                "s",
                "The longest time for which a shard has owed a snapshot. The alert is at an hour.",
                (f'campanile_snapshot_owed_seconds{{job="$job"{NODE}}}', "{{instance}}"),
            ),
            lines(
                "Read at take-overs",
                "Bps",
                "Bytes of snapshots and of lanes, read when shards were taken.",
                (per_second("campanile_snapshot_bytes_read_total", "instance", NODE), "{{instance}} snapshots"),
                (per_second("campanile_replayed_bytes_total", "instance", NODE), "{{instance}} lanes"),
            ),
            lines(
                "Replayed",
                "reqps",
                "Frames and rows of lanes, read when shards were taken, and shards read ahead.",
                (per_second("campanile_replayed_frames_total", "instance", NODE), "{{instance}} frames"),
                (per_second("campanile_replayed_rows_total", "instance", NODE), "{{instance}} rows"),
                (per_second("campanile_shards_read_ahead_total", "instance", NODE), "{{instance}} shards ahead"),
            ),
        ),
        row(
            "CQL",
            stack(
                "Requests",
                "reqps",
                "Requests to the CQL servers, by what they are for.",
                (per_second("campanile_cql_requests_total", "kind", NODE), "{{kind}}"),
            ),
            lines(
                "Errors",
                "reqps",
                "Requests that failed or were not answered in time, and LWTs of which nobody knows whether they were applied.",
                (per_second("campanile_cql_errors_total", "instance", NODE), "{{instance}} failed"),
                (per_second("campanile_cql_unknown_lwts_total", "instance", NODE), "{{instance}} unknown"),
            ),
            lines(
                "Rows written",
                "reqps",
                "Rows of the read model.",
                (per_second("campanile_cql_rows_written_total", "instance", NODE), "{{instance}}"),
            ),
        ),
    ],
)

EXECUTORS = Board(
    "campanile-executors",
    "Campanile / executors",
    "Pools and their executors. A node names the pools with most activity; the others together are `other`.",
    [("pool", 'label_values(campanile_pool_running{job="$job"}, pool)')],
    [
        row(
            "Capacity",
            lines(
                "Executors",
                "none",
                "Executors that are connected, by pool.",
                (level("campanile_pool_executors", "pool", POOL), "{{pool}}"),
            ),
            lines(
                "Places in use",
                "percentunit",
                "Attempts that executors hold, of those that they may run at once.",
                (
                    level("campanile_pool_running", "pool", POOL) + " / (" + level("campanile_pool_slots", "pool", POOL) + " > 0)",
                    "{{pool}}",
                ),
            ),
            lines(
                "Waiting",
                "none",
                "Runs with a permit that wait for an executor.",
                (level("campanile_pool_waiting", "pool", POOL), "{{pool}}"),
            ),
            lines(
                "Places and credit",
                "none",
                "Attempts that executors may run at once, and runs that they would take now.",
                (level("campanile_pool_slots", "pool", POOL), "{{pool}} places"),
                (level("campanile_pool_credit", "pool", POOL), "{{pool}} credit"),
            ),
            lines("States", "none", "Executor sessions by state.", (level("campanile_executor_sessions", "state"), "{{state}}")),
            lines(
                "Lost",
                "reqps",
                "Executor sessions whose lease ended.",
                (per_second("executor_heartbeat_lost", "instance"), "{{instance}}"),
            ),
        ),
        row(
            "Work",
            lines(
                "Started",
                "reqps",
                "Runs whose first attempt started.",
                (per_second("campanile_pool_runs_started_total", "pool", POOL), "{{pool}}"),
            ),
            stack(
                "Ended, by state",
                "reqps",
                "How runs end, all attempts counted.",
                (per_second("campanile_pool_runs_ended_total", "pool, state", POOL), "{{pool}} {{state}}"),
            ),
            lines(
                "Mean wait for an executor",
                "s",
                "From the creation of a run to its first attempt, on average.",
                (
                    per_second("campanile_pool_dispatch_seconds_total", "pool", POOL)
                    + " / ("
                    + per_second("campanile_pool_runs_started_total", "pool", POOL)
                    + " > 0)",
                    "{{pool}}",
                ),
            ),
            lines(
                "Mean duration",
                "s",
                "From the first attempt of a run to its end, on average.",
                (
                    per_second("campanile_pool_run_seconds_total", "pool", POOL)
                    + " / ("
                    + per_second("campanile_pool_runs_ended_total", "pool", POOL)
                    + " > 0)",
                    "{{pool}}",
                ),
            ),
            lines(
                "Retries and dead letters",
                "reqps",
                "Attempts that ended with another to follow, and runs that failed after their last one.",
                (per_second("campanile_pool_retries_total", "pool", POOL), "{{pool}} retries"),
                (per_second("campanile_pool_dead_letters_total", "pool", POOL), "{{pool}} dead letters"),
            ),
            lines(
                "Fires and misfires",
                "reqps",
                "Runs that schedules created, and due instants that were decided later than the misfire threshold of their job.",
                (per_second("campanile_pool_fires_total", "pool", POOL), "{{pool}} fires"),
                (per_second("campanile_pool_misfires_total", "pool", POOL), "{{pool}} misfires"),
            ),
        ),
        row(
            "Attempts",
            lines(
                "Running and stopping",
                "none",
                "Attempts that executors hold, those whose body was told to stop, and those of them that take too long.",
                (level("campanile_attempts_running", "job"), "running"),
                (level("campanile_attempts_stopping", "job"), "stopping"),
                (level("campanile_attempts_stop_overdue", "job"), "overdue"),
            ),
            lines(
                "Assignments",
                "reqps",
                "Attempts that were sent to executors.",
                (per_second("campanile_assignments_total", "instance"), "{{instance}}"),
            ),
            lines(
                "Refused",
                "reqps",
                "What executors said of attempts that are not theirs, and connections closed for it.",
                (per_second("campanile_executor_claims_refused_total", "job"), "claims"),
                (per_second("campanile_executor_guessers_closed_total", "job"), "connections closed"),
            ),
            lines(
                "Output dropped",
                "Bps",
                "Output of bodies beyond the limit of an attempt, and output that came faster than it could be stored.",
                (per_second("campanile_store_log_bytes_dropped_total", "job"), "over the limit"),
                (per_second("campanile_log_bytes_refused_total", "job"), "too fast"),
            ),
        ),
    ],
)

BOARDS = [OVERVIEW, TENANTS, NODES, STORE, EXECUTORS]


def panel_json(panel: Panel, number: int, x: int, y: int) -> dict:
    width, height = panel.size
    custom = {
        "lineWidth": 1,
        "fillOpacity": 30 if panel.stacked else 5,
        "showPoints": "never",
        "stacking": {"mode": "normal" if panel.stacked else "none"},
    }
    options = (
        {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
        if panel.kind == "timeseries"
        else {"colorMode": "value", "graphMode": "area", "reduceOptions": {"calcs": ["lastNotNull"]}}
    )
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "gridPos": {"x": x, "y": y, "w": width, "h": height},
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, **({"custom": custom} if panel.kind == "timeseries" else {})},
            "overrides": [],
        },
        "options": options,
        "targets": [
            {"refId": chr(ord("A") + at), "datasource": DATASOURCE, "expr": query.expression, "legendFormat": query.legend}
            for at, query in enumerate(panel.queries)
        ],
    }


def variable(name: str, query: str, several: bool) -> dict:
    chosen = {"text": "All", "value": "$__all"} if several else {"text": "", "value": ""}
    of_all = {"multi": True, "includeAll": True, "allValue": ".*"} if several else {}
    source = {"query": query, "refId": name}
    return {
        "name": name,
        "label": name,
        "type": "query",
        "datasource": DATASOURCE,
        "query": source,
        "refresh": 2,
        "sort": 1,
        "current": chosen,
        **of_all,
    }


def link(board: Board) -> dict:
    look = {"icon": "dashboard", "tooltip": board.description, "tags": [], "asDropdown": False, "targetBlank": False, "includeVars": False}
    return {"title": board.title, "type": "link", "url": f"/d/{board.uid}?var-job=$job", "keepTime": True, **look}


def board_json(board: Board) -> dict:
    panels: list[dict] = []
    y = 0
    for title, row in board.rows:
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": title,
                "collapsed": False,
                "panels": [],
                "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1},
            }
        )
        y, x, height = y + 1, 0, 0
        for panel in row:
            width, tall = panel.size
            if x + width > WIDTH:
                x, y = 0, y + height
            panels.append(panel_json(panel, len(panels) + 1, x, y))
            x, height = x + width, tall
        y += height
    variables = [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": {"text": "", "value": ""}},
        variable("job", "label_values(campanile_jobs, job)", False),
        *(variable(name, query, True) for name, query in board.variables),
    ]
    links = [link(other) for other in BOARDS if other is not board]
    return {
        "uid": board.uid,
        "title": board.title,
        "description": board.description,
        "tags": ["campanile"],
        "schemaVersion": 38,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "links": links,
        "templating": {"list": variables},
        "panels": panels,
    }


def written(board: Board) -> str:
    return json.dumps(board_json(board), indent=1, ensure_ascii=False) + "\n"


def path(board: Board) -> pathlib.Path:
    return FOLDER / (board.uid.removeprefix("campanile-") + ".json")


def main() -> int:
    if "--check" not in sys.argv[1:]:
        for board in BOARDS:
            path(board).write_text(written(board))
        return 0
    stale = [board.uid for board in BOARDS if not path(board).exists() or path(board).read_text() != written(board)]
    more = {file.name for file in FOLDER.glob("*.json")} - {path(board).name for board in BOARDS}
    for name in [*stale, *sorted(more)]:
        print(f"{name}: dashboards is not what deploy/grafana/boards.py says; run it", file=sys.stderr)
    return 1 if stale or more else 0


if __name__ == "__main__":
    sys.exit(main())
