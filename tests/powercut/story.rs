//! What happened in a seed, for the message of a violation.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

/// Newest lines that are kept.
const LINES: usize = 400;

#[derive(Clone, Default)]
pub struct Story(Arc<Mutex<VecDeque<String>>>);

impl Story {
    pub fn tell(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    pub fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| format!("  {line}\n")).collect()
    }
}
