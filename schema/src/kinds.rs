//! Kinds of action, and sets of them: what a run needs of an executor, and what an executor can run.

use crate::job::upper_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

upper_enum!(/// What sort of thing an attempt does; one for each variant of [`crate::job::Action`] but DAG, which has no attempts.
    ActionKind {
        /// Calls a function of the executor.
        Handler = "HANDLER" = 0,
        /// Starts a process.
        Command = "COMMAND" = 1,
        /// Sends a request.
        Http = "HTTP" = 2,
    } default Handler);

/// A set of kinds, one bit for each. Matching looks into it for every executor and run, so it is a number.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Kinds(u32);

impl Kinds {
    pub const NONE: Self = Self(0);

    const fn bit(kind: ActionKind) -> u32 {
        1 << kind as u32
    }

    pub const fn has(self, kind: ActionKind) -> bool {
        self.0 & Self::bit(kind) != 0
    }

    /// The same set with this kind.
    #[must_use]
    pub const fn and(self, kind: ActionKind) -> Self {
        Self(self.0 | Self::bit(kind))
    }

    /// The same set, with this kind if the condition holds.
    #[must_use]
    pub const fn and_if(self, condition: bool, kind: ActionKind) -> Self {
        if condition { self.and(kind) } else { self }
    }

    /// In the order of their codes.
    pub fn iter(self) -> impl Iterator<Item = ActionKind> {
        ActionKind::ALL.iter().copied().filter(move |kind| self.has(*kind))
    }
}

impl FromIterator<ActionKind> for Kinds {
    fn from_iter<I: IntoIterator<Item = ActionKind>>(kinds: I) -> Self {
        kinds.into_iter().fold(Self::NONE, Self::and)
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_kinds_that_were_put_in_and_no_others() {
        for bits in 0..1 << ActionKind::ALL.len() {
            let put_in = |kind: &ActionKind| bits & 1 << kind.code() != 0;
            let kinds: Kinds = ActionKind::ALL.iter().copied().filter(put_in).collect();
            for kind in ActionKind::ALL {
                assert_eq!(kinds.has(*kind), put_in(kind), "{kind} in {kinds:?}");
            }
            assert_eq!(kinds.iter().collect::<Kinds>(), kinds);
        }
    }
}
