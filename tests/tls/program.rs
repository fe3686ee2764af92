//! The program: `campanile server` with TLS, its commands, its executor, and what it says of files that cannot be used.

use crate::{
    authority::{Authority, Made, replace},
    cli::{Done, campanile, eventually},
};
use campanile_security::tls::Files;
use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Stdio},
};

/// `campanile server` that runs commands itself; ended with the test.
struct Server {
    child: Child,
    http: String,
    rpc: String,
    token: String,
    ca: String,
    dir: tempfile::TempDir,
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn server(dir: &Path, files: &Files) -> Command {
    let mut command = campanile();
    command
        .args(["server", "--http", "127.0.0.1:0", "--rpc", "127.0.0.1:0", "--token-file"])
        .arg(dir.join("tokens"))
        .arg("--data")
        .arg(dir.join("data"))
        .env("CAMPANILE_TLS__CERT_FILE", &files.certificate)
        .env("CAMPANILE_TLS__KEY_FILE", &files.key)
        .env("CAMPANILE_NODE__SHARDS", "4");
    command
}

fn with_token(dir: &Path) -> String {
    let made = campanile()
        .args(["token", "new", "--name", "me", "--role", "operator", "--append"])
        .arg(dir.join("tokens"))
        .output()
        .unwrap();
    Done::new(&made).ok().trim().to_owned()
}

impl Server {
    fn start(authority: &Authority) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let token = with_token(dir.path());
        let log = fs::File::create(dir.path().join("log")).unwrap();
        let mut child = server(dir.path(), &authority.node())
            .env("CAMPANILE_EXECUTOR__SLOTS", "2")
            .env("CAMPANILE_HTTP__OPEN_METRICS", "true")
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut port = |name: &str| {
            let line = lines.next().unwrap().unwrap();
            let address = line.strip_prefix(name).unwrap_or_else(|| panic!("not {name}: {line}"));
            address.rsplit(':').next().unwrap().to_owned()
        };
        let (http, rpc) = (port("http="), port("rpc="));
        Self { child, http, rpc, token, ca: text(&authority.ca()), dir }
    }

    fn run_at(&self, server: &str, ca: &str, args: &[&str]) -> Done {
        let mut command = campanile();
        command.env("CAMPANILE_SERVER", server).env("CAMPANILE_API_TOKEN", &self.token).env("CAMPANILE_TLS_CA", ca);
        Done::new(&command.args(args).output().unwrap())
    }
    fn run(&self, args: &[&str]) -> Done {
        self.run_at(&format!("https://localhost:{}", self.http), &self.ca, args)
    }

    /// What came of one run of a job.
    fn once(&self, job: &str) -> Done {
        let run = self.run(&["job", "trigger", job, "-o", "json"]).json()["runId"].to_string();
        self.run(&["run", "wait", &run, "--timeout", "60s"])
    }

    fn metric(&self, authority: &Authority, name: &str) -> Option<f64> {
        let ca = fs::read(authority.ca()).unwrap();
        let tls = ureq::tls::TlsConfig::builder()
            .root_certs(ureq::tls::RootCerts::new_with_certs(&[ureq::tls::Certificate::from_pem(&ca).unwrap()]))
            .unversioned_rustls_crypto_provider(std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .build();
        let agent: ureq::Agent = ureq::Agent::config_builder().tls_config(tls).build().into();
        let page = agent.get(format!("https://localhost:{}/metrics", self.http)).call().unwrap();
        let page = page.into_body().read_to_string().unwrap();
        let line = page.lines().find(|line| line.starts_with(name))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    fn hang_up(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    }

    /// Lines of its log with these words.
    fn logged(&self, words: &str) -> usize {
        let log = fs::read_to_string(self.dir.path().join("log")).unwrap();
        log.lines().filter(|line| line.contains(words)).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a server with these files ends: its last words.
fn refused(authority: &Authority, files: &Files) -> String {
    let dir = tempfile::tempdir().unwrap();
    with_token(dir.path());
    let mut child =
        server(dir.path(), files).stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if !line.is_empty() {
        child.kill().unwrap();
    }
    let done = Done::new(&child.wait_with_output().unwrap());
    assert!(line.is_empty(), "it started: {line}");
    assert!(authority.ca().exists());
    done.refused(2)
}

#[test]
fn files_that_cannot_be_used_are_told_at_the_start() {
    let authority = Authority::new();
    let good = authority.make("localhost", 2100);
    let files = authority.files();
    let with = |made: &Made, change: &dyn Fn()| {
        made.put(&files);
        change();
        refused(&authority, &files)
    };
    let other = authority.make("localhost", 2100).key;
    let said = with(&good, &|| replace(&files.key, &other));
    assert!(said.contains("does not belong to the certificate"), "{said}");
    let said = with(&good, &|| replace(&files.certificate, ""));
    assert!(said.contains("cert.pem: there is no certificate in it"), "{said}");
    let said = with(&good, &|| replace(&files.key, ""));
    assert!(said.contains("key.pem: there is no private key in it"), "{said}");
    let said = with(&good, &|| fs::remove_file(&files.key).unwrap());
    assert!(said.contains("key.pem: "), "{said}");
    assert!(said.contains("No such file"), "{said}");
    let said = with(&good, &|| fs::set_permissions(&files.key, fs::Permissions::from_mode(0o644)).unwrap());
    assert!(said.contains("it is open to others (mode 644). Run: chmod 600"), "{said}");
}

#[test]
fn a_node_whose_certificate_has_expired_starts_and_says_so() {
    let authority = Authority::new();
    let files = authority.files();
    authority.make("localhost", 2021).put(&files);
    let dir = tempfile::tempdir().unwrap();
    with_token(dir.path());
    let mut child =
        server(dir.path(), &files).stdout(Stdio::null()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let expired = said.into_iter().any(|line| line.contains("has expired: callers refuse it"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(expired, "it ended without a word about it");
}

#[test]
fn a_server_runs_jobs_over_tls_and_renews_its_certificate() {
    let authority = Authority::new();
    let server = Server::start(&authority);
    // By its own executor, which has no CA and calls by address.
    let made = ["job", "create", "--name", "hello", "--manual", "--sh", "echo hello"];
    server.run(&made).ok();
    server.once("hello").ok();
    let expiry = "campanile_tls_certificate_expiry_timestamp_seconds";
    // 2100-01-01.
    assert_eq!(server.metric(&authority, expiry), Some(4_102_444_800.0));

    let files = authority.files();
    replace(&files.certificate, "no certificate");
    server.hang_up();
    let failures = "campanile_tls_reload_failures_total";
    eventually("the failure is counted", || server.metric(&authority, failures).filter(|count| *count > 0.0));
    assert_eq!(server.metric(&authority, expiry), Some(4_102_444_800.0), "the old one is in use");
    // 2101-01-01.
    authority.make("localhost", 2101).put(&files);
    server.hang_up();
    eventually("the new one is in use", || {
        server.metric(&authority, expiry).filter(|expiry| *expiry == 4_133_980_800.0)
    });
    assert_eq!(server.metric(&authority, failures), Some(1.0), "a failure is told once");
    assert_eq!(server.logged("the new TLS certificate cannot be used"), 1);
    // The executor of the node goes on, and one from elsewhere works too.
    server.once("hello").ok();
    let mut elsewhere = campanile();
    elsewhere.args(["executor", "--pool", "far", "--rpc", &format!("tls://localhost:{}", server.rpc)]).args([
        "--tls-ca",
        &server.ca,
        "--token",
        &server.token,
    ]);
    let mut elsewhere = elsewhere.stdout(Stdio::piped()).spawn().unwrap();
    let ready = BufReader::new(elsewhere.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    assert!(ready.starts_with("ready: pool far"), "{ready}");
    let made = ["job", "create", "--name", "afar", "--manual", "--pool", "far", "--sh", "echo hello"];
    server.run(&made).ok();
    let waited = server.once("afar");
    elsewhere.kill().unwrap();
    elsewhere.wait().unwrap();
    waited.ok();
}

#[test]
fn commands_say_why_they_are_not_let_in() {
    let authority = Authority::new();
    let server = Server::start(&authority);
    let list = ["job", "list"];
    let port = &server.http;
    let said = server.run_at(&format!("http://localhost:{port}"), &server.ca, &list).refused(2);
    assert!(said.contains("this port speaks TLS"), "{said}");
    assert!(said.contains("https://"), "{said}");
    let other = Authority::new();
    let said = server.run_at(&format!("https://localhost:{port}"), &text(&other.ca()), &list).refused(7);
    assert!(said.contains("not of a CA that is trusted here: --tls-ca"), "{said}");
    let said = server.run_at(&format!("https://127.0.0.1:{port}"), &server.ca, &list).refused(7);
    assert!(said.contains("does not name this host"), "{said}");
    let said = server.run_at(&format!("https://localhost:{port}"), "/nowhere", &list).refused(2);
    assert!(said.contains("--tls-ca: CA file /nowhere"), "{said}");
    // Without a scheme a CA means TLS.
    server.run_at(&format!("localhost:{port}"), &server.ca, &list).ok();
    let dir = tempfile::tempdir().unwrap();
    let plain = crate::cli::Dev::start(dir.path(), &["--no-demo", "--no-executor"]);
    let address = plain.server.replace("http://", "https://");
    let said = server.run_at(&address, &server.ca, &list).refused(7);
    assert!(said.contains("it does not speak TLS there: write http://"), "{said}");
}

#[test]
fn the_doctor_looks_at_the_certificate() {
    let authority = Authority::new();
    let files = authority.node();
    let doctor = || {
        let dir = tempfile::tempdir().unwrap();
        let mut command = campanile();
        command.current_dir(dir.path()).env("CAMPANILE_TLS__CERT_FILE", &files.certificate);
        command.env("CAMPANILE_TLS__KEY_FILE", &files.key).args(["doctor"]);
        let said = Done::new(&command.output().unwrap());
        let lines: Vec<String> = said.out.lines().filter(|line| line.contains("  TLS  ")).map(str::to_owned).collect();
        lines.first().cloned().unwrap_or_else(|| panic!("nothing of TLS: {said:?}"))
    };
    let said = doctor();
    assert!(said.starts_with("ok "), "{said}");
    assert!(said.contains("valid until 2100-01-01"), "{said}");
    assert!(said.contains("localhost"), "{said}");
    authority.make("localhost", 2021).put(&files);
    let said = doctor();
    assert!(said.starts_with("FAIL"), "{said}");
    assert!(said.contains("expired at 2021-01-01"), "{said}");
    let other = authority.make("localhost", 2100).key;
    authority.make("localhost", 2100).put(&files);
    replace(&files.key, &other);
    let said = doctor();
    assert!(said.starts_with("FAIL"), "{said}");
    assert!(said.contains("does not belong"), "{said}");
}
