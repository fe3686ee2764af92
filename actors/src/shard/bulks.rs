//! Bulk operations in a shard: the records of those whose home it is, and the items of any that are its jobs or their runs.

use super::Shard;
use crate::{
    call_error::CallError,
    calls::{Responder, ShardAnswer},
    filter::JobMatcher,
    messages::{Envelope, ReplyTo, ShardMsg},
    record_id::new_record_id,
};
use campanile_core::{
    bulk,
    job::{BulkCommand, BulkStep, Command, Reply, bulk::is_item, bulk_step},
    reject::Rejection,
};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    event::Event,
    ids::{BulkId, JobId, RunId, make_id, slot_of},
    job::JobStatus,
    limits::{BULK_FAILURE_BYTES, BULK_FAILURES, BULK_LOOKS},
    operations::{BulkCreate, BulkUndo},
    peer::bulk::{BulkAnswer, BulkCall, BulkLook, BulkLooked, BulkWork, BulkWorked},
    stored::{
        audit::AuditRecord,
        bulk::{BulkAction, BulkChange, BulkCounts, BulkFailure, BulkItem, StoredBulk},
    },
    text::Text,
    view::JobFilter,
};
use ractor::ActorRef;
use tokio::sync::oneshot;

type Answering = Responder<Box<BulkAnswer>>;

impl Shard {
    pub(super) fn bulk(&mut self, myself: &ActorRef<ShardMsg>, call: BulkCall, responder: Answering) {
        let at_ms = self.now_ms();
        let bulks = &self.state.bulks;
        match call {
            BulkCall::Create(asked) => {
                let id = self.new_bulk_id(asked.tenant.as_ref());
                let changes = bulk::create(bulks, *asked, id, at_ms);
                self.change_bulk(myself, id, changes, responder);
            }
            BulkCall::Undo { id, by, reason } => {
                let tenant = bulks.get(&id).and_then(|bulk| bulk.tenant.clone());
                let new = self.new_bulk_id(tenant.as_ref());
                let changes = bulk::undo(bulks, id, new, by, reason, at_ms);
                self.change_bulk(myself, new, changes, responder);
            }
            BulkCall::Abort { id, reason } => {
                let changes = bulk::abort(bulks, id, reason, at_ms).map(Vec::from_iter);
                self.change_bulk(myself, id, changes, responder);
            }
            BulkCall::Begin { id, pages, page } => {
                let changes = bulk::begin(bulks, id, pages, page).map(Vec::from_iter);
                self.change_bulk(myself, id, changes, responder);
            }
            BulkCall::Report { id, pages, counts } => {
                let changes = bulk::report(bulks, id, pages, counts, at_ms).map(Vec::from_iter);
                self.change_bulk(myself, id, changes, responder);
            }
            BulkCall::Proceed { id } => {
                let changes = bulk::proceed(bulks, id, at_ms).map(Vec::from_iter);
                self.change_bulk(myself, id, changes, responder);
            }
            BulkCall::Get(id) => self.change_bulk(myself, id, Ok(Vec::new()), responder),
            BulkCall::List { tenant } => {
                let is_asked = |bulk: &&StoredBulk| tenant.is_none() || bulk.tenant == tenant;
                let found = bulks.values().filter(is_asked).map(without_page).collect();
                self.when_durable(move || responder.send(Ok(Box::new(BulkAnswer::List(found)))));
            }
            BulkCall::Look(look) => {
                let looked = self.bulk_look(&look);
                self.when_durable(move || responder.send(Ok(Box::new(BulkAnswer::Looked(looked)))));
            }
            BulkCall::Work(work) => self.bulk_work(myself, *work, responder),
        }
    }

    fn new_bulk_id(&self, tenant: Option<&Text>) -> BulkId {
        let slot = tenant.map_or(0, |tenant| slot_of(tenant, ""));
        BulkId(make_id(self.state.counter + 1, slot))
    }

    /// Keeps the changes, and answers with the record.
    fn change_bulk(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        id: BulkId,
        changes: Result<Vec<BulkChange>, Rejection>,
        responder: Answering,
    ) {
        let changes = match changes {
            Ok(changes) => changes,
            Err(refused) => return self.when_durable(move || responder.send(Err(refused.into()))),
        };
        let begins = changes.iter().any(|change| matches!(change, BulkChange::Created { .. }));
        if !changes.is_empty() || self.auditing.is_some() {
            let tenant = self.state.bulks.get(&id).and_then(|bulk| bulk.tenant.clone());
            let created = changes.iter().find_map(|change| match change {
                BulkChange::Created { bulk } => bulk.tenant.clone(),
                BulkChange::Begun { .. }
                | BulkChange::Done { .. }
                | BulkChange::Aborted { .. }
                | BulkChange::Deleting { .. }
                | BulkChange::Undone { .. }
                | BulkChange::Forgotten { .. } => None,
            });
            self.audit_target(tenant.or(created).as_ref(), target(id));
            let events = changes.into_iter().map(|change| Event::BulkChanged { change }).collect();
            self.append(myself, events, Vec::new(), ReplyTo::Nobody, Ok(Reply::Done));
        }
        let answer = self.state.bulks.get(&id).cloned().map(|bulk| Box::new(BulkAnswer::State(Box::new(bulk))));
        let answer = answer.ok_or_else(|| ApiError::new(ErrorCode::NotFound, format!("no bulk operation {id}")));
        let (deps, home) = (self.deps.clone(), self.id);
        self.when_durable(move || {
            if begins {
                deps.bulks.note(id, home);
            }
            responder.send(answer);
        });
    }

    /// Jobs behind a place that fit; a bounded number is looked at.
    fn bulk_look(&self, look: &BulkLook) -> BulkLooked {
        let filter = &look.filter;
        let matcher = JobMatcher::lenient(&JobFilter {
            tenant_id: look.tenant.as_ref().map(Text::to_string),
            status: filter.status.and_then(JobStatus::from_code),
            labels: filter.labels.clone(),
            text: filter.text.clone(),
            ..JobFilter::default()
        });
        let first = self.order.partition_point(|id| id.0 <= look.after);
        let (mut items, mut next) = (Vec::new(), None);
        for (looked, id) in self.order[first..].iter().enumerate() {
            if looked >= BULK_LOOKS || items.len() >= look.limit {
                return BulkLooked { items, next };
            }
            next = Some(id.0);
            let Some(job) = self.materialize(*id) else { continue };
            let of_tenant = look.tenant.as_ref().is_none_or(|tenant| *tenant == job.def.tenant);
            if of_tenant && is_item(look, &job.hot, || matcher.matches(&job.view())) {
                items.push(BulkItem { id: id.0, generation: 0 });
            }
        }
        BulkLooked { items, next: None }
    }

    /// Does items, all in this turn; the answer comes when what was decided is durable.
    fn bulk_work(&mut self, myself: &ActorRef<ShardMsg>, work: BulkWork, responder: Answering) {
        let mut answers = Vec::with_capacity(work.items.len());
        for item in &work.items {
            let (port, answer) = oneshot::channel();
            self.bulk_item(myself, &work, item.id, ReplyTo::Caller(Responder::new(port)));
            answers.push((*item, answer));
        }
        self.auditing = None;
        // What was done before is gone now.
        let gone = work.again && matches!(work.action, BulkAction::Delete | BulkAction::Cancel);
        tokio::spawn(async move {
            let mut worked = BulkWorked::default();
            for (item, answer) in answers {
                note(&mut worked, item, gone, answer.await.unwrap_or(Err(CallError::Unanswered)));
            }
            responder.send(Ok(Box::new(BulkAnswer::Worked(worked))));
        });
    }

    fn bulk_item(&mut self, myself: &ActorRef<ShardMsg>, work: &BulkWork, id: u64, reply: ReplyTo) {
        let reason = work.reason.as_ref().map(Text::to_string);
        let record = AuditRecord {
            id: new_record_id(),
            origin: work.by.clone(),
            operation: Text::new_static(if work.undo_of.is_some() { BulkUndo::NAME } else { BulkCreate::NAME }),
            target: Some(target(work.bulk)),
            reason: work.reason.clone(),
            count: 1,
            ..AuditRecord::default()
        };
        match work.action {
            BulkAction::Pause | BulkAction::Resume | BulkAction::Delete => {
                let step = bulk_step(work).unwrap_or(BulkStep::Pause);
                let command = BulkCommand { bulk: work.bulk, step, undo_of: work.undo_of, reason };
                self.audit_item(AuditRecord { job: Some(JobId(id)), ..record });
                let command = Command::Bulk(Box::new(command));
                self.submit(myself, Envelope { job: JobId(id), command, reply });
            }
            BulkAction::Cancel => {
                let Some(job) = self.open_runs.get(&RunId(id)).copied() else {
                    return self.refuse(reply, ApiError::new(ErrorCode::NotFound, "the run has ended"));
                };
                self.audit_item(AuditRecord { job: Some(job), run: Some(RunId(id)), ..record });
                let command = Command::Cancel { run: RunId(id), reason };
                self.submit(myself, Envelope { job, command, reply });
            }
            // Each is a call of its own: a key is looked up, or the record of a run.
            BulkAction::Trigger | BulkAction::Retry | BulkAction::Redrive => self.refuse(reply, CallError::UnknownCall),
        }
    }
}

/// As the audit trail names it.
fn target(id: BulkId) -> Text {
    format!("bulk {id}").into()
}

fn without_page(bulk: &StoredBulk) -> StoredBulk {
    StoredBulk { page: None, place: None, ..bulk.clone() }
}

/// Counts what became of an item.
fn note(worked: &mut BulkWorked, item: BulkItem, gone_is_done: bool, answer: Result<ShardAnswer, CallError>) {
    let reply = answer.and_then(Reply::try_from);
    match reply {
        Ok(Reply::Unchanged) => worked.counts.unchanged += 1,
        Ok(Reply::Done | Reply::Run(_) | Reply::Final(_) | Reply::Backfill(_) | Reply::Stale) => {
            worked.counts.done += 1;
        }
        Err(error) if gone_is_done && error.code() == ErrorCode::NotFound => worked.counts.done += 1,
        Err(error) => note_error(worked, item, error.into()),
    }
}

/// Counts an item that was not done.
pub(crate) fn note_error(worked: &mut BulkWorked, item: BulkItem, error: ApiError) {
    match error.known() {
        // It is gone.
        ErrorCode::NotFound => worked.counts.unchanged += 1,
        // Queues are full, or a shard is on its way: the item is done later.
        ErrorCode::Overloaded
        | ErrorCode::NotReady
        | ErrorCode::Timeout
        | ErrorCode::TenantQuota
        | ErrorCode::JobQueueFull => {
            worked.left.push(item);
        }
        // Its compensation was started: only a person says that it may run all the same.
        ErrorCode::Compensated => worked.counts.compensated += 1,
        _ => {
            let BulkCounts { failed, failures, .. } = &mut worked.counts;
            *failed += 1;
            if failures.len() < BULK_FAILURES {
                let message = &error.message[..error.message.floor_char_boundary(BULK_FAILURE_BYTES)];
                failures.push(BulkFailure { id: item.id, code: error.code.as_str().into(), message: message.into() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What became of an item whose change was refused so: left for later, unchanged, compensated, failed.
    fn told(code: ErrorCode) -> (usize, u64, u64, u64) {
        let mut worked = BulkWorked::default();
        note_error(&mut worked, BulkItem { id: 7, generation: 1 }, ApiError::new(code, "no"));
        let counts = &worked.counts;
        (worked.left.len(), counts.unchanged, counts.compensated, counts.failed)
    }

    #[test]
    fn an_item_waits_while_a_queue_is_full_and_fails_for_what_stays_so() {
        for code in [ErrorCode::JobQueueFull, ErrorCode::TenantQuota, ErrorCode::Overloaded, ErrorCode::Timeout] {
            assert_eq!(told(code), (1, 0, 0, 0), "{code:?}");
        }
        assert_eq!(told(ErrorCode::NotFound), (0, 1, 0, 0));
        assert_eq!(told(ErrorCode::Compensated), (0, 0, 1, 0));
        assert_eq!(told(ErrorCode::IllegalState), (0, 0, 0, 1));
    }
}
