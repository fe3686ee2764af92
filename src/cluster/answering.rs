//! Answers the questions of other nodes.

use super::{
    admin::ClusterAdmin,
    peers::{Question, Reply},
};
use campanile_actors::scheduler::Scheduler;
use campanile_schema::{
    error::{ApiError, ErrorCode},
    limits::GATEWAY_MESSAGE_BYTES,
};
use std::sync::Arc;

/// The answer to one question, as bytes that fit into a message of the gateway.
pub async fn answer(scheduler: Scheduler, admin: Arc<ClusterAdmin>, question: Vec<u8>) -> Vec<u8> {
    let reply = match rmp_serde::from_slice(&question) {
        Ok(Question::Ask { shard, call }) => {
            Reply::Asked(scheduler.answer_peer(shard, call).await.map_err(ApiError::from))
        }
        Ok(Question::Cordon(cordoned)) => Reply::Cordoned(admin.cordon_self(cordoned)),
        Ok(Question::Changes(since)) => Reply::Changed(scheduler.changes_for_peer(since)),
        Ok(Question::Query(what)) => Reply::Queried(scheduler.answer_query(what).await),
        Ok(Question::Released { session, shard }) => {
            scheduler.released_to(session, shard);
            Reply::Heard
        }
        Err(error) => Reply::NotUnderstood(error.to_string()),
    };
    let answer = encoded(&reply);
    if answer.len() <= GATEWAY_MESSAGE_BYTES {
        return answer;
    }
    let why = "the answer of another node is too large to travel; ask for a smaller page";
    encoded(&Reply::Asked(Err(ApiError::new(ErrorCode::BodyTooLarge, why))))
}

fn encoded(reply: &Reply) -> Vec<u8> {
    rmp_serde::to_vec_named(reply).expect("replies are plain data, written into memory")
}
