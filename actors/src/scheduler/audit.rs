//! The audit trail: a scheduler that knows for whom it works, records of what has no frame, and the list.

use super::{
    Scheduler,
    jobs::clamp_page,
    runs::{parse_token, token},
    unavailable,
};
use crate::{
    ask::ask, call_error::CallError, calls::ShardCall, handles::SessionHandles, record_id::new_record_id,
    tenants::home_of,
};
use campanile_ports::AuditQuery;
use campanile_schema::{
    audit::AuditView,
    error::Answer,
    format::AUDIT_FORMAT,
    ids::{ShardId, shard_of_slot},
    stored::audit::{AuditRecord, CallOrigin},
    view::Page,
};
use std::{collections::BTreeMap, sync::Arc};

/// The slot whose shard keeps what is about no tenant.
const OPERATORS_SLOT: u64 = 0;

fn home(record: &AuditRecord, shards: u16) -> ShardId {
    record.tenant.as_deref().map_or_else(|| shard_of_slot(OPERATORS_SLOT, shards), |tenant| home_of(tenant, shards))
}

impl Scheduler {
    /// The same for one call: what it changes goes into the audit trail with this record, and a run that it makes tells its caller.
    #[must_use]
    pub fn audited(&self, record: AuditRecord) -> Self {
        Self { inner: self.inner.clone(), record: Some(Arc::new(record)) }
    }

    /// With this reason in the record, unless the caller gave none.
    pub(super) fn because(&self, reason: Option<String>) -> Self {
        let record = self.record.as_deref().map(|record| {
            let reason = reason.map(Into::into).or_else(|| record.reason.clone());
            Arc::new(AuditRecord { reason, ..record.clone() })
        });
        Self { inner: self.inner.clone(), record }
    }

    /// A change on its way to its shard, with the record. Without one where nobody asked, or where the format has no place for it yet.
    pub(super) fn with_record(&self, handles: &SessionHandles, call: ShardCall) -> ShardCall {
        match self.record.as_deref().filter(|_| handles.in_use.event() >= AUDIT_FORMAT) {
            Some(record) => {
                let record = AuditRecord { id: new_record_id(), ..record.clone() };
                ShardCall::Audited { record: Box::new(record), call: Box::new(call) }
            }
            None => call,
        }
    }

    /// For whom it works.
    pub(super) fn caller(&self) -> Option<Arc<CallOrigin>> {
        self.record.as_ref().map(|record| Arc::new(record.origin.clone()))
    }

    /// Keeps records of what no frame tells, in the home shards of their tenants. Returns those that could not be kept, for the next try: a
    /// record that is kept twice is there once. Where the format has no place for records, they are in the log only.
    pub async fn keep_audit(&self, records: Vec<AuditRecord>) -> Vec<AuditRecord> {
        let Ok(handles) = self.handles() else { return records };
        if handles.in_use.event() < AUDIT_FORMAT {
            return Vec::new();
        }
        let mut shards: BTreeMap<ShardId, Vec<AuditRecord>> = BTreeMap::new();
        for record in records {
            shards.entry(home(&record, handles.identity.shards)).or_default().push(record);
        }
        let mut left = Vec::new();
        for (shard, records) in shards {
            match ask::<()>(&handles.client, shard, ShardCall::Audit(records.clone())).await {
                Ok(()) | Err(CallError::UnknownCall) => {}
                Err(_) => left.extend(records),
            }
        }
        left
    }

    /// Newest first.
    pub async fn audit(
        &self,
        query: AuditQuery,
        page_token: Option<String>,
        page_size: usize,
    ) -> Answer<Page<AuditView>> {
        let handles = self.handles()?;
        let after = page_token.as_deref().map(parse_token).transpose()?;
        handles.client.projector.shows_all().await;
        let page = handles.views.audit(query, after, clamp_page(page_size)).await.map_err(|e| unavailable(&e))?;
        Ok(Page {
            items: page.items.iter().map(AuditView::from).collect(),
            next_page_token: page.next.as_deref().map(token),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_about_no_tenant_has_a_home_too() {
        let of = |tenant: Option<&str>| AuditRecord { tenant: tenant.map(Into::into), ..AuditRecord::default() };
        assert_eq!(home(&of(None), 16), shard_of_slot(0, 16));
        assert_eq!(home(&of(Some("finance")), 16), home_of("finance", 16));
    }
}
