//! The directory of files that a node keeps jobs by, through edits, slips and kills.
use crate::program::{Dev, eventually};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};

fn manifest(name: &str, spec: &str) -> String {
    format!("apiVersion: campanile/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

struct Watched {
    dir: tempfile::TempDir,
    gone: &'static str,
}

impl Watched {
    fn new(gone: &'static str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("jobs")).unwrap();
        Self { dir, gone }
    }
    fn jobs(&self) -> PathBuf {
        self.dir.path().join("jobs")
    }
    /// As careful editors write: whole or not at all.
    fn write(&self, name: &str, text: &str) {
        let partial = self.dir.path().join("partial");
        fs::write(&partial, text).unwrap();
        fs::rename(partial, self.jobs().join(name)).unwrap();
    }
    fn start(&self) -> Dev {
        let jobs = self.jobs();
        let environment = [
            ("CAMPANILE_FILES__DIR", jobs.to_str().unwrap()),
            ("CAMPANILE_FILES__SCAN_MS", "100"),
            ("CAMPANILE_FILES__GONE", self.gone),
        ];
        Dev::start_with(&self.dir.path().join("data"), &["--no-demo", "--no-executor"], &environment)
    }
    /// With the node's log, where the audit lines are, in a file.
    fn start_logging(&self) -> (Dev, PathBuf) {
        let (jobs, log) = (self.jobs(), self.dir.path().join("node.log"));
        let environment = [
            ("CAMPANILE_FILES__DIR", jobs.to_str().unwrap()),
            ("CAMPANILE_FILES__SCAN_MS", "100"),
            ("CAMPANILE_FILES__GONE", self.gone),
            ("CAMPANILE_LOG__LEVEL", "info"),
        ];
        let data = self.dir.path().join("data");
        let file = fs::File::create(&log).unwrap();
        (Dev::start_logging(&data, &["--no-demo", "--no-executor"], &environment, file), log)
    }
}

/// Names and states of the jobs that are there.
fn jobs(dev: &Dev) -> Vec<String> {
    let list = dev.run(&["job", "list", "--all", "-o", "json"]).json();
    let shown = |job: &Value| format!("{} {}", job["name"].as_str().unwrap(), job["status"].as_str().unwrap());
    let mut shown: Vec<String> = list["items"].as_array().unwrap().iter().map(shown).collect();
    shown.sort();
    shown
}

fn become_(dev: &Dev, expected: &[&str]) {
    let mut last = Vec::new();
    let what = format!("jobs become {expected:?}");
    eventually(&what, || {
        last = jobs(dev);
        (last == expected).then_some(())
    });
}

fn info(dev: &Dev) -> Value {
    dev.run(&["system", "info", "-o", "json"]).json()["files"].clone()
}

#[test]
fn files_are_kept_to_through_edits_and_slips() {
    let watched = Watched::new("pause");
    watched.write("a.yaml", &(manifest("one", "{every: 1h}") + "---\n" + &manifest("two", "{every: 2h}")));
    watched
        .write("night.cron", "CRON_TZ=Europe/Berlin\nRANDOM_DELAY=3\nMAILTO=ops@example.org\n15 4 * * * /bin/true\n");
    watched.write("README", "not a manifest\n");
    let dev = watched.start();
    eventually("three jobs are made", || (jobs(&dev).len() == 3).then_some(()));
    let cron = jobs(&dev)[0].split(' ').next().unwrap().to_owned();
    assert!(cron.starts_with("cron/night.cron/"), "{cron}");
    let job = dev.run(&["job", "get", &cron, "-o", "json"]).json();
    assert_eq!((&job["trigger"]["jitterSec"], &job["trigger"]["timezone"]), (&json!(180), &json!("Europe/Berlin")));
    assert_eq!(
        (&job["labels"]["cron.mailto"], &job["labels"]["apply.file"]),
        (&json!("ops@example.org"), &json!("night.cron"))
    );

    // A job of the file goes, the other one is changed.
    watched.write("a.yaml", &manifest("one", "{every: 3h}"));
    eventually("the edit counts", || {
        (dev.run(&["job", "get", "one", "-o", "json"]).json()["trigger"]["everySec"] == 10_800).then_some(())
    });
    let cron_enabled = format!("{cron} ENABLED");
    become_(&dev, &[&cron_enabled, "one ENABLED", "two PAUSED"]);
    assert_eq!(info(&dev)["broken"], json!([]));

    // A slip: that file's jobs stay, the others are kept to.
    watched.write("a.yaml", &manifest("one", "{evry: 3h}"));
    watched.write("b.yaml", &manifest("three", "{every: 1h}"));
    become_(&dev, &[&cron_enabled, "one ENABLED", "three ENABLED", "two PAUSED"]);
    let broken = eventually("the slip is told", || {
        let broken = info(&dev)["broken"].clone();
        (broken != json!([])).then_some(broken)
    });
    assert_eq!(broken[0]["file"], "a.yaml");
    let told = broken[0]["problems"][0].as_str().unwrap();
    assert_eq!(told, "line 4, column 8: spec.evry: unknown field; did you mean `every`?");
    assert_eq!(dev.http("GET", "/readyz", None).1["brokenFiles"], 1);

    // A slip that only the node sees, and a crontab that cron would pass over.
    watched.write("a.yaml", &manifest("one", "{schedule: '61 * * * *'}"));
    watched.write("night.cron", "15 4 * * * /bin/true\n99 * * * * /bin/false\n");
    eventually("both are told", || {
        let broken = info(&dev)["broken"].as_array().cloned().unwrap_or_default();
        let files: Vec<&str> = broken.iter().filter_map(|file| file["file"].as_str()).collect();
        (files == ["a.yaml", "night.cron"] && broken[0]["problems"][0].as_str()?.contains("spec.schedule"))
            .then_some(())
    });
    become_(&dev, &[&cron_enabled, "one ENABLED", "three ENABLED", "two PAUSED"]);
    // The line that is right counts all the same: here without the settings that the file had before.
    eventually("the other line counts", || {
        let zone = dev.run(&["job", "get", &cron, "-o", "json"]).json()["trigger"]["timezone"].clone();
        (zone == "UTC").then_some(())
    });
    // Whose line is gone nobody can tell while one is wrong.
    watched.write("night.cron", "99 * * * * /bin/false\n");
    watched.write("b.yaml", &manifest("three", "{every: 2h}"));
    eventually("the files were read again", || {
        (dev.run(&["job", "get", "three", "-o", "json"]).json()["trigger"]["everySec"] == 7_200).then_some(())
    });
    become_(&dev, &[&cron_enabled, "one ENABLED", "three ENABLED", "two PAUSED"]);

    // What comes back fires again; what goes is paused.
    watched.write("a.yaml", &manifest("two", "{every: 2h}"));
    fs::remove_file(watched.jobs().join("night.cron")).unwrap();
    become_(&dev, &[&format!("{cron} PAUSED"), "one PAUSED", "three ENABLED", "two ENABLED"]);
    assert_eq!(dev.run(&["job", "get", "two", "-o", "json"]).json()["labels"]["apply.gone"], Value::Null);
    assert_eq!(dev.stop(), 0);
}

/// The audit log says why a job was paused: its manifest is gone, or its manifest says so.
#[test]
fn the_reason_of_a_pause_is_true() {
    let watched = Watched::new("pause");
    watched.write("a.yaml", &manifest("gone", "{every: 1h}"));
    watched.write("b.yaml", &manifest("suspended", "{every: 1h}"));
    let (dev, log) = watched.start_logging();
    become_(&dev, &["gone ENABLED", "suspended ENABLED"]);
    watched.write("b.yaml", &manifest("suspended", "{every: 1h, suspend: true}"));
    become_(&dev, &["gone ENABLED", "suspended PAUSED"]);
    fs::remove_file(watched.jobs().join("a.yaml")).unwrap();
    become_(&dev, &["gone PAUSED", "suspended PAUSED"]);
    let reasons = |job: &str| {
        let subject = dev.run(&["job", "get", job, "-o", "json"]).json()["jobId"].to_string();
        let text = fs::read_to_string(&log).unwrap();
        let of_job = |line: &&str| line.contains("job.pause") && line.contains(&subject);
        text.lines().filter(of_job).map(str::to_owned).collect::<Vec<_>>()
    };
    let one_with = |job: &str, reason: &str| {
        let lines = eventually("the audit line is written", || Some(reasons(job)).filter(|lines| !lines.is_empty()));
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains(reason), "{lines:?}");
    };
    one_with("suspended", "apply: as its manifest says");
    one_with("gone", "apply: its manifest is gone");
}

#[test]
fn a_directory_that_is_away_makes_nothing_gone() {
    let watched = Watched::new("delete");
    watched.write("a.yaml", &manifest("one", "{every: 1h}"));
    watched.write("b.yaml", &manifest("two", "{every: 1h}"));
    let dev = watched.start();
    become_(&dev, &["one ENABLED", "two ENABLED"]);
    let away = watched.dir.path().join("away");
    fs::rename(watched.jobs(), &away).unwrap();
    eventually("it is told", || info(&dev)["error"].as_str()?.contains("no job is taken for gone").then_some(()));
    assert_eq!(jobs(&dev), ["one ENABLED", "two ENABLED"]);
    fs::remove_file(away.join("b.yaml")).unwrap();
    fs::rename(&away, watched.jobs()).unwrap();
    become_(&dev, &["one ENABLED"]);
    assert_eq!(info(&dev)["error"], Value::Null);
}

#[test]
fn a_node_that_is_killed_in_the_middle_goes_on() {
    let watched = Watched::new("pause");
    let all: String =
        (0..400).map(|n| manifest(&format!("job-{n:03}"), "{every: 1h, suspend: true}") + "---\n").collect();
    watched.write("a.yaml", &all);
    let dev = watched.start();
    // Some are made, and not all.
    let made = eventually("it has begun", || Some(jobs(&dev).len()).filter(|count| *count > 0));
    dev.kill();
    let dev = watched.start();
    let expected: Vec<String> = (0..400).map(|n| format!("job-{n:03} PAUSED")).collect();
    become_(&dev, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    let one = dev.run(&["job", "get", "job-399", "-o", "json"]).json();
    assert_eq!(
        one["trigger"]["type"], "FIXED_RATE",
        "made as one that is never due, then changed ({made} were made before)"
    );
    let versions = |dev: &Dev| dev.run(&["job", "list", "--all", "-o", "json"]).json()["items"].clone();
    let before = versions(&dev);
    dev.kill();
    let dev = watched.start();
    eventually("it has looked", || (info(&dev)["jobs"] == 400).then_some(()));
    assert_eq!(versions(&dev), before, "nothing is done twice");
    assert!(Path::new(&watched.jobs()).exists());
}
