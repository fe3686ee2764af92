//! A job that is due each minute, its backfills, and all that happens beside them: outages, pauses, live runs, executors, pages that come
//! late or twice, crashes. Each decision is judged by what was known before it, with a bookkeeping of its own that never asks the
//! backfill's state.

mod judge;

use crate::support::make::{job_id, plain};
use campanile_core::{
    backfill::{Instants, Past, Wanted, Wish, stretches},
    job::{
        BackfillAsked, BackfillCommand, BackfillPage, BackfillStart, Command, Context, Ids, Job, OpenRun, Reply,
        apply::{apply, created},
        decide_next,
    },
    outbox::keys,
    reject::Rejection,
    shard::Pause,
};
use campanile_schema::{
    event::{Event, LedgerEntry, Outcome, SkipReason},
    frame,
    ids::{BackfillId, Epoch, ExecutorSession, RunId},
    job::{ConcurrencyPolicy, MisfirePolicy},
    payload::Payload,
    record::{AttemptState, RunRecord, RunState},
    rpc::executor::Ended,
    stored::{
        StoredHook, StoredJob, StoredTrigger,
        backfill::{BackfillMode, BackfillPlan, BackfillState, PassedInstants},
        outbox::MessageKind,
        rows::LedgerRow,
    },
};
use std::collections::{BTreeMap, BTreeSet};

pub const MINUTE: i64 = 60_000;
/// The job is created then.
pub const BEGIN: i64 = 1_782_000_000_000;

/// What became of an instant.
pub type Fate = (Outcome, Option<SkipReason>, Option<RunId>);

/// A backfill, and what it is to run by the world's own bookkeeping.
#[derive(Debug)]
pub struct Expected {
    pub id: BackfillId,
    pub mode: BackfillMode,
    pub hooks: bool,
    pub parallelism: usize,
    /// Instants that are to run; of FAILED the runs that are to go on.
    pub instants: BTreeSet<i64>,
    pub runs: BTreeSet<RunId>,
    pub canceled: bool,
}

pub struct World {
    pub job: Job,
    pub now_ms: i64,
    seed: u64,
    counter: u64,
    rows: Vec<LedgerRow>,
    pub fates: BTreeMap<i64, Fate>,
    pub finals: BTreeMap<RunId, RunRecord>,
    keys: BTreeMap<String, RunId>,
    bodies: BTreeSet<RunId>,
    /// What each backfill has made or opened again, in order.
    pub made: Vec<(BackfillId, i64, RunId)>,
    pub expected: Vec<Expected>,
    pub tenant_paused: bool,
    pub queue_half: bool,
    /// Rows that end before it are gone.
    pub horizon_ms: i64,
    /// Runs that a person has started again.
    retried: BTreeSet<RunId>,
    /// ... and their instants.
    retried_at: BTreeSet<i64>,
    page: Option<BackfillPage>,
    old_pages: Vec<BackfillPage>,
    /// Every so many-th body fails; 0: none.
    pub fails: u64,
}

pub fn definition(concurrency: ConcurrencyPolicy, misfire: MisfirePolicy) -> StoredJob {
    let mut spec = plain(StoredTrigger::FixedRate { every_ms: MINUTE, anchor_ms: 0 });
    (spec.concurrency, spec.misfire, spec.max_attempts) = (concurrency, misfire, 1);
    spec.on_failure = vec![StoredHook { job: "alarm".into(), params: Payload::default(), compensation: false }];
    spec
}

impl World {
    pub fn new(spec: StoredJob, seed: u64) -> Self {
        Self {
            job: created(job_id(), spec, BEGIN),
            now_ms: BEGIN,
            seed,
            counter: 10,
            rows: Vec::new(),
            fates: BTreeMap::new(),
            finals: BTreeMap::new(),
            keys: BTreeMap::new(),
            bodies: BTreeSet::new(),
            made: Vec::new(),
            expected: Vec::new(),
            tenant_paused: false,
            queue_half: false,
            horizon_ms: i64::MIN,
            retried: BTreeSet::new(),
            retried_at: BTreeSet::new(),
            page: None,
            old_pages: Vec::new(),
            fails: 4,
        }
    }

    pub fn below(&mut self, count: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % count
    }
    pub fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    fn context(&self, count: u64) -> Context {
        let pause = Pause { from_ms: self.now_ms, to_ms: None, reason: SkipReason::TenantPaused };
        Context {
            now_ms: self.now_ms,
            ids: Ids { first: self.counter + 1, count },
            epoch: Epoch(1),
            pauses: if self.tenant_paused { vec![pause] } else { Vec::new() },
            queue_full: false,
            queue_half: self.queue_half,
            node_room: 1_000,
            overloaded: false,
            held: None,
            tzdb: "2026b",
            sampling: None,
        }
    }

    /// Decides, judges the decision, and keeps what follows.
    pub fn decide(&mut self, command: &Command) -> Result<Reply, Rejection> {
        let count = command.ids_wanted();
        let context = self.context(count);
        self.counter += count;
        let before = self.job.clone();
        let (decision, next) = decide_next(&before, command, &context)?;
        let mut replayed = before.clone();
        decision.events.iter().for_each(|event| apply(&mut replayed, event));
        assert_eq!(replayed.hot, next.hot, "replay of {command:?}");
        for (index, event) in decision.events.iter().enumerate() {
            self.judge(&before, &decision.events[..index], event, command);
        }
        self.job = next;
        for event in &decision.events {
            self.note(event);
        }
        for sent in decision.sends.iter().filter(|sent| sent.kind == MessageKind::Hook) {
            let of = self.finals[&sent.run].backfill;
            let asked = |id| self.expected.iter().any(|expected| expected.id == id && expected.hooks);
            assert!(of.is_none_or(asked), "a run of a backfill starts a hook that nobody asked for");
        }
        self.check_state();
        Ok(decision.reply)
    }

    pub fn is_one(&self) -> bool {
        matches!(self.job.def.concurrency, ConcurrencyPolicy::Forbid | ConcurrencyPolicy::QueueOne)
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::CursorMoved { interval, entries, .. } => self.add_row(interval.from_ms, interval.to_ms, entries),
            Event::RunCreated { interval: Some(interval), run, .. } => {
                let at = interval.to_ms;
                let outcome = Outcome::Fired;
                let entry = LedgerEntry { first_ms: at, last_ms: at, count: 1, outcome, reason: None, run: Some(*run) };
                self.add_row(interval.from_ms, at, &[entry]);
            }
            Event::RunCreated { backfill: Some(id), run, logical_ms, key, .. } => {
                self.made.push((*id, logical_ms.unwrap(), *run));
                let before = self.keys.insert(key.clone().unwrap(), *run);
                assert_eq!(before, None, "one key makes two runs");
            }
            Event::RunReopened { record, .. } => {
                if let Some(id) = record.backfill.filter(|id| id.0 != 0) {
                    self.made.push((id, record.logical_ms.unwrap(), record.run));
                }
                self.finals.remove(&record.run);
            }
            Event::RunEnded { record, .. } => {
                self.bodies.remove(&record.run);
                self.finals.insert(record.run, (**record).clone());
            }
            Event::AttemptStarted { run, .. } => {
                self.bodies.insert(*run);
            }
            Event::AttemptEnded { run, .. } => {
                self.bodies.remove(run);
            }
            _ => {}
        }
    }

    fn add_row(&mut self, from_ms: i64, to_ms: i64, entries: &[LedgerEntry]) {
        for entry in entries {
            let mut at = entry.first_ms;
            while at <= entry.last_ms {
                self.fates.insert(at, (entry.outcome, entry.reason, entry.run));
                at += MINUTE;
            }
        }
        let (version, entries) = (self.job.hot.version, entries.to_vec());
        self.rows.push(LedgerRow { job: self.job.id, from_ms, to_ms, version, tzdb: "2026b".into(), entries });
    }

    /// Only what is stored is left.
    pub fn crash(&mut self) {
        let def = frame::encode(&*self.job.def);
        self.job = Job::decode(self.job.id, &def, &self.job.encode_hot()).unwrap();
        self.page = None;
    }

    pub fn wake(&mut self) {
        while self.job.wake_at(self.now_ms).is_some_and(|at| at <= self.now_ms) {
            self.decide(&Command::Wake).unwrap();
        }
    }

    /// Rows of the ledger that are kept.
    fn ledger(&self, after_ms: i64, to_ms: i64) -> Vec<LedgerRow> {
        let touches = |row: &&LedgerRow| row.to_ms > after_ms && row.from_ms < to_ms && row.to_ms > self.horizon_ms;
        self.rows.iter().filter(touches).cloned().collect()
    }

    /// What the shell does with a backfill: reads a page where there is none, and hands its next part to the job.
    pub fn feed(&mut self) {
        let Some(backfill) = self.job.open_backfill().cloned() else { return };
        let id = backfill.id;
        if backfill.state == BackfillState::Canceling {
            self.decide(&Command::Backfill(Box::new(BackfillCommand::Step { id }))).unwrap();
            return;
        }
        let Ok(room) = self.job.backfill_room(&self.context(0)) else { return };
        let fits = |page: &BackfillPage| (page.id, page.after_ms) == (id, backfill.cursor_ms);
        let page = match self.page.take().filter(fits) {
            Some(page) => page,
            None => self.read(id, backfill.cursor_ms, backfill.to_ms),
        };
        let most = 1 + self.below(room.clamp(1, 8) as u64) as usize;
        let mut part = page.clone();
        let whole = part.starts.len() <= most;
        if !whole {
            part.starts.truncate(most);
            part.upto_ms = part.starts.last().unwrap().at_ms;
            part.tail = PassedInstants::default();
        }
        if backfill.mode == BackfillMode::Failed {
            for start in &mut part.starts {
                let run = start.record.as_ref().unwrap().run;
                start.record = self.finals.get(&run).cloned().map(Box::new);
            }
        }
        if self.chance(4) {
            self.old_pages.push(part.clone());
        }
        self.hand(part);
        if let Some(cursor_ms) = self.job.backfill(id).map(|backfill| backfill.cursor_ms) {
            let mut rest = page;
            rest.starts.retain(|start| start.at_ms > cursor_ms);
            rest.after_ms = cursor_ms;
            self.page = (cursor_ms < rest.upto_ms).then_some(rest);
        }
    }

    pub fn hand(&mut self, page: BackfillPage) {
        self.decide(&Command::Backfill(Box::new(BackfillCommand::Page(page)))).unwrap();
    }

    /// A page that was handed in before, or was meant for another backfill.
    pub fn hand_old_page(&mut self) {
        if self.old_pages.is_empty() {
            return;
        }
        let at = self.below(self.old_pages.len() as u64) as usize;
        let page = self.old_pages[at].clone();
        // Its records are those of then, so only pages that make runs come late.
        if page.starts.iter().all(|start| start.record.is_none()) {
            self.hand(page);
        }
    }

    /// The same as the shell's reader, over rows and keys of the world.
    pub fn read(&self, id: BackfillId, after_ms: i64, to_ms: i64) -> BackfillPage {
        let backfill = self.job.backfill(id).unwrap();
        let wish = Wish { mode: backfill.mode, unknown_run: backfill.unknown_run, first: backfill.first };
        let past = Past { schedule: self.job.schedule.clone(), created_ms: self.job.hot.created_ms };
        let mut page =
            BackfillPage { id, after_ms, upto_ms: to_ms, starts: Vec::new(), tail: PassedInstants::default() };
        for stretch in stretches(&past, after_ms, to_ms, &self.ledger(after_ms, to_ms)) {
            let wanted = wish.of(stretch.known);
            if let Instants::Differing(count) = stretch.instants
                && wanted != Wanted::No
            {
                page.tail.differing += count;
            }
            let mut at = stretch.after_ms;
            while let Some(next) = stretch.next(&past, at) {
                at = next;
                let by_key = || self.keys.get(&keys::backfill(next)).copied();
                let (run, starts) = match wanted {
                    Wanted::No => (None, false),
                    Wanted::Unknown => {
                        page.tail.unknown += 1;
                        (None, false)
                    }
                    Wanted::Start { look } if look && by_key().is_some() => {
                        page.tail.existing += 1;
                        (None, false)
                    }
                    Wanted::Start { .. } => (None, true),
                    Wanted::Run(run) => (Some(run), true),
                    Wanted::RunOfBackfill => (by_key(), by_key().is_some()),
                };
                let record = run.and_then(|run| self.finals.get(&run)).cloned();
                let failed = |record: &RunRecord| matches!(record.state, RunState::Failed | RunState::Timeout);
                let starts = match backfill.mode {
                    BackfillMode::Missing | BackfillMode::All => starts,
                    BackfillMode::Failed => starts && record.as_ref().is_some_and(failed),
                    BackfillMode::Replay => starts && record.is_some(),
                };
                if starts {
                    let before = std::mem::take(&mut page.tail);
                    let params = record.as_ref().and_then(|record| record.params.clone());
                    let (record, params) = match backfill.mode {
                        BackfillMode::Failed => (record.map(Box::new), None),
                        BackfillMode::Replay => (None, params),
                        BackfillMode::Missing | BackfillMode::All => (None, None),
                    };
                    page.starts.push(BackfillStart { at_ms: next, before, record, params });
                }
            }
        }
        page
    }

    /// Asks for a backfill. What it is to run is computed here, from what became of each minute.
    pub fn ask(
        &mut self,
        mode: BackfillMode,
        from_ms: i64,
        to_ms: i64,
        parallelism: u32,
        unknown_run: bool,
        hooks: bool,
    ) -> Result<BackfillId, Rejection> {
        let asked = BackfillAsked {
            mode,
            from_ms,
            to_ms,
            parallelism,
            unknown_run,
            hooks,
            plan: BackfillPlan::default(),
            reason: None,
            by: None,
        };
        let (mut instants, mut runs) = (BTreeSet::new(), BTreeSet::new());
        let last_ms = to_ms.min(self.job.hot.cursor_ms);
        let first_ms = (from_ms + MINUTE - 1).div_euclid(MINUTE) * MINUTE;
        for at in (first_ms..=last_ms).step_by(MINUTE as usize) {
            let known = (at > self.job.hot.created_ms).then(|| self.fates[&at]);
            let unknown = at > self.job.hot.created_ms && self.is_hidden(at);
            let of_backfill = self.keys.get(&keys::backfill(at)).copied();
            let is_missing = match known {
                None => true,
                Some((Outcome::Missed | Outcome::Skipped, _, _)) => true,
                Some(_) => false,
            };
            let newest = match known {
                _ if unknown && !unknown_run => None,
                Some((Outcome::Fired, _, run)) if !unknown => run,
                _ if is_missing || unknown => of_backfill,
                _ => None,
            };
            let record = newest.and_then(|run| self.finals.get(&run));
            match mode {
                _ if unknown && !unknown_run => {}
                BackfillMode::Missing if (is_missing || unknown) && of_backfill.is_none() => drop(instants.insert(at)),
                BackfillMode::All => drop(instants.insert(at)),
                BackfillMode::Replay if record.is_some() => drop(instants.insert(at)),
                BackfillMode::Failed => {
                    let failed = record.filter(|record| record.state == RunState::Failed);
                    runs.extend(failed.map(|record| record.run));
                }
                BackfillMode::Missing | BackfillMode::Replay => {}
            }
        }
        let create = BackfillCommand::Create(Box::new(asked));
        let placeholder = self.expected.len();
        let reply = self.decide(&Command::Backfill(Box::new(create)))?;
        let Reply::Backfill(view) = reply else { panic!("{reply:?}") };
        let id = view.backfill_id.unwrap();
        let parallelism = parallelism as usize;
        let expected = Expected { id, mode, hooks, parallelism, instants, runs, canceled: false };
        self.expected.insert(placeholder, expected);
        Ok(id)
    }

    fn is_hidden(&self, at_ms: i64) -> bool {
        let of = self.rows.iter().find(|row| (row.from_ms + 1..=row.to_ms).contains(&at_ms));
        of.is_none_or(|row| row.to_ms <= self.horizon_ms)
    }

    /// Some run that waits for an executor gets one, the live ones first.
    pub fn start_one(&mut self) {
        if self.tenant_paused || self.job.holds_runs() {
            return;
        }
        let queued = self.job.hot.runs.iter().filter(|open| open.state() == RunState::Queued);
        let Some((_, run)) = queued.map(|open| (open.record.is_back(), open.id())).min() else { return };
        let (executor, session) = ("executor-1".into(), ExecutorSession(7));
        let start = Command::Start { run, executor, session, credential: None, credit_stamp_ms: 0 };
        self.decide(&start).unwrap();
    }

    pub fn finish_one(&mut self) {
        let bodies: Vec<RunId> = self.bodies.iter().copied().collect();
        if bodies.is_empty() {
            return;
        }
        let at = self.below(bodies.len() as u64) as usize;
        let fails = self.fails > 0 && self.chance(self.fails);
        let run = bodies[at];
        let ended = Ended {
            run,
            job: self.job.id,
            token: self.job.run(run).unwrap().token().unwrap(),
            state: if fails { AttemptState::Failed } else { AttemptState::Success },
            error_code: None,
            error_message: None,
            result: None,
            cpu_ms: None,
            max_rss_kb: None,
            permanent: false,
        };
        self.decide(&Command::Finish(Box::new(ended))).unwrap();
    }

    pub fn change(&mut self, command: BackfillCommand) -> Result<Reply, Rejection> {
        if let BackfillCommand::Cancel { id, .. } = &command
            && let Some(expected) = self.expected.iter_mut().find(|expected| expected.id == *id)
        {
            expected.canceled = true;
        }
        self.decide(&Command::Backfill(Box::new(command)))
    }

    /// A person starts a run again that failed.
    pub fn retry_by_hand(&mut self) {
        let failed = self.finals.values().find(|record| record.state == RunState::Failed).cloned();
        if let Some(record) = failed {
            let (run, at) = (record.run, record.logical_ms);
            let reopen = Command::Reopen { record: Box::new(record), redrive: false, reason: None, force: false };
            if self.decide(&reopen).is_ok() {
                self.retried.insert(run);
                self.retried_at.extend(at);
            }
        }
    }

    /// Until the backfill has ended and nothing is open.
    pub fn settle(&mut self) {
        (self.tenant_paused, self.queue_half) = (false, false);
        if !self.job.fires() {
            self.decide(&Command::Resume).unwrap();
        }
        let paused = self.job.open_backfill().filter(|backfill| backfill.state == BackfillState::Paused);
        if let Some(id) = paused.map(|backfill| backfill.id) {
            self.change(BackfillCommand::Resume { id }).unwrap();
        }
        for _ in 0..4_000 {
            if self.job.open_backfill().is_none() && self.job.hot.runs.is_empty() {
                return;
            }
            self.feed();
            self.start_one();
            self.finish_one();
        }
        panic!("it does not end: {:?} {:?}", self.job.hot.backfill, self.job.hot.runs);
    }
}

/// It has a body, or had one of which nobody knows whether it has ended.
fn is_begun(open: &OpenRun) -> bool {
    matches!(open.state(), RunState::Running | RunState::SuspectedLost | RunState::NeedsConfirmation)
}
