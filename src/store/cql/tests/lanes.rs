//! What lanes cost; what they mean is in `store/conformance`.

use super::{another, on_runtime};
use campanile_core::ownership::store::{Statement, StoreAnswer};
use campanile_ports::Leases;

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn nothing_is_asked_of_the_server_while_no_more_buckets_are_whole() {
    let store = another();
    on_runtime(async move {
        let session = store.next_session().await.unwrap();
        let delete = async |upto| {
            let before = store.requests();
            let answer = store.execute(session, Statement::DeleteRows { session, lane: 2, upto }).await;
            assert_eq!(answer, StoreAnswer::Done);
            store.requests() - before
        };
        assert!(delete(4_095).await > 0);
        assert_eq!(delete(4_096).await, 0);
        assert_eq!(delete(8_190).await, 0);
        assert!(delete(8_191).await > 0);
    });
}
