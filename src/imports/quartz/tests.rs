#![allow(clippy::unwrap_used)]
use crate::{
    Import, Options, System,
    draft::{CronRules, cron, plain},
    render,
    testing::{NOW, fires, fixture, imported, options, refused},
};
use campanile_schema::{
    job::{Dialect, Gap, MisfirePolicy, Overlap},
    limits::IMPORT_XML_NODES,
};
use serde_json::json;

fn read(name: &str) -> Import {
    imported(System::Quartz, &[fixture(name)], &options())
}

#[test]
fn jobs_and_triggers_of_xml() {
    let import = read("quartz/jobs.xml");
    let nightly = import.job("quartz/billing/invoices/nightly");
    let written = nightly.written();
    let spec = &written["spec"];
    assert_eq!(spec["schedule"], "0 30 2 ? * MON-FRI");
    assert_eq!(
        (&spec["timeZone"], &spec["gap"], &spec["overlap"]),
        (&json!("Europe/Berlin"), &json!("Skip"), &json!("Second"))
    );
    assert_eq!((&spec["misfirePolicy"], &spec["handler"]), (&json!("Skip"), &json!("com.example.billing.InvoiceJob")));
    assert_eq!(spec["params"], json!({"batch": "500", "currency": "EUR"}));
    assert_eq!((&spec["priority"], &spec["concurrencyPolicy"]), (&json!(120), &json!("Allow")));
    assert_eq!(spec["description"], "Sends the invoices of the day");
    assert_eq!(
        written["metadata"]["labels"],
        json!({"quartz.job": "billing.invoices", "quartz.trigger": "billing.nightly"})
    );
    for told in ["several triggers", "asks for recovery", "@DisallowConcurrentExecution", "the priority 7"] {
        assert!(nightly.tells(told), "{told}: {:?}", nightly.changed);
    }
    assert_eq!(nightly.place.line, 22);
    let end = import.job("quartz/billing/invoices/month-end").written();
    assert_eq!(
        (&end["spec"]["schedule"], &end["spec"]["endAt"]),
        (&json!("0 0 18 LW * ? 2026-2029"), &json!("2030-01-01T00:00:00.000Z"))
    );
    let poll = import.job("quartz/DEFAULT/poll").written();
    assert_eq!(
        (&poll["spec"]["every"], &poll["spec"]["anchorAt"]),
        (&json!("30s"), &json!("2026-11-26T00:00:00.000Z"))
    );
    assert_eq!(poll["spec"]["misfirePolicy"], "Skip");
    assert!(import.job("quartz/DEFAULT/by_hand").tells("it has no trigger"));
    for (trigger, told) in [
        ("half a second", "500 ms is not a whole number of seconds"),
        ("holidays", "the calendar 'german-holidays'"),
        ("wrong", "the expression '0 0 9 * * *,?'"),
        ("monthly", "an interval of the unit MONTH"),
        ("lost", "its job is not in the file"),
    ] {
        let refused = import.refusal(trigger);
        assert!(refused.reason.contains(told), "{refused:?}");
        assert!(refused.place.line > 60, "{refused:?}");
    }
    assert_eq!(import.refused.len(), 5, "{}", render(&import));
    assert!(import.notes.iter().any(|note| note.contains("jobs.xml:6: <pre-processing-commands> is not carried out")));
}

/// Imports `jobs.xml` with a part of it written otherwise.
fn changed(from: &str, to: &str) -> Import {
    let xml = std::fs::read_to_string(fixture("quartz/jobs.xml")).unwrap();
    assert!(xml.contains(from), "{from}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.xml");
    std::fs::write(&path, xml.replace(from, to)).unwrap();
    imported(System::Quartz, &[path], &options())
}

/// `SimpleTriggerImpl` leaves out an instant that is its end, `CronTriggerImpl` takes it.
#[test]
fn an_interval_does_not_fire_at_its_end_and_a_cron_trigger_does() {
    let repeats = "<repeat-count>-1</repeat-count>\n        <repeat-interval>30000";
    let import = changed(repeats, &format!("<end-time>2026-11-26T00:01:00Z</end-time>{repeats}"));
    assert_eq!(fires(&import.job("quartz/DEFAULT/poll").spec, NOW, 5), [NOW + 30_000]);
    let zone = "<cron-expression>0 0 18 LW * ? 2026-2029</cron-expression>";
    let import = changed(zone, "<cron-expression>0 0 0 1 1 ? 2029-2031</cron-expression><time-zone>UTC</time-zone>");
    let last = fires(&import.job("quartz/billing/invoices/month-end").spec, NOW, 5);
    assert_eq!(last.len(), 2, "2029, and 2030 at the end itself: {last:?}");
}

#[test]
fn comments_within_a_text_are_left_out_of_it() {
    let import = changed("<value>EUR</value>", "<value><!-- not\nUSD -->E<!-- --><![CDATA[U]]>R</value>");
    let params = &import.job("quartz/billing/invoices/month-end").written()["spec"]["params"];
    assert_eq!(params["currency"], "EUR");
}

#[test]
fn tables_of_mysql() {
    let import = read("quartz/mysql.sql");
    let nightly = import.job("quartz/DEFAULT/nightly");
    let spec = &nightly.written()["spec"];
    assert_eq!((&spec["schedule"], &spec["concurrencyPolicy"]), (&json!("0 30 2 * * ?"), &json!("QueueOne")));
    assert_eq!((&spec["params"], &spec["misfirePolicy"]), (&json!({"report": "daily"}), &json!("Skip")));
    assert_eq!(spec["description"], "Line one\nline two");
    let paused = import.jobs.iter().find(|job| job.origin.starts_with("trigger DEFAULT.paused")).unwrap();
    assert_eq!(paused.suspend, Some(true));
    assert!(!paused.tells("job data"), "an empty map loses nothing: {:?}", paused.changed);
    // Ten instants from 2030-01-19 on, a minute apart.
    let odd = import.job("quartz/DEFAULT/name_with_a_line");
    assert!(odd.tells("its job data is not imported"), "{:?}", odd.changed);
    assert_eq!(fires(&odd.spec, 0, 20).len(), 10);
    assert_eq!(fires(&odd.spec, 0, 1), [1_895_000_000_000]);
    assert!(odd.origin.contains("name with a line"), "{}", odd.origin);
    assert!(import.refusal("DEFAULT.blob").reason.contains("the type 'BLOB'"));
    assert!(import.refusal("DEFAULT.done").reason.contains("it is complete"));
    assert!(import.notes.iter().any(|note| note.contains("unknown columns of job_details are ignored: tenant")));
    let wrong = Options { table_prefix: "Q_".to_owned(), ..options() };
    let told = crate::import(System::Quartz, &[fixture("quartz/mysql.sql")], &wrong).unwrap_err().to_string();
    assert!(told.contains("no rows of Q_job_details"), "{told}");
}

#[test]
fn tables_of_postgresql() {
    let import = read("quartz/postgres.sql");
    let report = import.job("quartz/daily/report");
    let spec = &report.written()["spec"];
    assert_eq!((&spec["schedule"], &spec["misfirePolicy"]), (&json!("0 0 6 ? * 2#1"), &json!("FireAllMissed")));
    // A Monday in Shanghai: 2026-12-07 06:00 is 22:00 of the day before in UTC.
    assert_eq!(report.next[0].to_string(), "2026-12-06T22:00:00.000Z");
}

/// Instants of Quartz' own `CronExpression`, kept in a file.
#[test]
fn expressions_are_due_when_quartz_says() {
    let text = std::fs::read_to_string(fixture("quartz/fires.txt")).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() > 30, "{} lines", lines.len());
    let mut wrong = Vec::new();
    for line in lines {
        let [expr, zone, base, expected] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let expected: Vec<i64> = expected.split_whitespace().map(|at| at.parse::<i64>().unwrap() * 1_000).collect();
        let (gap, overlap, misfire) = (Gap::Skip, Overlap::Second, MisfirePolicy::Skip);
        let rules = CronRules { dialect: Dialect::Quartz, gap, overlap, misfire, threshold_sec: 60 };
        let ours = fires(&plain("default", "x", cron(expr, zone, rules)), base.parse::<i64>().unwrap() * 1_000, 12);
        if ours != expected {
            wrong.push(format!("{expr} in {zone}\n  theirs {expected:?}\n  ours   {ours:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Quartz 2.5.2 gives 23:00, 23:30, 01:00 and 01:30 UTC here; the hour from 00:00 on is the first of two that the clock in Berlin shows.
#[test]
fn an_open_time_field_is_due_in_both_hours_and_that_is_told() {
    let import = changed("0 30 2 ? * MON-FRI", "0 0/30 * * * ?");
    let job = import.job("quartz/billing/invoices/nightly");
    assert!(
        job.tells("Quartz leaves out the hour that comes the first time; here it is due in both"),
        "{:?}",
        job.changed
    );
    let from = 1_824_937_199_000;
    let expected: Vec<i64> = (0..6).map(|half| 1_824_937_200_000 + half * 1_800_000).collect();
    assert_eq!(fires(&job.spec, from, 6), expected);
    let fixed = read("quartz/jobs.xml");
    assert!(!fixed.job("quartz/billing/invoices/nightly").tells("here it is due in both"));
}

#[test]
fn hostile_xml_is_refused_in_a_sentence() {
    let bomb = "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]><job-scheduling-data>&b;</job-scheduling-data>";
    let many = format!("<job-scheduling-data>{}</job-scheduling-data>", "<a/>".repeat(IMPORT_XML_NODES as usize + 10));
    for (text, told) in [
        (bomb.to_owned(), "DTD"),
        ("<a>".repeat(1_000_000), "nested deeper than 64 levels"),
        (many, "nodes limit"),
        ("<job-scheduling-data>".to_owned(), "is not valid XML"),
        ("<web-app/>".to_owned(), "its root is <web-app>"),
        (String::new(), "is not valid XML"),
        ("x".repeat(50 << 20), "larger than 16777216 bytes"),
    ] {
        let why = refused(System::Quartz, "x.xml", text.as_bytes());
        assert!(why.contains(told), "{told}: {why}");
    }
    let why = refused(System::Quartz, "x.xml", b"\xff\xfe<\0a");
    assert!(why.contains("line 1 is not UTF-8"), "{why}");
}
