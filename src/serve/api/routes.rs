//! The table of all routes.

use super::{
    pages,
    route::{Call, Route},
    routes_cluster, routes_jobs, routes_runs, routes_system, watching,
};
use campanile_jobfiles::manifest;
use campanile_schema::{
    error::{ApiError, ErrorCode},
    ids::{JobId, RunId},
};

/// Every route there is.
pub(super) fn table() -> Vec<Route> {
    let mut table = routes_jobs::routes();
    table.extend(routes_runs::routes());
    table.extend(watching::routes());
    table.extend(routes_system::routes());
    table.extend(routes_cluster::routes());
    table.extend(plain_pages());
    table
}

fn plain_pages() -> Vec<Route> {
    vec![
        Route::get("/", "page.root", "What this is, with links").page("text/html; charset=utf-8", pages::root),
        Route::get("/errors", "page.errors", "Every error code and what it means")
            .page("text/html; charset=utf-8", pages::errors),
        Route::get("/healthz", "page.healthz", "The process answers").page("text/plain", pages::healthz),
        Route::get("/readyz", "page.readyz", "The node can take calls; 503 with the reasons when not")
            .page("application/json", pages::readyz)
            .errors(&[ErrorCode::NotReady]),
        Route::get("/metrics", "page.metrics", "Metrics in Prometheus' text form").metrics(pages::metrics).errors(&[
            ErrorCode::Unauthenticated,
            ErrorCode::Forbidden,
            ErrorCode::NotFound,
        ]),
        Route::get("/openapi.json", "page.openapi", "This document").page("application/json", pages::openapi),
        Route::get(manifest::SCHEMA_PATH, "page.jobSchema", "JSON Schema of manifests (kind: Job), for editors")
            .page("application/schema+json", pages::job_schema),
    ]
}

impl Call {
    fn param(&self, name: &str) -> &str {
        self.path.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// The job of the path.
    pub fn job(&self) -> Result<JobId, ApiError> {
        number(self.param("jobId"), "job", "find one by name with /api/v1/jobs/by-name?name=").map(JobId)
    }

    /// The run of the path.
    pub fn run(&self) -> Result<RunId, ApiError> {
        number(self.param("runId"), "run", "list a job's with /api/v1/jobs/{jobId}/runs").map(RunId)
    }

    /// The node of the path.
    pub fn node(&self) -> &str {
        self.param("node")
    }

    /// The tenant of the path.
    pub fn tenant(&self) -> String {
        self.param("tenantId").to_owned()
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
