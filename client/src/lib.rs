//! Campanile's MessagePack RPC client, and the SDK for executors: programs that run jobs.
//!
//! - [`Client`]: typed calls, pipelined over connections that come back by themselves; [`blocking::Client`] is the same without async.
//! - [`Job`]: builders; [`Changes`]: runs and jobs as they change.
//! - [`Executor`]: handlers for jobs. It pulls: the node sends no more than the free slots that the executor has told it of.
//!
//! Both speak the public protocol of `docs/rpc.md`; nothing here is known to the node and not to other languages.
//!
//! The guide, whose code is compiled with the tests:
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod caller;
mod clock;
mod error;
pub mod executor;
mod tls;
mod wire;

pub use caller::{AfterEach, Changes, Client, ClientOptions, Cron, Every, Job, Once, Retry, WatchEvent, blocking};
pub use campanile_schema as schema;
pub use error::ClientError;
pub use executor::{BodyEnded, Context, Executor, ExecutorBuilder, ExecutorHandle, JobError, Report};
pub use tls::{Tls, TlsError};
