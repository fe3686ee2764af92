//! Messages of other shards' jobs to jobs of this one (ADR 0028). A `Deliver` that arrives leaves the shard while the view is asked for
//! its keys, and comes back as a message of its own, so nobody waits for the view. Each message is answered when what it is answered
//! with is durable.

use super::{
    Shard,
    graphs::{is_of_node, said_of_node},
};
use crate::{
    call_error::CallError,
    calls::{Responder, ShardAnswer},
    messages::{Envelope, KeyLookUp, LookedUp, ReplyTo, ShardMsg},
};
use campanile_core::{
    job::{Command, NodeAsked, Reply, Taken},
    outbox::{
        LookUp, Take, keys,
        memory::KeyState,
        receiver::{JobFacts, ShardFacts, take, takes},
    },
};
use campanile_ports::{StoreError, Views};
use campanile_schema::{
    error::ErrorCode,
    frame::decode,
    ids::{JobId, RunId},
    limits,
    peer::outbox::{Deliver, Delivered, EndBody, HookBody, NodeBody, Parcel, RunFacts, Said},
    record::{RunRecord, Source},
    stored::outbox::{MessageId, MessageKind, Refusal},
};
use ractor::ActorRef;
use std::sync::Arc;
use tokio::{sync::oneshot, task::JoinSet};

/// The run of a key, and its record where the message needs it.
type RunOfKey = Option<(RunId, Source, Option<Arc<RunRecord>>)>;

impl Shard {
    /// Messages for jobs of this shard. The view is asked for their keys first.
    pub(super) fn deliver(&mut self, myself: &ActorRef<ShardMsg>, deliver: Deliver, responder: Responder<Delivered>) {
        let waiting = self.deps.shards.waiting(self.id) + self.post.arrived;
        if let Err(ms) = takes(&deliver, waiting, limits::SHARD_MAILBOX, self.now_ms()) {
            return responder.send(Ok(Delivered::Later(ms)));
        }
        self.post.arrived += 1;
        let jobs: Vec<Option<JobId>> =
            (deliver.parcels.iter()).map(|parcel| self.find_name(&parcel.tenant, parcel.job.as_deref()?)).collect();
        let (views, epoch, boot_ms) = (self.deps.views.clone(), self.epoch, self.deps.time.boot_ms());
        let myself = myself.clone();
        tokio::spawn(async move {
            match look_up(&views, &deliver.parcels, &jobs).await {
                Ok(found) => {
                    let tagged = |(job, found): (Option<JobId>, &RunOfKey)| {
                        let found = found.as_ref().map(|(run, source, _)| (*run, *source));
                        Some((job?, LookUp { epoch, boot_ms, found }))
                    };
                    let keys = jobs.into_iter().zip(&found).map(tagged).collect();
                    let records = found.into_iter().map(|found| found?.2).collect();
                    let _ = myself.cast(ShardMsg::LookedUp(Box::new(LookedUp { deliver, keys, records, responder })));
                }
                // All of it comes again.
                Err(_) => {
                    let _ = myself.cast(ShardMsg::NotLookedUp);
                    responder.send(Ok(Delivered::Later(limits::DELIVER_LATER_MS)));
                }
            }
        });
    }

    pub(super) fn not_looked_up(&mut self) {
        self.post.arrived = self.post.arrived.saturating_sub(1);
    }

    /// Decides on messages whose keys were looked up.
    pub(super) fn looked_up(&mut self, myself: &ActorRef<ShardMsg>, looked_up: LookedUp) {
        let LookedUp { deliver, keys, records, responder } = looked_up;
        self.not_looked_up();
        if self.stopping || self.admits().is_err() {
            return responder.send(Ok(Delivered::Later(limits::DELIVER_LATER_MS)));
        }
        let mut answers: Vec<(MessageId, oneshot::Receiver<Said>)> = Vec::new();
        for ((parcel, looked_up), record) in deliver.parcels.iter().zip(keys).zip(records) {
            let (said, answer) = oneshot::channel();
            answers.push((parcel.id, answer));
            self.take_message(myself, parcel, looked_up, record, said);
        }
        tokio::spawn(async move {
            let mut each = Vec::with_capacity(answers.len());
            for (id, answer) in answers {
                // Without an answer the shard went away: it comes again.
                if let Ok(said) = answer.await {
                    each.push((id, said));
                }
            }
            #[cfg(feature = "faults")]
            campanile_ports::faults::point("outbox_answer");
            responder.send(Ok(Delivered::Each(each)));
        });
    }

    fn take_message(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        parcel: &Parcel,
        looked_up: Option<KeyLookUp>,
        record: Option<Arc<RunRecord>>,
        said: oneshot::Sender<Said>,
    ) {
        if MessageKind::from_code(parcel.kind) == Some(MessageKind::End) {
            return match decode::<EndBody>("end", &parcel.body) {
                Ok(end) => self.take_end(myself, &parcel.tenant, &end, said),
                Err(_) => drop(said.send(Said::Broken)),
            };
        }
        match self.judge_message(parcel, looked_up, record) {
            Err(what) => self.when_durable(move || {
                let _ = said.send(what);
            }),
            Ok((job, command)) => {
                let (to, answer) = oneshot::channel();
                let of_node = !matches!(command, Command::Take(_));
                self.submit(myself, Envelope { job, command, reply: ReplyTo::Caller(Responder::new(to)) });
                tokio::spawn(async move {
                    if let Ok(answer) = answer.await {
                        let _ = said.send(said_of(answer, of_node));
                    }
                });
            }
        }
    }

    /// The job that a message is for, and what it is told; or what is said to the message.
    fn judge_message(
        &self,
        parcel: &Parcel,
        looked_up: Option<KeyLookUp>,
        record: Option<Arc<RunRecord>>,
    ) -> Result<(JobId, Command), Said> {
        // As it is now: it may have gone since its key was looked up.
        let job = parcel.job.as_deref().and_then(|name| self.find_name(&parcel.tenant, name));
        let known_job = job.and_then(|id| self.materialize(id));
        let kind = MessageKind::from_code(parcel.kind);
        let of_node = kind.is_some_and(is_of_node);
        if of_node && known_job.as_ref().is_some_and(campanile_core::job::Job::is_dag) {
            return Err(Said::Refused(Refusal::Recursion));
        }
        let facts = known_job.map(|job| JobFacts {
            tenant: job.def.tenant.clone(),
            created_ms: job.hot.created_ms,
            not_idempotent: job.def.not_idempotent,
        });
        let looked_up = looked_up.filter(|(of, _)| Some(*of) == job).map(|(_, looked_up)| looked_up);
        let known = match job {
            Some(id) => self.post.keys.find(id, &parcel.key, looked_up, self.deps.time.boot_ms()),
            None => KeyState::Absent,
        };
        let outbox = &self.post.owed.outbox;
        let shard = ShardFacts {
            children: self.dags.children + outbox.usage().ends(),
            usage: outbox.usage(),
            bounds: outbox.bounds(),
            queue_full: false,
        };
        let confirm = match take(parcel, facts.as_ref(), known, shard) {
            Take::Make { confirm } => confirm,
            // What a DAG asks of a run that is there goes by its generation.
            Take::Found(run) if of_node => return self.asked_of_known(parcel, job, run, record),
            // Of hooks nobody asks how the run fares.
            Take::Found(_) => return Err(Said::Settled { run: None }),
            Take::Refuse(why) => return Err(Said::Refused(why)),
            Take::Later(ms) => return Err(Said::Later(ms)),
            Take::LookUp => return Err(Said::Later(limits::DELIVER_LATER_MS)),
        };
        let (Some(job), Some(source)) = (job, kind.and_then(keys::source)) else {
            return Err(Said::Later(limits::DELIVER_LATER_MS));
        };
        if of_node {
            return Ok((job, asked(parcel, confirm, None)?));
        }
        let HookBody { params, reason, trace, budget, sealed, .. } =
            decode("hook", &parcel.body).map_err(|_| Said::Broken)?;
        let (key, depth, marked) = (parcel.key.clone(), parcel.depth, parcel.marked);
        let taken = Taken { key, source, params, reason, depth, confirm, marked, trace, budget, sealed };
        Ok((job, Command::Take(Box::new(taken))))
    }

    /// The key of a node has a run: an open one, or one that has ended, whose record decides.
    fn asked_of_known(
        &self,
        parcel: &Parcel,
        job: Option<JobId>,
        run: RunId,
        looked_up: Option<Arc<RunRecord>>,
    ) -> Result<(JobId, Command), Said> {
        let Some(job) = job else { return Err(Said::Refused(Refusal::JobDeleted)) };
        if self.open_runs.contains_key(&run) {
            return Ok((job, asked(parcel, false, None)?));
        }
        let recent = self.recent.get(&run).map(|(_, record)| record.clone());
        // Memory knew the key when the view did not show the run yet, and the run has left memory since: it is looked up again.
        let record = recent.or(looked_up).ok_or(Said::Later(limits::DELIVER_LATER_MS))?;
        Ok((job, asked(parcel, false, Some(Box::new((*record).clone())))?))
    }
}

/// What a START or a CANCEL asks.
fn asked(parcel: &Parcel, confirm: bool, record: Option<Box<RunRecord>>) -> Result<Command, Said> {
    let NodeBody { dag, node, generation, params, timeout_sec, logical_ms, trace, back, budget, deadline, scheduled } =
        decode("node", &parcel.body).map_err(|_| Said::Broken)?;
    let (key, depth, marked) = (parcel.key.clone(), parcel.depth, parcel.marked);
    let asked = NodeAsked {
        key,
        dag,
        node,
        generation,
        params,
        timeout_sec,
        logical_ms,
        depth,
        confirm,
        marked,
        back,
        record,
        trace,
        budget,
        deadline,
        scheduled,
    };
    let asked = Box::new(asked);
    let starts = MessageKind::from_code(parcel.kind) == Some(MessageKind::Start);
    Ok(if starts { Command::StartNode(asked) } else { Command::CancelNode(asked) })
}

/// The runs of the messages' keys, some looked up side by side.
async fn look_up(
    views: &Arc<dyn Views>,
    parcels: &[Parcel],
    jobs: &[Option<JobId>],
) -> Result<Vec<RunOfKey>, StoreError> {
    let mut found = vec![None; parcels.len()];
    let places: Vec<usize> = (0..parcels.len()).collect();
    for some in places.chunks(limits::DELIVER_LOOK_UPS) {
        let mut asked = JoinSet::new();
        for place in some.iter().copied() {
            let (Some(job), Some(parcel)) = (jobs[place], parcels.get(place)) else { continue };
            let (views, key, kind) = (views.clone(), parcel.key.clone(), MessageKind::from_code(parcel.kind));
            asked.spawn(async move { (place, run_of_key(&*views, job, &key, kind).await) });
        }
        while let Some(answer) = asked.join_next().await {
            let (place, run) = answer.map_err(|e| StoreError::Unavailable(format!("a look-up broke off: {e}")))?;
            found[place] = run?;
        }
    }
    Ok(found)
}

/// Where retention has left the key only, its source says that it is a message's.
async fn run_of_key(
    views: &dyn Views,
    job: JobId,
    key: &str,
    kind: Option<MessageKind>,
) -> Result<RunOfKey, StoreError> {
    let Some(run) = views.find_key(job, key).await? else { return Ok(None) };
    let record = views.run(run).await?.map(Arc::new);
    let source = record.as_ref().map(|record| record.source).or_else(|| kind.and_then(keys::source));
    let record = record.filter(|_| kind.is_some_and(is_of_node));
    Ok(source.map(|source| (run, source, record)))
}

/// What a job's answer to a message means.
fn said_of(answer: Result<ShardAnswer, CallError>, of_node: bool) -> Said {
    let facts = |run, generation, state| Said::Settled { run: Some(RunFacts { run, generation, state }) };
    match answer {
        Ok(answer) if of_node => said_of_node(&answer),
        Ok(ShardAnswer::Reply(Reply::Run(view))) => facts(view.run_id, view.generation, view.state),
        Ok(ShardAnswer::Reply(Reply::Final(record))) => facts(record.run, record.generation, record.state),
        Ok(_) => Said::Settled { run: None },
        Err(error) => match error.code() {
            ErrorCode::NotFound => Said::Refused(Refusal::JobDeleted),
            // The job panicked over it.
            ErrorCode::Internal => Said::Broken,
            _ => Said::Later(limits::DELIVER_LATER_MS),
        },
    }
}
