//! Credentials, rate limits, sealed secrets, TLS, and the text of the files that hold them.
#![forbid(unsafe_code)]

pub mod auth;
pub mod rate;
pub mod secrets;
pub mod sessions;
pub mod text;
pub mod tls;
