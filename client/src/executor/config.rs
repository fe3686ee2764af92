//! What a session is started with.

use super::{body_span::BodyEnded, handler::Body};
use crate::tls::Tls;
use campanile_schema::{
    ids::{RunId, Token},
    rpc::executor::Register,
};
use std::{collections::HashMap, sync::Arc, time::Duration};

/// All that does not change while an executor runs.
pub(super) struct Config {
    pub addresses: Vec<String>,
    pub tls: Option<Tls>,
    pub token: String,
    pub register: Register,
    pub handlers: HashMap<String, Body>,
    pub any: Option<Body>,
    pub commands: Option<Body>,
    pub http: Option<Body>,
    pub grace: Duration,
    pub follow: bool,
    pub on_durable: Option<OnDurable>,
    pub on_body_end: Option<OnBodyEnd>,
}

/// See [`ExecutorBuilder::on_durable`](super::ExecutorBuilder::on_durable).
pub(super) type OnDurable = Arc<dyn Fn(RunId, Token) + Send + Sync>;
/// See [`ExecutorBuilder::on_body_end`](super::ExecutorBuilder::on_body_end).
pub(super) type OnBodyEnd = Arc<dyn Fn(BodyEnded<'_>) + Send + Sync>;
