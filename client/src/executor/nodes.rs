//! Which nodes an executor is to be connected to: the addresses that it was given, and nodes of a cluster that others tell it of.
//!
//! Pure: who is connected and what time it is are arguments. A node is known by its cluster and its name, since one node may be
//! reached by several addresses; a session that registers over a second connection would lose the first. The addresses that were
//! given are never dropped, and win over those that were told.

use campanile_schema::{limits::EXECUTOR_NODES, rpc::executor::NodeAddress};

/// So long the address that led to a node last is waited for, before another one is tried, ms.
const SAME_ADDRESS_MS: u64 = 1_000;

/// Which node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeKey {
    pub cluster: u64,
    pub name: String,
}

/// A way to a node. Its index is that of the link.
#[derive(Debug)]
struct NodeWay {
    address: String,
    /// Who it should lead to; None = it was given.
    told: Option<NodeKey>,
    /// Who answered last.
    met: Option<NodeKey>,
    /// Nodes that who answered last told of, with their addresses.
    list: Vec<NodeAddress>,
    /// It led to a node, or did not, at least once.
    tried: bool,
    /// Since when it leads to none; None: it leads to one.
    down_ms: Option<u64>,
    /// Given up: its place is free.
    free: bool,
}

/// What to do with a connection to a node that has just said who it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meeting {
    Use,
    /// This way, which was told, goes: the new one leads to the same node and was given.
    Replace(usize),
    /// Not to be used now.
    TurnAway(&'static str),
}

/// A node to connect to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unmet {
    pub key: NodeKey,
    pub address: String,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    ways: Vec<NodeWay>,
}

impl Nodes {
    pub(super) fn given(addresses: &[String], now_ms: u64) -> Self {
        let mut nodes = Self::default();
        for address in addresses {
            nodes.add(address.clone(), None, now_ms);
        }
        nodes
    }

    /// The index of a new way.
    pub(super) fn add(&mut self, address: String, told: Option<NodeKey>, now_ms: u64) -> usize {
        let way =
            NodeWay { address, told, met: None, list: Vec::new(), tried: false, down_ms: Some(now_ms), free: false };
        match self.ways.iter().position(|way| way.free) {
            Some(index) => {
                self.ways[index] = way;
                index
            }
            None => {
                self.ways.push(way);
                self.ways.len() - 1
            }
        }
    }

    pub(super) fn give_up(&mut self, link: usize) {
        self.ways[link].free = true;
        self.ways[link].list.clear();
    }

    /// Whether a connection is missed: not one that was told of and never came, nor one that was turned away.
    pub(super) fn is_missed(&self, link: usize) -> bool {
        let way = &self.ways[link];
        way.told.is_none() && !self.is_doubled(link) || way.down_ms.is_none()
    }

    fn is_live(way: &NodeWay) -> bool {
        !way.free && way.down_ms.is_none()
    }

    /// Another way leads to the node that this one led to last.
    fn is_doubled(&self, link: usize) -> bool {
        let met = &self.ways[link].met;
        met.is_some()
            && self.ways.iter().enumerate().any(|(at, way)| at != link && Self::is_live(way) && way.met == *met)
    }

    /// A node has said who it is.
    pub(super) fn up(&mut self, link: usize, key: NodeKey) -> Meeting {
        let twin = (0..self.ways.len()).find(|at| {
            let way = &self.ways[*at];
            *at != link && Self::is_live(way) && way.met.as_ref() == Some(&key)
        });
        let twin_was_told = twin.is_some_and(|twin| self.ways[twin].told.is_some());
        let way = &mut self.ways[link];
        way.tried = true;
        let stranger = way.told.as_ref().is_some_and(|told| *told != key);
        let was_given = way.told.is_none();
        way.met = Some(key);
        match twin {
            _ if stranger => Meeting::TurnAway("another node answers at the address that was told"),
            None => {
                way.down_ms = None;
                Meeting::Use
            }
            Some(twin) if was_given && twin_was_told => {
                way.down_ms = None;
                Meeting::Replace(twin)
            }
            Some(_) => Meeting::TurnAway("connected to this node already"),
        }
    }

    pub(super) fn down(&mut self, link: usize, now_ms: u64) {
        let way = &mut self.ways[link];
        way.tried = true;
        way.down_ms.get_or_insert(now_ms);
    }

    /// A node has told of nodes.
    pub(super) fn told(&mut self, link: usize, mut nodes: Vec<NodeAddress>) {
        if nodes.len() > EXECUTOR_NODES {
            tracing::warn!(nodes = nodes.len(), "only {EXECUTOR_NODES} nodes are connected to");
            nodes.truncate(EXECUTOR_NODES);
        }
        self.ways[link].list = nodes;
    }

    /// Nodes that somebody tells of: what a node that is gone said counts only when nobody else of its cluster is there.
    fn wanted(&self) -> Vec<(usize, NodeKey, &str)> {
        let mut wanted: Vec<(usize, NodeKey, &str)> = Vec::new();
        for (link, way) in self.ways.iter().enumerate().filter(|(_, way)| !way.free && !way.list.is_empty()) {
            let Some(met) = &way.met else { continue };
            let others_know = || {
                let same = |other: &NodeWay| other.met.as_ref().is_some_and(|other| other.cluster == met.cluster);
                self.ways.iter().any(|other| Self::is_live(other) && !other.list.is_empty() && same(other))
            };
            if !Self::is_live(way) && others_know() {
                continue;
            }
            for node in &way.list {
                let key = NodeKey { cluster: met.cluster, name: node.node.clone() };
                if wanted.iter().all(|(_, known, _)| *known != key) {
                    wanted.push((link, key, &node.address));
                }
            }
        }
        wanted
    }

    /// Nodes that no way leads to. None before every address that was given has been tried: it may lead there.
    pub(super) fn unmet(&self, now_ms: u64) -> Vec<Unmet> {
        if self.ways.iter().any(|way| !way.free && way.told.is_none() && !way.tried) {
            return Vec::new();
        }
        let free = EXECUTOR_NODES.saturating_sub(self.ways.iter().filter(|way| !way.free).count());
        let unmet = self.wanted().into_iter().filter_map(|(teller, key, address)| {
            let address = as_reached(&self.ways[teller].address, address);
            let leads_there = |way: &NodeWay| {
                let back_soon = way.down_ms.is_none_or(|since| now_ms.saturating_sub(since) < SAME_ADDRESS_MS);
                way.told.as_ref() == Some(&key)
                    || way.met.as_ref() == Some(&key) && back_soon
                    // An address that leads elsewhere now leads there no more.
                    || way.address == address && way.met.as_ref().is_none_or(|met| *met == key)
            };
            let is_met = self.ways.iter().any(|way| !way.free && leads_there(way));
            (!is_met).then_some(Unmet { key, address })
        });
        unmet.take(free).collect()
    }

    /// Ways that were told and lead nowhere: their node left the list, or is reached by another way.
    pub(super) fn spare(&self) -> Vec<usize> {
        let wanted = self.wanted();
        let is_spare = |(link, way): &(usize, &NodeWay)| {
            let Some(told) = way.told.as_ref().filter(|_| !way.free && way.down_ms.is_some()) else { return false };
            let listed = wanted.iter().any(|(_, key, _)| key == told);
            let reached = self
                .ways
                .iter()
                .enumerate()
                .any(|(at, other)| at != *link && Self::is_live(other) && other.met.as_ref() == Some(told));
            !listed || reached
        };
        self.ways.iter().enumerate().filter(is_spare).map(|(link, _)| link).collect()
    }
}

/// A told address with the scheme of the address over which it was told.
fn as_reached(teller: &str, address: &str) -> String {
    match teller.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://{address}"),
        None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> NodeKey {
        NodeKey { cluster: 1, name: name.to_owned() }
    }
    fn list(nodes: &[(&str, &str)]) -> Vec<NodeAddress> {
        let node =
            |(node, address): &(&str, &str)| NodeAddress { node: (*node).to_owned(), address: (*address).to_owned() };
        nodes.iter().map(node).collect()
    }
    fn given(addresses: &[&str]) -> Nodes {
        Nodes::given(&addresses.iter().map(|address| (*address).to_owned()).collect::<Vec<_>>(), 0)
    }
    fn unmet(nodes: &Nodes, now_ms: u64) -> Vec<(String, String)> {
        nodes.unmet(now_ms).into_iter().map(|unmet| (unmet.key.name, unmet.address)).collect()
    }
    fn pair(name: &str, address: &str) -> (String, String) {
        (name.to_owned(), address.to_owned())
    }

    #[test]
    fn told_nodes_are_connected_to_as_the_teller_is_and_dropped_when_they_left_and_are_down() {
        let mut nodes = given(&["tls://one:1"]);
        assert_eq!(nodes.up(0, key("n1")), Meeting::Use);
        nodes.told(0, list(&[("n1", "10.0.0.1:1"), ("n2", "10.0.0.2:1")]));
        assert_eq!(unmet(&nodes, 0), [pair("n2", "tls://10.0.0.2:1")], "n1 is reached by the name that was given");
        let two = nodes.add("tls://10.0.0.2:1".to_owned(), Some(key("n2")), 0);
        assert_eq!(unmet(&nodes, 0), [], "once");
        assert!(!nodes.is_missed(two), "it never came");
        assert_eq!(nodes.up(two, key("n2")), Meeting::Use);
        assert!(nodes.is_missed(two));
        // It left the list and is still there: it may still have something to say.
        nodes.told(0, list(&[("n1", "10.0.0.1:1")]));
        assert!(nodes.spare().is_empty());
        nodes.down(two, 5);
        assert_eq!(nodes.spare(), [two]);
        nodes.give_up(two);
        assert!(nodes.spare().is_empty());
        // Its place is taken by the next.
        nodes.told(0, list(&[("n1", "10.0.0.1:1"), ("n3", "10.0.0.3:1")]));
        assert_eq!(nodes.add("tls://10.0.0.3:1".to_owned(), Some(key("n3")), 9), two);
        // The one that was given stays whatever the lists say.
        nodes.down(0, 10);
        assert!(nodes.spare().is_empty());
    }

    #[test]
    fn the_address_that_was_given_wins_whichever_comes_first() {
        let mut nodes = given(&["one:1", "two:1"]);
        nodes.up(0, key("n1"));
        nodes.told(0, list(&[("n1", "10.0.0.1:1"), ("n2", "10.0.0.2:1")]));
        assert_eq!(unmet(&nodes, 0), [], "two:1 may lead to n2");
        nodes.down(1, 1);
        assert_eq!(unmet(&nodes, 1), [pair("n2", "10.0.0.2:1")], "it does not");
        let told = nodes.add("10.0.0.2:1".to_owned(), Some(key("n2")), 1);
        assert_eq!(nodes.up(told, key("n2")), Meeting::Use);
        assert_eq!(nodes.up(1, key("n2")), Meeting::Replace(told));
        nodes.give_up(told);
        // It breaks: waited for at first, then the other address is tried too, in vain.
        nodes.down(1, 10);
        assert_eq!(unmet(&nodes, 10 + SAME_ADDRESS_MS - 1), []);
        assert_eq!(unmet(&nodes, 10 + SAME_ADDRESS_MS), [pair("n2", "10.0.0.2:1")]);
        let told = nodes.add("10.0.0.2:1".to_owned(), Some(key("n2")), 2_000);
        nodes.down(told, 2_001);
        assert!(nodes.spare().is_empty(), "tried again and again, since nothing else leads to it");
        assert_eq!(nodes.up(1, key("n2")), Meeting::Use);
        assert_eq!(nodes.spare(), [told]);
        assert_eq!(nodes.up(told, key("n2")), Meeting::TurnAway("connected to this node already"));
    }

    #[test]
    fn two_given_addresses_of_one_node_do_not_take_its_session_from_each_other() {
        let mut nodes = given(&["one:1", "uno:1"]);
        assert_eq!(nodes.up(0, key("n1")), Meeting::Use);
        assert_eq!(nodes.up(1, key("n1")), Meeting::TurnAway("connected to this node already"));
        nodes.down(1, 1);
        assert!(!nodes.is_missed(1), "nobody need hear of it");
        assert!(nodes.is_missed(0));
        nodes.down(0, 2);
        assert_eq!(nodes.up(1, key("n1")), Meeting::Use);
        // Of another cluster: another node.
        assert_eq!(nodes.up(0, NodeKey { cluster: 2, ..key("n1") }), Meeting::Use);
    }

    #[test]
    fn an_address_that_leads_to_another_node_than_was_told_is_not_used() {
        let mut nodes = given(&["one:1"]);
        nodes.up(0, key("n1"));
        nodes.told(0, list(&[("n1", "127.0.0.1:1"), ("n2", "127.0.0.1:1")]));
        let told = nodes.add("127.0.0.1:1".to_owned(), Some(key("n2")), 0);
        assert!(matches!(nodes.up(told, key("n1")), Meeting::TurnAway(_)));
        assert!(!nodes.is_missed(told));
    }

    #[test]
    fn every_node_that_is_there_may_tell_and_one_that_is_gone_only_when_it_is_the_only_one() {
        let mut nodes = given(&["one:1", "two:1"]);
        nodes.up(0, key("n1"));
        nodes.up(1, key("n2"));
        nodes.told(0, list(&[("n1", "one:1"), ("n3", "three:1")]));
        nodes.told(1, list(&[("n2", "two:1"), ("n4", "four:1")]));
        assert_eq!(unmet(&nodes, 0), [pair("n3", "three:1"), pair("n4", "four:1")]);
        nodes.down(0, 1);
        assert_eq!(unmet(&nodes, 1), [pair("n4", "four:1")]);
        nodes.down(1, 2);
        assert_eq!(unmet(&nodes, 2), [pair("n3", "three:1"), pair("n4", "four:1")], "better than nobody");
    }
}
