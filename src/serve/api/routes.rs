//! The routes: every row of the table of operations that HTTP has, with its types and its handler.

use super::{
    access, archive, audit, bulk, console, events, log, pages,
    route::{Call, Route},
    session, watching,
};
use crate::ops::Operations;
use campanile_schema::{
    audit::AuditView,
    error::{ApiError, ErrorCode},
    ids::{BackfillId, BulkId, JobId, RunId},
    job::JobSpec,
    operations::{
        BulkList, Handle, JobBackfillGet, JobFind, JobRuns, Operation, OwnRoute, Parts, Visit, all, visit_all,
    },
    view::SessionView,
};
use std::future::Future;

/// Every route there is.
pub(super) fn table() -> Vec<Route> {
    let mut table = Table(Vec::new());
    visit_all::<Operations, _>(&mut table);
    let own = all().filter_map(|row| {
        let http = row.http.ok()?;
        http.own.map(|kind| own(Route::new(row, http), kind))
    });
    table.0.extend(own);
    table.0
}

struct Table(Vec<Route>);

impl Visit<Operations> for Table {
    fn visit<O: Operation>(&mut self)
    where
        Operations: Handle<O>,
    {
        if let Ok(http) = O::ROW.http
            && http.own.is_none()
        {
            self.0.push(Route::of::<O>(http));
        }
    }
}

/// The routes that are answered in their own way.
fn own(route: Route, kind: OwnRoute) -> Route {
    const HTML: &str = "text/html; charset=utf-8";
    match kind {
        OwnRoute::JobCreateLines => route.lines::<JobSpec, bulk::BulkLine, _>(bulk::MEDIA, bulk::create),
        OwnRoute::JobWatch => route.events(watching::jobs),
        OwnRoute::JobWatchOne => route.events(watching::job),
        OwnRoute::RunLog => route.query_or_text(&["text/plain", events::MEDIA], log::log),
        OwnRoute::RunWatch => route.events(watching::runs),
        OwnRoute::RunWatchOne => route.events(watching::run),
        OwnRoute::StoreBackup => route.bytes(archive::MEDIA, archive::backup),
        OwnRoute::StoreHistory => route.bytes_of(archive::MEDIA, archive::history),
        OwnRoute::AuditExport => route.lines_of::<_, AuditView, _>(bulk::MEDIA, audit::export),
        OwnRoute::SessionOpen => route.query_or_text(&[], session::open),
        OwnRoute::SessionGet => route.query_or_text(&[], session::get),
        OwnRoute::SessionClose => route.query_or_text::<_, SessionView, _>(&[], session::close),
        OwnRoute::Root => route.console(HTML, console::root),
        OwnRoute::Asset => route.console("application/octet-stream", console::asset),
        OwnRoute::Api => route.listing(HTML, pages::api),
        OwnRoute::Errors => route.page(HTML, pages::errors),
        OwnRoute::Healthz => route.page("text/plain", pages::healthz),
        OwnRoute::Readyz => route.page("application/json", pages::readyz),
        OwnRoute::Metrics => route.metrics(pages::metrics),
        OwnRoute::Openapi => route.listing("application/json", pages::openapi),
        OwnRoute::JobSchema => route.page("application/schema+json", pages::job_schema),
    }
}

impl Call {
    fn param(&self, name: &str) -> &str {
        self.path.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Waits until the caller's token is taken back: what goes on for long ends then.
    pub(super) fn revoked(&self) -> impl Future<Output = ()> + Send + use<> {
        access::revoked(&self.shared.api, &self.headers, &self.caller)
    }
}

impl Parts for Call {
    fn job(&self) -> Result<JobId, ApiError> {
        let hint = format!("find one by name with {}?name=", JobFind::ROW.path());
        number(self.param("jobId"), "job", &hint).map(JobId)
    }

    fn run(&self) -> Result<RunId, ApiError> {
        number(self.param("runId"), "run", &format!("list a job's with {}", JobRuns::ROW.path())).map(RunId)
    }

    fn backfill(&self) -> Result<BackfillId, ApiError> {
        let hint = format!("the newest of a job is at {}", JobBackfillGet::ROW.path());
        number(self.param("backfillId"), "backfill", &hint).map(BackfillId)
    }

    fn bulk(&self) -> Result<BulkId, ApiError> {
        number(self.param("bulkId"), "bulk operation", &format!("list them with {}", BulkList::ROW.path())).map(BulkId)
    }

    fn tenant(&self) -> String {
        self.param("tenantId").to_owned()
    }

    fn target(&self) -> String {
        self.param("target").to_owned()
    }

    fn calendar(&self) -> String {
        self.param("calendar").to_owned()
    }

    fn node(&self) -> String {
        self.param("node").to_owned()
    }
}

/// Ids are numbers below 2^53, so that JSON carries them.
fn number(text: &str, what: &str, hint: &str) -> Result<u64, ApiError> {
    let id = text.parse::<u64>().ok().filter(|id| *id < 1 << 53 && text.bytes().all(|b| b.is_ascii_digit()));
    id.ok_or_else(|| {
        let shown: String = text.escape_debug().take(80).collect();
        ApiError::new(ErrorCode::NotFound, format!("there is no {what} '{shown}': ids are numbers below 2^53; {hint}"))
    })
}
