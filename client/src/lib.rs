//! Campanile's MessagePack RPC client, and the SDK for executors: programs that run jobs.
//!
//! - [`Client`]: typed calls, pipelined over one connection that comes back by itself.
//! - [`Executor`]: handlers for jobs. It pulls: the node sends no more than the free slots that the executor has told it of.
//!
//! Both speak the public protocol of `docs/rpc.md`; nothing here is known to the node and not to other languages.
#![forbid(unsafe_code)]

mod caller;
mod clock;
mod error;
pub mod executor;
mod wire;

pub use caller::{Client, ClientOptions};
pub use campanile_schema as schema;
pub use error::ClientError;
pub use executor::{Context, Executor, ExecutorBuilder, ExecutorHandle, JobError, Report};
