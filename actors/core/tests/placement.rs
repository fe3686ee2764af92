//! Placement: how even it is, what moves, and that moves keep their limit. Figures: `cargo test -p campanile-core --test placement
//! -- --nocapture`; what they mean is in `docs/adr/0013-placement.md`.
#![allow(clippy::unwrap_used)]

mod placement_checks;
