//! What is kept of a command's output: its head as it comes, its tail at the end, and a line in between that says how
//! much was left out. Memory: the tail alone, however much the command writes.

use campanile_schema::limits::{COMMAND_TAIL_BYTES, ERROR_MESSAGE_BYTES, LOG_BYTES_PER_ATTEMPT};
use std::collections::VecDeque;

/// The last `cap` bytes of a stream.
struct Tail {
    cap: usize,
    bytes: VecDeque<u8>,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(self.cap)..];
        let surplus = (self.bytes.len() + bytes.len()).saturating_sub(self.cap);
        self.bytes.drain(..surplus);
        self.bytes.extend(bytes);
    }
}

pub(super) struct Capture {
    /// Bytes of the head still free.
    head_left: usize,
    tail: Tail,
    /// Bytes that came after the head was full.
    beyond_head: u64,
    /// For the error message, independent of the cap.
    last: Tail,
    ends_with_newline: bool,
}

impl Capture {
    pub fn new(output_cap_kb: u32) -> Self {
        let cap = (output_cap_kb as usize).saturating_mul(1024).min(LOG_BYTES_PER_ATTEMPT);
        let tail = (cap / 4).min(COMMAND_TAIL_BYTES);
        Self {
            head_left: cap - tail,
            tail: Tail { cap: tail, bytes: VecDeque::new() },
            beyond_head: 0,
            last: Tail { cap: ERROR_MESSAGE_BYTES / 2, bytes: VecDeque::new() },
            ends_with_newline: true,
        }
    }

    /// Takes output; returns the part of it that is shown at once.
    pub fn push(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        self.last.push(&bytes);
        if bytes.len() > self.head_left {
            // A cut inside a character would show as rubbish on both sides.
            let inside = bytes[..=self.head_left].iter().rev().take(4).take_while(|b| (**b & 0xC0) == 0x80).count();
            let beyond = bytes.split_off(self.head_left - inside.min(3).min(self.head_left));
            self.beyond_head += beyond.len() as u64;
            self.tail.push(&beyond);
            self.head_left = 0;
        } else {
            self.head_left -= bytes.len();
        }
        if let Some(last) = bytes.last() {
            self.ends_with_newline = *last == b'\n';
        }
        bytes
    }

    /// The tail, with the line before it when bytes were left out.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut tail: Vec<u8> = std::mem::take(&mut self.tail.bytes).into();
        let mut left_out = self.beyond_head - tail.len() as u64;
        if left_out == 0 {
            return tail;
        }
        // A cut inside a character would show as rubbish.
        let cut = tail.iter().take(4).take_while(|b| (**b & 0xC0) == 0x80).count();
        tail.drain(..cut);
        left_out += cut as u64;
        let newline = if self.ends_with_newline { "" } else { "\n" };
        let mut shown = format!("{newline}[campanile: {left_out} bytes of output left out here]\n").into_bytes();
        shown.append(&mut tail);
        shown
    }

    /// The last of the output as text.
    pub fn last_output(&self) -> String {
        let (a, b) = self.last.bytes.as_slices();
        let all = [a, b].concat();
        let cut = all.iter().take(4).take_while(|b| (**b & 0xC0) == 0x80).count();
        String::from_utf8_lossy(&all[cut..]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(cap_kb: u32, chunks: &[Vec<u8>]) -> (Vec<u8>, String) {
        let mut capture = Capture::new(cap_kb);
        let mut all = Vec::new();
        for chunk in chunks {
            all.extend(capture.push(chunk.clone()));
        }
        all.extend(capture.finish());
        (all, capture.last_output())
    }

    #[test]
    fn output_up_to_the_cap_is_kept_whole() {
        let text = vec![b'x'; 1024];
        let (all, last) = shown(1, &[text[..900].to_vec(), text[900..].to_vec()]);
        assert_eq!(all, text);
        assert_eq!(last.len(), 1024);
    }

    #[test]
    fn beyond_the_cap_head_and_tail_stay_and_the_gap_is_counted() {
        let lines: Vec<Vec<u8>> = (0..1000).map(|n| format!("line {n:04}\n").into_bytes()).collect();
        let (all, last) = shown(1, &lines);
        let text = String::from_utf8_lossy(&all).into_owned();
        assert!(text.starts_with("line 0000\nline 0001\n"));
        assert!(text.ends_with("line 0999\n"));
        assert!(last.ends_with("line 0999\n"));
        // 10,000 bytes written, 1,024 kept.
        assert!(text.contains("[campanile: 8976 bytes of output left out here]\n"), "{text}");
    }

    #[test]
    fn a_cap_of_nothing_keeps_only_the_count() {
        let (all, last) = shown(0, &[b"hello\n".to_vec()]);
        assert_eq!(all, b"[campanile: 6 bytes of output left out here]\n");
        assert_eq!(last, "hello\n");
    }

    #[test]
    fn the_cap_never_passes_the_limit_of_logs() {
        let (all, _) = shown(u32::MAX, &[vec![b'x'; 3 * LOG_BYTES_PER_ATTEMPT]]);
        assert!(all.len() < LOG_BYTES_PER_ATTEMPT + 100);
    }

    #[test]
    fn a_head_ends_with_a_character() {
        for before in 0..4 {
            let (all, _) = shown(1, &["x".repeat(before).into_bytes(), "\u{4e2d}".repeat(2001).into_bytes()]);
            let text = String::from_utf8_lossy(&all).into_owned();
            assert!(!text.contains('\u{FFFD}'), "{before}: {text}");
            assert!(text.contains("bytes of output left out"));
        }
    }

    #[test]
    fn a_tail_begins_at_a_character() {
        let (all, _) = shown(1, &["é".repeat(2001).into_bytes(), b"!".to_vec()]);
        let text = String::from_utf8_lossy(&all).into_owned();
        let tail = text.rsplit("here]\n").next().unwrap_or_default();
        assert!(!tail.starts_with('\u{FFFD}'));
        assert!(tail.ends_with("é!"));
    }
}
