//! Runs a COMMAND action: one process tree per attempt, started, watched, measured and ended.
//!
//! **What.** [`run`] starts this program's own binary again with the hidden argument `__shim`. The shim (one per
//! attempt, [`shim_main`]) starts the command in a process group of its own, adopts whatever the command orphans
//! (child subreaper) and holds a pipe to the executor. When that pipe closes - a stop was asked for, or the executor
//! died, by `kill -9` too - the shim ends the whole tree: SIGTERM, a grace, SIGKILL.
//!
//! **Why a shim.** Code that runs between fork and exec needs `unsafe`; a second process needs none. And only a process
//! that outlives the executor can clean up after it.
//!
//! **What it never does.** It never goes through a shell (a job that wants one names it), never hands the executor's
//! environment on (see [`environment`]), never keeps more output in memory than the job's cap, and leaves no process
//! behind: what the command started in the background ends with it.
//!
//! Files: `spec` what to run; `environment` what the command sees; `run` the executor's side; `wire` what the two sides
//! say to each other; `shim` the other side; `confine` limits, set between shim and command; `program` how the program's file is found; `tree` the processes below a
//! shim; `usage` what they used; `inherited` what the executor's own starter must not hand on to them; `output` the way of what the command writes, `capture` what is kept of it.

mod capture;
mod confine;
pub mod environment;
mod inherited;
mod output;
mod program;
mod run;
mod shim;
mod spec;
mod tree;
mod usage;
mod wire;

pub use confine::confine_main;
pub use run::{Shim, run, run_with};
pub use shim::shim_main;
pub use spec::{AttemptEnv, CommandEnd, CommandReport, CommandSpec};
pub use wire::StartFault;

/// The hidden first argument that makes this binary a shim.
pub const SHIM_ARGUMENT: &str = "__shim";
/// The hidden first argument that makes this binary set limits and become a command.
pub const CONFINE_ARGUMENT: &str = "__confine";
