//! Limits of what callers send, and of the connections that they send it on.

/// HTTP connections of one peer address (of IPv6 its /64 network), count; a further one is told so and closed.
pub const HTTP_CONNECTIONS_PER_PEER: usize = 1_024;
/// HTTP connections beyond `HTTP_CONNECTIONS` that get an answer of `/healthz` or `/readyz` only, count.
pub const HTTP_CONNECTIONS_KEPT: usize = 64;
/// Those of one peer address, count.
pub const HTTP_CONNECTIONS_KEPT_PER_PEER: usize = 8;
/// Time for the head of a request on one of those, milliseconds.
pub const HTTP_HEAD_KEPT_MS: u64 = 2_000;
/// A body larger than this is parsed on a thread of its own (`PARSE_PLACES`), bytes.
pub const HTTP_PARSE_APART_BYTES: usize = 256 << 10;
/// Nesting of a manifest, levels.
pub const MANIFEST_DEPTH: u32 = 64;
/// Bytes of text in the values of one file of manifests, those of aliases counted each time: bounds what reading it can build.
pub const MANIFEST_TEXT_BYTES: usize = 8 << 20;
/// Texts of callers that take long to parse (manifests) are parsed on threads of their own, so many at once, count.
pub const PARSE_PLACES: usize = 2;
/// A call waits so long for one of those places, milliseconds; then it gets 503_DISPATCHER_OVERLOADED.
pub const PARSE_WAIT_MS: u64 = 10_000;
/// Parsing is given up after this, milliseconds; then the call gets 413_BODY_TOO_LARGE.
pub const PARSE_MS: u64 = 10_000;
/// Text that lines of a log are searched for, bytes.
pub const LOG_SEARCH_BYTES: usize = 256;
/// Longest line of a refusal's message, bytes; what callers wrote is cut there.
pub const ERROR_LINE_BYTES: usize = 2 << 10;
/// Longest name of a secret param, bytes.
pub const SECRET_NAME_BYTES: usize = 128;
/// HTTP connections without a place that are told so at once, count; others are closed without a word.
pub const HTTP_REFUSALS: usize = 64;
/// Time for that, milliseconds.
pub const HTTP_REFUSAL_MS: u64 = 1_000;
