// Generated from the OpenAPI document of a node by scripts/types.mjs. Do not edit.

export interface paths {
    "/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The console; without one what this is, with links */
        get: operations["page.root"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What this is, with links and every route */
        get: operations["page.api"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/apply": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Bring jobs to what their manifests say, an answer for each */
        post: operations["job.apply"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The audit trail, newest first: who changed what and why, and who was refused */
        get: operations["audit.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The audit trail as lines of JSON, newest first, sent while it is read */
        get: operations["audit.export"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/backfills/{backfillId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A backfill or a replay, with its progress */
        get: operations["backfill.get"];
        put?: never;
        post?: never;
        /** Cancel a backfill: it starts nothing more, and its open runs are canceled */
        delete: operations["backfill.cancel"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/backfills/{backfillId}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Start nothing more of a backfill; its runs that are open go on */
        post: operations["backfill.pause"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/backfills/{backfillId}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Go on with a backfill that was paused */
        post: operations["backfill.resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/bulk": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Bulk operations, the newest first */
        get: operations["bulk.list"];
        put?: never;
        /** Pause, resume, trigger or delete all jobs that a filter names, or cancel, retry or redrive its runs; dryRun only counts them */
        post: operations["bulk.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/bulk/{bulkId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A bulk operation, with its progress */
        get: operations["bulk.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/bulk/{bulkId}/abort": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Begin no further items of a bulk operation; what it has done stays */
        post: operations["bulk.abort"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/bulk/{bulkId}/undo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resume what a bulk operation has paused, or pause what it has resumed, as far as nobody has changed it since */
        post: operations["bulk.undo"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/cluster/backup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** An archive of everything on this node, sent while it is made */
        get: operations["store.backup"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/cluster/clock/accept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Fire again after a jump of the clock: it is right */
        post: operations["clock.accept"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/cluster/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What this node saw happen, the newest first */
        get: operations["cluster.events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/cluster/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Runs that ended on closed days, with attempts and logs, oldest first: days of history, sent while they are read */
        get: operations["store.history"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/cluster/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Living nodes of the cluster, as this one sees them */
        get: operations["cluster.members"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/cluster/members/{node}/cordon": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Give a node nothing new; it keeps what it has */
        post: operations["cluster.cordon"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/cluster/members/{node}/uncordon": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Undo a node's cordon */
        post: operations["cluster.uncordon"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/cluster/node": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Facts of this node, with numbers of all nodes */
        get: operations["system.info"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/cluster/plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shards that are to move, and why */
        get: operations["cluster.plan"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/cluster/shards": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who owns each shard */
        get: operations["cluster.shards"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dead-letters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Dead letters, newest first */
        get: operations["dlq.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dead-letters/{runId}/discard": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Put a dead letter away; the run stays */
        post: operations["dlq.discard"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dead-letters/{runId}/redrive": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Run a dead letter again */
        post: operations["dlq.redrive"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dead-letters/causes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Dead letters by their cause, the most frequent first */
        get: operations["dlq.causes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/executors": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Executors that are connected, of all nodes */
        get: operations["executor.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Jobs, in order of their id */
        get: operations["job.list"];
        put?: never;
        /** Create a job */
        post: operations["job.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{jobId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A job */
        get: operations["job.get"];
        /** Replace a job's definition, given the version it replaces */
        put: operations["job.replace"];
        post?: never;
        /** Delete a job; its history stays */
        delete: operations["job.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{jobId}/backfill": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The newest backfill or replay of a job, with its progress */
        get: operations["job.backfillGet"];
        put?: never;
        /** Run instants of the past that made no run, or whose run failed, or all of them, behind the live runs */
        post: operations["job.backfill"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{jobId}/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Why a job fires or does not, or what became of one of its instants */
        get: operations["job.explain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{jobId}/ledger": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What became of every due instant */
        get: operations["job.ledger"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{jobId}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Start nothing more; bodies that run go on */
        post: operations["job.pause"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{jobId}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Run instants that made a run once more, with the params of that run */
        post: operations["job.replay"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{jobId}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Fire again, from the next due instant on */
        post: operations["job.resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{jobId}/rollback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Give a job the definition of an earlier version, as a new version */
        post: operations["job.rollback"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{jobId}/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A job's runs, newest first */
        get: operations["job.runs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{jobId}/statistics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Outcomes, durations and lateness of a job's runs */
        get: operations["job.statistics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{jobId}/trigger": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Run now; the same manualRunId makes one run */
        post: operations["job.trigger"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{jobId}/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The history of a job's definition, newest first: who changed what and why */
        get: operations["job.versions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{jobId}/watch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A job's definition as it changes */
        get: operations["job.watchOne"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/bulk": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Create many jobs: one in each line, an answer for each line */
        post: operations["job.createLines"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/by-name": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The job of a name */
        get: operations["job.find"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/dag": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Create a DAG of jobs that exist, by their ids */
        post: operations["dag.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/watch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Definitions of jobs as they change, as server-sent events */
        get: operations["job.watch"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/outbox": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Messages between jobs that wait or were given up */
        get: operations["outbox.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/outbox/{runId}/discard": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Take the messages of a run that were given up off the list */
        post: operations["outbox.discard"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/outbox/{runId}/resend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send the messages of a run that were given up again */
        post: operations["outbox.resend"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** What an apply of these manifests would do; changes nothing */
        post: operations["job.plan"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/pools": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Pools with their executors and waiting runs, of all nodes */
        get: operations["pool.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Runs of all jobs: those that are open, newest first, then those that have ended, the last one first */
        get: operations["run.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{runId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A run with its attempts; can wait for its end */
        get: operations["run.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{runId}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancel a run that is not final */
        post: operations["run.cancel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{runId}/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Decide about a run in NEEDS_CONFIRMATION */
        post: operations["run.confirm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{runId}/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Why a run exists, why it is not running, why it was late */
        get: operations["run.explain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{runId}/log": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The output of an attempt */
        get: operations["run.log"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{runId}/nodes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The nodes of a run of a DAG, with a layout */
        get: operations["dag.nodes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{runId}/nodes/mark": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Set the state of a node of a DAG run, SUCCESS or SKIPPED; what waits for it goes on */
        post: operations["dag.mark"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{runId}/nodes/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Pause one run of a DAG: no further node starts, and runs of nodes go on */
        post: operations["dag.pause"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{runId}/nodes/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resume a paused run of a DAG: nodes start again */
        post: operations["dag.resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{runId}/nodes/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Run nodes of a DAG run again; what did not run because of them follows */
        post: operations["dag.retry"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{runId}/priority": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Give a run that waits a priority of its own */
        post: operations["run.priority"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{runId}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Run a final run again, as its next generation */
        post: operations["run.retry"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{runId}/watch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A run as it changes, until its end */
        get: operations["run.watchOne"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/watch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Runs as they change, as server-sent events */
        get: operations["run.watch"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/load": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How many instants are due in each of the next minutes */
        get: operations["schedule.load"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** When a trigger would fire; creates nothing */
        post: operations["schedule.preview"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whose call this is */
        get: operations["session.get"];
        put?: never;
        /** Open a session of the console: the answer to a call with a token sets a cookie that stands for it */
        post: operations["session.open"];
        /** End a session of the console: the browser forgets the cookie */
        delete: operations["session.close"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/system/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stop firing and starting everywhere */
        post: operations["system.pause"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/system/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Undo the system's pause */
        post: operations["system.resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tenants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Tenants with their limits and use */
        get: operations["tenant.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tenants/{tenantId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A tenant */
        get: operations["tenant.get"];
        /** Set a tenant's limits (0 = none) */
        put: operations["tenant.set"];
        post?: never;
        /** Forget the limits and the pause of a tenant without jobs and open runs; its history stays */
        delete: operations["tenant.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tenants/{tenantId}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stop firing and starting for a tenant */
        post: operations["tenant.pause"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tenants/{tenantId}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Undo a tenant's pause */
        post: operations["tenant.resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tenants/{tenantId}/targets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The targets of a tenant that have settings */
        get: operations["target.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tenants/{tenantId}/targets/{target}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A target of a tenant, with the state of its breaker */
        get: operations["target.get"];
        /** Set all settings of a target: how many runs may call it, how often, how many retries, and when to stop */
        put: operations["target.set"];
        post?: never;
        /** Forget the settings of a target; jobs that name it have the default ones */
        delete: operations["target.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/assets/{file}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A file of the console */
        get: operations["page.asset"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/errors": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every error code and what it means */
        get: operations["page.errors"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The process answers */
        get: operations["page.healthz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Metrics in Prometheus' text form */
        get: operations["page.metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This document */
        get: operations["page.openapi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The node can take calls; 503 with the reasons when not */
        get: operations["page.readyz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/schemas/job.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** JSON Schema of manifests (kind: Job), for editors */
        get: operations["page.jobSchema"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description What an attempt does. */
        Action: {
            /** @constant */
            kind: "HANDLER";
            name: string;
        } | {
            command: string[];
            cwd: string | null;
            /** @description Default: {} */
            env: {
                [key: string]: string;
            };
            /** @constant */
            kind: "COMMAND";
            limits?: components["schemas"]["CommandLimits"];
            /**
             * Format: uint8
             * @description How much others go before it in the use of CPU, 0..=19.
             */
            nice?: number;
            /**
             * Format: uint32
             * @description Default: 256
             */
            outputCapKb: number;
            stdin: string | null;
        } | {
            /** @description A string is sent as it is, any other value as JSON. */
            body: components["schemas"]["Payload"] | null;
            /** @description Status from and to, both included, that is a success. Default: [200,299] */
            expectStatus: number[];
            /** @description Default: {} */
            headers: {
                [key: string]: string;
            };
            /** @constant */
            kind: "HTTP";
            /**
             * Format: uint8
             * @description Default: 0
             */
            maxRedirects: number;
            /** @description Default: "POST" */
            method: components["schemas"]["HttpMethod"];
            /**
             * Format: uint32
             * @description From the connection to the end of the answer; seconds. Default: 30
             */
            timeoutSec: number;
            url: string;
        } | {
            /** @description At most 10000; at most one from one node to another. Default: [] */
            edges: components["schemas"]["EdgeSpec"][];
            /** @description The first node that fails stops the whole run: no further node starts, and those that run are canceled. Default: false */
            failFast: boolean;
            /** @constant */
            kind: "DAG";
            /**
             * Format: uint32
             * @description Nodes whose runs are open at once, 1..1000. Default: 50
             */
            maxParallel: number;
            /** @description 1..1000 nodes; their order has no meaning. */
            nodes: components["schemas"]["NodeSpec"][];
            /**
             * Format: uint64
             * @description Seconds for a whole run, from its start; no limit when there is none. A run that reaches it ends TIMEOUT.
             */
            timeoutSec?: number | null;
        };
        /** @description What an attempt does. */
        ActionInput: {
            /** @constant */
            kind: "HANDLER";
            name: string;
        } | {
            command: string[];
            cwd?: string | null;
            /** @description Default: {} */
            env?: {
                [key: string]: string;
            };
            /** @constant */
            kind: "COMMAND";
            limits?: components["schemas"]["CommandLimits"];
            /**
             * Format: uint8
             * @description How much others go before it in the use of CPU, 0..=19.
             */
            nice?: number;
            /**
             * Format: uint32
             * @description Default: 256
             */
            outputCapKb?: number;
            stdin?: string | null;
        } | {
            /** @description A string is sent as it is, any other value as JSON. */
            body?: components["schemas"]["Payload"] | null;
            /** @description Status from and to, both included, that is a success. Default: [200,299] */
            expectStatus?: number[];
            /** @description Default: {} */
            headers?: {
                [key: string]: string;
            };
            /** @constant */
            kind: "HTTP";
            /**
             * Format: uint8
             * @description Default: 0
             */
            maxRedirects?: number;
            /** @description Default: "POST" */
            method?: components["schemas"]["HttpMethod"];
            /**
             * Format: uint32
             * @description From the connection to the end of the answer; seconds. Default: 30
             */
            timeoutSec?: number;
            url: string;
        } | {
            /** @description At most 10000; at most one from one node to another. Default: [] */
            edges?: components["schemas"]["EdgeSpec"][];
            /** @description The first node that fails stops the whole run: no further node starts, and those that run are canceled. Default: false */
            failFast?: boolean;
            /** @constant */
            kind: "DAG";
            /**
             * Format: uint32
             * @description Nodes whose runs are open at once, 1..1000. Default: 50
             */
            maxParallel?: number;
            /** @description 1..1000 nodes; their order has no meaning. */
            nodes: components["schemas"]["NodeSpecInput"][];
            /**
             * Format: uint64
             * @description Seconds for a whole run, from its start; no limit when there is none. A run that reaches it ends TIMEOUT.
             */
            timeoutSec?: number | null;
        };
        /** @description What was done. Jobs do not depend on each other: what failed for one is told with it, and applying again goes on. */
        AppliedView: {
            /** Format: uint64 */
            changed: number;
            /** Format: uint64 */
            created: number;
            /** Format: uint64 */
            deleted: number;
            /** Format: uint64 */
            failed: number;
            items: components["schemas"]["PlanItem"][];
            /** Format: uint64 */
            notBegun: number;
            /** Format: uint64 */
            unchanged: number;
        };
        /** @description `POST /plan`, `POST /apply`, `job.plan`, `job.apply`: manifests, and what is done with jobs that are not among them. */
        ApplyBody: {
            /** @description Files as they are written: YAML of one or several documents, or JSON. Default: [] */
            files?: components["schemas"]["ManifestFile"][];
            /** @description Of a plan: also say what the changes do to next fires, to the fullest minutes, and to the limits of tenants. */
            forecast?: boolean;
            /** @description Manifests as values. Default: [] */
            manifests?: components["schemas"]["Payload"][];
            /** @description Whose jobs these are: kept with each as the label `apply.owner`. A job of another owner is refused. */
            owner?: string | null;
            /** @description `planId` of a plan: refused with 409_STALE_VERSION when something else would be done by now. */
            planId?: string | null;
            /** @description Jobs of this owner, or with `pruneLabels`, that no manifest names are deleted. Default: false */
            prune?: boolean;
            /** @description With `prune`: only jobs with these labels are deleted, such as `team=payments`. With an owner too: of this owner. */
            pruneLabels?: string | null;
            /** @description Refuse objects of other kinds (a ServiceAccount beside a CronJob), which are passed over otherwise. */
            strict?: boolean;
            /** @description Jobs of other owners become this one's. Default: false */
            takeOver?: boolean;
            /** @description Tenant of manifests without a namespace. Default: the credential's; for operators `default`. */
            tenantId?: string | null;
        };
        /** @description Why a job was not brought to what its manifest says. */
        ApplyFailure: {
            code: string;
            message: string;
        };
        /** @description How far it came with a job. */
        ApplyOutcome: "DONE" | "FAILED" | "NOT_BEGUN";
        /** @description State of one attempt. */
        AttemptState: ("RUNNING" | "SUCCESS" | "FAILED" | "TIMEOUT" | "CANCELED") | "LOST" | "NOT_STARTED";
        /** @description An attempt as read. */
        AttemptView: {
            /** Format: uint32 */
            attempt: number;
            /** Format: uint64 */
            cpuMs: number | null;
            endedAt: components["schemas"]["Timestamp"] | null;
            errorCode: string | null;
            errorMessage: string | null;
            executorId: string;
            /** Format: uint32 */
            generation: number;
            /** Format: uint64 */
            maxRssKb: number | null;
            /** @description Its executor said that no further attempt would succeed: the run ended with attempts left. */
            permanent?: boolean;
            startedAt: components["schemas"]["Timestamp"];
            state: components["schemas"]["AttemptState"];
            /** Format: uint64 */
            token: number;
        };
        /** @description A record of the audit trail as read. */
        AuditView: {
            /** @description IP address of the caller. Absent: the node itself called. */
            address?: string | null;
            at: components["schemas"]["Timestamp"];
            /**
             * Format: uint64
             * @description Equal refusals within a minute, or things that one call changed.
             */
            count: number;
            jobId?: components["schemas"]["JobId"] | null;
            operation: string;
            /** @description `DONE`, or the code of the error. */
            outcome: string;
            reason?: string | null;
            requestId?: string | null;
            runId?: components["schemas"]["RunId"] | null;
            /** @description What it was about, if neither a job nor a run: a tenant, a node, a file. */
            target?: string | null;
            /** @description Absent: it is about no tenant. */
            tenantId?: string | null;
            /** @description Of the call, 32 hexadecimal digits. */
            traceId?: string | null;
            /** @description Name of the credential. Absent: its token was not known. */
            who?: string | null;
        };
        /** @description `job.backfill`, `POST /jobs/{jobId}/backfill`. */
        BackfillBody: {
            /** @description Only say what it would do. Default: false */
            dryRun?: boolean;
            /** @description First instant, included. */
            from: components["schemas"]["Timestamp"];
            /** @description Start the job's hooks when a run fails. Default: no. Default: false */
            hooks?: boolean;
            /** @description MISSING, FAILED or ALL; default MISSING. */
            mode?: components["schemas"]["BackfillMode"] | null;
            /**
             * Format: uint32
             * @description Runs that are open at once, 1 to 200; 1 under FORBID and QUEUE_ONE, whatever is asked for. Default 8.
             */
            parallelism?: number | null;
            reason?: string | null;
            /** @description Last instant, included. Instants that are not decided yet are left to the schedule. */
            to: components["schemas"]["Timestamp"];
            /** @description What happens with instants of which the ledger says nothing any more. Default: "SKIP" */
            unknown?: components["schemas"]["UnknownInstants"];
        };
        /**
         * Format: uint64
         * @description A backfill or a replay. Below 2^53. Its slot is its job's slot. 0: none, of a run that is in the lane of backfills and counts for
         *     none of them.
         */
        BackfillId: number;
        /** @description Which instants of a stretch of its past a job runs. */
        BackfillMode: "MISSING" | "FAILED" | "ALL" | "REPLAY";
        /** @description What became of a backfill so far. */
        BackfillProgress: {
            /**
             * Format: uint64
             * @description ... that have not ended.
             */
            active: number;
            /** Format: uint64 */
            canceled: number;
            /**
             * Format: uint64
             * @description ... because they cannot be told one by one.
             */
            differing?: number;
            /** @description Every instant up to here is decided; absent: none is. */
            doneUntil?: components["schemas"]["Timestamp"] | null;
            /**
             * Format: uint64
             * @description Instants that it passed over, because they had a run already.
             */
            existing: number;
            /**
             * Format: uint64
             * @description FAILED or TIMEOUT.
             */
            failed: number;
            /**
             * Format: uint64
             * @description ... because their run had not ended, or is not kept any more.
             */
            gone?: number;
            /**
             * Format: uint64
             * @description Runs that it made or opened again.
             */
            started: number;
            /** Format: uint64 */
            succeeded: number;
            /**
             * Format: uint64
             * @description ... because nothing is known of them.
             */
            unknown: number;
        };
        /** @description How a backfill stands. */
        BackfillState: ("RUNNING" | "CANCELED" | "DONE") | "PAUSED" | "CANCELING";
        /** @description A backfill or a replay as read. A dry run answers with the same without an id. */
        BackfillView: {
            backfillId?: components["schemas"]["BackfillId"] | null;
            createdAt?: components["schemas"]["Timestamp"] | null;
            /**
             * Format: uint64
             * @description ... that cannot be told one by one, because the schedule was another one then.
             */
            differing?: number;
            endedAt?: components["schemas"]["Timestamp"] | null;
            /**
             * Format: uint64
             * @description By the usual duration of the job's runs, and of those that it has ended; for the rest of it.
             */
            estimatedSec?: number | null;
            /**
             * Format: uint64
             * @description ... for which an earlier backfill made a run.
             */
            existing: number;
            /**
             * Format: uint64
             * @description ... whose run failed. Absent: there are too many runs to look at each of them.
             */
            failed?: number | null;
            from: components["schemas"]["Timestamp"];
            /**
             * Format: uint64
             * @description ... whose run has not ended, is not kept any more, or (of FAILED) was compensated.
             */
            gone?: number;
            /** @description Two of this kind run each instant twice. */
            hazard?: string | null;
            hooks: boolean;
            /**
             * Format: uint64
             * @description Instants of the interval.
             */
            instants: number;
            jobId: components["schemas"]["JobId"];
            /**
             * Format: uint64
             * @description ... that made no run, though they should have, and for which no earlier backfill made one.
             */
            missing: number;
            mode: components["schemas"]["BackfillMode"];
            /**
             * Format: uint32
             * @description As it is used: 1 under FORBID and QUEUE_ONE.
             */
            parallelism: number;
            progress?: components["schemas"]["BackfillProgress"] | null;
            reason?: string | null;
            /** @description Who asked for it. */
            requestedBy?: string | null;
            /** @description Absent in the answer of a dry run. */
            state?: components["schemas"]["BackfillState"] | null;
            /** @description Why it is PAUSED, or was canceled. */
            stateReason?: string | null;
            tenantId: string;
            /** @description The job's newest decided instant, where less of the interval is decided than was asked for. */
            to: components["schemas"]["Timestamp"];
            /**
             * Format: uint64
             * @description Runs that it makes or opens again.
             */
            toRun: number;
            /**
             * Format: uint64
             * @description ... of which the ledger says nothing any more.
             */
            unknown: number;
            unknownInstants: components["schemas"]["UnknownInstants"];
            /** @description Why it starts no run now: a code and a sentence. */
            waitReason?: string | null;
        };
        /**
         * @description How the delay between attempts grows.
         * @enum {string}
         */
        Backoff: "FIXED" | "EXPONENTIAL";
        /** @description State of a target's breaker. Of several nodes the worst one is told. */
        BreakerState: "CLOSED" | "RECOVERING" | "OPEN";
        /** @description A file that is put aside. */
        BrokenFile: {
            file: string;
            problems: string[];
        };
        /** @description What a bulk operation does with each of its items. */
        BulkAction: ("PAUSE" | "RESUME" | "TRIGGER" | "DELETE") | "CANCEL" | "RETRY" | "REDRIVE";
        /** @description `bulk.create`, `POST /bulk`. */
        BulkBody: {
            action: components["schemas"]["BulkAction"];
            /** @description Every job or run of the tenant is meant. Without it a filter needs at least one field. Default: false */
            all?: boolean;
            /** @description Only count, and show the first items. Default: false */
            dryRun?: boolean;
            /** @description Default: {} */
            filter?: components["schemas"]["BulkFilter"];
            /**
             * Format: uint64
             * @description Only of DELETE: the jobs are paused now and deleted so many seconds later. Until then `bulk.undo` resumes them.
             */
            graceSec?: number | null;
            reason?: string | null;
            /** @description Default: the credential's own; for operators every tenant. REDRIVE of operators needs it. */
            tenantId?: string | null;
        };
        /** @description An item that was not done, and why. */
        BulkFailureView: {
            code: string;
            /**
             * Format: uint64
             * @description The id of the job or the run.
             */
            id: number;
            message: string;
        };
        /**
         * @description Which jobs or runs a bulk operation is about: all that fit every field that is given. Of jobs (PAUSE, RESUME, TRIGGER, DELETE):
         *     `status`, `labels`, `text`. Of open runs (CANCEL): `state`, `jobId`, `labels`, `source`, `from`, `to`. Of failed runs (RETRY): the
         *     same. Of dead letters (REDRIVE): `jobId`, `from`, `to`, `cause`.
         */
        BulkFilter: {
            /** @description The `cause` of a dead letter, as `dlq.causes` tells it. */
            cause?: string | null;
            /** @description The first millisecond in which a run ended, or was created if it is open. */
            from?: components["schemas"]["Timestamp"] | null;
            jobId?: components["schemas"]["JobId"] | null;
            /** @description `key=value,key2!=value2,key3`, of the job. */
            labels?: string | null;
            source?: components["schemas"]["Source"] | null;
            /** @description One or several states of runs, with commas between them. */
            state?: string | null;
            status?: components["schemas"]["JobStatus"] | null;
            /** @description A part of the name, display name, description, owner or an annotation of the job. */
            text?: string | null;
            /** @description The last one. */
            to?: components["schemas"]["Timestamp"] | null;
        };
        /**
         * Format: uint64
         * @description A bulk operation. Below 2^53. Its slot is that of its tenant's home; of all tenants slot 0.
         */
        BulkId: number;
        /** @description An item that an operation is about: a job, or a run and its job. */
        BulkItemView: {
            /**
             * Format: uint64
             * @description The id of the job or the run.
             */
            id: number;
            /** @description Name of the job; absent: it was deleted. */
            name?: string | null;
            /** @description Status of the job, or state of the run. */
            state: string;
        };
        /** @description The answer of one line: the job that was made, or why none was. */
        BulkLine: {
            error?: components["schemas"]["Problem"] | null;
            /**
             * Format: uint64
             * @description Number of the line, from 1. Blank lines count and have no answer.
             */
            line: number;
            ok?: components["schemas"]["Created"] | null;
        };
        /** @description How a bulk operation stands. */
        BulkState: ("RUNNING" | "ABORTED" | "DONE") | "WAITING" | "ABORTING";
        /** @description A bulk operation with its progress. A dry run answers with the same without `bulkId`. */
        BulkView: {
            action: components["schemas"]["BulkAction"];
            bulkId?: components["schemas"]["BulkId"] | null;
            /**
             * Format: uint64
             * @description Runs that RETRY and REDRIVE left as they are, because their compensation was started: `run.retry` with `force` runs one again. Default: 0
             */
            compensated: number;
            createdAt?: components["schemas"]["Timestamp"] | null;
            /** @description Of a delete with a grace: when the deletion begins, as soon as the jobs are paused. */
            deleteAt?: components["schemas"]["Timestamp"] | null;
            /** Format: uint64 */
            done: number;
            endedAt?: components["schemas"]["Timestamp"] | null;
            /** Format: uint64 */
            failed: number;
            /** @description The first 10 that failed. */
            failures?: components["schemas"]["BulkFailureView"][];
            filter: components["schemas"]["BulkFilter"];
            /** @description Of a dry run: the first items. */
            first?: components["schemas"]["BulkItemView"][];
            /** Format: uint64 */
            graceSec?: number | null;
            /**
             * Format: uint64
             * @description Items that are still to be done; absent when `matched` is a lower bound.
             */
            left?: number | null;
            /**
             * Format: uint64
             * @description Items that were counted before it began.
             */
            matched: number;
            /** @description There were more: `matched` is a lower bound. */
            matchedMore: boolean;
            reason?: string | null;
            /** @description The credential that asked for it. */
            requestedBy?: string | null;
            state?: components["schemas"]["BulkState"] | null;
            /** @description Why it was aborted. */
            stateReason?: string | null;
            /** @description Absent: of all tenants. */
            tenantId?: string | null;
            /**
             * Format: uint64
             * @description Items that were as they should be already, or are gone.
             */
            unchanged: number;
            /** @description The operation that takes this one back. */
            undoneBy?: components["schemas"]["BulkId"] | null;
            /** @description The operation that this one takes back. */
            undoOf?: components["schemas"]["BulkId"] | null;
        };
        /**
         * @description Which callers may use the console.
         * @enum {string}
         */
        CallerKind: "OPERATOR" | "TENANT";
        /** @description Dead letters by cause, the most frequent first. */
        CausesView: {
            /**
             * Format: uint64
             * @description Dead letters that were counted.
             */
            counted: number;
            items: components["schemas"]["CauseView"][];
            /** @description There are more than are counted (10,000): these are the newest, of all tenants those of the first ones. */
            truncated: boolean;
        };
        /** @description Dead letters whose errors differ in numbers and ids only. */
        CauseView: {
            /** @description Of the error text without numbers and ids. The same text has the same cause in every job. */
            cause: string;
            /** Format: uint64 */
            count: number;
            firstAt: components["schemas"]["Timestamp"];
            /**
             * Format: uint64
             * @description Jobs that it met.
             */
            jobs: number;
            lastAt: components["schemas"]["Timestamp"];
            /** @description The error text of the newest one. */
            reason: string;
            /** @description The newest run. */
            runId: components["schemas"]["RunId"];
        };
        /** @description What happened. */
        ClusterEventKind: ("NODE_CAME" | "NODE_SUSPECTED" | "NODE_WELL_AGAIN" | "NODE_GONE" | "NODE_DRAINING" | "NODE_CORDONED" | "NODE_UNCORDONED" | "SESSION_OVER" | "SHARD_SERVED" | "SHARD_HANDED_OVER" | "NODE_CLOCK_RIGHT") | "SESSION_BEGUN" | "SHARD_LOST" | "NODE_CLOCK_WRONG";
        /** @description Something that the asked node saw or did. `GET /api/v1/cluster/events`, `cluster.events`: the newest first, since its start. */
        ClusterEventView: {
            at: components["schemas"]["Timestamp"];
            /** @description More about it: a session, an epoch, how much was replayed. */
            detail: string | null;
            kind: components["schemas"]["ClusterEventKind"];
            /** @description The node that it is about, where it is about one. */
            node: string | null;
            /** Format: uint16 */
            shard: number | null;
        };
        /** @description What each process of a command may use at most; the system it runs on sees to it. None = what the executor itself may. */
        CommandLimits: {
            /**
             * Format: uint64
             * @description Seconds of CPU; then SIGXCPU.
             */
            cpuSec?: number | null;
            /**
             * Format: uint64
             * @description MiB of a file that is written; then SIGXFSZ.
             */
            fileSizeMb?: number | null;
            /**
             * Format: uint64
             * @description MiB of address space; then the process gets no more.
             */
            memoryMb?: number | null;
            /**
             * Format: uint64
             * @description Files open at once.
             */
            openFiles?: number | null;
            /**
             * Format: uint64
             * @description Processes and threads of the executor's user, all counted; root is not bound.
             */
            processes?: number | null;
        };
        /**
         * @description What happens when an instant is due while a run of the job is active.
         * @enum {string}
         */
        ConcurrencyPolicy: "ALLOW" | "FORBID" | "REPLACE" | "QUEUE_ONE";
        /** @description `POST /runs/{runId}/confirm`: a person decides about a run in NEEDS_CONFIRMATION. */
        ConfirmBody: {
            decision: components["schemas"]["ConfirmDecision"];
            reason?: string | null;
        };
        /** @description What a person says of a run whose executor was lost, or of one whose body does not end. */
        ConfirmDecision: "RERUN" | "SUCCEEDED" | "FAILED" | "ENDED";
        /** @description Answer of a create. */
        Created: {
            jobId: components["schemas"]["JobId"];
            nextFireAt: components["schemas"]["Timestamp"] | null;
            status: components["schemas"]["JobStatus"];
        };
        /** @description Answer of `dag.create`. */
        DagCreated: {
            /** @description Name of the job that the DAG became. */
            dagId: string;
            jobId: components["schemas"]["JobId"];
            status: components["schemas"]["JobStatus"];
        };
        /** @description A text that shows a DAG. */
        DagDrawing: "MERMAID" | "ASCII";
        /** @description An edge of a run. */
        DagEdgeView: {
            from: string;
            /** @description What the condition has said, when it was not true. */
            outcome?: components["schemas"]["EdgeFact"] | null;
            to: string;
            when?: string | null;
        };
        /** @description `dag.mark`, `POST /runs/{runId}/nodes/mark`. */
        DagMarkBody: {
            /** @description Id of a node without an open run. */
            node: string;
            reason?: string | null;
            /** @description SUCCESS or SKIPPED. */
            state: components["schemas"]["NodeState"];
        };
        /** @description A node of a run. */
        DagNodeView: {
            /** @description The same as a sentence. */
            error?: string | null;
            /** @description Why it is FAILED, when its run does not say so. */
            failure?: components["schemas"]["NodeFailure"] | null;
            /**
             * Format: uint32
             * @description Of that run; 0: it was never started.
             */
            generation: number;
            id: string;
            /** @description Name of its job. */
            job: string;
            /**
             * Format: uint32
             * @description Place in the layout: layer from left to right and row in it, and the middle of the node in points.
             */
            layer: number;
            /** @description A person set the state. */
            marked?: boolean;
            /** Format: uint32 */
            row: number;
            rule: components["schemas"]["NodeRule"];
            /** @description Its newest run. */
            runId: components["schemas"]["RunId"] | null;
            state: components["schemas"]["NodeState"];
            /** Format: uint32 */
            x: number;
            /** Format: uint32 */
            y: number;
        };
        /** @description The pause of one run of a DAG. */
        DagPauseView: {
            /** @description The credential that paused it. */
            by?: string | null;
            reason?: string | null;
            since: components["schemas"]["Timestamp"];
        };
        /** @description `dag.retry`, `POST /runs/{runId}/nodes/retry`. */
        DagRetryBody: {
            /** @description And all nodes that come after them, also those that succeeded. Default: false */
            andAfter?: boolean;
            /** @description Ids of nodes that have ended. None: all that failed or were canceled. Default: [] */
            nodes?: string[];
            reason?: string | null;
        };
        /** @description A run of a DAG with its nodes. */
        DagRunView: {
            drawing?: string | null;
            edges: components["schemas"]["DagEdgeView"][];
            /** Format: uint32 */
            generation: number;
            /** Format: uint32 */
            height: number;
            jobId: components["schemas"]["JobId"];
            /** @description In the order of the definition. */
            nodes: components["schemas"]["DagNodeView"][];
            /** @description Set while the run is paused: no further node starts. */
            paused?: components["schemas"]["DagPauseView"] | null;
            runId: components["schemas"]["RunId"];
            state: components["schemas"]["RunState"];
            tenantId: string;
            /**
             * Format: uint64
             * @description Version of the definition that the run has.
             */
            version: number;
            /**
             * Format: uint32
             * @description Size of the layout, points.
             */
            width: number;
        };
        /** @description A dead letter. */
        DeadLetterView: {
            at: components["schemas"]["Timestamp"];
            /** Format: uint32 */
            attemptCount: number;
            /** @description Of the error text without numbers and ids: dead letters with the same one failed alike. Absent: of an earlier release. */
            cause?: string | null;
            jobId: components["schemas"]["JobId"];
            jobName: string | null;
            reason: string;
            runId: components["schemas"]["RunId"];
            tenantId: string;
        };
        /** @description What a node does without, while its read model is behind. Each level includes those before it. */
        DegradationLevel: "NORMAL" | "BACKFILLS_STOP" | "LOW_PRIORITY_WAITS" | "READ_MODEL_STRETCHED" | "TRIGGERS_REFUSED";
        /**
         * @description Which reading of a cron expression. The resolved one is stored and shown.
         * @enum {string}
         */
        Dialect: "AUTO" | "UNIX" | "QUARTZ";
        /** @description What an edge with a condition is for the node behind it, once the node before it succeeded. */
        EdgeFact: "NOT_TAKEN" | "BROKEN";
        /** @description `from` ends before `to` starts. */
        EdgeSpec: {
            from: string;
            to: string;
            /** @description A CEL expression over `parent.result` that is evaluated when `from` succeeded. While it is false, `to` counts `from` as skipped. */
            when?: string | null;
        };
        /** @description An executor as one node of a cluster sees it. */
        ExecutorAtNode: {
            /** Format: uint32 */
            credit: number;
            lastHeartbeatAt: components["schemas"]["Timestamp"];
            node: string;
            /** Format: uint32 */
            running: number;
            state: components["schemas"]["ExecutorState"];
        };
        /** @description How an executor stands. */
        ExecutorState: "READY" | "DISCONNECTED" | "SUSPECTED_LOST" | "DRAINING";
        /** @description An executor as read. */
        ExecutorView: {
            /** Format: uint32 */
            credit: number;
            executorId: string;
            labels: {
                [key: string]: string;
            };
            lastHeartbeatAt: components["schemas"]["Timestamp"];
            /** @description In a cluster: the nodes that it is registered with. Above are the sums and the newest. */
            nodes?: components["schemas"]["ExecutorAtNode"][];
            pools: string[];
            /** Format: uint32 */
            running: number;
            /** Format: uint64 */
            session: number;
            /** Format: uint32 */
            slots: number;
            state: components["schemas"]["ExecutorState"];
        };
        /** @description Why a run or a job is as it is. What cannot be known now is not in it. */
        ExplainView: {
            /** @description The instant that was asked for. */
            at?: components["schemas"]["Timestamp"] | null;
            jobId: components["schemas"]["JobId"];
            /** @description Absent: the job was deleted. */
            jobName?: string | null;
            /** @description Of an explanation of a job. */
            jobStatus?: components["schemas"]["JobStatus"] | null;
            /** @description When the node looked. */
            now: components["schemas"]["Timestamp"];
            reasons: components["schemas"]["ReasonView"][];
            /** @description Of an explanation of a run. */
            runId?: components["schemas"]["RunId"] | null;
            runState?: components["schemas"]["RunState"] | null;
            tenantId: string;
        };
        /** @description A hook of a run whose job was not started. */
        FailedHookView: {
            at: components["schemas"]["Timestamp"];
            /**
             * Format: uint32
             * @description Of the run when it ended.
             */
            generation: number;
            /** @description Which of the job's hooks: `onFailure`, `onSuccess`, `onTimeout` or `onDeadLetter`. */
            hook: string;
            /** @description Why it was refused or dropped. */
            reason?: string | null;
            state: components["schemas"]["HookFailure"];
            /** @description Name of the job that was to be started. */
            targetJob: string;
        };
        /** @description One field that differs, as manifests write it. */
        FieldChange: {
            /** @description Left out: it will have none, or the default. */
            after?: components["schemas"]["Payload"] | null;
            /** @description Left out: it had none, or the default. */
            before?: components["schemas"]["Payload"] | null;
            /** @description Such as `spec.schedule`. */
            field: string;
        };
        /** @description How a node's directory of files stands. */
        FilesView: {
            /** @description When they were brought to what the files say. */
            appliedAt: components["schemas"]["Timestamp"] | null;
            /** @description Put aside: their jobs stay as they are. */
            broken: components["schemas"]["BrokenFile"][];
            dir: string;
            /** @description Why nothing is applied now; it is tried again. */
            error?: string | null;
            /** Format: uint64 */
            files: number;
            /**
             * Format: uint64
             * @description Of those files that are not broken.
             */
            jobs: number;
        };
        /**
         * @description What a fixed-time schedule does with an instant that daylight saving removes.
         * @enum {string}
         */
        Gap: "SHIFT" | "SKIP";
        /** @description A list that is of all nodes of a cluster, as far as they answered in time. */
        Gathered: {
            items: components["schemas"]["ExecutorView"][];
            /** @description Nodes of whom nothing is in it. */
            missing?: components["schemas"]["MissingNode"][];
        };
        /** @description A list that is of all nodes of a cluster, as far as they answered in time. */
        Gathered2: {
            items: components["schemas"]["PoolView"][];
            /** @description Nodes of whom nothing is in it. */
            missing?: components["schemas"]["MissingNode"][];
        };
        /** @description What holds something. */
        HolderKind: ("RUN" | "JOB" | "EXECUTOR" | "TENANT" | "POOL") | "CALLER" | "DAG_NODE" | "TARGET";
        /** @description Something that a run or a job waits for. */
        HolderView: {
            /** @description Of a run, a job or a node. */
            id?: string | null;
            kind: components["schemas"]["HolderKind"];
            name?: string | null;
            /** @description Why, as its caller said. */
            reason?: string | null;
            since?: components["schemas"]["Timestamp"] | null;
            /** @description Its state, of a run or a node. */
            state?: string | null;
        };
        /** @description A job that is started. */
        Hook: {
            /**
             * @description It undoes what the run did: it is started once for the run, however often the run fails, and the run is started again only with
             *     `force`.
             */
            compensation?: boolean;
            /** @description Name of a job of the same tenant. */
            job: string;
            /** @description Laid over that job's params, with `run`, which tells of the run that ended. */
            params?: components["schemas"]["Payload"];
        };
        /** @description Why the job of a hook was not started. */
        HookFailure: "UNDELIVERED" | "REFUSED" | "DROPPED";
        /** @description Jobs that are started when a run ends; at most four of each kind. */
        Hooks: {
            /** @description When a run becomes a dead letter; besides those of `onFailure`. */
            onDeadLetter?: components["schemas"]["Hook"][];
            /** @description When a run ends FAILED or TIMEOUT and is not tried again. */
            onFailure?: components["schemas"]["Hook"][];
            /** @description When a run ends SUCCESS. */
            onSuccess?: components["schemas"]["Hook"][];
            /** @description When a run ends TIMEOUT and is not tried again; besides those of `onFailure`. */
            onTimeout?: components["schemas"]["Hook"][];
        };
        /**
         * @description Method of an HTTP action.
         * @enum {string}
         */
        HttpMethod: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
        /** @description A list that has one page. */
        Items: {
            items: components["schemas"]["TenantView"][];
        };
        /** @description A list that has one page. */
        Items2: {
            items: components["schemas"]["TargetView"][];
        };
        /** @description A list that has one page. */
        Items3: {
            items: components["schemas"]["MemberView"][];
        };
        /** @description A list that has one page. */
        Items4: {
            items: components["schemas"]["ShardView"][];
        };
        /** @description A list that has one page. */
        Items5: {
            items: components["schemas"]["ClusterEventView"][];
        };
        /** @description When a job is due by its schedule of now and by the planned one. A paused job is not due. */
        JobForecast: {
            /** @description The next 20 fires after the change. */
            after: components["schemas"]["Timestamp"][];
            /** @description The next 20 fires as it is now. */
            before: components["schemas"]["Timestamp"][];
            /** @description Changes of the clock within 13 months that remove or repeat an instant of the planned schedule. */
            clockChanges: string[];
        };
        /**
         * Format: uint64
         * @description A job. Below 2^53, so that JSON carries it. `id % SLOTS` = slot of (tenant, name).
         */
        JobId: number;
        /** @description A whole job with defaults. What `POST /jobs` and `job.create` take. */
        JobSpec: {
            /** @description Default: the handler named like the job. */
            action?: components["schemas"]["Action"] | null;
            /** @description Texts for people and programs: at most 64, each of at most 4 KiB. */
            annotations?: {
                [key: string]: string;
            };
            /** @description Default: "FORBID" */
            concurrencyPolicy: components["schemas"]["ConcurrencyPolicy"];
            /** @description Default: true */
            deadLetter: boolean;
            /** @description What the job is for. At most 8 KiB. */
            description?: string | null;
            /** @description The name that people read, in any language. At most 256 characters. */
            displayName?: string | null;
            /** @description The pool's name. Default: "default" */
            executorSelector: string;
            /** @description Jobs that are started when a run of this one ends. */
            hooks?: components["schemas"]["Hooks"];
            /** @description Default: true */
            idempotent: boolean;
            /** @description Default: {} */
            labels: {
                [key: string]: string;
            };
            /**
             * Format: uint64
             * @description Over all attempts of a generation, from the start of the first one, with the waits between them. Seconds. Then a body is told
             *     to stop, as by a timeout, and there is no further attempt.
             */
            maxRuntimeSec?: number | null;
            /** @description 1..128 of letters, digits, `. _ - /`; unique per tenant; immutable. */
            name: string;
            /** @description Default: "CONTINUE" */
            onLostContact: components["schemas"]["OnLostContact"];
            /** @description Who answers for the job: a person, a team, an address. At most 256 characters. */
            owner?: string | null;
            /** @description Default: {} */
            params: components["schemas"]["Payload"];
            /**
             * Format: uint16
             * @description 0..1000, higher first. Default: 100
             */
            priority: number;
            /** @description Default: {"cpu":0.1,"memoryMb":64,"storageMb":0} */
            resources: components["schemas"]["Resources"];
            /** @description Default: {"backoff":"EXPONENTIAL","baseDelaySec":10.0,"jitter":0.2,"maxAttempts":3,"maxDelaySec":3600.0} */
            retryPolicy: components["schemas"]["RetryPolicy"];
            /** @description Sealed before anything is stored; read back as `"***"`. */
            secretParams?: {
                [key: string]: string;
            };
            /** @description The named system that its bodies call: it has a breaker, a budget of retries, and limits of its own (`target.set`). */
            target?: string | null;
            /** @description Default: "default" */
            tenantId: string;
            /**
             * Format: uint64
             * @description Per attempt, from its start. Seconds. Default: 3600
             */
            timeoutSec: number;
            trigger: components["schemas"]["Trigger"];
        };
        /** @description A whole job with defaults. What `POST /jobs` and `job.create` take. */
        JobSpecInput: {
            /** @description Default: the handler named like the job. */
            action?: components["schemas"]["ActionInput"] | null;
            /** @description Texts for people and programs: at most 64, each of at most 4 KiB. */
            annotations?: {
                [key: string]: string;
            };
            /** @description Default: "FORBID" */
            concurrencyPolicy?: components["schemas"]["ConcurrencyPolicy"];
            /** @description Default: true */
            deadLetter?: boolean;
            /** @description What the job is for. At most 8 KiB. */
            description?: string | null;
            /** @description The name that people read, in any language. At most 256 characters. */
            displayName?: string | null;
            /** @description The pool's name. Default: "default" */
            executorSelector?: string;
            /** @description Jobs that are started when a run of this one ends. */
            hooks?: components["schemas"]["Hooks"];
            /** @description Default: true */
            idempotent?: boolean;
            /** @description Default: {} */
            labels?: {
                [key: string]: string;
            };
            /**
             * Format: uint64
             * @description Over all attempts of a generation, from the start of the first one, with the waits between them. Seconds. Then a body is told
             *     to stop, as by a timeout, and there is no further attempt.
             */
            maxRuntimeSec?: number | null;
            /** @description 1..128 of letters, digits, `. _ - /`; unique per tenant; immutable. */
            name: string;
            /** @description Default: "CONTINUE" */
            onLostContact?: components["schemas"]["OnLostContact"];
            /** @description Who answers for the job: a person, a team, an address. At most 256 characters. */
            owner?: string | null;
            /** @description Default: {} */
            params?: components["schemas"]["Payload"];
            /**
             * Format: uint16
             * @description 0..1000, higher first. Default: 100
             */
            priority?: number;
            /** @description Default: {"cpu":0.1,"memoryMb":64,"storageMb":0} */
            resources?: components["schemas"]["ResourcesInput"];
            /** @description Default: {"backoff":"EXPONENTIAL","baseDelaySec":10.0,"jitter":0.2,"maxAttempts":3,"maxDelaySec":3600.0} */
            retryPolicy?: components["schemas"]["RetryPolicyInput"];
            /** @description Sealed before anything is stored; read back as `"***"`. */
            secretParams?: {
                [key: string]: string;
            };
            /** @description The named system that its bodies call: it has a breaker, a budget of retries, and limits of its own (`target.set`). */
            target?: string | null;
            /** @description Default: "default" */
            tenantId?: string;
            /**
             * Format: uint64
             * @description Per attempt, from its start. Seconds. Default: 3600
             */
            timeoutSec?: number;
            trigger: components["schemas"]["TriggerInput"];
        };
        /**
         * @description State of a job.
         * @enum {string}
         */
        JobStatus: "ENABLED" | "PAUSED" | "DELETED";
        /** @description A job as read back. */
        JobView: {
            /** @description Default: the handler named like the job. */
            action?: components["schemas"]["Action"] | null;
            /** @description Texts for people and programs: at most 64, each of at most 4 KiB. */
            annotations?: {
                [key: string]: string;
            };
            /** @description Default: "FORBID" */
            concurrencyPolicy: components["schemas"]["ConcurrencyPolicy"];
            createdAt: components["schemas"]["Timestamp"];
            /** @description Default: true */
            deadLetter: boolean;
            /** @description What the job is for. At most 8 KiB. */
            description?: string | null;
            /** @description The name that people read, in any language. At most 256 characters. */
            displayName?: string | null;
            /** @description The pool's name. Default: "default" */
            executorSelector: string;
            /** @description Jobs that are started when a run of this one ends. */
            hooks?: components["schemas"]["Hooks"];
            /** @description Default: true */
            idempotent: boolean;
            jobId: components["schemas"]["JobId"];
            /** @description Default: {} */
            labels: {
                [key: string]: string;
            };
            lastRunAt: components["schemas"]["Timestamp"] | null;
            lastRunState: components["schemas"]["RunState"] | null;
            /**
             * Format: uint64
             * @description Over all attempts of a generation, from the start of the first one, with the waits between them. Seconds. Then a body is told
             *     to stop, as by a timeout, and there is no further attempt.
             */
            maxRuntimeSec?: number | null;
            /** @description 1..128 of letters, digits, `. _ - /`; unique per tenant; immutable. */
            name: string;
            nextFireAt: components["schemas"]["Timestamp"] | null;
            /** @description Default: "CONTINUE" */
            onLostContact: components["schemas"]["OnLostContact"];
            /** @description Who answers for the job: a person, a team, an address. At most 256 characters. */
            owner?: string | null;
            /** @description Default: {} */
            params: components["schemas"]["Payload"];
            /**
             * Format: uint16
             * @description 0..1000, higher first. Default: 100
             */
            priority: number;
            /** @description Set when the job was put aside because its actor failed again and again; resume clears it. */
            quarantineReason?: string | null;
            /** @description Default: {"cpu":0.1,"memoryMb":64,"storageMb":0} */
            resources: components["schemas"]["Resources"];
            /** @description Default: {"backoff":"EXPONENTIAL","baseDelaySec":10.0,"jitter":0.2,"maxAttempts":3,"maxDelaySec":3600.0} */
            retryPolicy: components["schemas"]["RetryPolicy"];
            /** Format: uint64 */
            runCount: number;
            /** @description Sealed before anything is stored; read back as `"***"`. */
            secretParams?: {
                [key: string]: string;
            };
            status: components["schemas"]["JobStatus"];
            /** @description The named system that its bodies call: it has a breaker, a budget of retries, and limits of its own (`target.set`). */
            target?: string | null;
            /** @description Default: "default" */
            tenantId: string;
            /**
             * Format: uint64
             * @description Per attempt, from its start. Seconds. Default: 3600
             */
            timeoutSec: number;
            trigger: components["schemas"]["Trigger"];
            updatedAt: components["schemas"]["Timestamp"];
            /** Format: uint64 */
            version: number;
        };
        /** @description How the node knows a caller. */
        KnownBy: "TOKEN" | "SESSION" | "LOOPBACK";
        /** @description One entry of the fire ledger. */
        LedgerEntryView: {
            /** Format: uint64 */
            count: number;
            logicalTime: components["schemas"]["Timestamp"];
            outcome: components["schemas"]["Outcome"];
            reason?: components["schemas"]["SkipReason"] | null;
            runId?: components["schemas"]["RunId"] | null;
            /** @description Last instant of a stretch with one outcome. */
            until?: components["schemas"]["Timestamp"] | null;
        };
        /** @description A stretch of a job's ledger: what happened to every due instant from `from` to `to`. */
        LedgerView: {
            /**
             * @description The entries cover all from `from` to `to`, both included, without gap or overlap; `to` is where the job's cursor stood, or what was asked for.
             *     When more follows, `to` is where the next page begins.
             */
            from: components["schemas"]["Timestamp"];
            items: components["schemas"]["LedgerEntryView"][];
            jobId: components["schemas"]["JobId"];
            to: components["schemas"]["Timestamp"];
            /** @description More follows: ask again with `from` = this `to`. */
            truncated: boolean;
        };
        /** @description How many instants are due in each of the next minutes, by the schedules of now and without jitter. */
        LoadView: {
            items: components["schemas"]["MinuteLoad"][];
            /**
             * Format: uint64
             * @description Jobs that are due within the time.
             */
            jobs: number;
            /** @description There are more jobs or instants than a call looks at: the numbers are too small. */
            truncated: boolean;
        };
        /**
         * @description Form of a log.
         * @enum {string}
         */
        LogFormat: "json" | "text";
        /**
         * @description Level of a line of a log.
         * @enum {string}
         */
        LogLevel: "TRACE" | "DEBUG" | "INFO" | "WARN" | "ERROR";
        /** @description Answer of `run.log`. */
        LogView: {
            /** Format: uint32 */
            attempt: number;
            /** @description The attempt has ended and all of its log was returned. With filters: all of it was looked at. */
            end: boolean;
            /** @description With filters: for each line of `text` its number, from 1 at `offset`. */
            lines?: number[] | null;
            /**
             * Format: uint64
             * @description Where to go on reading. With filters: behind the last whole line that was looked at.
             */
            nextOffset: number;
            /** Format: uint64 */
            offset: number;
            runId: components["schemas"]["RunId"];
            /** @description With filters: the lines that they leave. */
            text: string;
        };
        /** @description A file with manifests. */
        ManifestFile: {
            /** @description Stands in messages; nothing is read from there. */
            name: string;
            text: string;
        };
        /** @description One thing that is wrong with a manifest; a refused plan has all of them in `detail.errors` (HTTP: `context.errors`). */
        ManifestProblem: {
            /**
             * Format: uint64
             * @description From 1.
             */
            column: number;
            file: string;
            /**
             * Format: uint64
             * @description From 1.
             */
            line: number;
            message: string;
            /** @description Such as `spec.schedule`; empty: the document. */
            path: string;
        };
        /** @description How a node stands. */
        MemberState: "ALIVE" | "SUSPECTED" | "CORDONED" | "DRAINING" | "CLOCK_WRONG";
        /** @description A living node, as the asked one sees it. `GET /api/v1/cluster/members`, `cluster.members`. */
        MemberView: {
            build: string;
            /**
             * Format: int64
             * @description Its wall clock minus that of the asked node, ms; null until it was heard.
             */
            clockOffsetMs: number | null;
            /** @description HOST:PORT for other nodes. */
            gateway: string;
            /** @description HOST:PORT, UDP, of membership. */
            gossip: string;
            /** @description HOST:PORT for callers. */
            http: string;
            /** @description The node that was asked. */
            isSelf: boolean;
            /** @description `[node] name`. */
            name: string;
            /** @description HOST:PORT for RPC callers and executors. */
            rpc: string;
            /**
             * Format: uint64
             * @description Its current session; 0 = it has none yet.
             */
            session: number;
            /**
             * Format: uint64
             * @description Shards that it owns, by the rows of the store.
             */
            shards: number;
            state: components["schemas"]["MemberState"];
        };
        /** @description What a message asks of its receiver. */
        MessageKind: "START" | "END" | "CANCEL" | "HOOK" | "COMPENSATION";
        /** @description A minute of the next day to which a plan adds many more instants than it removes. Jobs whose schedule stays are not counted. */
        MinuteForecast: {
            /**
             * Format: uint64
             * @description Instants that the changes add to it.
             */
            adds: number;
            /** @description The beginning of the minute. */
            at: components["schemas"]["Timestamp"];
            /**
             * Format: uint64
             * @description Instants that are due in it by the schedules of now. Absent: it is more than two hours ahead.
             */
            due?: number | null;
            /**
             * Format: uint64
             * @description Instants that the changes take from it.
             */
            removes: number;
        };
        /** @description Due instants of a minute. */
        MinuteLoad: {
            /** @description The beginning of the minute. */
            at: components["schemas"]["Timestamp"];
            /** Format: uint64 */
            count: number;
        };
        /**
         * @description What happens to instants that are older than the threshold when they can be decided.
         * @enum {string}
         */
        MisfirePolicy: "SKIP" | "FIRE_ONCE_NOW" | "FIRE_ALL_MISSED";
        /** @description A node of a cluster that did not answer. */
        MissingNode: {
            node: string;
            reason: string;
        };
        Moment: components["schemas"]["Timestamp"] | string;
        /**
         * @description Why a shard moves.
         * @enum {string}
         */
        MoveReason: "NO_OWNER" | "UNDERWAY" | "OWNER_LEAVES" | "BALANCE";
        /** @description A shard that should have another owner. */
        MoveView: {
            from: string | null;
            reason: components["schemas"]["MoveReason"];
            /** Format: uint16 */
            shard: number;
            to: string;
        };
        /** @description A node of a cluster, with what it has. */
        NodeFacts: {
            /**
             * Format: uint64
             * @description Its session.
             */
            epoch: number;
            /**
             * Format: uint64
             * @description Executors that are registered with it; one may be with several nodes.
             */
            executors: number;
            /** Format: uint64 */
            jobs: number;
            node: string;
            notReadyReasons: string[];
            now: components["schemas"]["Timestamp"];
            /** Format: uint64 */
            openRuns: number;
            ready: boolean;
            version: string;
        };
        /** @description Why a node is FAILED, besides what its run says itself. */
        NodeFailure: "RUN_FAILED" | "RUN_TIMEOUT" | "RESULT_TOO_LARGE" | "RESULT_MISSING" | "PARAMS_TOO_LARGE" | "REFUSED" | "UNDELIVERED";
        /** @description Which ends of its parents let a node run. `docs/graph-rules.md` has the whole table. */
        NodeRule: "ALL_SUCCESS" | "ALL_DONE" | "ANY_SUCCESS" | "ANY_FAILED" | "NONE_FAILED";
        /** @description A node: a job of the same tenant that runs when the node's rule says so. */
        NodeSpec: {
            /** @description 1..64 letters, digits, `_` or `-`; unique in the DAG. */
            id: string;
            /** @description The name of a job of the same tenant, which is looked up when the node starts. */
            job: string;
            /** @description Laid over the params of the job and of the DAG. Strings may hold `{{nodes.ID.result.FIELD}}` and `{{run.logicalTime}}`. Default: {} */
            params: components["schemas"]["Payload"];
            /** @description Which ends of the nodes before it let this one run. Default: "ALL_SUCCESS" */
            rule: components["schemas"]["NodeRule"];
            /**
             * Format: uint64
             * @description Seconds per attempt; the job's own when there is none.
             */
            timeoutSec?: number | null;
        };
        /** @description A node: a job of the same tenant that runs when the node's rule says so. */
        NodeSpecInput: {
            /** @description 1..64 letters, digits, `_` or `-`; unique in the DAG. */
            id: string;
            /** @description The name of a job of the same tenant, which is looked up when the node starts. */
            job: string;
            /** @description Laid over the params of the job and of the DAG. Strings may hold `{{nodes.ID.result.FIELD}}` and `{{run.logicalTime}}`. Default: {} */
            params?: components["schemas"]["Payload"];
            /** @description Which ends of the nodes before it let this one run. Default: "ALL_SUCCESS" */
            rule?: components["schemas"]["NodeRule"];
            /**
             * Format: uint64
             * @description Seconds per attempt; the job's own when there is none.
             */
            timeoutSec?: number | null;
        };
        /** @description State of a node in a run of its DAG. The last five are final. */
        NodeState: ("SUCCESS" | "FAILED") | "WAITING" | "STARTING" | "ACTIVE" | "SKIPPED" | "UPSTREAM_FAILED" | "CANCELED";
        /**
         * @description Facts of the node that is asked, `GET /api/v1/cluster/node`, `system.info`. `jobs`, `openRuns` and `executors` are of the whole
         *     cluster, as far as its nodes answered in time.
         */
        NodeView: {
            /** Format: uint64 */
            clusterId: number;
            /** @description What this node does without, because it cannot keep up. Absent: NORMAL. */
            degradation?: components["schemas"]["DegradationLevel"];
            /** Format: uint64 */
            epoch: number;
            /** Format: uint64 */
            executors: number;
            /** @description The directory of files that this node keeps jobs by. */
            files?: components["schemas"]["FilesView"] | null;
            /** Format: uint64 */
            jobs: number;
            /** @description Nodes that did not answer: they are in none of the numbers. */
            missing?: components["schemas"]["MissingNode"][];
            /** @description Of a cluster: each node that answered, the asked one among them. */
            nodes?: components["schemas"]["NodeFacts"][];
            notReadyReasons: string[];
            now: components["schemas"]["Timestamp"];
            /** Format: uint64 */
            openRuns: number;
            ready: boolean;
            /** Format: uint16 */
            shards: number;
            tzdb: string;
            version: string;
        };
        /**
         * @description What an executor that hears from no owner does with a running body.
         * @enum {string}
         */
        OnLostContact: "CONTINUE" | "STOP";
        /** @description A message between jobs that waits or was given up: for example a hook whose job was not started. */
        OutboxMessageView: {
            decidedAt: components["schemas"]["Timestamp"];
            /** Format: uint32 */
            generation: number;
            givenUpAt: components["schemas"]["Timestamp"] | null;
            jobId: components["schemas"]["JobId"] | null;
            kind: components["schemas"]["MessageKind"];
            /** @description The job that it is for may have acted on it: there was no answer, or a restore lies between. */
            mayHaveRun: boolean;
            /** @description Why it was refused or dropped. */
            reason: string | null;
            /** @description The run that sends it. */
            runId: components["schemas"]["RunId"];
            state: components["schemas"]["OutboxState"];
            /** @description Name of the job that it is for. */
            targetJob: string | null;
            tenantId: string;
        };
        /** @description How a message between jobs fares that was not delivered. */
        OutboxState: "WAITING" | "UNDELIVERED" | "REFUSED" | "DROPPED";
        /** @description Outcome of due instants in the fire ledger. */
        Outcome: ("FIRED" | "SKIPPED" | "MISSED" | "DST_SKIPPED") | "FIRED_LATE" | "COALESCED";
        /**
         * @description What a fixed-time schedule does with an instant that daylight saving repeats.
         * @enum {string}
         */
        Overlap: "FIRST" | "SECOND" | "BOTH";
        /** @description A list's page. */
        Page: {
            items: components["schemas"]["JobView"][];
            nextPageToken: string | null;
        };
        /** @description A list's page. */
        Page2: {
            items: components["schemas"]["BulkView"][];
            nextPageToken: string | null;
        };
        /** @description A list's page. */
        Page3: {
            items: components["schemas"]["RunView"][];
            nextPageToken: string | null;
        };
        /** @description A list's page. */
        Page4: {
            items: components["schemas"]["VersionView"][];
            nextPageToken: string | null;
        };
        /** @description A list's page. */
        Page5: {
            items: components["schemas"]["DeadLetterView"][];
            nextPageToken: string | null;
        };
        /** @description A list's page. */
        Page6: {
            items: components["schemas"]["OutboxMessageView"][];
            nextPageToken: string | null;
        };
        /** @description A list's page. */
        Page7: {
            items: components["schemas"]["AuditView"][];
            nextPageToken: string | null;
        };
        /** @description Any JSON value; usually an object */
        Payload: unknown;
        /**
         * @description What becomes of a job.
         * @enum {string}
         */
        PlanAction: "CREATE" | "CHANGE" | "UNCHANGED" | "DELETE";
        /** @description What the changes of a plan mean together. */
        PlanForecast: {
            /** @description Minutes of the next 24 hours that get at least 60 instants more than they lose, at most 10, those that get most first. */
            minutes: components["schemas"]["MinuteForecast"][];
            /** @description Tenants with changes, at most 100. */
            tenants: components["schemas"]["TenantForecast"][];
            /** @description There are more instants than a forecast looks at: the numbers of the minutes are too small. */
            truncated: boolean;
        };
        /** @description One job of a plan. */
        PlanItem: {
            action: components["schemas"]["PlanAction"];
            /** @description Default: [] */
            changes: components["schemas"]["FieldChange"][];
            error?: components["schemas"]["ApplyFailure"] | null;
            /** @description Where its manifest stands. */
            file?: string | null;
            /** @description Of a plan that asks for it: of jobs that are created, changed or deleted. */
            forecast?: components["schemas"]["JobForecast"] | null;
            /** @description What the manifest asks for and does not get, and what may surprise about it. Default: [] */
            hazards: string[];
            jobId?: components["schemas"]["JobId"] | null;
            /**
             * Format: uint64
             * @description From 1.
             */
            line?: number | null;
            name: string;
            /** @description Of an apply. */
            outcome?: components["schemas"]["ApplyOutcome"] | null;
            tenantId: string;
            /**
             * Format: uint64
             * @description Version that the plan was made of.
             */
            version?: number | null;
        };
        /** @description What would be done. */
        PlanView: {
            /** Format: uint64 */
            change: number;
            /** Format: uint64 */
            create: number;
            /** Format: uint64 */
            delete: number;
            /** @description Of a plan that asks for it. */
            forecast?: components["schemas"]["PlanForecast"] | null;
            items: components["schemas"]["PlanItem"][];
            /** @description Objects of other kinds that are no jobs, and make none. */
            passedOver?: components["schemas"]["ManifestProblem"][];
            /** @description Names exactly these changes. */
            planId: string;
            /** Format: uint64 */
            unchanged: number;
        };
        /** @description Where shards are going. `GET /api/v1/cluster/plan`, `cluster.plan`. */
        PlanView2: {
            /** @description Every shard is where it should be. */
            balanced: boolean;
            /**
             * Format: uint64
             * @description Shards that a node should have at the most.
             */
            cap: number;
            /** @description All moves that are still to be made, in their order; a few of them at a time. */
            moves: components["schemas"]["MoveView"][];
        };
        /** @description A pool as read. */
        PoolView: {
            /** Format: uint32 */
            credit: number;
            /** Format: uint32 */
            executors: number;
            name: string;
            /** Format: uint64 */
            running: number;
            /** Format: uint64 */
            waiting: number;
        };
        /** @description Answer of a preview. */
        Preview: {
            description: string;
            hazards: string[];
            next: components["schemas"]["Timestamp"][];
            /** @description Resolved, with dialect and instants filled in. */
            trigger: components["schemas"]["Trigger"];
        };
        /** @description `POST /schedules/preview`, `schedule.preview`. */
        PreviewBody: {
            /** @description Default: now. */
            after?: components["schemas"]["Timestamp"] | null;
            /**
             * Format: uint
             * @description Default 5, at most 100.
             */
            count?: number | null;
            trigger: components["schemas"]["TriggerInput"];
        };
        /** @description `POST /runs/{runId}/priority`: of a run that waits. */
        PriorityBody: {
            /**
             * Format: uint16
             * @description 0..1000, higher first.
             */
            priority: number;
            reason?: string | null;
        };
        /** @description Body of every refusal. */
        Problem: {
            /** @description What to do about such a problem. Default: "" */
            advice: string;
            /** @description Stable code, e.g. `423_JOB_PAUSED`. */
            code: string;
            /** @description More about it: the field, the position, the state. */
            context?: unknown;
            /** @description What is wrong here. */
            detail: string;
            /** @description The id under which the server's log speaks of this request. */
            requestId?: string | null;
            /**
             * Format: double
             * @description Seconds after which a retry makes sense; also as the header Retry-After.
             */
            retryAfterSec?: number | null;
            /**
             * Format: uint16
             * @description The HTTP status.
             */
            status: number;
            /** @description What the code means, the same for every such problem. */
            title: string;
            /** @description Where the code is described. */
            type: string;
        };
        /** @description Body of calls that only take a reason (pause, resume, cancel, discard). */
        ReasonBody: {
            reason?: string | null;
        };
        /** @description What a reason is about. */
        ReasonTopic: "ORIGIN" | "WAIT" | "LATE" | "END" | "SCHEDULE" | "INSTANT";
        /** @description One reason: a code, a sentence that rests on what is known now, who holds what is waited for, and what would free it. */
        ReasonView: {
            /** @description The codes are documented. Compare the code only; the sentence may change. */
            code: string;
            /** @description What to do, or to wait for. */
            freedBy?: string | null;
            heldBy?: components["schemas"]["HolderView"][];
            sentence: string;
            topic: components["schemas"]["ReasonTopic"];
        };
        /** @description The definition and the version it replaces: `{version, spec}`, or a job as it was read. */
        ReplaceBody: components["schemas"]["Replacement"] | components["schemas"]["ReplacedJob"];
        /** @description A job as it was read: names that are not of the definition are ignored, but jobId, version and createdAt must be those of the job. */
        ReplacedJob: {
            /** @description Default: the handler named like the job. */
            action?: components["schemas"]["ActionInput"] | null;
            /** @description Texts for people and programs: at most 64, each of at most 4 KiB. */
            annotations?: {
                [key: string]: string;
            };
            /** @description Default: "FORBID" */
            concurrencyPolicy?: components["schemas"]["ConcurrencyPolicy"];
            createdAt?: components["schemas"]["Timestamp"];
            /** @description Default: true */
            deadLetter?: boolean;
            /** @description What the job is for. At most 8 KiB. */
            description?: string | null;
            /** @description The name that people read, in any language. At most 256 characters. */
            displayName?: string | null;
            /** @description The pool's name. Default: "default" */
            executorSelector?: string;
            /** @description Jobs that are started when a run of this one ends. */
            hooks?: components["schemas"]["Hooks"];
            /** @description Default: true */
            idempotent?: boolean;
            jobId?: components["schemas"]["JobId"];
            /** @description Default: {} */
            labels?: {
                [key: string]: string;
            };
            lastRunAt?: components["schemas"]["Timestamp"] | null;
            lastRunState?: components["schemas"]["RunState"] | null;
            /**
             * Format: uint64
             * @description Over all attempts of a generation, from the start of the first one, with the waits between them. Seconds. Then a body is told
             *     to stop, as by a timeout, and there is no further attempt.
             */
            maxRuntimeSec?: number | null;
            /** @description 1..128 of letters, digits, `. _ - /`; unique per tenant; immutable. */
            name: string;
            nextFireAt?: components["schemas"]["Timestamp"] | null;
            /** @description Default: "CONTINUE" */
            onLostContact?: components["schemas"]["OnLostContact"];
            /** @description Who answers for the job: a person, a team, an address. At most 256 characters. */
            owner?: string | null;
            /** @description Default: {} */
            params?: components["schemas"]["Payload"];
            /**
             * Format: uint16
             * @description 0..1000, higher first. Default: 100
             */
            priority?: number;
            /** @description Set when the job was put aside because its actor failed again and again; resume clears it. */
            quarantineReason?: string | null;
            /** @description Default: {"cpu":0.1,"memoryMb":64,"storageMb":0} */
            resources?: components["schemas"]["ResourcesInput"];
            /** @description Default: {"backoff":"EXPONENTIAL","baseDelaySec":10.0,"jitter":0.2,"maxAttempts":3,"maxDelaySec":3600.0} */
            retryPolicy?: components["schemas"]["RetryPolicyInput"];
            /** Format: uint64 */
            runCount?: number;
            /** @description Sealed before anything is stored; read back as `"***"`. */
            secretParams?: {
                [key: string]: string;
            };
            status?: components["schemas"]["JobStatus"];
            /** @description The named system that its bodies call: it has a breaker, a budget of retries, and limits of its own (`target.set`). */
            target?: string | null;
            /** @description Default: "default" */
            tenantId?: string;
            /**
             * Format: uint64
             * @description Per attempt, from its start. Seconds. Default: 3600
             */
            timeoutSec?: number;
            trigger: components["schemas"]["TriggerInput"];
            updatedAt?: components["schemas"]["Timestamp"];
            /** Format: uint64 */
            version: number;
        };
        /** @description A definition, or a job as it was read: names that are not of the definition are ignored, but jobId, version and createdAt must be those of the job. */
        ReplacedSpec: {
            /** @description Default: the handler named like the job. */
            action?: components["schemas"]["ActionInput"] | null;
            /** @description Texts for people and programs: at most 64, each of at most 4 KiB. */
            annotations?: {
                [key: string]: string;
            };
            /** @description Default: "FORBID" */
            concurrencyPolicy?: components["schemas"]["ConcurrencyPolicy"];
            createdAt?: components["schemas"]["Timestamp"];
            /** @description Default: true */
            deadLetter?: boolean;
            /** @description What the job is for. At most 8 KiB. */
            description?: string | null;
            /** @description The name that people read, in any language. At most 256 characters. */
            displayName?: string | null;
            /** @description The pool's name. Default: "default" */
            executorSelector?: string;
            /** @description Jobs that are started when a run of this one ends. */
            hooks?: components["schemas"]["Hooks"];
            /** @description Default: true */
            idempotent?: boolean;
            jobId?: components["schemas"]["JobId"];
            /** @description Default: {} */
            labels?: {
                [key: string]: string;
            };
            lastRunAt?: components["schemas"]["Timestamp"] | null;
            lastRunState?: components["schemas"]["RunState"] | null;
            /**
             * Format: uint64
             * @description Over all attempts of a generation, from the start of the first one, with the waits between them. Seconds. Then a body is told
             *     to stop, as by a timeout, and there is no further attempt.
             */
            maxRuntimeSec?: number | null;
            /** @description 1..128 of letters, digits, `. _ - /`; unique per tenant; immutable. */
            name: string;
            nextFireAt?: components["schemas"]["Timestamp"] | null;
            /** @description Default: "CONTINUE" */
            onLostContact?: components["schemas"]["OnLostContact"];
            /** @description Who answers for the job: a person, a team, an address. At most 256 characters. */
            owner?: string | null;
            /** @description Default: {} */
            params?: components["schemas"]["Payload"];
            /**
             * Format: uint16
             * @description 0..1000, higher first. Default: 100
             */
            priority?: number;
            /** @description Set when the job was put aside because its actor failed again and again; resume clears it. */
            quarantineReason?: string | null;
            /** @description Default: {"cpu":0.1,"memoryMb":64,"storageMb":0} */
            resources?: components["schemas"]["ResourcesInput"];
            /** @description Default: {"backoff":"EXPONENTIAL","baseDelaySec":10.0,"jitter":0.2,"maxAttempts":3,"maxDelaySec":3600.0} */
            retryPolicy?: components["schemas"]["RetryPolicyInput"];
            /** Format: uint64 */
            runCount?: number;
            /** @description Sealed before anything is stored; read back as `"***"`. */
            secretParams?: {
                [key: string]: string;
            };
            status?: components["schemas"]["JobStatus"];
            /** @description The named system that its bodies call: it has a breaker, a budget of retries, and limits of its own (`target.set`). */
            target?: string | null;
            /** @description Default: "default" */
            tenantId?: string;
            /**
             * Format: uint64
             * @description Per attempt, from its start. Seconds. Default: 3600
             */
            timeoutSec?: number;
            trigger: components["schemas"]["TriggerInput"];
            updatedAt?: components["schemas"]["Timestamp"];
            /** Format: uint64 */
            version?: number;
        };
        Replacement: {
            spec: components["schemas"]["ReplacedSpec"];
            /** Format: uint64 */
            version: number;
        };
        /** @description `job.replay`, `POST /jobs/{jobId}/replay`. */
        ReplayBody: {
            /** @description Only say what it would do. Default: false */
            dryRun?: boolean;
            /** @description First instant, included. */
            from: components["schemas"]["Timestamp"];
            /** @description Start the job's hooks when a run fails. Default: no. Default: false */
            hooks?: boolean;
            /**
             * Format: uint32
             * @description Runs that are open at once, 1 to 200; 1 under FORBID and QUEUE_ONE, whatever is asked for. Default 8.
             */
            parallelism?: number | null;
            reason?: string | null;
            /** @description Last instant, included. */
            to: components["schemas"]["Timestamp"];
        };
        /** @description What a run needs of an executor, for placing it: nothing holds it to that (see [`CommandLimits`]). CPU in cores, memory and storage in MiB. */
        Resources: {
            /**
             * Format: double
             * @description Default: 0.1
             */
            cpu: number;
            /**
             * Format: uint64
             * @description Default: 64
             */
            memoryMb: number;
            /**
             * Format: uint64
             * @description Default: 0
             */
            storageMb: number;
        };
        /** @description What a run needs of an executor, for placing it: nothing holds it to that (see [`CommandLimits`]). CPU in cores, memory and storage in MiB. */
        ResourcesInput: {
            /**
             * Format: double
             * @description Default: 0.1
             */
            cpu?: number;
            /**
             * Format: uint64
             * @description Default: 64
             */
            memoryMb?: number;
            /**
             * Format: uint64
             * @description Default: 0
             */
            storageMb?: number;
        };
        /** @description `POST /runs/{runId}/retry`, `POST /dead-letters/{runId}/redrive`. */
        RetryBody: {
            /** @description Also if the compensation of the run was started, which is refused with `409_COMPENSATED` otherwise. Default: false */
            force?: boolean;
            reason?: string | null;
        };
        /** @description `maxAttempts` counts the first try. Delay before try n+1: `base` (fixed) or `base x 2^(n-1)`, at most `max`, times 1 ± jitter. */
        RetryPolicy: {
            /** @description Default: "EXPONENTIAL" */
            backoff: components["schemas"]["Backoff"];
            /**
             * Format: double
             * @description Default: 10.0
             */
            baseDelaySec: number;
            /**
             * Format: double
             * @description Fraction 0..=1. Default: 0.2
             */
            jitter: number;
            /**
             * Format: uint32
             * @description Default: 3
             */
            maxAttempts: number;
            /**
             * Format: double
             * @description Default: 3600.0
             */
            maxDelaySec: number;
            /**
             * Format: uint64
             * @description No attempt begins later than so long after the first one of its generation. Seconds.
             */
            maxElapsedSec?: number | null;
        };
        /** @description `maxAttempts` counts the first try. Delay before try n+1: `base` (fixed) or `base x 2^(n-1)`, at most `max`, times 1 ± jitter. */
        RetryPolicyInput: {
            /** @description Default: "EXPONENTIAL" */
            backoff?: components["schemas"]["Backoff"];
            /**
             * Format: double
             * @description Default: 10.0
             */
            baseDelaySec?: number;
            /**
             * Format: double
             * @description Fraction 0..=1. Default: 0.2
             */
            jitter?: number;
            /**
             * Format: uint32
             * @description Default: 3
             */
            maxAttempts?: number;
            /**
             * Format: double
             * @description Default: 3600.0
             */
            maxDelaySec?: number;
            /**
             * Format: uint64
             * @description No attempt begins later than so long after the first one of its generation. Seconds.
             */
            maxElapsedSec?: number | null;
        };
        /** @description `POST /jobs/{jobId}/rollback`, `job.rollback`. */
        RollbackBody: {
            reason?: string | null;
            /**
             * Format: uint64
             * @description The version whose definition the job gets, as a new version.
             */
            to: number;
            /**
             * Format: uint64
             * @description Refuse when the job is not of this version any more. Default: whichever it has.
             */
            version?: number | null;
        };
        /**
         * Format: uint64
         * @description A run. Below 2^53. Its slot is its job's slot.
         */
        RunId: number;
        /** @description State of a run. The last five are final. */
        RunState: ("RUNNING" | "RETRY_WAIT" | "SUSPECTED_LOST" | "NEEDS_CONFIRMATION" | "SUCCESS" | "FAILED" | "TIMEOUT" | "CANCELED") | "PENDING" | "QUEUED" | "SKIPPED";
        /** @description A run as read. */
        RunView: {
            /** Format: uint32 */
            attemptCount: number;
            attempts: components["schemas"]["AttemptView"][];
            /** @description The backfill that it is of. */
            backfillId?: components["schemas"]["BackfillId"] | null;
            /** @description Its compensation was started: a job that undoes what the run did. */
            compensated?: boolean;
            createdAt: components["schemas"]["Timestamp"];
            /**
             * Format: uint32
             * @description ... and the place of the node in the DAG's definition, from 0.
             */
            dagNode?: number | null;
            /** @description Of the run of a DAG's node: the run of the DAG. */
            dagRunId?: components["schemas"]["RunId"] | null;
            deadLetter: boolean;
            /**
             * @description The params that the body of the newest attempt got: the job's with the caller's laid over them. Before the first
             *     attempt: those that it would get by the job's definition of now. Only where one run is read; absent when the job
             *     was changed since that attempt began, because nobody knows them then.
             */
            effectiveParams?: components["schemas"]["Payload"] | null;
            endedAt: components["schemas"]["Timestamp"] | null;
            executorId: string | null;
            /** @description Its hooks whose jobs were not started, the newest 16. */
            failedHooks?: components["schemas"]["FailedHookView"][];
            /** Format: uint32 */
            generation: number;
            jobId: components["schemas"]["JobId"];
            key: string | null;
            lastError: string | null;
            logicalTime: components["schemas"]["Timestamp"] | null;
            nextRetryAt: components["schemas"]["Timestamp"] | null;
            /** @description The caller's, as they came with the trigger. */
            params?: components["schemas"]["Payload"] | null;
            /**
             * Format: uint16
             * @description Its own, instead of its job's: it was changed while the run waited.
             */
            priority?: number | null;
            reason?: string | null;
            result?: components["schemas"]["Payload"] | null;
            runId: components["schemas"]["RunId"];
            /**
             * @description Names of the secret params that the body got beside them, each with `"***"`; told and left out like
             *     `effectiveParams`.
             */
            secretParams?: {
                [key: string]: string;
            };
            source: components["schemas"]["Source"];
            startedAt: components["schemas"]["Timestamp"] | null;
            state: components["schemas"]["RunState"];
            /** @description The run is STOPPING: its body was told to stop and has not ended. No other body of it starts until it has. */
            stopping?: components["schemas"]["StoppingView"] | null;
            tenantId: string;
            /** @description The trace that it belongs to, 32 hexadecimal digits. */
            traceId?: string | null;
            /** @description Who triggered it, of a MANUAL run. Absent: an earlier release made it. */
            triggeredBy?: components["schemas"]["TriggeredBy"] | null;
            /** @description Why it is not running, or not ending: a code and a sentence. */
            waitReason: string | null;
        };
        /** @description `GET /session`, `session.get`: whose call it is. */
        SessionView: {
            /** @description When the session ends; absent: there is none. */
            expiresAt?: components["schemas"]["Timestamp"] | null;
            knownBy: components["schemas"]["KnownBy"];
            /** @description Name of the credential. */
            name: string;
            role: components["schemas"]["CallerKind"];
            /** @description Absent: every tenant. */
            tenantId?: string | null;
            /** @description Release of the node. */
            version: string;
        };
        /** @description Who owns a shard. `GET /api/v1/cluster/shards`, `cluster.shards`. */
        ShardView: {
            /**
             * Format: uint64
             * @description Rises with each change of owner.
             */
            epoch: number;
            /** @description The owner's name; null: no living node. */
            node: string | null;
            /** @description The asked node serves it. */
            servedHere: boolean;
            /**
             * Format: uint64
             * @description The session that the shard's row names.
             */
            session: number | null;
            /** Format: uint16 */
            shard: number;
            /**
             * Format: uint64
             * @description Highest frame that the published snapshot holds.
             */
            snapshotSeq: number | null;
            /**
             * Format: uint64
             * @description Parts of journals that a new owner would read.
             */
            spans: number;
        };
        /** @description An edge of the short form. */
        ShortEdgeSpec: {
            from: components["schemas"]["JobId"];
            to: components["schemas"]["JobId"];
        };
        /** @description The short form: jobs by their ids, and each node's id is its job's, in decimal. */
        ShortGraphSpec: {
            /** @description Name of the job that the DAG becomes. */
            dagId: string;
            /** @description Default: [] */
            edges?: components["schemas"]["ShortEdgeSpec"][];
            nodes: components["schemas"]["JobId"][];
            /** @description Default: "default" */
            tenantId?: string;
            /** @description When the DAG is due; MANUAL when there is none. */
            trigger?: components["schemas"]["TriggerInput"] | null;
        };
        /** @description Why instants were skipped or missed. */
        SkipReason: ("PAUSED" | "TENANT_PAUSED" | "SYSTEM_PAUSED" | "QUEUE_FULL" | "QUARANTINED" | "WINDOW") | "RUN_ACTIVE" | "ONE_QUEUED" | "MISFIRE" | "CATCH_UP_CAP" | "DELETED" | "EDITED" | "RESTORED";
        /**
         * @description Why a run exists.
         * @enum {string}
         */
        Source: "SCHEDULE" | "MANUAL" | "BACKFILL" | "DAG" | "EVENT" | "COMPENSATION" | "REPLAY";
        /**
         * @description How far a change has come that every shard is to hold. What is outstanding is carried on until all of them hold it, or a newer change
         *     of the same.
         */
        Spread: {
            /** @description Shards that are not known to hold it yet; none: it is done. */
            outstanding?: number[];
        };
        /** @description How many runs have a state. */
        StateCount: {
            /** Format: uint64 */
            count: number;
            state: components["schemas"]["RunState"];
        };
        /** @description Statistics of the ended runs of a job that were created in the window. */
        StatisticsView: {
            /** @description From the start of the first attempt to the end of the run. Absent: none started. */
            durationMs?: components["schemas"]["TimesView"] | null;
            /**
             * Format: double
             * @description FAILED and TIMEOUT among the same.
             */
            failureRate?: number | null;
            /** @description Creation of the oldest run that could be counted. Later than the window begins when `truncated`. */
            from: components["schemas"]["Timestamp"];
            jobId: components["schemas"]["JobId"];
            /** @description From the instant to the start of the first attempt, of runs that a schedule started. Absent: there are none. */
            latenessMs?: components["schemas"]["TimesView"] | null;
            /** @description States with at least one run. */
            outcomes: components["schemas"]["StateCount"][];
            /**
             * Format: uint64
             * @description Runs with more than one attempt.
             */
            retried: number;
            /**
             * Format: uint64
             * @description Ended runs that were counted.
             */
            runs: number;
            /**
             * Format: double
             * @description SUCCESS among SUCCESS, FAILED and TIMEOUT. Absent: there are none of them.
             */
            successRate?: number | null;
            to: components["schemas"]["Timestamp"];
            /** @description The window has more runs than are counted (10,000): these are its newest. */
            truncated: boolean;
        };
        /** @description Since when and why a body is being stopped. */
        StoppingView: {
            reason: components["schemas"]["StopReason"];
            /** @description Absent: a node of an older release told it to stop. */
            since?: components["schemas"]["Timestamp"] | null;
        };
        /**
         * @description Why a running attempt was told to stop.
         * @enum {string}
         */
        StopReason: "CANCEL" | "TIMEOUT" | "REPLACE";
        /**
         * @description `PUT /tenants/{tenantId}/targets/{target}`, `target.set`: all settings of a target. Limits hold over all nodes; the breaker and the retry
         *     budget are kept by each node for itself.
         */
        TargetBody: {
            /**
             * Format: uint32
             * @description The breaker opens when so many of a hundred attempts failed or timed out, within ten seconds on one node; 0 = never. Default: 50
             */
            failurePercent: number;
            /**
             * Format: uint32
             * @description Runs that may use the target at once; 0 = no limit. Default: 0
             */
            maxConcurrentRuns: number;
            /**
             * Format: double
             * @description Runs that start a second; 0 = no limit. Default: 0.0
             */
            maxRunsPerSec: number;
            /**
             * Format: uint32
             * @description Attempts that must have ended in these ten seconds before the breaker opens. Default: 10
             */
            minAttempts: number;
            /**
             * Format: uint64
             * @description For how long it opens at first, 1 to 3600 seconds. Each opening that follows another lasts twice as long, up to eight times. Default: 10
             */
            openSec: number;
            /**
             * Format: uint32
             * @description Retries among a hundred first attempts, 0 to 100. Besides them ten retries of each node, and one more each minute, are free. Default: 10
             */
            retryPercent: number;
        };
        /**
         * @description `PUT /tenants/{tenantId}/targets/{target}`, `target.set`: all settings of a target. Limits hold over all nodes; the breaker and the retry
         *     budget are kept by each node for itself.
         */
        TargetBodyInput: {
            /**
             * Format: uint32
             * @description The breaker opens when so many of a hundred attempts failed or timed out, within ten seconds on one node; 0 = never. Default: 50
             */
            failurePercent?: number;
            /**
             * Format: uint32
             * @description Runs that may use the target at once; 0 = no limit. Default: 0
             */
            maxConcurrentRuns?: number;
            /**
             * Format: double
             * @description Runs that start a second; 0 = no limit. Default: 0.0
             */
            maxRunsPerSec?: number;
            /**
             * Format: uint32
             * @description Attempts that must have ended in these ten seconds before the breaker opens. Default: 10
             */
            minAttempts?: number;
            /**
             * Format: uint64
             * @description For how long it opens at first, 1 to 3600 seconds. Each opening that follows another lasts twice as long, up to eight times. Default: 10
             */
            openSec?: number;
            /**
             * Format: uint32
             * @description Retries among a hundred first attempts, 0 to 100. Besides them ten retries of each node, and one more each minute, are free. Default: 10
             */
            retryPercent?: number;
        };
        /** @description A target as read. */
        TargetView: {
            breaker: components["schemas"]["BreakerState"];
            /**
             * Format: uint64
             * @description Runs that use it.
             */
            running: number;
            settings: components["schemas"]["TargetBody"];
            target: string;
            tenantId: string;
            /**
             * Format: uint64
             * @description Counts changes of the settings; 0 = they are the default ones.
             */
            version: number;
            /**
             * Format: uint64
             * @description Runs that wait for it.
             */
            waiting: number;
        };
        /**
         * @description A tenant's limits and use. 0 is no limit for runs and for triggers, and the node's own limit for jobs (10,000,000) and for waiting
         *     runs (100,000).
         */
        TenantBody: {
            /**
             * Format: uint32
             * @description Default: 0
             */
            maxConcurrentRuns: number;
            /**
             * Format: uint64
             * @description Default: 0
             */
            maxJobs: number;
            /**
             * Format: uint32
             * @description Default: 0
             */
            maxQueuedRuns: number;
            /**
             * Format: double
             * @description Default: 0.0
             */
            maxTriggersPerSec: number;
        };
        /**
         * @description A tenant's limits and use. 0 is no limit for runs and for triggers, and the node's own limit for jobs (10,000,000) and for waiting
         *     runs (100,000).
         */
        TenantBodyInput: {
            /**
             * Format: uint32
             * @description Default: 0
             */
            maxConcurrentRuns?: number;
            /**
             * Format: uint64
             * @description Default: 0
             */
            maxJobs?: number;
            /**
             * Format: uint32
             * @description Default: 0
             */
            maxQueuedRuns?: number;
            /**
             * Format: double
             * @description Default: 0.0
             */
            maxTriggersPerSec?: number;
        };
        /** @description What a plan does to a limit of a tenant. */
        TenantForecast: {
            /**
             * Format: uint64
             * @description Jobs that it has after the plan was applied.
             */
            after: number;
            /** @description The plan needs more than the limit allows: some of it would be refused. */
            exceeds: boolean;
            /**
             * Format: uint64
             * @description Jobs that it has now.
             */
            jobs: number;
            /**
             * Format: uint64
             * @description Its limit; 0: only that of the node.
             */
            maxJobs: number;
            tenantId: string;
        };
        /** @description A tenant as read. */
        TenantView: {
            /** Format: uint64 */
            jobs: number;
            paused: boolean;
            quota: components["schemas"]["TenantBody"];
            /** Format: uint64 */
            running: number;
            tenantId: string;
            /** Format: uint64 */
            version: number;
            /** Format: uint64 */
            waiting: number;
        };
        /**
         * Format: date-time
         * @example 2026-02-01T00:00:00.000Z
         */
        Timestamp: string;
        /** @description Times of several runs, milliseconds. */
        TimesView: {
            /**
             * Format: uint64
             * @description Runs that have such a time.
             */
            count: number;
            /** Format: uint64 */
            max: number;
            /** Format: double */
            mean: number;
            /** Format: uint64 */
            p50: number;
            /** Format: uint64 */
            p95: number;
        };
        /** @description When a job is due. The types `DELAY` and `IMMEDIATE` are other words for ONCE, and read back as ONCE. */
        Trigger: {
            /** @description Default: "AUTO" */
            dialect: components["schemas"]["Dialect"];
            endAt: components["schemas"]["Timestamp"] | null;
            expr: string;
            /** @description Default: "SHIFT" */
            gap: components["schemas"]["Gap"];
            /**
             * Format: uint32
             * @description Default: 0
             */
            jitterSec: number;
            /**
             * Format: uint32
             * @description Default: 1000
             */
            maxCatchUp: number;
            /** @description Default: "FIRE_ONCE_NOW" */
            misfirePolicy: components["schemas"]["MisfirePolicy"];
            /**
             * Format: uint32
             * @description Default: 60
             */
            misfireThresholdSec: number;
            /** @description Default: "FIRST" */
            overlap: components["schemas"]["Overlap"];
            startAt: components["schemas"]["Timestamp"] | null;
            /** @description Default: "UTC" */
            timezone: string;
            /** @constant */
            type: "CRON";
        } | {
            anchorAt: components["schemas"]["Timestamp"] | null;
            endAt: components["schemas"]["Timestamp"] | null;
            /** Format: uint64 */
            everySec: number;
            /**
             * Format: uint32
             * @description Default: 0
             */
            jitterSec: number;
            /**
             * Format: uint32
             * @description Default: 1000
             */
            maxCatchUp: number;
            /** @description Default: "FIRE_ONCE_NOW" */
            misfirePolicy: components["schemas"]["MisfirePolicy"];
            /**
             * Format: uint32
             * @description Default: 60
             */
            misfireThresholdSec: number;
            startAt: components["schemas"]["Timestamp"] | null;
            /** @constant */
            type: "FIXED_RATE";
        } | {
            endAt: components["schemas"]["Timestamp"] | null;
            /** Format: uint64 */
            everySec: number;
            /** @description Default: "FIRE_ONCE_NOW" */
            misfirePolicy: components["schemas"]["MisfirePolicy"];
            /**
             * Format: uint32
             * @description Default: 60
             */
            misfireThresholdSec: number;
            startAt: components["schemas"]["Timestamp"] | null;
            /** @constant */
            type: "FIXED_DELAY";
        } | {
            /** @description An instant, or a local time of `timezone`. It is read back as an instant. */
            at: components["schemas"]["Moment"] | null;
            /** Format: uint64 */
            delayMs?: number | null;
            /** Format: uint64 */
            delaySec?: number | null;
            /** @description Default: "FIRE_ONCE_NOW" */
            misfirePolicy: components["schemas"]["MisfirePolicy"];
            /**
             * Format: uint32
             * @description Default: 60
             */
            misfireThresholdSec: number;
            /** @description Of `at`, an IANA name. Needed if `at` has no offset. */
            timezone?: string | null;
            /** @constant */
            type: "ONCE";
        } | {
            /** @constant */
            type: "MANUAL";
        } | {
            /** Format: uint64 */
            delayMs?: number | null;
            /** Format: uint64 */
            delaySec?: number | null;
            /** @description Default: "FIRE_ONCE_NOW" */
            misfirePolicy: components["schemas"]["MisfirePolicy"];
            /**
             * Format: uint32
             * @description Default: 60
             */
            misfireThresholdSec: number;
            /** @constant */
            type: "DELAY";
        } | {
            /** @description Default: "FIRE_ONCE_NOW" */
            misfirePolicy: components["schemas"]["MisfirePolicy"];
            /**
             * Format: uint32
             * @description Default: 60
             */
            misfireThresholdSec: number;
            /** @constant */
            type: "IMMEDIATE";
        };
        /** @description `POST /jobs/{jobId}/trigger`, `job.trigger`. */
        TriggerBody: {
            /** @description The caller's id: the same one twice makes one run. */
            manualRunId?: string | null;
            /** @description An object whose values are laid over the job's params by their names. */
            params?: components["schemas"]["Payload"] | null;
            reason?: string | null;
        };
        /** @description Who triggered a run. */
        TriggeredBy: {
            /** @description IP address of the caller. */
            address?: string | null;
            requestId?: string | null;
            /** @description Name of the credential. */
            who?: string | null;
        };
        /** @description When a job is due. The types `DELAY` and `IMMEDIATE` are other words for ONCE, and read back as ONCE. */
        TriggerInput: {
            /** @description Default: "AUTO" */
            dialect?: components["schemas"]["Dialect"];
            endAt?: components["schemas"]["Timestamp"] | null;
            expr: string;
            /** @description Default: "SHIFT" */
            gap?: components["schemas"]["Gap"];
            /**
             * Format: uint32
             * @description Default: 0
             */
            jitterSec?: number;
            /**
             * Format: uint32
             * @description Default: 1000
             */
            maxCatchUp?: number;
            /** @description Default: "FIRE_ONCE_NOW" */
            misfirePolicy?: components["schemas"]["MisfirePolicy"];
            /**
             * Format: uint32
             * @description Default: 60
             */
            misfireThresholdSec?: number;
            /** @description Default: "FIRST" */
            overlap?: components["schemas"]["Overlap"];
            startAt?: components["schemas"]["Timestamp"] | null;
            /** @description Default: "UTC" */
            timezone?: string;
            /** @constant */
            type: "CRON";
        } | {
            anchorAt?: components["schemas"]["Timestamp"] | null;
            endAt?: components["schemas"]["Timestamp"] | null;
            /** Format: uint64 */
            everySec: number;
            /**
             * Format: uint32
             * @description Default: 0
             */
            jitterSec?: number;
            /**
             * Format: uint32
             * @description Default: 1000
             */
            maxCatchUp?: number;
            /** @description Default: "FIRE_ONCE_NOW" */
            misfirePolicy?: components["schemas"]["MisfirePolicy"];
            /**
             * Format: uint32
             * @description Default: 60
             */
            misfireThresholdSec?: number;
            startAt?: components["schemas"]["Timestamp"] | null;
            /** @constant */
            type: "FIXED_RATE";
        } | {
            endAt?: components["schemas"]["Timestamp"] | null;
            /** Format: uint64 */
            everySec: number;
            /** @description Default: "FIRE_ONCE_NOW" */
            misfirePolicy?: components["schemas"]["MisfirePolicy"];
            /**
             * Format: uint32
             * @description Default: 60
             */
            misfireThresholdSec?: number;
            startAt?: components["schemas"]["Timestamp"] | null;
            /** @constant */
            type: "FIXED_DELAY";
        } | {
            /** @description An instant, or a local time of `timezone`. It is read back as an instant. */
            at?: components["schemas"]["Moment"] | null;
            /** Format: uint64 */
            delayMs?: number | null;
            /** Format: uint64 */
            delaySec?: number | null;
            /** @description Default: "FIRE_ONCE_NOW" */
            misfirePolicy?: components["schemas"]["MisfirePolicy"];
            /**
             * Format: uint32
             * @description Default: 60
             */
            misfireThresholdSec?: number;
            /** @description Of `at`, an IANA name. Needed if `at` has no offset. */
            timezone?: string | null;
            /** @constant */
            type: "ONCE";
        } | {
            /** @constant */
            type: "MANUAL";
        } | {
            /** Format: uint64 */
            delayMs?: number | null;
            /** Format: uint64 */
            delaySec?: number | null;
            /** @description Default: "FIRE_ONCE_NOW" */
            misfirePolicy?: components["schemas"]["MisfirePolicy"];
            /**
             * Format: uint32
             * @description Default: 60
             */
            misfireThresholdSec?: number;
            /** @constant */
            type: "DELAY";
        } | {
            /** @description Default: "FIRE_ONCE_NOW" */
            misfirePolicy?: components["schemas"]["MisfirePolicy"];
            /**
             * Format: uint32
             * @description Default: 60
             */
            misfireThresholdSec?: number;
            /** @constant */
            type: "IMMEDIATE";
        };
        /** @description What a backfill does with instants of which the ledger says nothing any more. */
        UnknownInstants: "SKIP" | "RUN";
        /** @description A version of a definition. */
        VersionView: {
            /** @description IP address of the caller. */
            address?: string | null;
            at: components["schemas"]["Timestamp"];
            /** @description What differs from that version, by the names of the fields of `spec`. Of secret params only the names are compared. Default: [] */
            changes: components["schemas"]["FieldChange"][];
            /**
             * Format: uint64
             * @description The version that `changes` compares with. Absent: there is none, or its definition is not kept.
             */
            comparedWith?: number | null;
            /** @description By its name in RPC, such as `job.replace`. */
            operation?: string | null;
            reason?: string | null;
            spec: components["schemas"]["JobSpec"];
            /** Format: uint64 */
            version: number;
            /** @description Name of the credential. Absent: it is not known, because an earlier release made the version. */
            who?: string | null;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    "page.root": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The console; without one what this is, with links */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html; charset=utf-8": string;
                };
            };
        };
    };
    "page.api": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What this is, with links and every route */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html; charset=utf-8": string;
                };
            };
        };
    };
    "job.apply": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ApplyBody"];
            };
        };
        responses: {
            /** @description Bring jobs to what their manifests say, an answer for each */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AppliedView"];
                };
            };
        };
    };
    "audit.list": {
        parameters: {
            query?: {
                /** @description The first millisecond that is asked for. */
                from?: components["schemas"]["Timestamp"] | null;
                jobId?: components["schemas"]["JobId"] | null;
                /** @description Name of an operation, such as `job.pause`. */
                operation?: string | null;
                /** @description `DONE`, `REFUSED` (all others), or the code of an error. */
                outcome?: string | null;
                /** @description Records of a page at most. One may have fewer although more follow: with filters a call looks at a bounded number. */
                pageSize?: number | null;
                pageToken?: string | null;
                runId?: components["schemas"]["RunId"] | null;
                /** @description Default: the credential's own; for operators every tenant, and what is about none. */
                tenantId?: string | null;
                /** @description The last one. */
                to?: components["schemas"]["Timestamp"] | null;
                /** @description Name of a credential. */
                who?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The audit trail, newest first: who changed what and why, and who was refused */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page7"];
                };
            };
        };
    };
    "audit.export": {
        parameters: {
            query?: {
                /** @description The first millisecond that is asked for. */
                from?: components["schemas"]["Timestamp"] | null;
                jobId?: components["schemas"]["JobId"] | null;
                /** @description Name of an operation, such as `job.pause`. */
                operation?: string | null;
                /** @description `DONE`, `REFUSED` (all others), or the code of an error. */
                outcome?: string | null;
                runId?: components["schemas"]["RunId"] | null;
                /** @description Default: the credential's own; for operators every tenant, and what is about none. */
                tenantId?: string | null;
                /** @description The last one. */
                to?: components["schemas"]["Timestamp"] | null;
                /** @description Name of a credential. */
                who?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The audit trail as lines of JSON, newest first, sent while it is read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": components["schemas"]["AuditView"];
                };
            };
        };
    };
    "backfill.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                backfillId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A backfill or a replay, with its progress */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BackfillView"];
                };
            };
        };
    };
    "backfill.cancel": {
        parameters: {
            query?: {
                reason?: string | null;
            };
            header?: never;
            path: {
                backfillId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Cancel a backfill: it starts nothing more, and its open runs are canceled */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BackfillView"];
                };
            };
        };
    };
    "backfill.pause": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                backfillId: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description Start nothing more of a backfill; its runs that are open go on */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BackfillView"];
                };
            };
        };
    };
    "backfill.resume": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                backfillId: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description Go on with a backfill that was paused */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BackfillView"];
                };
            };
        };
    };
    "bulk.list": {
        parameters: {
            query?: {
                page?: number | null;
                pageSize?: number | null;
                pageToken?: string | null;
                tenantId?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Bulk operations, the newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page2"];
                };
            };
        };
    };
    "bulk.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BulkBody"];
            };
        };
        responses: {
            /** @description Pause, resume, trigger or delete all jobs that a filter names, or cancel, retry or redrive its runs; dryRun only counts them */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BulkView"];
                };
            };
            /** @description The work has begun and goes on behind the answer */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BulkView"];
                };
            };
        };
    };
    "bulk.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                bulkId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A bulk operation, with its progress */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BulkView"];
                };
            };
        };
    };
    "bulk.abort": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                bulkId: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description Begin no further items of a bulk operation; what it has done stays */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BulkView"];
                };
            };
        };
    };
    "bulk.undo": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                bulkId: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description Resume what a bulk operation has paused, or pause what it has resumed, as far as nobody has changed it since */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BulkView"];
                };
            };
        };
    };
    "store.backup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description An archive of everything on this node, sent while it is made */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/vnd.campanile.archive": string;
                };
            };
        };
    };
    "clock.accept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description Fire again after a jump of the clock: it is right */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "cluster.events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What this node saw happen, the newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Items5"];
                };
            };
        };
    };
    "store.history": {
        parameters: {
            query?: {
                /** @description From this day on. Default: the first. */
                from?: string | null;
                /** @description Up to this day, which is included. Default: the last that is closed. */
                to?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Runs that ended on closed days, with attempts and logs, oldest first: days of history, sent while they are read */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/vnd.campanile.archive": string;
                };
            };
        };
    };
    "cluster.members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Living nodes of the cluster, as this one sees them */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Items3"];
                };
            };
        };
    };
    "cluster.cordon": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                node: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description Give a node nothing new; it keeps what it has */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "cluster.uncordon": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                node: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description Undo a node's cordon */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "system.info": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Facts of this node, with numbers of all nodes */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeView"];
                };
            };
        };
    };
    "cluster.plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Shards that are to move, and why */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlanView2"];
                };
            };
        };
    };
    "cluster.shards": {
        parameters: {
            query?: {
                /** @description Only those of the node of this name. */
                node?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Who owns each shard */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Items4"];
                };
            };
        };
    };
    "dlq.list": {
        parameters: {
            query?: {
                /** @description The `cause` of a dead letter, as `dlq.causes` tells it. */
                cause?: string | null;
                /** @description The first millisecond in which a run ended. */
                from?: components["schemas"]["Timestamp"] | null;
                jobId?: components["schemas"]["JobId"] | null;
                page?: number | null;
                /** @description Dead letters of a page at most. One may have fewer although more follow: with filters a call looks at a bounded number. */
                pageSize?: number | null;
                pageToken?: string | null;
                tenantId?: string | null;
                /** @description The last one. */
                to?: components["schemas"]["Timestamp"] | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Dead letters, newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page5"];
                };
            };
        };
    };
    "dlq.discard": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                runId: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description Put a dead letter away; the run stays */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "dlq.redrive": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                runId: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RetryBody"];
            };
        };
        responses: {
            /** @description Run a dead letter again */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunView"];
                };
            };
        };
    };
    "dlq.causes": {
        parameters: {
            query?: {
                /** @description The first millisecond in which a run ended. */
                from?: components["schemas"]["Timestamp"] | null;
                tenantId?: string | null;
                /** @description The last one. */
                to?: components["schemas"]["Timestamp"] | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Dead letters by their cause, the most frequent first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CausesView"];
                };
            };
        };
    };
    "executor.list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Executors that are connected, of all nodes */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Gathered"];
                };
            };
        };
    };
    "job.list": {
        parameters: {
            query?: {
                /** @description `key=value,key2!=value2,key3`. */
                labels?: string | null;
                page?: number | null;
                pageSize?: number | null;
                pageToken?: string | null;
                status?: components["schemas"]["JobStatus"] | null;
                tenantId?: string | null;
                /** @description Part of the name, the displayName, the description, the owner or an annotation, in small or capital letters. */
                text?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Jobs, in order of their id */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page"];
                };
            };
        };
    };
    "job.create": {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same body again does not do it again, but answers what was made. A key is kept for 30 days; a call whose key came with another request before is refused. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["JobSpecInput"];
            };
        };
        responses: {
            /** @description Create a job */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Created"];
                };
            };
        };
    };
    "job.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                jobId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A job */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobView"];
                };
            };
        };
    };
    "job.replace": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                jobId: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReplaceBody"];
            };
        };
        responses: {
            /** @description Replace a job's definition, given the version it replaces */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobView"];
                };
            };
        };
    };
    "job.delete": {
        parameters: {
            query?: {
                reason?: string | null;
            };
            header?: never;
            path: {
                jobId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete a job; its history stays */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "job.backfillGet": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                jobId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The newest backfill or replay of a job, with its progress */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BackfillView"];
                };
            };
        };
    };
    "job.backfill": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                jobId: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BackfillBody"];
            };
        };
        responses: {
            /** @description Run instants of the past that made no run, or whose run failed, or all of them, behind the live runs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BackfillView"];
                };
            };
            /** @description The work has begun and goes on behind the answer */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BackfillView"];
                };
            };
        };
    };
    "job.explain": {
        parameters: {
            query?: {
                /** @description Explain what became of this instant instead of how the job stands now. */
                at?: components["schemas"]["Timestamp"] | null;
            };
            header?: never;
            path: {
                jobId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Why a job fires or does not, or what became of one of its instants */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExplainView"];
                };
            };
        };
    };
    "job.ledger": {
        parameters: {
            query?: {
                from?: components["schemas"]["Timestamp"] | null;
                pageSize?: number | null;
                to?: components["schemas"]["Timestamp"] | null;
            };
            header?: never;
            path: {
                jobId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What became of every due instant */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LedgerView"];
                };
            };
        };
    };
    "job.pause": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                jobId: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description Start nothing more; bodies that run go on */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobView"];
                };
            };
        };
    };
    "job.replay": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                jobId: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReplayBody"];
            };
        };
        responses: {
            /** @description Run instants that made a run once more, with the params of that run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BackfillView"];
                };
            };
            /** @description The work has begun and goes on behind the answer */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BackfillView"];
                };
            };
        };
    };
    "job.resume": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                jobId: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description Fire again, from the next due instant on */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobView"];
                };
            };
        };
    };
    "job.rollback": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                jobId: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RollbackBody"];
            };
        };
        responses: {
            /** @description Give a job the definition of an earlier version, as a new version */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobView"];
                };
            };
        };
    };
    "job.runs": {
        parameters: {
            query?: {
                page?: number | null;
                pageSize?: number | null;
                pageToken?: string | null;
            };
            header?: never;
            path: {
                jobId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A job's runs, newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page3"];
                };
            };
        };
    };
    "job.statistics": {
        parameters: {
            query?: {
                /** @description How far back from now: a number with `s`, `m`, `h` or `d`. Default: `24h`. */
                window?: string | null;
            };
            header?: never;
            path: {
                jobId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Outcomes, durations and lateness of a job's runs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StatisticsView"];
                };
            };
        };
    };
    "job.trigger": {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same body again does not do it again, but answers what was made. A key is kept for 30 days; a call whose key came with another request before is refused. */
                "Idempotency-Key"?: string;
            };
            path: {
                jobId: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["TriggerBody"];
            };
        };
        responses: {
            /** @description Run now; the same manualRunId makes one run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunView"];
                };
            };
        };
    };
    "job.versions": {
        parameters: {
            query?: {
                /** @description Compare each version with this one instead of the version before it. */
                against?: number | null;
                /** @description 20 unless given, 1000 at most. */
                pageSize?: number | null;
                pageToken?: string | null;
            };
            header?: never;
            path: {
                jobId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The history of a job's definition, newest first: who changed what and why */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page4"];
                };
            };
        };
    };
    "job.watchOne": {
        parameters: {
            query?: {
                /** @description Go on behind this place: the id of an event. */
                after?: string | null;
                /** @description End after so many seconds (3,600 at most, and then unless told otherwise). */
                waitSec?: number | null;
            };
            header?: never;
            path: {
                jobId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A job's definition as it changes */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example retry: 1000
                     *
                     *     id: 64b1f0-11
                     *     event: job
                     *     data: {"at":"2026-02-25T01:00:00.000Z","change":"PAUSED","jobId":8193,"jobName":"daily_billing","status":"PAUSED","tenantId":"default","version":2}
                     */
                    "text/event-stream": unknown;
                };
            };
        };
    };
    "job.createLines": {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same body again does not do it again, but answers what was made. A key is kept for 30 days; a call whose key came with another request before is refused. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/x-ndjson": components["schemas"]["JobSpecInput"];
            };
        };
        responses: {
            /** @description Create many jobs: one in each line, an answer for each line */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": components["schemas"]["BulkLine"];
                };
            };
        };
    };
    "job.find": {
        parameters: {
            query: {
                name: string;
                /** @description Default: the credential's; for operators `default`. */
                tenantId?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The job of a name */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobView"];
                };
            };
        };
    };
    "dag.create": {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same body again does not do it again, but answers what was made. A key is kept for 30 days; a call whose key came with another request before is refused. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ShortGraphSpec"];
            };
        };
        responses: {
            /** @description Create a DAG of jobs that exist, by their ids */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DagCreated"];
                };
            };
        };
    };
    "job.watch": {
        parameters: {
            query?: {
                /** @description Go on behind this place: the id of an event. */
                after?: string | null;
                jobId?: components["schemas"]["JobId"] | null;
                /** @description With these labels: `key=value,key2!=value2,key3`. */
                labels?: string | null;
                tenantId?: string | null;
                /** @description End after so many seconds (3,600 at most, and then unless told otherwise). */
                waitSec?: number | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Definitions of jobs as they change, as server-sent events */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example retry: 1000
                     *
                     *     id: 64b1f0-11
                     *     event: job
                     *     data: {"at":"2026-02-25T01:00:00.000Z","change":"PAUSED","jobId":8193,"jobName":"daily_billing","status":"PAUSED","tenantId":"default","version":2}
                     */
                    "text/event-stream": unknown;
                };
            };
        };
    };
    "outbox.list": {
        parameters: {
            query?: {
                page?: number | null;
                pageSize?: number | null;
                pageToken?: string | null;
                tenantId?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Messages between jobs that wait or were given up */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page6"];
                };
            };
        };
    };
    "outbox.discard": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                runId: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description Take the messages of a run that were given up off the list */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "outbox.resend": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                runId: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description Send the messages of a run that were given up again */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "job.plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ApplyBody"];
            };
        };
        responses: {
            /** @description What an apply of these manifests would do; changes nothing */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlanView"];
                };
            };
        };
    };
    "pool.list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Pools with their executors and waiting runs, of all nodes */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Gathered2"];
                };
            };
        };
    };
    "run.list": {
        parameters: {
            query?: {
                /** @description The first millisecond in which a run ended, or was created if it is open. */
                from?: components["schemas"]["Timestamp"] | null;
                jobId?: components["schemas"]["JobId"] | null;
                /** @description Of jobs that have these labels now: `key=value,key2!=value2,key3`. */
                labels?: string | null;
                page?: number | null;
                /** @description Runs of a page at most. One may have fewer although more follow: with filters a call looks at a bounded number. */
                pageSize?: number | null;
                pageToken?: string | null;
                source?: components["schemas"]["Source"] | null;
                /**
                 * @description One or several states, with commas between them. Default: with `jobId` all; otherwise those of runs that are open, FAILED and
                 *     TIMEOUT.
                 */
                state?: string | null;
                /** @description Default: the credential's own; for operators every tenant. */
                tenantId?: string | null;
                /** @description The last one. */
                to?: components["schemas"]["Timestamp"] | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Runs of all jobs: those that are open, newest first, then those that have ended, the last one first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page3"];
                };
            };
        };
    };
    "run.get": {
        parameters: {
            query?: {
                /** @description Answer when the run is final, at the latest after so many seconds (60 at most). Default: at once. */
                waitSec?: number | null;
            };
            header?: never;
            path: {
                runId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A run with its attempts; can wait for its end */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunView"];
                };
            };
        };
    };
    "run.cancel": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                runId: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description Cancel a run that is not final */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunView"];
                };
            };
        };
    };
    "run.confirm": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                runId: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ConfirmBody"];
            };
        };
        responses: {
            /** @description Decide about a run in NEEDS_CONFIRMATION */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunView"];
                };
            };
        };
    };
    "run.explain": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                runId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Why a run exists, why it is not running, why it was late */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExplainView"];
                };
            };
        };
    };
    "run.log": {
        parameters: {
            query?: {
                /** @description Default: the newest. */
                attempt?: number | null;
                /** @description Only lines with this text, in large or small letters. */
                contains?: string | null;
                /**
                 * @description Server-sent events while it grows, over all attempts to come unless one is named: `log` with what was written, `end` when no
                 *     more will be. `Last-Event-ID` goes on where a connection broke.
                 */
                follow?: boolean;
                /** @description `text`: all that there is from the offset on, as it was written, with X-Next-Offset and X-Log-End. */
                format?: components["schemas"]["LogFormat"];
                /** @description Only lines of this level or a more severe one. */
                level?: components["schemas"]["LogLevel"] | null;
                /** @description Bytes to leave out at the start. */
                offset?: number | null;
                /** @description Only the last lines, so many of those that the other filters leave. With `follow` those that are there, and all to come. */
                tail?: number | null;
            };
            header?: never;
            path: {
                runId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The output of an attempt */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LogView"];
                    /**
                     * @example retry: 1000
                     *
                     *     id: 1-10
                     *     event: log
                     *     data: {"runId":4194305,"attempt":1,"offset":0,"text":"billing 7\n","nextOffset":10,"end":true}
                     *
                     *     event: end
                     *     data: {"runId":4194305,"runState":"SUCCESS","attempt":1,"attemptState":"SUCCESS"}
                     */
                    "text/event-stream": unknown;
                    "text/plain": string;
                };
            };
        };
    };
    "dag.nodes": {
        parameters: {
            query?: {
                /** @description With a drawing as text. */
                draw?: components["schemas"]["DagDrawing"] | null;
            };
            header?: never;
            path: {
                runId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The nodes of a run of a DAG, with a layout */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DagRunView"];
                };
            };
        };
    };
    "dag.mark": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                runId: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DagMarkBody"];
            };
        };
        responses: {
            /** @description Set the state of a node of a DAG run, SUCCESS or SKIPPED; what waits for it goes on */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunView"];
                };
            };
        };
    };
    "dag.pause": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                runId: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description Pause one run of a DAG: no further node starts, and runs of nodes go on */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunView"];
                };
            };
        };
    };
    "dag.resume": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                runId: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description Resume a paused run of a DAG: nodes start again */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunView"];
                };
            };
        };
    };
    "dag.retry": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                runId: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["DagRetryBody"];
            };
        };
        responses: {
            /** @description Run nodes of a DAG run again; what did not run because of them follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunView"];
                };
            };
        };
    };
    "run.priority": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                runId: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PriorityBody"];
            };
        };
        responses: {
            /** @description Give a run that waits a priority of its own */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunView"];
                };
            };
        };
    };
    "run.retry": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                runId: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RetryBody"];
            };
        };
        responses: {
            /** @description Run a final run again, as its next generation */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunView"];
                };
            };
        };
    };
    "run.watchOne": {
        parameters: {
            query?: {
                /** @description Go on behind this place: the id of an event. */
                after?: string | null;
                /** @description End after so many seconds (3,600 at most, and then unless told otherwise). */
                waitSec?: number | null;
            };
            header?: never;
            path: {
                runId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A run as it changes, until its end */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example retry: 1000
                     *
                     *     id: 64b1f0-11
                     *     event: run
                     *     data: {"at":"2026-02-25T01:00:00.000Z","attemptCount":1,"executorId":"billing-1","generation":1,"jobId":8193,"jobName":"daily_billing","lastError":null,"logicalTime":"2026-02-25T01:00:00.000Z","nextRetryAt":null,"runId":4194305,"source":"SCHEDULE","state":"RUNNING","tenantId":"default"}
                     */
                    "text/event-stream": unknown;
                };
            };
        };
    };
    "run.watch": {
        parameters: {
            query?: {
                /** @description Go on behind this place: the id of an event. */
                after?: string | null;
                jobId?: components["schemas"]["JobId"] | null;
                /** @description Of jobs with these labels: `key=value,key2!=value2,key3`. */
                labels?: string | null;
                runId?: components["schemas"]["RunId"] | null;
                /** @description Only changes to this state. */
                state?: components["schemas"]["RunState"] | null;
                tenantId?: string | null;
                /** @description End after so many seconds (3,600 at most, and then unless told otherwise). */
                waitSec?: number | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Runs as they change, as server-sent events */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example retry: 1000
                     *
                     *     id: 64b1f0-11
                     *     event: run
                     *     data: {"at":"2026-02-25T01:00:00.000Z","attemptCount":1,"executorId":"billing-1","generation":1,"jobId":8193,"jobName":"daily_billing","lastError":null,"logicalTime":"2026-02-25T01:00:00.000Z","nextRetryAt":null,"runId":4194305,"source":"SCHEDULE","state":"RUNNING","tenantId":"default"}
                     */
                    "text/event-stream": unknown;
                };
            };
        };
    };
    "schedule.load": {
        parameters: {
            query?: {
                /** @description How far ahead, 60 unless given, 120 at most. */
                minutes?: number | null;
                tenantId?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How many instants are due in each of the next minutes */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoadView"];
                };
            };
        };
    };
    "schedule.preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PreviewBody"];
            };
        };
        responses: {
            /** @description When a trigger would fire; creates nothing */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Preview"];
                };
            };
        };
    };
    "session.get": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Whose call this is */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionView"];
                };
            };
        };
    };
    "session.open": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Open a session of the console: the answer to a call with a token sets a cookie that stands for it */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionView"];
                };
            };
        };
    };
    "session.close": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description End a session of the console: the browser forgets the cookie */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "system.pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description The change is kept. These shards have not confirmed it yet; the node goes on telling them until all have */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Spread"];
                };
            };
            /** @description Stop firing and starting everywhere */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "system.resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description The change is kept. These shards have not confirmed it yet; the node goes on telling them until all have */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Spread"];
                };
            };
            /** @description Undo the system's pause */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "tenant.list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Tenants with their limits and use */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Items"];
                };
            };
        };
    };
    "tenant.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenantId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A tenant */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TenantView"];
                };
            };
        };
    };
    "tenant.set": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenantId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TenantBodyInput"];
            };
        };
        responses: {
            /** @description Set a tenant's limits (0 = none) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TenantView"];
                };
            };
        };
    };
    "tenant.delete": {
        parameters: {
            query?: {
                reason?: string | null;
            };
            header?: never;
            path: {
                tenantId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Forget the limits and the pause of a tenant without jobs and open runs; its history stays */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "tenant.pause": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenantId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description The change is kept. These shards have not confirmed it yet; the node goes on telling them until all have */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Spread"];
                };
            };
            /** @description Stop firing and starting for a tenant */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "tenant.resume": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenantId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description The change is kept. These shards have not confirmed it yet; the node goes on telling them until all have */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Spread"];
                };
            };
            /** @description Undo a tenant's pause */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "target.list": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenantId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The targets of a tenant that have settings */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Items2"];
                };
            };
        };
    };
    "target.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                target: string;
                tenantId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A target of a tenant, with the state of its breaker */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TargetView"];
                };
            };
        };
    };
    "target.set": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                target: string;
                tenantId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TargetBodyInput"];
            };
        };
        responses: {
            /** @description Set all settings of a target: how many runs may call it, how often, how many retries, and when to stop */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TargetView"];
                };
            };
        };
    };
    "target.delete": {
        parameters: {
            query?: {
                reason?: string | null;
            };
            header?: never;
            path: {
                target: string;
                tenantId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Forget the settings of a target; jobs that name it have the default ones */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "page.asset": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                file: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A file of the console */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": string;
                };
            };
        };
    };
    "page.errors": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Every error code and what it means */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html; charset=utf-8": string;
                };
            };
        };
    };
    "page.healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The process answers */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
        };
    };
    "page.metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Metrics in Prometheus' text form */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
        };
    };
    "page.openapi": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description This document */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
        };
    };
    "page.readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The node can take calls; 503 with the reasons when not */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
        };
    };
    "page.jobSchema": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description JSON Schema of manifests (kind: Job), for editors */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/schema+json": Record<string, never>;
                };
            };
        };
    };
}
