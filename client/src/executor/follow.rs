//! Makes the connections that [`super::nodes`] finds missing, and closes those that it finds unnecessary.

use super::{
    link::{Link, Outlet},
    nodes::{Meeting, NodeKey, Nodes, Unmet},
    session::SessionTask,
    upstream::{Upstream, WaitingRequest},
};
use crate::{clock::boot_ms, error::ClientError};
use campanile_schema::rpc::{hello::Welcome, method};
use std::sync::Arc;

impl SessionTask {
    /// At the start.
    pub(super) fn connect_to_given(&mut self) {
        self.nodes = Nodes::given(&self.config.addresses, boot_ms());
        for (link, address) in self.config.addresses.clone().into_iter().enumerate() {
            self.connect(link, address);
        }
    }

    /// Connects, and connects anew, on a new place or a free one.
    fn connect(&mut self, index: usize, address: String) {
        self.lives += 1;
        let (life, outlet) = (self.lives, Arc::new(Outlet::default()));
        let upstream = Upstream::new(outlet.clone());
        let link = Link {
            index,
            life,
            address,
            tls: self.config.tls.clone(),
            token: self.config.token.clone(),
            outlet,
            events: self.events.clone(),
        };
        let task = tokio::spawn(link.run()).abort_handle();
        self.attempts.open(index);
        if index == self.upstreams.len() {
            self.upstreams.push(upstream);
            self.links.push((task, life));
            self.announce_again.push(false);
            self.down_since_ms.push(None);
        } else {
            self.upstreams[index] = upstream;
            self.links[index] = (task, life);
            self.announce_again[index] = false;
            self.down_since_ms[index] = None;
        }
    }

    /// A node has said who it is.
    pub(super) fn met(&mut self, link: usize, connection: u64, welcome: Welcome, now_ms: u64) {
        let Welcome { cluster_id: cluster, node: name, .. } = welcome;
        match self.nodes.up(link, NodeKey { cluster, name: name.clone() }) {
            Meeting::Use => {}
            Meeting::Replace(other) => {
                // What came over the other connection is announced over this one.
                self.attempts.rehome(other, link);
                self.give_up_link(other);
            }
            Meeting::TurnAway(why) => {
                tracing::debug!(node = name, link, why, "a connection to a node is not used");
                return self.upstreams[link].turn_away(connection, why);
            }
        }
        tracing::info!(node = name, link, "connected to a node");
        self.upstreams[link].up(connection, now_ms);
        self.upstreams[link].request(method::EXECUTOR_REGISTER, &self.config.register, WaitingRequest::Register);
    }

    /// A connection is gone, or could not be made.
    pub(super) fn lost(&mut self, link: usize, error: &ClientError, now_ms: u64) {
        if self.nodes.is_missed(link) {
            tracing::info!(%error, link, "no connection to a node");
            self.last_error = Some(error.to_string());
        } else {
            tracing::debug!(%error, link, "no connection to a node that was told of");
        }
        self.nodes.down(link, now_ms);
        self.upstreams[link].down();
    }

    /// Connects to nodes that it was told of, and lets go of those that are no more.
    pub(super) fn follow(&mut self, now_ms: u64) {
        for link in self.nodes.spare() {
            if self.attempts.is_home(link) {
                // Kept until somebody else can be told of what came over it.
                let Some(to) = self.other_of_its_cluster(link) else { continue };
                self.attempts.rehome(link, to);
                self.announce_again[to] = true;
            }
            tracing::info!(link, "a node that was told of is let go: it left, or another address leads to it");
            self.give_up_link(link);
        }
        for Unmet { key, address } in self.nodes.unmet(now_ms) {
            tracing::info!(node = key.name, address, "told of a node");
            let link = self.nodes.add(address.clone(), Some(key), now_ms);
            self.connect(link, address);
        }
    }

    fn give_up_link(&mut self, link: usize) {
        self.links[link].0.abort();
        // What it has said and nobody has read is nobody's.
        self.links[link].1 = 0;
        self.upstreams[link].down();
        self.announce_again[link] = false;
        self.nodes.give_up(link);
    }
}
