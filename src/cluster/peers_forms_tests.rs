//! Golden lines of what nodes ask of each other: `golden/peers.jsonl`. The calls to shards and their answers have theirs in the crate of the
//! actors. How to change a form is said in `golden_forms`.

use super::{Question, Reply};
use crate::golden_forms::{Coding, Forms, variants};
use campanile_actors::{
    calls::{ShardAnswer, ShardCall},
    changes::{Copied, LogPlace},
    cluster_query::{ClusterQuery, NodeAnswer},
};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    ids::{JobId, SessionId, ShardId},
};

#[test]
fn questions_and_replies_keep_their_bytes() {
    let mut forms = Forms::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/peers.jsonl"));
    let place = LogPlace { log: 1 << 60, after: 4_000 };
    let (shard, session) = (ShardId(17), SessionId(12));
    let questions = [
        ("", Question::Ask { shard, call: ShardCall::GetJob(JobId(7_848)) }),
        ("", Question::Cordon(true)),
        ("", Question::Query(ClusterQuery::Node)),
        ("", Question::Changes(Some(place))),
        ("from now on", Question::Changes(None)),
        ("", Question::Released { session, shard }),
    ];
    let variants = variants!(Question: Ask, Cordon, Query, Changes, Released);
    let coding = Coding::written(|question: &Question| rmp_serde::to_vec_named(question).unwrap());
    forms.enumeration("peers::Question", coding, variants, questions);
    let mut refused = ApiError::new(ErrorCode::NotReady, "this node does not own the shard");
    refused.retry_after_sec = Some(1.0);
    let copied = Copied { next: place, items: Vec::new(), dropped: false, more: false };
    let replies = [
        ("", Reply::Asked(Ok(ShardAnswer::Version(2)))),
        ("refused", Reply::Asked(Err(refused.clone()))),
        ("", Reply::Cordoned(Ok(()))),
        ("refused", Reply::Cordoned(Err(refused.clone()))),
        ("", Reply::Heard),
        ("", Reply::Changed(Ok(copied))),
        ("refused", Reply::Changed(Err(refused.clone()))),
        ("", Reply::Queried(Ok(NodeAnswer::default()))),
        ("refused", Reply::Queried(Err(refused))),
        ("", Reply::NotUnderstood("unknown variant".to_owned())),
    ];
    let coding = Coding::written(|reply: &Reply| rmp_serde::to_vec_named(reply).unwrap());
    let variants = variants!(Reply: Asked, Cordoned, Heard, Changed, Queried, NotUnderstood);
    forms.enumeration("peers::Reply", coding, variants, replies);
    forms.hold();
}
