//! The one task that owns an executor's state: it takes assignments, starts and stops bodies, and reports results.
//!
//! It never waits for a connection: what cannot be sent now is sent on a later turn.

use super::{
    attempts::{Attempts, Ending},
    body,
    body_span::BodySpan,
    config::Config,
    context::Context,
    end::{BodyEnd, EndSignal},
    fence::Fence,
    handle::{Control, ExecutorHandle, Status},
    handler::Body,
    key::Key,
    link::{Event, LinkEvent},
    log::LogsOut,
    nodes::Nodes,
    report::code,
    stop::StopReason,
    upstream::{LinkStage, Upstream, WaitingRequest},
};
use crate::clock::boot_ms;
use campanile_schema::{
    error::ApiError,
    job::Action,
    limits::{DRAIN_FLUSH_MS, EXECUTOR_BATCH, EXECUTOR_EVENTS},
    record::AttemptState,
    rpc::{
        codec::from_map,
        executor::{Announced, Assignment, Drain, Ended, FinishOutcome, Finished, Held, Registered},
        method,
    },
};
use std::{collections::VecDeque, time::Duration};
use tokio::{
    sync::{mpsc, watch},
    task::AbortHandle,
    time::{Instant, MissedTickBehavior},
};

/// After so long without its connection, what came over it is told to another node of the cluster, ms.
const REHOME_MS: u64 = 300;

/// Timeouts, heartbeats and credits are looked at this often.
const TICK: Duration = Duration::from_millis(100);

/// See the module's text.
pub(super) struct SessionTask {
    pub(super) config: Config,
    /// The way to the node of each link.
    pub(super) nodes: Nodes,
    pub(super) upstreams: Vec<Upstream>,
    /// By link: its task, and which one it is of those that had its place.
    pub(super) links: Vec<(AbortHandle, u64)>,
    /// Links since the start, those that are gone too.
    pub(super) lives: u64,
    /// For links to come.
    pub(super) events: mpsc::Sender<Event>,
    pub(super) attempts: Attempts,
    fence: Fence,
    ended: mpsc::Sender<BodyEnd>,
    logs: LogsOut,
    /// Attempts with something in their log, to be sent.
    pub(super) log_queue: VecDeque<Key>,
    /// Links whose node shall be told again what is held, since a shard has a new owner.
    pub(super) announce_again: Vec<bool>,
    /// By link: since when it has not been ready.
    pub(super) down_since_ms: Vec<Option<u64>>,
    /// Nodes may be due another share of the free slots than they were given.
    pub(super) shares_changed: bool,
    /// When shares were given anew last.
    pub(super) shared_ms: u64,
    /// Results wait until then, so that they share a message.
    pub(super) finish_from: Instant,
    /// When a drain's time is over.
    pub(super) draining_until_ms: Option<u64>,
    forced: bool,
    status: watch::Sender<Status>,
    bodies_ended: u64,
    pub(super) last_error: Option<String>,
}

struct Inputs {
    events: mpsc::Receiver<Event>,
    ended: mpsc::Receiver<BodyEnd>,
    logs: mpsc::Receiver<Key>,
    control: mpsc::Receiver<Control>,
}

pub(super) fn start(config: Config) -> ExecutorHandle {
    let slots = config.register.slots as usize;
    let (events_in, events) = mpsc::channel(EXECUTOR_EVENTS);
    // A body whose slot was freed by an operator ends beside the one that has the slot now.
    let (ended_in, ended) = mpsc::channel(2 * slots);
    let (logs_in, logs) = mpsc::channel(slots);
    let (control_in, control) = mpsc::channel(1);
    let (status_in, status) = watch::channel(Status::default());
    let grace_ms = config.grace.as_millis() as u64;
    let mut session = SessionTask {
        nodes: Nodes::default(),
        upstreams: Vec::new(),
        links: Vec::new(),
        lives: 0,
        events: events_in,
        attempts: Attempts::new(grace_ms),
        fence: Fence::default(),
        ended: ended_in,
        logs: LogsOut::new(logs_in),
        log_queue: VecDeque::new(),
        announce_again: Vec::new(),
        down_since_ms: Vec::new(),
        shares_changed: false,
        shared_ms: 0,
        finish_from: Instant::now(),
        draining_until_ms: None,
        forced: false,
        status: status_in,
        bodies_ended: 0,
        last_error: None,
        config,
    };
    session.connect_to_given();
    let task = tokio::spawn(session.run(Inputs { events, ended, logs, control }));
    ExecutorHandle { control: control_in, status, task }
}

impl SessionTask {
    async fn run(mut self, mut inputs: Inputs) -> Status {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ends = Vec::new();
        loop {
            tokio::select! {
                Some(event) = inputs.events.recv() => self.event(event),
                count = inputs.ended.recv_many(&mut ends, EXECUTOR_BATCH) => {
                    self.bodies_ended += count as u64;
                    for end in ends.drain(..) {
                        let told = self.config.on_body_end.as_ref();
                        self.attempts.ended(end.key, end.report, told);
                    }
                }
                Some(key) = inputs.logs.recv() => self.log_queue.push_back(key),
                Some(Control::Drain { limit }) = inputs.control.recv() => self.drain(limit),
                () = tokio::time::sleep_until(self.finish_from), if self.gathers() => {}
                _ = tick.tick() => self.tick(),
            }
            self.flush();
            self.publish();
            if self.is_drained() {
                return self.status.borrow().clone();
            }
        }
    }

    fn event(&mut self, event: Event) {
        let Event { link, life, connection, what } = event;
        // Of a link that was given up.
        if self.links[link].1 != life {
            return;
        }
        let now_ms = boot_ms();
        match what {
            LinkEvent::Up(welcome) => self.met(link, connection, welcome, now_ms),
            LinkEvent::Down(error) => {
                self.lost(link, &error, now_ms);
                self.shares_changed = true;
            }
            LinkEvent::Assign(items) if self.upstreams[link].is_current(connection) => {
                self.upstreams[link].received(items.len());
                for item in items {
                    self.assigned(link, item, now_ms);
                }
            }
            LinkEvent::Unreadable(items, why) if self.upstreams[link].is_current(connection) => {
                self.upstreams[link].received(items.len());
                tracing::error!(count = items.len(), why, "assignments that this release cannot read");
                for held in items {
                    self.refuse(link, &held, code::UNKNOWN_ASSIGNMENT, &why);
                }
            }
            LinkEvent::Stop(stop) => {
                for held in &stop.items {
                    self.attempts.stop(held.into(), StopReason::Canceled, now_ms);
                }
                for held in &stop.ended {
                    self.attempts.forget(held.into());
                    self.shares_changed = true;
                }
            }
            LinkEvent::Epochs(taken) => {
                self.fence.learn(&taken);
                self.announce_again[link] = true;
            }
            LinkEvent::Members(nodes) if self.config.follow && self.upstreams[link].is_current(connection) => {
                self.nodes.told(link, nodes);
                self.follow(now_ms);
            }
            LinkEvent::Hint(waiting) if self.upstreams[link].is_current(connection) => {
                self.upstreams[link].hinted(waiting);
                self.shares_changed = true;
            }
            LinkEvent::Answer(id, answer) if self.upstreams[link].is_current(connection) => {
                if let Some(asked) = self.upstreams[link].answered(id) {
                    self.answered(link, asked, answer, now_ms);
                }
            }
            // Of a connection that is gone: the node counts them as not delivered when we announce what we hold.
            LinkEvent::Assign(_)
            | LinkEvent::Unreadable(..)
            | LinkEvent::Members(_)
            | LinkEvent::Hint(_)
            | LinkEvent::Answer(..) => {}
        }
    }

    fn assigned(&mut self, link: usize, mut a: Assignment, now_ms: u64) {
        let key = Key { run: a.run, token: a.token };
        // Delivered twice: the first one counts.
        if self.attempts.holds(key) {
            return;
        }
        let held = Held { run: a.run, job: a.job, token: a.token };
        if self.draining_until_ms.is_some() {
            return self.refuse(link, &held, code::DRAINING, "the executor drains");
        }
        if self.attempts.running() >= self.config.register.slots as usize {
            return self.refuse(link, &held, code::NO_SLOT, "no free slot");
        }
        match self.fence.admit(&a, now_ms) {
            Ok(new_epoch) => self.announce_again[link] |= new_epoch,
            Err(refusal) => return self.refuse(link, &held, refusal.code, refusal.message),
        }
        let Some(body) = self.body_of(&a.action) else {
            let message = format!("this executor cannot run {}", describe(&a.action));
            return self.keep(link, &held, AttemptState::Failed, code::NO_HANDLER, &message);
        };
        let ending = match &a.action {
            Action::Command { .. } => Ending::ByItself,
            Action::Handler { .. } | Action::Http { .. } | Action::Webhook { .. } | Action::Dag(_) => Ending::Dropped,
        };
        let end = EndSignal::new(key, self.ended.clone());
        let span = self.config.on_body_end.as_ref().and_then(|_| BodySpan::begin(&mut a));
        let ctx = Context::new(a, key, self.logs.clone(), self.config.grace, &end);
        let abort = body::start(body, ctx.clone(), end);
        self.attempts.started(key, ctx, (abort, ending), span, link, now_ms);
    }

    fn body_of(&self, action: &Action) -> Option<Body> {
        match action {
            Action::Handler { name } => self.config.handlers.get(name).or(self.config.any.as_ref()).cloned(),
            Action::Command { .. } => self.config.commands.clone(),
            Action::Http { .. } | Action::Webhook { .. } => self.config.http.clone(),
            // It has no attempts.
            Action::Dag(_) => None,
        }
    }

    fn refuse(&mut self, link: usize, held: &Held, code: &str, message: &str) {
        self.keep(link, held, AttemptState::NotStarted, code, message);
    }

    fn keep(&mut self, link: usize, held: &Held, state: AttemptState, code: &str, message: &str) {
        let ended = Ended {
            run: held.run,
            job: held.job,
            token: held.token,
            state,
            error_code: Some(code.to_owned()),
            error_message: Some(message.to_owned()),
            result: None,
            cpu_ms: None,
            max_rss_kb: None,
            permanent: false,
        };
        self.attempts.refused(ended, link);
    }

    fn answered(&mut self, link: usize, asked: WaitingRequest, answer: Result<Vec<u8>, ApiError>, now_ms: u64) {
        match asked {
            WaitingRequest::Register => match read::<Registered>(answer) {
                Ok(registered) => {
                    self.fence.learn(&registered);
                    self.upstreams[link].set_cluster(registered.cluster_id);
                    self.upstreams[link].set_stage(LinkStage::Announcing);
                    self.announce(link);
                }
                Err(error) => self.give_up(link, &error, "registration refused"),
            },
            WaitingRequest::Announce { last } => match read::<Announced>(answer) {
                Ok(announced) => {
                    for held in &announced.stop {
                        self.attempts.stop(held.into(), StopReason::Canceled, now_ms);
                    }
                    if last && self.upstreams[link].stage() == LinkStage::Announcing {
                        self.upstreams[link].set_stage(LinkStage::Ready);
                        self.attempts.resend(link);
                        if self.draining_until_ms.is_some() {
                            self.upstreams[link].notify(method::EXECUTOR_DRAIN, &Drain {});
                        }
                        self.give_credit(link, now_ms);
                        self.shares_changed = true;
                    }
                }
                Err(error) => self.give_up(link, &error, "announcement refused"),
            },
            WaitingRequest::Finish(keys) => match read::<Finished>(answer) {
                Ok(finished) => self.finished(&keys, &finished.outcomes, now_ms),
                Err(error) => {
                    tracing::debug!(%error, count = keys.len(), "results were not taken, sending them again");
                    self.finished(&keys, &[], now_ms);
                }
            },
            WaitingRequest::Heartbeat { .. } | WaitingRequest::Log => {}
        }
    }

    fn give_up(&mut self, link: usize, error: &ApiError, why: &'static str) {
        tracing::warn!(%error, why, "the node does not take this executor");
        self.last_error = Some(format!("{why}: {error}"));
        self.upstreams[link].hang_up(why);
    }

    /// Results without an outcome are sent again.
    fn finished(&mut self, keys: &[Key], outcomes: &[FinishOutcome], now_ms: u64) {
        for (n, key) in keys.iter().enumerate() {
            match outcomes.get(n) {
                Some(FinishOutcome::Durable) => {
                    if let Some(told) = &self.config.on_durable {
                        told(key.run, key.token);
                    }
                    self.attempts.settled(*key);
                }
                Some(FinishOutcome::Stale) => self.attempts.settled(*key),
                Some(FinishOutcome::Again) | None => self.attempts.again(*key, now_ms),
            }
        }
    }

    fn tick(&mut self) {
        let now_ms = boot_ms();
        self.attempts.expire(now_ms);
        let running = self.attempts.running() as u32;
        let grace_ms = self.config.grace.as_millis() as u64;
        self.rehome(now_ms);
        self.follow(now_ms);
        for link in 0..self.upstreams.len() {
            self.upstreams[link].tick(running, now_ms);
            if self.upstreams[link].is_out_of_contact(grace_ms, now_ms) {
                self.attempts.stop_out_of_contact(link, now_ms);
            }
            if self.upstreams[link].credit_is_due(now_ms) {
                self.give_credit(link, now_ms);
            }
        }
        if let Some(until_ms) = self.draining_until_ms
            && now_ms > until_ms
            && !self.forced
        {
            self.forced = true;
            self.attempts.stop_all(StopReason::Shutdown, now_ms);
            self.draining_until_ms = Some(now_ms + grace_ms + DRAIN_FLUSH_MS);
        }
    }

    /// A node that does not come back at once may be dead, and its shards on other nodes by now.
    fn rehome(&mut self, now_ms: u64) {
        for from in 0..self.upstreams.len() {
            let ready = self.upstreams[from].stage() == LinkStage::Ready;
            let down_ms = self.down_since_ms[from].get_or_insert(now_ms);
            if ready {
                self.down_since_ms[from] = None;
            } else if now_ms.saturating_sub(*down_ms) > REHOME_MS
                && self.attempts.is_home(from)
                && let Some(to) = self.other_of_its_cluster(from)
            {
                tracing::info!(from, to, "what came over a lost connection is told over another one");
                self.attempts.rehome(from, to);
                self.announce_again[to] = true;
            }
        }
    }

    /// A link that is ready to another node of the same cluster.
    pub(super) fn other_of_its_cluster(&self, from: usize) -> Option<usize> {
        let cluster = self.upstreams[from].cluster();
        let same = |u: &Upstream| u.stage() == LinkStage::Ready && u.cluster().is_some() && u.cluster() == cluster;
        (0..self.upstreams.len()).find(|link| *link != from && same(&self.upstreams[*link]))
    }

    fn drain(&mut self, limit: Duration) {
        self.draining_until_ms.get_or_insert(boot_ms().saturating_add(limit.as_millis() as u64));
        for upstream in self.upstreams.iter_mut().filter(|u| u.stage() == LinkStage::Ready) {
            upstream.notify(method::EXECUTOR_DRAIN, &Drain {});
        }
    }

    fn is_drained(&self) -> bool {
        let Some(until_ms) = self.draining_until_ms else {
            return false;
        };
        let idle = self.attempts.running() == 0 && self.attempts.unacknowledged() == 0;
        (idle && self.upstreams.iter().all(Upstream::is_flushed)) || (self.forced && boot_ms() > until_ms)
    }

    fn publish(&self) {
        self.status.send_if_modified(|status| {
            let now = Status {
                registered: self.upstreams.iter().filter(|u| u.stage() == LinkStage::Ready).count(),
                running: self.attempts.running(),
                unacknowledged: self.attempts.unacknowledged(),
                ended: self.bodies_ended,
                last_error: None,
            };
            let same_error = status.last_error == self.last_error;
            if same_error
                && (status.registered, status.running, status.unacknowledged, status.ended)
                    == (now.registered, now.running, now.unacknowledged, now.ended)
            {
                return false;
            }
            *status = Status { last_error: self.last_error.clone(), ..now };
            true
        });
    }
}

fn read<T: serde::de::DeserializeOwned>(answer: Result<Vec<u8>, ApiError>) -> Result<T, ApiError> {
    answer.and_then(|raw| from_map(&raw))
}

fn describe(action: &Action) -> String {
    match action {
        Action::Handler { name } => format!("the handler '{name}'"),
        Action::Command { .. } => "commands".to_owned(),
        Action::Http { .. } => "HTTP actions".to_owned(),
        Action::Webhook { .. } => "webhooks".to_owned(),
        Action::Dag(_) => "DAGs".to_owned(),
    }
}
