//! A DAG as text: Mermaid for documents and tickets, and plain ASCII for a terminal. With a run, nodes have their states.

use super::{compile::Graph, run::GraphRun};
use campanile_schema::graph::state::{NodeRule, NodeState};
use std::fmt::Write;

/// Characters of a condition that a drawing shows.
const CONDITION_SHOWN: usize = 40;

/// Fill colours of states in Mermaid.
const COLOURS: [(NodeState, &str); 8] = [
    (NodeState::Waiting, "#e5e7eb"),
    (NodeState::Starting, "#dbeafe"),
    (NodeState::Active, "#93c5fd"),
    (NodeState::Success, "#86efac"),
    (NodeState::Failed, "#fca5a5"),
    (NodeState::Skipped, "#fde68a"),
    (NodeState::UpstreamFailed, "#fdba74"),
    (NodeState::Canceled, "#d8b4fe"),
];

impl Graph {
    /// A Mermaid flow chart. Callers' texts appear only inside of quoted labels, with every character that means something escaped.
    pub fn mermaid(&self, run: Option<&GraphRun>) -> String {
        let mut text = "flowchart LR\n".to_owned();
        for (at, node) in self.nodes.iter().enumerate() {
            let mut label = escaped(&node.id);
            if let Some(run) = run {
                let _ = write!(label, "<br/>{}", run.node(at as u32).state());
            }
            let _ = writeln!(text, "  n{at}[\"{label}\"]");
        }
        for edge in &self.edges {
            let label = edge
                .condition
                .as_ref()
                .map_or_else(String::new, |condition| format!("|\"{}\"|", escaped(&cut(condition.text()))));
            let _ = writeln!(text, "  n{} -->{label} n{}", edge.from, edge.to);
        }
        let Some(run) = run else { return text };
        for (state, colour) in COLOURS {
            let nodes = (0..).zip(run.nodes()).filter(|(_, node)| node.state() == state);
            let nodes: Vec<String> = nodes.map(|(at, _): (usize, _)| format!("n{at}")).collect();
            if !nodes.is_empty() {
                let _ = writeln!(text, "  classDef {state} fill:{colour}\n  class {} {state}", nodes.join(","));
            }
        }
        text
    }

    /// A line for each node, layer by layer, with the nodes that it waits for. All characters are printable ASCII.
    pub fn ascii(&self, run: Option<&GraphRun>) -> String {
        let layout = self.layout();
        let mut nodes: Vec<u32> = (0..self.nodes.len() as u32).collect();
        nodes.sort_by_key(|node| (layout.places[*node as usize].layer, layout.places[*node as usize].row));
        let widest = self.nodes.iter().map(|node| node.id.len()).max().unwrap_or(0);
        let states = run.map_or(0, |run| run.nodes().iter().map(|n| n.state().as_str().len()).max().unwrap_or(0));
        let mut text = String::new();
        let mut layer = None;
        for node in nodes {
            let (place, of) = (layout.places[node as usize], self.node(node));
            if layer.replace(place.layer) != Some(place.layer) {
                let _ = writeln!(text, "layer {}", place.layer);
            }
            let mut line = format!("  [{}]{:pad$}", of.id, "", pad = widest - of.id.len());
            if let Some(run) = run {
                let _ = write!(line, "  {:states$}", run.node(node).state().as_str());
            }
            let parents: Vec<String> = self.parents(node).iter().map(|parent| self.parent(*parent)).collect();
            if !parents.is_empty() {
                let rule = if of.rule == NodeRule::default() { String::new() } else { format!("{} of ", of.rule) };
                let _ = write!(line, "  <- {rule}{}", parents.join(", "));
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }

    /// `A (when parent.result.rows > 0)`.
    fn parent(&self, parent: super::order::Link) -> String {
        let id = &self.node(parent.node).id;
        match &self.edges[parent.edge as usize].condition {
            None => id.to_string(),
            Some(condition) => format!("{id} (when {})", printable(&cut(condition.text()))),
        }
    }
}

fn cut(text: &str) -> String {
    let mut shown: String = text.chars().take(CONDITION_SHOWN).collect();
    if text.chars().nth(CONDITION_SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

/// Mermaid reads numbered entities in labels; all but letters, digits and what is surely harmless is written so.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, ' ' | '.' | '_' | '-' | '/') {
            out.push(c);
        } else {
            let _ = write!(out, "#{};", u32::from(c));
        }
    }
    out
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii() && !c.is_ascii_control() { c } else { '?' }).collect()
}
