//! Which of several executors gets a run: the best score of those that [`super::filter`] lets through.
//!
//! Less loaded is better. Equally loaded ones take turns, or one of them would never get any run while there is little to do.
//! Further wishes, such as to stay with the executor of the run before, are terms of the same score.

use super::{
    executor::{Executor, Seat},
    filter,
    rules::{Rule, kept},
};
use crate::job::WaitingRun;
use std::cmp::Ordering;

/// Of two, the lower one is better.
#[derive(Clone, Copy, Debug)]
pub struct Score {
    load: f64,
    last_match: u64,
}

impl Score {
    pub fn of(executor: &Executor) -> Self {
        let slots = executor.slots().max(1);
        let load = executor.running.len() as f64 / f64::from(slots) + f64::from(executor.credit.load());
        Self { load: if kept(Rule::LeastLoadFirst) { load } else { 0.0 }, last_match: executor.last_match }
    }

    pub fn order(self, other: Self) -> Ordering {
        let turn = if kept(Rule::EqualsTakeTurns) {
            self.last_match.cmp(&other.last_match)
        } else {
            other.last_match.cmp(&self.last_match)
        };
        self.load.total_cmp(&other.load).then(turn)
    }
}

/// The seat with the best score among those that may take the run; of equal ones the first. None: no seat may.
pub fn best(seats: &[Seat<'_>], run: &WaitingRun) -> Option<usize> {
    let mut best: Option<(usize, Score)> = None;
    for (index, seat) in seats.iter().enumerate() {
        let score = Score::of(seat.executor);
        // A score is a division; the filter may compare names. So only who would be the best is asked.
        if best.is_none_or(|(_, best)| score.order(best).is_lt())
            && filter::can_run(seat.executor, run)
            && filter::has_room(seat.executor, run)
        {
            best = Some((index, score));
        }
    }
    best.map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use campanile_schema::{
        ids::{JobId, RunId, Token},
        rpc::executor::Held,
    };

    #[test]
    fn equally_loaded_executors_take_turns_and_a_loaded_one_waits() {
        let mut executors = [Executor::default(), Executor::default()];
        let is_next = |of: &[Executor; 2]| Score::of(&of[1]).order(Score::of(&of[0])).is_lt();
        let mut given = [0; 2];
        for number in 1..=10 {
            // Each run ends before the next one comes.
            let next = usize::from(is_next(&executors));
            executors[next].last_match = number;
            given[next] += 1;
        }
        assert_eq!(given, [5, 5]);
        executors[0].hold(Held { run: RunId(1), job: JobId(1), token: Token(1) }, None);
        executors[1].last_match = 11;
        assert!(is_next(&executors), "load comes first");
    }
}
