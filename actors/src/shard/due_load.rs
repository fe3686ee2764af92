//! How many instants of the shard's jobs are due in each of the next minutes.
//!
//! A job that wakes later than that is passed over without reading its bytes. One call looks at a bounded number of jobs and of instants.

use super::Shard;
use crate::calls::Responder;
use campanile_core::job::Job;
use campanile_schema::{
    ids::JobId,
    limits,
    peer::runs::{LoadPart, LoadQuery},
};

const MINUTE_MS: i64 = 60_000;

impl Shard {
    pub(super) fn due_load(&self, query: &LoadQuery, after: Option<JobId>, responder: Responder<LoadPart>) {
        responder.send(Ok(self.load_part(query, after)));
    }

    fn load_part(&self, query: &LoadQuery, after: Option<JobId>) -> LoadPart {
        let minutes = query.minutes.min(limits::LOAD_MINUTES);
        let end_ms = query.from_ms.saturating_add(i64::from(minutes) * MINUTE_MS);
        let mut part = LoadPart { counts: vec![0; minutes as usize], jobs: 0, next: None, is_cut: false };
        let first = self.order.partition_point(|id| after.is_some_and(|after| *id <= after));
        let mut left = limits::LOAD_INSTANTS;
        for (looked, id) in self.order[first..].iter().enumerate() {
            if looked >= limits::LOAD_LOOKS || left == 0 {
                return part;
            }
            let (counts, more) = match self.awake(*id, query, end_ms) {
                Some(job) => count(&job, query.from_ms, end_ms, left, part.counts.len()),
                None => (Vec::new(), false),
            };
            if more && left < limits::LOAD_INSTANTS {
                // The next call begins with this job and counts all of it.
                return part;
            }
            part.next = Some(*id);
            part.is_cut |= more;
            let counted: u64 = counts.iter().sum();
            part.jobs += u64::from(counted > 0);
            left -= counted;
            part.counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        part.next = None;
        part
    }

    /// The job, if it is one that was asked for and wakes before the end.
    fn awake(&self, id: JobId, query: &LoadQuery, end_ms: i64) -> Option<Job> {
        self.jobs.get(&id).filter(|slot| slot.wake_ms < end_ms)?;
        let asked = |job: &Job| job.fires() && query.tenant.as_ref().is_none_or(|tenant| *tenant == *job.def.tenant);
        self.materialize(id).filter(asked)
    }
}

/// The job's instants by minute, at most so many, and whether there are more. What is overdue is due in the first minute.
fn count(job: &Job, from_ms: i64, end_ms: i64, most: u64, minutes: usize) -> (Vec<u64>, bool) {
    let mut at = job.hot.next_due_ms;
    let (mut counts, mut counted) = (vec![0; minutes], 0);
    while let Some(due) = at.filter(|due| *due < end_ms) {
        if counted == most {
            return (counts, true);
        }
        let minute = usize::try_from((due - from_ms).max(0) / MINUTE_MS).unwrap_or_default();
        if let Some(count) = counts.get_mut(minute) {
            *count += 1;
        }
        counted += 1;
        // The next instant of a fixed delay follows from the end of the run.
        at = if job.schedule.is_fixed_delay() { None } else { job.schedule.next(due, None) };
    }
    (counts, false)
}
