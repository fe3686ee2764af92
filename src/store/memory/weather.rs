//! Faults of a node's connection to the shared store: it is cut off, or answers do not arrive.

use super::faults::Script;
use campanile_core::ownership::store::Statement;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A kind of statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatementKind {
    /// A change of a row of ownership.
    Lwt,
    /// Rows of a lane are written or deleted.
    Lane,
    /// Of rows of ownership at SERIAL, or of a lane's, which never change: it is never stale.
    Read,
}

impl StatementKind {
    fn of(statement: &Statement) -> Self {
        match statement {
            Statement::PutSession { .. } | Statement::DropSession { .. } | Statement::PutShard { .. } => Self::Lwt,
            Statement::Append { .. } | Statement::Rewrite { .. } | Statement::DeleteRows { .. } => Self::Lane,
            Statement::ReadSession { .. }
            | Statement::ReadShard { .. }
            | Statement::ReadShards
            | Statement::ReadLane { .. } => Self::Read,
        }
    }
}

/// What becomes of a statement whose answer is [`Unknown`](campanile_core::ownership::store::StoreAnswer::Unknown).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Nothing changed.
    NotApplied,
    /// It happened.
    Applied,
    /// It happens much later: at [`SharedMemory::deliver_late`](super::shared::SharedMemory::deliver_late).
    Late,
}

/// See the module's text.
#[derive(Default)]
pub struct Weather {
    /// Nothing comes through.
    pub cut: AtomicBool,
    /// The read model cannot be written; all else comes through.
    pub views_cut: AtomicBool,
    /// Every nth statement happens, and its answer is lost; 0 = none.
    pub lose_every: AtomicU64,
    statements: AtomicU64,
    script: Mutex<Script<StatementKind, Lost>>,
}

impl Weather {
    /// The `nth` statement of the kind from now (0 = the next) is lost.
    pub fn lose(&self, kind: StatementKind, nth: u64, how: Lost) {
        self.script.lock().add(kind, nth, how);
    }

    /// Counts a statement and says how it is lost.
    pub(super) fn next(&self, statement: &Statement) -> Option<Lost> {
        let scripted = self.script.lock().next(StatementKind::of(statement));
        let nth = self.statements.fetch_add(1, Ordering::Relaxed) + 1;
        let every = self.lose_every.load(Ordering::Relaxed);
        scripted.or_else(|| (every > 0 && nth.is_multiple_of(every)).then_some(Lost::Applied))
    }
}
