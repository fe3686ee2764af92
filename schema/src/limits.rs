//! Every limit with its unit, in one place. When a limit is exceeded, the caller gets an error with a code, and nothing
//! is lost.

mod audit;
mod backfill;
mod bulk;
mod calendars;
mod callers;
mod cluster;
mod graph;
mod imports;
mod lists;
mod outbox;
mod targets;
mod windows;

pub use audit::*;
pub use backfill::*;
pub use bulk::*;
pub use calendars::*;
pub use callers::*;
pub use cluster::*;
pub use graph::*;
pub use imports::*;
pub use lists::*;
pub use outbox::*;
pub use targets::*;
pub use windows::*;

/// Longest name of a job, characters.
pub const NAME_CHARS: usize = 128;
/// Longest tenant or pool name, characters.
pub const TENANT_CHARS: usize = 64;
/// Largest body of an HTTP request, bytes.
pub const HTTP_BODY_BYTES: usize = 4 << 20;
/// Largest stored definition, bytes (encoded).
pub const DEFINITION_BYTES: usize = 64 << 10;
/// Largest params of a trigger, bytes of JSON.
pub const PARAMS_BYTES: usize = 64 << 10;
/// Largest result of an attempt that is kept, bytes of JSON.
pub const RESULT_BYTES: usize = 16 << 10;
/// Longest error message of an attempt that is kept, bytes.
pub const ERROR_MESSAGE_BYTES: usize = 2 << 10;
/// Longest caller's key (`manualRunId`), bytes.
pub const KEY_BYTES: usize = 256;
/// The key of a create (`Idempotency-Key`) is kept this long, milliseconds: 30 days, as long as history by default.
pub const CREATE_KEY_MS: i64 = 30 * 24 * 3_600_000;
/// Keys of creates that one shard keeps, count; over it creates with a key get 503_DISPATCHER_OVERLOADED.
pub const CREATE_KEYS_PER_SHARD: usize = 32_768;
/// Longest reason of an operator, bytes.
pub const REASON_BYTES: usize = 1 << 10;
/// Labels of a job, count.
pub const LABELS: usize = 64;
/// Longest key or value of a label, bytes.
pub const LABEL_BYTES: usize = 256;
/// Highest priority of a job, points.
pub const PRIORITY_MAX: u16 = 1000;
/// Highest `maxAttempts`, count.
pub const ATTEMPTS_MAX: u32 = 100;
/// Attempts kept in a run's record, count; the oldest go first.
pub const ATTEMPTS_KEPT: usize = 20;
/// Highest `timeoutSec`, `everySec` and delay, seconds (ten years).
pub const SECONDS_MAX: u64 = 315_360_000;
/// Highest `maxCatchUp`, instants.
pub const CATCH_UP_MAX: u32 = 100_000;
/// Open runs of one job, count; over it instants are SKIPPED(QUEUE_FULL) and triggers get 429.
pub const OPEN_RUNS_PER_JOB: usize = 1_000;
/// Runs that one wake of a job creates at most; the rest follow in the next wake.
pub const RUNS_PER_WAKE: u64 = 8;
/// Ids that a command other than a wake may use.
pub const IDS_PER_COMMAND: u64 = 2;
/// Runs of FIRE_ALL_MISSED that one job starts per second.
pub const CATCH_UP_RUNS_PER_SEC: i64 = 100;
/// Ledger entries looked at in one decision, count.
pub const INSTANTS_PER_DECISION: usize = 4_096;
/// Runs of one tenant that wait for a permit or an executor, count, when its quota names no other.
pub const QUEUED_RUNS_PER_TENANT: u32 = 100_000;
/// Jobs of one tenant, count, when its quota names no other.
pub const JOBS_PER_TENANT: u64 = 10_000_000;
/// Lateness from which a fire is FIRED_LATE, milliseconds.
pub const LATE_MS: i64 = 1_000;
/// An attempt whose executor was silent this long is SUSPECTED_LOST, milliseconds.
pub const SUSPECT_MS: i64 = 5_000;
/// Lease of an executor session, milliseconds: silent this long, its attempts are lost.
pub const LEASE_MS: i64 = 10_000;
/// A node that did not look at the leases of its executors for so long stood still itself, milliseconds: they begin anew. It looks four times a
/// second.
pub const NODE_AWAY_MS: i64 = 2_000;
/// Interval of executor heartbeats, milliseconds.
pub const HEARTBEAT_MS: i64 = 2_000;
/// Life of a credit on the executor's own clock, milliseconds.
pub const CREDIT_MS: i64 = 2_000;
/// Slot of the timing wheel, milliseconds.
pub const WHEEL_SLOT_MS: i64 = 10;
/// An RPC frame before the hello, bytes.
pub const RPC_FRAME_BEFORE_HELLO_BYTES: usize = 16 << 10;
/// Unfinished RPC frames of all connections of a node, bytes. The first [`RPC_FRAME_BEFORE_HELLO_BYTES`] of each are not counted.
pub const RPC_UNFINISHED_BYTES: usize = 128 << 20;
/// RPC connections from one address that have not said hello, count. An IPv6 address counts with its /64.
pub const RPC_UNGREETED_PER_PEER: usize = 256;
/// RPC connections of one credential, count.
pub const RPC_CONNECTIONS_PER_CREDENTIAL: usize = 5_000;
/// An RPC frame after the hello, bytes.
pub const RPC_FRAME_BYTES: usize = 4 << 20;
/// Nesting of a MessagePack value, levels.
pub const RPC_DEPTH: usize = 32;
/// Time in which a connection must say hello, milliseconds.
pub const RPC_HELLO_MS: u64 = 5_000;
/// Requests of one RPC connection under way at once, count.
pub const RPC_REQUESTS_IN_FLIGHT: usize = 1_024;
/// Frames that wait to be written to one RPC connection, count.
pub const RPC_OUTBOX_FRAMES: usize = 1_024;
/// RPC connections, count.
pub const RPC_CONNECTIONS: usize = 10_000;
/// Assignments, finishes or announced runs in one message, count.
pub const EXECUTOR_BATCH: usize = 4_096;
/// Highest capacity of one executor, slots.
pub const EXECUTOR_SLOTS_MAX: u32 = 100_000;
/// Output of one command that is kept when the job names no other cap, KiB.
pub const OUTPUT_CAP_KB: u32 = 256;
/// Largest log chunk in one message, bytes.
pub const LOG_CHUNK_BYTES: usize = 32 << 10;
/// Logs of one attempt, bytes.
pub const LOG_BYTES_PER_ATTEMPT: usize = 1 << 20;
/// Items of one page, count.
pub const PAGE_SIZE_MAX: usize = 1_000;
/// `page * pageSize` at most, items.
pub const PAGE_DEPTH: usize = 10_000;
/// Frames in one journal batch, count.
pub const JOURNAL_BATCH_FRAMES: usize = 16_384;
/// Bytes of one journal batch.
pub const JOURNAL_BATCH_BYTES: usize = 4 << 20;
/// Bytes of frames in one row of a lane of a cluster's journal; a larger frame has a row of its own.
pub const LANE_ROW_BYTES: usize = 64 << 10;
/// Frames handed to the journal and not yet durable, count per node; over it shards wait.
pub const JOURNAL_IN_FLIGHT_FRAMES: usize = 32_768;
/// Longest wait of a list for the read model to show what is durable, milliseconds.
pub const SHOWN_WAIT_MS: u64 = 500;
/// Durable events that wait for the projector, count; over it due instants wait, and callers get 503_DISPATCHER_OVERLOADED.
pub const PROJECTOR_QUEUE_EVENTS: usize = 262_144;
/// Jobs whose instants waited for the projector and that a shard wakes in one tick afterwards, count.
pub const POSTPONED_PER_TICK: usize = 4_096;
/// Commands that wait in one shard, count; over it callers get 503_DISPATCHER_OVERLOADED.
pub const SHARD_MAILBOX: usize = 65_536;
/// Live job actors per shard, count; over it the idlest are passivated first.
pub const ACTIVE_JOBS_PER_SHARD: usize = 4_096;
/// A job actor without a message this long is passivated, milliseconds.
pub const PASSIVATE_AFTER_MS: i64 = 200;
/// Panics of one job's actor in a row before it is quarantined, count.
pub const PANICS_BEFORE_QUARANTINE: u32 = 3;
/// Frames of a shard after which it is snapshotted, bytes.
pub const SNAPSHOT_AFTER_BYTES: usize = 4 << 20;
/// ... and at least this many times the bytes of the shard's hot state, count.
pub const FRAMES_PER_SNAPSHOT: usize = 2;
/// Age of the newest frame not in a snapshot after which a shard is snapshotted, milliseconds.
pub const SNAPSHOT_AFTER_MS: i64 = 60_000;
/// A shard that has owed a snapshot for so long takes no new jobs and triggers, milliseconds: a day.
pub const SNAPSHOT_OWED_MS: i64 = 86_400_000;
/// Chunk of a snapshot, bytes.
pub const SNAPSHOT_CHUNK_BYTES: usize = 64 << 10;
/// Longest cron expression, bytes.
pub const CRON_TEXT_BYTES: usize = 1_024;
/// Candidates of a cron schedule that are looked at around changes of the clock before a search gives up, count. It is
/// only reached by schedules whose every instant falls into a gap that their policy skips.
pub const CRON_SEARCH_WINDOWS: usize = 400;
/// How far ahead the hazards of a cron schedule are told, days.
pub const CRON_HAZARD_DAYS: i64 = 731;
/// Hazards told of one cron schedule, lines.
pub const CRON_HAZARD_LINES: usize = 32;
/// Output after the cap of a command that is kept as its tail, bytes (at most a quarter of the cap).
pub const COMMAND_TAIL_BYTES: usize = 64 << 10;
/// What an executor hands a shim: command, environment, stdin; bytes of JSON.
pub const COMMAND_ORDER_BYTES: usize = 1 << 20;
/// What a shim may write to its executor, bytes.
pub const COMMAND_REPORT_BYTES: usize = 64 << 10;
/// Processes that a command left behind may end by themselves this long, milliseconds; then they get SIGTERM.
pub const COMMAND_LINGER_MS: u64 = 500;
/// Processes that survive SIGKILL this long hang in the kernel, milliseconds: that is told, and SIGKILL is repeated less often.
pub const COMMAND_KILL_MS: u64 = 5_000;
/// Interval at which a process that hangs in the kernel is looked at and sent SIGKILL again, milliseconds.
pub const COMMAND_STUCK_EVERY_MS: u64 = 1_000;
/// Interval at which SIGKILL is repeated for processes that were started meanwhile, milliseconds.
pub const COMMAND_KILL_EVERY_MS: u64 = 20;
/// Rest of the output after a command ended, milliseconds; also the time for one chunk to be taken when logs stall.
pub const COMMAND_DRAIN_MS: u64 = 5_000;
/// Processes of one command looked at in one walk, count.
pub const COMMAND_TREE_PROCESSES: usize = 65_536;
/// Looks at all processes after a shim was lost, count; each kills what it finds.
pub const COMMAND_SWEEPS: usize = 20;
/// Shortest secret that is masked in output, bytes.
pub const SECRET_MASK_MIN_BYTES: usize = 4;
/// A small file of the embedded store (format, session, trim mark, manifest, flushed position), bytes.
pub const STORE_SMALL_FILE_BYTES: u64 = 256 << 10;
/// Segments of the journal that are kept for reuse after a trim, count.
pub const JOURNAL_SPARE_SEGMENTS: usize = 2;
/// Store calls that read pages, lists or the journal and run at once, count; more wait.
pub const STORE_READ_CALLS: usize = 8;
/// Store calls that apply, flush, trim or retain and run at once, count; more wait.
pub const STORE_VIEW_CALLS: usize = 4;
/// Store calls for snapshots that run at once, count; more wait.
pub const STORE_SNAPSHOT_CALLS: usize = 2;
/// Appends to logs of attempts that run at once, count; more wait.
pub const STORE_LOG_CALLS: usize = 1;
/// Bytes that one read of a segment asks of the disk.
pub const JOURNAL_READ_BYTES: usize = 1 << 20;
/// Longest bearer token, bytes.
pub const TOKEN_BYTES: usize = 256;
/// A session of the console ends this long after it was opened, seconds.
pub const CONSOLE_SESSION_SEC: i64 = 43_200;
/// Tokens in a token file, count.
pub const TOKEN_FILE_LINES: usize = 10_000;
/// The token file is looked at again this often, milliseconds, if its last look is [`TOKEN_RELOAD_MS`] ago.
pub const TOKEN_LOOK_MS: u64 = 500;
/// Tokens of one name in a token file, count: the one in use and the one that replaces it.
pub const TOKENS_OF_A_NAME: usize = 2;
/// A token file is looked at for changes at most this often, milliseconds.
pub const TOKEN_RELOAD_MS: u64 = 2_000;
/// HTTP connections, count. For one more the connection that has been idle longest is closed.
pub const HTTP_CONNECTIONS: usize = 4_096;
/// Time for a TLS handshake, milliseconds: with it a silent connection is over.
pub const TLS_HANDSHAKE_MS: u64 = 5_000;
/// TLS handshakes of one port under way at once, count; one more displaces the oldest.
pub const TLS_HANDSHAKES: usize = 1_024;
/// Between two looks at the files of the TLS certificate, milliseconds.
pub const TLS_LOOK_MS: u64 = 2_000;
/// Time in which a request's body must have arrived, milliseconds.
pub const HTTP_BODY_MS: u64 = 30_000;
/// Bytes of a body over its limit that are read away, so that the caller gets to see the 413.
pub const HTTP_BODY_DRAIN_BYTES: usize = 32 << 20;
/// Time for the head of each HTTP request, milliseconds: of the first since the connection was made, of all others since their
/// first byte. Then the connection is closed: silent and slow ones give their place to others.
pub const HTTP_HEAD_MS: u64 = 10_000;
/// An HTTP connection on which nothing comes or goes is closed after this, milliseconds. More than `HTTP_WAIT_MS`.
pub const HTTP_IDLE_MS: u64 = 120_000;
/// Longest wait of `GET /runs/{runId}?waitSec=`, milliseconds.
pub const HTTP_WAIT_MS: u64 = 60_000;
/// Longest `X-Request-Id` that is taken over, bytes.
pub const REQUEST_ID_BYTES: usize = 128;
/// Jobs in one `job.createMany`, lines in one bulk create over HTTP; count.
pub const CREATE_MANY_JOBS: usize = 10_000;
/// Longest label selector, bytes.
pub const LABEL_SELECTOR_BYTES: usize = 4 << 10;
/// Instants of one schedule preview, count.
pub const PREVIEW_INSTANTS: usize = 100;
/// Keys in the key file of secret params, count.
pub const SECRET_KEYS: usize = 1_000;
/// Values in one RPC frame before the hello, count; nested ones each count.
pub const RPC_VALUES_BEFORE_HELLO: usize = 4_096;
/// Values in one RPC frame after the hello, count: bounds what decoding a frame can build.
pub const RPC_VALUES: usize = 1 << 19;
/// Runs that one call of retention removes, count.
pub const RETAIN_ROWS: usize = 10_000;
/// Time for connecting to a node and saying hello, milliseconds.
pub const RPC_CONNECT_MS: u64 = 5_000;
/// Read from an RPC connection at once, bytes.
pub const RPC_READ_BYTES: usize = 64 << 10;
/// Bytes that wait to be written on one RPC connection before no more are taken from those who send.
pub const RPC_UNSENT_BYTES: usize = 1 << 20;
/// Calls that wait in one client for the connection, count.
pub const CLIENT_CALLS_WAITING: usize = 1_024;
/// A client whose calls wait this long without one byte from the node connects anew, milliseconds.
pub const CLIENT_SILENCE_MS: u64 = 30_000;
/// First wait between attempts to connect, milliseconds.
pub const RECONNECT_MIN_MS: u64 = 50;
/// Longest wait between attempts to connect, milliseconds.
pub const RECONNECT_MAX_MS: u64 = 2_000;
/// Deadline of a client's call when none is set, milliseconds.
pub const CLIENT_CALL_MS: u64 = 30_000;
/// A crontab file that is imported, bytes.
pub const CRONTAB_FILE_BYTES: u64 = 1 << 20;
/// A line of a crontab, bytes.
pub const CRONTAB_LINE_BYTES: usize = 16 << 10;
/// Environment settings in force in one crontab, count.
pub const CRONTAB_SETTINGS: usize = 256;
/// Files of one import, count.
pub const CRONTAB_FILES: usize = 10_000;
/// Jobs of one import, count.
pub const CRONTAB_JOBS: usize = 100_000;
/// Highest `RANDOM_DELAY` of a crontab, minutes (a day).
pub const CRONTAB_RANDOM_DELAY_MIN: u32 = 1_440;
/// Next fires shown for an imported job, count.
pub const CRONTAB_NEXT_FIRES: usize = 3;
/// Log of one attempt that waits in the executor to be sent, bytes; over it lines are dropped and counted.
pub const LOG_UNSENT_BYTES: usize = 256 << 10;
/// `executor.log` requests of one connection under way at once, count.
pub const EXECUTOR_LOGS_IN_FLIGHT: usize = 16;
/// `executor.finish` requests of one connection under way at once, count.
pub const EXECUTOR_FINISHES_IN_FLIGHT: usize = 64;
/// Results that no node has called durable, count per executor; over it the executor gives no credit.
pub const EXECUTOR_RESULTS_WAITING: usize = 65_536;
/// Default `stopGraceSec`: the time that a body has to end by itself after it was told to stop, seconds. Then it is killed.
pub const STOP_GRACE_SEC: u64 = 5;
/// Attempts of one generation that ended by their executor's shutdown or loss and are not counted against `maxAttempts`, count.
pub const UNCOUNTED_ATTEMPTS: u32 = 5;
/// Highest `stopGraceSec`, seconds. With [`STOP_MARGIN_MS`] it leaves a heartbeat and 1.5 s for its answer before a body with
/// `onLostContact: STOP` must be told to stop, and a killed executor's commands end before its lease does.
pub const STOP_GRACE_MAX_SEC: u64 = 6;
/// Time between the end of the grace and the end of the lease, in which a body is killed, milliseconds.
pub const STOP_MARGIN_MS: u64 = 500;

/// An executor that no node has heard this long tells bodies with `onLostContact: STOP` to stop, milliseconds, so that they have
/// ended before the lease has.
pub const fn lost_contact_ms(grace_ms: u64) -> u64 {
    (LEASE_MS as u64).saturating_sub(STOP_MARGIN_MS).saturating_sub(grace_ms)
}

/// Interval at which an executor gives its credit again, milliseconds; well below [`CREDIT_MS`].
pub const CREDIT_AGAIN_MS: u64 = 500;
/// A node that leaves a heartbeat unanswered this long is connected anew, milliseconds.
pub const HEARTBEAT_ANSWER_MS: u64 = 5_000;
/// An executor that has just sent results gathers the next ones this long, milliseconds: with many short bodies a message of its own for each
/// would cost the node more than the runs.
pub const FINISH_GATHER_MS: u64 = 1;
/// Wait before a result that a node did not take now is sent again, milliseconds.
pub const FINISH_AGAIN_MS: u64 = 200;
/// Longest error code of an attempt that is kept, bytes.
pub const ERROR_CODE_BYTES: usize = 128;
/// Logs of all attempts of one executor that wait to be sent, bytes; over it lines are dropped and counted.
pub const EXECUTOR_LOG_UNSENT_BYTES: usize = 16 << 20;
/// Messages of a connection that wait for an executor's session, count.
pub const EXECUTOR_EVENTS: usize = 64;
/// Time for stopped bodies and last results after a drain's limit, beyond the grace, milliseconds.
pub const DRAIN_FLUSH_MS: u64 = 2_000;
/// Time that HTTP calls under way get to end when the node stops, milliseconds.
pub const HTTP_STOP_MS: u64 = 5_000;
/// An RPC frame that is not whole and gets no more bytes for this long ends its connection, milliseconds.
pub const RPC_FRAME_IDLE_MS: u64 = 30_000;
/// An RPC peer that takes no byte of what it is sent for this long is cut off, milliseconds.
pub const RPC_WRITE_STALL_MS: u64 = 30_000;
/// Time for answers under way when a connection or the node closes, milliseconds.
pub const RPC_CLOSE_MS: u64 = 5_000;
/// Bytes of a request that count as one of [`RPC_REQUESTS_IN_FLIGHT`].
pub const RPC_BYTES_PER_REQUEST: usize = 16 << 10;
/// What a call that answers with a list counts of [`RPC_REQUESTS_IN_FLIGHT`], count.
pub const RPC_LIST_WEIGHT: u32 = 64;
/// Log chunks of one executor's connection that wait to be stored, count.
pub const EXECUTOR_LOGS_WAITING: usize = 64;
/// How long a connection waits for room for a log chunk before it is refused, milliseconds.
pub const EXECUTOR_LOG_WAIT_MS: u64 = 1_000;
/// Attempts that an executor may name within [`EXECUTOR_FOREIGN_WINDOW_MS`] though it does not hold them, besides twice its slots, count;
/// then its connection is closed.
pub const EXECUTOR_FOREIGN_CLAIMS: usize = 64;
/// Time in which those are counted, milliseconds.
pub const EXECUTOR_FOREIGN_WINDOW_MS: u64 = 60_000;
/// Attempts that one executor announces, besides eight times its slots, count; never more than twice [`EXECUTOR_SLOTS_MAX`].
pub const EXECUTOR_ANNOUNCED: usize = 4_096;
/// An attempt whose log is taken is asked for again after this, milliseconds: whether the executor still holds it.
pub const EXECUTOR_LOG_GRANT_MS: u64 = 10_000;
/// Attempts of one executor's connection of which is known that it may log, count.
pub const EXECUTOR_LOG_GRANTS: usize = 4_096;
/// Nodes that an executor is connected to, or tries to be, count.
pub const EXECUTOR_NODES: usize = 256;
/// Handler names, pools and labels that one executor registers, count each.
pub const EXECUTOR_NAMES: usize = 4_096;
/// Findings that one check of a directory lists, count.
pub const CHECK_FINDINGS: usize = 100;
/// Runs bound to an executor whose attempt is not durable yet, count per node: keeps the time between a credit and its use
/// far below the credit's life when the journal is slow.
pub const BINDS_IN_FLIGHT: usize = 4_096;
/// Time in which an HTTP call is answered, `HTTP_WAIT_MS` and some more, milliseconds; then the caller gets 504_TIMEOUT.
pub const HTTP_CALL_MS: u64 = 75_000;
/// A compiled time zone in `[node] tzdb_dir`, bytes; real ones have some thousands, larger files are passed over.
pub const TZDB_FILE_BYTES: u64 = 1 << 20;
/// Files in `[node] tzdb_dir`, count; real ones have some two thousand.
pub const TZDB_FILES: usize = 20_000;
/// Levels of folders in `[node] tzdb_dir`, count; `America/Argentina/Ushuaia` has three.
pub const TZDB_DEPTH: usize = 4;
/// A line of a bulk create, bytes.
pub const BULK_LINE_BYTES: usize = 256 << 10;
/// Lines of a bulk create that are made durable together at most, count.
pub const BULK_BATCH_LINES: usize = 256;
/// Such batches of one call under way at once, count; with more the node stops reading the body.
pub const BULK_BATCHES_IN_FLIGHT: usize = 4;
/// Bulk creates at once, count per node; over it 503_DISPATCHER_OVERLOADED.
pub const BULK_CALLS: usize = 8;
/// Followers of logs (server-sent events) at once, count per node; over it 503_DISPATCHER_OVERLOADED.
pub const HTTP_FOLLOWERS: usize = 256;
/// Text of one event of a log that is followed, bytes.
pub const FOLLOW_PIECE_BYTES: usize = 64 << 10;
/// Between two looks at a log that is followed and does not grow, milliseconds.
pub const FOLLOW_LOOK_MS: u64 = 250;
/// A follower who hears nothing else hears a comment at this interval, milliseconds. Below `HTTP_IDLE_MS`.
pub const FOLLOW_BEAT_MS: u64 = 15_000;
/// A follower connects anew after this, milliseconds, so that its token is looked at.
pub const FOLLOW_MS: u64 = 3_600_000;
/// Smallest answer that is compressed for callers who take that, bytes.
pub const COMPRESS_FROM_BYTES: u16 = 1_024;
/// Longest URL of an HTTP action, filled in, bytes.
pub const HTTP_ACTION_URL_BYTES: usize = 8 << 10;
/// Headers of an HTTP action, count.
pub const HTTP_ACTION_HEADERS: usize = 64;
/// Longest value of a header of an HTTP action, filled in, bytes.
pub const HTTP_ACTION_HEADER_BYTES: usize = 8 << 10;
/// Largest body of an HTTP action, filled in, bytes.
pub const HTTP_ACTION_BODY_BYTES: usize = 1 << 20;
/// Largest head of an answer to an HTTP action, bytes.
pub const HTTP_ACTION_HEAD_BYTES: usize = 64 << 10;
/// What is read of the body of an answer to an HTTP action, and kept in the run's log, bytes.
pub const HTTP_ACTION_RESPONSE_BYTES: usize = 256 << 10;
/// Highest `timeoutSec` of an HTTP action, seconds.
pub const HTTP_ACTION_TIMEOUT_SEC: u32 = 86_400;
/// Highest `maxRedirects` of an HTTP action, count.
pub const HTTP_ACTION_REDIRECTS: u8 = 10;
/// Addresses of one name that an HTTP action tries, count.
pub const HTTP_ACTION_ADDRESSES: usize = 8;
/// Time for connecting to one address in an HTTP action, milliseconds.
pub const HTTP_ACTION_CONNECT_MS: u64 = 10_000;
/// Least `limits.memoryMb` of a command, MiB: below it hardly a program starts.
pub const COMMAND_MEMORY_LEAST_MB: u64 = 16;
/// Highest `limits.memoryMb` and `limits.fileSizeMb` of a command, MiB (16 TiB).
pub const COMMAND_MEMORY_MOST_MB: u64 = 1 << 24;
/// Least `limits.openFiles` of a command, count: its input and outputs, and what a program needs to start.
pub const COMMAND_FILES_LEAST: u64 = 8;
/// Highest `limits.openFiles` and `limits.processes` of a command, count.
pub const COMMAND_COUNT_MOST: u64 = 1 << 20;
/// Highest `nice` of a command, points.
pub const COMMAND_NICE_MOST: u8 = 19;
/// From SIGXCPU to SIGKILL of a process that goes on, seconds of CPU.
pub const COMMAND_CPU_GRACE_SEC: u64 = 5;
/// A browser need not ask again for so long whether a page may call, seconds.
pub const CORS_MAX_AGE_SEC: u64 = 600;
/// A file of manifests, bytes.
pub const MANIFEST_FILE_BYTES: usize = 2 << 20;
/// Values in one file of manifests, those of aliases counted each time, count: bounds what reading it can build.
pub const MANIFEST_VALUES: usize = 200_000;
/// Things that are told to be wrong with manifests at once, count.
pub const MANIFEST_PROBLEMS: usize = 100;
/// Files of one plan or apply, count.
pub const APPLY_FILES: usize = 1_000;
/// Jobs of one plan or apply, count.
pub const APPLY_JOBS: usize = 10_000;
/// Jobs of one plan or apply that are looked at or changed at once, count.
pub const APPLY_IN_FLIGHT: usize = 64;
/// Files of a node's directory that are told to be broken, count.
pub const FILES_TOLD_BROKEN: usize = 100;
/// Things that are told to be wrong with one of them, count.
pub const FILES_TOLD_PER_FILE: usize = 10;
/// Changes that a node remembers for those who watch, count; one who is further behind is told that some were dropped.
pub const WATCH_KEPT: usize = 65_536;
/// The same, bytes.
pub const WATCH_KEPT_BYTES: usize = 32 << 20;
/// Changes are still remembered this long after the last watch has ended, milliseconds: a broken connection finds its place again.
pub const WATCH_KEEP_MS: i64 = 60_000;
/// Watches of one node, over RPC and HTTP, count; over it 503_DISPATCHER_OVERLOADED.
pub const WATCHES: usize = 256;
/// Watches of one RPC connection, count; over it 409_ILLEGAL_STATE.
pub const WATCHES_PER_CONNECTION: usize = 32;
/// Changes in one notification of a watch, count.
pub const WATCH_BATCH: usize = 256;
/// Changes that one look of a watch passes over, count; then others have their turn.
pub const WATCH_SCAN: usize = 8_192;
/// Between two looks of a watch that has seen all there was, milliseconds.
pub const WATCH_GATHER_MS: u64 = 10;
/// A watch that has nothing to tell says so at this interval, milliseconds. Below `HTTP_IDLE_MS`.
pub const WATCH_BEAT_MS: u64 = 15_000;
/// Between two questions to another node for what it changed, while somebody watches here, milliseconds.
pub const WATCH_MIRROR_MS: u64 = 100;
/// Changes in one answer to such a question, count.
pub const WATCH_MIRROR_ITEMS: usize = 1_024;
/// The same, bytes; its last item may be larger. Well below `GATEWAY_MESSAGE_BYTES`.
pub const WATCH_MIRROR_BYTES: usize = 256 << 10;
/// Notifications of one watch that wait in a client for their reader, count; over it the watch is opened again when there is room.
pub const CLIENT_CHANGES_WAITING: usize = 64;
/// Ids and tokens that a restore leaves unused in each shard, count: after the backup they may have been given out. At 400 a second more
/// than four months.
pub const RESTORED_IDS: u64 = 1 << 32;
/// Session numbers that a restore leaves unused, count: after the backup they may have been given out.
pub const RESTORED_SESSIONS: u64 = 1 << 20;
/// Tries of a statement of a migration that is not answered, count.
pub const MIGRATE_TRIES: usize = 20;
/// Content of one block of an archive, bytes.
pub const ARCHIVE_BLOCK_BYTES: usize = 64 << 20;
/// Rows of history in one block of an archive, count.
pub const ARCHIVE_ROWS: usize = 1_024;
/// Runs in one block of a day of history before they are packed, bytes, roughly.
pub const HISTORY_BLOCK_BYTES: usize = 1 << 20;
/// Logs in one block of a day of history before they are packed, bytes.
pub const HISTORY_LOG_BLOCK_BYTES: usize = 4 << 20;
/// A day is closed for the archive of history so long after its end, milliseconds: whatever ended on it stands in the read model by then.
pub const HISTORY_CLOSED_AFTER_MS: i64 = 600_000;
/// Bytes of a backup that are sent to its caller at once.
pub const BACKUP_PIECE_BYTES: usize = 256 << 10;
/// A caller who takes nothing of a backup for this long is cut off, milliseconds: the journal is not trimmed meanwhile.
pub const BACKUP_STALL_MS: u64 = 60_000;
/// Tenants, and pools, that metrics name, count; those with most activity. The others are counted together.
pub const LABEL_VALUES: usize = 20;
/// Tenants, and pools, whose activity is known for that, count; more are not looked at.
pub const LABEL_VALUES_KNOWN: usize = 4_096;
