//! How long the conditions of a DAG take to parse and to evaluate when their texts are as unfavourable as they may be:
//! `cargo run -p campanile-core --example bench_conditions`.
//!
//! Each line has the best of nine parses, one evaluation, the bytes and the beginning of the text, and whether the text is
//! taken. It is run by hand and checks nothing: `docs/parsers.md` has the longest time.
#![allow(clippy::unwrap_used)]

use campanile_core::graph::condition::{Condition, Parent};
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

const ROUNDS: u32 = 9;

/// Deep, long and wide texts of at most `limits::CONDITION_BYTES`. Some are refused; refusing must not take long either.
fn texts() -> Vec<String> {
    vec![
        "true&&".repeat(80) + "true",
        "parent.result.a>0&&".repeat(25) + "true",
        "parent.result.a>0||(".repeat(20) + "true" + &")".repeat(20),
        format!("[{}1]==[1]", "1,".repeat(240)),
        format!("{{{}'z':1}}=={{}}", (0..70).map(|n| format!("'{n}':1,")).collect::<String>()),
        format!("[{}1]==[1]", "1,".repeat(32)),
        format!("[{}1]==[1]", "parent.result.a,".repeat(29)),
        "1+".repeat(250) + "1",
        "!".repeat(500) + "true",
        "1+1==2&&".repeat(62) + "true",
        "1<2&&".repeat(100) + "true",
        "-1<2&&".repeat(84) + "true",
        "'x'+".repeat(120) + "'x'",
        "true+".repeat(100) + "true",
        "1*".repeat(250) + "1",
        "1+".repeat(40) + "1==1",
        "1+".repeat(80) + "1==1",
        "1+".repeat(120) + "1==1",
        "parent.result".to_owned() + &".a".repeat(249),
        "parent.result.a".to_owned() + &"[0]".repeat(160),
        "1==".repeat(160) + "1",
        "true||true&&".repeat(40) + "true",
        "1 ".repeat(250),
        "parent.result.a in [".repeat(24),
        format!("'{}'=='x'", "\\n".repeat(240)),
        "size(".repeat(24) + "'x'" + &")".repeat(24) + "==1",
        "1?".repeat(20) + "1" + &":1".repeat(20),
        "parent.result.a+".repeat(20) + "1==1",
        "(".repeat(24) + "1" + &")".repeat(24) + "==1",
    ]
}

fn timed<T>(call: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(call());
    start.elapsed()
}

fn main() {
    let result = serde_json::json!({"a": 1});
    for text in texts() {
        let parse = (0..ROUNDS).map(|_| timed(|| Condition::parse(&text))).min().unwrap();
        let parsed = Condition::parse(&text).ok();
        let evaluate = timed(|| parsed.as_ref().map(|condition| condition.evaluate(&Parent::new(&result))));
        let (taken, shown) = (parsed.is_some(), text.chars().take(40).collect::<String>());
        println!("{parse:>12?} {evaluate:>12?} {:>4} bytes {shown}: {taken}", text.len());
    }
}
