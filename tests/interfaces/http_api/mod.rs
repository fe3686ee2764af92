//! The HTTP side of a real node in this process: every refusal, jobs and runs from birth to end, tenants apart, and the
//! document against what is served.

mod access;
mod apply;
mod audit;
mod bulk;
mod connections;
mod errors;
mod follow;
mod jobs;
mod nesting;
mod pages;
mod parsers;
mod raw;
mod server;
mod sessions;
mod starting;
mod tenants;
mod watch;
