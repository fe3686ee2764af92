//! Story 1 with real programs and a real CQL server: two nodes, which are killed in turn, and an executor of its own process. Ignored by
//! default and run by `make test-cql`; `story_01` has it in one process.

use crate::{
    migrate_cql::{Process, cassandra, member, ok},
    program::{self, eventually},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    net::{TcpListener, UdpSocket},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A node of the cluster, at the same ports whenever it runs.
struct Member {
    home: PathBuf,
    cql: String,
    name: String,
    http: String,
    rpc: String,
    gossip: String,
    gateway: String,
    process: Option<Process>,
}

fn free() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

impl Member {
    fn new(home: &Path, cql: &str, name: &str) -> Self {
        let gossip = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let (home, cql, name) = (home.to_owned(), cql.to_owned(), name.to_owned());
        Self { home, cql, name, http: free(), rpc: free(), gossip, gateway: free(), process: None }
    }

    /// `seed`: another node, if there is one.
    fn start(&mut self, seed: Option<&str>) {
        let child = member(&self.home, &self.cql)
            .envs(seed.map(|seed| ("CAMPANILE_CLUSTER__SEEDS", seed)))
            .args(["server", "--http", &self.http, "--rpc", &self.rpc, "--data"])
            .arg(self.home.join(&self.name))
            .arg("--token-file")
            .arg(self.home.join("tokens"))
            .env("CAMPANILE_NODE__NAME", &self.name)
            .env("CAMPANILE_CLUSTER__GOSSIP_LISTEN", &self.gossip)
            .env("CAMPANILE_CLUSTER__GATEWAY_LISTEN", &self.gateway)
            .stdout(Stdio::piped())
            .spawn();
        let mut process = Process(child.unwrap());
        let mut line = String::new();
        BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("http="), "{line}");
        self.process = Some(process);
    }

    /// As by `kill -9`.
    fn kill(&mut self) {
        self.process = None;
    }
}

/// Asks whichever node answers, as one does behind a load balancer.
struct Cluster<'c> {
    nodes: [&'c str; 2],
    token: &'c str,
}

impl Cluster<'_> {
    fn call(&self, args: &[&str]) -> Option<Value> {
        let call = |http: &&str| {
            let output = program::campanile()
                .args(args)
                .args(["-o", "json"])
                .env("CAMPANILE_SERVER", format!("http://{http}"))
                .env("CAMPANILE_API_TOKEN", self.token)
                .output()
                .unwrap();
            output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
        };
        self.nodes.iter().find_map(call)
    }

    fn runs(&self, job: &str) -> Option<Vec<Value>> {
        self.call(&["job", "runs", job])?["items"].as_array().cloned()
    }

    fn until(&self, run: &str, state: &str) -> Value {
        eventually(&format!("run {run} is {state}"), || {
            self.call(&["run", "get", run]).filter(|view| view["state"] == state)
        })
    }

    fn made(&self, home: &Path, spec: &Value) {
        let file = home.join("job.json");
        std::fs::write(&file, spec.to_string()).unwrap();
        eventually("it is created", || self.call(&["job", "create", file.to_str().unwrap()]));
    }
}

fn job(home: &Path, name: &str, body: &str) -> Value {
    let shell = format!("echo {name} >> {}; {body}", home.join("began").display());
    let retry = json!({"maxAttempts": 2, "backoff": "FIXED", "baseDelaySec": 0.1, "jitter": 0});
    let action = json!({"kind": "COMMAND", "command": ["/bin/sh", "-c", shell]});
    json!({"name": name, "trigger": {"type": "MANUAL"}, "retryPolicy": retry, "action": action})
}

fn nightly() -> Value {
    let soon = SystemTime::now() + Duration::from_secs(10);
    let second = soon.duration_since(UNIX_EPOCH).unwrap().as_secs() % 86_400;
    let expr = format!("{} {} {} * * *", second % 60, second / 60 % 60, second / 3_600);
    let node = |name: &str| json!({"id": name, "job": name});
    let edge = |from: &str, to: &str| json!({"from": from, "to": to});
    json!({
        "name": "nightly", "trigger": {"type": "CRON", "expr": expr, "dialect": "UNIX"},
        "hooks": {"onFailure": [{"job": "tell"}]},
        "action": {
            "kind": "DAG", "nodes": [node("a"), node("b"), node("c")], "edges": [edge("a", "b"), edge("b", "c")],
        },
    })
}

fn began(home: &Path) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    for name in std::fs::read_to_string(home.join("began")).unwrap_or_default().lines() {
        *count.entry(name.to_owned()).or_default() += 1;
    }
    count
}

fn until_began(home: &Path, name: &str) {
    eventually(&format!("a body of {name} runs"), || began(home).contains_key(name).then_some(()));
}

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn story_01_b_fails_at_night_and_in_the_morning_it_is_repaired_and_c_follows() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (_server, cql) = cassandra(&home.join("cassandra"));
    ok(program::campanile().args(["cluster", "new-keys", "--name", "moved"]).arg(home.join("keys")));
    ok(member(home, &cql).args(["schema", "apply"]));
    let token = |of: &[&str]| {
        let mut command: Command = program::campanile();
        command.args(["token", "new"]).args(of).arg("--append").arg(home.join("tokens"));
        ok(&mut command).lines().next().unwrap().to_owned()
    };
    let token_of_executor = token(&["--name", "box", "--role", "executor", "--pools", "default"]);
    let token = token(&["--name", "me", "--role", "operator"]);
    let mut one = Member::new(home, &cql, "n1");
    let mut two = Member::new(home, &cql, "n2");
    one.start(None);
    two.start(Some(&one.gossip));
    let seeds = [one.gossip.clone(), two.gossip.clone()];
    let (http, rpc) = ([one.http.clone(), two.http.clone()], [one.rpc.clone(), two.rpc.clone()].join(","));
    let cluster = Cluster { nodes: [&http[0], &http[1]], token: &token };
    let executor = program::campanile()
        .args(["executor", "--rpc", &rpc, "--token", &token_of_executor, "--id", "worker"])
        .stdout(Stdio::null())
        .spawn();
    let _executor = Process(executor.unwrap());
    let happens = |what: &str| std::fs::write(home.join(what), "").unwrap();
    let waits = |what: &str| format!("until [ -e {} ]; do sleep 0.05; done", home.join(what).display());
    cluster.made(home, &job(home, "a", &waits("a-may-end")));
    cluster.made(home, &job(home, "b", &format!("test -e {}", home.join("repaired").display())));
    cluster.made(home, &job(home, "c", &waits("c-may-end")));
    cluster.made(home, &job(home, "tell", "true"));
    cluster.made(home, &nightly());

    // At two. Both nodes die, one after the other, while A runs and when B has failed.
    until_began(home, "a");
    let run = eventually("the run", || cluster.runs("nightly")?.pop())["runId"].to_string();
    one.kill();
    happens("a-may-end");
    one.start(Some(&seeds[1]));
    cluster.until(&run, "FAILED");
    two.kill();
    two.start(Some(&seeds[0]));
    let told = eventually("somebody is told", || cluster.runs("tell")?.pop().filter(|told| told["state"] == "SUCCESS"));
    assert_eq!(told["params"]["run"]["runId"].to_string(), run);
    assert!(!began(home).contains_key("c"));

    // In the morning.
    happens("repaired");
    let of_b = eventually("the run of B", || cluster.runs("b")?.pop())["runId"].to_string();
    eventually("it is retried", || {
        // Asked again, it says that the node has not ended.
        cluster.call(&["run", "retry", &of_b, "--reason", "the disk has room again"]);
        cluster.call(&["run", "get", &run]).filter(|view| view["generation"] == 2)
    });
    one.kill();
    one.start(Some(&seeds[1]));
    until_began(home, "c");
    two.kill();
    happens("c-may-end");
    two.start(Some(&seeds[0]));
    cluster.until(&run, "SUCCESS");
    let bodies = [("a", 1), ("b", 3), ("c", 1), ("tell", 1)].map(|(name, count)| (name.to_owned(), count));
    assert_eq!(began(home), BTreeMap::from(bodies));
}
