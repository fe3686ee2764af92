//! A caller's lines joined to calls, and what they say of each job.

use super::history::{History, Job, Pause, Trigger};
use crate::lines::{CallEvent, CallerLine, Verb};
use campanile_schema::job::JobSpec;
use std::collections::HashMap;

#[derive(Default)]
struct Call {
    verb: Option<Verb>,
    sent_us: Option<i64>,
    ack_us: Option<i64>,
    unknown: bool,
    refused: Option<String>,
    job: Option<u64>,
    spec: Option<JobSpec>,
    key: Option<String>,
    run: Option<u64>,
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
            match line.event {
                CallEvent::Sent => call.sent_us = Some(call.sent_us.unwrap_or(line.t_us)),
                CallEvent::Ack => call.ack_us = Some(call.ack_us.unwrap_or(line.t_us)),
                CallEvent::Unknown => call.unknown = true,
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
        let refused = call.refused.is_some() && !call.unknown && call.ack_us.is_none();
        if verb == Verb::Create {
            if let Some(ack_us) = call.ack_us {
                match (call.job, call.spec) {
                    (Some(id), Some(spec)) => {
                        let job = Job {
                            id,
                            spec,
                            create_sent_us: sent_us,
                            create_ack_us: ack_us,
                            pauses: Vec::new(),
                            deleted: None,
                            triggers: Vec::new(),
                            confirmed: Vec::new(),
                            ledger: Vec::new(),
                            ledger_error: None,
                        };
                        if self.jobs.insert(id, job).is_some() {
                            self.damaged.push(format!("two creates were acknowledged with the one job id {id}"));
                        }
                    }
                    (_, None) | (None, _) => {
                        self.damaged.push("an acknowledged create without spec or job id".to_owned())
                    }
                }
            }
            return;
        }
        match verb {
            // Not about one job; their rules are yet to come.
            Verb::PauseTenant | Verb::ResumeTenant | Verb::PauseSystem | Verb::ResumeSystem => return,
            Verb::Create
            | Verb::Edit
            | Verb::Trigger
            | Verb::Pause
            | Verb::Resume
            | Verb::Delete
            | Verb::Cancel
            | Verb::Retry
            | Verb::Redrive
            | Verb::Discard
            | Verb::Confirm => {}
        }
        let Some(job) = call.job.and_then(|id| self.jobs.get_mut(&id)) else {
            self.damaged.push(format!("a call for job {:?}, which no caller created", call.job));
            return;
        };
        match verb {
            Verb::Create => {}
            Verb::Trigger => job.triggers.push(Trigger {
                key: call.key.unwrap_or_default(),
                sent_us,
                ack_us: call.ack_us,
                run: call.run,
                refused: call.refused.filter(|_| refused),
            }),
            Verb::Pause if !refused => {
                job.pauses.push(Pause { sent_us, ack_us: call.ack_us, resume_sent_us: None, resume_ack_us: None });
            }
            Verb::Resume if !refused => {
                if let Some(pause) = job.pauses.last_mut() {
                    pause.resume_sent_us = Some(sent_us);
                    pause.resume_ack_us = call.ack_us;
                }
            }
            Verb::Delete if !refused => job.deleted = Some((sent_us, call.ack_us)),
            Verb::Confirm if !refused => job.confirmed.extend(call.run.map(|run| (run, sent_us))),
            Verb::Pause | Verb::Resume | Verb::Delete | Verb::Confirm => {}
            Verb::Edit | Verb::Cancel | Verb::Retry | Verb::Redrive | Verb::Discard => {}
            Verb::PauseTenant | Verb::ResumeTenant | Verb::PauseSystem | Verb::ResumeSystem => {}
        }
    }
}
