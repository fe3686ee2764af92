//! Messages between nodes. Forms are added and never changed, because two releases run side by side (ADR 0020).

pub mod bulk;
pub mod calendars;
pub mod changes;
pub mod cluster_query;
pub mod gateway;
pub mod lending;
pub mod outbox;
pub mod pauses;
pub mod runs;
pub mod shard;
