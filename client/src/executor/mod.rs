//! The executor SDK: a program with handlers that runs attempts of jobs.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use campanile_client::{Context, Executor, JobError};
//! #[derive(serde::Deserialize)]
//! struct Bill { customer: u64 }
//!
//! let executor = Executor::builder("127.0.0.1:7701", "token")
//!     .pool("billing")
//!     .slots(8)
//!     .handler("daily_billing", |ctx: Context, params: Bill| async move {
//!         ctx.log(format!("billing {} as {}", params.customer, ctx.invocation_id()));
//!         Ok::<_, JobError>(params.customer)
//!     })
//!     .build()?
//!     .start();
//! executor.drain(std::time::Duration::from_secs(30)).await;
//! # Ok(()) }
//! ```
//!
//! What it holds to, so that the node's promises hold: it starts no assignment whose credit is older than two seconds on its
//! own clock, whose epoch is below the highest seen of that shard, or whose token is not above the highest seen of that run; it
//! names everything it holds after each reconnect; it sends a result until a node calls it durable or refused. It never runs
//! more bodies than it has slots.

mod attempts;
mod body;
mod body_span;
mod builder;
mod config;
mod context;
mod end;
mod fence;
mod follow;
mod handle;
mod handler;
mod key;
mod link;
mod log;
mod nodes;
mod outgoing;
mod report;
mod session;
mod share;
mod stop;
mod upstream;

pub use body_span::BodyEnded;
pub use builder::{BuildError, Executor, ExecutorBuilder};
pub use context::Context;
pub use handle::{ExecutorHandle, Status};
pub use handler::BodyFuture;
pub use report::{JobError, Report};
