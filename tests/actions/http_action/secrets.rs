//! Secret params in every form in which we send them: none is shown to readers of the run, and none is stored.
use super::{
    LOOPBACK,
    target::{Say, Target, redirect},
    world::World,
};
use serde_json::{Value, json};
use std::path::Path;

/// Each form of it has this in the middle.
const CORE: &str = "xyzzy";
const KEY: &str = "pl/ug \"xyzzy\\é";
const HEADER: &str = "Zm9v/\"xyzzy\"+bar==";

#[test]
fn no_form_of_a_secret_is_shown_or_stored() {
    // First to another place whose address repeats the secret, then an error that repeats all that arrived.
    let target = Target::start(|heard| {
        if let Some(query) = heard.path.strip_prefix("/hook/") {
            return redirect(format!("/moved/{query}"));
        }
        let said = format!(
            "path {} header {} body {} lower {} value {}\n",
            heard.path,
            heard.headers["x-key"],
            heard.body,
            heard.path.replace("%2F", "%2f").replace("%5C", "%5c").replace("%C3%A9", "%c3%a9"),
            serde_json::from_str::<Value>(&heard.body).unwrap()["key"].as_str().unwrap(),
        );
        Say::Answer(500, Vec::new(), said)
    });
    let world = World::start(&LOOPBACK);
    let action = json!({
        "method": "POST", "maxRedirects": 1, "url": target.url("/hook/{{secrets.key}}?also={{secrets.key}}"),
        "headers": {"X-Key": "Basic {{secrets.header}}"},
        "body": {"key": "{{secrets.key}}", "text": "<{{secrets.key}}>", "header": "{{secrets.header}}"},
    });
    let id = world.fire(action, json!({"secretParams": {"key": KEY, "header": HEADER}}));
    let run = world.ended(id);
    assert_eq!(run["attempts"][0]["errorCode"], "HTTP_STATUS", "{run}");
    // They were sent.
    let heard = &target.heard()[1];
    assert!(heard.path.contains("pl%2Fug%20%22xyzzy%5C%C3%A9"), "{heard:?}");
    assert_eq!(heard.headers["x-key"], format!("Basic {HEADER}"));
    let body: Value = serde_json::from_str(&heard.body).unwrap();
    assert_eq!((&body["key"], &body["text"]), (&json!(KEY), &json!(format!("<{KEY}>"))));

    let log = world.log(id);
    assert!(log.contains("path /moved/***"), "{log}");
    assert!(log.contains("/hook/{{secrets.key}}"), "the template is shown: {log}");
    assert!(!log.contains(CORE), "{log}");
    let error = run["attempts"][0]["errorMessage"].as_str().unwrap();
    assert!(error.contains("***"), "{error}");
    assert!(!error.contains(CORE), "{error}");
    assert!(!run.to_string().contains(CORE), "{run}");
    let dead = world.dev.run(&["dlq", "list", "-o", "json"]).ok();
    assert!(!dead.contains(CORE), "{dead}");
    let job = world.dev.http("GET", &format!("/api/v1/jobs/{}", run["jobId"]), None).1;
    assert!(!job.to_string().contains(CORE), "{job}");
    search(world.dir.path());
}

fn search(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            search(&path);
        } else if let Ok(bytes) = std::fs::read(&path) {
            let found = bytes.windows(CORE.len()).position(|window| window == CORE.as_bytes());
            assert_eq!(found, None, "{} holds a part of a secret", path.display());
        }
    }
}
