//! Which level of degradation a node is at, by how much of its backlog's limit is in use.
//!
//! Levels are entered at once and left late: a level ends when the backlog is [`MARGIN_PERCENT`] of its limit below where the level began.
//! At 100 % of the limit due instants wait undecided and every change of callers is refused, as on each node before there were levels;
//! no level skips an instant.

use campanile_schema::view::DegradationLevel as Level;

/// Percent of the limit from which on each level holds.
const BEGINS: [(Level, u64); 4] = [
    (Level::BackfillsStop, 50),
    (Level::LowPriorityWaits, 65),
    (Level::ReadModelStretched, 75),
    (Level::TriggersRefused, 90),
];

/// So far below its begin a level ends.
const MARGIN_PERCENT: u64 = 15;

/// Runs of a lower priority than this wait from [`Level::LowPriorityWaits`] on: it is the priority of a job that names none.
pub const USUAL_PRIORITY: u16 = 100;

/// The level with a backlog of so many percent, after this one.
pub fn next(level: Level, percent: u64) -> Level {
    let reached = |margin: u64| {
        let levels = BEGINS.iter().filter(|(_, begins)| percent + margin >= *begins);
        levels.map(|(level, _)| *level).max().unwrap_or_default()
    };
    reached(0).max(reached(MARGIN_PERCENT).min(level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_begin_at_once_and_end_late() {
        let mut level = Level::Normal;
        let mut walk = |percents: &[u64]| {
            percents
                .iter()
                .map(|percent| {
                    level = next(level, *percent);
                    level.code()
                })
                .collect::<Vec<u8>>()
        };
        assert_eq!(walk(&[0, 49, 50, 36, 35, 34]), [0, 0, 1, 1, 1, 0]);
        assert_eq!(walk(&[95, 76, 75, 74, 61, 50, 49, 20]), [4, 4, 4, 3, 3, 2, 1, 0]);
        assert_eq!(walk(&[64, 65, 64, 300, 0]), [1, 2, 2, 4, 0]);
    }

    /// Whatever comes, a level holds while its begin is reached, and never when the backlog is below its margin.
    #[test]
    fn each_level_holds_where_it_must_and_nowhere_else() {
        for before in Level::ALL {
            for percent in 0..=200 {
                let after = next(*before, percent);
                for (level, begins) in BEGINS {
                    assert!(after >= level || percent < begins, "{before} at {percent}: {after}");
                    assert!(after < level || percent + MARGIN_PERCENT >= begins, "{before} at {percent}: {after}");
                    assert!(after < level || percent >= begins || *before >= level, "{before} at {percent}: {after}");
                }
            }
        }
    }
}
