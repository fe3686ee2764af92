//! A restore aborts operations that had not ended: nobody knows what they did since the backup.

use super::kills::{got, posted, until};
use crate::program::{self, Dev};
use serde_json::{Value, json};

const JOBS: usize = 20;

fn with_status(dev: &Dev, status: &str) -> usize {
    got(dev, &format!("/api/v1/jobs?status={status}&pageSize=1000"))["items"].as_array().unwrap().len()
}

#[test]
fn what_a_backup_holds_open_is_aborted_by_the_restore_and_can_be_undone() {
    let old = tempfile::tempdir().unwrap();
    let dev = Dev::start(old.path(), &["--no-demo"]);
    for name in (0..JOBS).flat_map(|n| [format!("run-{n}"), format!("hold-{n}")]) {
        let spec = json!({
            "name": name, "trigger": {"type": "MANUAL"}, "concurrencyPolicy": "ALLOW",
            "executorSelector": "nobody",
        });
        posted(&dev, "/api/v1/jobs", &spec);
    }
    let begun = |dev: &Dev, body: Value| posted(dev, "/api/v1/bulk", &body)["bulkId"].as_u64().unwrap();
    // As many runs of the tenant wait as may: it goes on when some have ended.
    assert_eq!(dev.http("PUT", "/api/v1/tenants/default", Some(&json!({"maxQueuedRuns": 5}))).0, 200);
    let trigger = begun(&dev, json!({"action": "TRIGGER", "filter": {"text": "run-"}, "tenantId": "default"}));
    let runs = |dev: &Dev| got(dev, "/api/v1/runs?state=QUEUED&pageSize=1000")["items"].as_array().unwrap().len();
    program::eventually("the tenant's queue is full", || (runs(&dev) >= 5).then_some(()));
    let filter = json!({"text": "hold-"});
    let held = json!({"action": "DELETE", "filter": filter, "tenantId": "default", "graceSec": 3_600});
    let held = begun(&dev, held);
    assert_eq!(until(&dev, held, "WAITING")["done"], JOBS);
    assert_eq!(got(&dev, &format!("/api/v1/bulk/{trigger}"))["state"], "RUNNING");
    let archive = old.path().join("first.archive");
    let archive = archive.to_str().unwrap();
    dev.run(&["store", "backup", archive]).ok();
    assert_eq!(dev.stop(), 0);

    let new = tempfile::tempdir().unwrap();
    let node = new.path().join("node");
    program::run(&["store", "restore", archive, "--since", "now", "--data", node.to_str().unwrap()]).ok();
    let dev = Dev::start(new.path(), &["--no-demo"]);
    for id in [trigger, held] {
        let view = until(&dev, id, "ABORTED");
        assert_eq!(view["stateReason"], "the store was restored from a backup", "{view}");
    }
    assert_eq!(with_status(&dev, "PAUSED"), JOBS, "what was paused stays so");
    let undo = posted(&dev, &format!("/api/v1/bulk/{held}/undo"), &json!({}))["bulkId"].as_u64().unwrap();
    assert_eq!(until(&dev, undo, "DONE")["done"], JOBS);
    assert_eq!(with_status(&dev, "ENABLED"), 2 * JOBS);
    assert_eq!(dev.stop(), 0);
}
