//! Numbers of sessions: never one twice.

use super::{on_runtime, shared};
use campanile_ports::Leases;
use std::collections::BTreeSet;

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn eight_callers_at_once_get_numbers_of_their_own_that_rise() {
    const CALLERS: usize = 8;
    const EACH: usize = 10;
    let all = on_runtime(async {
        let calls = (0..CALLERS).map(|_| {
            tokio::spawn(async {
                let mut mine = Vec::new();
                for _ in 0..EACH {
                    mine.push(shared().store.next_session().await.unwrap());
                }
                mine
            })
        });
        let mut all = Vec::new();
        for call in calls.collect::<Vec<_>>() {
            all.push(call.await.unwrap());
        }
        all
    });
    assert!(all.iter().all(|mine| mine.is_sorted_by(|a, b| a < b)), "{all:?}");
    let unique: BTreeSet<_> = all.iter().flatten().collect();
    assert_eq!(unique.len(), CALLERS * EACH, "{all:?}");
}
