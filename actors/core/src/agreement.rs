//! Clock agreement: decides whether a node's wall clock agrees with those of most nodes of its cluster. Pure: readings
//! are arguments.
//!
//! A clock is described by its *offset*: its wall clock minus this node's CLOCK_BOOTTIME, in milliseconds. An offset
//! stays the same as long as neither clock jumps. A node therefore notices a jump of its own clock at once, before it
//! hears another node; and where two nodes differ, the one that jumped knows it. `docs/adr/0019-clock-agreement.md` has
//! the reasons.
//!
//! It never decides who owns a shard. A node that finds its clock wrong gives its shards away, as a node that is
//! stopped does.

/// Clocks that are no further apart agree, milliseconds. More than a packet may take on a busy machine.
pub const AGREE_MS: i64 = 1_000;
/// A clock that is further from the agreed time is wrong, milliseconds; it is right again within [`AGREE_MS`].
pub const WRONG_MS: i64 = 2_000;
/// A clock that was right is wrong for so long before its node gives shards away, milliseconds: others may have been set as well.
const STANDS_MS: u64 = 1_500;

/// The offset that more than half of these clocks agree on: the middle one of the largest group within [`AGREE_MS`]. None: there is no
/// such group, or nobody to agree with.
pub fn majority(offsets: &[i64]) -> Option<i64> {
    let mut sorted = offsets.to_vec();
    sorted.sort_unstable();
    let group = |from: usize| {
        let upto = sorted.partition_point(|offset| offset.saturating_sub(sorted[from]) <= AGREE_MS);
        &sorted[from..upto]
    };
    let largest = (0..sorted.len()).map(group).max_by_key(|group| group.len())?;
    (sorted.len() > 1 && 2 * largest.len() > sorted.len()).then(|| largest[(largest.len() - 1) / 2])
}

/// One node's clock beside those of the others. See the module's text.
#[derive(Clone, Debug, Default)]
pub struct Agreement {
    agreed_ms: Option<i64>,
    off_ms: Option<i64>,
    wrong_since_ms: Option<u64>,
    was_right: bool,
    stands: bool,
}

impl Agreement {
    /// Looks at the clocks. `now_ms` never jumps; `own_ms` and `others_ms` are offsets, those of nodes that were heard lately.
    pub fn look(&mut self, now_ms: u64, own_ms: i64, others_ms: &[i64]) {
        let all: Vec<i64> = others_ms.iter().copied().chain([own_ms]).collect();
        // Where nobody has a majority, what was agreed on still tells who has jumped. Alone, nobody is wrong.
        let before = self.agreed_ms.filter(|_| !others_ms.is_empty());
        self.agreed_ms = majority(&all).or(before);
        let limit_ms = if self.off_ms.is_some() { AGREE_MS } else { WRONG_MS };
        self.off_ms = self.agreed_ms.map(|agreed| own_ms - agreed).filter(|off| off.abs() > limit_ms);
        if self.off_ms.is_some() {
            let since_ms = *self.wrong_since_ms.get_or_insert(now_ms);
            // One that was never right has nothing to wait for.
            self.stands |= !self.was_right || now_ms.saturating_sub(since_ms) >= STANDS_MS;
        } else {
            self.was_right |= self.agreed_ms.is_some();
            (self.wrong_since_ms, self.stands) = (None, false);
        }
    }

    /// What most clocks say, as an offset.
    pub fn agreed_ms(&self) -> Option<i64> {
        self.agreed_ms
    }

    /// How far the own clock is ahead of the agreed time, milliseconds; None: it is right, or nobody can tell.
    pub fn off_ms(&self) -> Option<i64> {
        self.off_ms
    }

    /// The clock is wrong and stays so: the node is to give its shards away.
    pub fn stands(&self) -> bool {
        self.stands
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_half_of_the_clocks_are_a_majority() {
        assert_eq!(majority(&[]), None);
        assert_eq!(majority(&[5]), None, "nobody to agree with");
        assert_eq!(majority(&[0, 900]), Some(0));
        assert_eq!(majority(&[0, 1_001]), None);
        assert_eq!(majority(&[3_600_000, 10, -20]), Some(-20));
        assert_eq!(majority(&[3_600_000, -90_000, 0]), None, "three that all differ");
        assert_eq!(majority(&[0, 10, 5_000, 5_010]), None, "half is not most");
        assert_eq!(majority(&[0, 10, 20, 5_000, 5_010]), Some(10));
    }

    #[test]
    fn a_clock_that_jumps_is_wrong_until_it_is_back() {
        for off in [3_600_000, -90_000, 5_000] {
            let mut clock = Agreement::default();
            clock.look(0, 100, &[90, 110]);
            assert_eq!((clock.off_ms(), clock.stands()), (None, false));
            clock.look(10, 100 + off, &[90, 110]);
            assert_eq!((clock.agreed_ms(), clock.stands()), (Some(90), false), "others may follow");
            assert_eq!(clock.off_ms(), Some(10 + off));
            clock.look(1_509, 100 + off, &[90, 110]);
            assert!(!clock.stands());
            clock.look(1_510, 100 + off, &[90, 110]);
            assert!(clock.stands());
            clock.look(9_000, 1_600, &[90, 110]);
            assert!(clock.stands(), "nearly right");
            clock.look(9_010, 1_000, &[90, 110]);
            assert_eq!((clock.off_ms(), clock.stands()), (None, false));
        }
    }

    #[test]
    fn a_clock_that_was_never_right_is_wrong_at_once() {
        let mut clock = Agreement::default();
        clock.look(0, 20_000, &[]);
        assert_eq!(clock.off_ms(), None, "nobody to ask");
        clock.look(1, 20_000, &[0]);
        assert_eq!(clock.off_ms(), None, "one of two is wrong, and nobody can tell which");
        clock.look(2, 20_000, &[0, 10]);
        assert!(clock.stands());
    }

    #[test]
    fn when_all_clocks_are_set_nobody_gives_anything_away() {
        let mut clock = Agreement::default();
        clock.look(0, 0, &[0, 0]);
        for (now_ms, others) in [(100, [0, 0]), (300, [3_600_000, 0]), (500, [3_600_000, 3_600_000])] {
            clock.look(now_ms, 3_600_000, &others);
            assert!(!clock.stands());
        }
        assert_eq!(clock.off_ms(), None);
    }

    #[test]
    fn of_two_nodes_the_one_that_jumped_is_wrong_and_one_alone_never_is() {
        let (mut jumped, mut stayed) = (Agreement::default(), Agreement::default());
        for clock in [&mut jumped, &mut stayed] {
            clock.look(0, 0, &[0]);
        }
        jumped.look(2_000, 60_000, &[0]);
        stayed.look(2_000, 0, &[60_000]);
        assert_eq!((jumped.off_ms(), stayed.off_ms()), (Some(60_000), None));
        jumped.look(4_000, 60_000, &[0]);
        assert!(jumped.stands());
        // The other one is gone for good.
        jumped.look(20_000, 60_000, &[]);
        assert_eq!((jumped.off_ms(), jumped.stands()), (None, false));
    }

    #[test]
    fn most_clocks_are_the_clusters_time_even_if_they_are_wrong() {
        let (mut right, mut wrong) = (Agreement::default(), Agreement::default());
        right.look(0, 0, &[600_000, 600_010]);
        wrong.look(0, 600_000, &[0, 600_010]);
        assert_eq!((right.stands(), wrong.stands()), (true, false));
    }
}
