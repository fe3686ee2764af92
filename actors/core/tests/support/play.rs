//! Carries out [`Op`]s on a [`Sim`].

use super::{
    ops::Op,
    sim::{Sim, ended},
};
use campanile_core::job::{Command, Reply};
use campanile_schema::{
    ids::{ExecutorSession, RunId, Token},
    payload::Payload,
    record::{AttemptState, RunState},
};

impl Sim {
    /// A run that fits, by `pick`; any run when none does.
    fn run_in(&self, pick: usize, fits: fn(RunState) -> bool) -> Option<RunId> {
        let open = &self.job.hot.runs;
        let fitting: Vec<RunId> = open.iter().filter(|r| fits(r.state())).map(|r| r.id()).collect();
        if fitting.is_empty() {
            return open.get(pick % open.len().max(1)).map(|r| r.id());
        }
        Some(fitting[pick % fitting.len()])
    }

    fn token_of(&self, run: RunId) -> Token {
        self.job.run(run).and_then(|r| r.token()).unwrap_or(Token(0))
    }

    /// A token of this run that is not its present one.
    fn stale_token(&self, run: RunId) -> Token {
        let present = self.token_of(run);
        let before = self.tokens.iter().rev().find(|(r, t)| *r == run && *t != present);
        before.map_or(Token(present.0.wrapping_add(999_999)), |(_, token)| *token)
    }

    fn interval_ms(&self) -> i64 {
        let schedule = &self.job.schedule;
        let base = Some(self.now_ms);
        let first = schedule.next(self.now_ms, base);
        let second = first.and_then(|first| schedule.next(first, None));
        let ms = match (first, second) {
            (Some(first), Some(second)) => second - first,
            (Some(first), None) => first - self.now_ms,
            (None, _) => 10_000,
        };
        ms.clamp(1_000, 86_400_000)
    }

    pub fn op(&mut self, op: &Op) {
        let body = |s| matches!(s, RunState::Running | RunState::SuspectedLost);
        match op {
            Op::Pass { ms } => self.pass(self.now_ms + ms),
            Op::PassInstants { eighths } => {
                let ms = self.interval_ms() * eighths / 8;
                self.pass(self.now_ms + ms);
            }
            Op::Outage { instants } => {
                self.now_ms += self.interval_ms() * instants + 137;
                self.settle();
            }
            Op::ClockBack { ms } => {
                self.now_ms -= ms;
                self.settle();
            }
            Op::Crash => self.crash(),
            Op::TenantPause { on } => self.tenant_pause(*on),
            Op::QueueFull { on } => self.queue_full = *on,
            Op::Start { pick } => {
                if let Some(run) = self.run_in(*pick, |s| s == RunState::Queued) {
                    let session = ExecutorSession(1 + *pick as u64 % 3);
                    let executor = format!("executor-{session}");
                    drop(self.command(&Command::Start {
                        run,
                        executor: executor.into(),
                        session,
                        credential: None,
                        credit_stamp_ms: 5,
                    }));
                }
            }
            Op::Finish { pick, state } => {
                if let Some(run) = self.run_in(*pick, body) {
                    self.finish(run, self.token_of(run), *state);
                }
            }
            Op::FinishStale { pick, state } => {
                if let Some(run) = self.run_in(*pick, body) {
                    let reply = self.finish(run, self.stale_token(run), *state);
                    assert!(!self.strict || reply == Reply::Stale, "a stale token was taken");
                }
            }
            Op::Grind { state, times } => self.grind(*state, *times),
            Op::Suspect { pick } => {
                if let Some(run) = self.run_in(*pick, |s| s == RunState::Running) {
                    drop(self.command(&Command::Suspect { run, token: self.token_of(run) }));
                }
            }
            Op::Heard { pick, again } => {
                if let Some(run) = self.run_in(*pick, |s| s == RunState::SuspectedLost) {
                    let token = if *again { self.token_of(run) } else { self.stale_token(run) };
                    let session = ExecutorSession(1 + *pick as u64 % 3);
                    drop(self.command(&Command::Heard { run, token, session }));
                }
            }
            Op::Lost { pick } => {
                if let Some(run) = self.run_in(*pick, body) {
                    drop(self.command(&Command::Lost { run, token: self.token_of(run) }));
                }
            }
            Op::LostStale { pick } => {
                if let Some(run) = self.run_in(*pick, body) {
                    let reply = self.command(&Command::Lost { run, token: self.stale_token(run) }).unwrap();
                    assert!(!self.strict || reply == Reply::Stale, "a stale loss was taken");
                }
            }
            Op::Cancel { pick } => {
                if let Some(run) = self.run_in(*pick, |_| true) {
                    drop(self.command(&Command::Cancel { run, reason: None }));
                }
            }
            Op::Confirm { pick, decision } => {
                if let Some(run) = self.run_in(*pick, |s| s == RunState::NeedsConfirmation) {
                    drop(self.command(&Command::Confirm { run, decision: *decision, reason: None }));
                }
            }
            Op::Trigger { key, params } => {
                let key = key.map(|k| format!("key-{k}"));
                let params = params.then(|| Payload(r#"{"b":2}"#.to_owned()));
                drop(self.command(&Command::Trigger {
                    key,
                    params,
                    reason: Some("by hand".to_owned()),
                    by: None,
                    sealed: None,
                }));
            }
            Op::Pause => drop(self.command(&Command::Pause { reason: Some("why".to_owned()) })),
            Op::Resume => drop(self.command(&Command::Resume)),
            Op::Replace { def, stale } => {
                let version = self.job.hot.version + u64::from(*stale);
                drop(self.command(&Command::Replace { version, spec: def.clone() }));
            }
            Op::Delete => drop(self.command(&Command::Delete)),
            Op::Quarantine => drop(self.command(&Command::Quarantine { reason: "it failed".to_owned() })),
            Op::Reopen { pick, redrive } => {
                if let Some(record) = self.finals.get(pick % self.finals.len().max(1)).cloned() {
                    let reason = redrive.then(|| "mended".to_owned());
                    drop(self.command(&Command::Reopen {
                        record: Box::new(record),
                        redrive: *redrive,
                        reason,
                        force: false,
                    }));
                }
            }
            Op::Discard { pick } => {
                if let Some(record) = self.finals.get(pick % self.finals.len().max(1)).cloned() {
                    drop(self.command(&Command::Discard { record: Box::new(record) }));
                }
            }
        }
    }

    fn grind(&mut self, state: AttemptState, times: usize) {
        let Some(run) = self.run_in(0, |s| s == RunState::Queued) else { return };
        for _ in 0..times {
            let session = ExecutorSession(9);
            let start =
                Command::Start { run, executor: "grinder".into(), session, credential: None, credit_stamp_ms: 5 };
            if self.command(&start).is_err() {
                return;
            }
            self.finish(run, self.token_of(run), state);
            if let Some(retry) = self.job.run(run).and_then(|r| r.retry_at_ms) {
                self.pass(retry + 20);
            }
        }
    }

    pub fn finish(&mut self, run: RunId, token: Token, state: AttemptState) -> Reply {
        self.command(&Command::Finish(Box::new(ended(self.job.id, run, token, state)))).unwrap()
    }
}
