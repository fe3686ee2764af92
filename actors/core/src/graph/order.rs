//! Edges in both directions, the topological order, cycles, and who comes before whom.

/// An edge seen from one of its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The node at the other end.
    pub node: u32,
    pub edge: u32,
}

/// Links of all nodes in one direction, those of a node in one piece.
#[derive(Debug)]
struct Side {
    starts: Vec<u32>,
    links: Vec<Link>,
}

impl Side {
    fn new(nodes: usize, pairs: &[(u32, u32)], near: impl Fn(&(u32, u32)) -> (u32, u32)) -> Self {
        let mut starts = vec![0u32; nodes + 1];
        for pair in pairs {
            starts[near(pair).0 as usize + 1] += 1;
        }
        for at in 0..nodes {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut links = vec![Link { node: 0, edge: 0 }; pairs.len()];
        for (edge, pair) in (0..).zip(pairs) {
            let (at, node) = near(pair);
            links[next[at as usize] as usize] = Link { node, edge };
            next[at as usize] += 1;
        }
        Self { starts, links }
    }

    fn of(&self, node: u32) -> &[Link] {
        let at = node as usize;
        &self.links[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// The edges of a graph in both directions.
#[derive(Debug)]
pub struct Links {
    nodes: u32,
    parents: Side,
    children: Side,
}

impl Links {
    /// `pairs`: from and to of each edge, all of them below `nodes`.
    pub fn new(nodes: usize, pairs: &[(u32, u32)]) -> Self {
        let parents = Side::new(nodes, pairs, |(from, to)| (*to, *from));
        let children = Side::new(nodes, pairs, |(from, to)| (*from, *to));
        Self { nodes: nodes as u32, parents, children }
    }
    pub fn parents(&self, node: u32) -> &[Link] {
        self.parents.of(node)
    }
    pub fn children(&self, node: u32) -> &[Link] {
        self.children.of(node)
    }
}

/// Every node behind all of its parents (Kahn's algorithm; nodes that become free together stay in their order). The error is a
/// cycle: each of its nodes once, in the direction of the edges, the lowest first.
pub fn topological(links: &Links) -> Result<Vec<u32>, Vec<u32>> {
    let mut open: Vec<usize> = (0..links.nodes).map(|node| links.parents(node).len()).collect();
    let mut order: Vec<u32> = (0..links.nodes).filter(|node| open[*node as usize] == 0).collect();
    let mut at = 0;
    while at < order.len() {
        for child in links.children(order[at]) {
            open[child.node as usize] -= 1;
            if open[child.node as usize] == 0 {
                order.push(child.node);
            }
        }
        at += 1;
    }
    if order.len() == links.nodes as usize { Ok(order) } else { Err(cycle(links, &open)) }
}

/// Every node that is left has a parent that is left, so going from parent to parent ends in a cycle.
fn cycle(links: &Links, open: &[usize]) -> Vec<u32> {
    let left = |node: u32| open[node as usize] > 0;
    let mut seen = vec![false; open.len()];
    let mut path: Vec<u32> = (0..links.nodes).filter(|node| left(*node)).take(1).collect();
    while let Some(last) = path.last().copied() {
        if seen[last as usize] {
            break;
        }
        seen[last as usize] = true;
        path.extend(links.parents(last).iter().map(|parent| parent.node).find(|parent| left(*parent)));
    }
    let closing = path.pop();
    let begin = path.iter().position(|node| Some(*node) == closing).unwrap_or(0);
    let mut cycle = path.split_off(begin);
    cycle.reverse();
    let lowest = (0..cycle.len()).min_by_key(|at| cycle[*at]).unwrap_or(0);
    cycle.rotate_left(lowest);
    cycle
}

/// Nodes of a cycle that a message names, count.
const CYCLE_NAMED: usize = 16;

/// `B -> C -> B`; of a long cycle the beginning and the last node.
pub fn cycle_text(ids: &[&str]) -> String {
    let first = ids.first().copied().unwrap_or_default();
    if ids.len() <= CYCLE_NAMED {
        return format!("{} -> {first}", ids.join(" -> "));
    }
    let last = ids.last().copied().unwrap_or_default();
    let named = ids[..CYCLE_NAMED - 1].join(" -> ");
    format!("{named} -> ... -> {last} -> {first} ({} nodes)", ids.len())
}

/// For each node, all nodes from which a path of edges leads to it: one bit for each pair.
pub struct Ancestors {
    words: usize,
    bits: Vec<u64>,
}

impl Ancestors {
    pub fn new(links: &Links, order: &[u32]) -> Self {
        let words = order.len().div_ceil(64);
        let mut bits = vec![0u64; words * order.len()];
        for node in order {
            let to = *node as usize * words;
            for parent in links.parents(*node) {
                let from = parent.node as usize * words;
                for word in 0..words {
                    bits[to + word] |= bits[from + word];
                }
                bits[to + parent.node as usize / 64] |= 1 << (parent.node % 64);
            }
        }
        Self { words, bits }
    }

    pub fn contains(&self, node: u32, ancestor: u32) -> bool {
        self.bits[node as usize * self.words + ancestor as usize / 64] >> (ancestor % 64) & 1 == 1
    }
}
