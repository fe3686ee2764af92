#![allow(clippy::unwrap_used)]
use crate::{
    Import, Options, System, render,
    testing::{fires, fixture, imported, options, refused},
};
use campanile_schema::job::Trigger;
use serde_json::json;
use std::io::Write;

fn read() -> Import {
    let zone = Options { zone: Some("Asia/Shanghai".to_owned()), ..options() };
    imported(System::XxlJob, &[fixture("xxl_job")], &zone)
}

#[test]
fn tasks_become_jobs() {
    let import = read();
    let load = import.job("xxl/1");
    let written = load.written();
    let spec = &written["spec"];
    assert_eq!((&spec["handler"], &spec["executorSelector"]), (&json!("loadHandler"), &json!("billing-executor")));
    assert_eq!((&spec["displayName"], &spec["owner"]), (&json!("加载数据"), &json!("ada")));
    assert_eq!(spec["params"], json!({"jobParam": "{\"table\":\"orders\"}"}));
    assert_eq!(spec["timeout"], "10m");
    assert_eq!(spec["retryPolicy"], json!({"backoff": "Fixed", "maxDelay": "10s", "jitter": 0.0}));
    assert_eq!(written["metadata"]["labels"]["xxl.alarmEmail"], "ops@example.com");
    assert_eq!(load.spec.retry_policy.max_attempts, 3);
    assert_eq!(load.place.line, 43);
    let shell = import.job("xxl/3").written();
    let script = "#!/bin/bash\necho \"region $1\"\nexit 0\n";
    assert_eq!(shell["spec"]["command"], json!(["bash", "-c", script, "xxl", "eu", "0", "1"]));
    assert_eq!(
        (&shell["spec"]["displayName"], &shell["spec"]["concurrencyPolicy"]),
        (&json!("Shell with a line"), &json!("Replace"))
    );
    let python = import.job("xxl/11").written();
    assert_eq!(python["spec"]["action"]["command"], json!(["python3", "-", "p", "0", "1"]));
    assert_eq!(python["spec"]["action"]["stdin"], "import sys\nprint(sys.argv[1])\n");
    let rate = import.job("xxl/4");
    assert_eq!(rate.written()["spec"]["every"], "5m");
    assert_eq!(fires(&rate.spec, 1_795_651_200_000, 1), [1_795_651_500_000]);
    let stopped = import.job("xxl/5");
    assert_eq!((stopped.suspend, stopped.spec.executor_selector.as_str()), (Some(true), "default"));
    assert!(stopped.tells("its group 2 has no name"), "{:?}", stopped.changed);
    // The first Monday of December, 12:00 in Shanghai.
    assert_eq!(stopped.next[0].to_string(), "2026-12-07T04:00:00.000Z");
}

#[test]
fn children_become_a_dag() {
    let import = read();
    assert_eq!(import.job("xxl/1").next, [], "the DAG has the schedule");
    let dag = import.job("xxl/1/dag");
    let written = dag.written();
    assert_eq!(written["kind"], "Dag");
    let spec = &written["spec"];
    assert_eq!(
        (&spec["schedule"], &spec["misfirePolicy"]),
        (&json!("0 30 2 * * ?"), &json!(null)),
        "FireOnceNow is the default"
    );
    assert_eq!(spec["misfireThreshold"], "5s");
    let node = |node: &serde_json::Value| (node["id"].clone(), node["job"].clone(), node["rule"].clone());
    let nodes: Vec<_> = spec["nodes"].as_array().unwrap().iter().map(node).collect();
    let expected = |id: &str, rule: &str| (json!(id), json!(format!("xxl/{id}")), json!(rule));
    assert_eq!(
        nodes,
        [
            expected("1", "ALL_SUCCESS"),
            expected("2", "ALL_SUCCESS"),
            expected("3", "ALL_SUCCESS"),
            expected("4", "ANY_SUCCESS")
        ]
    );
    let edge = |from: &str, to: &str| json!({"from": from, "to": to});
    assert_eq!(spec["edges"], json!([edge("1", "2"), edge("1", "3"), edge("2", "4"), edge("3", "4")]));
    assert!(dag.tells("XXL-JOB runs 4 again after each"), "{:?}", dag.changed);
    assert_eq!(import.job("xxl/2/dag").written()["spec"]["nodes"].as_array().unwrap().len(), 2);
    // 02:30 in Shanghai.
    assert_eq!(dag.next[0].to_string(), "2026-11-26T18:30:00.000Z");
}

/// Imports files of SQL.
fn of_dumps(dumps: &[&str]) -> Import {
    let dir = tempfile::tempdir().unwrap();
    let paths = dumps.iter().enumerate().map(|(index, dump)| {
        let path = dir.path().join(format!("{index}.sql"));
        std::fs::write(&path, dump).unwrap();
        path
    });
    imported(System::XxlJob, &paths.collect::<Vec<_>>(), &options())
}

const COLUMNS: &str =
    "(id, job_group, job_desc, schedule_type, schedule_conf, executor_handler, glue_type, child_jobid, trigger_status)";

/// XXL-JOB does not ask whether a child is stopped. A paused job would hold up the run of the DAG.
#[test]
fn a_stopped_child_waits_for_its_parents_only() {
    let rows = "(1, 1, 'a', 'CRON', '0 0 1 * * ?', 'h', 'BEAN', '2', 1), (2, 1, 'b', 'CRON', '0 0 2 * * ?', 'h', 'BEAN', '', 0), \
                (3, 1, 'c', 'CRON', '0 0 3 * * ?', 'h', 'BEAN', '', 0)";
    let import = of_dumps(&[&format!("INSERT INTO xxl_job_info {COLUMNS} VALUES {rows};\n")]);
    let child = import.job("xxl/2");
    assert_eq!((child.suspend, child.spec.trigger.clone()), (None, Trigger::Manual {}));
    assert!(child.tells("its own schedule is left out"), "{:?}", child.changed);
    let alone = import.job("xxl/3");
    assert_eq!(alone.suspend, Some(true));
    assert!(!alone.tells("its own schedule"), "{:?}", alone.changed);
}

#[test]
fn ids_of_two_databases_are_not_mixed() {
    let dump = |handler: &str| {
        format!(
            "INSERT INTO xxl_job_info {COLUMNS} VALUES (1, 1, 'a', 'CRON', '0 0 1 * * ?', '{handler}', 'BEAN', '2', 1), \
             (2, 1, 'b', 'NONE', '', '{handler}', 'BEAN', '', 1);\n"
        )
    };
    let import = of_dumps(&[&dump("first"), &dump("second")]);
    assert_eq!(import.jobs.len(), 3, "{}", render(&import));
    assert_eq!(import.refused.len(), 2);
    assert!(import.refused[0].place.file.ends_with("1.sql"), "{:?}", import.refused);
    assert!(import.refused[0].reason.contains("the same id"), "{:?}", import.refused);
    assert_eq!(import.job("xxl/2").written()["spec"]["handler"], "first");
}

/// As `tables_xxl_job.sql` of 2.1 and 2.2 writes its first task.
#[test]
fn a_row_without_trigger_status_is_stopped_where_the_table_has_it() {
    let row = "INSERT INTO `xxl_job_info`(`id`, `job_group`, `job_cron`, `job_desc`, `executor_handler`, `glue_type`) VALUES \
               (1, 1, '0 0 0 * * ? *', 'a', 'h', 'BEAN');\n";
    let table =
        "CREATE TABLE `xxl_job_info` (`id` int, `job_cron` varchar(128), `trigger_status` tinyint DEFAULT '0');\n";
    assert_eq!(of_dumps(&[&format!("{table}{row}")]).job("xxl/1").suspend, Some(true));
    assert_eq!(of_dumps(&[row]).job("xxl/1").suspend, None);
}

#[test]
fn a_task_may_have_a_zone_of_its_own() {
    let row = |zone: &str| {
        format!(
            "INSERT INTO xxl_job_info (id, job_group, job_desc, schedule_type, schedule_conf, schedule_timezone, executor_handler, \
             glue_type, trigger_status) VALUES (1, 1, 'a', 'CRON', '0 30 2 * * ?', {zone}, 'h', 'BEAN', 1);\n"
        )
    };
    let own = of_dumps(&[&row("'Asia/Tokyo'")]);
    assert_eq!(own.job("xxl/1").written()["spec"]["timeZone"], "Asia/Tokyo");
    assert!(!own.notes.iter().any(|note| note.contains("not known")), "{:?}", own.notes);
    assert_eq!(of_dumps(&[&row("NULL")]).job("xxl/1").written()["spec"]["timeZone"], json!(null), "UTC is the default");
    let wrong = of_dumps(&[&row("'Mars/Base'")]);
    assert!(wrong.refused[0].reason.contains("the zone 'Mars/Base'"), "{:?}", wrong.refused);
}

#[test]
fn what_cannot_be_said_is_refused_by_name() {
    let import = read();
    for (origin, told) in [
        ("task 6", "GLUE_GROOVY"),
        ("task 7", "SHARDING_BROADCAST"),
        ("children of task 8", "in a circle (8 -> 9 -> 8)"),
        ("children of task 9", "in a circle (9 -> 8 -> 9)"),
        ("task 10", "the expression '0 0 25 * * ?'"),
    ] {
        let refused = import.refusal(origin);
        assert!(refused.reason.contains(told), "{refused:?}");
        assert!(refused.place.line >= 43, "{refused:?}");
    }
    assert_eq!(import.refused.len(), 5, "{}", render(&import));
}

#[test]
fn dumps_that_are_large_broken_or_of_something_else() {
    let why = refused(System::XxlJob, "x.sql", b"CREATE TABLE a (b int);\n");
    assert!(why.contains("has no rows of xxl_job_info"), "{why}");
    let why = refused(System::XxlJob, "x.sql", b"INSERT INTO `xxl_job_info` VALUES (1,'");
    assert!(why.contains("line 1: a text that begins here has no end"), "{why}");
    // A log of 50 MB before the tasks is passed over.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.sql");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    writeln!(file, "-- MySQL dump").unwrap();
    let row = format!("(1,'{}')", "it\\'s (;".repeat(128));
    for _ in 0..50 {
        writeln!(file, "INSERT INTO `xxl_job_log` VALUES {};", vec![row.as_str(); 1_000].join(",")).unwrap();
    }
    writeln!(
        file,
        "INSERT INTO xxl_job_info (id, job_group, job_desc, schedule_type, schedule_conf, executor_handler, glue_type, later) VALUES \
         (1, 1, 'a', 'CRON', '0 0 1 * * ?', 'h', 'BEAN', 'x');"
    )
    .unwrap();
    file.flush().unwrap();
    let import = imported(System::XxlJob, &[path], &options());
    let job = import.job("xxl/1");
    assert_eq!((job.place.line, job.suspend), (52, Some(true)));
    assert!(job.tells("its row has no trigger_status"), "{:?}", job.changed);
    assert!(
        import.notes.iter().any(|note| note.contains("unknown columns of xxl_job_info are ignored: later")),
        "{:?}",
        import.notes
    );
}
