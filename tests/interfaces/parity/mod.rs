//! One meaning in every interface: each operation is in HTTP, RPC, the command line and the Python client, or says why not; and
//! called through each of them on one node it gives the same.

mod calls;
mod page;
mod same;
mod table;

use campanile_client::{Client, ClientError};
use campanile_schema::{error::ErrorCode, operations::Row};
use std::{collections::BTreeSet, path::Path, process::Command};
use table::{NODE_COMMANDS, Reason, SEVERAL_CALLS, There, operations};

type Names = BTreeSet<String>;

fn of_the_table(column: fn(&Row) -> There) -> Names {
    let names: Vec<String> = operations().filter_map(|row| column(row).ok()).collect();
    let set: Names = names.iter().cloned().collect();
    assert_eq!(set.len(), names.len(), "a name stands twice in the table: {names:?}");
    set
}

/// What is only in one of the two, told from the side of the interface.
fn compare(interface: &str, there: &Names, column: fn(&Row) -> There) {
    let table = of_the_table(column);
    let unknown: Vec<_> = there.difference(&table).collect();
    let missing: Vec<_> = table.difference(there).collect();
    assert!(
        unknown.is_empty(),
        "{interface} has {unknown:?}: put them into the table of operations, and into the other interfaces"
    );
    assert!(
        missing.is_empty(),
        "{interface} does not have {missing:?}: add them, or say in the table of operations why not"
    );
}

#[test]
fn http_has_every_operation() {
    let document = campanile_serve::api::openapi_document();
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.values().flat_map(|path| path.as_object().unwrap().values());
    let ids = operations.map(|operation| operation["operationId"].as_str().unwrap().to_owned());
    // Pages are for people and monitoring.
    compare("HTTP", &ids.filter(|id| !id.starts_with("page.")).collect(), table::http);
}

/// A method that RPC does not know is refused with the closest that it knows, which must not be itself.
#[test]
fn rpc_has_every_operation() {
    let dir = tempfile::tempdir().unwrap();
    let dev = crate::program::Dev::start(&dir.path().join("dev"), &["--no-demo"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime.block_on(Client::connect(dev.rpc.clone(), dev.token.clone())).unwrap();
    let is_known = |name: &'static str| {
        // No request has this field, so that nothing is done.
        let nothing = serde_json::json!({"noSuchField": 1});
        match runtime.block_on(client.call::<_, serde_json::Value>(name, &nothing)) {
            Err(ClientError::Api(error)) => error.known() == ErrorCode::InvalidArgument,
            other => panic!("{name}: {other:?}"),
        }
    };
    let unknown: Vec<&str> =
        operations().filter(|row| row.rpc.is_ok() && !is_known(row.name)).map(|r| r.name).collect();
    assert!(unknown.is_empty(), "RPC does not have {unknown:?}");
    assert!(!is_known("job.explode"));
}

/// Names under `Commands:` of a help text.
fn subcommands(command: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_campanile")).args(command).arg("--help").output().unwrap();
    assert!(output.status.success(), "{command:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let listed = text.split_once("Commands:\n").unwrap_or_else(|| panic!("no commands in {text}")).1;
    let lines = listed.lines().take_while(|line| !line.is_empty());
    lines.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next().map(str::to_owned)).collect()
}

#[test]
fn the_command_line_has_every_operation() {
    let all = subcommands(&[]);
    let mut there = Names::new();
    for noun in NODE_COMMANDS {
        assert!(all.iter().any(|command| command == noun), "{noun}");
        there.extend(subcommands(&[noun]).into_iter().map(|verb| format!("{noun} {verb}")));
    }
    for (name, reason) in SEVERAL_CALLS {
        assert!(there.remove(*name), "there is no command {name} ({reason})");
    }
    compare("the command line", &there, table::cli);
}

#[test]
fn python_has_every_operation() {
    let nouns = [
        "job", "run", "dlq", "schedule", "tenant", "system", "clock", "executor", "pool", "cluster", "audit", "outbox",
        "dag", "backfill", "bulk", "target", "calendar",
    ];
    let helpers = ["run_wait", "run_log_text"];
    let mut there = Names::new();
    for file in ["calls.py", "__init__.py"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("client/python/src/campanile/client").join(file);
        let text = std::fs::read_to_string(path).unwrap();
        let names = text.lines().filter_map(|line| line.strip_prefix("    async def ")?.split('(').next());
        let calls = names.filter(|name| nouns.iter().any(|noun| name.starts_with(&format!("{noun}_"))));
        there.extend(calls.filter(|name| !helpers.contains(name)).map(str::to_owned));
    }
    compare("Python", &there, table::python);
}

/// Names of the functions that begin with `before` in these files of the Rust client.
fn rust_functions(files: &[&str], before: &str) -> Names {
    let mut there = Names::new();
    for file in files {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("client/src/caller").join(file);
        let text = std::fs::read_to_string(path).unwrap();
        let names = text.lines().filter_map(|line| line.strip_prefix(before)?.split('(').next());
        let is_name = |name: &&str| !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_lowercase());
        there.extend(names.filter(is_name).map(str::to_owned));
    }
    there
}

/// `others`: functions that are no operations of their own.
fn has_every_operation(interface: &str, there: &Names, others: &[&str]) {
    let others: Names = others.iter().map(|name| (*name).to_owned()).collect();
    let missing: Vec<_> = others.difference(there).collect();
    assert!(missing.is_empty(), "{interface} does not have {missing:?}");
    compare(interface, &there.difference(&others).cloned().collect(), table::rust);
}

#[test]
fn both_rust_clients_have_every_operation() {
    let there = rust_functions(&["calls.rs", "watch.rs"], "    pub async fn ");
    has_every_operation("the Rust client", &there, &["job_create_once", "run_wait", "next"]);
    // Calls stand in a list, one a line; watches are functions.
    let mut there = rust_functions(&["blocking.rs"], "    pub fn ");
    there.extend(rust_functions(&["blocking.rs"], "    "));
    let others = ["job_create_once", "run_wait", "connect", "connect_with", "with_timeout", "in_trace"];
    has_every_operation("the blocking Rust client", &there, &others);
}

#[test]
fn what_is_missing_says_why() {
    for row in operations() {
        let columns = [table::http(row), table::rpc(row), table::cli(row), table::python(row)];
        assert!(columns.iter().any(Result::is_ok), "{} is in no interface at all", row.name);
        let reasons: Vec<Reason> = columns.into_iter().filter_map(Result::err).collect();
        assert!(reasons.iter().all(|reason| reason.len() > 10), "{reasons:?}");
    }
}
