//! The audit trail: who asked for a change and why, and who was refused.
//!
//! A change carries its record to its shard, which puts it into the frame of the change. What has no frame comes here: refusals, which are
//! counted together ([`refusals`]) and written once a second, and changes without a frame, which are written before their answer
//! ([`trail`]). Which operation does what, the table of operations says.
//!
//! Never here: a decision who may do what. What a record tells was decided before.

mod refusals;
mod trail;

pub use trail::AuditTrail;

use super::{Answer, Operations, access, paging};
use campanile_ports::AuditQuery;
use campanile_schema::{
    apply::AppliedView,
    audit::{AuditBody, AuditView},
    error::{ApiError, ErrorCode},
    ids::{JobId, RunId},
    limits::{AUDIT_TARGET_BYTES, REASON_BYTES},
    operations::{self, About, Audit, AuditList, Handle, JobApply, Request, Row},
    stored::audit::{AuditRecord, CallOrigin},
    text::Text,
    trace::TraceContext,
    view::Page,
};
use campanile_security::auth::Caller;
use std::net::IpAddr;

/// Who did what nobody called for.
const NODE: &str = "node";
/// No operation: the file was changed, and the node has read it.
const TOKENS_RELOADED: &str = "tokens.reload";

/// Where a call comes from. Neither is known of what the node itself does.
#[derive(Clone, Debug, Default)]
pub struct CameFrom {
    pub address: Option<IpAddr>,
    /// The caller's, or the node's number for it.
    pub request_id: Option<String>,
    /// The caller's span; of a call that is carried out, its own.
    pub trace: Option<TraceContext>,
}

impl CameFrom {
    fn origin(&self, who: Option<&str>) -> CallOrigin {
        CallOrigin {
            who: who.map(Text::from),
            address: self.address.map(|address| Text::from(address.to_canonical().to_string())),
            request: self.request_id.as_deref().map(Text::from),
            trace: self.trace,
        }
    }
}

/// What a call is about, kept of a request that its handler takes.
#[derive(Clone, Debug, Default)]
pub(super) struct Subject {
    pub job: Option<JobId>,
    pub run: Option<RunId>,
    pub tenant: Option<Text>,
    /// A node, a target, a calendar, or a name that is none of a tenant.
    pub named: Option<Text>,
    pub reason: Option<Text>,
}

impl Subject {
    pub fn of<R: Request>(request: &R) -> Self {
        // It may be refused for its length.
        let reason = request.reason().map(|reason| cut(reason, REASON_BYTES));
        match request.about() {
            About::Job(job) => Self { job: Some(job), reason, ..Self::default() },
            About::Run(run) => Self { run: Some(run), reason, ..Self::default() },
            About::Backfill(id) => Self { named: Some(format!("backfill {id}").into()), reason, ..Self::default() },
            About::Bulk(id) => Self { named: Some(format!("bulk {id}").into()), reason, ..Self::default() },
            About::Tenant(tenant) if access::check_tenant_name(tenant).is_ok() => {
                Self { tenant: Some(tenant.into()), reason, ..Self::default() }
            }
            About::Tenant(name) => Self { named: Some(cut(name, AUDIT_TARGET_BYTES)), reason, ..Self::default() },
            About::Target { tenant, target } => {
                let tenant = access::check_tenant_name(tenant).is_ok().then(|| tenant.into());
                Self { tenant, named: Some(cut(target, AUDIT_TARGET_BYTES)), reason, ..Self::default() }
            }
            About::Calendar { tenant, calendar } => {
                let tenant = access::check_tenant_name(tenant).is_ok().then(|| tenant.into());
                Self { tenant, named: Some(cut(calendar, AUDIT_TARGET_BYTES)), reason, ..Self::default() }
            }
            About::Node(node) => Self { named: Some(cut(node, AUDIT_TARGET_BYTES)), reason, ..Self::default() },
            About::Named | About::Nothing => Self { reason, ..Self::default() },
        }
    }

    /// For the line of the log.
    fn shown(&self, row: &Row) -> String {
        let Self { job, run, tenant, named, .. } = self;
        let id = job.map(|job| job.to_string()).or_else(|| run.map(|run| run.to_string()));
        let name = tenant.as_ref().or(named.as_ref()).map(Text::to_string);
        id.or(name).unwrap_or_else(|| row.noun().to_owned())
    }
}

fn cut(text: &str, bytes: usize) -> Text {
    text[..text.floor_char_boundary(bytes)].into()
}

impl Operations {
    /// For a call that comes from there.
    #[must_use]
    pub fn called_from(&self, came_from: CameFrom) -> Self {
        Self { came_from, ..self.clone() }
    }

    /// A record of a call; who carries it out fills in the rest.
    fn record(&self, who: Option<&str>, operation: &'static str, subject: &Subject) -> AuditRecord {
        let Subject { job, run, tenant, named, reason } = subject.clone();
        AuditRecord {
            origin: self.came_from.origin(who),
            operation: Text::new_static(operation),
            target: named.or_else(|| tenant.clone()),
            tenant,
            job,
            run,
            reason,
            count: 1,
            ..AuditRecord::default()
        }
    }

    /// The same, for one call: its changes tell the caller. Only of operations whose changes do.
    pub(super) fn audited(&self, caller: &Caller, row: &Row, subject: &Subject) -> Option<Self> {
        let record = match row.audit {
            Audit::Frame | Audit::Run => self.record(Some(&caller.name), row.name, subject),
            Audit::Home | Audit::Own | Audit::No => return None,
        };
        Some(Self { scheduler: self.scheduler.audited(record), ..self.clone() })
    }

    /// What a call leaves besides what its changes carry: the line of the log, and the record of a refusal. Returns the record of a change
    /// without a frame, which is to be durable before the answer.
    pub(super) fn leave_trace<T: operations::OperationAnswer>(
        &self,
        caller: &Caller,
        row: &'static Row,
        subject: &Subject,
        answer: &Answer<T>,
    ) -> Option<AuditRecord> {
        match row.audit {
            Audit::Frame | Audit::Home | Audit::Own => log(caller, row, subject, answer.as_ref().err()),
            // The run tells it, and there are too many of them for a line each.
            Audit::Run | Audit::No => {}
        }
        match answer {
            Ok(done) if row.audit == Audit::Home => {
                let record = self.record(Some(&caller.name), row.name, subject);
                Some(AuditRecord { count: done.changes(), ..record })
            }
            Ok(_) => None,
            Err(error) => {
                self.note_refusal(Some(caller), row, subject, error);
                None
            }
        }
    }

    /// What the handler of work that goes on behind its answer leaves, at its end.
    pub(super) fn leave_own_trace<T>(&self, caller: &Caller, row: &'static Row, answer: &Answer<T>) {
        let subject = Subject::default();
        match answer {
            Ok(_) => self.trail.later(&self.scheduler, self.record(Some(&caller.name), row.name, &subject)),
            Err(error) => self.note_refusal(Some(caller), row, &subject, error),
        }
        log(caller, row, &subject, answer.as_ref().err());
    }

    /// A refusal that did not come from [`Self::call`]: of a caller who is not known, or by who serves a row in its own way. Gives the error back.
    pub fn refused(&self, caller: Option<&Caller>, row: &'static Row, error: ApiError) -> ApiError {
        self.note_refusal(caller, row, &Subject::default(), &error);
        error
    }

    /// Jobs were brought to what the files of a directory say. The node does it, and each change has a record of its own beside this one.
    pub async fn note_files(&self, caller: &Caller, dir: &str, done: &AppliedView) {
        let subject = Subject { named: Some(cut(dir, AUDIT_TARGET_BYTES)), ..Subject::default() };
        let record = self.record(Some(&caller.name), JobApply::NAME, &subject);
        let count = operations::OperationAnswer::changes(done);
        self.trail.change(&self.scheduler, AuditRecord { count, ..record }).await;
    }

    /// Other tokens are in force, because their file was changed. It says itself by whom.
    pub async fn note_tokens(&self, node: &str) {
        let subject = Subject { named: Some(cut(node, AUDIT_TARGET_BYTES)), ..Subject::default() };
        let record = self.record(Some(NODE), TOKENS_RELOADED, &subject);
        self.trail.change(&self.scheduler, record).await;
    }

    fn note_refusal(&self, caller: Option<&Caller>, row: &'static Row, subject: &Subject, error: &ApiError) {
        let of_access = matches!(error.known(), ErrorCode::Unauthenticated | ErrorCode::Forbidden);
        if !row.audit.is_kept() && !of_access {
            return;
        }
        let mut record = self.record(caller.map(|caller| caller.name.as_str()), row.name, subject);
        record.refused = Some(error.code.as_str().into());
        // Of a thing that is another tenant's, the caller's own tenant reads.
        if let Some(own) = caller.and_then(|caller| caller.tenant.as_deref()) {
            record.tenant = Some(own.into());
        }
        self.trail.refused(&self.scheduler, record);
    }
}

/// The line of the log: who did what to what, why, and whether it was done.
fn log(caller: &Caller, row: &Row, subject: &Subject, error: Option<&ApiError>) {
    let outcome = error.map_or("done", |error| error.code.as_str());
    let reason = subject.reason.as_deref();
    tracing::info!(target: "audit", caller = %caller.name, operation = row.name, subject = %subject.shown(row), reason, outcome);
}

/// Newest first; a tenant's credential sees what is about its tenant.
impl Handle<AuditList> for Operations {
    fn check(request: &AuditBody) -> Answer<()> {
        paging::page_size(request.page_size, paging::PAGE_SIZE).map(drop)
    }

    async fn handle(&self, _: &Caller, request: AuditBody) -> Answer<Page<AuditView>> {
        let size = paging::page_size(request.page_size, paging::PAGE_SIZE)?;
        let token = request.page_token.clone().filter(|token| !token.is_empty());
        self.scheduler.audit(query(request), token, size).await
    }
}

fn query(body: AuditBody) -> AuditQuery {
    let AuditBody { tenant_id, job_id, run_id, who, operation, outcome, from, to, page_token: _, page_size: _ } = body;
    AuditQuery {
        tenant: tenant_id,
        job: job_id,
        run: run_id,
        who,
        operation,
        outcome,
        from_ms: from.map_or(i64::MIN, |from| from.ms()),
        to_ms: to.map_or(i64::MAX, |to| to.ms()),
    }
}
