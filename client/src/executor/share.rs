//! How the free slots are divided among the nodes. Pure.

/// A node's share of the free slots. `wanting` says of each node whether runs may wait there for credit.
///
/// Equal parts, the rest to each in turn, so that a single slot serves all nodes. While runs wait at some nodes only, the others keep one
/// slot each where there are enough, and those share what is left: a node without credit says so as soon as it needs some. All shares
/// together are never more than what is free.
pub(super) fn share(free: usize, wanting: &[bool], node: usize, turn: usize) -> usize {
    let wants = |nodes: &[bool]| nodes.iter().filter(|wants| **wants).count();
    let (all, some) = (wanting.len(), wants(wanting));
    if some == 0 || some == all {
        return part(free, all, node, turn);
    }
    let kept = usize::from(free >= all);
    if wanting[node] { part(free - kept * (all - some), some, wants(&wanting[..node]), turn) } else { kept }
}

fn part(free: usize, nodes: usize, node: usize, turn: usize) -> usize {
    free / nodes + usize::from((node + turn) % nodes < free % nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(free: usize, wanting: &[bool], turn: usize) -> Vec<usize> {
        (0..wanting.len()).map(|node| share(free, wanting, node, turn)).collect()
    }

    #[test]
    fn a_node_where_runs_wait_gets_what_the_others_do_not_need() {
        assert_eq!(shares(8, &[true, false], 0), [7, 1]);
        assert_eq!(shares(9, &[false, true, false, true], 0), [1, 4, 1, 3]);
        assert_eq!(shares(9, &[false, true, false, true], 1), [1, 3, 1, 4], "the rest is each one's in turn");
        assert_eq!(shares(3, &[false, true, false], 7), [1, 1, 1]);
    }

    #[test]
    fn with_less_slots_than_nodes_all_are_for_those_that_wait() {
        assert_eq!(shares(2, &[false, true, false], 0), [0, 2, 0]);
        assert_eq!(shares(1, &[true, false], 1), [1, 0]);
    }

    #[test]
    fn the_parts_are_equal_when_none_or_all_wait() {
        for wanting in [[true; 3], [false; 3]] {
            assert_eq!(shares(8, &wanting, 0), [3, 3, 2]);
            assert_eq!(shares(8, &wanting, 1), [3, 2, 3]);
            let turns: Vec<usize> = (0..3).map(|turn| share(1, &wanting, 2, turn)).collect();
            assert_eq!(turns.iter().sum::<usize>(), 1, "a single slot serves all");
        }
    }

    #[test]
    fn all_that_is_free_is_given_and_never_more() {
        for nodes in 1..=5 {
            for hints in 0..1 << nodes {
                let wanting: Vec<bool> = (0..nodes).map(|node| hints >> node & 1 == 1).collect();
                for free in 0..=12 {
                    for turn in 0..4 {
                        let given = shares(free, &wanting, turn);
                        assert_eq!(given.iter().sum::<usize>(), free, "{wanting:?} at {turn}: {given:?}");
                        assert!(free < nodes || given.iter().all(|slots| *slots > 0), "{wanting:?}: {given:?}");
                    }
                }
            }
        }
    }
}
