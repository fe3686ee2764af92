//! A node that stands still for longer than a lease, as in a paused virtual machine, and goes on: its executors were not silent, it
//! was deaf. A real process is stopped; what its executor sends arrives only after the node has looked at the leases.

use crate::program::{Dev, campanile, eventually};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::Duration,
};

/// Longer than a lease (`limits::LEASE_MS`). This time is the input of the test and not a wait for an effect: the node measures
/// how long it stood still with the machine's clock since its boot, which a test cannot move.
const STOPPED: Duration = Duration::from_millis(campanile_schema::limits::LEASE_MS as u64 + 1_000);

/// Holds back who wants to pass while it is closed.
#[derive(Default)]
struct Gate {
    closed: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn close(&self, closed: bool) {
        *self.closed.lock().unwrap() = closed;
        self.changed.notify_all();
    }

    fn pass(&self) {
        drop(self.changed.wait_while(self.closed.lock().unwrap(), |closed| *closed).unwrap());
    }
}

/// The way of an executor to its node, on which what it says can be held back.
struct Road {
    address: String,
    gate: Arc<Gate>,
}

impl Road {
    fn to(node: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, gate) = (listener.local_addr().unwrap().to_string(), Arc::<Gate>::default());
        let (node, forward) = (node.to_owned(), gate.clone());
        thread::spawn(move || {
            for executor in listener.incoming().map_while(Result::ok) {
                let Ok(node) = TcpStream::connect(&node) else { continue };
                let (back, forth) = (node.try_clone().unwrap(), executor.try_clone().unwrap());
                thread::spawn(move || carry(back, executor, &Gate::default()));
                let forward = forward.clone();
                thread::spawn(move || carry(forth, node, &forward));
            }
        });
        Self { address, gate }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, gate: &Gate) {
    let mut bytes = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut bytes) {
        gate.pass();
        if to.write_all(&bytes[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// An executor of its own process; ended with the test.
struct Living(Child);

impl Living {
    fn start(dev: &Dev, road: &Road) -> Self {
        let mut command = campanile();
        command.args(["executor", "--rpc", &road.address, "--token", &dev.token, "--id", "living"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("ready"), "{line}");
        Self(child)
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn signal(dev: &Dev, signal: &str) {
    assert!(Command::new("kill").args([signal, &dev.pid().to_string()]).status().unwrap().success());
}

fn metric(dev: &Dev, name: &str) -> f64 {
    let text = dev.metrics();
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap()
}

fn view(dev: &Dev, run: &Value) -> Value {
    dev.http("GET", &format!("/api/v1/runs/{run}"), None).1
}

#[test]
fn a_node_that_was_stopped_for_longer_than_a_lease_loses_no_living_executor() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(&dir.path().join("dev"), &["--no-demo", "--no-executor"]);
    let road = Road::to(&dev.rpc);
    let living = Living::start(&dev, &road);
    let (starts, end) = (dir.path().join("starts"), dir.path().join("end"));
    let body = format!("echo x >> {}; while [ ! -e {} ]; do sleep 0.05; done", starts.display(), end.display());
    let spec = json!({"name": "long", "trigger": {"type": "MANUAL"}, "action": {"kind": "COMMAND", "command": ["/bin/sh", "-c", body]}});
    let (status, made) = dev.http("POST", "/api/v1/jobs", Some(&spec));
    assert_eq!(status, 201, "{made}");
    let run = dev.http("POST", &format!("/api/v1/jobs/{}/trigger", made["jobId"]), Some(&json!({}))).1["runId"].clone();
    let started = || fs::read_to_string(&starts).unwrap_or_default().lines().count();
    eventually("the body", || (started() == 1).then_some(()));
    assert_eq!(metric(&dev, "campanile_node_away_total"), 0.0);

    signal(&dev, "-STOP");
    road.gate.close(true);
    thread::sleep(STOPPED);
    signal(&dev, "-CONT");
    eventually("it notices", || (metric(&dev, "campanile_node_away_total") >= 1.0).then_some(()));
    // The leases were looked at, and nothing was heard of the executor yet.
    road.gate.close(false);
    let heard = || {
        let executors = dev.run(&["system", "executors", "-o", "json"]).json();
        (executors["items"][0]["state"] == "READY").then_some(())
    };
    eventually("it is heard", heard);
    assert_eq!(metric(&dev, "executor_heartbeat_lost"), 0.0);
    let seen = view(&dev, &run);
    assert_eq!((&seen["state"], seen["attempts"].as_array().unwrap().len()), (&json!("RUNNING"), 1), "{seen}");
    fs::write(end, "").unwrap();
    let ended = eventually("it ends", || Some(view(&dev, &run)).filter(|view| view["state"] == "SUCCESS"));
    assert_eq!((ended["attempts"].as_array().unwrap().len(), started()), (1, 1), "{ended}");
    drop(living);
}
