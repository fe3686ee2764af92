//! Load in addition to the usual one, for scenarios in which shards move under pressure.

use super::{ChaosArgs, scenario::LoadShape};
use crate::{
    load::{caller::Caller, open_loop},
    workload::{self, Plan},
};
use campanile_schema::{
    ids::JobId,
    job::{ConcurrencyPolicy, JobSpec, Trigger},
    payload::Payload,
    view::TenantBody,
};
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};
use tokio::task::JoinSet;

/// From the first act to the moment at which the herd is due, milliseconds: the dead node's shards are nobody's then.
const HERD_MS: i64 = 1_500;
/// Jobs that are paused, resumed or deleted all the time, and how many of them at once.
const RACING: (u64, usize) = (96, 12);
/// What a tenant without restraint asks for: jobs without a schedule, triggers of them and creates a second, and its bodies, milliseconds.
const HOSTILE: (u64, f64, f64, u64) = (20, 150.0, 10.0, 200);

/// Limits of tenants that a load stands under.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Bodies at once.
    pub quotas: BTreeMap<String, u32>,
    /// Runs a second.
    pub rates: BTreeMap<String, f64>,
}

pub fn limits(load_shape: Option<LoadShape>) -> Limits {
    let (tight, metered) = (workload::TIGHT, workload::METERED);
    match load_shape {
        Some(LoadShape::Limited) => {
            Limits { quotas: [(tight.0.to_owned(), tight.1)].into(), rates: [(metered.0.to_owned(), metered.1)].into() }
        }
        Some(LoadShape::Herd | LoadShape::Racing | LoadShape::Hostile) | None => Limits::default(),
    }
}

/// Before the first job, so that no run is older than its limit.
async fn set(limits: Limits, caller: &Caller) -> Result<(), String> {
    let quotas = limits
        .quotas
        .into_iter()
        .map(|(tenant, max_concurrent_runs)| (tenant, TenantBody { max_concurrent_runs, ..TenantBody::default() }));
    let rates = limits
        .rates
        .into_iter()
        .map(|(tenant, max_triggers_per_sec)| (tenant, TenantBody { max_triggers_per_sec, ..TenantBody::default() }));
    for (tenant, limit) in quotas.chain(rates) {
        caller.client().tenant_set(&tenant, limit).await.map_err(|e| format!("tenant {tenant} gets no limit: {e}"))?;
    }
    Ok(())
}

/// Its jobs, once they are there.
pub struct PlannedLoad {
    load_shape: LoadShape,
    plan: Plan,
    jobs: Vec<JobId>,
    patience_sec: u32,
}

/// Creates the jobs.
pub async fn gather(
    load_shape: LoadShape,
    args: &ChaosArgs,
    usual: &Plan,
    acts_ms: i64,
    caller: &Caller,
) -> Result<PlannedLoad, String> {
    set(limits(Some(load_shape)), caller).await?;
    let named = |prefix: &str| Plan { prefix: prefix.to_owned(), ..usual.clone() };
    let (plan, specs) = match load_shape {
        LoadShape::Herd => {
            let due_ms = acts_ms + HERD_MS;
            let plan = Plan { jobs: args.herd, start_ms: due_ms, end_ms: due_ms, ..named("herd") };
            let specs = workload::even_once(&plan);
            (plan, specs)
        }
        LoadShape::Racing => {
            let plan = Plan { jobs: RACING.0, rate: RACING.0 as f64, ..named("racing") };
            let specs = workload::even(&plan);
            (plan, specs)
        }
        LoadShape::Hostile => {
            let plan = Plan { jobs: HOSTILE.0, tenant: "hostile".to_owned(), ..named("hostile") };
            let specs = (0..plan.jobs).map(|n| by_hand(&plan, n)).collect();
            (plan, specs)
        }
        LoadShape::Limited => {
            let plan = named("limited");
            let mut specs = workload::limited(&plan);
            specs.iter_mut().for_each(|spec| workload::patient(spec, args.patience_sec()));
            (plan, specs)
        }
    };
    let wanted = specs.len();
    let jobs: Vec<JobId> = caller.create_many(&specs).await.into_iter().flatten().collect();
    if jobs.len() < wanted {
        return Err(format!("only {} of {wanted} jobs of the load_shape were created", jobs.len()));
    }
    Ok(PlannedLoad { load_shape, plan, jobs, patience_sec: args.patience_sec() })
}

fn by_hand(plan: &Plan, n: u64) -> JobSpec {
    let mut spec = JobSpec::new(&plan.tenant, &format!("{}/{n:07}", plan.prefix), Trigger::Manual {});
    spec.executor_selector.clone_from(&plan.pool);
    spec.concurrency_policy = ConcurrencyPolicy::Allow;
    spec.params = Payload(format!("{{\"bodyMs\":{}}}", HOSTILE.3));
    spec
}

impl PlannedLoad {
    pub fn jobs(&self) -> &[JobId] {
        &self.jobs
    }

    /// Its calls, until the plan's end.
    pub fn start(self, calls: &mut JoinSet<()>, caller: &Caller, created: &Arc<Mutex<Vec<JobId>>>) {
        let Self { load_shape, plan, jobs, patience_sec } = self;
        let (end_ms, seed) = (plan.end_ms, plan.seed);
        match load_shape {
            LoadShape::Herd | LoadShape::Limited => {}
            LoadShape::Racing => {
                for (n, part) in jobs.chunks(jobs.len().div_ceil(RACING.1)).enumerate() {
                    let (caller, part, seed) = (caller.clone(), part.to_vec(), seed + n as u64);
                    calls.spawn(open_loop::pauses(caller, part, end_ms, seed));
                }
            }
            LoadShape::Hostile => {
                let hands = caller.clone();
                calls.spawn(async move {
                    let _ = open_loop::triggers(hands, jobs, HOSTILE.1, end_ms, seed ^ 0x686f_7374).await;
                });
                let more = Plan { prefix: "hostile-more".to_owned(), ..plan };
                calls.spawn(open_loop::creates(caller.clone(), more, HOSTILE.2, Arc::clone(created), move |spec| {
                    workload::patient(spec, patience_sec)
                }));
            }
        }
    }
}
