//! Every operation of callers, and its name in each interface, from the table of operations. An operation that an interface
//! does not have says why.

use campanile_schema::operations::{self, Row};

/// Why an operation is legitimately not in an interface.
pub use campanile_schema::operations::Reason;
/// Its name there, or why it has none.
pub type There = Result<String, Reason>;

/// Rows of the table that are operations of callers: no pages, and no messages of executors.
pub fn operations() -> impl Iterator<Item = &'static Row> {
    operations::all().filter(|row| row.is_of_callers())
}

/// `operationId` of the OpenAPI document.
pub fn http(row: &Row) -> There {
    row.http.map(|_| row.name.to_owned())
}

/// Method of RPC.
pub fn rpc(row: &Row) -> There {
    row.rpc.map(|()| row.name.to_owned())
}

/// Command and subcommand.
pub fn cli(row: &Row) -> There {
    row.cli.map(str::to_owned)
}

/// Method of the Python client.
pub fn python(row: &Row) -> There {
    row.python_name()
}

/// Method of both Rust clients. A watch is ended by dropping it.
pub fn rust(row: &Row) -> There {
    if row.name == "watch.stop" {
        return Err("the watch ends when its `Changes` are dropped");
    }
    row.rpc.map(|()| snake_case(row.name))
}

fn snake_case(name: &str) -> String {
    name.chars().fold(String::new(), |mut snake, c| {
        if c == '.' || c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.extend(Some(c.to_ascii_lowercase()).filter(|c| *c != '.'));
        snake
    })
}

/// Commands under these talk to a node; all others work on this machine's files.
pub const NODE_COMMANDS: &[&str] = &[
    "job", "run", "dlq", "tenant", "system", "cluster", "audit", "outbox", "dag", "backfill", "bulk", "target",
    "calendar",
];
/// Such commands that are several calls, and so no operation of their own.
pub const SEVERAL_CALLS: &[(&str, Reason)] = &[
    ("run wait", "run.get with waitSec, again and again"),
    ("job edit", "job.get, an editor, job.replace"),
    ("bulk resume", "bulk.create with another action"),
    ("bulk trigger", "bulk.create with another action"),
    ("bulk delete", "bulk.create with another action"),
    ("bulk cancel", "bulk.create with another action"),
    ("bulk retry", "bulk.create with another action"),
    ("bulk redrive", "bulk.create with another action"),
    ("cluster new-keys", "makes files; no node is asked"),
];
