//! What the SDK and the codec cost for an attempt that does nothing: `cargo test -p campanile-client --test
//! executor_throughput -- --ignored --nocapture`. The node here only counts, so all else is the client's side and the wire.
#![allow(clippy::unwrap_used)]

mod fake_node;

use campanile_client::{
    Context, Executor, JobError,
    schema::{
        limits::EXECUTOR_BATCH,
        rpc::{
            encode,
            executor::{Announced, Finish, FinishOutcome, Finished},
            method,
        },
    },
};
use fake_node::{FakeNode, assignment};
use std::time::Instant;

const RUNS: u64 = 200_000;
const SLOTS: u32 = 4_000;

fn cpu_seconds() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn attempts_per_second() {
    let node = FakeNode::start().await;
    let _executor = Executor::builder(node.address.to_string(), "token")
        .slots(SLOTS)
        .handler("now", |_: Context, _: serde_json::Value| async { Ok::<_, JobError>(()) })
        .build()
        .unwrap()
        .start();
    let mut link = node.executor(3).await;
    let (began, cpu) = (Instant::now(), cpu_seconds());
    let (mut sent, mut finished, mut refused) = (0u64, 0u64, 0u64);
    let mut out = Vec::new();
    while finished < RUNS {
        // What a node does: as much as the credit allows, less what is under way.
        let credit = link.credit.clone().unwrap();
        let under_way = sent - credit.received.unwrap();
        let count = u64::from(credit.slots).saturating_sub(under_way).min(RUNS - sent).min(EXECUTOR_BATCH as u64);
        if count > 0 {
            let items: Vec<_> = (0..count)
                .map(|n| {
                    let mut a = assignment(sent + n + 1, 1, "now");
                    a.credit_stamp_ms = credit.stamp_ms;
                    a
                })
                .collect();
            sent += count;
            out.clear();
            encode::assign(&mut out, &items, usize::MAX).unwrap();
            link.send(&out).await;
        }
        let said = link.hear().await.unwrap();
        match (said.method.as_str(), said.id) {
            (method::EXECUTOR_FINISH, Some(id)) => {
                let finish: Finish = said.read();
                finished += finish.items.len() as u64;
                refused += finish.items.iter().filter(|e| e.error_code.is_some()).count() as u64;
                link.credit = finish.credit;
                link.answer(id, &Finished { outcomes: vec![FinishOutcome::Durable; finish.items.len()] }).await;
            }
            (_, Some(id)) => link.answer(id, &Announced::default()).await,
            (_, None) => {}
        }
    }
    let (took, used) = (began.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    println!(
        "{RUNS} attempts in {took:.2} s: {:.0}/s, {:.1} us CPU each (both ends of the wire)",
        RUNS as f64 / took,
        used * 1e6 / RUNS as f64
    );
    assert_eq!(refused, 0, "with a count of what was received nothing is sent in vain");
}
