//! What nodes send each other. Forms are added and never changed: two releases run side by side (ADR 0020).

pub mod outbox;
