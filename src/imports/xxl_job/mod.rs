//! XXL-JOB: an SQL dump of `xxl_job_info`, and of `xxl_job_group` for the names of applications.
//!
//! A task becomes the job `xxl/ID`. A task with children (`child_jobid`) becomes two: the job itself, which is MANUAL, and the DAG
//! `xxl/ID/dag`, which has the schedule and runs the task and then all that follow from it.
//!
//! Files: `task` a row as a job; `action` its GLUE_TYPE; `graph` children as a DAG.

mod action;
mod graph;
mod task;

use super::{
    ImportError, Options, Place,
    draft::Drafts,
    source,
    sql::{self, Row, told, unknown_columns},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};
use task::Task;

const INFO: &str = "xxl_job_info";
const GROUP: &str = "xxl_job_group";
const COLUMNS: [&str; 26] = [
    "id",
    "job_group",
    "job_desc",
    "add_time",
    "update_time",
    "author",
    "alarm_email",
    "schedule_type",
    "schedule_conf",
    "schedule_timezone",
    "misfire_strategy",
    "executor_route_strategy",
    "executor_handler",
    "executor_param",
    "executor_block_strategy",
    "executor_timeout",
    "executor_fail_retry_count",
    "glue_type",
    "glue_source",
    "glue_remark",
    "glue_updatetime",
    "child_jobid",
    "trigger_status",
    "trigger_last_time",
    "trigger_next_time",
    "job_cron",
];

/// What rows of a dump mean beside their cells.
struct Known<'a> {
    /// Names of applications.
    groups: BTreeMap<i64, String>,
    /// The table has the column trigger_status, whose default stands for stopped.
    has_status: bool,
    options: &'a Options,
}

pub fn read(paths: &[PathBuf], options: &Options, drafts: &mut Drafts) -> Result<(), ImportError> {
    // Names are made of ids, and DAGs find their nodes by names: an id stands for one task in all files.
    let mut tasks: BTreeMap<i64, Task> = BTreeMap::new();
    for path in source::files(paths, &["sql"])? {
        file(&path, options, &mut tasks, drafts)?;
    }
    let children: BTreeSet<i64> = tasks.values().flat_map(|task| task.children.iter().copied()).collect();
    for id in tasks.keys() {
        graph::add(*id, &tasks, children.contains(id), drafts);
    }
    drafts.note(
        "tasks of the type BEAN need an executor that registers a handler of their name (docs/guides/executors.md); it finds the task's \
         parameter as params.jobParam",
    );
    drafts.note("route strategies are not kept: an executor of the pool that has room is chosen");
    drafts.note(
        "schedules of XXL-JOB use the time zone of its server: name it with --tz if this machine has another one",
    );
    Ok(())
}

fn file(
    path: &Path,
    options: &Options,
    tasks: &mut BTreeMap<i64, Task>,
    drafts: &mut Drafts,
) -> Result<(), ImportError> {
    let mut dump = sql::read(path, &|table| table == INFO || table == GROUP)?;
    let file = source::shown(path);
    if !dump.tables.contains_key(INFO) && dump.wrong.is_empty() {
        return Err(source::refused(path, format!("has no rows of {INFO}: dump this table with its data")));
    }
    told(&dump, &file, drafts);
    let rows = dump.tables.remove(INFO).unwrap_or_default();
    unknown_columns(&file, INFO, &COLUMNS, &rows, drafts);
    let has_status =
        dump.columns.get(INFO).is_some_and(|columns| columns.iter().any(|column| column == "trigger_status"));
    let known = Known { groups: groups(&dump.tables.remove(GROUP).unwrap_or_default()), has_status, options };
    for row in &rows {
        let place = Place { file: file.clone(), line: row.line };
        match task::read(row, place.clone(), &known) {
            Ok(task) if tasks.contains_key(&task.id) => {
                let advice = "import one database at a time, each with its own --tenant";
                drafts.refuse(&place, &task.origin(), "another row has the same id", advice);
            }
            Ok(task) => drop(tasks.insert(task.id, task)),
            Err((origin, reason, advice)) => drafts.refuse(&place, &origin, reason, advice),
        }
    }
    Ok(())
}

fn groups(rows: &[Row]) -> BTreeMap<i64, String> {
    rows.iter().filter_map(|row| Some((row.number("id")?, row.text("app_name")?))).collect()
}

#[cfg(test)]
mod tests;
