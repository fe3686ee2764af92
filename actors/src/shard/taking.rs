//! Messages of other shards' jobs to jobs of this one (ADR 0028). A `Deliver` that arrives leaves the shard while the view is asked for
//! its keys, and comes back as a message of its own, so nobody waits for the view. Each message is answered when what it is answered
//! with is durable.

use super::Shard;
use crate::{
    call_error::CallError,
    calls::{Responder, ShardAnswer},
    messages::{Envelope, KeyLookUp, LookedUp, ReplyTo, ShardMsg},
};
use campanile_core::{
    job::{Command, Reply, Taken},
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
    peer::outbox::{Deliver, Delivered, HookBody, Parcel, RunFacts, Said},
    record::Source,
    stored::outbox::{MessageId, MessageKind, Refusal},
};
use ractor::ActorRef;
use std::sync::Arc;
use tokio::{sync::oneshot, task::JoinSet};

/// The run of a key.
type RunOfKey = Option<(RunId, Source)>;

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
                    let tagged =
                        |(job, found): (Option<JobId>, RunOfKey)| Some((job?, LookUp { epoch, boot_ms, found }));
                    let keys = jobs.into_iter().zip(found).map(tagged).collect();
                    let _ = myself.cast(ShardMsg::LookedUp(Box::new(LookedUp { deliver, keys, responder })));
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
        let LookedUp { deliver, keys, responder } = looked_up;
        self.not_looked_up();
        if self.stopping || self.admits().is_err() {
            return responder.send(Ok(Delivered::Later(limits::DELIVER_LATER_MS)));
        }
        let mut answers: Vec<(MessageId, oneshot::Receiver<Said>)> = Vec::new();
        for (parcel, looked_up) in deliver.parcels.iter().zip(keys) {
            let (said, answer) = oneshot::channel();
            answers.push((parcel.id, answer));
            self.take_message(myself, parcel, looked_up, said);
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
        said: oneshot::Sender<Said>,
    ) {
        match self.judge_message(parcel, looked_up) {
            Err(what) => self.when_durable(move || {
                let _ = said.send(what);
            }),
            Ok((job, taken)) => {
                let (to, answer) = oneshot::channel();
                let command = Command::Take(Box::new(taken));
                self.submit(myself, Envelope { job, command, reply: ReplyTo::Caller(Responder::new(to)) });
                tokio::spawn(async move {
                    if let Ok(answer) = answer.await {
                        let _ = said.send(said_of(answer));
                    }
                });
            }
        }
    }

    /// The job that a message is for, and the run that it makes; or what is said to it.
    fn judge_message(&self, parcel: &Parcel, looked_up: Option<KeyLookUp>) -> Result<(JobId, Taken), Said> {
        // As it is now: it may have gone since its key was looked up.
        let job = parcel.job.as_deref().and_then(|name| self.find_name(&parcel.tenant, name));
        let facts = job.and_then(|id| self.materialize(id)).map(|job| JobFacts {
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
        let shard = ShardFacts { children: 0, usage: outbox.usage(), bounds: outbox.bounds(), queue_full: false };
        let confirm = match take(parcel, facts.as_ref(), known, shard) {
            Take::Make { confirm } => confirm,
            // Of hooks nobody asks how the run fares.
            Take::Found(_) => return Err(Said::Settled { run: None }),
            Take::Refuse(why) => return Err(Said::Refused(why)),
            Take::Later(ms) => return Err(Said::Later(ms)),
            Take::LookUp => return Err(Said::Later(limits::DELIVER_LATER_MS)),
        };
        let kind = MessageKind::from_code(parcel.kind);
        let (Some(job), Some(source)) = (job, kind.and_then(keys::source)) else {
            return Err(Said::Later(limits::DELIVER_LATER_MS));
        };
        let HookBody { params, reason, .. } = decode("hook", &parcel.body).map_err(|_| Said::Broken)?;
        let (key, depth, marked) = (parcel.key.clone(), parcel.depth, parcel.marked);
        Ok((job, Taken { key, source, params, reason, depth, confirm, marked }))
    }
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
    let source = views.run(run).await?.map(|record| record.source);
    Ok(source.or_else(|| kind.and_then(keys::source)).map(|source| (run, source)))
}

/// What a job's answer to a message means.
fn said_of(answer: Result<ShardAnswer, CallError>) -> Said {
    let facts = |run, generation, state| Said::Settled { run: Some(RunFacts { run, generation, state }) };
    match answer {
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
