//! Figures, not assertions: `cargo test --release --lib store_bench -- --ignored --nocapture --test-threads=1`.
#![allow(clippy::unwrap_used)]

use super::super::{EmbeddedOptions, EmbeddedStore};
use crate::samples::{at, batch, journal_batch, ledger, run, wait};
use campanile_ports::{Journal, LocalViews, Position, Row, Views};
use campanile_schema::record::RunState;
use std::time::Instant;

const FRAMES: u64 = 1_000;

#[test]
#[ignore = "a measurement"]
fn store_bench_journal() {
    let temp = tempfile::tempdir().unwrap();
    let (store, _) = EmbeddedStore::open(EmbeddedOptions::new(temp.path())).unwrap();
    let bytes = journal_batch(1, 1, FRAMES);
    let started = Instant::now();
    let mut seq = 0;
    while started.elapsed().as_secs_f64() < 3.0 {
        seq += 1;
        wait(store.append(0, seq, &bytes)).unwrap();
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "journal: {:.0} events/s, {:.0} batches/s of {FRAMES} frames, {:.1} MB/s, {:.2} ms a batch",
        (seq * FRAMES) as f64 / seconds,
        seq as f64 / seconds,
        (seq * bytes.len() as u64) as f64 / seconds / 1e6,
        seconds * 1e3 / seq as f64,
    );
    drop(store);
    let started = Instant::now();
    let (store, _) = EmbeddedStore::open(EmbeddedOptions::new(temp.path())).unwrap();
    let opened = started.elapsed().as_secs_f64();
    let stored = store.stored_bytes();
    let started = Instant::now();
    let (mut after, mut read) = (Position::default(), 0);
    loop {
        let page = wait(store.read_after(after, 4 << 20)).unwrap();
        let Some((last, _)) = page.last() else { break };
        after = *last;
        read += page.len() as u64;
    }
    assert_eq!(read, seq);
    let seconds = started.elapsed().as_secs_f64();
    println!("journal: {:.0} MB opened (checked) in {opened:.2} s, read again in {seconds:.2} s", stored as f64 / 1e6);
}

/// CPU time of this process so far, seconds.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    ticks as f64 / 100.0
}

#[test]
#[ignore = "a measurement"]
fn store_bench_views() {
    const JOBS: u64 = 100_000;
    let temp = tempfile::tempdir().unwrap();
    let (store, _) = EmbeddedStore::open(EmbeddedOptions::new(temp.path())).unwrap();
    let started = Instant::now();
    let (mut runs, mut seq, mut slowest) = (0, 0, 0.0_f64);
    while started.elapsed().as_secs_f64() < 10.0 {
        let mut rows = Vec::with_capacity(2_000);
        for _ in 0..FRAMES {
            runs += 1;
            let job = (runs * 7_919) % JOBS;
            let record =
                campanile_schema::record::RunRecord { key: None, ..run(job, runs, RunState::Success, runs as i64) };
            rows.push(Row::Run(record.into()));
            rows.push(Row::Ledger(ledger(job, runs as i64 - 1, runs as i64)));
        }
        seq += 1;
        let one = Instant::now();
        wait(store.apply(batch(at(1, seq), &[(1, runs)], rows))).unwrap();
        slowest = slowest.max(one.elapsed().as_secs_f64());
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("views: {:.1} us of CPU a run, building it included", cpu() * 1e6 / runs as f64);
    println!(
        "views: {:.0} runs/s with their ledger rows, slowest batch {:.0} ms",
        runs as f64 / seconds,
        slowest * 1e3
    );
    let started = Instant::now();
    wait(store.flush()).unwrap();
    println!("views: flush in {:.2} s, {:?}", started.elapsed().as_secs_f64(), store.disk_usage().unwrap());
}

/// Flushes beside the applies, and as many runs go as come: a node under load after its first month.
#[test]
#[ignore = "a measurement"]
fn store_bench_views_in_company() {
    let temp = tempfile::tempdir().unwrap();
    let (store, _) = EmbeddedStore::open(EmbeddedOptions::new(temp.path())).unwrap();
    let end = Instant::now() + std::time::Duration::from_secs(20);
    let flushes = std::thread::scope(|scope| {
        let flusher = scope.spawn(|| {
            let (mut count, mut slowest) = (0, 0.0_f64);
            while Instant::now() < end {
                let one = Instant::now();
                wait(store.flush()).unwrap();
                slowest = slowest.max(one.elapsed().as_secs_f64());
                count += 1;
                // A node flushes at intervals.
                std::thread::sleep(std::time::Duration::from_secs(1));
            }
            (count, slowest)
        });
        let before = cpu();
        let (mut runs, mut seq) = (0, 0);
        while Instant::now() < end {
            let mut rows = Vec::with_capacity(FRAMES as usize * 2);
            for _ in 0..FRAMES {
                runs += 1;
                let state = if runs % 50 == 0 { RunState::Failed } else { RunState::Success };
                rows.push(Row::Run(run(runs * 7_919 % 100_000, runs, state, runs as i64).into()));
                rows.push(Row::Ledger(ledger(runs * 7_919 % 100_000, runs as i64 - 1, runs as i64)));
            }
            seq += 1;
            wait(store.apply(batch(at(1, seq), &[(1, runs)], rows))).unwrap();
            wait(store.retain(runs as i64 - 100_000, FRAMES as usize)).unwrap();
        }
        println!("views in company: {:.1} us of CPU a run, all threads", (cpu() - before) * 1e6 / runs as f64);
        println!("views in company: {:.0} runs/s, {:?}", runs as f64 / 20.0, store.disk_usage().unwrap());
        flusher.join().unwrap()
    });
    println!("views in company: {} flushes, the slowest {:.2} s", flushes.0, flushes.1);
}
