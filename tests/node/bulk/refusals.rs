//! What is refused, by its code, in the words of the API.

use super::refusal;
use crate::support::TestNode;
use campanile_schema::{error::ErrorCode, ids::BulkId};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_is_refused_and_says_which_field() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let filter = |filter: Value| json!({"action": "PAUSE", "filter": filter});
    for (body, told) in [
        (json!({"action": "PAUSE"}), "filter: has no field"),
        (json!({"action": "SHOUT", "all": true}), "action"),
        (filter(json!({"team": "pay"})), "team"),
        (filter(json!({"state": "QUEUED"})), "filter.state: PAUSE takes status, labels, text"),
        (filter(json!({"labels": "=x"})), "filter.labels: "),
        (json!({"action": "RETRY", "filter": {"from": 2_000, "to": 1_000}}), "filter.from: "),
        (json!({"action": "PAUSE", "all": true, "graceSec": 60}), "graceSec: only a DELETE"),
        (json!({"action": "PAUSE", "all": true, "tenantId": "a b"}), "tenantId: "),
        (json!({"action": "PAUSE", "all": true, "reason": "x".repeat(100_000)}), "reason: "),
    ] {
        let (code, why) = refusal(client.call::<_, Value>("bulk.create", &body).await);
        assert_eq!(code, ErrorCode::InvalidArgument, "{body}: {why}");
        assert!(why.contains(told), "{body}: {why}");
    }
    let none = BulkId(24_576);
    assert_eq!(refusal(client.bulk_get(none).await).0, ErrorCode::NotFound);
    assert_eq!(refusal(client.bulk_abort(none, None).await).0, ErrorCode::NotFound);
    assert_eq!(refusal(client.bulk_undo(none, None).await).0, ErrorCode::NotFound);
    node.stop().await;
}
