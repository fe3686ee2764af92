//! Where the nodes of a DAG stand in a picture: in layers from left to right, so that every edge leads to the right.
//!
//! A node's layer is the length of the longest path to it. Within the layers nodes are ordered by the mean place of their neighbours, a
//! few times to and fro, which takes most crossings out (the barycenter method of Sugiyama, Tagawa and Toda). Edges over several layers
//! are not bent around the nodes between: with 10,000 edges the places to bend them at would be more than the nodes. The same graph
//! always has the same layout.

use super::{compile::Graph, order::Link};

/// Distance of two layers, points.
pub const LAYER_POINTS: u32 = 220;
/// Distance of two nodes of a layer, points.
pub const ROW_POINTS: u32 = 80;
/// How often the layers are ordered, to and fro.
const SWEEPS: usize = 4;

/// A node's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodePosition {
    /// From 0, left to right.
    pub layer: u32,
    /// From 0 within the layer, top to bottom.
    pub row: u32,
    /// Middle of the node, points from the left.
    pub x: u32,
    /// Middle of the node, points from the top. Layers are centred on each other.
    pub y: u32,
}

/// A picture's size and the places in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// By node.
    pub places: Vec<NodePosition>,
    /// Points.
    pub width: u32,
    /// Points.
    pub height: u32,
}

impl Graph {
    /// Places for all nodes.
    pub fn layout(&self) -> Layout {
        let layer_of = self.layers();
        let count = layer_of.iter().max().map_or(0, |last| last + 1);
        let mut layers: Vec<Vec<u32>> = vec![Vec::new(); count as usize];
        for node in self.order() {
            layers[layer_of[*node as usize] as usize].push(*node);
        }
        let mut rows = vec![0f64; self.nodes.len()];
        layers.iter().for_each(|layer| number(layer, &mut rows));
        for sweep in 0..SWEEPS {
            if sweep % 2 == 0 {
                layers.iter_mut().skip(1).for_each(|layer| arrange(layer, &mut rows, |node| self.parents(node)));
            } else {
                layers.iter_mut().rev().skip(1).for_each(|layer| arrange(layer, &mut rows, |node| self.children(node)));
            }
        }
        let tallest = layers.iter().map(Vec::len).max().unwrap_or(0) as u32;
        let mut places = vec![NodePosition { layer: 0, row: 0, x: 0, y: 0 }; self.nodes.len()];
        for (layer, nodes) in (0u32..).zip(&layers) {
            let above = (tallest - nodes.len() as u32) * ROW_POINTS / 2;
            for (row, node) in (0u32..).zip(nodes) {
                let (x, y) = (layer * LAYER_POINTS + LAYER_POINTS / 2, above + row * ROW_POINTS + ROW_POINTS / 2);
                places[*node as usize] = NodePosition { layer, row, x, y };
            }
        }
        Layout { places, width: count * LAYER_POINTS, height: tallest * ROW_POINTS }
    }

    /// Length of the longest path to each node.
    fn layers(&self) -> Vec<u32> {
        let mut layers = vec![0u32; self.nodes.len()];
        for node in self.order() {
            let behind = self.parents(*node).iter().map(|parent| layers[parent.node as usize] + 1).max();
            layers[*node as usize] = behind.unwrap_or(0);
        }
        layers
    }
}

/// Rows from -1 to 1, so that layers of different lengths can be compared.
fn number(layer: &[u32], rows: &mut [f64]) {
    let count = layer.len() as f64;
    for (at, node) in layer.iter().enumerate() {
        rows[*node as usize] = (2.0 * at as f64 + 1.0) / count - 1.0;
    }
}

/// Orders a layer by the mean row of each node's neighbours on one side. A node without any keeps its row.
fn arrange<'g>(layer: &mut [u32], rows: &mut [f64], near: impl Fn(u32) -> &'g [Link]) {
    let mut wanted: Vec<(f64, u32)> = layer
        .iter()
        .map(|node| {
            let near = near(*node);
            let sum: f64 = near.iter().map(|link| rows[link.node as usize]).sum();
            let row = if near.is_empty() { rows[*node as usize] } else { sum / near.len() as f64 };
            (row, *node)
        })
        .collect();
    // Stable: nodes that want the same row stay as they are.
    wanted.sort_by(|one, other| one.0.total_cmp(&other.0));
    for (slot, (_, node)) in layer.iter_mut().zip(wanted) {
        *slot = node;
    }
    number(layer, rows);
}
