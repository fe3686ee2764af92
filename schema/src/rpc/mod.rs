//! The public msgpack-rpc protocol: `[0,id,method,params]`, `[1,id,error,result]`, `[2,method,params]`; `params` is an array
//! of one map. Spec with examples: `docs/rpc.md`.

pub mod calls;
pub mod codec;
pub mod encode;
pub mod executor;
pub mod hello;
mod walk;

pub use crate::operations::method;
