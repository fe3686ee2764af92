//! What names an attempt within an executor.

use campanile_schema::{
    ids::{RunId, Token},
    rpc::executor::Held,
};

/// One attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub run: RunId,
    pub token: Token,
}

impl From<&Held> for Key {
    fn from(held: &Held) -> Self {
        Self { run: held.run, token: held.token }
    }
}
