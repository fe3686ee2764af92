//! Callers' methods: reads the typed params, asks `ops`, writes the answer.

use crate::ops::Operations;
use campanile_jobfiles::suggest::{closest, explained};
use campanile_schema::{
    apply::ApplyBody,
    error::{ApiError, ErrorCode},
    job::JobSpec,
    limits::RPC_LIST_WEIGHT,
    rpc::{
        calls::{CreateCall, Items, JobCall, Listed, NoBody, NodeCall, RunCall, TenantCall},
        codec::{Params, explain},
        encode::answer,
        hello::ItemResult,
        method as m,
    },
    shape::{first_misfit, shown},
    view::{
        ConfirmBody, FindBody, JobFilter, LedgerBody, LogBody, PageBody, PreviewBody, ReasonBody, ReplaceBody,
        RunGetBody, TenantBody, TenantPageBody, TriggerBody,
    },
};
use campanile_security::auth::Caller;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// How much of a connection's room a call takes besides its bytes: those that answer with lists hold large answers.
pub(super) fn weight(method: &str) -> u32 {
    match method {
        m::JOB_CREATE_MANY
        | m::JOB_PLAN
        | m::JOB_APPLY
        | m::JOB_LIST
        | m::JOB_RUNS
        | m::JOB_LEDGER
        | m::RUN_FAILED
        | m::RUN_LOG
        | m::DLQ_LIST
        | m::TENANT_LIST
        | m::EXECUTOR_LIST
        | m::POOL_LIST => RPC_LIST_WEIGHT,
        _ => 1,
    }
}

/// The params of a call as its type; the error names the field with its path and the closest known one.
pub(super) fn read<T: DeserializeOwned + JsonSchema + 'static>(params: Params<'_>) -> Result<T, ApiError> {
    let (misfit, _) = first_misfit::<T, _>(&mut rmp_serde::Deserializer::from_read_ref(params.map()?));
    if let Some(misfit) = misfit {
        let detail = serde_json::json!({"field": shown(&misfit.path)});
        return Err(ApiError::new(ErrorCode::InvalidArgument, misfit.to_string()).with_detail(detail));
    }
    let mut map = rmp_serde::Deserializer::from_read_ref(params.map()?);
    serde_path_to_error::deserialize(&mut map).map_err(|why| {
        let path = why.path().to_string();
        let told = explained(&explain(why.inner()));
        let message =
            if path == "." || told.contains(&format!("field `{path}`")) { told } else { format!("{path}: {told}") };
        ApiError::new(ErrorCode::InvalidArgument, message)
    })
}

fn done(answer: Result<(), ApiError>) -> Result<NoBody, ApiError> {
    answer.map(|()| NoBody {})
}

/// The answer of one call, encoded into `out`.
pub(super) async fn call(ops: &Operations, who: &Caller, id: u32, method: &str, params: Params<'_>, out: &mut Vec<u8>) {
    match method {
        m::JOB_CREATE => answer(
            out,
            id,
            &async {
                let call: CreateCall = read(params)?;
                ops.job_create(who, call.body, call.field).await
            }
            .await,
        ),
        m::JOB_CREATE_MANY => answer(
            out,
            id,
            &async {
                let specs: Items<JobSpec> = read(params)?;
                let items = ops.job_create_many(who, specs.items).await?.into_iter().map(ItemResult::from).collect();
                Ok(Listed { items })
            }
            .await,
        ),
        m::JOB_PLAN => answer(out, id, &async { ops.job_plan(who, read::<ApplyBody>(params)?).await }.await),
        m::JOB_APPLY => answer(out, id, &async { ops.job_apply(who, read::<ApplyBody>(params)?).await }.await),
        m::JOB_GET => answer(
            out,
            id,
            &async {
                let (job, NoBody {}) = read::<JobCall<NoBody>>(params)?.parts()?;
                ops.job_get(who, job).await
            }
            .await,
        ),
        m::JOB_FIND => answer(
            out,
            id,
            &async {
                let FindBody { name, tenant_id } = read(params)?;
                ops.job_find(who, tenant_id, name).await
            }
            .await,
        ),
        m::JOB_LIST => answer(out, id, &async { ops.job_list(who, read::<JobFilter>(params)?).await }.await),
        m::JOB_REPLACE => answer(
            out,
            id,
            &async {
                let (job, body) = read::<JobCall<ReplaceBody>>(params)?.parts()?;
                ops.job_replace(who, job, body).await
            }
            .await,
        ),
        m::JOB_DELETE => answer(
            out,
            id,
            &async {
                let (job, body) = read::<JobCall<ReasonBody>>(params)?.parts()?;
                done(ops.job_delete(who, job, body).await)
            }
            .await,
        ),
        m::JOB_PAUSE => answer(
            out,
            id,
            &async {
                let (job, body) = read::<JobCall<ReasonBody>>(params)?.parts()?;
                ops.job_pause(who, job, body).await
            }
            .await,
        ),
        m::JOB_RESUME => answer(
            out,
            id,
            &async {
                let (job, body) = read::<JobCall<ReasonBody>>(params)?.parts()?;
                ops.job_resume(who, job, body).await
            }
            .await,
        ),
        m::JOB_TRIGGER => answer(
            out,
            id,
            &async {
                let (job, body) = read::<JobCall<TriggerBody>>(params)?.parts()?;
                ops.job_trigger(who, job, body).await
            }
            .await,
        ),
        m::JOB_RUNS => answer(
            out,
            id,
            &async {
                let (job, body) = read::<JobCall<PageBody>>(params)?.parts()?;
                ops.job_runs(who, job, body).await
            }
            .await,
        ),
        m::JOB_LEDGER => answer(
            out,
            id,
            &async {
                let (job, body) = read::<JobCall<LedgerBody>>(params)?.parts()?;
                ops.job_ledger(who, job, body).await
            }
            .await,
        ),
        m::RUN_GET => answer(
            out,
            id,
            &async {
                let (run, body) = read::<RunCall<RunGetBody>>(params)?.parts()?;
                match body.wait_ms {
                    None | Some(0) => ops.run_get(who, run).await,
                    Some(wait_ms) => ops.run_wait(who, run, wait_ms).await,
                }
            }
            .await,
        ),
        m::RUN_FAILED => answer(out, id, &async { ops.run_failed(who, read::<TenantPageBody>(params)?).await }.await),
        m::RUN_CANCEL => answer(
            out,
            id,
            &async {
                let (run, body) = read::<RunCall<ReasonBody>>(params)?.parts()?;
                ops.run_cancel(who, run, body).await
            }
            .await,
        ),
        m::RUN_RETRY => answer(
            out,
            id,
            &async {
                let (run, body) = read::<RunCall<ReasonBody>>(params)?.parts()?;
                ops.run_retry(who, run, body).await
            }
            .await,
        ),
        m::RUN_CONFIRM => answer(
            out,
            id,
            &async {
                let (run, body) = read::<RunCall<ConfirmBody>>(params)?.parts()?;
                ops.run_confirm(who, run, body).await
            }
            .await,
        ),
        m::RUN_LOG => answer(
            out,
            id,
            &async {
                let (run, body) = read::<RunCall<LogBody>>(params)?.parts()?;
                ops.run_log(who, run, body).await
            }
            .await,
        ),
        m::DLQ_LIST => answer(out, id, &async { ops.dlq_list(who, read::<TenantPageBody>(params)?).await }.await),
        m::DLQ_REDRIVE => answer(
            out,
            id,
            &async {
                let (run, body) = read::<RunCall<ReasonBody>>(params)?.parts()?;
                ops.dlq_redrive(who, run, body).await
            }
            .await,
        ),
        m::DLQ_DISCARD => answer(
            out,
            id,
            &async {
                let (run, body) = read::<RunCall<ReasonBody>>(params)?.parts()?;
                done(ops.dlq_discard(who, run, body).await)
            }
            .await,
        ),
        m::SCHEDULE_PREVIEW => {
            answer(out, id, &async { ops.schedule_preview(who, read::<PreviewBody>(params)?).await }.await);
        }
        m::TENANT_GET => answer(
            out,
            id,
            &async {
                let (tenant, NoBody {}) = read::<TenantCall<NoBody>>(params)?.parts()?;
                ops.tenant_get(who, tenant).await
            }
            .await,
        ),
        m::TENANT_LIST => answer(
            out,
            id,
            &async {
                let NoBody {} = read(params)?;
                ops.tenant_list(who).await.map(|items| Listed { items })
            }
            .await,
        ),
        m::TENANT_SET => answer(
            out,
            id,
            &async {
                let (tenant, body) = read::<TenantCall<TenantBody>>(params)?.parts()?;
                ops.tenant_set(who, tenant, body).await
            }
            .await,
        ),
        m::TENANT_DELETE => answer(
            out,
            id,
            &async {
                let (tenant, body) = read::<TenantCall<ReasonBody>>(params)?.parts()?;
                done(ops.tenant_delete(who, tenant, body).await)
            }
            .await,
        ),
        m::TENANT_PAUSE => answer(
            out,
            id,
            &async {
                let (tenant, body) = read::<TenantCall<ReasonBody>>(params)?.parts()?;
                ops.tenant_pause(who, tenant, body).await
            }
            .await,
        ),
        m::TENANT_RESUME => answer(
            out,
            id,
            &async {
                let (tenant, body) = read::<TenantCall<ReasonBody>>(params)?.parts()?;
                ops.tenant_resume(who, tenant, body).await
            }
            .await,
        ),
        m::SYSTEM_PAUSE => {
            answer(out, id, &async { ops.system_pause(who, read::<ReasonBody>(params)?).await }.await);
        }
        m::SYSTEM_RESUME => {
            answer(out, id, &async { ops.system_resume(who, read::<ReasonBody>(params)?).await }.await);
        }
        m::CLOCK_ACCEPT => {
            answer(out, id, &async { done(ops.clock_accept(who, read::<ReasonBody>(params)?).await) }.await);
        }
        m::SYSTEM_INFO => answer(
            out,
            id,
            &async {
                let NoBody {} = read(params)?;
                ops.system_info(who).await
            }
            .await,
        ),
        m::EXECUTOR_LIST => answer(
            out,
            id,
            &async {
                let NoBody {} = read(params)?;
                ops.executor_list(who).await
            }
            .await,
        ),
        m::POOL_LIST => answer(
            out,
            id,
            &async {
                let NoBody {} = read(params)?;
                ops.pool_list(who).await
            }
            .await,
        ),
        m::CLUSTER_MEMBERS => answer(
            out,
            id,
            &async {
                let NoBody {} = read(params)?;
                ops.cluster_members(who).await.map(|items| Listed { items })
            }
            .await,
        ),
        m::CLUSTER_SHARDS => {
            answer(out, id, &async { ops.cluster_shards(who, read(params)?).await.map(|items| Listed { items }) }.await)
        }
        m::CLUSTER_PLAN => answer(
            out,
            id,
            &async {
                let NoBody {} = read(params)?;
                ops.cluster_plan(who).await
            }
            .await,
        ),
        m::CLUSTER_EVENTS => answer(
            out,
            id,
            &async {
                let NoBody {} = read(params)?;
                ops.cluster_events(who).await.map(|items| Listed { items })
            }
            .await,
        ),
        m::CLUSTER_CORDON | m::CLUSTER_UNCORDON => answer(
            out,
            id,
            &async {
                let (node, body) = read::<NodeCall<ReasonBody>>(params)?.parts()?;
                done(ops.cluster_cordon(who, &node, method == m::CLUSTER_CORDON, body).await)
            }
            .await,
        ),
        other => answer::<NoBody>(out, id, &Err(unknown(other))),
    }
}

fn unknown(method: &str) -> ApiError {
    let shown: String = method.chars().take(64).collect();
    let meant = closest(&shown, m::OF_CALLERS.iter().copied())
        .map(|known| format!("; did you mean {known}?"))
        .unwrap_or_default();
    ApiError::new(ErrorCode::UnknownMethod, format!("there is no method {}{meant}", shown.escape_debug()))
}
