//! Runs by what an executor must have to take them.

use campanile_core::job::{Need, Waiting};
use campanile_schema::text::Text;

/// Commands, requests and handlers of a pool wait apart: executors of one kind must not be blocked by runs of another.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Class {
    pub pool: Text,
    pub kind: Kind,
}

/// What an executor must have to take a run of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Handlers,
    Commands,
    Http,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Handlers, Self::Commands, Self::Http];

    /// What an executor of the kind does, for people.
    pub fn does(self) -> &'static str {
        match self {
            Self::Handlers => "has handlers",
            Self::Commands => "runs commands",
            Self::Http => "runs HTTP actions",
        }
    }
}

impl Class {
    pub fn of(run: &Waiting) -> Self {
        let kind = match run.need {
            Need::Handler(_) => Kind::Handlers,
            Need::Command => Kind::Commands,
            Need::Http => Kind::Http,
        };
        Self { pool: run.pool.clone(), kind }
    }
}
