//! The nodes that may start, in the order in which they should.

/// A set of places in the order of a graph, one bit each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready(Vec<u64>);

impl Ready {
    pub fn new(nodes: usize) -> Self {
        Self(vec![0; nodes.div_ceil(64)])
    }

    pub fn set(&mut self, place: u32, ready: bool) {
        let (word, bit) = (place as usize / 64, 1u64 << (place % 64));
        if ready {
            self.0[word] |= bit;
        } else {
            self.0[word] &= !bit;
        }
    }

    /// The first one. At most sixteen words are looked at.
    pub fn first(&self) -> Option<u32> {
        let word = self.0.iter().position(|word| *word != 0)?;
        Some(word as u32 * 64 + self.0[word].trailing_zeros())
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
    pub fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}
