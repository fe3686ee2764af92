//! Permits of channels, which are beside those of their tenant: a [`Quota`](super::tenant::Quota) under a name that no tenant has, with
//! limits of the node's own. No home shard lends them or counts them.

use super::Quotas;
use campanile_schema::channel::is_of_channels;

impl Quotas {
    /// The next run of some tenant's channels is one of a backfill.
    pub fn has_back_of_channels(&self) -> bool {
        self.backs.iter().any(|index| self.quotas.get(*index).is_some_and(|quota| is_of_channels(&quota.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Borrower, *};
    use crate::tenants::TenantGauges;
    use campanile_core::{
        dispatch::target::Verdict,
        job::{Need, WaitingRun},
    };
    use campanile_schema::{
        channel::permits_of,
        ids::{JobId, RunId, SessionId},
        limits::CHANNEL_RUNS_PER_TENANT,
        stored::TenantRecord,
    };
    use std::sync::Arc;

    const TENANT: &str = "t";

    fn run_of(permits: &str, run: u64, backfill: bool) -> Box<WaitingRun> {
        Box::new(WaitingRun {
            run: RunId(run),
            job: JobId(1),
            tenant: permits.into(),
            pool: "default".into(),
            priority: 0,
            backfill,
            need: Need::Http,
            cpu: 0.0,
            memory_mb: 0,
            storage_mb: 0,
            since_ms: 0,
            target: None,
            retry: false,
        })
    }

    #[test]
    fn channels_have_permits_of_their_own_and_no_home_shard_hears_of_them() {
        let tenants = Arc::new(TenantGauges::default());
        let mut quotas = Quotas::new(tenants.clone(), Some(Borrower::new(SessionId(1), 16)));
        let channels = permits_of(TENANT);
        quotas.set(TenantRecord { tenant: TENANT.to_owned(), max_concurrent_runs: 1, ..TenantRecord::default() });
        quotas.pause(TENANT, true);
        let most = u64::from(CHANNEL_RUNS_PER_TENANT);
        for run in 1..=most + 2 {
            assert!(quotas.want(run_of(&channels, run, false)).is_none());
        }
        quotas.tick();
        assert_eq!(quotas.grant(0).len() as u64, most, "its tenant is paused, and may run one");
        let reports = quotas.reports(true, 0, |_| true);
        let told: Vec<String> = reports.into_values().flatten().map(|report| report.tenant).collect();
        assert_eq!(told, [TENANT], "the answer would be that channels have no limits");
        assert_eq!(tenants.names(), [TENANT], "lists of tenants");
        assert_eq!(tenants.levels().len(), 1, "metrics of tenants");
        quotas.ended(&channels, RunId(1), Verdict::Silent);
        assert_eq!(quotas.grant(0).len(), 1, "what ends makes room for one more");
    }

    #[test]
    fn backfills_of_channels_are_told_from_those_of_tenants() {
        let mut quotas = Quotas::new(Arc::default(), None);
        assert!(quotas.want(run_of(TENANT, 1, true)).is_none());
        quotas.tick();
        assert!(quotas.grant(0).is_empty());
        assert_eq!((quotas.has_back(), quotas.has_back_of_channels()), (true, false));
        assert!(quotas.want(run_of(&permits_of(TENANT), 2, true)).is_none());
        assert!(quotas.grant(0).is_empty());
        assert!(quotas.has_back_of_channels());
    }
}
