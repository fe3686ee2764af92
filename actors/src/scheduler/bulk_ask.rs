//! Asks shards about bulk operations.

use crate::{ask::ask, call_error::CallError, calls::ShardCall, handles::SessionHandles};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    ids::ShardId,
    peer::bulk::BulkAnswer,
    stored::bulk::StoredBulk,
};

/// Asks a shard about bulk operations.
pub(super) async fn ask_bulk(
    handles: &SessionHandles,
    shard: ShardId,
    call: ShardCall,
) -> Result<BulkAnswer, CallError> {
    ask::<Box<BulkAnswer>>(&handles.client, shard, call).await.map(|answer| *answer)
}

pub(super) fn state(answer: BulkAnswer) -> Answer<StoredBulk> {
    match answer {
        BulkAnswer::State(bulk) => Ok(*bulk),
        other @ (BulkAnswer::List(_) | BulkAnswer::Looked(_) | BulkAnswer::Worked(_)) => Err(strange(&other)),
    }
}

pub(super) fn strange(answer: &BulkAnswer) -> ApiError {
    ApiError::new(ErrorCode::Internal, format!("a shard gave an answer to another question: {answer:?}"))
}
