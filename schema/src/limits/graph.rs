//! Limits of a DAG: its definition, and what one run of it may hold and do at once.

/// Nodes of one DAG, count.
pub const GRAPH_NODES: usize = 1_000;
/// Edges of one DAG, count.
pub const GRAPH_EDGES: usize = 10_000;
/// Largest stored definition of a DAG, bytes (encoded).
pub const GRAPH_BYTES: usize = 512 << 10;
/// Longest id of a node, characters.
pub const NODE_ID_CHARS: usize = 64;
/// Highest `maxParallel`, count of nodes whose runs are open at once.
pub const GRAPH_PARALLEL_MAX: u32 = 1_000;
/// Nodes that one decision starts at most, count; the rest follow in the next decision, at once.
pub const GRAPH_STARTS: usize = 64;
/// Result fields of one node that its DAG run keeps, bytes of JSON.
pub const NODE_RESULT_BYTES: usize = 1 << 10;
/// Result fields of all nodes that one DAG run keeps, bytes of JSON.
pub const GRAPH_RESULT_BYTES: usize = 64 << 10;
/// Different result fields of one node that its DAG reads, count.
pub const NODE_RESULT_FIELDS: usize = 64;
/// Steps of the path to a result field, levels.
pub const RESULT_FIELD_DEPTH: usize = 8;
/// Longest condition of an edge, bytes.
pub const CONDITION_BYTES: usize = 512;
/// Nesting of a condition, levels.
pub const CONDITION_DEPTH: usize = 24;
/// Different conditions of one DAG, count: each of them is parsed when the DAG is compiled.
pub const GRAPH_CONDITIONS: usize = 1_000;
/// Text of all different conditions of one DAG, bytes: bounds the time for parsing them.
pub const GRAPH_CONDITION_BYTES: usize = 64 << 10;
/// Largest graph that the record of an ended run holds, bytes (encoded): a larger one must still be the job's when the run is shown or retried.
pub const GRAPH_IN_RECORD_BYTES: usize = 32 << 10;
/// Largest graph in the form of callers, bytes (MessagePack): it travels between nodes with its job. Well below [`super::GATEWAY_MESSAGE_BYTES`].
pub const GRAPH_SPEC_BYTES: usize = 768 << 10;
/// Nodes of the open DAG runs of one shard, count; over it further runs stay PENDING.
pub const GRAPH_OPEN_NODES: usize = 2_000_000;
/// Open runs of one job that DAGs have started, count; over it the job's shard answers START with Later.
pub const NODE_RUNS_PER_JOB: usize = 200;
/// A PENDING DAG run that found no room is looked at again after this time, milliseconds.
pub const GRAPH_ROOM_MS: i64 = 1_000;
/// A DAG run asks for nodes whose end has not come this long after its shard was loaded, milliseconds.
pub const GRAPH_ASK_MS: i64 = 600_000;
/// Messages that one decision sends again at most when a DAG's job is looked at, count.
pub const GRAPH_ASKS: usize = 256;
/// The answer to a retry of a node's run waits so long for its DAG to open it again, milliseconds.
pub const NODE_OPENED_MS: u64 = 1_000;
/// Between two looks at it, milliseconds.
pub const NODE_LOOK_MS: u64 = 20;
/// Jobs in one answer of a shard to a list, bytes; its only one may be larger. Below [`super::GATEWAY_MESSAGE_BYTES`].
pub const JOBS_ANSWER_BYTES: usize = 960 << 10;
/// An answer of no more has all that there is, bytes: the next job would have had room. No job takes more than what is between these two.
pub const JOBS_CUT_BYTES: usize = 32 << 10;
