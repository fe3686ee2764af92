//! Operations on runs: lists and reads, what callers change of them, dead letters, and messages that could not be delivered.

use super::super::{
    Audit, CallEffect, Handle, Http, LeastRole, Operation, OwnRoute, Reason, Request, Row, Tenant, Visit, Weight,
    entries::{form, key_field, operations},
    forms,
    refusals::{BAD_LIST, BAD_PRIORITY, BAD_RETRY, BAD_RUN_CHANGE},
};
use crate::{
    error::ErrorCode as E,
    rpc::calls::{NoBody, RunCall},
    view::{
        ConfirmBody, DeadLetterView, LogBody, LogView, Page, PriorityBody, ReasonBody, RetryBody, RunGetBody, RunView,
        TenantPageBody,
        dag::{DagMarkBody, DagNodesBody, DagRetryBody, DagRunView},
        explain::ExplainView,
        outbox::OutboxMessageView,
        runs::{CausesBody, CausesView, DeadLettersBody, RunListBody},
    },
};

const BY_STATE: Reason = "GET /api/v1/runs?state=FAILED,TIMEOUT gives them, with other filters";

operations! {
    RunHandlers;

    /// Runs of all jobs: those that are open, newest first, then those that have ended, the last one first.
    RunList = "run.list": RunListBody => Page<RunView> {
        cli: Ok("run list"), http: Ok(Http::get("/api/v1/runs")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// FAILED and TIMEOUT runs, newest first.
    RunFailed = "run.failed": TenantPageBody => Page<RunView> {
        cli: Ok("run failed"), http: Err(BY_STATE),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// A run with its attempts; can wait for its end.
    RunGet = "run.get": RunCall<RunGetBody> => RunView, form forms::RunGetQuery {
        cli: Ok("run get"), http: Ok(Http::get("/api/v1/runs/{runId}")),
        least: LeastRole::Tenant, tenant: Tenant::InAnswer, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: BAD_LIST,
    }

    /// Why a run exists, why it is not running, why it was late.
    RunExplain = "run.explain": RunCall<NoBody> => ExplainView {
        cli: Ok("run explain"), http: Ok(Http::get("/api/v1/runs/{runId}/explain")),
        least: LeastRole::Tenant, tenant: Tenant::InAnswer, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// Cancel a run that is not final.
    RunCancel = "run.cancel": RunCall<ReasonBody> => RunView {
        cli: Ok("run cancel"), http: Ok(Http::post("/api/v1/runs/{runId}/cancel").optional_body()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RUN_CHANGE,
    }

    /// Run a final run again, as its next generation.
    RunRetry = "run.retry": RunCall<RetryBody> => RunView {
        cli: Ok("run retry"), http: Ok(Http::post("/api/v1/runs/{runId}/retry").optional_body()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RETRY,
    }

    /// Decide about a run in NEEDS_CONFIRMATION.
    RunConfirm = "run.confirm": RunCall<ConfirmBody> => RunView {
        cli: Ok("run confirm"), http: Ok(Http::post("/api/v1/runs/{runId}/confirm")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RUN_CHANGE,
    }

    /// Give a run that waits a priority of its own.
    RunPriority = "run.priority": RunCall<PriorityBody> => RunView {
        cli: Ok("run priority"), http: Ok(Http::post("/api/v1/runs/{runId}/priority")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_PRIORITY,
    }

    /// The nodes of a run of a DAG, with a layout.
    DagNodes = "dag.nodes": RunCall<DagNodesBody> => DagRunView {
        cli: Ok("dag nodes"), http: Ok(Http::get("/api/v1/runs/{runId}/nodes")),
        least: LeastRole::Tenant, tenant: Tenant::InAnswer, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: &[E::InvalidArgument, E::NotFound, E::IllegalState],
    }

    /// Run nodes of a DAG run again; what did not run because of them follows.
    DagRetry = "dag.retry": RunCall<DagRetryBody> => RunView {
        cli: Ok("dag retry"), http: Ok(Http::post("/api/v1/runs/{runId}/nodes/retry").optional_body()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RUN_CHANGE,
    }

    /// Set the state of a node of a DAG run, SUCCESS or SKIPPED; what waits for it goes on.
    DagMark = "dag.mark": RunCall<DagMarkBody> => RunView {
        cli: Ok("dag mark"), http: Ok(Http::post("/api/v1/runs/{runId}/nodes/mark")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RUN_CHANGE,
    }

    /// Pause one run of a DAG: no further node starts, and runs of nodes go on.
    DagPause = "dag.pause": RunCall<ReasonBody> => RunView {
        cli: Ok("dag pause"), http: Ok(Http::post("/api/v1/runs/{runId}/nodes/pause").optional_body()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RUN_CHANGE,
    }

    /// Resume a paused run of a DAG: nodes start again.
    DagResume = "dag.resume": RunCall<ReasonBody> => RunView {
        cli: Ok("dag resume"), http: Ok(Http::post("/api/v1/runs/{runId}/nodes/resume").optional_body()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RUN_CHANGE,
    }

    /// The output of an attempt.
    RunLog = "run.log": RunCall<LogBody> => LogView {
        cli: Ok("run log"), http: Ok(Http::get("/api/v1/runs/{runId}/log").own(OwnRoute::RunLog)),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// Dead letters, newest first.
    DlqList = "dlq.list": DeadLettersBody => Page<DeadLetterView> {
        cli: Ok("dlq list"), http: Ok(Http::get("/api/v1/dead-letters")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// Dead letters by their cause, the most frequent first.
    DlqCauses = "dlq.causes": CausesBody => CausesView {
        cli: Ok("dlq causes"), http: Ok(Http::get("/api/v1/dead-letters/causes")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// Run a dead letter again.
    DlqRedrive = "dlq.redrive": RunCall<RetryBody> => RunView {
        cli: Ok("dlq redrive"), http: Ok(Http::post("/api/v1/dead-letters/{runId}/redrive").optional_body()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RETRY,
    }

    /// Put a dead letter away; the run stays.
    DlqDiscard = "dlq.discard": RunCall<ReasonBody> => NoBody {
        cli: Ok("dlq discard"), http: Ok(Http::post("/api/v1/dead-letters/{runId}/discard").optional_body().nothing()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RUN_CHANGE,
    }

    /// Messages between jobs that wait or were given up.
    OutboxList = "outbox.list": TenantPageBody => Page<OutboxMessageView> {
        cli: Ok("outbox list"), http: Ok(Http::get("/api/v1/outbox")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// Send the messages of a run that were given up again.
    OutboxResend = "outbox.resend": RunCall<ReasonBody> => NoBody {
        cli: Ok("outbox resend"), http: Ok(Http::post("/api/v1/outbox/{runId}/resend").optional_body().nothing()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RUN_CHANGE,
    }

    /// Take the messages of a run that were given up off the list.
    OutboxDiscard = "outbox.discard": RunCall<ReasonBody> => NoBody {
        cli: Ok("outbox discard"), http: Ok(Http::post("/api/v1/outbox/{runId}/discard").optional_body().nothing()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RUN_CHANGE,
    }
}
