//! The records about a violation: what all processes wrote about its job or run, in order of time, cut to a few lines
//! around the moment.

use super::{History, Violation};
use crate::{
    limits::STORY_LINES,
    run_dir::lines::{FaultEvent, FaultLine},
};

/// Faults this near to the moment belong to its story, microseconds.
const NEAR_US: i64 = 15_000_000;

/// Lines such as `+1.250 s  executor-a: run 7 started, token 2`.
pub fn tell(history: &History, violation: &Violation) -> Vec<String> {
    let mut events: Vec<(i64, String)> = Vec::new();
    if let Some(job) = violation.job.and_then(|id| history.jobs.get(&id)) {
        events.push((job.create_sent_us, format!("caller: create '{}' sent", job.spec.name)));
        events.push((
            job.create_ack_us,
            format!(
                "caller: create acknowledged as job {} ({} {})",
                job.id,
                job.spec.concurrency_policy,
                serde_json::to_string(&job.spec.trigger).unwrap_or_default()
            ),
        ));
        for pause in &job.pauses {
            events.push((pause.sent_us, "caller: pause sent".to_owned()));
            events.extend(pause.ack_us.map(|t| (t, "caller: pause acknowledged".to_owned())));
            events.extend(pause.resume_sent_us.map(|t| (t, "caller: resume sent".to_owned())));
            events.extend(pause.resume_ack_us.map(|t| (t, "caller: resume acknowledged".to_owned())));
        }
        if let Some((sent, ack)) = job.deleted {
            events.push((sent, "caller: delete sent".to_owned()));
            events.extend(ack.map(|t| (t, "caller: delete acknowledged".to_owned())));
        }
        let key = violation.run.and_then(|id| history.runs.get(&id)).and_then(|run| run.key.as_deref());
        for trigger in
            job.triggers.iter().filter(|t| Some(t.key.as_str()) == key || Some(t.sent_us / 1000) == violation.at_ms)
        {
            events.push((trigger.sent_us, format!("caller: trigger '{}' sent", trigger.key)));
            events.extend(
                trigger
                    .ack_us
                    .map(|t| (t, format!("caller: trigger '{}' acknowledged, run {:?}", trigger.key, trigger.run))),
            );
        }
    }
    if let Some(at_ms) = violation.at_ms {
        events.push((at_ms.saturating_mul(1000), format!("due instant or moment {at_ms}")));
    }
    if let Some(id) = violation.run {
        run_events(history, id, &mut events);
    } else if let (Some(job), Some(at_ms)) = (violation.job, violation.at_ms) {
        let of_instant = history
            .runs_of
            .get(&job)
            .into_iter()
            .flatten()
            .filter(|id| history.runs.get(id).and_then(|r| r.logical_time).is_some_and(|l| l.0 == at_ms));
        for id in of_instant {
            run_events(history, *id, &mut events);
        }
    }
    let moment = violation.at_ms.map(|ms| ms.saturating_mul(1000));
    let moment = moment.or_else(|| events.iter().map(|(t, _)| *t).max());
    if let Some(moment) = moment {
        for fault in history.faults.iter().filter(|f| (f.t_us - moment).abs() < NEAR_US) {
            let who = fault.executor.as_deref().unwrap_or_default();
            let what = match fault.event {
                FaultEvent::NodeStarted => "node started".to_owned(),
                FaultEvent::NodeReady => "node ready".to_owned(),
                FaultEvent::NodeRestored => "node restored from an archive".to_owned(),
                FaultEvent::NodeKilled => "node killed".to_owned(),
                FaultEvent::ExecutorStarted => format!("{who} started"),
                FaultEvent::ExecutorKilled => format!("{who} killed"),
                FaultEvent::ExecutorFrozen => format!("{who} stands still"),
                FaultEvent::ExecutorThawed => format!("{who} goes on"),
                FaultEvent::Disturbed => format!("{} may not be served until {}", of_shards(fault), until(fault)),
                FaultEvent::ExecutorUnheard => {
                    format!("{who} is not heard by the owners of {} until {}", of_shards(fault), until(fault))
                }
            };
            events.push((
                fault.t_us,
                format!("faults: {what}{}", fault.detail.as_ref().map_or(String::new(), |d| format!(" ({d})"))),
            ));
        }
        events.sort_by_key(|(t, _)| *t);
        // The nearest to the moment are the ones worth reading.
        while events.len() > STORY_LINES {
            let first = events.first().map_or(0, |(t, _)| (moment - t).abs());
            let last = events.last().map_or(0, |(t, _)| (t - moment).abs());
            if first > last {
                events.remove(0);
            } else {
                events.pop();
            }
        }
    }
    events.sort_by_key(|(t, _)| *t);
    let zero = events.first().map_or(0, |(t, _)| *t);
    events.into_iter().map(|(t, text)| format!("+{:.3} s  {text}", (t - zero) as f64 / 1e6)).collect()
}

/// For people: the shards that a fault is about.
fn of_shards(fault: &FaultLine) -> String {
    fault.shards.as_ref().map_or_else(|| "all shards".to_owned(), |shards| format!("shards {shards:?}"))
}

fn until(fault: &FaultLine) -> i64 {
    fault.until_us.unwrap_or(fault.t_us) / 1000
}

fn run_events(history: &History, id: u64, events: &mut Vec<(i64, String)>) {
    if let Some(run) = history.runs.get(&id) {
        let name = format!("record: run {id} ({}, {})", run.source, run.state);
        events.push((
            run.created_at.0 * 1000,
            format!("{name} created, instant {:?}, generation {}", run.logical_time.map(|l| l.0), run.generation),
        ));
        for attempt in &run.attempts {
            events.push((
                attempt.started_at.0 * 1000,
                format!("record: attempt {} token {} started", attempt.attempt, attempt.token),
            ));
            events.extend(
                attempt
                    .ended_at
                    .map(|t| (t.0 * 1000, format!("record: attempt {} ended {}", attempt.attempt, attempt.state))),
            );
        }
        events.extend(run.ended_at.map(|t| (t.0 * 1000, format!("{name} ended"))));
    }
    for body in history.bodies.get(&id).into_iter().flatten() {
        let who = history.executors.get(body.executor).map_or("executor", |e| e.name.as_str());
        events.push((
            body.start_us,
            format!("{who}: body of run {id} started, token {}, epoch {}", body.token, body.epoch),
        ));
        events.extend(body.end.map(|(t, outcome)| (t, format!("{who}: body of run {id} ended {outcome}"))));
    }
}
