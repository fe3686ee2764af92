#![allow(clippy::unwrap_used)]
use crate::{
    Options, System,
    testing::{NOW, fires, fixture, imported, options},
};
use serde_json::json;

fn read(options: &Options) -> crate::Import {
    imported(System::Kubernetes, &[fixture("kubernetes")], options)
}

#[test]
fn cron_jobs_of_documents_and_lists() {
    let import = read(&options());
    assert_eq!(import.jobs.len(), 3, "{}", crate::render(&import));
    let report = import.job("report");
    assert_eq!((report.spec.tenant_id.as_str(), report.origin.as_str()), ("ops", "CronJob ops/report"));
    assert_eq!(fires(&report.spec, NOW, 1).len(), 1);
    let shop = import.jobs.iter().find(|job| job.origin == "CronJob shop/report").unwrap();
    assert!(shop.place.file.ends_with("shop.yaml"));
    assert_eq!(shop.place.line, 8);
    let written = shop.written();
    assert_eq!(written["metadata"]["namespace"], "shop");
    let spec = &written["spec"];
    assert_eq!(spec["schedule"], "30 2 * * *");
    assert_eq!((&spec["gap"], &spec["overlap"]), (&json!("Skip"), &json!("Both")));
    assert_eq!((&spec["misfirePolicy"], &spec["misfireThreshold"]), (&json!("Skip"), &json!("3m20s")));
    assert_eq!(spec["retryPolicy"]["maxDelay"], "6m");
    assert_eq!(shop.spec.retry_policy.max_attempts, 3);
    assert!(shop.tells("the image registry.example.com/shop/report:1.4 is not used"), "{:?}", shop.changed);
    assert!(shop.tells("QueueOne would keep one"), "{:?}", shop.changed);
    let cleanup = import.job("cleanup");
    assert!(!cleanup.tells("QueueOne"), "{:?}", cleanup.changed);
    assert_eq!((cleanup.suspend, &cleanup.written()["spec"]["schedule"]), (Some(true), &json!("0 14 1-31/10 * 1-5")));
    // What would be missed is refused with its place, and does not hold up the others.
    let refused = &import.refused[0];
    assert!(refused.reason.contains("the command may need it"), "{refused:?}");
    assert!(refused.place.file.ends_with("shop.yaml"));
    assert_eq!(refused.place.line, 70, "{refused:?}");
    assert!(import.notes.iter().any(|note| note.contains("the ServiceAccount 'reports' is passed over")));
}

#[test]
fn kubernetes_leaves_out_a_time_that_does_not_exist_and_takes_both_of_two() {
    let import = read(&options());
    let shop = import.jobs.iter().find(|job| job.origin == "CronJob shop/report").unwrap();
    // 2027-03-27T12:00Z: the 28th has no 02:30 in Berlin.
    let spring = fires(&shop.spec, 1_806_148_800_000, 1);
    assert_eq!(spring, [1_806_280_200_000]);
    // 2027-10-30T12:00Z: 02:30 comes twice on the 31st.
    let autumn = fires(&shop.spec, 1_824_897_600_000, 2);
    assert_eq!(autumn, [1_824_942_600_000, 1_824_946_200_000]);
}

#[test]
fn one_tenant_and_a_zone_for_all() {
    let all = Options { tenant: Some("ops".to_owned()), zone: Some("Asia/Tokyo".to_owned()), ..options() };
    let import = read(&all);
    let cleanup = import.job("shop/cleanup");
    assert_eq!(cleanup.spec.tenant_id, "ops");
    assert_eq!(cleanup.written()["spec"]["timeZone"], "Asia/Tokyo");
    assert!(!cleanup.tells("no timeZone"), "{:?}", cleanup.changed);
    assert!(read(&options()).job("cleanup").tells("no timeZone"));
}

#[test]
fn bombs_and_broken_files_are_refused_in_a_sentence() {
    let bomb: String = (1..30).fold("a0: &x0 [1,1,1,1,1,1,1,1,1]\n".to_owned(), |text, n| {
        let before = n - 1;
        text + &format!("a{n}: &x{n} [{}]\n", vec![format!("*x{before}"); 9].join(","))
    });
    let dir = tempfile::tempdir().unwrap();
    for (name, text, told) in [
        ("bomb.yaml", bomb, "more than 200000 values"),
        ("deep.yaml", "[".repeat(100_000), "nested deeper than 64 levels"),
        ("tab.yaml", "kind:\n\tCronJob\n".to_owned(), "indented with spaces"),
    ] {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        let import = imported(System::Kubernetes, &[path], &options());
        assert_eq!(import.jobs.len(), 0);
        assert!(import.refused[0].reason.contains(told), "{:?}", import.refused);
    }
    let large = crate::testing::refused(System::Kubernetes, "large.yaml", &vec![b' '; 50 << 20]);
    assert!(large.contains("larger than 2097152 bytes"), "{large}");
}
