//! What is asked of the audit trail, and pages of it.

use campanile_schema::{
    audit::{DONE, REFUSED},
    ids::{JobId, RunId},
    stored::audit::AuditRecord,
};

/// Which records are asked for: all that fit every part that is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditQuery {
    /// None: of every tenant, and those that are about none.
    pub tenant: Option<String>,
    pub job: Option<JobId>,
    pub run: Option<RunId>,
    pub who: Option<String>,
    pub operation: Option<String>,
    /// [`DONE`], [`REFUSED`], or an error code.
    pub outcome: Option<String>,
    /// Both included.
    pub from_ms: i64,
    pub to_ms: i64,
}

impl AuditQuery {
    /// Everything.
    pub fn all() -> Self {
        Self {
            tenant: None,
            job: None,
            run: None,
            who: None,
            operation: None,
            outcome: None,
            from_ms: i64::MIN,
            to_ms: i64::MAX,
        }
    }

    pub fn fits(&self, record: &AuditRecord) -> bool {
        let same =
            |wanted: &Option<String>, is: Option<&str>| wanted.as_deref().is_none_or(|wanted| Some(wanted) == is);
        let outcome = match (self.outcome.as_deref(), record.refused.as_deref()) {
            (None, _) | (Some(DONE), None) | (Some(REFUSED), Some(_)) => true,
            (Some(wanted), refused) => Some(wanted) == refused,
        };
        (self.from_ms..=self.to_ms).contains(&record.at_ms)
            && same(&self.tenant, record.tenant.as_deref())
            && same(&self.who, record.origin.who.as_deref())
            && same(&self.operation, Some(&record.operation))
            && self.job.is_none_or(|job| Some(job) == record.job)
            && self.run.is_none_or(|run| Some(run) == record.run)
            && outcome
    }
}

/// Records, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditPage {
    pub items: Vec<AuditRecord>,
    /// Opaque; pass it to get what follows. There may be one although the page has fewer items than asked for: a store looks at a
    /// bounded number of records.
    pub next: Option<Vec<u8>>,
}

/// A page that is being filled. Its token is time and id of the last record that was looked at.
pub struct AuditFilling<'a> {
    query: &'a AuditQuery,
    limit: usize,
    left: usize,
    last: Option<(i64, u64)>,
    page: AuditPage,
}

impl<'a> AuditFilling<'a> {
    /// At most `limit` items, out of at most `looks` records.
    pub fn new(query: &'a AuditQuery, limit: usize, looks: usize) -> Self {
        Self { query, limit: limit.max(1), left: looks.max(1), last: None, page: AuditPage::default() }
    }

    /// What lies behind a token: records before this time and id. Without a token: those up to the end of the query.
    pub fn before(query: &AuditQuery, token: Option<&[u8]>) -> (i64, u64) {
        let of = |token: &[u8]| {
            let (at, id) = token.split_first_chunk()?;
            Some((i64::from_be_bytes(*at), u64::from_be_bytes(*id.first_chunk()?)))
        };
        let end = (query.to_ms, u64::MAX);
        token.and_then(of).map_or(end, |token| token.min(end))
    }

    /// Looks at the next record, in order. False: the page ends before it.
    pub fn look(&mut self, record: AuditRecord) -> bool {
        if self.page.items.len() == self.limit || self.left == 0 {
            self.page.next = self.last.map(|(at, id)| [at.to_be_bytes(), id.to_be_bytes()].concat());
            return false;
        }
        self.left -= 1;
        self.last = Some((record.at_ms, record.id));
        if self.query.fits(&record) {
            self.page.items.push(record);
        }
        true
    }

    pub fn end(self) -> AuditPage {
        self.page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campanile_schema::stored::audit::CallOrigin;

    fn record(at_ms: i64, id: u64) -> AuditRecord {
        AuditRecord {
            id,
            at_ms,
            origin: CallOrigin { who: Some("olga".into()), ..CallOrigin::default() },
            operation: "job.pause".into(),
            tenant: Some("finance".into()),
            job: Some(JobId(7)),
            count: 1,
            ..AuditRecord::default()
        }
    }

    #[test]
    fn every_part_of_a_query_counts() {
        let record = record(50, 1);
        let refused = AuditRecord { refused: Some("423_JOB_PAUSED".into()), ..record.clone() };
        let text = |text: &str| Some(text.to_owned());
        let all = AuditQuery::all;
        let fitting = [
            all(),
            AuditQuery { tenant: text("finance"), ..all() },
            AuditQuery { job: Some(JobId(7)), ..all() },
            AuditQuery { who: text("olga"), ..all() },
            AuditQuery { operation: text("job.pause"), ..all() },
            AuditQuery { outcome: text("DONE"), ..all() },
            AuditQuery { from_ms: 50, to_ms: 50, ..all() },
        ];
        for query in fitting {
            assert!(query.fits(&record), "{query:?}");
        }
        let others = [
            AuditQuery { tenant: text("fin"), ..all() },
            AuditQuery { job: Some(JobId(8)), ..all() },
            AuditQuery { run: Some(RunId(7)), ..all() },
            AuditQuery { who: text("otto"), ..all() },
            AuditQuery { operation: text("job"), ..all() },
            AuditQuery { outcome: text("REFUSED"), ..all() },
            AuditQuery { outcome: text("423_JOB_PAUSED"), ..all() },
            AuditQuery { from_ms: 51, ..all() },
            AuditQuery { to_ms: 49, ..all() },
        ];
        for query in others {
            assert!(!query.fits(&record), "{query:?}");
        }
        for (outcome, fits) in [("DONE", false), ("REFUSED", true), ("423_JOB_PAUSED", true), ("404_NOT_FOUND", false)]
        {
            let query = AuditQuery { outcome: text(outcome), ..all() };
            assert_eq!(query.fits(&refused), fits, "{outcome}");
        }
    }

    #[test]
    fn a_page_ends_with_what_it_may_hold_or_look_at() {
        let query = AuditQuery { who: Some("otto".to_owned()), ..AuditQuery::all() };
        let all = AuditQuery::all();
        let fill = |query: &AuditQuery, limit, looks| {
            let mut filling = AuditFilling::new(query, limit, looks);
            let looked = (1..=9).rev().take_while(|at| filling.look(record(*at, 7))).count();
            (looked, filling.end())
        };
        let (looked, page) = fill(&all, 4, 99);
        assert_eq!(looked, 4);
        assert_eq!(page.items.len(), 4);
        assert_eq!(AuditFilling::before(&all, page.next.as_deref()), (6, 7));
        let (looked, page) = fill(&query, 4, 3);
        assert_eq!(looked, 3);
        assert_eq!(page.items, []);
        assert_eq!(AuditFilling::before(&query, page.next.as_deref()), (7, 7));
        let (looked, page) = fill(&all, 9, 99);
        assert_eq!(looked, 9);
        assert_eq!(page.next, None);
        let until = AuditQuery { to_ms: 5, ..all };
        assert_eq!(AuditFilling::before(&until, None), (5, u64::MAX));
    }
}
