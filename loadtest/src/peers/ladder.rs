//! Chooses the rates to try and their order, and decides when a rate counts as held. No I/O: the decision is a function
//! of what was seen.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A rate holds when at least this share of the instants in the window was started (no later than a second after it) ...
pub const LEAST_SHARE: f64 = 0.99;
/// ... with a p99 lateness of at most this, milliseconds.
pub const MOST_P99_MS: f64 = 1_000.0;
/// Tries of one rate, count: a disturbed window must not end the climb.
const TRIES: usize = 2;

/// What a system is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LadderKind {
    /// Jobs with one due instant each.
    Once,
    /// Jobs that are due every second, each at its own part of it.
    Recurring,
    /// Jobs that are due at each whole second.
    Cron,
}

impl LadderKind {
    pub const ALL: [Self; 3] = [Self::Once, Self::Recurring, Self::Cron];

    pub fn word(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Recurring => "recurring",
            Self::Cron => "cron",
        }
    }
}

/// Rates of each system by kind.
pub type Ladders = BTreeMap<String, BTreeMap<LadderKind, Vec<u64>>>;

/// Reads the file of rates; each ladder must rise.
pub fn read(text: &str) -> Result<Ladders, String> {
    let ladders: Ladders = toml::from_str(text).map_err(|error| error.to_string())?;
    for (system, kinds) in &ladders {
        for (kind, rates) in kinds {
            if rates.is_empty() || rates[0] == 0 || !rates.is_sorted_by(|a, b| a < b) {
                return Err(format!("the rates of {system}, {}, must be above 0 and rise", kind.word()));
            }
        }
    }
    Ok(ladders)
}

pub fn holds(share: f64, p99_ms: f64) -> bool {
    share >= LEAST_SHARE && p99_ms <= MOST_P99_MS
}

/// The next rate to try after what was tried (rate, held). None: the ladder is done.
pub fn next(rates: &[u64], tried: &[(u64, bool)]) -> Option<u64> {
    let Some((last, held)) = tried.last().copied() else {
        return rates.first().copied();
    };
    if held {
        return rates.iter().copied().find(|rate| *rate > last);
    }
    let tries = tried.iter().filter(|(rate, _)| *rate == last).count();
    (tries < TRIES).then_some(last)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_rate_holds_with_nearly_all_started_in_time() {
        assert!(holds(0.99, 1_000.0));
        assert!(!holds(0.989, 10.0), "too few");
        assert!(!holds(1.0, 1_000.1), "too late");
    }

    #[test]
    fn the_climb_goes_on_while_rates_hold() {
        let rates = [10, 20, 30];
        assert_eq!(next(&rates, &[]), Some(10));
        assert_eq!(next(&rates, &[(10, true)]), Some(20));
        assert_eq!(next(&rates, &[(10, true), (20, true), (30, true)]), None);
    }

    #[test]
    fn a_rate_that_fails_is_tried_once_more_and_then_ends_the_climb() {
        let rates = [10, 20, 30];
        assert_eq!(next(&rates, &[(10, true), (20, false)]), Some(20));
        assert_eq!(next(&rates, &[(10, true), (20, false), (20, true)]), Some(30));
        assert_eq!(next(&rates, &[(10, true), (20, false), (20, false)]), None);
        assert_eq!(next(&rates, &[(10, false), (10, false)]), None);
    }

    #[test]
    fn the_file_of_rates_is_read_and_must_rise() {
        let ladders = read("[river]\nonce = [1, 2]\ncron = [5]\n").unwrap();
        assert_eq!(ladders["river"][&LadderKind::Once], [1, 2]);
        assert_eq!(ladders["river"].get(&LadderKind::Recurring), None);
        for wrong in ["[river]\nonce = [2, 1]", "[river]\nonce = []", "[river]\nonce = [0, 1]", "[river]\ntwice = [1]"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read(include_str!("../../peers/ladder.toml")).unwrap().contains_key("campanile"));
    }
}
