//! Executors that a node has in its own process. Every node has one for channels, which are jobs that tell somebody outside.

use super::failure::Failure;
use crate::{config::ChannelsSection, node::Node};
use campanile_actions::{executor, executor::Traced, http_action::Outbound};
use campanile_client::{ExecutorBuilder, ExecutorHandle, Tls};
use campanile_ports::spans::Tracer;
use campanile_schema::channel::{CHANNEL_CREDENTIAL, CHANNEL_POOL};
use campanile_security::{
    auth::{Caller, Role, new_token},
    tls::Ports,
};
use std::time::Duration;

/// What runs in the node's own executors gets this long when the node stops.
const EXECUTOR_GRACE: Duration = Duration::from_secs(5);

/// What it needs of its node before that is started.
pub(super) struct Channels {
    token: String,
    slots: u32,
    outbound: Outbound,
}

impl Channels {
    /// None: the node sends none. `also`: what may be called besides what is configured.
    pub fn configured(section: &ChannelsSection, also: &[String]) -> Result<Option<Self>, Failure> {
        if section.slots == 0 {
            return Ok(None);
        }
        let allow: Vec<&String> = section.allow.iter().chain(also).collect();
        let outbound = Outbound::of_channels(&allow, &section.ca_file);
        let outbound = outbound.map_err(|why| Failure::usage(format!("[channels] allow, ca_file: {why}")))?;
        Ok(Some(Self { token: new_token().map_err(Failure::here)?, slots: section.slots, outbound }))
    }

    /// Its token, and who it is with that.
    pub fn credential(&self) -> (&str, Caller) {
        let pools = vec![CHANNEL_POOL.to_owned()];
        (&self.token, Caller { name: CHANNEL_CREDENTIAL.to_owned(), role: Role::Executor, tenant: None, pools })
    }

    pub fn start(self, node: &Node, name: &str, tls: &Ports, tracer: &Tracer) -> Result<ExecutorHandle, Failure> {
        let builder = executor::channels(&node.rpc_addr().to_string(), &self.token, self.slots, self.outbound);
        // Other nodes do not know its token.
        let builder = builder.follow(false).traced(tracer).id(format!("{name}-channels"));
        Ok(over_own_tls(builder, tls)?.build().map_err(|error| Failure::here(error.to_string()))?.start())
    }
}

/// An executor of the node's own, by the node's own certificate where there is one.
pub(super) fn over_own_tls(builder: ExecutorBuilder, tls: &Ports) -> Result<ExecutorBuilder, Failure> {
    match &tls.rpc {
        Some(certificate) => Ok(builder.tls(Tls::with_config(certificate.own_client().map_err(Failure::here)?))),
        None => Ok(builder),
    }
}

/// They take nothing more, and what they run ends. All at once, so that a slow receiver does not take the time of commands.
pub(super) async fn drained([own, channels]: [Option<ExecutorHandle>; 2]) {
    let drain = async |executor: Option<ExecutorHandle>| {
        if let Some(executor) = executor {
            executor.drain(EXECUTOR_GRACE).await;
        }
    };
    tokio::join!(drain(own), drain(channels));
}
