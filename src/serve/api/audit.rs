//! `GET /api/v1/audit/export`: the audit trail as lines of JSON, newest first, read page by page while it is sent.
//!
//! The last line is `{"end":true,"records":N}`. Without it the answer was cut off: the node stopped, the token was taken back, or the line
//! before it says what went wrong.

use super::{
    bulk::MEDIA,
    problem::Problem,
    route::{Answered, Call},
    stream,
};
use campanile_schema::{
    audit::AuditBody,
    ids::{JobId, RunId},
    limits::PAGE_SIZE_MAX,
    operations::AuditList,
    time::Timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::pin::pin;

/// Pages that wait for the caller.
const PAGES: usize = 2;

/// Which records. What is left out does not narrow.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ExportQuery {
    /// Default: the credential's own; for operators every tenant, and what is about none.
    #[serde(default)]
    tenant_id: Option<String>,
    #[serde(default)]
    job_id: Option<JobId>,
    #[serde(default)]
    run_id: Option<RunId>,
    /// Name of a credential.
    #[serde(default)]
    who: Option<String>,
    /// Name of an operation, such as `job.pause`.
    #[serde(default)]
    operation: Option<String>,
    /// `DONE`, `REFUSED` (all others), or the code of an error.
    #[serde(default)]
    outcome: Option<String>,
    /// The first millisecond that is asked for.
    #[serde(default)]
    from: Option<Timestamp>,
    /// The last one.
    #[serde(default)]
    to: Option<Timestamp>,
}

impl ExportQuery {
    fn page(&self, page_token: Option<String>) -> AuditBody {
        let Self { tenant_id, job_id, run_id, who, operation, outcome, from, to } = self;
        AuditBody {
            tenant_id: tenant_id.clone(),
            job_id: *job_id,
            run_id: *run_id,
            who: who.clone(),
            operation: operation.clone(),
            outcome: outcome.clone(),
            from: *from,
            to: *to,
            page_token,
            page_size: Some(PAGE_SIZE_MAX),
        }
    }
}

pub(super) async fn export(call: Call, query: ExportQuery) -> Answered {
    // What is refused is refused before anything is sent.
    let first = call.ops.call::<AuditList>(&call.caller, query.page(None)).await?;
    let (pieces, response) = stream::answer(MEDIA, PAGES);
    tokio::spawn(async move {
        let mut stopping = call.shared.stopping.clone();
        let revoked = call.revoked();
        let sending = async {
            let (mut page, mut records) = (first, 0);
            loop {
                records += page.items.len();
                if pieces.send(lines(&page.items).into()).await.is_err() {
                    return;
                }
                let Some(token) = page.next_page_token else { break };
                page = match call.ops.call::<AuditList>(&call.caller, query.page(Some(token))).await {
                    Ok(next) => next,
                    Err(error) => {
                        let problem = json!({"error": Problem::new(error, None)});
                        let _ = pieces.send(lines(&[problem]).into()).await;
                        return;
                    }
                };
            }
            let _ = pieces.send(lines(&[json!({"end": true, "records": records})]).into()).await;
        };
        let (sending, revoked) = (pin!(sending), pin!(revoked));
        tokio::select! {
            () = sending => (),
            () = revoked => (),
            _ = stopping.wait_for(|stopping| *stopping) => (),
        }
    });
    Ok(response)
}

fn lines<T: Serialize>(items: &[T]) -> Vec<u8> {
    let mut text = Vec::new();
    for item in items {
        // Our own types become JSON, always.
        if serde_json::to_writer(&mut text, item).is_ok() {
            text.push(b'\n');
        }
    }
    text
}
