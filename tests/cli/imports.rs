//! `campanile import` of other schedulers: manifests, the report, a directory, and jobs on a real node.
use crate::program::{Dev, Done, run};
use serde_json::Value;
use std::{fs, path::PathBuf};

/// Files of the crate that reads them.
fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/imports/fixtures").join(name);
    path.to_str().unwrap().to_owned()
}

fn dev(dir: &std::path::Path) -> Dev {
    Dev::start(&dir.join("data"), &["--no-demo", "--no-executor"])
}

#[test]
fn every_system_is_imported_applied_and_the_second_time_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let dev = dev(dir.path());
    for (args, jobs, refused) in [
        (&["kubernetes", &fixture("kubernetes"), "--tenant", "k8s"][..], 3, 1),
        (&["systemd", &fixture("systemd"), "--as-self"], 5, 4),
        (&["quartz", &fixture("quartz/jobs.xml"), &fixture("quartz/mysql.sql"), "--tz", "UTC"], 7, 7),
        (&["xxl-job", &fixture("xxl_job"), "--tz", "Asia/Shanghai"], 11, 5),
    ] {
        let import = |more: &[&str]| dev.run(&[&["import"], args, more].concat());
        let shown = import(&["--apply", "--dry-run"]);
        assert!(shown.err.contains("nothing was changed: a dry run"), "{shown:?}");
        let told = import(&["--apply"]);
        let err = told.err.clone();
        assert!(told.err.contains(&format!("{refused} refused")), "{told:?}");
        assert_eq!(told.code, 2, "some were refused: {told:?}");
        assert!(told.out.ends_with(&format!("created {jobs}, changed 0, unchanged 0, deleted 0\n")), "{told:?}");
        assert!(err.contains("the others were imported"), "{err}");
        let again = import(&["--apply"]);
        assert_eq!(again.out, format!("0 to create, 0 to change, {jobs} unchanged, 0 to delete\n"), "{again:?}");
    }
    let dag = dev.run(&["job", "get", "xxl/1/dag", "-o", "json"]).json();
    assert_eq!((&dag["action"]["kind"], &dag["status"]), (&"DAG".into(), &"ENABLED".into()));
    let stopped = dev.run(&["job", "get", "xxl/5", "-o", "json"]).json();
    assert_eq!(stopped["status"], "PAUSED");
    assert_eq!(dev.stop(), 0);
}

#[test]
fn manifests_go_to_stdout_the_report_to_stderr_and_no_node_is_asked() {
    let done = run(&["import", "quartz", &fixture("quartz/postgres.sql")]);
    assert!(done.err.contains("1 job, "), "{done:?}");
    let text = done.ok();
    assert!(text.starts_with("# trigger daily.report of job daily.report, "), "{text}");
    assert!(text.contains("schedule: 0 0 6 ? * 2#1\n"), "{text}");
    let json = run(&["import", "quartz", &fixture("quartz/postgres.sql"), "-o", "json"]).json();
    assert_eq!(json["items"][0]["name"], "quartz/daily/report");
    assert_eq!(json["items"][0]["manifest"]["spec"]["misfirePolicy"], "FireAllMissed");
    let refused = run(&["import", "quartz", &fixture("quartz/jobs.xml"), "-o", "json"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    let value: Value = serde_json::from_str(&refused.out).unwrap();
    assert_eq!(value["refused"].as_array().unwrap().len(), 5);
}

#[test]
fn a_directory_is_written_once() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("jobs");
    let import = || run(&["import", "quartz", &fixture("quartz/postgres.sql"), "--dir", out.to_str().unwrap()]);
    let told = import().ok();
    assert!(told.ends_with(&format!("wrote {}\n", out.join("quartz.yaml").display())), "{told}");
    let before = fs::read(out.join("quartz.yaml")).unwrap();
    assert!(import().refused(2).contains("quartz.yaml is there already"));
    assert_eq!(fs::read(out.join("quartz.yaml")).unwrap(), before);
}

#[test]
fn hostile_files_are_refused_in_one_sentence_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let out = dir.path().join("out");
    let refused = |system: &str, path: &str| -> Done { run(&["import", system, path, "--dir", out.to_str().unwrap()]) };
    for (system, path, told) in [
        ("kubernetes", file("a.yaml", &vec![b'#'; 50 << 20]), "larger than 2097152 bytes"),
        ("quartz", file("a.xml", &vec![b' '; 50 << 20]), "larger than 16777216 bytes"),
        ("quartz", file("b.xml", b"<!DOCTYPE a [<!ENTITY b 'c'>]><job-scheduling-data/>"), "is not valid XML"),
        ("quartz", file("c.xml", &b"<a>".repeat(1 << 20)), "nested deeper than 64 levels"),
        ("quartz", file("d.sql", &vec![b'\''; 50 << 20]), "longer than 1048576 bytes"),
        ("xxl-job", file("e.sql", &vec![b'('; 50 << 20]), "has no rows of xxl_job_info"),
        ("xxl-job", file("f.sql", b"\0\xff\xfeINSERT"), "has no rows of xxl_job_info"),
        ("systemd", file("a.timer", &vec![b'x'; 50 << 20]), "larger than 1048576 bytes"),
        ("systemd", "/nonexistent".to_owned(), "cannot read /nonexistent"),
    ] {
        let done = refused(system, &path);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{system}: {done:?}");
        assert!(done.err.contains(told), "{told}: {done:?}");
        assert!(done.err.lines().count() <= 2, "{done:?}");
    }
    assert!(!out.exists(), "nothing was written");
    let zone = run(&["import", "xxl-job", &fixture("xxl_job"), "--tz", "Mars/Base"]).refused(2);
    assert!(zone.contains("Mars/Base"), "{zone}");
}
