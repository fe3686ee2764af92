//! Calls between nodes about shards, over the gateway. A call goes one hop: the called node answers it or says that the
//! shard is not its own, and the caller's node looks the owner up again.

use super::{
    gateway::{Gateway, GatewayError},
    membership::Members,
};
use campanile_actors::{
    call_error::CallError,
    calls::{Peers, ShardAnswer, ShardCall},
    changes::{Copied, LogPlace},
    cluster_query::{self, ClusterQuery, NodeAnswer, NodeAnswers},
};
use campanile_core::placement::NodeId;
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    ids::{SessionId, ShardId},
};
use serde::{Deserialize, Serialize};
use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::sync::watch;

/// Longest wait for another node's answer: its shard may wait for the store.
const ANSWER: Duration = Duration::from_secs(10);
/// Longest wait for what another node changed: it has it in memory.
const CHANGES: Duration = Duration::from_secs(2);
/// A notice is of use at once or never.
const NOTICE: Duration = Duration::from_secs(1);

/// From node to node.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Question {
    Ask {
        shard: ShardId,
        call: ShardCall,
    },
    /// The asked node takes no new shards from now on, or does again.
    Cordon(bool),
    /// What the node has to say for a list of all nodes.
    #[serde(rename = "Survey")]
    Query(ClusterQuery),
    /// What changed at the node since a place in its log.
    Changes(Option<LogPlace>),
    /// The shard was released to this session.
    Released {
        session: SessionId,
        shard: ShardId,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    Asked(Answer<ShardAnswer>),
    Cordoned(Answer<()>),
    Heard,
    Changed(Answer<Copied>),
    #[serde(rename = "Surveyed")]
    Queried(Answer<NodeAnswer>),
    /// Of another release of the protocol, or damaged.
    NotUnderstood(String),
}

/// The other nodes, over the gateway.
#[derive(Clone)]
pub struct GatewayPeers {
    inner: Arc<Inner>,
}

struct Inner {
    members: watch::Receiver<Arc<Members>>,
    /// Set when it listens: it needs who answers, who needs the peers.
    gateway: OnceLock<Arc<Gateway>>,
}

impl GatewayPeers {
    pub fn new(members: watch::Receiver<Arc<Members>>) -> Self {
        Self { inner: Arc::new(Inner { members, gateway: OnceLock::new() }) }
    }

    pub fn connect(&self, gateway: Arc<Gateway>) {
        let _ = self.inner.gateway.set(gateway);
    }

    /// Has another node cordoned, or not any more.
    pub async fn cordon(&self, node: NodeId, cordoned: bool) -> Answer<()> {
        match self.inner.send_to(node, &Question::Cordon(cordoned), ANSWER).await.map_err(of_change)? {
            Reply::Cordoned(answer) => answer,
            Reply::Asked(_) | Reply::Heard | Reply::Changed(_) | Reply::Queried(_) | Reply::NotUnderstood(_) => {
                Err(CallError::UnknownCall.into())
            }
        }
    }
}

/// Of a question that changes something: without its answer nobody knows whether the other node has carried it out.
fn of_change(error: CallError) -> CallError {
    match error {
        CallError::Unanswered => CallError::OutcomeUnknown,
        error => error,
    }
}

impl Inner {
    fn node_of(&self, session: SessionId) -> Option<NodeId> {
        self.members.borrow().others().find(|member| member.session == session).map(|member| member.node)
    }

    async fn send(&self, session: SessionId, question: &Question, wait: Duration) -> Result<Reply, CallError> {
        let Some(node) = self.node_of(session) else { return Err(CallError::NotServed) };
        self.send_to(node, question, wait).await
    }

    async fn send_to(&self, node: NodeId, question: &Question, wait: Duration) -> Result<Reply, CallError> {
        self.call(node, question, wait).await.map_err(|error| {
            tracing::debug!(%error, node = node.0, "another node did not answer");
            match error {
                // To look again would be in vain.
                GatewayError::TooLarge(_) => ApiError::new(ErrorCode::BodyTooLarge, error.to_string()).into(),
                error => {
                    if error.may_have_run() {
                        CallError::Unanswered
                    } else {
                        CallError::NotServed
                    }
                }
            }
        })?
    }

    /// A node's part of a list. Errors tell people why it is not there.
    async fn query(&self, node: NodeId, what: ClusterQuery) -> Answer<NodeAnswer> {
        let not_there = |error: GatewayError| ApiError::new(ErrorCode::NotReady, error.to_string());
        match self.call(node, &Question::Query(what), cluster_query::ANSWER).await.map_err(not_there)?? {
            Reply::Queried(answer) => answer,
            // Too much to travel.
            Reply::Asked(Err(error)) => Err(error),
            Reply::Asked(Ok(_)) | Reply::Heard | Reply::Cordoned(_) | Reply::Changed(_) | Reply::NotUnderstood(_) => {
                Err(CallError::UnknownCall.into())
            }
        }
    }

    /// The inner error: it answered, and nobody can read it.
    async fn call(
        &self,
        node: NodeId,
        question: &Question,
        wait: Duration,
    ) -> Result<Result<Reply, CallError>, GatewayError> {
        let Some(gateway) = self.gateway.get() else { return Ok(Err(CallError::NotServed)) };
        let Ok(bytes) = rmp_serde::to_vec_named(question) else { return Ok(Err(CallError::NotServed)) };
        let answer = gateway.call(node, bytes, wait).await?;
        Ok(rmp_serde::from_slice(&answer).map_err(|error| {
            tracing::warn!(%error, "another node's answer cannot be read");
            CallError::Unanswered
        }))
    }
}

impl Peers for GatewayPeers {
    fn ask(
        &self,
        owner: SessionId,
        shard: ShardId,
        call: ShardCall,
    ) -> Pin<Box<dyn Future<Output = Result<ShardAnswer, CallError>> + Send + '_>> {
        Box::pin(async move {
            match self.inner.send(owner, &Question::Ask { shard, call }, ANSWER).await? {
                Reply::Asked(answer) => answer.map_err(CallError::from_peer),
                // To look for another owner would be in vain.
                Reply::NotUnderstood(_) => Err(CallError::UnknownCall),
                Reply::Heard | Reply::Cordoned(_) | Reply::Changed(_) | Reply::Queried(_) => Err(CallError::NotServed),
            }
        })
    }

    fn others(&self) -> Vec<SessionId> {
        self.inner.members.borrow().others().map(|member| member.session).collect()
    }

    fn changes(
        &self,
        of: SessionId,
        since: Option<LogPlace>,
    ) -> Pin<Box<dyn Future<Output = Result<Copied, CallError>> + Send + '_>> {
        Box::pin(async move {
            match self.inner.send(of, &Question::Changes(since), CHANGES).await? {
                Reply::Changed(answer) => answer.map_err(CallError::from_peer),
                // Of an older release.
                Reply::Asked(_) | Reply::Heard | Reply::Cordoned(_) | Reply::Queried(_) | Reply::NotUnderstood(_) => {
                    Err(CallError::NotServed)
                }
            }
        })
    }

    fn query(&self, what: ClusterQuery) -> Pin<Box<dyn Future<Output = NodeAnswers> + Send + '_>> {
        Box::pin(async move {
            let members = self.inner.members.borrow().clone();
            let asked = members.others().map(|member| async move {
                let answer = self.inner.query(member.node, what).await;
                (member.name.clone(), answer)
            });
            futures_util::future::join_all(asked).await
        })
    }

    fn tell_released(&self, shard: ShardId, successor: SessionId) {
        let inner = self.inner.clone();
        // A notice that is lost costs the time until the rows are read.
        tokio::spawn(async move {
            let _ = inner.send(successor, &Question::Released { session: successor, shard }, NOTICE).await;
        });
    }
}

#[cfg(test)]
#[path = "peers_forms_tests.rs"]
mod forms_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::earlier_release::are_read;

    #[test]
    fn questions_and_replies_of_an_earlier_release_are_read() {
        are_read::<Question>("question", |question| rmp_serde::to_vec_named(question).unwrap());
        are_read::<Reply>("reply", |reply| rmp_serde::to_vec_named(reply).unwrap());
    }

    #[test]
    fn a_cordon_whose_answer_is_lost_may_have_been_carried_out() {
        let code = |error: CallError| of_change(error).code();
        assert_eq!(code(CallError::Unanswered), ErrorCode::Timeout);
        assert_eq!(code(CallError::NotServed), ErrorCode::NotReady, "it was not sent");
        assert_eq!(code(ApiError::new(ErrorCode::BodyTooLarge, "too large").into()), ErrorCode::BodyTooLarge);
    }
}
