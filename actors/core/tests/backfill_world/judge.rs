//! Judges each decision by the job before it, and in the end what the backfills have run.

use super::{World, is_begun};
use campanile_core::job::{BackfillCommand, Command, Job, OpenRun};
use campanile_schema::{
    event::{Event, SkipReason, StopReason},
    ids::{BackfillId, RunId},
    record::RunState,
    stored::backfill::{BackfillChange, BackfillMode, BackfillState},
};
use std::collections::BTreeSet;

impl World {
    /// Whether an event is right, by the job before the decision and the events before it.
    pub(super) fn judge(&self, before: &Job, earlier: &[Event], event: &Event, command: &Command) {
        let live = |open: &&OpenRun| open.record.backfill.is_none();
        let one = self.is_one();
        let fired = |event: &Event| matches!(event, Event::RunCreated { backfill: None, .. });
        let has_live = before.hot.runs.iter().any(|open| live(&open)) || earlier.iter().any(fired);
        match event {
            Event::CursorMoved { entries, .. } => {
                for entry in entries.iter().filter(|entry| entry.reason == Some(SkipReason::RunActive)) {
                    assert!(has_live, "an instant was skipped for a run of a backfill: {entry:?}");
                }
            }
            Event::RunCreated { backfill: None, held: true, .. } => {
                let blocks = before.hot.runs.iter().any(|open| !live(&open) && is_begun(open));
                assert!(has_live || (one && blocks), "a live run waits for a run of a backfill that only waits");
            }
            Event::RunCreated { backfill: Some(id), params, logical_ms, .. } => {
                self.judge_start(before, *id, earlier);
                if let Command::Backfill(handed) = command
                    && let BackfillCommand::Page(page) = &**handed
                {
                    let of = page.starts.iter().find(|start| Some(start.at_ms) == *logical_ms).unwrap();
                    assert_eq!(*params, of.params, "the params of the run that was");
                }
            }
            Event::RunReopened { record, .. } if record.backfill.is_some_and(|id| id.0 != 0) => {
                self.judge_start(before, record.backfill.unwrap(), earlier);
            }
            Event::AttemptStopping { run, why: StopReason::Replace, .. } => {
                assert!(before.run(*run).is_some_and(|open| live(&open)), "REPLACE stops a run of a backfill");
            }
            Event::RunEnded { record, .. } if record.state == RunState::Canceled && record.backfill.is_some() => {
                let asked = matches!(command, Command::Backfill(_) | Command::Cancel { .. } | Command::Delete);
                let stopped = before.run(record.run).is_some_and(|open| open.stopping.is_some());
                assert!(asked || stopped, "a run of a backfill is canceled by {command:?}");
            }
            Event::BackfillChanged { change: BackfillChange::Ended { state }, .. } => {
                let id = before.hot.backfill.as_ref().map_or(BackfillId(0), |backfill| backfill.id);
                let over = |run: RunId| {
                    earlier.iter().any(|e| matches!(e, Event::RunEnded { record, .. } if record.run == run))
                };
                let left = before.hot.runs.iter().any(|open| open.record.backfill == Some(id) && !over(open.id()));
                let begun = earlier.iter().any(|e| matches!(e, Event::RunCreated { backfill: Some(_), .. }));
                assert!(!left && !begun, "a backfill is {state} with open runs");
            }
            Event::BackfillChanged { change: BackfillChange::Created { backfill }, .. } => {
                let open = before.hot.backfill.as_ref().is_some_and(|backfill| backfill.is_open());
                assert!(!open, "a second backfill of a job");
                assert!(
                    backfill.to_ms <= before.hot.cursor_ms.max(backfill.from_ms - 1),
                    "instants that are not decided"
                );
            }
            _ => {}
        }
    }

    fn judge_start(&self, before: &Job, id: BackfillId, earlier: &[Event]) {
        let state = before.hot.backfill.as_ref().map(|backfill| (backfill.id, backfill.state));
        assert_eq!(state, Some((id, BackfillState::Running)), "a backfill that does not run starts something");
        assert!(!self.tenant_paused && before.fires(), "a run of a backfill starts in a pause");
        assert!(!self.queue_half, "a backfill takes the other half of the queue");
        let live = before.hot.runs.iter().any(|open| open.record.backfill.is_none());
        assert!(!(self.is_one() && live), "a backfill goes before live runs");
        let begun = |event: &&Event| matches!(event, Event::RunCreated { .. } | Event::RunReopened { .. });
        let open = before.hot.runs.iter().filter(|open| open.record.backfill == Some(id)).count()
            + earlier.iter().filter(begun).count();
        let most = self.expected.iter().find(|expected| expected.id == id).unwrap().parallelism;
        assert!(open < if self.is_one() { 1 } else { most }, "{open} runs are open, and one more");
    }

    pub(super) fn check_state(&self) {
        if self.is_one() {
            let at_once = self.job.hot.runs.iter().filter(|open| is_begun(open) || open.state() == RunState::Queued);
            let at_once: Vec<_> = at_once.map(|open| (open.id(), open.state())).collect();
            assert!(at_once.len() <= 1, "{at_once:?} under {}", self.job.def.concurrency);
            let live_waits = |open: &OpenRun| !open.record.is_back() && open.state() == RunState::Pending;
            let in_way =
                |open: &OpenRun| is_begun(open) || (!open.record.is_back() && open.state() != RunState::Pending);
            let runs = &self.job.hot.runs;
            assert!(
                !runs.iter().any(live_waits) || runs.iter().any(in_way),
                "a live run is held for nothing: {runs:?}"
            );
        }
    }

    /// What the backfills have run is what they were to run.
    pub fn check_results(&self) {
        for expected in &self.expected {
            let of = self.made.iter().filter(|(id, _, _)| *id == expected.id);
            let (instants, runs): (Vec<i64>, Vec<RunId>) = of.map(|(_, at, run)| (*at, *run)).unzip();
            let (once, of_runs): (BTreeSet<i64>, BTreeSet<RunId>) =
                (instants.iter().copied().collect(), runs.iter().copied().collect());
            assert_eq!(once.len(), instants.len(), "an instant twice: {expected:?}");
            match expected.mode {
                BackfillMode::Failed if expected.canceled => assert!(of_runs.is_subset(&expected.runs)),
                BackfillMode::Failed => {
                    let wanted: BTreeSet<RunId> = expected.runs.difference(&self.retried).copied().collect();
                    let run: BTreeSet<RunId> = of_runs.difference(&self.retried).copied().collect();
                    assert_eq!(run, wanted, "{expected:?}");
                }
                _ if expected.canceled => assert!(once.is_subset(&expected.instants), "{expected:?}"),
                // A run that a person has started again has not ended, and there is nothing to run once more.
                BackfillMode::Replay => {
                    let left: BTreeSet<i64> = expected.instants.difference(&once).copied().collect();
                    assert!(once.is_subset(&expected.instants) && left.is_subset(&self.retried_at), "{expected:?}");
                }
                BackfillMode::Missing | BackfillMode::All => assert_eq!(once, expected.instants, "{expected:?}"),
            }
        }
        let missing = |id: &BackfillId| {
            self.expected.iter().any(|expected| expected.id == *id && expected.mode == BackfillMode::Missing)
        };
        let made: Vec<i64> = self.made.iter().filter(|(id, _, _)| missing(id)).map(|(_, at, _)| *at).collect();
        let once: BTreeSet<i64> = made.iter().copied().collect();
        assert_eq!(once.len(), made.len(), "two backfills of missing instants run one twice");
    }
}
