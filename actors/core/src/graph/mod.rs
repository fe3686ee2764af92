//! DAGs: a job whose action is a graph of other jobs. This module decides what becomes of one run of a DAG; `job/decide/graph.rs` makes
//! it a run of its job (`docs/adr/0029-dag.md`).
//!
//! # The problem
//!
//! A DAG says which jobs come before which. A run of it starts each node when the node's rule is met by the ends of its parents, passes
//! results on, and has one outcome, whatever is lost, doubled or reordered between the DAG and the jobs of its nodes.
//!
//! # States
//!
//! A node is WAITING, STARTING (its run was asked for), ACTIVE (its run is there), and then one of SUCCESS, FAILED, SKIPPED,
//! UPSTREAM_FAILED and CANCELED. The run is RUNNING, and then SUCCESS, FAILED, TIMEOUT or CANCELED.
//!
//! # Invariants
//!
//! - What becomes of a node depends on how its parents end, not on the order in which they do ([`rules`]).
//! - A node's run has one generation for each start. Ends of earlier generations, and second ends, change nothing ([`step`]).
//! - A run is final only when no run of a node may be open. Then nothing waits ([`run`]).
//! - [`GraphRun::apply`](run::GraphRun::apply) is defined for every change and evaluates no condition and no template: replay gives the same state in every
//!   release.
//! - Whatever a caller's DAG can make this module do is bounded by `schema/src/limits/graph.rs`.
//!
//! # What it never does
//!
//! It sends nothing, stores nothing, knows no clock, and does not look jobs up: commands bring what happened, and effects say what to
//! send.
//!
//! # Files
//!
//! [`compile`] checks a definition, with [`order`] (cycles), [`template`] (params), [`condition`] (CEL) and [`fields`] (what is read of
//! results). [`run`] is the state of a run, with [`node`] and [`ready`]; [`step`] decides, with [`rules`], [`start`], [`reopen`] and
//! [`outcome`], and [`keep`] stores it. [`layout`], [`draw`] and [`show`] show it. [`clauses`] names what the model test breaks on purpose (`actors/core/tests/graph`).

pub mod clauses;
pub mod compile;
pub mod condition;
pub mod draw;
pub mod fields;
mod keep;
pub mod layout;
pub mod node;
pub mod order;
mod outcome;
pub mod ready;
mod reopen;
pub mod rules;
pub mod run;
pub mod show;
pub mod start;
pub mod step;
pub mod template;
