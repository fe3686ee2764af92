//! What is done to the processes, and when: a function of the run's length alone.

/// A node stands still for longer than the lease of its executors, seconds.
pub const FROZEN_S: u64 = 12;
/// The node's disk takes nothing for so long, seconds.
pub const FULL_S: u64 = 8;

/// Something that is done to the node or its executors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// kill -9 of the oldest executor; another one takes its place.
    KillExecutor,
    /// SIGSTOP of the node for [`FROZEN_S`], then SIGCONT.
    FreezeNode,
    /// The node may not write files beyond a limit for [`FULL_S`], as on a disk that is full.
    FillDisk,
    /// Executors get a new token while they are connected; then the old one is removed, while one of them still uses it.
    RotateTokens,
    /// kill -9 of the node, and a start on the same directory.
    KillNode,
}

impl Act {
    /// In reports.
    pub fn words(self) -> &'static str {
        match self {
            Self::KillExecutor => "kill -9 of an executor",
            Self::FreezeNode => "the node stands still for 12 s",
            Self::FillDisk => "the node's disk is full for 8 s",
            Self::RotateTokens => "the executors' token is changed",
            Self::KillNode => "kill -9 of the node",
        }
    }
}

/// The first part of a life of the node is full of trouble; then nothing is done to it, so that its memory can be judged.
const TROUBLE: [Act; 5] = [Act::KillExecutor, Act::FreezeNode, Act::RotateTokens, Act::FillDisk, Act::KillExecutor];
/// Lives of the node in a run.
const LIVES: u64 = 2;
/// At the start of each life nothing is said of its memory: so long, seconds, or this part of the life where that is shorter.
const WARM_S: u64 = 600;
const WARM_PART: u64 = 3;

/// When each act begins, in seconds from the start of the load.
pub fn schedule(seconds: u64) -> Vec<(u64, Act)> {
    let life = seconds / LIVES;
    let trouble = warm_s(seconds);
    (0..LIVES)
        .flat_map(|n| {
            let killed = (n > 0).then_some((n * life, Act::KillNode));
            let step = trouble / (TROUBLE.len() as u64 + 1);
            let acts = (1..).zip(TROUBLE).map(move |(at, act)| (n * life + at * step, act));
            killed.into_iter().chain(acts)
        })
        .collect()
}

/// How much of each life is left out of the judgement of its memory, seconds.
pub fn warm_s(seconds: u64) -> u64 {
    WARM_S.min(seconds / LIVES / WARM_PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_act_is_there_and_each_life_has_a_quiet_part() {
        for seconds in [120, 3_600, 86_400] {
            let plan = schedule(seconds);
            assert!(plan.is_sorted_by_key(|(at, _)| *at), "{plan:?}");
            assert!(plan.iter().all(|(at, _)| *at < seconds), "{plan:?}");
            for act in TROUBLE.iter().chain(&[Act::KillNode]) {
                assert!(plan.iter().any(|(_, planned)| planned == act), "{act:?} in {plan:?}");
            }
            let quiet = |from: u64, to: u64| plan.iter().all(|(at, _)| !(from..to).contains(at));
            let (life, warm) = (seconds / LIVES, warm_s(seconds));
            assert!(quiet(warm, life), "{plan:?}");
            assert!(quiet(life + warm, seconds), "{plan:?}");
        }
    }

    #[test]
    fn the_first_ten_minutes_of_a_life_are_left_out_of_an_hour() {
        assert_eq!(warm_s(3_600), 600);
        assert_eq!(warm_s(120), 20);
    }
}
