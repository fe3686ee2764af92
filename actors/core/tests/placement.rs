//! Placement: how even it is, what moves, and that moves keep their limit. Figures: `cargo test -p campanile-core --test decisions placement
//! -- --nocapture`; what they mean is in `docs/adr/0013-placement.md`.
