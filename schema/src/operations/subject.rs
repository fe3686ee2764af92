//! What a request is about, in the table and in a call.

use crate::{
    error::ApiError,
    ids::{BackfillId, BulkId, JobId, RunId},
};

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Job,
    Run,
    Backfill,
    Bulk,
    Tenant,
    /// A named downstream of a tenant.
    Target,
    /// A calendar of a tenant.
    Calendar,
    Node,
    /// Jobs or runs of one tenant, which the request may name (`tenantId`).
    Named,
    Nothing,
}

/// The ids that the path of an HTTP request holds, and the body of an RPC request.
pub trait Parts {
    fn job(&self) -> Result<JobId, ApiError>;
    fn run(&self) -> Result<RunId, ApiError>;
    fn backfill(&self) -> Result<BackfillId, ApiError>;
    fn bulk(&self) -> Result<BulkId, ApiError>;
    fn tenant(&self) -> String;
    fn target(&self) -> String;
    fn calendar(&self) -> String;
    fn node(&self) -> String;
}

/// What one request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About<'a> {
    Job(JobId),
    Run(RunId),
    Backfill(BackfillId),
    Bulk(BulkId),
    Tenant(&'a str),
    Target {
        tenant: &'a str,
        target: &'a str,
    },
    Calendar {
        tenant: &'a str,
        calendar: &'a str,
    },
    Node(&'a str),
    /// Jobs or runs of one tenant, which the request may name (`tenantId`).
    Named,
    Nothing,
}
