#![allow(clippy::unwrap_used)]
use super::*;
use campanile_schema::job::{Action, ConcurrencyPolicy, MisfirePolicy, Trigger};
use serde_json::json;

fn file(name: &str, text: &str) -> ManifestFile {
    ManifestFile { name: name.to_owned(), text: text.to_owned() }
}

fn jobs(text: &str) -> Vec<ManifestJob> {
    let read = read(&[file("a.yaml", text)], "default");
    assert_eq!(read.problems, []);
    read.jobs
}

fn problems(text: &str) -> Vec<String> {
    let read = read(&[file("a.yaml", text)], "default");
    read.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_spec_is_shown_without_its_secrets() {
    let secret_params = [("api-key".to_owned(), "hunter2".to_owned())].into();
    let shown = format!("{:?}", job::Spec { secret_params, ..Default::default() });
    assert!(shown.contains("api-key"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

/// The example of the requirements.
const DAILY: &str = r#"apiVersion: campanile/v1
kind: Job
metadata:
  name: daily-billing
  namespace: finance
  labels: {team: pay}
spec:
  schedule: "0 2 * * *"
  timeZone: Asia/Shanghai
  concurrencyPolicy: Forbid
  misfirePolicy: FireOnceNow
  misfireThreshold: "5m"
  retryPolicy: {maxAttempts: 5, backoff: Fixed, baseDelay: 500ms}
  timeout: 1h30m
  executorSelector: billing_pool
  command: [/usr/bin/bill, --all]
  env: {MODE: full}
"#;

#[test]
fn a_job_is_what_its_manifest_says() {
    let [found] = <[ManifestJob; 1]>::try_from(jobs(DAILY)).unwrap();
    let spec = found.spec;
    assert_eq!(
        (spec.name.as_str(), spec.tenant_id.as_str(), &spec.labels["team"]),
        ("daily-billing", "finance", &"pay".to_owned())
    );
    let Trigger::Cron { expr, timezone, misfire_policy, misfire_threshold_sec, .. } = &spec.trigger else { panic!() };
    assert_eq!((expr.as_str(), timezone.as_str(), *misfire_threshold_sec), ("0 2 * * *", "Asia/Shanghai", 300));
    assert_eq!((*misfire_policy, spec.concurrency_policy), (MisfirePolicy::FireOnceNow, ConcurrencyPolicy::Forbid));
    assert_eq!((spec.timeout_sec, spec.retry_policy.base_delay_sec, spec.retry_policy.max_attempts), (5_400, 0.5, 5));
    let Some(Action::Command { command, env, .. }) = &spec.action else { panic!() };
    assert_eq!((command.len(), env["MODE"].as_str()), (2, "full"));
    assert_eq!((found.suspend, found.hazards.len()), (None, 0));
}

#[test]
fn every_trigger_has_its_field() {
    for (spec, expected) in [
        ("every: 5m", json!({"type": "FIXED_RATE", "everySec": 300})),
        (
            "{every: 30, anchorAt: 2030-01-01T00:00:00Z}",
            json!({"type": "FIXED_RATE", "everySec": 30, "anchorAt": "2030-01-01T00:00:00Z"}),
        ),
        ("afterLast: 1d", json!({"type": "FIXED_DELAY", "everySec": 86_400})),
        ("at: 2030-01-01T00:00:00Z", json!({"type": "ONCE", "at": "2030-01-01T00:00:00Z"})),
        (
            "{at: '2030-01-01 08:00:00', timeZone: Asia/Shanghai}",
            json!({"type": "ONCE", "at": "2030-01-01 08:00:00", "timezone": "Asia/Shanghai"}),
        ),
        ("{}", json!({"type": "MANUAL"})),
        (
            "{schedule: '@daily', gap: skip, overlap: BOTH, jitter: 2m}",
            json!({"type": "CRON", "expr": "@daily", "gap": "SKIP", "overlap": "BOTH", "jitterSec": 120}),
        ),
    ] {
        let spec = if spec.starts_with('{') { spec.to_owned() } else { format!("{{{spec}}}") };
        let text = format!("{{apiVersion: campanile/v1, kind: Job, metadata: {{name: a}}, spec: {spec}}}");
        let trigger: Trigger = serde_json::from_value(expected).unwrap();
        assert_eq!(jobs(&text)[0].spec.trigger, trigger, "{spec}");
    }
}

#[test]
fn everything_wrong_is_told_with_its_place() {
    let text = "\
apiVersion: campanile/v1
kind: Job
metadata:
  nmae: x
  labels: {a: 1}
spec:
  schedul: '0 2 * * *'
  every: soon
  concurrencyPolicy: Forbit
  retryPolicy:
    maxAttempts: -1
---
apiVersion: campanile/v2
kind: Job
---
kind: Jub
---
- apiVersion: campanile/v1
  kind: Job
  metadata: {name: y}
  spec: {every: 5m, timeZone: UTC, env: {A: b}}
";
    let told = problems(text);
    for expected in [
        "a.yaml:4:3: metadata.nmae: unknown field; did you mean `name`?",
        "a.yaml:5:12: metadata.labels.a: this is a number, and text is wanted: write it in quotes",
        "a.yaml:7:3: spec.schedul: unknown field; did you mean `schedule`?",
        "a.yaml:8:3: spec.every: 'soon' is not a time: write 30, 30s, 5m, 2h, 1h30m or 1d",
        "a.yaml:9:3: spec.concurrencyPolicy: 'Forbit' is not one of ALLOW, FORBID, REPLACE, QUEUE_ONE",
        "a.yaml:11:5: spec.retryPolicy.maxAttempts: invalid value: integer `-1`, expected u32",
        "a.yaml:13:1: apiVersion: 'campanile/v2' is not known for kind Job: write campanile/v1",
        "a.yaml:16:1: kind: 'Jub' is not Job, Dag or CronJob; did you mean Job?",
        "a.yaml:21:21: [0].spec.timeZone: goes with schedule or at",
        "a.yaml:21:36: [0].spec.env: goes with command",
    ] {
        assert!(told.iter().any(|line| line == expected), "{expected} is not in {told:#?}");
    }
    let two = "apiVersion: campanile/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  every: 5m\n  schedule: '@daily'\n";
    assert_eq!(problems(two), ["a.yaml:5:3: spec.every: a job has one trigger: write one of schedule and every"]);
    let plain = problems("name: a\ntrigger: {type: MANUAL}\n");
    assert!(plain[0].contains("campanile job create"), "{plain:?}");
}

#[test]
fn twins_and_files_that_are_too_large_are_refused() {
    let a = "{apiVersion: campanile/v1, kind: Job, metadata: {name: a}, spec: {}}\n";
    let b = "{apiVersion: campanile/v1, kind: Job, metadata: {name: a, namespace: fin}, spec: {}}\n";
    let read_both = |tenant| read(&[file("a.yaml", a), file("b.yaml", b)], tenant);
    assert_eq!(read_both("default").problems, []);
    assert_eq!(
        read_both("fin").problems[0].to_string(),
        "b.yaml:1:50: metadata.name: the job 'a' of tenant 'fin' stands in a.yaml, line 1, too"
    );
    let large = "#".repeat(MANIFEST_FILE_BYTES + 1);
    assert!(problems(&large)[0].contains("at most"));
    let many = format!("{a}---\n").repeat(MANIFEST_PROBLEMS + 50);
    assert_eq!(problems(&many).len(), MANIFEST_PROBLEMS);
}

#[test]
fn a_manifest_of_a_job_means_the_job() {
    let specs = [
        json!({"name": "a", "trigger": {"type": "MANUAL"}}),
        json!({"name": "a", "tenantId": "fin", "trigger": {"type": "CRON", "expr": "0 0 2 * * MON", "dialect": "QUARTZ", "timezone": "Europe/Berlin",
            "gap": "SKIP", "overlap": "BOTH", "startAt": "2030-01-01T00:00:00Z", "endAt": "2031-01-01T00:00:00Z", "jitterSec": 90,
            "misfirePolicy": "FIRE_ALL_MISSED", "misfireThresholdSec": 5, "maxCatchUp": 7}}),
        json!({"name": "a", "trigger": {"type": "CRON", "expr": "*/5 * * * *", "dialect": "UNIX"}}),
        json!({"name": "a", "trigger": {"type": "FIXED_RATE", "everySec": 3, "anchorAt": "2030-01-01T00:00:00.250Z", "maxCatchUp": 0}}),
        json!({"name": "a", "trigger": {"type": "FIXED_DELAY", "everySec": 3, "misfirePolicy": "SKIP", "endAt": "2031-01-01T00:00:00Z"}}),
        json!({"name": "a", "trigger": {"type": "ONCE", "at": "2030-01-01T00:00:00Z", "misfireThresholdSec": 1}}),
        json!({"name": "a", "trigger": {"type": "MANUAL"}, "concurrencyPolicy": "QUEUE_ONE", "timeoutSec": 7, "maxRuntimeSec": 90, "idempotent": false,
            "onLostContact": "STOP", "deadLetter": false, "executorSelector": "p", "priority": 1, "labels": {"a.b/c": "d"},
            "resources": {"cpu": 2.5, "memoryMb": 1, "storageMb": 9}, "params": {"x": [1, null, {"y": "ü"}]},
            "secretParams": {"k": "***"}, "action": {"kind": "HANDLER", "name": "other"},
            "retryPolicy": {"maxAttempts": 1, "backoff": "FIXED", "baseDelaySec": 0.25, "maxDelaySec": 86400.0, "jitter": 0.0, "maxElapsedSec": 3600}}),
        json!({"name": "a", "trigger": {"type": "MANUAL"}, "action": {"kind": "COMMAND", "command": ["a", "b"], "env": {"A": "b: c"}}}),
        json!({"name": "a", "trigger": {"type": "MANUAL"}, "action": {"kind": "COMMAND", "command": ["a"], "cwd": "/", "stdin": "x\ny", "outputCapKb": 1}}),
    ];
    for spec in specs {
        let spec: JobSpec = serde_json::from_value(spec).unwrap();
        for suspend in [None, Some(true)] {
            let written = yaml(&manifest(&spec, suspend).unwrap()).unwrap();
            let again = jobs(&written).remove(0);
            let mut expected = spec.clone();
            if let Trigger::Cron { dialect, .. } = &mut expected.trigger
                && !written.contains("dialect")
            {
                // Left out where the expression alone is read so.
                *dialect = campanile_schema::job::Dialect::Auto;
            }
            assert_eq!(again.spec.params.to_value(), expected.params.to_value());
            expected.params = again.spec.params.clone();
            assert_eq!((again.spec, again.suspend), (expected, suspend), "{written}");
        }
    }
}

#[test]
fn differences_are_told_field_by_field() {
    let found = jobs(DAILY).remove(0);
    let from = manifest(&found.spec, None).unwrap();
    let changed = DAILY
        .replace("0 2 * * *", "0 3 * * *")
        .replace("{team: pay}", "{team: ops, tier: a}")
        .replace("  timeout: 1h30m\n", "");
    let to = manifest(&jobs(&changed)[0].spec, None).unwrap();
    assert_eq!(differences(&from, &from).unwrap(), []);
    let told: Vec<String> = differences(&from, &to)
        .unwrap()
        .iter()
        .map(|(field, from, to)| format!("{field}: {from:?} -> {to:?}"))
        .collect();
    assert_eq!(
        told,
        [
            r#"metadata.labels.team: Some(String("pay")) -> Some(String("ops"))"#,
            r#"metadata.labels.tier: None -> Some(String("a"))"#,
            r#"spec.schedule: Some(String("0 2 * * *")) -> Some(String("0 3 * * *"))"#,
            r#"spec.timeout: Some(String("1h30m")) -> None"#,
        ]
    );
}

const CRON_JOB: &str = r#"apiVersion: batch/v1
kind: CronJob
metadata: {name: report, namespace: fin, annotations: {a: b}}
spec:
  schedule: "30 6 * * 1-5"
  timeZone: Europe/Paris
  startingDeadlineSeconds: 120
  suspend: true
  jobTemplate:
    spec:
      backoffLimit: 2
      activeDeadlineSeconds: 600
      template:
        spec:
          restartPolicy: OnFailure
          nodeSelector: {disk: ssd}
          containers:
            - name: report
              image: registry/report:1
              command: [/bin/report]
              args: ["--day", "$(DAY)"]
              env: [{name: DAY, value: today}]
              workingDir: /srv
              resources: {requests: {cpu: 250m, memory: 256Mi}, limits: {cpu: "1"}}
"#;

#[test]
fn a_cron_job_of_kubernetes_is_honoured_as_far_as_it_can_be() {
    let found = jobs(CRON_JOB).remove(0);
    let spec = &found.spec;
    let Trigger::Cron { expr, timezone, misfire_policy, misfire_threshold_sec, .. } = &spec.trigger else { panic!() };
    assert_eq!((expr.as_str(), timezone.as_str()), ("30 6 * * 1-5", "Europe/Paris"));
    assert_eq!((*misfire_policy, *misfire_threshold_sec), (MisfirePolicy::Skip, 120));
    assert_eq!((spec.concurrency_policy, found.suspend), (ConcurrencyPolicy::Allow, Some(true)));
    assert_eq!((spec.retry_policy.max_attempts, spec.timeout_sec), (3, 600));
    assert_eq!((spec.resources.cpu, spec.resources.memory_mb), (0.25, 256));
    let Some(Action::Command { command, env, cwd, .. }) = &spec.action else { panic!() };
    assert_eq!((command.len(), env["DAY"].as_str(), cwd.as_deref()), (3, "today", Some("/srv")));
    let hazards = found.hazards.join("\n");
    for told in [
        "the image registry/report:1 is not used",
        "$(NAME) in command",
        "metadata.annotations is passed over",
        "spec.jobTemplate.spec.template.spec.nodeSelector is passed over",
        "spec.jobTemplate.spec.template.spec.containers[0].resources.limits is passed over",
        "longest time of an attempt",
    ] {
        assert!(hazards.contains(told), "{told} is not in {hazards}");
    }
}

#[test]
fn what_would_make_another_program_of_a_cron_job_is_refused() {
    for (from, to, told) in [
        (
            "              command: [/bin/report]\n",
            "",
            "a.yaml:18:15: spec.jobTemplate.spec.template.spec.containers[0].command: what the image starts",
        ),
        (
            "          restartPolicy: OnFailure\n",
            "          volumes: []\n",
            "a.yaml:15:11: spec.jobTemplate.spec.template.spec.volumes: has no counterpart",
        ),
        ("value: today", "valueFrom: {}", "env[0]: valueFrom is not read"),
        (
            "      backoffLimit: 2\n",
            "      completions: 3\n",
            "a.yaml:11:7: spec.jobTemplate.spec.completions: one run",
        ),
        ("250m", "lots", "resources.requests.cpu: 'lots' is not a quantity"),
        ("  schedule: \"30 6 * * 1-5\"\n", "", "a.yaml:4:1: spec: schedule is missing"),
        ("suspend: true", "suspend: maybe", "spec.suspend: is true or false, not \"maybe\""),
    ] {
        let text = CRON_JOB.replace(from, to);
        assert_ne!(text, CRON_JOB);
        let lines = problems(&text);
        assert!(lines.iter().any(|line| line.contains(told)), "{told} is not in {lines:#?}");
    }
}

#[test]
fn the_schema_knows_both_ways_of_words() {
    let document = schema::document();
    let misfire = &document["$defs"]["MisfirePolicy"].to_string();
    assert!(misfire.contains("\"FireOnceNow\""), "{misfire}");
    assert!(misfire.contains("\"FIRE_ONCE_NOW\""), "{misfire}");
    assert!(document["properties"]["kind"].is_object());
}

/// Kubernetes takes it, suspended or not, and never starts it.
#[test]
fn a_cron_job_that_never_fires_is_a_job_by_hand() {
    for suspend in ["suspend: true", "suspend: false"] {
        let text = CRON_JOB.replace("30 6 * * 1-5", "0 0 31 2 *").replace("suspend: true", suspend);
        let found = jobs(&text).remove(0);
        assert_eq!((&found.spec.trigger, found.suspend), (&Trigger::Manual {}, Some(suspend == "suspend: true")));
        let told = found.hazards.iter().find(|line| line.contains("MANUAL")).unwrap();
        assert!(told.contains("'0 0 31 2 *'"), "{told}");
        assert!(told.contains("February has no 31st"), "{told}");
    }
    let slip = CRON_JOB.replace("30 6 * * 1-5", "61 6 * * *");
    assert!(matches!(jobs(&slip)[0].spec.trigger, Trigger::Cron { .. }), "the node refuses it, with its place");
}

#[test]
fn a_schedule_of_kubernetes_keeps_its_meaning() {
    let of = |schedule: &str| {
        let found = jobs(&CRON_JOB.replace("30 6 * * 1-5", schedule)).remove(0);
        (serde_json::to_value(found.spec.trigger).unwrap(), found.hazards.join("\n"))
    };
    let (trigger, hazards) = of("0 14 */10 * 1-5");
    assert_eq!(trigger["expr"], "0 14 1-31/10 * 1-5");
    assert!(hazards.contains("'0 14 */10 * 1-5' is kept as '0 14 1-31/10 * 1-5'"), "{hazards}");
    let (trigger, hazards) = of("@every 90m");
    assert_eq!((&trigger["type"], &trigger["everySec"]), (&json!("FIXED_RATE"), &json!(5_400)));
    assert!(!hazards.contains("timeZone"), "{hazards}");
    assert!(of("0 6 * * 7").1.contains("Kubernetes itself refuses"));
}

#[test]
fn one_slip_is_told_once() {
    let text = CRON_JOB.replace("command: [/bin/report]", "command: [sleep, 5]");
    let told = problems(&text);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].contains("containers[0].command: is a list of texts"), "{told:#?}");
    let job = "apiVersion: campanile/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  command: [sleep, 5, x, true]\n";
    let told = problems(job);
    assert_eq!(
        told,
        [
            "a.yaml:5:20: spec.command[1]: this is a number, and text is wanted: write it in quotes",
            "a.yaml:5:26: spec.command[3]: this is true or false, and text is wanted: write it in quotes",
        ]
    );
}

#[test]
fn objects_of_kubernetes_that_are_no_jobs_are_passed_over() {
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: sa}\n---\n";
    let found = read(&[file("a.yaml", &format!("{account}{DAILY}"))], "default");
    assert_eq!((found.jobs.len(), found.problems.len(), found.passed_over.len()), (1, 0, 1));
    assert_eq!(found.passed_over[0].to_string(), "a.yaml:1:1: the ServiceAccount 'sa' is passed over: it is no job");
    let list = "{kind: List, apiVersion: v1, items: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}]}";
    assert_eq!(read(&[file("a.yaml", list)], "default").passed_over.len(), 1);
    // Slips are no other kinds.
    for slip in [
        "apiVersion: batch/v1\nkind: CronJobs\n",
        "apiVersion: campanile/v1\nkind: Deployment\n",
        "kind: ServiceAccount\n",
    ] {
        assert_eq!(
            (problems(slip).len(), read(&[file("a.yaml", slip)], "default").passed_over.len()),
            (1, 0),
            "{slip}"
        );
    }
}
