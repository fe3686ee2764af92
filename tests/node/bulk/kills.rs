//! A bulk operation goes on where it stood when the program dies in the middle of a page: each item is done once.

use crate::program::{self, Dev};
use serde_json::{Value, json};

const JOBS: usize = 300;

pub(super) fn posted(dev: &Dev, path: &str, body: &Value) -> Value {
    let (status, answer) = dev.http("POST", path, Some(body));
    assert!((200..300).contains(&status), "{path}: {answer}");
    answer
}

pub(super) fn got(dev: &Dev, path: &str) -> Value {
    let (status, answer) = dev.http("GET", path, None);
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

pub(super) fn until(dev: &Dev, id: u64, state: &str) -> Value {
    program::eventually(&format!("bulk operation {id} is {state}"), || {
        Some(got(dev, &format!("/api/v1/bulk/{id}"))).filter(|view| view["state"] == state)
    })
}

fn seen(view: &Value) -> u64 {
    ["done", "unchanged", "failed"].iter().filter_map(|field| view[field].as_u64()).sum()
}

#[test]
fn a_node_that_is_killed_again_and_again_triggers_and_pauses_each_job_once() {
    let data = tempfile::tempdir().unwrap();
    let mut dev = Dev::start(data.path(), &["--no-demo"]);
    let jobs: Vec<u64> = (0..JOBS)
        .map(|n| {
            let spec = json!({
                "name": format!("job-{n}"), "trigger": {"type": "MANUAL"}, "concurrencyPolicy": "ALLOW",
                "action": {"kind": "COMMAND", "command": ["/bin/true"]}, "executorSelector": "nobody",
            });
            posted(&dev, "/api/v1/jobs", &spec)["jobId"].as_u64().unwrap()
        })
        .collect();
    for (action, field) in [("TRIGGER", "runCount"), ("PAUSE", "status")] {
        let body = json!({"action": action, "all": true, "tenantId": "default"});
        let begun = posted(&dev, "/api/v1/bulk", &body);
        assert_eq!(begun["matched"], JOBS, "{begun}");
        let id = begun["bulkId"].as_u64().unwrap();
        for round in 1..=3_u64 {
            program::eventually("it goes on", || {
                (seen(&got(&dev, &format!("/api/v1/bulk/{id}"))) >= round * 30).then_some(())
            });
            dev.kill();
            dev = Dev::start(data.path(), &["--no-demo"]);
        }
        let done = until(&dev, id, "DONE");
        assert_eq!(
            (&done["done"], &done["unchanged"], &done["failed"]),
            (&json!(JOBS), &json!(0), &json!(0)),
            "{done}"
        );
        for job in &jobs {
            let view = got(&dev, &format!("/api/v1/jobs/{job}"));
            let wanted = if field == "status" { json!("PAUSED") } else { json!(1) };
            assert_eq!(view[field], wanted, "{view}");
        }
    }
    let shown = dev.run(&["bulk", "list", "-o", "json"]).json();
    assert_eq!(shown["items"].as_array().unwrap().len(), 2, "{shown}");
    // Nobody can be asked here, and there are many.
    let would = dev.run(&["bulk", "resume", "--all", "--tenant", "default"]).refused(2);
    assert!(would.contains("resume 300 jobs: nothing was changed; add --yes"), "{would}");
    let resumed = dev.run(&["bulk", "resume", "--all", "--tenant", "default", "--yes", "--wait", "-o", "json"]).json();
    assert_eq!((&resumed["state"], &resumed["done"]), (&json!("DONE"), &json!(JOBS)), "{resumed}");
    assert_eq!(dev.stop(), 0);
}

/// The node ends itself when a page has begun, and when its items were done and nobody has written that down.
#[test]
fn a_node_that_dies_at_each_step_of_a_page_does_each_item_once() {
    const STEPS: [(&str, &str); 6] = [
        ("TRIGGER", "bulk_page_begun=kill:1"),
        ("TRIGGER", "bulk_page_done=kill:1"),
        ("PAUSE", "bulk_page_done=kill:2"),
        ("RESUME", "bulk_page_begun=kill:2"),
        ("CANCEL", "bulk_page_done=kill:1"),
        ("DELETE", "bulk_page_done=kill:1"),
    ];
    const FEW: usize = 100;
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    for n in 0..FEW {
        let spec = json!({
            "name": format!("job-{n}"), "trigger": {"type": "MANUAL"}, "concurrencyPolicy": "ALLOW",
            "executorSelector": "nobody",
        });
        posted(&dev, "/api/v1/jobs", &spec);
    }
    assert_eq!(dev.stop(), 0);
    for (action, step) in STEPS {
        let fault = format!("point:{step}");
        let dying = Dev::start_with(data.path(), &["--no-demo"], &[("CAMPANILE_FAULT", &fault)]);
        let body = json!({"action": action, "all": true, "tenantId": "default"});
        // It may be dead before it has answered.
        let _ = dying.try_http("POST", "/api/v1/bulk", Some(&body));
        program::eventually(&format!("the node has died at {step}"), || {
            dying.try_http("GET", "/healthz", None).is_none().then_some(())
        });
        dying.kill();
        let dev = Dev::start(data.path(), &["--no-demo"]);
        let newest = got(&dev, "/api/v1/bulk")["items"][0].clone();
        assert_eq!(newest["action"], action, "{newest}");
        let done = until(&dev, newest["bulkId"].as_u64().unwrap(), "DONE");
        // Both triggers made a run of each job.
        let items = if action == "CANCEL" { 2 * FEW } else { FEW };
        assert_eq!(
            (&done["done"], &done["unchanged"], &done["failed"]),
            (&json!(items), &json!(0), &json!(0)),
            "{done}"
        );
        assert_eq!(dev.stop(), 0);
    }
    let dev = Dev::start(data.path(), &["--no-demo"]);
    assert_eq!(got(&dev, "/api/v1/jobs")["items"], json!([]));
    assert_eq!(dev.stop(), 0);
}

/// Starts a node that ends itself at a step of a page, asks it for something, and starts one that goes on.
fn dies(data: &std::path::Path, step: &str, ask: impl FnOnce(&Dev)) -> Dev {
    let fault = format!("point:{step}");
    let dying = Dev::start_with(data, &["--no-demo"], &[("CAMPANILE_FAULT", &fault)]);
    ask(&dying);
    program::eventually(&format!("the node has died at {step}"), || {
        dying.try_http("GET", "/healthz", None).is_none().then_some(())
    });
    dying.kill();
    Dev::start(data, &["--no-demo"])
}

#[test]
fn a_node_that_dies_in_an_undo_or_at_either_end_of_a_grace_does_each_item_once() {
    const FEW: usize = 100;
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    for n in 0..FEW {
        posted(&dev, "/api/v1/jobs", &json!({"name": format!("job-{n}"), "trigger": {"type": "MANUAL"}}));
    }
    let all = |action: &str, grace_sec: Option<u64>| json!({"action": action, "all": true, "tenantId": "default", "graceSec": grace_sec});
    let with_status = |dev: &Dev, status: &str| {
        got(dev, &format!("/api/v1/jobs?status={status}&pageSize=1000"))["items"].as_array().unwrap().len()
    };
    let counts = |view: &Value| ["done", "unchanged", "failed"].map(|count| view[count].as_u64().unwrap());
    let each_once = [FEW as u64, 0, 0];
    let newest = |dev: &Dev| got(dev, "/api/v1/bulk")["items"][0]["bulkId"].as_u64().unwrap();

    let pause = posted(&dev, "/api/v1/bulk", &all("PAUSE", None))["bulkId"].as_u64().unwrap();
    until(&dev, pause, "DONE");
    assert_eq!(dev.stop(), 0);
    for step in ["bulk_page_begun=kill:2", "bulk_page_done=kill:1"] {
        let dev = dies(data.path(), step, |dev| {
            // It may be dead before it has answered.
            let _ = dev.try_http("POST", &format!("/api/v1/bulk/{}/undo", newest(dev)), None);
        });
        // The second one takes back the first: both are of every job.
        assert_eq!(counts(&until(&dev, newest(&dev), "DONE")), each_once);
        assert_eq!(dev.stop(), 0);
    }
    let dev = dies(data.path(), "bulk_page_done=kill:1", |dev| {
        let _ = dev.try_http("POST", "/api/v1/bulk", Some(&all("RESUME", None)));
    });
    until(&dev, newest(&dev), "DONE");
    assert_eq!(with_status(&dev, "ENABLED"), FEW);
    assert_eq!(dev.stop(), 0);

    let dev = dies(data.path(), "bulk_page_done=kill:1", |dev| {
        let _ = dev.try_http("POST", "/api/v1/bulk", Some(&all("DELETE", Some(8))));
    });
    let held = newest(&dev);
    assert_eq!(counts(&until(&dev, held, "WAITING")), each_once);
    assert_eq!(with_status(&dev, "PAUSED"), FEW);
    assert_eq!(dev.stop(), 0);
    // Its first page is the first one that is deleted.
    let dev = dies(data.path(), "bulk_page_done=kill:1", |_| {});
    assert_eq!(counts(&until(&dev, held, "DONE")), each_once);
    assert_eq!(got(&dev, "/api/v1/jobs")["items"], json!([]));
    assert_eq!(dev.stop(), 0);
}
