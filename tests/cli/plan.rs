//! `campanile plan` and pruning by label, against a real node.
use crate::program::{Dev, Done};
use serde_json::Value;
use std::{fmt::Write, fs};

struct Node {
    dev: Dev,
    dir: tempfile::TempDir,
}

impl Node {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let dev = Dev::start(&dir.path().join("data"), &["--no-demo", "--no-executor"]);
        Self { dev, dir }
    }
    fn file(&self, name: &str, text: &str) -> String {
        let path = self.dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
    fn run(&self, args: &[&str]) -> Done {
        self.dev.run(args)
    }
    fn names(&self) -> Vec<String> {
        let list = self.run(&["job", "list", "-o", "json"]).json();
        let name = |job: &Value| job["name"].as_str().unwrap().to_owned();
        let mut names: Vec<String> = list["items"].as_array().unwrap().iter().map(name).collect();
        names.sort();
        names
    }
}

fn job(name: &str, labels: &str, schedule: &str) -> String {
    format!(
        "apiVersion: campanile/v1\nkind: Job\nmetadata: {{name: {name}, labels: {labels}}}\nspec: {{schedule: '{schedule}', timeZone: \
         Europe/Berlin}}\n---\n"
    )
}

#[test]
fn a_plan_shows_fires_before_and_after_clock_changes_and_says_by_its_code_whether_anything_changes() {
    let node = Node::new();
    let path = node.file("a.yaml", &job("daily", "{}", "0 12 * * *"));
    let created = node.run(&["plan", &path, "--detailed-exitcode"]);
    assert_eq!(created.code, 9, "{created:?}");
    assert_eq!(created.err, "", "{created:?}");
    assert!(created.out.contains("CREATE  default/daily"), "{created:?}");
    assert!(created.out.contains("tenant default: 0 jobs now, 1 after it\n"), "{created:?}");
    assert_eq!(node.names(), Vec::<String>::new());
    node.run(&["apply", "-f", &path]).ok();
    let same = node.run(&["plan", &path, "--detailed-exitcode"]).ok();
    assert_eq!(same, "0 to create, 0 to change, 1 unchanged, 0 to delete\n");

    let path = node.file("a.yaml", &job("daily", "{}", "30 2 * * *"));
    let shown = node.run(&["plan", &path]).ok();
    assert!(shown.contains("~ spec.schedule: 0 12 * * * -> 30 2 * * *\n"), "{shown}");
    assert!(shown.contains("not exist in Europe/Berlin"), "{shown}");
    let plan = node.run(&["plan", &path, "-o", "json"]).json();
    let forecast = &plan["items"][0]["forecast"];
    let instants = |field: &str| forecast[field].as_array().unwrap().clone();
    assert_eq!((instants("before").len(), instants("after").len()), (20, 20), "{forecast}");
    assert!(
        instants("before")
            .iter()
            .all(|at| ["T10:00:00.000Z", "T11:00:00.000Z"].iter().any(|end| at.as_str().unwrap().ends_with(end)))
    );
    assert_eq!(instants("clockChanges").len(), 2, "{forecast}");
    // In the hazards of the plan they would be told twice.
    assert_eq!(plan["items"][0]["hazards"], serde_json::json!([]));
    assert_eq!(node.run(&["job", "get", "daily", "-o", "json"]).json()["version"], 1, "nothing was changed");

    // Somebody changes the job by hand: drift.
    node.run(&["apply", "-f", &path]).ok();
    node.run(&["job", "pause", "daily"]).ok();
    let drifted =
        node.file("a.yaml", &job("daily", "{}", "30 2 * * *").replace("{schedule", "{suspend: false, schedule"));
    let drift = node.run(&["plan", &drifted, "--detailed-exitcode"]);
    assert_eq!(drift.code, 9, "{drift:?}");
    assert!(drift.out.contains("~ spec.suspend: true -> false\n"), "{drift:?}");
    assert!(!drift.out.contains("before"), "a paused job is not due: {drift:?}");
    assert_eq!(node.dev.stop(), 0);
}

#[test]
fn full_minutes_and_a_limit_that_is_too_low_are_told() {
    let node = Node::new();
    node.run(&["tenant", "set", "default", "--max-jobs", "40"]).ok();
    let mut text = String::new();
    for n in 0..70 {
        write!(text, "{}", job(&format!("midnight-{n}"), "{}", "0 0 * * *").replace("Europe/Berlin", "UTC")).unwrap();
    }
    let path = node.file("many.yaml", &text);
    let plan = node.run(&["plan", &path, "-o", "json"]).json();
    let minute = &plan["forecast"]["minutes"][0];
    assert_eq!((&minute["adds"], &minute["removes"]), (&70.into(), &0.into()), "{plan}");
    assert!(minute["at"].as_str().unwrap().ends_with("T00:00:00.000Z"), "{minute}");
    let tenant = &plan["forecast"]["tenants"][0];
    assert_eq!((&tenant["jobs"], &tenant["after"], &tenant["maxJobs"]), (&0.into(), &70.into(), &40.into()));
    assert_eq!(tenant["exceeds"], true);
    let shown = node.run(&["plan", &path]).ok();
    assert!(shown.contains("        ! adds 70 to 20"), "{shown}");
    assert!(shown.contains("tenant default: 0 jobs now, 70 after it of at most 40\n"), "{shown}");
    assert!(shown.contains("its limit maxJobs is too low"), "{shown}");
    // Without the question nothing is added to the answer.
    let plain = node.run(&["apply", "-f", &path, "--dry-run", "-o", "json"]).json();
    assert_eq!((&plain["forecast"], &plain["items"][0]["forecast"]), (&Value::Null, &Value::Null));
    assert_eq!(node.dev.stop(), 0);
}

#[test]
fn jobs_with_a_label_that_no_manifest_names_are_pruned() {
    let node = Node::new();
    let all = [job("a", "{team: pay}", "@daily"), job("b", "{team: pay}", "@daily"), job("c", "{team: ops}", "@daily")]
        .concat();
    node.run(&["apply", "-f", &node.file("all.yaml", &all)]).ok();
    node.run(&["apply", "-f", &node.file("owned.yaml", &job("owned", "{team: pay}", "@daily")), "--owner", "x"]).ok();
    let other = job("a", "{team: pay}", "@daily").replace("metadata: {", "metadata: {namespace: elsewhere, ");
    node.run(&["apply", "-f", &node.file("other.yaml", &other)]).ok();
    let left = node.file("left.yaml", &job("a", "{team: pay}", "@daily"));
    let prune =
        |verb: &[&str], more: &[&str]| node.run(&[verb, &["--prune", "--prune-labels", "team=pay"], more].concat());
    let shown = prune(&["plan", &left], &[]).ok();
    assert!(shown.contains("DELETE  default/b\n        before  "), "{shown}");
    assert!(shown.contains("0 to create, 0 to change, 1 unchanged, 1 to delete\n"), "{shown}");
    assert!(shown.contains("tenant default: 4 jobs now, 3 after it\n"), "{shown}");
    assert!(prune(&["apply", "-f", &left], &[]).refused(2).contains("1 jobs would be deleted: nothing was changed"));
    assert!(prune(&["apply", "-f", &left], &["--yes"]).ok().ends_with("deleted 1\n"));
    assert_eq!(node.names(), ["a", "a", "c", "owned"], "those of an owner and of another tenant stay");
    // With the owner only its jobs.
    let of_owner = prune(&["plan", &left], &["--owner", "x"]).ok();
    assert!(of_owner.contains("DELETE  default/owned\n"), "{of_owner}");
    assert!(of_owner.contains("1 to delete\n"), "{of_owner}");
    assert!(node.run(&["plan", &left, "--prune"]).refused(2).contains("--owner"));
    assert!(node.run(&["plan", &left, "--prune-labels", "team=pay"]).refused(2).contains("--prune"));
    let empty = node.run(&["plan", &left, "--prune", "--prune-labels", ""]).refused(2);
    assert!(empty.contains("pruneLabels: is empty"), "{empty}");
    assert_eq!(node.dev.stop(), 0);
}
