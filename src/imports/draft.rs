//! Jobs while they are read. At the end all of them get different names, each is checked as the node would check it, and its next fires
//! and hazards are computed.

use super::{Import, ImportedJob, Options, Place, Refused, text};
use campanile_core::{
    cron::{CronExpr, CronSchedule, find_zone, hazards},
    schedule::Schedule,
    spec,
};
use campanile_schema::{
    job::{ConcurrencyPolicy, Dialect, Gap, JobSpec, MisfirePolicy, Overlap, RetryPolicy, Trigger},
    limits::{CRON_HAZARD_DAYS, CRONTAB_NEXT_FIRES, IMPORT_REFUSED, SECONDS_MAX},
    stored::{StoredJob, StoredTrigger},
    time::Timestamp,
};
use std::collections::{BTreeMap, BTreeSet};

pub const DEFAULT_TENANT: &str = "default";

/// A job that is not checked yet.
#[derive(Clone, Debug)]
pub struct Draft {
    pub spec: JobSpec,
    pub suspend: Option<bool>,
    pub place: Place,
    pub origin: String,
    pub changed: Vec<String>,
}

/// All that was read so far.
pub struct Drafts {
    drafts: Vec<Draft>,
    import: Import,
    now_ms: i64,
}

impl Drafts {
    pub fn new(options: &Options) -> Self {
        Self { drafts: Vec::new(), import: Import::default(), now_ms: options.now_ms }
    }

    pub fn add(&mut self, draft: Draft) {
        self.drafts.push(draft);
    }

    /// Adds a note once, however often it is given.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.import.notes.contains(&note) {
            self.import.notes.push(note);
        }
    }

    pub fn refuse(&mut self, place: &Place, origin: &str, reason: impl Into<String>, advice: impl Into<String>) {
        if self.import.refused.len() == IMPORT_REFUSED {
            self.import.more_refused += 1;
            return;
        }
        let (reason, advice) = (reason.into(), advice.into());
        self.import.refused.push(Refused { place: place.clone(), origin: text::shown(origin), reason, advice });
    }

    /// The whole import, refusals in the order of files and lines.
    pub fn finish(mut self) -> Import {
        number_twins(&mut self.drafts);
        for draft in std::mem::take(&mut self.drafts) {
            match judged(draft, self.now_ms) {
                Ok(job) => self.import.jobs.push(job),
                Err(refused) => {
                    let Refused { place, origin, reason, advice } = *refused;
                    self.refuse(&place, &origin, reason, advice);
                }
            }
        }
        self.import.refused.sort_by(|a, b| a.place.cmp(&b.place));
        self.import
    }
}

/// The second job of a name is `-2`, the third `-3`, in the order in which they were read. A number is left out where another job is
/// called so.
fn number_twins(drafts: &mut [Draft]) {
    let named = |draft: &Draft| (draft.spec.tenant_id.clone(), draft.spec.name.clone());
    let mut taken: BTreeSet<(String, String)> = drafts.iter().map(named).collect();
    let mut counts: BTreeMap<(String, String), u32> = BTreeMap::new();
    for draft in drafts {
        let (tenant, name) = named(draft);
        let count = counts.entry((tenant.clone(), name.clone())).or_insert(0);
        *count += 1;
        if *count == 1 {
            continue;
        }
        while !taken.insert((tenant.clone(), format!("{name}-{count}"))) {
            *count += 1;
        }
        draft.changed.push(format!("another job has the same name '{name}' here: this one gets a number"));
        draft.spec.name = format!("{name}-{count}");
    }
}

/// A spec that the node would take.
fn judged(mut draft: Draft, now_ms: i64) -> Result<ImportedJob, Box<Refused>> {
    let stored = match spec::resolve(&draft.spec, None, None, now_ms) {
        Ok(stored) => stored,
        Err(rejection) => {
            let Draft { place, origin, .. } = draft;
            let reason = text::sentence(&rejection.message);
            return Err(Box::new(Refused { place, origin, reason, advice: String::new() }));
        }
    };
    if draft.suspend != Some(true) {
        draft.changed.extend(surprises(&stored, now_ms));
    }
    let next = next_fires(&stored, now_ms);
    let Draft { spec, suspend, place, origin, changed } = draft;
    Ok(ImportedJob { spec, suspend, place, origin: text::shown(&origin), next, changed })
}

fn next_fires(stored: &StoredJob, now_ms: i64) -> Vec<Timestamp> {
    let Ok(schedule) = Schedule::compile(stored) else { return Vec::new() };
    let most = if schedule.is_fixed_delay() { 1 } else { CRONTAB_NEXT_FIRES };
    let next = |at: &i64| schedule.next(*at, Some(now_ms));
    std::iter::successors(next(&now_ms), next).take(most).map(Timestamp).collect()
}

fn surprises(stored: &StoredJob, now_ms: i64) -> Vec<String> {
    let StoredTrigger::Cron { expr, dialect, zone, gap, overlap } = &stored.trigger else { return Vec::new() };
    let Ok((expr, _)) = CronExpr::parse(expr, *dialect, 0) else { return Vec::new() };
    CronSchedule::new(expr, zone, *gap, *overlap).map(|schedule| hazards(&schedule, now_ms)).unwrap_or_default()
}

/// A job as other schedulers run it: no retries, no dead letters, no time limit.
pub fn plain(tenant: &str, name: &str, trigger: Trigger) -> JobSpec {
    let mut spec = JobSpec::new(tenant, name, trigger);
    spec.retry_policy = RetryPolicy { max_attempts: 1, ..RetryPolicy::default() };
    spec.dead_letter = false;
    spec.timeout_sec = SECONDS_MAX;
    spec
}

/// What a system does with a schedule.
#[derive(Clone, Copy, Debug)]
pub struct CronRules {
    pub dialect: Dialect,
    pub gap: Gap,
    pub overlap: Overlap,
    pub misfire: MisfirePolicy,
    pub threshold_sec: u32,
}

/// A cron trigger. The rules for changes of the clock are only written where they say something: a zone that has such changes, and a fixed
/// time of day.
pub fn cron(expr: &str, zone: &str, rules: CronRules) -> Trigger {
    let mut trigger = Trigger::cron(expr);
    let is_fixed = CronExpr::parse(expr, rules.dialect, 0).is_ok_and(|(compiled, _)| !compiled.follows_elapsed_time());
    if let Trigger::Cron { dialect, timezone, gap, overlap, misfire_policy, misfire_threshold_sec, .. } = &mut trigger {
        *dialect = rules.dialect;
        zone.clone_into(timezone);
        if is_fixed && zone != "UTC" {
            (*gap, *overlap) = (rules.gap, rules.overlap);
        }
        (*misfire_policy, *misfire_threshold_sec) = (rules.misfire, rules.threshold_sec);
    }
    trigger
}

/// What is said of a schedule with an open time field (`*`, `*/n`, `a/n`) where the clock goes back: here it is due in both hours. None: it has
/// no such field, or the clock of its zone does not change within two years.
pub fn open_hour(trigger: &Trigger, now_ms: i64, leaves_out: &str) -> Option<String> {
    let Trigger::Cron { expr, dialect, timezone, .. } = trigger else { return None };
    let (compiled, _) = CronExpr::parse(expr, *dialect, 0).ok()?;
    let zone = find_zone(timezone).ok().filter(|_| compiled.follows_elapsed_time())?;
    let now = jiff::Timestamp::from_millisecond(now_ms).ok()?;
    let until = now.as_second() + CRON_HAZARD_DAYS * 86_400;
    zone.following(now).next().filter(|change| change.timestamp().as_second() < until)?;
    Some(format!("where the clock goes back {leaves_out}; here it is due in both"))
}

/// Sets when the trigger begins and ends; a MANUAL or ONCE has neither.
pub fn within(trigger: &mut Trigger, start: Option<Timestamp>, end: Option<Timestamp>) {
    match trigger {
        Trigger::Cron { start_at, end_at, .. }
        | Trigger::FixedRate { start_at, end_at, .. }
        | Trigger::FixedDelay { start_at, end_at, .. } => (*start_at, *end_at) = (start, end),
        Trigger::Once { .. } | Trigger::Manual {} => {}
    }
}

/// What becomes of runs that overlap, in words.
pub const QUEUES_ONE: &str =
    "an instant that is due while a run is active waits here as one (QUEUE_ONE); more than one do not wait";

/// For the job's policy when the other system starts a run only after the one before.
pub fn serial(spec: &mut JobSpec, changed: &mut Vec<String>) {
    spec.concurrency_policy = ConcurrencyPolicy::QueueOne;
    changed.push(QUEUES_ONE.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_one_name_get_numbers_that_no_other_job_has() {
        let draft = |name: &str| Draft {
            spec: plain("t", name, Trigger::Manual {}),
            suspend: None,
            place: Place::default(),
            origin: String::new(),
            changed: Vec::new(),
        };
        let mut drafts = ["a", "a", "a-2", "a", "b", "a-2"].map(draft);
        number_twins(&mut drafts);
        let names: Vec<&str> = drafts.iter().map(|draft| draft.spec.name.as_str()).collect();
        assert_eq!(names, ["a", "a-3", "a-2", "a-4", "b", "a-2-2"]);
        assert!(drafts[2].changed.is_empty());
        assert_eq!(drafts[3].changed.len(), 1);
    }
}
