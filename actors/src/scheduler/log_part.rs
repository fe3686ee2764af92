//! What is read of a log.

/// A part of a log.
#[derive(Debug)]
pub struct LogPart {
    /// 0: the run has none so far.
    pub attempt: u32,
    /// From where it is.
    pub offset: u64,
    pub bytes: Vec<u8>,
    /// The attempt has ended, and nothing follows.
    pub end: bool,
}
