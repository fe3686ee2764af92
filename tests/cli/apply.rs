//! `apply` and `export`: manifests to jobs and back, against a real node.
use crate::program::{Dev, Done, run, run_with_input};
use serde_json::Value;
use std::{fs, path::Path};

const BILLING: &str = "\
apiVersion: campanile/v1
kind: Job
metadata: {name: billing/daily, labels: {team: pay}}
spec:
  schedule: '30 2 * * *'
  timeZone: Europe/Berlin
  misfirePolicy: FireOnceNow
  misfireThreshold: 5m
  command: [/bin/true]
---
apiVersion: campanile/v1
kind: Job
metadata: {name: billing/often}
spec: {every: 1h, secretParams: {key: hush}}
";
const REPORT: &str = "\
apiVersion: campanile/v1
kind: Job
metadata: {name: report}
spec: {schedule: '@daily', suspend: true, handler: make-report}
";

struct Files {
    dev: Dev,
    dir: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let dev = Dev::start(&dir.path().join("data"), &["--no-demo", "--no-executor"]);
        fs::create_dir(dir.path().join("jobs")).unwrap();
        Self { dev, dir }
    }
    fn write(&self, name: &str, text: &str) {
        fs::write(self.dir.path().join("jobs").join(name), text).unwrap();
    }
    fn apply(&self, more: &[&str]) -> Done {
        let jobs = self.dir.path().join("jobs");
        self.dev.run(&[&["apply", "-f", jobs.to_str().unwrap()], more].concat())
    }
    fn job(&self, name: &str) -> Value {
        self.dev.run(&["job", "get", name, "-o", "json"]).json()
    }
    fn names(&self) -> Vec<String> {
        let list = self.dev.run(&["job", "list", "-o", "json"]).json();
        let mut names: Vec<String> =
            list["items"].as_array().unwrap().iter().map(|job| job["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }
}

#[test]
fn a_directory_is_applied_and_a_second_time_changes_nothing() {
    let files = Files::new();
    files.write("billing.yaml", BILLING);
    files.write("report.yml", REPORT);
    files.write("notes.txt", "not: [a manifest");

    let shown = files.apply(&["--dry-run"]);
    assert!(shown.err.contains("nothing was changed: a dry run"), "{shown:?}");
    let plan = shown.ok();
    assert!(plan.contains("CREATE  default/billing/daily"), "{plan}");
    assert!(plan.contains("billing.yaml:1\n"), "{plan}");
    assert!(
        plan.contains("! 2026-") || plan.contains("does not exist in Europe/Berlin"),
        "daylight saving is told: {plan}"
    );
    assert!(plan.ends_with("3 to create, 0 to change, 0 unchanged, 0 to delete\n"), "{plan}");
    assert_eq!(files.names(), Vec::<String>::new());

    let done = files.apply(&[]).ok();
    assert!(done.ends_with("created 3, changed 0, unchanged 0, deleted 0\n"), "{done}");
    let daily = files.job("billing/daily");
    assert_eq!((&daily["trigger"]["misfireThresholdSec"], &daily["version"]), (&300.into(), &1.into()));
    assert_eq!(files.job("report")["status"], "PAUSED");

    let before: Vec<Value> = files.names().iter().map(|name| files.job(name)).collect();
    assert_eq!(files.apply(&[]).ok(), "0 to create, 0 to change, 3 unchanged, 0 to delete\n");
    let after: Vec<Value> = files.names().iter().map(|name| files.job(name)).collect();
    assert_eq!(before, after, "nothing at all has changed, versions neither");
    assert_eq!(files.dev.stop(), 0);
}

#[test]
fn a_change_is_shown_field_by_field() {
    let files = Files::new();
    files.write("a.yaml", BILLING);
    files.write("b.yaml", REPORT);
    files.apply(&[]).ok();
    files.write(
        "a.yaml",
        &BILLING.replace("30 2", "45 2").replace("{team: pay}", "{team: ops}").replace("hush", "loud"),
    );
    files.write("b.yaml", &REPORT.replace("suspend: true", "suspend: false"));
    let shown = files.apply(&[]).ok();
    for part in [
        "CHANGE  default/billing/daily",
        "~ metadata.labels.team: pay -> ops\n",
        "~ spec.schedule: 30 2 * * * -> 45 2 * * *\n",
        "~ spec.secretParams: *** -> ***\n",
        "~ spec.suspend: true -> false\n",
        "0 to create, 3 to change, 0 unchanged, 0 to delete\ncreated 0, changed 3, unchanged 0, deleted 0\n",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("loud"), "{shown}");
    assert!(!shown.contains("hush"), "{shown}");
    assert_eq!(files.job("billing/daily")["version"], 2);
    assert_eq!(files.job("report")["status"], "ENABLED");
    assert_eq!(files.apply(&[]).ok(), "0 to create, 0 to change, 3 unchanged, 0 to delete\n");
}

#[test]
fn while_anything_is_wrong_nothing_is_applied() {
    let files = Files::new();
    files.write("a.yaml", BILLING);
    files.write(
        "b.yaml",
        "apiVersion: campanile/v1\nkind: Job\nmetadata: {name: x}\nspec:\n  schedule: '61 * * * *'\n  timeout: 0\n",
    );
    files.write("c.yaml", "apiVersion: campanile/v1\nkind: Job\nmetadata: {nmae: x}\nspec: {evry: 5m}\n");
    let told = files.apply(&[]).refused(2);
    for part in [
        "400_INVALID_ARGUMENT: 4 things are wrong, nothing was changed:\n",
        "b.yaml:6:3: spec.timeout: timeoutSec must be 1 to",
        "c.yaml:3:12: metadata.nmae: unknown field; did you mean `name`?\n",
        "c.yaml:3:1: metadata: missing field `name`\n",
        "c.yaml:4:8: spec.evry: unknown field; did you mean `every`?\n",
        "what to do: ",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    files
        .write("b.yaml", "apiVersion: campanile/v1\nkind: Job\nmetadata: {name: x}\nspec:\n  schedule: '61 * * * *'\n");
    fs::remove_file(files.dir.path().join("jobs/c.yaml")).unwrap();
    let told = files.apply(&[]).refused(2);
    assert!(told.contains("b.yaml:5:3: spec.schedule: trigger.expr: "), "{told}");
    assert_eq!(files.names(), Vec::<String>::new());
}

#[test]
fn an_owners_left_over_jobs_are_deleted_when_somebody_agrees() {
    let files = Files::new();
    files.dev.job("by-hand", serde_json::json!({"type": "MANUAL"}));
    files.write("a.yaml", BILLING);
    files.write("b.yaml", REPORT);
    assert!(files.apply(&["--prune"]).refused(2).contains("--owner"));
    files.apply(&["--owner", "books", "--prune"]).ok();
    fs::remove_file(files.dir.path().join("jobs/b.yaml")).unwrap();
    assert!(files.apply(&["--owner", "books"]).ok().starts_with("0 to create, 0 to change, 2 unchanged, 0 to delete"));
    let asked = files.apply(&["--owner", "books", "--prune"]);
    assert!(asked.out.contains("DELETE  default/report\n"), "{asked:?}");
    assert!(asked.refused(2).contains("1 jobs would be deleted: nothing was changed; add --yes"));
    assert_eq!(files.names().len(), 4);
    let other = files.apply(&["--owner", "others"]).refused(2);
    assert!(other.contains("a.yaml:3:12: metadata.name: the job belongs to 'books'"), "{other}");
    let done = files.apply(&["--owner", "books", "--prune", "--yes"]).ok();
    assert!(done.ends_with("created 0, changed 0, unchanged 2, deleted 1\n"), "{done}");
    assert_eq!(files.names(), ["billing/daily", "billing/often", "by-hand"]);
    let taken = files.apply(&["--owner", "others", "--take-over"]).ok();
    assert!(taken.contains("~ metadata.labels.apply.owner: books -> others\n"), "{taken}");
    // Without an owner the label stays.
    assert!(files.apply(&[]).ok().starts_with("0 to create, 0 to change, 2 unchanged"));
}

#[test]
fn what_is_exported_applies_as_unchanged() {
    let files = Files::new();
    files.write("a.yaml", BILLING);
    files.write("b.yaml", REPORT);
    files.apply(&["--owner", "books"]).ok();
    let create = |more: &[&str]| files.dev.run(&[&["job", "create", "--name"], more].concat()).ok();
    create(&["quartz", "--cron", "0 0 2 ? * MON", "--tz", "Asia/Tokyo", "--label", "a=b", "--max-attempts", "1"]);
    create(&["rate", "--every", "90", "--sh", "echo 'hi: there'", "--env", "A=b: c", "--priority", "7"]);
    create(&["once", "--at", "2100-01-01T00:00:00Z", "--params", "{\"z\":[1,{\"y\":\"ü\"}],\"a\":1.50}"]);
    create(&["late", "--after-last", "2h", "--misfire", "skip", "--concurrency", "queue_one", "--timeout", "90m"]);

    let yaml = files.dev.run(&["export"]).ok();
    assert_eq!(yaml.matches("kind: Job\n").count(), 7, "{yaml}");
    assert!(!yaml.contains("apply.owner"), "{yaml}");
    let server = ["--server", files.dev.server.as_str()];
    let again = |text: &str| run_with_input(&[&server[..], &["apply", "-f", "-"]].concat(), text).ok();
    assert_eq!(again(&yaml), "0 to create, 0 to change, 7 unchanged, 0 to delete\n");
    let json = files.dev.run(&["export", "-o", "json"]).ok();
    assert_eq!(again(&json), "0 to create, 0 to change, 7 unchanged, 0 to delete\n");
    let one = files.dev.run(&["job", "get", "rate", "-o", "yaml", "--manifest"]).ok();
    assert!(one.starts_with("apiVersion: campanile/v1\nkind: Job\nmetadata:\n  name: rate\n"), "{one}");
    assert_eq!(again(&one), "0 to create, 0 to change, 1 unchanged, 0 to delete\n");
    assert_eq!(files.dev.run(&["export", "--owner", "books"]).ok().matches("kind: Job\n").count(), 3);
}

/// Every document of the examples is a valid manifest, and says what it does not do.
#[test]
fn the_examples_of_the_documents_are_valid() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/manifests");
    let files = Files::new();
    for entry in fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, files.dir.path().join("jobs").join(path.file_name().unwrap())).unwrap();
    }
    let shown = files.apply(&["--dry-run"]).ok();
    assert!(shown.contains(" to create, 0 to change, 0 unchanged, 0 to delete\n"), "{shown}");
}

#[test]
fn the_schema_judges_as_the_node_does() {
    let schema: Value = serde_json::from_str(&run(&["apply", "--schema"]).ok()).unwrap();
    assert_eq!(schema["title"], "Campanile job");
    assert!(run(&["apply"]).refused(2).contains("--file"));
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.add_resource("job.json", schema.clone()).unwrap();
    let index = compiler.compile("job.json", &mut schemas).unwrap();
    let judge = |manifest: &Value| schemas.validate(manifest, index).map_err(|error| format!("{error:#}"));
    let documents = |text: &str| -> Vec<Value> {
        serde_yaml_ng::Deserializer::from_str(text).map(|one| serde::Deserialize::deserialize(one).unwrap()).collect()
    };
    let example = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/manifests/jobs.yaml")).unwrap();
    let good = [documents(&example), documents(BILLING), documents(REPORT)].concat();
    assert_eq!(good.len(), 6);
    for manifest in &good {
        assert_eq!(judge(manifest), Ok(()), "{manifest}");
    }
    let files = Files::new();
    let (_, served) = files.dev.http("GET", "/schemas/job.json", None);
    assert_eq!(served, schema);
    for (from, to) in [
        ("schedule:", "schedul:"),
        ("name: daily", "nmae: daily"),
        ("campanile/v1", "campanile/v2"),
        ("kind: Job", "kind: CronJob"),
        ("kind: Job", "kind: Job\nstatus: done"),
        ("FireOnceNow", "FireTwice"),
        ("'5m'", "soon"),
        ("5m", "5x"),
        ("[/bin/true]", "/bin/true"),
        ("{team: pay}", "{team: 7}"),
    ] {
        let text =
            BILLING.split("---").next().unwrap().replace("name: billing/daily", "name: daily").replace("5m", "'5m'");
        let text = if from == "5m" { text.replace("'5m'", to) } else { text.replace(from, to) };
        assert!(judge(&documents(&text)[0]).is_err(), "{from} -> {to}");
        files.write("a.yaml", &text);
        files.apply(&["--dry-run"]).refused(2);
    }
}

/// Exported yesterday, applied today on a node that has none of it: what is over blocks nothing.
#[test]
fn a_schedule_that_is_over_becomes_a_job_without_a_next_fire() {
    let files = Files::new();
    files.write(
        "jobs.yaml",
        "apiVersion: campanile/v1\nkind: Job\nmetadata: {name: once}\nspec: {at: 2020-01-01T00:00:00Z, command: [/bin/true]}\n---\n\
         apiVersion: campanile/v1\nkind: Job\nmetadata: {name: ended}\nspec: {every: 1h, endAt: 2020-01-01T00:00:00Z, command: [/bin/true]}\n---\n\
         apiVersion: campanile/v1\nkind: Job\nmetadata: {name: years}\nspec: {schedule: '0 0 0 1 1 ? 2020', command: [/bin/true]}\n---\n\
         apiVersion: campanile/v1\nkind: Job\nmetadata: {name: good}\nspec: {every: 1h, command: [/bin/true]}\n",
    );
    let done = files.apply(&[]).ok();
    assert!(done.ends_with("created 4, changed 0, unchanged 0, deleted 0\n"), "{done}");
    for told in
        ["at 2020-01-01T00:00:00.000Z lies in the past", "endAt 2020", "schedule 0 0 0 1 1 ? 2020 lies in the past"]
    {
        assert!(done.contains(told), "{told}: {done}");
    }
    for name in ["once", "ended", "years"] {
        let job = files.job(name);
        assert_eq!(
            (&job["trigger"]["type"], &job["nextFireAt"], &job["runCount"]),
            (&"MANUAL".into(), &Value::Null, &0.into())
        );
    }
    assert_eq!(files.apply(&[]).ok(), "0 to create, 0 to change, 4 unchanged, 0 to delete\n");
    // What was never right is refused as before, and so is one in the past that is made by hand.
    files.write(
        "never.yaml",
        "{apiVersion: campanile/v1, kind: Job, metadata: {name: never}, spec: {schedule: '0 0 31 2 *'}}\n",
    );
    assert!(files.apply(&[]).refused(2).contains("February has no 31st"));
    let once = ["job", "create", "--name", "late", "--at", "2020-01-01T00:00:00Z", "--sh", "true"];
    assert!(files.dev.run(&once).refused(2).contains("400_SCHEDULE_NEVER_FIRES"));
}

/// What `helm template` prints: a CronJob among objects that are no jobs.
#[test]
fn objects_of_other_kinds_are_named_and_passed_over() {
    let files = Files::new();
    files.write(
        "chart.yaml",
        "---\n# Source: chart/templates/serviceaccount.yaml\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: report}\n---\n\
         apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: report}\nspec:\n  schedule: \"0 14 */10 * 1-5\"\n  timeZone: America/Denver\n  \
         jobTemplate: {spec: {template: {spec: {containers: [{name: c, command: [/bin/true]}]}}}}\n",
    );
    let plan = files.apply(&["--dry-run", "-o", "json"]).json();
    assert_eq!((&plan["create"], plan["passedOver"].as_array().unwrap().len()), (&1.into(), 1), "{plan}");
    let told = plan["passedOver"][0]["message"].as_str().unwrap();
    assert_eq!(told, "the ServiceAccount 'report' is passed over: it is no job");
    assert!(files.apply(&["--strict"]).refused(2).contains("ServiceAccount 'report'"));
    assert!(files.apply(&[]).ok().contains("is passed over"));
    // Kubernetes' rule: either day field is enough.
    let trigger = files.job("report")["trigger"].clone();
    assert_eq!((&trigger["expr"], &trigger["dialect"]), (&"0 14 1-31/10 * 1-5".into(), &"UNIX".into()));
    let body = serde_json::json!({"trigger": trigger, "after": "2026-11-25T00:00:00Z", "count": 4});
    let (_, preview) = files.dev.http("POST", "/api/v1/schedules/preview", Some(&body));
    let days: Vec<&str> = preview["next"].as_array().unwrap().iter().map(|at| &at.as_str().unwrap()[..10]).collect();
    assert_eq!(days, ["2026-11-25", "2026-11-26", "2026-11-27", "2026-11-30"]);
}
