//! Removes ledger rows that retention passed, while tables are compacted anyway: no index by time is needed for them.

use super::keys;
use fjall::compaction::filter::{CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict};
use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

/// Makes the filter of a table of intervals.
pub struct LedgerRetention {
    /// Rows that end before this go.
    pub from_ms: Arc<AtomicI64>,
    /// So much later: lists of jobs need them as long as the runs that they fired.
    pub after_ms: i64,
}

struct Filter {
    from_ms: i64,
}

impl Factory for LedgerRetention {
    fn name(&self) -> &str {
        "ledger retention"
    }

    fn make_filter(&self, _context: &Context) -> Box<dyn CompactionFilter> {
        Box::new(Filter { from_ms: self.from_ms.load(Ordering::Relaxed).saturating_sub(self.after_ms) })
    }
}

impl CompactionFilter for Filter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _context: &Context) -> CompactionFilterResult {
        let past = keys::ledger_to(item.key()).is_some_and(|to| to < self.from_ms);
        Ok(if past { Verdict::Remove } else { Verdict::Keep })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{open::begin, staging::Table};
    use crate::{
        embedded::EmbeddedOptions,
        samples::{at, ledger},
        tables::Tables,
    };
    use campanile_ports::Row;

    #[test]
    fn compaction_removes_what_retention_passed_and_nothing_else() {
        let temp = tempfile::tempdir().unwrap();
        let tables = begin(&EmbeddedOptions::new(temp.path()), at(0, 0)).unwrap();
        let rows: Vec<(u64, Row)> =
            (1..=100).map(|n| (0, Row::Ledger(ledger(n % 7, n as i64 - 1, n as i64)))).collect();
        tables.apply(&rows, at(1, 1)).unwrap();
        tables.flush().unwrap();
        tables.retain(41, 10).unwrap();
        let db = tables.db().unwrap();
        let ledger = db.keyspace(Table::Ledger);
        assert_eq!(ledger.iter().count(), 100, "still on disk");
        ledger.major_compact().unwrap();
        assert_eq!(ledger.iter().count(), 60);
    }
}
