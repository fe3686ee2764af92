//! The jobs of a load, and when they are due: known before the run, so that what was not started can be counted.

use super::{Arrivals, Load, LoadKind, Phase, Scenario};
use crate::{
    random::mix,
    workload::{CATCHES_UP, cron_at, rate_at},
};
use campanile_schema::{
    job::{Action, Backoff, ConcurrencyPolicy, Dialect, JobSpec, MisfirePolicy, RetryPolicy, Trigger},
    payload::Payload,
    time::Timestamp,
};
use std::ops::Range;

const ZONES: [&str; 20] = [
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Moscow",
    "America/New_York",
    "America/Chicago",
    "America/Denver",
    "America/Los_Angeles",
    "America/Sao_Paulo",
    "Africa/Cairo",
    "Africa/Lagos",
    "Asia/Tokyo",
    "Asia/Shanghai",
    "Asia/Kolkata",
    "Asia/Dubai",
    "Asia/Singapore",
    "Australia/Sydney",
    "Pacific/Auckland",
    "America/Toronto",
    "Europe/Madrid",
];
/// MANUAL jobs of a load that names no number.
const MANUAL_JOBS: u64 = 100;
/// Idle jobs are first due so long after the run, milliseconds.
const IDLE_AFTER_MS: i64 = 86_400_000;
const YEAR_S: u64 = 31_536_000;
/// Between two instants of a job with arrivals "cron", seconds.
pub const CRON_EVERY_S: u64 = 60;
/// "Each one", as people write it. With the seconds of a minute these are 2,160 expressions.
const EACH_MINUTE: [&str; 4] = ["*", "0-59", "*/1", "0-29,30-59"];
const EACH_HOUR: [&str; 3] = ["*", "0-23", "*/1"];
const EACH_MONTH: [&str; 3] = ["*", "1-12", "*/1"];

/// Where a run lies in time.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Start of the first phase, milliseconds since 1970 UTC; a whole second.
    pub start_ms: i64,
    /// In the names of all jobs, so that two runs on one node do not meet.
    pub mark: String,
    pub seed: u64,
    pub phases: Vec<Phase>,
    pub ramp: Vec<f64>,
}

impl Frame {
    pub fn new(scenario: &Scenario, start_ms: i64, mark: String) -> Self {
        let ramp = scenario.ramp.as_ref().map_or_else(Vec::new, |ramp| ramp.rates.clone());
        Self { start_ms, mark, seed: scenario.seed, phases: scenario.stretches(), ramp }
    }

    /// Seconds of a phase, counted from the start of the run.
    pub fn seconds_of(&self, phase: usize) -> Range<u64> {
        let begin = self.phases[..phase].iter().map(|p| p.seconds).sum();
        begin..begin + self.phases[phase].seconds
    }

    pub fn length_s(&self) -> u64 {
        self.phases.iter().map(|phase| phase.seconds).sum()
    }

    pub fn end_ms(&self) -> i64 {
        self.start_ms + self.length_s() as i64 * 1000
    }

    /// Seconds in which a load or call with these phases is due: its phases follow one another.
    pub fn window(&self, phases: &[String]) -> Range<u64> {
        let named: Vec<usize> =
            (0..self.phases.len()).filter(|n| phases.is_empty() || phases.contains(&self.phases[*n].name)).collect();
        match (named.first(), named.last()) {
            (Some(first), Some(last)) => self.seconds_of(*first).start..self.seconds_of(*last).end,
            (_, _) => 0..0,
        }
    }

    fn ms(&self, second: u64) -> i64 {
        self.start_ms + second as i64 * 1000
    }
}

/// Jobs that share a window: a load has one such part, a ramp one for each step.
#[derive(Clone, Debug)]
struct LoadPart {
    jobs: u64,
    every_s: u64,
    from_ms: i64,
    to_ms: i64,
}

/// A load with all that follows from it.
#[derive(Clone, Debug)]
pub struct Jobs<'a> {
    load: &'a Load,
    frame: &'a Frame,
    parts: Vec<LoadPart>,
}

/// A rate as jobs with one whole number of seconds between their instants: the rate is kept, the number of jobs gives way.
fn part(rate: f64, jobs: u64, from_ms: i64, to_ms: i64) -> LoadPart {
    let wanted = if jobs == 0 { rate.max(1.0) } else { jobs as f64 };
    let every_s = ((wanted / rate).round() as u64).max(1);
    LoadPart { jobs: ((rate * every_s as f64).round() as u64).max(1), every_s, from_ms, to_ms }
}

impl<'a> Jobs<'a> {
    pub fn new(load: &'a Load, frame: &'a Frame) -> Self {
        let window = frame.window(&load.phases);
        let (from, to) = (frame.ms(window.start), frame.ms(window.end));
        let whole = |jobs| vec![LoadPart { jobs, every_s: 1, from_ms: from, to_ms: to }];
        let parts = match load.kind {
            LoadKind::Rate if load.arrivals == Arrivals::Cron => {
                // A job that is never due in its window would be refused.
                let seconds = CRON_EVERY_S.min(window.end - window.start);
                let jobs = ((load.rate * seconds as f64).round() as u64).max(1);
                vec![LoadPart { jobs, every_s: CRON_EVERY_S, from_ms: from, to_ms: to }]
            }
            LoadKind::Rate => vec![part(load.rate, load.jobs, from, to)],
            LoadKind::Ramp => {
                let steps = frame.ramp.iter().enumerate();
                let more = steps.map(|(n, rate)| (n, rate - n.checked_sub(1).map_or(0.0, |before| frame.ramp[before])));
                // Each job is due once a second, or as seldom as the highest rate needs for its number of jobs.
                let top = frame.ramp.last().copied().unwrap_or(1.0);
                let share = |rate: f64| (load.jobs as f64 * rate / top) as u64;
                more.map(|(n, rate)| part(rate, share(rate), frame.ms(frame.seconds_of(n).start), to)).collect()
            }
            LoadKind::Herd | LoadKind::Idle => whole(load.jobs),
            LoadKind::Trigger => whole(if load.jobs == 0 { MANUAL_JOBS } else { load.jobs }),
        };
        Self { load, frame, parts }
    }

    pub fn count(&self) -> u64 {
        self.parts.iter().map(|part| part.jobs).sum()
    }

    fn part_of(&self, n: u64) -> Option<(&LoadPart, u64)> {
        let mut left = n;
        self.parts.iter().find_map(|part| {
            let inside = left < part.jobs;
            let found = inside.then_some((part, left));
            left = left.saturating_sub(part.jobs);
            found
        })
    }

    /// First instant of a job that is due within the run, and the distance of the next ones (0 = there are none).
    fn instants(&self, n: u64) -> Option<(i64, u64, i64)> {
        let (part, index) = self.part_of(n)?;
        match self.load.kind {
            LoadKind::Rate | LoadKind::Ramp => {
                let period = part.every_s * 1000;
                let offset = match self.load.arrivals {
                    Arrivals::Even => index * period / part.jobs,
                    Arrivals::Aligned => index % part.every_s * 1000,
                    Arrivals::Cron => {
                        let window = (part.to_ms - part.from_ms) as u64 / 1000;
                        index % part.every_s.min(window.max(1)) * 1000
                    }
                    Arrivals::Poisson => mix(self.frame.seed ^ mix(n)) % period,
                };
                Some((part.from_ms + offset as i64, period, part.to_ms))
            }
            LoadKind::Herd => {
                let spread = self.load.within_ms * index / part.jobs;
                Some((part.from_ms + (self.load.at_s * 1000 + spread) as i64, 0, part.to_ms))
            }
            LoadKind::Idle | LoadKind::Trigger => None,
        }
    }

    /// Due instants in each second of the run.
    pub fn due(&self) -> Vec<u64> {
        let mut due = vec![0; self.frame.length_s() as usize];
        let mut count = |at_ms: i64| {
            if let Some(second) = due.get_mut(((at_ms - self.frame.start_ms) / 1000) as usize) {
                *second += 1;
            }
        };
        if self.load.kind == LoadKind::Trigger {
            (0..self.triggers()).for_each(|n| count(self.trigger_us(n) / 1000));
        }
        for n in 0..self.count() {
            let Some((first, period, to_ms)) = self.instants(n) else { break };
            let mut at = first;
            while at < to_ms {
                count(at);
                if period == 0 {
                    break;
                }
                at += period as i64;
            }
        }
        due
    }

    /// Triggers by hand of the whole run.
    pub fn triggers(&self) -> u64 {
        let window = self.frame.window(&self.load.phases);
        (self.load.rate * (window.end - window.start) as f64).floor() as u64
    }

    /// When the n-th trigger by hand is due, microseconds since 1970 UTC.
    pub fn trigger_us(&self, n: u64) -> i64 {
        let begin = self.frame.ms(self.frame.window(&self.load.phases).start) * 1000;
        begin + (n as f64 * 1e6 / self.load.rate) as i64
    }

    /// The n-th job.
    pub fn spec(&self, n: u64) -> JobSpec {
        let load = self.load;
        let tenant =
            if load.tenants > 1 { format!("{}-{}", load.tenant, n % load.tenants + 1) } else { load.tenant.clone() };
        let mut spec = JobSpec::new(&tenant, &format!("{}/{}-{n:08}", load.name, self.frame.mark), self.trigger(n));
        spec.concurrency_policy = ConcurrencyPolicy::Allow;
        spec.timeout_sec = 60 + load.body_ms / 1000;
        spec.priority = load.priority;
        spec.retry_policy = RetryPolicy {
            max_attempts: load.max_attempts,
            backoff: Backoff::Fixed,
            base_delay_sec: load.retry_delay_s,
            max_delay_sec: load.retry_delay_s.max(1.0),
            jitter: 0.2,
            max_elapsed_sec: None,
        };
        spec.action = Some(Action::Handler { name: "nothing".to_owned() });
        let labels =
            [("team", format!("team-{}", n % 10)), ("kind", load.name.clone()), ("from", "loadtest".to_owned())];
        spec.labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let mut params = Vec::new();
        if load.body_ms > 0 {
            params.push(format!("\"bodyMs\":{}", load.body_ms));
        }
        if load.fail_percent > 0 {
            params.push(format!("\"failPercent\":{}", load.fail_percent));
        }
        if !params.is_empty() {
            spec.params = Payload(format!("{{{}}}", params.join(",")));
        }
        spec
    }

    fn trigger(&self, n: u64) -> Trigger {
        match (self.load.kind, self.instants(n)) {
            (LoadKind::Rate | LoadKind::Ramp, Some((first, period, to_ms))) => {
                let window = (self.part_of(n).map(|(part, _)| Timestamp(part.from_ms)), Some(Timestamp(to_ms - 1)));
                match self.load.arrivals {
                    Arrivals::Cron => {
                        cron_at(window, self.each_minute(n, first), Dialect::Auto, zone(mix(n)), CATCHES_UP)
                    }
                    Arrivals::Even | Arrivals::Aligned | Arrivals::Poisson => {
                        rate_at(window, period / 1000, first, CATCHES_UP)
                    }
                }
            }
            (LoadKind::Herd, Some((at, ..))) => Trigger::Once {
                at: Some(Timestamp(at).into()),
                delay_sec: None,
                delay_ms: None,
                timezone: None,
                misfire_policy: MisfirePolicy::FireOnceNow,
                misfire_threshold_sec: 60,
            },
            (LoadKind::Trigger, _) => Trigger::Manual {},
            (LoadKind::Rate | LoadKind::Ramp | LoadKind::Herd | LoadKind::Idle, _) => self.idle(n),
        }
    }

    /// Once a minute, at the second of an instant: that is the same in all zones, whose offsets are whole minutes.
    fn each_minute(&self, n: u64, at_ms: i64) -> String {
        let drawn = mix(self.frame.seed ^ mix(n)) as usize;
        let second = at_ms.div_euclid(1000).rem_euclid(60);
        let minute = EACH_MINUTE[drawn % 4];
        let hour = EACH_HOUR[drawn / 4 % 3];
        let month = EACH_MONTH[drawn / 12 % 3];
        format!("{second} {minute} {hour} * {month} *")
    }

    /// Cron of many expressions and zones, and FIXED_RATE, in turn; none is due for a day after the run.
    fn idle(&self, n: u64) -> Trigger {
        let after = self.frame.end_ms() + IDLE_AFTER_MS;
        let drawn = mix(self.frame.seed ^ mix(n));
        if n % 2 == 1 {
            let anchor = after + (drawn % (YEAR_S * 1000)) as i64;
            return rate_at((Some(Timestamp(after)), None), YEAR_S, anchor, CATCHES_UP);
        }
        let expr = format!("{} {} * * *", drawn % 60, drawn / 60 % 24);
        let misfire = (MisfirePolicy::FireOnceNow, 60);
        cron_at((Some(Timestamp(after)), None), expr, Dialect::Unix, zone(drawn >> 16), misfire)
    }
}

/// The zone that a number stands for.
fn zone(number: u64) -> &'static str {
    ZONES[number as usize % ZONES.len()]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{checker::Oracle, scenario::read::read};
    use std::collections::HashSet;

    /// 2026-02-02T02:40:00Z.
    const T0: i64 = 1_770_000_000_000;

    fn scenario(text: &str) -> Scenario {
        read("f", &format!("name = \"x\"\nabout = \"y\"\n{text}")).unwrap().full
    }

    /// Per second: what the load says, and what an independent oracle says of its specs.
    fn both(text: &str) -> (Vec<u64>, Vec<u64>, u64) {
        let scenario = scenario(text);
        let frame = Frame::new(&scenario, T0, "m".to_owned());
        let jobs = Jobs::new(&scenario.loads[0], &frame);
        let mut oracle = Oracle::new(T0 - 1, frame.end_ms());
        let mut seen = vec![0; frame.length_s() as usize];
        for n in 0..jobs.count() {
            for at in oracle.due(&jobs.spec(n), T0 - 1, frame.end_ms() + 5_000).unwrap().unwrap_or_default() {
                seen[((at - T0) / 1000) as usize] += 1;
            }
        }
        (jobs.due(), seen, jobs.count())
    }

    #[test]
    fn a_load_is_due_when_it_says() {
        for arrivals in ["even", "aligned", "poisson"] {
            let (due, seen, jobs) = both(&format!(
                "seconds = 10\n[[load]]\nname = \"a\"\nkind = \"rate\"\nrate = 200\njobs = 1000\narrivals = \"{arrivals}\"\n"
            ));
            assert_eq!((&due, due.iter().sum::<u64>(), jobs), (&seen, 2_000, 1_000), "{arrivals}");
            assert!(arrivals == "poisson" || due.iter().all(|n| *n == 200), "{arrivals} {due:?}");
        }
        for (seconds, all) in [(70, 300), (10, 50)] {
            let (due, seen, jobs) = both(&format!(
                "seconds = {seconds}\n[[load]]\nname = \"c\"\nkind = \"rate\"\nrate = 5\narrivals = \"cron\"\n"
            ));
            assert_eq!((&due, jobs), (&seen, all));
            assert!(due.iter().all(|n| *n == 5), "{due:?}");
        }
        let herd = "seconds = 5\n[[load]]\nname = \"h\"\nkind = \"herd\"\njobs = 50\nat_s = 2\nwithin_ms = 1500\n";
        let (due, seen, _) = both(herd);
        assert_eq!((due, seen.clone()), (vec![0, 0, 34, 16, 0], seen));
        let (due, seen, jobs) = both("seconds = 3\n[[load]]\nname = \"i\"\nkind = \"idle\"\njobs = 40\n");
        assert_eq!((due, seen, jobs), (vec![0; 3], vec![0; 3], 40));
    }

    #[test]
    fn cron_jobs_have_two_thousand_expressions_in_all_zones() {
        let text = "seconds = 60\n[[load]]\nname = \"c\"\nkind = \"rate\"\nrate = 1000\narrivals = \"cron\"\n";
        let scenario = scenario(text);
        let frame = Frame::new(&scenario, T0, "m".to_owned());
        let jobs = Jobs::new(&scenario.loads[0], &frame);
        let (mut expressions, mut zones) = (HashSet::new(), HashSet::new());
        for n in 0..jobs.count() {
            let Trigger::Cron { expr, timezone, .. } = jobs.spec(n).trigger else { panic!("no cron") };
            expressions.insert(expr);
            zones.insert(timezone);
        }
        assert_eq!((jobs.count(), expressions.len(), zones.len()), (60_000, 2_160, ZONES.len()));
    }

    #[test]
    fn a_ramp_rises_step_by_step_and_a_load_keeps_to_its_phases() {
        let (due, seen, _) = both(
            "[ramp]\nrates = [10, 30, 40]\nstep_s = 2\nstop_p99_ms = 1\n[[load]]\nname = \"a\"\nkind = \"ramp\"\n",
        );
        assert_eq!((due, seen.clone()), (vec![10, 10, 30, 30, 40, 40], seen));
        let phases = "[[phase]]\nname = \"p\"\nseconds = 2\n[[phase]]\nname = \"q\"\nseconds = 1\n";
        let (due, seen, _) =
            both(&format!("{phases}[[load]]\nname = \"a\"\nkind = \"rate\"\nrate = 5\nphases = [\"q\"]\n"));
        assert_eq!((due, seen.clone()), (vec![0, 0, 5], seen));
    }

    #[test]
    fn triggers_by_hand_are_due_at_even_distances() {
        let scenario = scenario("seconds = 2\n[[load]]\nname = \"t\"\nkind = \"trigger\"\nrate = 50\n");
        let frame = Frame::new(&scenario, T0, "m".to_owned());
        let jobs = Jobs::new(&scenario.loads[0], &frame);
        assert_eq!((jobs.due(), jobs.triggers(), jobs.count()), (vec![50, 50], 100, MANUAL_JOBS));
        assert_eq!(jobs.trigger_us(1) - jobs.trigger_us(0), 20_000);
        assert!(matches!(jobs.spec(3).trigger, Trigger::Manual {}));
    }
}
