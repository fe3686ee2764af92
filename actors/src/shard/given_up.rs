//! Messages of the shard's jobs that wait or were given up, for people: listed, sent again, put away (ADR 0028).

use super::{Shard, owed::GivenUp};
use crate::{
    calls::{OutboxAction, Responder},
    messages::{ReplyTo, ShardMsg},
};
use campanile_core::{
    job::Reply,
    outbox::{Sending, moving},
};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    event::Event,
    ids::{JobId, RunId},
    limits::SEND_BY_HAND_MS,
    record::RunRecord,
    stored::outbox::{Failure, GiveUp, Message, MessageId, OutboxEvent, Refusal},
    time::Timestamp,
    view::outbox::{OutboxMessageView, OutboxState},
};
use ractor::ActorRef;

impl Shard {
    /// In the order of the runs that send them.
    pub(super) fn list_outbox(
        &mut self,
        tenant: Option<&str>,
        after: Option<(RunId, u32)>,
        limit: usize,
        responder: Responder<Vec<OutboxMessageView>>,
    ) {
        let owed = &self.post.owed;
        let waiting = owed.outbox.owed().map(|message| {
            let record = owed.record(message).map(|record| &**record);
            view(message, record, OutboxState::Waiting, None, None)
        });
        let mut views: Vec<OutboxMessageView> = waiting
            .chain(owed.given_up().map(given_up))
            .filter(|view| tenant.is_none_or(|tenant| view.tenant_id == tenant))
            .filter(|view| after.is_none_or(|after| (view.run_id, view.generation) > after))
            .collect();
        views.sort_by_key(|view| (view.run_id, view.generation));
        views.truncate(limit);
        self.when_durable(move || responder.send(Ok(views)));
    }

    /// Sends the messages of a run that were given up again, or puts them away.
    pub(super) fn change_outbox(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        run: RunId,
        action: OutboxAction,
        responder: Responder<()>,
    ) {
        let of_run: Vec<GivenUp> =
            self.post.owed.given_up().filter(|given_up| given_up.message.run == run).cloned().collect();
        let events = match action {
            _ if of_run.is_empty() => Err(ApiError::new(
                ErrorCode::IllegalState,
                "no message of the run was given up: it was delivered, still waits, or was put away",
            )),
            OutboxAction::Discard => Ok(vec![cleared(of_run.iter().map(|given_up| given_up.message.id).collect())]),
            OutboxAction::Resend => self.sent_again(&of_run),
        };
        match events {
            Ok(events) => {
                if let Some(first) = of_run.first() {
                    self.audit_about(job_of(&first.message, first.record.as_deref()), &first.message.tenant);
                }
                let events = events.into_iter().map(|change| Event::Outbox { change }).collect();
                self.append(myself, events, Vec::new(), ReplyTo::Nobody, Ok(Reply::Done));
                self.when_durable(move || responder.send(Ok(())));
            }
            Err(error) => self.when_durable(move || responder.send(Err(error))),
        }
    }

    /// Those that may be sent again, under new numbers; or why none may.
    fn sent_again(&self, of_run: &[GivenUp]) -> Answer<Vec<OutboxEvent>> {
        let (outbox, now_ms) = (&self.post.owed.outbox, self.now_ms());
        let mut sending = Sending::new(outbox, now_ms);
        let (mut ids, mut refused) = (Vec::new(), None);
        for GivenUp { message, why, .. } in of_run {
            let again = allowed(*why).and_then(|()| {
                let again = moving::by_hand(message, outbox.head(), now_ms).map_err(|_| too_late())?;
                sending.send_again(again, 0).map_err(|full| {
                    let why = format!("too many messages of the shard or the tenant are not delivered ({full:?})");
                    ApiError::new(ErrorCode::Overloaded, why).retry_after(10.0)
                })
            });
            match again {
                Ok(()) => ids.push(message.id),
                Err(error) => refused = Some(error),
            }
        }
        match refused {
            Some(error) if ids.is_empty() => Err(error),
            Some(_) | None => Ok(sending.events.into_iter().chain([cleared(ids)]).collect()),
        }
    }
}

fn cleared(ids: Vec<MessageId>) -> OutboxEvent {
    OutboxEvent::Cleared { ids }
}

/// What was refused for good would be refused again, but for what the receiver could not read.
fn allowed(why: GiveUp) -> Answer<()> {
    match why {
        GiveUp::Failed(Failure::Undelivered | Failure::Refused(Refusal::Poisoned)) | GiveUp::Dropped(_) => Ok(()),
        GiveUp::Failed(Failure::Refused(refusal)) => {
            let why = format!("the job that the message is for refused it for good ({refusal})");
            Err(ApiError::new(ErrorCode::IllegalState, why))
        }
    }
}

fn too_late() -> ApiError {
    let why = format!(
        "the message was decided more than {} h ago: its receiver may have acted on it and forgotten that. Trigger the job by hand",
        SEND_BY_HAND_MS / 3_600_000
    );
    ApiError::new(ErrorCode::IllegalState, why)
}

fn given_up(GivenUp { message, record, why, at_ms }: &GivenUp) -> OutboxMessageView {
    let (state, reason) = match why {
        GiveUp::Failed(Failure::Undelivered) => (OutboxState::Undelivered, None),
        GiveUp::Failed(Failure::Refused(refusal)) => (OutboxState::Refused, Some(refusal.to_string())),
        GiveUp::Dropped(why) => (OutboxState::Dropped, Some(why.as_str().to_owned())),
    };
    view(message, record.as_deref(), state, reason, Some(*at_ms))
}

/// Whose run sends it. A missed deadline says so itself: there may be no run.
fn job_of(message: &Message, record: Option<&RunRecord>) -> Option<JobId> {
    record.map(|record| record.job).or_else(|| message.deadline.as_deref().map(|missed| missed.job))
}

fn view(
    message: &Message,
    record: Option<&RunRecord>,
    state: OutboxState,
    reason: Option<String>,
    given_up_ms: Option<i64>,
) -> OutboxMessageView {
    OutboxMessageView {
        run_id: message.run,
        generation: message.generation,
        job_id: job_of(message, record),
        tenant_id: message.tenant.to_string(),
        kind: message.kind,
        target_job: message.job.as_deref().map(str::to_owned),
        state,
        reason,
        decided_at: Timestamp(message.at_ms),
        given_up_at: given_up_ms.map(Timestamp),
        may_have_run: message.marked || state == OutboxState::Undelivered,
    }
}
