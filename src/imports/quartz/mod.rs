//! Quartz: XML of the `job_scheduling_data` schema, and SQL dumps of the `QRTZ_` tables.
//!
//! Each trigger becomes a job, because a job here has one schedule. The Java class becomes the name of a handler, which an executor has to
//! register. Cron expressions keep their dialect, and their instants around a change of the clock.
//!
//! Files: `model` jobs and triggers as Quartz has them; `xml` and `dump` read them; `meaning` makes drafts of them.

mod dump;
mod meaning;
mod model;
mod xml;

use super::{ImportError, Options, draft::Drafts, source};
use std::path::PathBuf;

pub fn read(paths: &[PathBuf], options: &Options, drafts: &mut Drafts) -> Result<(), ImportError> {
    for path in source::files(paths, &["xml", "sql"])? {
        let found = if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("xml")) {
            xml::read(&path, options, drafts)?
        } else {
            dump::read(&path, options, drafts)?
        };
        meaning::drafts(found, options, drafts);
    }
    drafts.note(
        "the Java classes do not run here: an executor has to register a handler with the name of each class (docs/guides/executors.md), or \
         change the job's action",
    );
    Ok(())
}

#[cfg(test)]
mod tests;
