//! Who asked for a change: the record goes into the frame of the change, behind its events, so that one is durable with the other.
//!
//! A call that is carried out and changes nothing, such as a pause of a job that is paused, leaves its record too, in a frame of its own.
//! One that is refused leaves none here: its node writes it down with others like it (`scheduler::audit`).

use super::Shard;
use crate::{
    calls::{Responder, ShardCall},
    messages::{ReplyTo, ShardMsg},
};
use campanile_core::job::Reply;
use campanile_schema::{event::Event, format::AUDIT_FORMAT, ids::JobId, stored::audit::AuditRecord, text::Text};
use ractor::ActorRef;
use std::sync::Arc;

/// The call that is being answered.
pub(super) struct Auditing {
    /// Of the next change. One call may make many, each of which has a record.
    next: AuditRecord,
    /// What changes nothing leaves no record: it is one of many items.
    only_changes: bool,
}

impl Shard {
    /// From here to the end of the call its changes are this caller's.
    pub(super) fn begin_auditing(&mut self, mut record: AuditRecord, call: &ShardCall) {
        if let ShardCall::Command { job, .. } = call {
            record.job = Some(*job);
        }
        // The sender saw a format that this node has not read yet: for a few seconds of an upgrade only the log has it.
        self.auditing =
            (self.deps.in_use.event() >= AUDIT_FORMAT).then_some(Auditing { next: record, only_changes: false });
    }

    /// Adds the record of a change to its events.
    pub(super) fn audit(&mut self, events: &mut Vec<Event>) {
        let Some(auditing) = &mut self.auditing else { return };
        if auditing.only_changes && events.is_empty() {
            return;
        }
        let mut record = auditing.next.clone();
        auditing.next.id += 1;
        record.at_ms = self.deps.time.now_ms();
        record.count = 1;
        // Of a run, and of a job that is being made, only the change tells the job.
        record.job = record.job.or_else(|| events.iter().find_map(Event::job));
        if record.tenant.is_none() {
            record.tenant = record.job.and_then(|job| self.materialize(job)).map(|job| job.def.tenant.clone());
        }
        events.push(Event::Audited { record: Arc::new(record) });
    }

    /// For a change whose events tell neither: of this job, if it is known, and of this tenant.
    pub(super) fn audit_about(&mut self, job: Option<JobId>, tenant: &Text) {
        if let Some(auditing) = &mut self.auditing {
            auditing.next.job = job;
            auditing.next.tenant = Some(tenant.clone());
        }
    }

    /// For a change whose record names something else.
    pub(super) fn audit_target(&mut self, tenant: Option<&Text>, target: Text) {
        if let Some(auditing) = &mut self.auditing {
            auditing.next.tenant = tenant.cloned();
            auditing.next.target = Some(target);
        }
    }

    /// The next change is that of one item of many.
    pub(super) fn audit_item(&mut self, record: AuditRecord) {
        let kept = self.deps.in_use.event() >= AUDIT_FORMAT;
        self.auditing = kept.then_some(Auditing { next: record, only_changes: true });
    }

    /// Keeps records of what no frame of this shard tells.
    pub(super) fn keep_audit(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        records: Vec<AuditRecord>,
        responder: Responder<()>,
    ) {
        if !records.is_empty() && self.deps.in_use.event() >= AUDIT_FORMAT {
            let events = records.into_iter().map(|record| Event::Audited { record: Arc::new(record) }).collect();
            self.append(myself, events, Vec::new(), ReplyTo::Nobody, Ok(Reply::Done));
        }
        self.when_durable(move || responder.send(Ok(())));
    }
}
