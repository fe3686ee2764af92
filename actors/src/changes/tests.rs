#![allow(clippy::unwrap_used)]
use super::*;
use campanile_schema::{
    ids::{JobId, RunId},
    job::JobStatus,
    record::{RunState, Source},
    time::Timestamp,
    watch::{JobChange, JobStep, RunChange, WatchJobs, WatchRuns},
};
use filter::WatchFilter;
use std::collections::BTreeMap;

const ALL: ReadRange = ReadRange { after: 0, most: usize::MAX, scan: usize::MAX, bytes: usize::MAX, copies: true };

fn run(id: u64, state: RunState) -> Change {
    let what = ChangedItem::Run(RunChange {
        at: Timestamp(1),
        run_id: RunId(id),
        job_id: JobId(7),
        job_name: "j".to_owned(),
        tenant_id: "fin".to_owned(),
        state,
        source: Source::Manual,
        logical_time: None,
        generation: 1,
        attempt_count: 0,
        executor_id: None,
        next_retry_at: None,
        last_error: None,
    });
    Change { what, labels: BTreeMap::from([("team".to_owned(), "pay".to_owned())]) }
}

fn job() -> Change {
    let what = ChangedItem::Job(JobChange {
        at: Timestamp(1),
        job_id: JobId(7),
        job_name: "j".to_owned(),
        tenant_id: "fin".to_owned(),
        change: JobStep::Paused,
        status: JobStatus::Paused,
        version: 1,
    });
    Change { what, labels: BTreeMap::new() }
}

fn ids(page: &Page) -> Vec<u64> {
    page.items
        .iter()
        .map(|change| match &change.what {
            ChangedItem::Run(run) => run.run_id.0,
            ChangedItem::Job(job) => job.job_id.0,
        })
        .collect()
}

/// As if somebody had just begun to watch.
fn watched() -> Arc<Changes> {
    let changes = Changes::new(5);
    changes.asked(0);
    changes
}

#[test]
fn nothing_is_written_until_it_is_wanted_and_for_a_while_after() {
    let changes = Changes::new(5);
    assert!(!changes.recording());
    changes.push(vec![run(1, RunState::Queued)], 0);
    assert_eq!(ids(&changes.read(ALL, |_| true)), [0; 0]);
    changes.asked(1_000);
    let begun = changes.end();
    assert!(changes.recording());
    changes.push(vec![run(2, RunState::Queued)], 1_000 + WATCH_KEEP_MS);
    assert_eq!(ids(&changes.read(ReadRange { after: begun, ..ALL }, |_| true)), [2]);
    // The write that comes too late ends it, and whoever stood in it is told.
    changes.push(vec![run(3, RunState::Queued)], 1_001 + WATCH_KEEP_MS);
    assert!(!changes.recording());
    changes.asked(2_000_000);
    changes.push(vec![run(4, RunState::Queued)], 2_000_000);
    let page = changes.read(ReadRange { after: begun, ..ALL }, |_| true);
    assert_eq!(ids(&page), [4]);
    assert!(page.dropped > 0, "{page:?}");
}

#[test]
fn one_who_is_slow_is_told_how_much_was_lost() {
    let changes = watched();
    let begun = changes.end();
    let extra = 10;
    for id in 0..(WATCH_KEPT + extra) as u64 {
        changes.push(vec![run(id, RunState::Queued)], 0);
    }
    let page = changes.read(ReadRange { after: begun, most: 3, ..ALL }, |_| true);
    assert_eq!((page.dropped, ids(&page), page.more), (extra as u64, vec![10, 11, 12], true));
    let page = changes.read(ReadRange { after: page.next, most: 2, ..ALL }, |_| true);
    assert_eq!((page.dropped, ids(&page)), (0, vec![13, 14]));
    // A place that is ahead is of another log.
    let page = changes.read(ReadRange { after: changes.end() + 1, ..ALL }, |_| true);
    assert_eq!((page.dropped, ids(&page)), (1, vec![]));
}

#[test]
fn large_changes_are_bounded_by_their_bytes() {
    let changes = watched();
    let large = || {
        let mut change = run(1, RunState::Queued);
        change.labels.insert("large".to_owned(), "x".repeat(1 << 20));
        change
    };
    for _ in 0..100 {
        changes.push(vec![large()], 0);
    }
    let kept = changes.read(ALL, |_| true).items.len();
    assert!(kept > 0, "{kept}");
    assert!(kept <= WATCH_KEPT_BYTES >> 20, "{kept}");
    let page = changes.read(ReadRange { bytes: 3 << 20, ..ALL }, |_| true);
    assert_eq!(page.items.len(), 3);
}

#[test]
fn copies_are_not_told_to_other_nodes_and_their_gaps_are_told_here() {
    let changes = watched();
    let begun = changes.end();
    changes.push(vec![run(1, RunState::Queued)], 0);
    changes.copy(vec![run(2, RunState::Queued)], true, 0);
    let here = changes.read(ReadRange { after: begun, ..ALL }, |_| true);
    assert_eq!((ids(&here), here.dropped), (vec![1, 2], 1));
    let there = changes.read(ReadRange { after: begun, copies: false, ..ALL }, |_| true);
    assert_eq!((ids(&there), there.dropped), (vec![1], 0));
}

#[test]
fn each_filter_narrows() {
    let change = run(1, RunState::Running);
    let is = |body: WatchRuns| WatchFilter::from(&body).is(&change);
    let text = |text: &str| Some(text.to_owned());
    assert!(is(WatchRuns::default()));
    assert!(!WatchFilter::from(&WatchRuns::default()).is(&job()));
    assert!(WatchFilter::from(&WatchJobs::default()).is(&job()));
    assert!(!WatchFilter::from(&WatchJobs::default()).is(&change));
    for (body, wanted) in [
        (WatchRuns { run_id: Some(RunId(1)), ..WatchRuns::default() }, true),
        (WatchRuns { run_id: Some(RunId(2)), ..WatchRuns::default() }, false),
        (WatchRuns { job_id: Some(JobId(7)), ..WatchRuns::default() }, true),
        (WatchRuns { job_id: Some(JobId(8)), ..WatchRuns::default() }, false),
        (WatchRuns { tenant_id: text("fin"), ..WatchRuns::default() }, true),
        (WatchRuns { tenant_id: text("ops"), ..WatchRuns::default() }, false),
        (WatchRuns { state: Some(RunState::Running), ..WatchRuns::default() }, true),
        (WatchRuns { state: Some(RunState::Success), ..WatchRuns::default() }, false),
        (WatchRuns { labels: text("team=pay"), ..WatchRuns::default() }, true),
        (WatchRuns { labels: text("team!=pay"), ..WatchRuns::default() }, false),
    ] {
        assert_eq!(is(body.clone()), wanted, "{body:?}");
    }
}
