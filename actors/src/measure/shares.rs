//! Figures by tenant and by pool, with a bounded number of label values.
//!
//! Anybody who may create jobs chooses names of tenants and pools, so their number has no bound, and a Prometheus that
//! stores a series for each would be filled by one caller. At most [`limits::LABEL_VALUES`] names have series of their
//! own: those with most activity. All others together are `other`.
//!
//! - A name is *shown* or not. New names are shown while there is room. [`Shares::look`] ranks them again: a name that is
//!   not shown needs twice the weight of one that is to take its place, so that names do not change with every look.
//! - A count goes to the name's own counters while it is shown, and to those of `other` while it is not. Each series
//!   therefore only rises, and `rate()` stays right when a name is shown or is not any more.
//! - Names without weight that are not shown are forgotten, and over [`limits::LABEL_VALUES_KNOWN`] names new ones count
//!   as `other` without being known.
//!
//! Series of a name that is not shown are left out of the page at once. The recorder of the crate `metrics` keeps every
//! label that was ever used, and cannot do this.

use super::page::Page;
use campanile_schema::{limits, record::RunState, text::Text};
use hashbrown::HashMap;
use parking_lot::{Mutex, RwLock};
use std::{
    cmp::Reverse,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

/// The label of all names that have none of their own. A tenant or pool of this name is among them.
pub const OTHER: &str = "other";

/// What is counted for each name.
#[derive(Clone, Copy)]
pub(crate) enum Count {
    Fires,
    Misfires,
    Started,
    DispatchMs,
    Retries,
    Success,
    Failed,
    Timeout,
    Canceled,
    RunMs,
    DeadLetters,
}
const COUNTS: usize = 11;

/// How the counts are shown: the end of the name, the state, and what one of it is worth.
const SERIES: [(&str, Count, Option<RunState>, f64); COUNTS] = [
    ("fires_total", Count::Fires, None, 1.0),
    ("misfires_total", Count::Misfires, None, 1.0),
    ("runs_started_total", Count::Started, None, 1.0),
    ("dispatch_seconds_total", Count::DispatchMs, None, 0.001),
    ("retries_total", Count::Retries, None, 1.0),
    ("runs_ended_total", Count::Success, Some(RunState::Success), 1.0),
    ("runs_ended_total", Count::Failed, Some(RunState::Failed), 1.0),
    ("runs_ended_total", Count::Timeout, Some(RunState::Timeout), 1.0),
    ("runs_ended_total", Count::Canceled, Some(RunState::Canceled), 1.0),
    ("run_seconds_total", Count::RunMs, None, 0.001),
    ("dead_letters_total", Count::DeadLetters, None, 1.0),
];

/// Counts of one decision.
#[derive(Default)]
pub(crate) struct Counts([u64; COUNTS]);

impl Counts {
    pub fn add(&mut self, count: Count, more: u64) {
        self.0[count as usize] += more;
    }
    pub fn ended(&mut self, state: RunState) {
        match state {
            RunState::Success => self.add(Count::Success, 1),
            RunState::Failed => self.add(Count::Failed, 1),
            RunState::Timeout => self.add(Count::Timeout, 1),
            RunState::Canceled => self.add(Count::Canceled, 1),
            // Only nodes of DAGs are skipped, and the others are not final.
            RunState::Skipped
            | RunState::Pending
            | RunState::Queued
            | RunState::Running
            | RunState::RetryWait
            | RunState::SuspectedLost
            | RunState::NeedsConfirmation => {}
        }
    }
    fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }
}

#[derive(Default)]
struct Share {
    counts: [AtomicU64; COUNTS],
    is_shown: AtomicBool,
    /// Since the last look.
    activity: AtomicU64,
    /// Of the last looks, newer ones count more.
    weight: AtomicU64,
}

impl Share {
    fn add(&self, counts: &Counts) {
        for (count, more) in self.counts.iter().zip(counts.0).filter(|(_, more)| *more > 0) {
            count.fetch_add(more, Relaxed);
        }
    }
    /// For itself while it is shown, else for the others.
    fn count(&self, counts: &Counts, other: &Self) {
        self.activity.fetch_add(1, Relaxed);
        if self.is_shown.load(Relaxed) { self.add(counts) } else { other.add(counts) }
    }
    /// Of two, the one that is shown already needs half as much.
    fn rank(&self) -> u64 {
        self.weight.load(Relaxed) * if self.is_shown.load(Relaxed) { 2 } else { 1 }
    }
}

/// A figure of a name that rises and falls.
pub struct Level {
    /// The end of the metric's name.
    pub name: &'static str,
    /// Whether it may be added up over names. A limit may not.
    pub sums: bool,
}

/// Values of the levels of one name, in their order. None is left out.
pub type Levels = Vec<Option<f64>>;

/// See the module's text.
pub struct Shares {
    label: &'static str,
    most: usize,
    levels: &'static [Level],
    state: RwLock<State>,
    other: Share,
    now: Mutex<Vec<(Text, Levels)>>,
}

#[derive(Default)]
struct State {
    known: HashMap<Text, Arc<Share>>,
    shown: usize,
}

const fn sums(name: &'static str) -> Level {
    Level { name, sums: true }
}
const fn limit(name: &'static str) -> Level {
    Level { name, sums: false }
}

/// By tenant.
pub fn tenants() -> &'static Shares {
    const LEVELS: [Level; 6] = [
        sums("jobs"),
        limit("jobs_limit"),
        sums("running"),
        limit("running_limit"),
        sums("waiting"),
        limit("waiting_limit"),
    ];
    static TENANTS: LazyLock<Shares> = LazyLock::new(|| Shares::new("tenant", limits::LABEL_VALUES, &LEVELS));
    &TENANTS
}

/// By pool.
pub fn pools() -> &'static Shares {
    const LEVELS: [Level; 5] = [sums("executors"), sums("slots"), sums("credit"), sums("running"), sums("waiting")];
    static POOLS: LazyLock<Shares> = LazyLock::new(|| Shares::new("pool", limits::LABEL_VALUES, &LEVELS));
    &POOLS
}

impl Shares {
    fn new(label: &'static str, most: usize, levels: &'static [Level]) -> Self {
        Self { label, most, levels, state: RwLock::default(), other: Share::default(), now: Mutex::default() }
    }

    pub(crate) fn add(&self, name: &str, counts: &Counts) {
        if counts.is_empty() {
            return;
        }
        // Nearly always it is known. This is done several times for each run.
        if let Some(share) = self.state.read().known.get(name) {
            return share.count(counts, &self.other);
        }
        match self.share(name) {
            Some(share) => share.count(counts, &self.other),
            None => self.other.add(counts),
        }
    }

    /// None: it counts as one of the others, and is not known.
    fn share(&self, name: &str) -> Option<Arc<Share>> {
        {
            let State { known, .. } = &*self.state.read();
            if let Some(share) = known.get(name) {
                return Some(share.clone());
            }
            if name == OTHER || known.len() >= limits::LABEL_VALUES_KNOWN {
                return None;
            }
        }
        let mut state = self.state.write();
        let State { known, shown } = &mut *state;
        let share = known.entry(Text::from(name)).or_insert_with(|| {
            let share = Share::default();
            if *shown < self.most {
                *shown += 1;
                share.is_shown.store(true, Relaxed);
            }
            Arc::new(share)
        });
        Some(share.clone())
    }

    /// The levels as they are now, each name with its weight: what it has of runs. Decides which names are shown.
    pub fn look(&self, now: Vec<(Text, u64, Levels)>) {
        for (name, load, _) in &now {
            if let Some(share) = self.share(name) {
                share.activity.fetch_add(*load, Relaxed);
            }
        }
        self.rank();
        *self.now.lock() = now.into_iter().map(|(name, _, levels)| (name, levels)).collect();
    }

    fn rank(&self) {
        let mut state = self.state.write();
        for share in state.known.values() {
            let weight = share.weight.load(Relaxed) / 16 * 15 + share.activity.swap(0, Relaxed);
            share.weight.store(weight, Relaxed);
        }
        state.known.retain(|_, share| share.is_shown.load(Relaxed) || share.weight.load(Relaxed) > 0);
        let mut order: Vec<(Reverse<u64>, &Text, &Share)> =
            state.known.iter().map(|(name, share)| (Reverse(share.rank()), name, &**share)).collect();
        order.sort_unstable_by_key(|(rank, name, _)| (*rank, *name));
        for (place, (_, _, share)) in order.iter().enumerate() {
            share.is_shown.store(place < self.most, Relaxed);
        }
        state.shown = order.len().min(self.most);
    }

    /// Writes the series: those of the names that are shown, in their order, and of the others.
    pub fn show(&self, page: &mut Page) {
        let shown = {
            let state = self.state.read();
            let mut shown: Vec<(Text, Arc<Share>)> = state.known.iter().map(|(n, s)| (n.clone(), s.clone())).collect();
            shown.retain(|(_, share)| share.is_shown.load(Relaxed));
            shown.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            shown
        };
        let mut family = String::new();
        for (end, count, state, worth) in SERIES {
            let name = format!("campanile_{}_{end}", self.label);
            if name != family {
                page.family(&name);
                family.clone_from(&name);
            }
            let all = shown.iter().map(|(name, share)| (name.as_str(), &**share)).chain([(OTHER, &self.other)]);
            for (of, share) in all {
                let value = share.counts[count as usize].load(Relaxed) as f64 * worth;
                match state {
                    Some(state) => page.sample(&name, &[(self.label, of), ("state", state.as_str())], value),
                    None => page.sample(&name, &[(self.label, of)], value),
                }
            }
        }
        self.show_levels(page, &shown);
    }

    fn show_levels(&self, page: &mut Page, shown: &[(Text, Arc<Share>)]) {
        let now = self.now.lock();
        for (at, Level { name: end, sums }) in self.levels.iter().enumerate() {
            let name = format!("campanile_{}_{end}", self.label);
            page.family(&name);
            let mut others = 0.0;
            for (of, levels) in now.iter() {
                let Some(value) = levels.get(at).copied().flatten() else { continue };
                if shown.binary_search_by(|(shown, _)| shown.cmp(of)).is_ok() {
                    page.sample(&name, &[(self.label, of)], value);
                } else {
                    others += value;
                }
            }
            if *sums {
                page.sample(&name, &[(self.label, OTHER)], others);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(most: usize) -> Shares {
        const LEVELS: [Level; 2] = [sums("running"), limit("running_limit")];
        Shares::new("tenant", most, &LEVELS)
    }

    fn fires(more: u64) -> Counts {
        let mut counts = Counts::default();
        counts.add(Count::Fires, more);
        counts
    }

    /// Samples of the metric, without its name.
    fn samples(shares: &Shares, name: &str) -> Vec<String> {
        let mut page = Page::new(&[]);
        shares.show(&mut page);
        let text = page.text();
        text.lines().filter_map(|line| line.strip_prefix(name)).map(str::to_owned).collect()
    }

    #[test]
    fn more_names_than_may_be_shown_are_counted_together() {
        let shares = shares(2);
        for (name, more) in [("a", 1), ("b", 2), ("c", 4), ("d", 8), ("other", 16)] {
            shares.add(name, &fires(more));
        }
        let shown = samples(&shares, "campanile_tenant_fires_total");
        assert_eq!(shown, ["{tenant=\"a\"} 1", "{tenant=\"b\"} 2", "{tenant=\"other\"} 28"]);
    }

    #[test]
    fn a_busy_name_takes_the_place_of_an_idle_one_and_no_series_falls() {
        let shares = shares(1);
        shares.add("idle", &fires(5));
        let busy = || (0..100).for_each(|_| shares.add("busy", &fires(1)));
        busy();
        assert_eq!(samples(&shares, "campanile_tenant_fires_total"), ["{tenant=\"idle\"} 5", "{tenant=\"other\"} 100"]);
        shares.look(Vec::new());
        busy();
        assert_eq!(
            samples(&shares, "campanile_tenant_fires_total"),
            ["{tenant=\"busy\"} 100", "{tenant=\"other\"} 100"]
        );
        // What the idle one does from now on is counted with the others.
        shares.add("idle", &fires(1));
        assert_eq!(
            samples(&shares, "campanile_tenant_fires_total"),
            ["{tenant=\"busy\"} 100", "{tenant=\"other\"} 101"]
        );
    }

    #[test]
    fn a_name_with_a_little_more_weight_takes_no_place() {
        let shares = shares(1);
        for round in 0..10 {
            let more = |name: &str, times: u32| (0..times).for_each(|_| shares.add(name, &fires(1)));
            more("first", 10);
            more("second", 15);
            shares.look(Vec::new());
            assert!(samples(&shares, "campanile_tenant_fires_total")[0].contains("first"), "round {round}");
        }
    }

    #[test]
    fn levels_of_names_that_are_not_shown_are_added_up_and_limits_are_not() {
        let shares = shares(1);
        let level = |name: &str, running: u64| (name.into(), running, vec![Some(running as f64), Some(50.0)]);
        shares.look(vec![level("a", 3), level("b", 9), level("c", 4)]);
        shares.look(vec![level("a", 3), level("b", 9), level("c", 4)]);
        assert_eq!(samples(&shares, "campanile_tenant_running{"), ["tenant=\"b\"} 9", "tenant=\"other\"} 7"]);
        assert_eq!(samples(&shares, "campanile_tenant_running_limit{"), ["tenant=\"b\"} 50"]);
        shares.look(Vec::new());
        assert_eq!(samples(&shares, "campanile_tenant_running{"), ["tenant=\"other\"} 0"]);
    }

    #[test]
    fn invented_names_take_no_room_for_ever() {
        let shares = shares(2);
        for number in 0..limits::LABEL_VALUES_KNOWN * 2 {
            shares.add(&format!("pool-{number}"), &fires(1));
        }
        assert_eq!(shares.state.read().known.len(), limits::LABEL_VALUES_KNOWN);
        for _ in 0..200 {
            shares.look(Vec::new());
        }
        assert_eq!(shares.state.read().known.len(), 2, "the two that are shown");
        let total: u64 = samples(&shares, "campanile_tenant_fires_total")
            .iter()
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok())
            .sum();
        assert_eq!(total, limits::LABEL_VALUES_KNOWN as u64 * 2, "nothing is lost");
    }

    #[test]
    fn every_count_has_its_own_series() {
        let mut seen = [0; COUNTS];
        SERIES.iter().for_each(|(_, count, ..)| seen[*count as usize] += 1);
        assert_eq!(seen, [1; COUNTS]);
        let mut counts = Counts::default();
        for state in RunState::ALL.iter().filter(|state| state.is_final() && **state != RunState::Skipped) {
            counts.ended(*state);
        }
        for (_, count, state, _) in SERIES {
            assert_eq!(counts.0[count as usize], u64::from(state.is_some()));
        }
    }
}
