//! The table of operations: the name of each operation in every interface, its request and answer, who may call it, and
//! what it leaves behind. HTTP routes, the OpenAPI document, RPC methods, the access check, the audit log, the client's
//! retries and the reference page are all made from it.
//!
//! An operation is a unit type with [`Operation`]. The server implements [`Handle`] for each of them. A missing handler
//! does not compile, because [`visit_all`] requires all. Rows of [`own`] have no handler of that kind: the code that
//! serves them answers each in its own way (streams, pages, and the messages of executors).
//!
//! Files: `row` the columns; `subject` what a request is about; `request` the types of requests and answers; `forms`
//! queries of HTTP that differ from the body in RPC; `table` the operations by area; `entries` the macros that make them; `own`
//! the other rows. `docs/HACKING.md` lists every file that a new operation needs.
//!
//! Never here: how an operation is carried out, and nothing of a server.

mod entries;
pub mod forms;
mod own;
mod refusals;
mod request;
mod row;
pub(crate) mod subject;
mod table;

pub use own::{OWN, method};
pub use request::{Body, Form, OperationAnswer, Request};
pub use row::{Audit, CallEffect, Http, HttpInput, HttpOutput, LeastRole, OwnRoute, Reason, Row, Tenant, Verb, Weight};
pub use subject::{About, Parts, Subject};
pub use table::*;

/// Rows of [`OWN`] by name, for whoever serves them.
pub mod rows {
    pub use super::own::rows::*;
}

use crate::error::ApiError;
use std::future::Future;

/// What the paths of operations in HTTP begin with.
pub const API: &str = "/api/v1";

/// An operation of callers.
pub trait Operation: 'static {
    type Request: Request;
    type Answer: OperationAnswer;
    /// What HTTP takes in query or body.
    type Form: Form<<Self::Request as Request>::Body>;
    const ROW: &'static Row;
    /// Puts the caller's key where the operation has it.
    fn keyed(_request: &mut Self::Request, _key: String) {}
}

/// Carries operations out.
pub trait Host: Sync {
    /// What it knows of a call besides the request.
    type Context: Sync;
}

/// Carries out one operation, after the dispatcher has let it in.
pub trait Handle<O: Operation>: Host {
    /// Refuses a request that is wrong by itself, before anything is looked up for it.
    fn check(_request: &O::Request) -> Result<(), ApiError> {
        Ok(())
    }
    fn handle(
        &self,
        context: &Self::Context,
        request: O::Request,
    ) -> impl Future<Output = Result<O::Answer, ApiError>> + Send;
}

/// Does something with every operation, as with each of [`visit_all`].
pub trait Visit<H> {
    fn visit<O: Operation>(&mut self)
    where
        H: Handle<O>;
}

/// Every row: operations, and those that are served in their own way.
pub fn all() -> impl Iterator<Item = &'static Row> {
    handled().chain(OWN.iter().copied())
}

/// The row of a name.
pub fn named(name: &str) -> Option<&'static Row> {
    all().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_routes_stand_once() {
        let names: BTreeSet<&str> = all().map(|row| row.name).collect();
        assert_eq!(names.len(), all().count());
        let routes: Vec<_> = all().filter_map(|row| row.http.ok()).map(|http| (http.path, http.verb)).collect();
        assert_eq!(routes.iter().collect::<BTreeSet<_>>().len(), routes.len());
        assert!(routes.iter().all(|(path, _)| path.starts_with('/')));
    }

    #[test]
    fn every_row_is_in_an_interface_and_says_what_it_does() {
        for row in all() {
            assert!(row.http.is_ok() || row.rpc.is_ok(), "{}", row.name);
            assert!(row.doc.starts_with(' '), "{}: {}", row.name, row.doc);
            assert!(row.doc.ends_with('.'), "{}: {}", row.name, row.doc);
            let reasons = [row.http.err(), row.rpc.err(), row.cli.err(), row.python.err()];
            assert!(reasons.iter().flatten().all(|reason| reason.len() > 10), "{}", row.name);
        }
    }

    /// Fills in the key of each keyed operation, and finds it in the field that the row names.
    #[test]
    fn a_key_goes_into_the_field_that_the_row_names() {
        fn field_of_the_key<O: Operation>(request: serde_json::Value) -> Option<String> {
            let mut request: O::Request = serde_json::from_value(request).unwrap();
            O::keyed(&mut request, "caller's key".to_owned());
            let sent = serde_json::to_value(&request).unwrap();
            sent.as_object().unwrap().iter().find(|(_, value)| *value == "caller's key").map(|(name, _)| name.clone())
        }
        let create = serde_json::json!({"name": "a", "trigger": {"type": "MANUAL"}});
        let seen = [
            (JobCreate::ROW, field_of_the_key::<JobCreate>(create)),
            (JobTrigger::ROW, field_of_the_key::<JobTrigger>(serde_json::json!({"jobId": 7}))),
            (DagCreate::ROW, field_of_the_key::<DagCreate>(serde_json::json!({"dagId": "d", "nodes": [7]}))),
        ];
        for (row, field) in &seen {
            assert_eq!(row.key, field.as_deref(), "{}", row.name);
        }
        assert_eq!(handled().filter(|row| row.key.is_some()).count(), seen.len());
        assert_eq!(field_of_the_key::<JobPause>(serde_json::json!({"jobId": 7})), None);
    }

    /// An operation whose row says that nothing is to be compared is for operators, or has nothing of a tenant.
    #[test]
    fn what_is_a_tenants_is_compared() {
        for row in handled().filter(|row| row.least == LeastRole::Tenant && row.tenant == Tenant::Nothing) {
            assert_eq!(row.name, "schedule.preview");
        }
        for row in handled() {
            let is_of_a_tenant = match row.subject {
                Subject::Job
                | Subject::Run
                | Subject::Backfill
                | Subject::Bulk
                | Subject::Tenant
                | Subject::Target
                | Subject::Calendar
                | Subject::Named => true,
                Subject::Node | Subject::Nothing => false,
            };
            let compared = matches!(row.tenant, Tenant::Before | Tenant::InAnswer);
            assert_eq!(compared, is_of_a_tenant, "{}", row.name);
            if row.tenant == Tenant::InAnswer {
                let of_id = matches!(row.subject, Subject::Job | Subject::Run | Subject::Backfill | Subject::Bulk);
                assert!(of_id, "{}", row.name);
                assert_eq!(row.effect, CallEffect::Read, "{}: it would be done before it is refused", row.name);
            }
        }
    }

    #[test]
    fn paths_are_filled_in() {
        assert_eq!(JobPause::ROW.path_of(17), "/api/v1/jobs/17/pause");
        assert_eq!(TenantGet::ROW.path_of("fin"), "/api/v1/tenants/fin");
        assert_eq!(JobList::ROW.path_of(17), JobList::PATH);
    }

    #[test]
    fn names_of_python_follow_from_the_name() {
        assert_eq!(JobCreateMany::ROW.python_name(), Ok("job_create_many".to_owned()));
        assert_eq!(ClockAccept::ROW.python_name(), Ok("clock_accept".to_owned()));
    }
}
