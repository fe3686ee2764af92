//! Puts the executors' counts together: histograms of each second, of each group in each phase, and of all.

use crate::{
    limits::LATE_SECONDS_OPEN,
    load::{
        latency::{HIGHEST_US, Percentiles, percentiles},
        stats::{StatsLine, Values},
    },
    report::{Figures, in_phase},
    scenario::jobs::Frame,
};
use hdrhistogram::{Counter, Histogram};
use std::{collections::BTreeMap, ops::Range};

/// Receipt, end and durable end of the same bodies.
#[derive(Clone, Debug)]
struct Three<C: Counter> {
    start: Histogram<C>,
    end: Histogram<C>,
    durable: Histogram<C>,
}

/// Significant digits of figures, and of the many histograms of single seconds.
const DIGITS: u8 = 3;
const DIGITS_OF_SECOND: u8 = 2;

fn histogram<C: Counter>(digits: u8) -> Histogram<C> {
    // It grows with its values. Digits above 5 are the only thing that is refused.
    Histogram::new(digits).unwrap_or_else(|_| unreachable!("{digits} digits are allowed"))
}

impl<C: Counter> Three<C> {
    fn new(digits: u8) -> Self {
        Self { start: histogram(digits), end: histogram(digits), durable: histogram(digits) }
    }
}

fn add<C: Counter>(to: &mut Histogram<C>, values: &Values) {
    for (value, count) in values {
        // All counters hold a second's count, and the histogram grows to its values: neither is refused. (Its saturating
        // methods do not grow it.)
        if let Some(count) = C::from_u64((*count).min(u64::from(u32::MAX))) {
            let _ = to.record_n((*value).min(HIGHEST_US), count);
        }
    }
}

/// What is known of one second.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub received: u64,
    pub attempts: u64,
    pub durable: u64,
    pub start: Option<Percentiles>,
    pub end_p99_ms: Option<f64>,
    pub durable_p99_ms: Option<f64>,
}

/// See the module's text.
pub(super) struct Measure {
    start_s: i64,
    phases: Vec<(String, Range<i64>)>,
    /// Due instants of each group in each second of the run.
    due: BTreeMap<String, Vec<u64>>,
    groups: BTreeMap<String, Vec<Three<u64>>>,
    open: BTreeMap<i64, Three<u32>>,
    rows: BTreeMap<i64, Row>,
    pub attempts: u64,
    pub outcomes: BTreeMap<String, u64>,
    /// When the node's process was started again, and when the first body began afterwards, microseconds since 1970 UTC.
    pub restarts: Vec<(i64, Option<i64>)>,
}

impl Measure {
    pub fn new(frame: &Frame, due: BTreeMap<String, Vec<u64>>) -> Self {
        let phases = frame.phases.iter().enumerate().map(|(n, phase)| {
            let seconds = frame.seconds_of(n);
            (phase.name.clone(), seconds.start as i64..seconds.end as i64)
        });
        let phases: Vec<_> = phases.collect();
        let groups = due.keys().map(|group| (group.clone(), vec![Three::new(DIGITS); phases.len()])).collect();
        let (open, rows, outcomes) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self {
            start_s: frame.start_ms / 1000,
            phases,
            due,
            groups,
            open,
            rows,
            attempts: 0,
            outcomes,
            restarts: Vec::new(),
        }
    }

    /// One executor's counts of one second. Groups of an earlier run on the same node are not ours.
    pub fn take(&mut self, line: &StatsLine) {
        let Some(group) = self.groups.get_mut(&line.group) else { return };
        if let (Some((begin, first)), Some(at)) = (self.restarts.last_mut(), line.first_us)
            && at >= *begin
        {
            *first = Some(first.map_or(at, |first| first.min(at)));
        }
        let row = self.rows.entry(line.second - self.start_s).or_default();
        let count = |seconds: &BTreeMap<i64, Values>| seconds.values().flat_map(BTreeMap::values).sum::<u64>();
        row.attempts += line.attempts;
        row.received += count(&line.start);
        row.durable += count(&line.durable);
        self.attempts += line.attempts;
        for (outcome, count) in &line.outcomes {
            *self.outcomes.entry(outcome.clone()).or_default() += count;
        }
        for (what, seconds) in [&line.start, &line.end, &line.durable].into_iter().enumerate() {
            for (due_s, values) in seconds {
                let second = due_s - self.start_s;
                if let Some(phase) = self.phases.iter().position(|(_, seconds)| seconds.contains(&second)) {
                    let three = &mut group[phase];
                    add([&mut three.start, &mut three.end, &mut three.durable][what], values);
                }
                match self.rows.get_mut(&second).and_then(|row| row.start.as_mut()) {
                    // Its histograms are gone: only what is shown highest is mended.
                    Some(closed) if what == 0 => {
                        let last = values.keys().next_back().map_or(0.0, |us| *us as f64 / 1000.0);
                        closed.max_ms = closed.max_ms.max(last);
                        closed.count += values.values().sum::<u64>();
                    }
                    Some(_) => {}
                    None => {
                        let three = self.open.entry(second).or_insert_with(|| Three::new(DIGITS_OF_SECOND));
                        add([&mut three.start, &mut three.end, &mut three.durable][what], values);
                    }
                }
            }
        }
    }

    /// Seconds that are long over are kept as percentiles only.
    pub fn close_old(&mut self, second: i64) {
        while let Some(entry) = self.open.first_entry().filter(|entry| *entry.key() < second - LATE_SECONDS_OPEN) {
            let (second, three) = entry.remove_entry();
            self.close(second, &three);
        }
    }

    fn close(&mut self, second: i64, three: &Three<u32>) {
        let row = self.rows.entry(second).or_default();
        let p99 = |h: &Histogram<u32>| (!h.is_empty()).then(|| percentiles(h).p99_ms);
        (row.end_p99_ms, row.durable_p99_ms) = (p99(&three.end), p99(&three.durable));
        row.start = (!three.start.is_empty()).then(|| percentiles(&three.start));
    }

    /// Lateness of what was due in a second, as far as it is known.
    pub fn so_far(&self, second: i64) -> Option<Percentiles> {
        self.open.get(&second).filter(|three| !three.start.is_empty()).map(|three| percentiles(&three.start))
    }

    pub fn row(&self, second: i64) -> Row {
        self.rows.get(&second).cloned().unwrap_or_default()
    }

    /// Instants due in a second, of all groups.
    pub fn due_in(&self, second: i64) -> u64 {
        let at = usize::try_from(second).ok();
        at.map_or(0, |at| self.due.values().filter_map(|seconds| seconds.get(at)).sum())
    }

    /// All seconds up to the last that something is known of.
    pub fn seconds(&mut self) -> Range<i64> {
        for (second, three) in std::mem::take(&mut self.open) {
            self.close(second, &three);
        }
        0..self.rows.keys().next_back().map_or(0, |last| last + 1)
    }

    fn figures(&self, name: String, groups: &[&String], phases: Range<usize>, until_s: i64) -> Figures {
        let mut all = Three::<u64>::new(DIGITS);
        let mut due = 0;
        for group in groups {
            for phase in phases.clone() {
                let (seconds, three) = (&self.phases[phase].1, &self.groups[*group][phase]);
                for (to, from) in
                    [(&mut all.start, &three.start), (&mut all.end, &three.end), (&mut all.durable, &three.durable)]
                {
                    // Both resize, so that all values fit.
                    let _ = to.add(from);
                }
                let last = seconds.end.min(until_s).max(seconds.start);
                due += self.due[*group][seconds.start as usize..last as usize].iter().sum::<u64>();
            }
        }
        Figures {
            name,
            due,
            start: percentiles(&all.start),
            end: percentiles(&all.end),
            durable: percentiles(&all.durable),
        }
    }

    /// Of all groups in one phase. `until_s`: only instants before that second were asked for.
    pub fn phase(&self, phase: usize, until_s: i64) -> Figures {
        let groups: Vec<&String> = self.groups.keys().collect();
        self.figures(self.phases[phase].0.clone(), &groups, phase..phase + 1, until_s)
    }

    pub fn all(&self, until_s: i64) -> Figures {
        let groups: Vec<&String> = self.groups.keys().collect();
        self.figures("all".to_owned(), &groups, 0..self.phases.len(), until_s)
    }

    /// Each group that is due at all, over the whole run.
    pub fn by_group(&self, until_s: i64) -> Vec<Figures> {
        let due = self.groups.keys().filter(|group| self.due[*group].iter().any(|n| *n > 0));
        due.map(|group| self.figures(group.clone(), &[group], 0..self.phases.len(), until_s)).collect()
    }

    pub fn by_group_and_phase(&self, until_s: i64) -> Vec<Figures> {
        let mut all = Vec::new();
        for group in self.groups.keys() {
            for (n, (phase, _)) in self.phases.iter().enumerate() {
                all.push(self.figures(in_phase(group, phase), &[group], n..n + 1, until_s));
            }
        }
        all.retain(|figures| figures.due > 0);
        all
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::scenario::read::read;

    #[test]
    fn counts_end_in_the_second_group_and_phase_in_which_the_instant_was_due() {
        let text = "name = \"x\"\nabout = \"y\"\n[[phase]]\nname = \"p\"\nseconds = 2\n[[phase]]\nname = \"q\"\nseconds = 2\n[[load]]\nname = \"a\"\nkind = \"rate\"\nrate = 1\n";
        let frame = Frame::new(&read("f", text).unwrap().full, 100_000, "m".to_owned());
        let mut measure = Measure::new(&frame, BTreeMap::from([("a".to_owned(), vec![1, 1, 1, 5])]));
        let late = |due_s, value, count| BTreeMap::from([(due_s, Values::from([(value, count)]))]);
        let line =
            |second, start| StatsLine { second, group: "a".to_owned(), attempts: 1, start, ..StatsLine::default() };
        measure.take(&line(100, late(100, 1_000, 1)));
        measure.take(&line(102, late(101, 900_000, 1)));
        measure.take(&line(103, late(102, 2_000, 1)));
        measure.take(&StatsLine { group: "other".to_owned(), ..line(103, late(102, 2_000, 9)) });
        let (p, q) = (measure.phase(0, 4), measure.phase(1, 3));
        assert_eq!((p.due, p.start.count, p.start.max_ms.round()), (2, 2, 900.0));
        assert_eq!((q.due, q.start.count, q.all_started()), (1, 1, true));
        assert!(!measure.all(4).all_started());
        assert_eq!((measure.row(2).received, measure.row(1).received, measure.due_in(3)), (1, 0, 5));
        assert_eq!(
            measure.by_group_and_phase(4).iter().map(|f| f.name.as_str()).collect::<Vec<_>>(),
            ["a in p", "a in q"]
        );
        measure.restarts.push((102_500_000, None));
        for first_us in [102_400_000, 103_700_000, 103_600_000] {
            measure.take(&StatsLine { first_us: Some(first_us), attempts: 0, ..line(103, BTreeMap::new()) });
        }
        assert_eq!(measure.restarts, [(102_500_000, Some(103_600_000))]);
        measure.close_old(LATE_SECONDS_OPEN + 2);
        measure.take(&line(110, late(101, 9_000_000, 1)));
        assert_eq!(measure.seconds(), 0..11);
        assert_eq!(measure.row(1).start.map(|p| p.max_ms.round()), Some(9_000.0), "what comes late is still shown");
    }
}
