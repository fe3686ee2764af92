//! The rules, one file for each subject. A rule reads the history and adds what it finds; none depends on another's result.

pub mod acknowledged;
pub mod backfills;
pub mod causes;
pub mod dag_ends;
pub mod dags;
pub mod export;
mod facts;
pub mod hooks;
pub mod justified;
pub mod lateness;
pub mod order;
pub mod outcomes;
pub mod overlap;
pub mod payloads;
pub mod queues;
pub mod quotas;
pub mod ran;
pub mod repeats;
pub mod retries;
pub mod runs;
pub mod silence;
pub mod starts;
pub mod used;
mod windows;
