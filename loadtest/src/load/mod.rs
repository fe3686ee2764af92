//! Calls to a system while a run is on: jobs that are created in bulk, callers that trigger and change jobs, people who look after runs,
//! and how late the bodies of the jobs were.

pub mod bulk;
pub mod caller;
pub mod dag_people;
pub mod drive;
pub mod latency;
pub mod open_loop;
pub mod people;
pub mod stats;
pub mod targets;
