//! Messages between nodes. Forms are added and never changed, because two releases run side by side (ADR 0020).

pub mod outbox;
