//! The token file of a node that runs: tokens are exchanged and taken back, and what is open with them ends. The page that tells how is typed.

use crate::program::{Done, campanile, eventually, run};
use campanile_client::{Client, Executor, JobError};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// A node with a token file; ended with the test.
pub(crate) struct Node {
    child: Child,
    pub http: String,
    pub rpc: String,
}

impl Node {
    pub fn start(home: &Path) -> Self {
        let mut command = campanile();
        command.args([
            "server",
            "--http",
            "127.0.0.1:0",
            "--rpc",
            "127.0.0.1:0",
            "--data",
            "data",
            "--token-file",
            "tokens",
        ]);
        let mut child = command.current_dir(home).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut setting = |name: &str| lines.next().unwrap().unwrap().strip_prefix(name).unwrap().to_owned();
        let (http, rpc) = (setting("http="), setting("rpc="));
        Self { child, http, rpc }
    }

    /// The body of a page.
    fn page(&self, path: &str, token: &str) -> String {
        let mut stream = TcpStream::connect(&self.http).unwrap();
        let bearer = if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{bearer}\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn new_token(home: &Path, args: &str) -> Done {
    let mut command = campanile();
    command.args(["token", "new"]).args(args.split(' ')).args(["--append", "tokens"]).current_dir(home);
    Done::new(&command.output().unwrap())
}

pub(crate) fn token(home: &Path, args: &str) -> String {
    new_token(home, args).ok().trim().to_owned()
}

/// The file without the first line that begins like this.
pub(crate) fn without(home: &Path, start: &str) {
    let path = home.join("tokens");
    let text = fs::read_to_string(&path).unwrap();
    let at = text.find(start).unwrap();
    let end = at + text[at..].find('\n').unwrap() + 1;
    fs::write(&path, format!("{}{}", &text[..at], &text[end..])).unwrap();
}

#[test]
fn append_refuses_what_the_node_would_refuse_and_writes_nothing() {
    let home = tempfile::tempdir().unwrap();
    token(home.path(), "--name box --role executor --pools a,b");
    let second = new_token(home.path(), "--name box --role executor --pools a,b");
    assert!(second.err.contains("second token of its name"), "{second:?}");
    let before = fs::read_to_string(home.path().join("tokens")).unwrap();
    for (args, says) in [
        ("--name box --role executor --pools a,b", "has 2 tokens already"),
        ("--name box --role operator", "with another role, tenant or pools"),
    ] {
        let refused = new_token(home.path(), args).refused(2);
        assert!(refused.contains(says), "{refused}");
        assert!(refused.contains("nothing was added"), "{refused}");
    }
    assert_eq!(fs::read_to_string(home.path().join("tokens")).unwrap(), before);
    // A file that is wrong already is named, also by `config check`.
    fs::write(home.path().join("tokens"), "rubbish\n").unwrap();
    assert!(new_token(home.path(), "--name x --role operator").refused(2).contains("line 1"));
    let config = home.path().join("campanile.toml");
    fs::write(&config, format!("[auth]\ntoken_file = \"{}\"\n", home.path().join("tokens").display())).unwrap();
    assert!(run(&["config", "check", config.to_str().unwrap()]).refused(2).contains("line 1"));
}

#[test]
fn a_token_that_is_taken_back_loses_its_connections_and_its_successor_keeps_them() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let operator = token(home, "--name me --role operator");
    let old = token(home, "--name box --role executor --pools default");
    let kept = token(home, "--name other --role executor --pools default");
    let scraper = token(home, "--name prometheus --role metrics");
    let node = Node::start(home);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let _entered = runtime.enter();
    let executor = |token: &str| {
        let builder = Executor::builder(node.rpc.clone(), token).pool("default").slots(1);
        builder
            .any_handler(|_, _: campanile_schema::payload::Payload| async { Ok::<_, JobError>(None) })
            .build()
            .unwrap()
            .start()
    };
    let (first, other) = (executor(&old), executor(&kept));
    for executor in [&first, &other] {
        runtime.block_on(executor.wait_until(|status| status.registered == 1)).unwrap();
    }
    let metric = |name: &str| {
        let text = node.page("/metrics", &scraper);
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok())
    };
    eventually("the file is in force", || (metric("campanile_token_file_in_force") == Some(1.0)).then_some(()));
    assert_eq!(metric("campanile_executor_claims_refused_total"), Some(0.0), "before the first one");
    assert_eq!(metric("campanile_cql_requests_total{kind=\"lease\"}"), Some(0.0), "with each label");

    // The successor comes, then the old one goes.
    let new = token(home, "--name box --role executor --pools default");
    let second = executor(&new);
    runtime.block_on(second.wait_until(|status| status.registered == 1)).unwrap();
    without(home, "box ");
    let gone = runtime.block_on(first.wait_until(|status| status.registered == 0));
    assert!(gone.is_none_or(|status| status.registered == 0));
    assert_eq!((second.status().registered, other.status().registered), (1, 1), "theirs stay");

    // A slip takes nothing back, and is said.
    let right = fs::read_to_string(home.join("tokens")).unwrap();
    fs::write(home.join("tokens"), format!("rubbish\n{right}")).unwrap();
    eventually("the slip is said", || {
        node.page("/readyz", "").contains("\"tokenFile\":\"NOT_IN_FORCE\"").then_some(())
    });
    eventually("and counted", || (metric("campanile_token_file_in_force") == Some(0.0)).then_some(()));
    assert!(node.page("/readyz", "").starts_with("HTTP/1.1 200"), "it still takes calls");
    // `doctor` asks the node where its configuration says, and reads the file that it names.
    let config = home.join("campanile.toml");
    let file = config.to_str().unwrap();
    let listen = format!("[http]\nlisten = \"{}\"\n[auth]\ntoken_file = {:?}\n", node.http, home.join("tokens"));
    fs::write(&config, listen).unwrap();
    let doctor = |asked: [&str; 2]| {
        let done = run(&["doctor", asked[0], asked[1], "--token", &operator]);
        (done.code, done.out.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (code, said) = doctor(["--config", file]);
    for line in ["ok node ready", "FAIL token file ", " line 1: ", "FAIL node's tokens NOT_IN_FORCE: "] {
        assert_eq!(code, 1, "{line}: {said}");
        assert!(said.contains(line), "{line}: {said}");
    }
    // Without the configuration the node itself tells it.
    let (_, said) = doctor(["--server", &format!("http://{}", node.http)]);
    assert!(said.contains("FAIL node's tokens NOT_IN_FORCE: "), "{said}");
    assert!(run(&["config", "check", file]).refused(2).contains("line 1"));
    fs::write(home.join("tokens"), &right).unwrap();
    eventually("it is in force again", || (!node.page("/readyz", "").contains("tokenFile")).then_some(()));
    let (_, said) = doctor(["--config", file]);
    assert!(said.contains("ok token file "), "{said}");
    assert!(!said.contains("node's tokens"), "{said}");
    run(&["config", "check", file]).ok();

    // An empty file opens nothing, and closes what is open.
    let client = runtime.block_on(Client::connect(node.rpc.clone(), &operator)).unwrap();
    runtime.block_on(client.system_info()).unwrap();
    fs::write(home.join("tokens"), "").unwrap();
    let gone = runtime.block_on(second.wait_until(|status| status.registered == 0));
    assert!(gone.is_none_or(|status| status.registered == 0));
    assert!(runtime.block_on(client.system_info()).is_err());
    assert!(node.page("/api/v1/jobs", &operator).starts_with("HTTP/1.1 401"));
}

/// `docs/guides/tokens.md`, block by block, as an operator types it.
#[test]
fn the_guide_works_as_it_is_typed() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guides/tokens.md")).unwrap();
    let home = tempfile::tempdir().unwrap();
    let program = PathBuf::from(env!("CARGO_BIN_EXE_campanile"));
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let mut node: Option<Node> = None;
    let mut typed = 0;
    let mut parts = page.split("```");
    // Text, block, text, block ...
    while let (Some(_), Some(block)) = (parts.next(), parts.next()) {
        let (kind, commands) = block.split_once('\n').unwrap();
        match kind {
            "sh terminal" => node = Some(Node::start(home.path())),
            "sh" => {
                let mut shell = Command::new("bash");
                shell.args(["-euo", "pipefail", "-c", commands]).current_dir(home.path());
                shell.env_clear().env("PATH", &path).env("HOME", home.path());
                if let Some(node) = &node {
                    shell.env("CAMPANILE_SERVER", format!("http://{}", node.http));
                }
                // A token counts within seconds: a read is asked again.
                let read = commands.contains("job list");
                let what = format!("works: {commands}");
                eventually(&what, || {
                    let done = Done::new(&shell.output().unwrap());
                    assert!(read || done.code == 0, "{commands}: {done:?}");
                    (done.code == 0).then_some(())
                });
                typed += 1;
            }
            other => panic!("a block of the kind '{other}' would not be typed"),
        }
    }
    assert_eq!((typed, node.is_some()), (6, true));
    assert_eq!(fs::read_to_string(home.path().join("tokens")).unwrap().lines().count(), 3);
}
