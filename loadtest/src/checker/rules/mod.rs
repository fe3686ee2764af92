//! The rules, one file for each subject. A rule reads the history and adds what it finds; none depends on another's result.

pub mod acknowledged;
pub mod export;
pub mod justified;
pub mod outcomes;
pub mod overlap;
pub mod quotas;
pub mod ran;
pub mod repeats;
pub mod runs;
pub mod starts;
mod windows;
