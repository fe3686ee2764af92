//! What the core costs by itself, one thread, nothing stored or sent:
//! `cargo run --release -p campanile-core --example bench_core`.
//!
//! Per line the best of five rounds, in nanoseconds. Targets: decide + apply at most 1 us each, next fire at most 200 ns,
//! a placement of 1,024 shards on 50 nodes at most 5 ms.
#![allow(clippy::unwrap_used)]

use campanile_core::{
    cron::tzdb_version,
    job::{
        Command, Context, Ids, Job,
        apply::{apply, created},
        decide_next,
    },
    placement::{Member, NodeId, Owners, place, plan},
    schedule::Schedule,
    wheel::Wheel,
};
use campanile_schema::{
    frame::{self, Frame},
    ids::{Epoch, ExecutorSession, JobId, ShardId},
    job::{Dialect, Gap, JobSpec, Overlap, Trigger},
    record::AttemptState,
    rpc::executor::Ended,
    stored::{StoredJob, StoredTrigger},
};
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

const NOW: i64 = 1_782_000_000_000;
const ROUNDS: u32 = 5;

/// Best time of one call over some rounds.
fn best(calls: u32, mut call: impl FnMut(u32)) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        (0..calls).for_each(&mut call);
        start.elapsed().as_nanos() as f64 / f64::from(calls)
    });
    rounds.fold(f64::MAX, f64::min)
}

fn line(what: &str, nanos: f64) {
    println!("{what:<44} {nanos:>9.0} ns");
}

fn definition(trigger: StoredTrigger) -> StoredJob {
    StoredJob::from_spec(&JobSpec::new("default", "daily_billing", Trigger::Manual {}), trigger, None)
}

fn cron(expr: &str, zone: &str) -> StoredTrigger {
    StoredTrigger::Cron {
        expr: expr.into(),
        dialect: Dialect::Unix,
        zone: zone.into(),
        gap: Gap::default(),
        overlap: Overlap::default(),
    }
}

fn triggers() -> [(&'static str, StoredTrigger); 6] {
    [
        ("FIXED_RATE", StoredTrigger::FixedRate { every_ms: 60_000, anchor_ms: NOW }),
        ("FIXED_DELAY", StoredTrigger::FixedDelay { every_ms: 60_000 }),
        ("ONCE", StoredTrigger::Once { at_ms: NOW + 1_000 }),
        ("CRON minutely, UTC", cron("*/1 * * * *", "UTC")),
        ("CRON daily, UTC", cron("30 2 * * *", "UTC")),
        ("CRON weekdays, Berlin", cron("30 2 * * 1-5", "Europe/Berlin")),
    ]
}

fn context(now_ms: i64, first: u64) -> Context {
    let ids = Ids { first, count: 8 };
    Context {
        now_ms,
        ids,
        epoch: Epoch(1),
        pauses: Vec::new(),
        queue_full: false,
        queue_half: false,
        node_room: 1_000,
        overloaded: false,
        held: None,
        tzdb: tzdb_version(),
        sampling: None,
    }
}

/// One life of a run: due, started, finished; the job and the commands before each.
struct Life {
    steps: Vec<(&'static str, Job, Command, Context)>,
    last: Job,
}

fn life(def: &StoredJob) -> Life {
    let mut job = created(JobId(7_848), def.clone(), NOW);
    let mut steps = Vec::new();
    let due = job.hot.next_due_ms.unwrap();
    let mut step = |job: &mut Job, name, command: Command, now: i64, first| {
        let context = context(now, first);
        let before = job.clone();
        *job = decide_next(job, &command, &context).unwrap().1;
        steps.push((name, before, command, context));
    };
    step(&mut job, "wake", Command::Wake, due + 3, 100);
    let run = job.hot.runs[0].id();
    let start = Command::Start {
        run,
        executor: "executor-1".into(),
        session: ExecutorSession(9),
        credential: None,
        credit_stamp_ms: 1,
    };
    step(&mut job, "start", start, due + 10, 200);
    let token = job.hot.runs[0].token().unwrap();
    let ended = Ended {
        run,
        job: job.id,
        token,
        state: AttemptState::Success,
        error_code: None,
        error_message: None,
        result: None,
        cpu_ms: Some(3),
        max_rss_kb: None,
        permanent: false,
    };
    step(&mut job, "finish", Command::Finish(Box::new(ended)), due + 20, 300);
    Life { steps, last: job }
}

fn bench_life(trigger: &str, def: &StoredJob) {
    let life = life(def);
    for (name, job, command, context) in &life.steps {
        let calls = 100_000;
        line(
            &format!("{trigger}: decide + apply, {name}"),
            best(calls, |_| drop(black_box(decide_next(black_box(job), command, context)))),
        );
    }
    let events: Vec<_> = life
        .steps
        .iter()
        .map(|(_, job, command, context)| decide_next(job, command, context).unwrap().0.events)
        .collect();
    let replay = best(50_000, |_| {
        let mut job = life.steps[0].1.clone();
        events.iter().flatten().for_each(|event| apply(&mut job, event));
        black_box(job);
    });
    line(&format!("{trigger}: replay of the whole life"), replay);
    let frames: Vec<Frame> = events
        .iter()
        .enumerate()
        .map(|(n, events)| Frame {
            shard: ShardId(1),
            epoch: Epoch(1),
            seq: n as u64,
            hlc: 1,
            events: events.clone(),
            format: 1,
        })
        .collect();
    let mut buffer = Vec::new();
    let encode = best(50_000, |_| {
        buffer.clear();
        frames.iter().for_each(|frame| frame::encode_into(&mut buffer, frame));
    });
    line(&format!("{trigger}: its three frames to {} bytes", buffer.len()), encode);
    let (hot, def) = (life.last.encode_hot(), frame::encode(&*life.last.def));
    line(
        &format!("{trigger}: hot state to {} bytes", hot.len()),
        best(100_000, |_| drop(black_box(life.last.encode_hot()))),
    );
    line(
        &format!("{trigger}: activate (definition of {} bytes)", def.len()),
        best(20_000, |_| drop(black_box(Job::decode(life.last.id, &def, &hot).unwrap()))),
    );
}

fn bench_next(trigger: &str, def: &StoredJob) {
    let schedule = Schedule::compile(def).unwrap();
    let mut at = NOW;
    let mut fires = 0u32;
    let nanos = best(200_000, |_| {
        at = black_box(schedule.next(at, Some(at))).filter(|next| *next < NOW * 2).unwrap_or(NOW);
        fires += 1;
    });
    line(&format!("{trigger}: next fire"), nanos);
    black_box(fires);
}

fn bench_wheel() {
    const ENTRIES: u32 = 1_000_000;
    let mut best_insert = Duration::MAX;
    let mut best_pop = Duration::MAX;
    for _ in 0..ROUNDS {
        let mut wheel = Wheel::new(NOW);
        let start = Instant::now();
        for n in 0..ENTRIES {
            // Spread over an hour, in no order.
            let offset = i64::from(n.wrapping_mul(2_654_435_761) % 3_600_000);
            wheel.insert(NOW + offset, JobId(u64::from(n)));
        }
        best_insert = best_insert.min(start.elapsed());
        let start = Instant::now();
        let (mut popped, mut now) = (0, NOW);
        while popped < ENTRIES {
            now += 10;
            wheel.advance(now, |job| {
                black_box(job);
                popped += 1;
            });
        }
        best_pop = best_pop.min(start.elapsed());
    }
    line("wheel: insert, one of a million in an hour", best_insert.as_nanos() as f64 / f64::from(ENTRIES));
    line("wheel: pop, ticks and moves between levels", best_pop.as_nanos() as f64 / f64::from(ENTRIES));
}

fn bench_placement() {
    let members: Vec<Member> = (1..=50).map(|node| Member::open(NodeId(node))).collect();
    let none = Owners::new();
    for (shards, nodes) in [(256, 3), (1_024, 12), (1_024, 50), (4_096, 50)] {
        let nanos = best(20, |_| drop(black_box(place(shards, &members[..nodes], &none))));
        line(&format!("place {shards} shards on {nodes} nodes"), nanos);
    }
    let before = place(1_024, &members[..49], &none);
    let placement = place(1_024, &members, &none);
    let nanos = best(20, |_| drop(black_box(plan(&placement, &members, &before, &none, 8))));
    line("plan after a 50th node joined, 1024 shards", nanos);
}

fn main() {
    for (name, trigger) in triggers() {
        let def = definition(trigger);
        bench_life(name, &def);
        bench_next(name, &def);
    }
    bench_wheel();
    bench_placement();
}
