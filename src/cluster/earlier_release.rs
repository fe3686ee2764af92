//! Messages that nodes of an earlier release sent, from `tests/fixtures`: this release reads each of them.

use serde::{Serialize, de::DeserializeOwned};

const MESSAGES: &str = include_str!("../../tests/fixtures/8f373c3/messages.txt");

/// Name of the variant and bytes of each captured message of a kind; at least one.
pub fn captured(kind: &str) -> Vec<(&'static str, Vec<u8>)> {
    let messages: Vec<_> = MESSAGES
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .filter(|words| words[0] == kind)
        .map(|words| (words[1], bytes(words[2])))
        .collect();
    assert!(!messages.is_empty(), "no message of kind {kind} was captured");
    messages
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Reads all messages of a kind and writes them again: the bytes must be the same, because a release that reads less than was sent
/// would write less. A field that a later release adds is left out as long as it has its default.
pub(crate) fn are_read<T: DeserializeOwned + Serialize>(kind: &str, write: impl Fn(&T) -> Vec<u8>) {
    for (name, bytes) in captured(kind) {
        let message: T = rmp_serde::from_slice(&bytes).unwrap_or_else(|error| panic!("{kind} {name}: {error}"));
        let again = write(&message);
        assert_eq!(again, bytes, "{kind} {name} is written differently");
    }
}
