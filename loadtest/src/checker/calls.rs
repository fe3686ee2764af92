//! Joins the lines of callers to calls, and derives what they say about each job.

use super::history::{AcceptedCall, AskedBackfill, Confirmed, History, Job, Pause, Reopened, Trigger, Version};
use crate::run_dir::lines::{BackfillLine, CallEvent, CallerLine, Verb};
use campanile_schema::{job::JobSpec, payload::Payload, view::ConfirmDecision};
use std::collections::{BTreeMap, HashMap};

#[derive(Default)]
struct Call {
    verb: Option<Verb>,
    sent_us: Option<i64>,
    ack_us: Option<i64>,
    unknown: bool,
    /// Tries that may have been done: each without an answer, and the one that was acknowledged.
    maybe_done: u32,
    refused: Option<String>,
    job: Option<u64>,
    spec: Option<JobSpec>,
    key: Option<String>,
    params: Option<Payload>,
    tenant: Option<String>,
    decision: Option<ConfirmDecision>,
    generation: Option<u32>,
    run: Option<u64>,
    backfill: Option<BackfillLine>,
}

impl History {
    /// The lines of one caller, in the order of its file.
    pub fn add_caller(&mut self, lines: Vec<CallerLine>) {
        let mut calls: HashMap<u64, Call> = HashMap::new();
        for line in lines {
            let call = calls.entry(line.call).or_default();
            call.verb = Some(line.verb);
            call.job = call.job.or(line.job.map(|j| j.0));
            call.run = line.run.map(|r| r.0).or(call.run);
            call.key = call.key.take().or(line.key);
            call.spec = call.spec.take().or(line.spec);
            call.params = call.params.take().or(line.params);
            call.tenant = call.tenant.take().or(line.tenant);
            // The answer tells the id.
            call.backfill = line.backfill.or(call.backfill);
            call.decision = call.decision.or(line.decision);
            call.generation = line.generation.or(call.generation);
            match line.event {
                CallEvent::Sent => call.sent_us = Some(call.sent_us.unwrap_or(line.t_us)),
                CallEvent::Ack => {
                    call.ack_us = Some(call.ack_us.unwrap_or(line.t_us));
                    call.maybe_done += 1;
                }
                CallEvent::Unknown => {
                    call.unknown = true;
                    call.maybe_done += 1;
                }
                CallEvent::Refused => call.refused = Some(line.code.unwrap_or_default()),
            }
        }
        let mut calls: Vec<Call> = calls.into_values().collect();
        // A caller asks one thing of a job at a time, and creates it before anything else.
        calls.sort_by_key(|c| (c.verb != Some(Verb::Create), c.sent_us));
        for call in calls {
            self.add_call(call);
        }
    }

    fn add_call(&mut self, call: Call) {
        let (Some(verb), Some(sent_us)) = (call.verb, call.sent_us) else {
            self.damaged.push("a caller's answer without its request".to_owned());
            return;
        };
        if call.unknown && call.ack_us.is_none() {
            self.calls_unknown += 1;
        }
        if call.ack_us.is_some() {
            *self.calls_acknowledged.entry(verb).or_default() += 1;
        }
        let refused = call.refused.is_some() && !call.unknown && call.ack_us.is_none();
        match verb {
            Verb::Create => self.add_create(call, sent_us, refused),
            // What was certainly not done changes nothing.
            Verb::PauseTenant | Verb::ResumeTenant | Verb::PauseSystem | Verb::ResumeSystem if refused => {}
            Verb::PauseTenant => {
                let tenant = call.tenant.unwrap_or_default();
                self.tenant_pauses.entry(tenant).or_default().push(Pause::begun(sent_us, call.ack_us));
            }
            Verb::ResumeTenant => {
                resume(self.tenant_pauses.entry(call.tenant.unwrap_or_default()).or_default(), sent_us, call.ack_us);
            }
            Verb::PauseSystem => self.system_pauses.push(Pause::begun(sent_us, call.ack_us)),
            Verb::ResumeSystem => resume(&mut self.system_pauses, sent_us, call.ack_us),
            Verb::Edit
            | Verb::Trigger
            | Verb::Pause
            | Verb::Resume
            | Verb::Delete
            | Verb::Cancel
            | Verb::Retry
            | Verb::Redrive
            | Verb::Discard
            | Verb::Backfill
            | Verb::CancelBackfill
            | Verb::BulkPause
            | Verb::BulkResume
            | Verb::BulkRetry
            | Verb::Confirm => match call.job.and_then(|id| self.jobs.get_mut(&id)) {
                Some(job) => about_job(job, verb, call, sent_us, refused),
                None => self.damaged.push(format!("a call for job {:?}, which no caller created", call.job)),
            },
        }
    }

    fn add_create(&mut self, call: Call, sent_us: i64, refused: bool) {
        let Some(ack_us) = call.ack_us else {
            if !refused {
                self.open_creates.push(sent_us);
            }
            return;
        };
        let (Some(id), Some(spec)) = (call.job, call.spec) else {
            self.damaged.push("an acknowledged create without spec or job id".to_owned());
            return;
        };
        let job = Job {
            id,
            versions: vec![Version { spec: spec.clone(), sent_us, ack_us: Some(ack_us) }],
            spec,
            create_sent_us: sent_us,
            create_ack_us: ack_us,
            pauses: Vec::new(),
            pauses_above: Vec::new(),
            deleted: None,
            triggers: Vec::new(),
            confirmed: Vec::new(),
            canceled: Vec::new(),
            discarded: Vec::new(),
            reopened: Vec::new(),
            backfills: Vec::new(),
            ledger: Vec::new(),
            ledger_error: None,
        };
        if self.jobs.insert(id, job).is_some() {
            self.damaged.push(format!("two creates were acknowledged with the one job id {id}"));
        }
    }
}

fn resume(pauses: &mut [Pause], sent_us: i64, ack_us: Option<i64>) {
    // One that is over already is not ended once more, and one whose end was not answered may have ended by the first request.
    if let Some(pause) = pauses.last_mut().filter(|pause| pause.resume_ack_us.is_none()) {
        pause.resume_sent_us.get_or_insert(sent_us);
        pause.resume_ack_us = ack_us;
    }
}

fn about_job(job: &mut Job, verb: Verb, call: Call, sent_us: i64, refused: bool) {
    let asked = call.run.map(|run| AcceptedCall { run, sent_us, ack_us: call.ack_us });
    match verb {
        Verb::Trigger => job.triggers.push(Trigger {
            key: call.key.unwrap_or_default(),
            params: call.params,
            sent_us,
            ack_us: call.ack_us,
            run: call.run,
            refused: call.refused.filter(|_| refused),
        }),
        // What was certainly not done changes nothing.
        Verb::Edit
        | Verb::Pause
        | Verb::Resume
        | Verb::Delete
        | Verb::Cancel
        | Verb::Retry
        | Verb::Redrive
        | Verb::Discard
        | Verb::Backfill
        | Verb::CancelBackfill
        | Verb::BulkPause
        | Verb::BulkResume
        | Verb::BulkRetry
        | Verb::Confirm
            if refused => {}
        Verb::Edit => {
            let before = job.versions.last().map(|version| version.spec.secret_params.clone()).unwrap_or_default();
            job.versions.extend(call.spec.map(|spec| edited(spec, &before, (sent_us, call.ack_us))));
        }
        // What one of many jobs may show of it is what it may show of its own.
        Verb::Pause | Verb::BulkPause => job.pauses.push(Pause::begun(sent_us, call.ack_us)),
        Verb::Resume | Verb::BulkResume => resume(&mut job.pauses, sent_us, call.ack_us),
        Verb::Delete => job.deleted = Some((sent_us, call.ack_us)),
        Verb::Cancel => job.canceled.extend(asked),
        Verb::Discard => job.discarded.extend(asked),
        Verb::Retry | Verb::Redrive | Verb::BulkRetry => {
            job.reopened.extend(asked.map(|asked| Reopened {
                asked,
                generation: call.generation,
                at_most: call.maybe_done.max(1),
            }));
        }
        Verb::Backfill => job.backfills.extend(call.backfill.map(|line| AskedBackfill {
            id: line.id,
            mode: line.mode,
            from_ms: line.from_ms,
            to_ms: line.to_ms,
            parallelism: i64::from(line.parallelism),
            unknown_run: line.unknown_run,
            sent_us,
            ack_us: call.ack_us,
            canceled_us: None,
        })),
        Verb::CancelBackfill => {
            let id = call.backfill.and_then(|line| line.id);
            let of_id = job.backfills.iter_mut().filter(|asked| asked.id == id);
            of_id.for_each(|asked| asked.canceled_us = Some(sent_us));
        }
        Verb::Confirm => {
            let decision = call.decision.unwrap_or(ConfirmDecision::Rerun);
            job.confirmed.extend(asked.map(|asked| Confirmed { asked, decision }));
        }
        Verb::Create | Verb::PauseTenant | Verb::ResumeTenant | Verb::PauseSystem | Verb::ResumeSystem => {}
    }
}

/// What a reader sees in place of a secret; given back in an edit it keeps the secret.
const KEPT: &str = "***";

fn edited(mut spec: JobSpec, before: &BTreeMap<String, String>, (sent_us, ack_us): (i64, Option<i64>)) -> Version {
    for (name, value) in spec.secret_params.iter_mut().filter(|(_, value)| *value == KEPT) {
        if let Some(kept) = before.get(name) {
            value.clone_from(kept);
        }
    }
    Version { spec, sent_us, ack_us }
}
