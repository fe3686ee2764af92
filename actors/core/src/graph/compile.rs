//! From the callers' form of a DAG to what its runs work with. All checks are made here, once: a graph that compiles has no cycle, no
//! edge to a missing node, no template and no condition that is not understood, and is within every limit.
//!
//! Messages name fields relative to the DAG (`nodes[3].rule`); who calls puts the place of the DAG before them. Jobs of nodes are
//! names here. Whether they exist is for the caller to check, and for the job's shard when the node starts.

use super::{
    condition::Condition,
    fields::{FieldPath, Fields},
    order::{self, Links},
    template::{ParamsTemplate, Reference},
};
use crate::{names::check_name, reject::Rejection};
use campanile_schema::{
    error::ErrorCode,
    graph::{GraphSpec, StoredEdge, StoredGraph, StoredNode, state::NodeRule},
    limits,
    shape::shortened,
    stored::deadline::StoredDeadline,
    text::Text,
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// A DAG that was checked. Nodes and edges are named by their place in the stored form.
#[derive(Debug)]
pub struct Graph {
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<GraphEdge>,
    pub fail_fast: bool,
    pub max_parallel: u32,
    links: Links,
    /// Nodes, each behind all of its parents.
    order: Vec<u32>,
    /// Place of a node in `order`.
    position: Vec<u32>,
    /// Nodes by their ids.
    places: HashMap<Text, u32>,
}

/// A node that was checked.
#[derive(Debug)]
pub struct GraphNode {
    pub id: Text,
    /// Name of the job.
    pub job: Text,
    pub rule: NodeRule,
    pub timeout_sec: Option<u64>,
    pub deadline: Option<StoredDeadline>,
    pub params: ParamsTemplate,
    /// What other nodes and the conditions behind it read of its result.
    pub fields: Fields,
}

/// An edge that was checked.
#[derive(Debug)]
pub struct GraphEdge {
    pub from: u32,
    pub to: u32,
    pub condition: Option<Arc<Condition>>,
}

fn invalid(message: impl Into<String>) -> Rejection {
    Rejection::new(ErrorCode::InvalidArgument, message)
}

/// Checks a caller's DAG: its stored form, and the same compiled.
pub fn prepare(spec: &GraphSpec) -> Result<(StoredGraph, Graph), Rejection> {
    let given = campanile_schema::frame::encode(spec).len();
    if given > limits::GRAPH_SPEC_BYTES {
        let message =
            format!("the DAG takes {given} bytes as it was written; at most {} are allowed", limits::GRAPH_SPEC_BYTES);
        return Err(Rejection::new(ErrorCode::BodyTooLarge, message));
    }
    let stored = stored(spec)?;
    let size = stored.encoded_bytes();
    if size > limits::GRAPH_BYTES {
        let message = format!("the DAG takes {size} bytes; at most {} are allowed", limits::GRAPH_BYTES);
        return Err(Rejection::new(ErrorCode::BodyTooLarge, message));
    }
    let graph = Graph::compile(&stored)?;
    Ok((stored, graph))
}

/// Nodes by their places instead of their ids.
fn stored(spec: &GraphSpec) -> Result<StoredGraph, Rejection> {
    check_counts(spec.nodes.len(), spec.edges.len())?;
    let places: HashMap<&str, u32> = spec.nodes.iter().map(|node| node.id.as_str()).zip(0..).collect();
    let place_of = |at: usize, field: &str, id: &str| {
        let unknown = || invalid(format!("edges[{at}].{field}: there is no node '{}'", shortened(id)));
        places.get(id).copied().ok_or_else(unknown)
    };
    let node = |node: &campanile_schema::graph::NodeSpec| StoredNode {
        id: node.id.as_str().into(),
        job: node.job.as_str().into(),
        params: node.params.clone(),
        rule: node.rule,
        timeout_sec: node.timeout_sec,
        deadline: node.deadline.as_ref().and_then(|deadline| deadline.stored().ok()),
    };
    let edge = |(at, edge): (usize, &campanile_schema::graph::EdgeSpec)| {
        let (from, to) = (place_of(at, "from", &edge.from)?, place_of(at, "to", &edge.to)?);
        Ok(StoredEdge { from, to, when: edge.when.as_deref().map(Text::from) })
    };
    Ok(StoredGraph {
        nodes: spec.nodes.iter().map(node).collect(),
        edges: spec.edges.iter().enumerate().map(edge).collect::<Result<_, Rejection>>()?,
        fail_fast: spec.fail_fast,
        max_parallel: spec.max_parallel,
        timeout_sec: spec.timeout_sec,
    })
}

fn check_counts(nodes: usize, edges: usize) -> Result<(), Rejection> {
    if !(1..=limits::GRAPH_NODES).contains(&nodes) {
        return Err(invalid(format!("a DAG has 1 to {} nodes; this one has {nodes}", limits::GRAPH_NODES)));
    }
    if edges > limits::GRAPH_EDGES {
        return Err(invalid(format!("a DAG has at most {} edges; this one has {edges}", limits::GRAPH_EDGES)));
    }
    Ok(())
}

impl Graph {
    /// Compiles a stored DAG, whose bytes may be damaged or written by another release: it is checked as a new one is.
    pub fn compile(stored: &StoredGraph) -> Result<Self, Rejection> {
        check_counts(stored.nodes.len(), stored.edges.len())?;
        if !(1..=limits::GRAPH_PARALLEL_MAX).contains(&stored.max_parallel) {
            return Err(invalid(format!("maxParallel must be 1 to {}", limits::GRAPH_PARALLEL_MAX)));
        }
        if stored.timeout_sec.is_some_and(|seconds| !(1..=limits::SECONDS_MAX).contains(&seconds)) {
            return Err(invalid(format!("timeoutSec must be 1 to {}", limits::SECONDS_MAX)));
        }
        check_edges(stored)?;
        let pairs: Vec<(u32, u32)> = stored.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        let links = Links::new(stored.nodes.len(), &pairs);
        let order = order::topological(&links).map_err(|cycle| {
            let ids: Vec<&str> = cycle.iter().map(|node| stored.nodes[*node as usize].id.as_str()).collect();
            Rejection::new(ErrorCode::DagCycle, format!("the edges make a cycle: {}", order::cycle_text(&ids)))
        })?;
        let mut position = vec![0; order.len()];
        for (at, node) in (0..).zip(&order) {
            position[*node as usize] = at;
        }
        let mut nodes = stored
            .nodes
            .iter()
            .enumerate()
            .map(|(at, node)| compiled(at, node, links.parents(at as u32).is_empty()))
            .collect::<Result<Vec<_>, _>>()?;
        let edges = conditions(stored)?;
        let places = places(&nodes)?;
        read_fields(&mut nodes, &edges, &links, &order, &places)?;
        let StoredGraph { fail_fast, max_parallel, .. } = *stored;
        Ok(Self { nodes, edges, fail_fast, max_parallel, links, order, position, places })
    }

    /// Nodes, each behind all of its parents; the same for the same stored form.
    pub fn order(&self) -> &[u32] {
        &self.order
    }
    /// Place of a node in [`Graph::order`].
    pub fn position(&self, node: u32) -> u32 {
        self.position[node as usize]
    }
    /// The edges that end at a node, each with the node where it begins.
    pub fn parents(&self, node: u32) -> &[order::Link] {
        self.links.parents(node)
    }
    /// The edges that begin at a node, each with the node where it ends.
    pub fn children(&self, node: u32) -> &[order::Link] {
        self.links.children(node)
    }
    pub fn node(&self, node: u32) -> &GraphNode {
        &self.nodes[node as usize]
    }
    /// Place of the node with this id.
    pub fn find(&self, id: &str) -> Option<u32> {
        self.places.get(id).copied()
    }
}

fn check_edges(stored: &StoredGraph) -> Result<(), Rejection> {
    let mut seen = HashSet::with_capacity(stored.edges.len());
    for (at, edge) in stored.edges.iter().enumerate() {
        for place in [edge.from, edge.to] {
            if place as usize >= stored.nodes.len() {
                return Err(invalid(format!("edges[{at}]: there is no node with the number {place}")));
            }
        }
        if !seen.insert((edge.from, edge.to)) {
            let id = |place: u32| &stored.nodes[place as usize].id;
            let (from, to) = (id(edge.from), id(edge.to));
            return Err(invalid(format!("edges[{at}]: the edge from '{from}' to '{to}' is there twice")));
        }
    }
    Ok(())
}

fn compiled(at: usize, node: &StoredNode, root: bool) -> Result<GraphNode, Rejection> {
    let of = |field: &str, why: &str| invalid(format!("nodes[{at}].{field}: {why}"));
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !(1..=limits::NODE_ID_CHARS).contains(&node.id.len()) || !node.id.chars().all(fits) {
        let id = shortened(&node.id);
        return Err(of("id", &format!("'{id}' must be 1 to {} letters, digits, _ or -", limits::NODE_ID_CHARS)));
    }
    check_name(&node.job).map_err(|refused| of("job", &refused.message))?;
    if node.timeout_sec.is_some_and(|seconds| !(1..=limits::SECONDS_MAX).contains(&seconds)) {
        return Err(of("timeoutSec", &format!("it must be 1 to {}", limits::SECONDS_MAX)));
    }
    if !node.params.is_object() {
        return Err(of("params", "write an object of names and values"));
    }
    if node.params.len() > limits::PARAMS_BYTES {
        return Err(of("params", &format!("they take more than {} bytes", limits::PARAMS_BYTES)));
    }
    match node.rule {
        NodeRule::AnySuccess | NodeRule::AnyFailed if root => {
            return Err(of("rule", &format!("{} waits for a parent, and no edge leads to this node", node.rule)));
        }
        NodeRule::AllSuccess
        | NodeRule::AllDone
        | NodeRule::AnySuccess
        | NodeRule::AnyFailed
        | NodeRule::NoneFailed => {}
    }
    Ok(GraphNode {
        id: node.id.clone(),
        job: node.job.clone(),
        rule: node.rule,
        timeout_sec: node.timeout_sec,
        deadline: node.deadline.clone(),
        params: ParamsTemplate::parse(&node.params).map_err(|why| of("params", &why))?,
        fields: Fields::default(),
    })
}

fn places(nodes: &[GraphNode]) -> Result<HashMap<Text, u32>, Rejection> {
    let mut places = HashMap::with_capacity(nodes.len());
    for (place, node) in (0u32..).zip(nodes) {
        if places.insert(node.id.clone(), place).is_some() {
            return Err(invalid(format!("nodes[{place}].id: '{}' is there twice", shortened(&node.id))));
        }
    }
    Ok(places)
}

/// Edges with their conditions. Each text is parsed once, however many edges have it.
fn conditions(stored: &StoredGraph) -> Result<Vec<GraphEdge>, Rejection> {
    let mut parsed: HashMap<&str, Arc<Condition>> = HashMap::new();
    let mut edges = Vec::with_capacity(stored.edges.len());
    let mut bytes = 0;
    for (at, edge) in stored.edges.iter().enumerate() {
        let of = |why: &str| invalid(format!("edges[{at}].when: {why}"));
        let condition = match &edge.when {
            None => None,
            Some(text) => match parsed.get(text.as_str()) {
                Some(condition) => Some(Arc::clone(condition)),
                None if parsed.len() == limits::GRAPH_CONDITIONS => {
                    return Err(of(&format!("a DAG has at most {} different conditions", limits::GRAPH_CONDITIONS)));
                }
                None if bytes + text.len() > limits::GRAPH_CONDITION_BYTES => {
                    let most = limits::GRAPH_CONDITION_BYTES;
                    return Err(of(&format!("the different conditions of a DAG take at most {most} bytes")));
                }
                None => {
                    bytes += text.len();
                    let condition = Arc::new(Condition::parse(text).map_err(|why| of(&why))?);
                    parsed.insert(text, Arc::clone(&condition));
                    Some(condition)
                }
            },
        };
        edges.push(GraphEdge { from: edge.from, to: edge.to, condition });
    }
    Ok(edges)
}

/// Which fields of which node are read. A template may read of nodes that have ended before its own node starts, so of ancestors.
fn read_fields(
    nodes: &mut [GraphNode],
    edges: &[GraphEdge],
    links: &Links,
    order: &[u32],
    places: &HashMap<Text, u32>,
) -> Result<(), Rejection> {
    let mut read: Vec<Vec<FieldPath>> = vec![Vec::new(); nodes.len()];
    for edge in edges {
        let fields = edge.condition.iter().flat_map(|condition| condition.fields());
        read[edge.from as usize].extend(fields.cloned());
    }
    let mut ancestors = None;
    for (at, node) in (0u32..).zip(nodes.iter()) {
        for reference in node.params.references() {
            let Reference::Result { node: id, field } = reference else { continue };
            let of = |why: String| invalid(format!("nodes[{at}].params: {why}"));
            let from = *places.get(id).ok_or_else(|| of(format!("there is no node '{}'", shortened(id))))?;
            let ancestors = ancestors.get_or_insert_with(|| order::Ancestors::new(links, order));
            if !ancestors.contains(at, from) {
                return Err(of(format!("no path of edges leads from '{id}', whose result it reads, to this node")));
            }
            read[from as usize].push(field.clone());
        }
    }
    for (at, (node, paths)) in nodes.iter_mut().zip(read).enumerate() {
        node.fields = Fields::new(paths);
        if node.fields.len() > limits::NODE_RESULT_FIELDS {
            let most = limits::NODE_RESULT_FIELDS;
            return Err(invalid(format!("nodes[{at}]: more than {most} different fields of its result are read")));
        }
    }
    Ok(())
}
