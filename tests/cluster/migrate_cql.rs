//! `campanile store migrate` with the real program into a real CQL server, killed on its way, and a node of the cluster that goes on
//! with what was moved. Ignored by default and run by `make test-cql`.

use crate::program;

use program::{Dev, eventually};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    net::{TcpListener, UdpSocket},
    path::Path,
    process::{Child, Command, Output, Stdio},
};

const CONTACT: &str = "CAMPANILE_CQL__CONTACT_POINTS";

/// Ends with the test.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Apache Cassandra of this test's own, and its address. It ends when its stdin does, and then removes the directory.
pub fn cassandra(dir: &Path) -> (Process, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/cassandra/cassandra.sh");
    let child = Command::new(script)
        .args(["run".as_ref(), dir.as_os_str(), "1".as_ref()])
        .env("REMOVE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = Process(child.unwrap());
    let mut address = String::new();
    for line in BufReader::new(child.0.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(rest) = line.strip_prefix("node 1 ") {
            rest.split(' ').next().unwrap().clone_into(&mut address);
        }
        if line == "ready" {
            return (child, address);
        }
    }
    panic!("the server did not become ready; its script says why on stderr");
}

/// The program as a part of a cluster.
pub fn member(home: &Path, cql: &str) -> Command {
    let keys = home.join("keys");
    let mut command = program::campanile();
    command.env(CONTACT, cql).env("CAMPANILE_CQL__REPLICATION", "1").env("CAMPANILE_NODE__SHARDS", "8");
    command.env("CAMPANILE_CQL__REQUEST_TIMEOUT_MS", "10000").env("CAMPANILE_CLUSTER__LEASE_MS", "20000");
    command.env("CAMPANILE_CLUSTER__NAME", "moved").env("CAMPANILE_CLUSTER__KEY_FILE", keys.join("gossip.keys"));
    command.env("CAMPANILE_CLUSTER__TLS_CERT_FILE", keys.join("node.pem"));
    command.env("CAMPANILE_CLUSTER__TLS_KEY_FILE", keys.join("node-key.pem"));
    command.env("CAMPANILE_CLUSTER__TLS_CA_FILE", keys.join("ca.pem"));
    command
}

pub fn ok(command: &mut Command) -> String {
    let output: Output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn runs(call: impl Fn(&[&str]) -> String) -> Vec<(u64, String)> {
    let page: Value = serde_json::from_str(&call(&["job", "runs", "tick", "-o", "json"])).unwrap();
    let items = page["items"].as_array().unwrap();
    items.iter().map(|run| (run["runId"].as_u64().unwrap(), run["state"].as_str().unwrap().to_owned())).collect()
}

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn a_directory_moves_into_a_real_cluster_although_the_move_is_killed() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let dev = Dev::start(&home.join("alone"), &["--no-demo"]);
    let trigger = json!({"type": "CRON", "expr": "* * * * * *", "dialect": "UNIX"});
    let action = json!({"kind": "COMMAND", "command": ["/bin/sh", "-c", "echo moved"]});
    let (status, made) = dev.http(
        "POST",
        "/api/v1/jobs",
        Some(&json!({"name": "tick", "trigger": trigger, "action": action, "concurrencyPolicy": "ALLOW"})),
    );
    assert_eq!(status, 201, "{made}");
    let before = eventually("runs", || {
        let all = runs(|args| dev.run(args).ok());
        (all.iter().filter(|(_, state)| state == "SUCCESS").count() >= 3).then_some(all)
    });
    assert_eq!(dev.stop(), 0);
    let data = home.join("alone/node");

    let (_server, cql) = cassandra(&home.join("cassandra"));
    ok(program::campanile().args(["cluster", "new-keys", "--name", "moved"]).arg(home.join("keys")));
    let migrate = || {
        let mut command = member(home, &cql);
        command.args(["store", "migrate"]).arg(&data);
        command
    };
    let killed = migrate().env("CAMPANILE_FAULT", "point:migrate=kill:4").output().unwrap();
    assert!(!killed.status.success(), "{killed:?}");
    ok(&mut migrate());
    let refused = migrate().output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "the directory is marked: {refused:?}");

    let tokens = home.join("tokens");
    let token =
        ok(program::campanile().args(["token", "new", "--name", "me", "--role", "operator", "--append"]).arg(&tokens));
    let token = token.lines().next().unwrap().to_owned();
    let gossip = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let gateway = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let child = member(home, &cql)
        .args(["server", "--http", "127.0.0.1:0", "--rpc", "127.0.0.1:0", "--data"])
        .arg(home.join("n1"))
        .arg("--token-file")
        .arg(&tokens)
        .env("CAMPANILE_CLUSTER__GOSSIP_LISTEN", &gossip)
        .env("CAMPANILE_CLUSTER__GATEWAY_LISTEN", &gateway)
        .env("CAMPANILE_EXECUTOR__SLOTS", "4")
        .stdout(Stdio::piped())
        .spawn();
    let mut node = Process(child.unwrap());
    let mut lines = BufReader::new(node.0.stdout.take().unwrap()).lines();
    let http = lines.next().unwrap().unwrap().strip_prefix("http=").unwrap().to_owned();
    let call = |args: &[&str]| {
        program::campanile()
            .args(args)
            .env("CAMPANILE_SERVER", format!("http://{http}"))
            .env("CAMPANILE_API_TOKEN", &token)
            .output()
            .unwrap()
    };
    let after = eventually("new runs in the cluster", || {
        let output = call(&["job", "runs", "tick", "-o", "json"]);
        // Shards are being taken.
        output.status.success().then_some(())?;
        let all = runs(|_| String::from_utf8(output.stdout.clone()).unwrap());
        let new = all.iter().filter(|run| run.1 == "SUCCESS" && !before.iter().any(|(old, _)| *old == run.0)).count();
        (new >= 3).then_some(all)
    });
    for (run, state) in before.iter().filter(|(_, state)| state == "SUCCESS") {
        assert!(after.contains(&(*run, state.clone())), "run {run} is gone");
    }
    // A cluster that a node has used takes no directory.
    std::fs::remove_file(data.join("MOVED")).unwrap();
    let refused = migrate().output().unwrap();
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{why}");
    assert!(why.contains("not empty"), "{why}");
}
