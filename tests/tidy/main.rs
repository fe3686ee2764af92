//! The repository keeps its own rules: which crate knows which, what a file may be, what must stand nowhere. Each rule is also
//! shown a small tree with the defect it is for, so that a rule that sees nothing is seen.
#![allow(clippy::unwrap_used)]

mod support;

use support::{
    Found, Tree,
    docs::{decisions_are_whole, documents_name_what_is_there, no_machine_paths, no_registry_hosts},
    forms::forms_have_golden_lines,
    imports::{imports_go_one_way, no_import_circles, tasks_get_what_they_need},
    manifests::{arrows, faults_are_asked_for, members},
    sources::{
        alerts_ask_for_what_is_measured, faults_are_gated, files_are_short, limits_have_units, metrics_are_described,
        no_markers, no_unsafe, renames_are_durable, tests_do_not_sleep, the_core_is_pure,
    },
    table::routes_stand_in_the_table,
};

/// Fails with all that is wrong.
fn holds(rule: fn(&Tree) -> Found) {
    let tree = Tree::here();
    // A rule over nothing would hold.
    for read in [
        "schema/src/limits.rs",
        "actors/core/src/lib.rs",
        "docs/adr/0001-virtual-job-actors.md",
        "tests/support/mod.rs",
    ] {
        assert!(tree.exists(read), "{read} was not read");
    }
    let found = rule(&tree);
    assert!(found.is_empty(), "{} found\n  {}", found.len(), found.join("\n  "));
}

/// The rule finds the defect, and nothing in the tree without it.
fn sees(rule: fn(&Tree) -> Found, defect: &[(&str, &str)], sound: &[(&str, &str)]) {
    assert_ne!(rule(&Tree::of(defect)), Found::new(), "the defect is not seen: {defect:?}");
    assert_eq!(rule(&Tree::of(sound)), Found::new(), "nothing is wrong with {sound:?}");
}

#[test]
fn crates_know_each_other_one_way() {
    holds(arrows);
    let of = |used: &str| format!("[dependencies]\n{used}.workspace = true\n");
    let (up, down) = (of("campanile-actors"), of("campanile-schema"));
    sees(arrows, &[("actors/core/Cargo.toml", &up)], &[("actors/core/Cargo.toml", &down)]);
    sees(arrows, &[("loadtest/Cargo.toml", &of("campanile-core"))], &[("loadtest/Cargo.toml", &down)]);
    let platform = "[target.'cfg(unix)'.dev-dependencies]\ncampanile-core = { path = \"../actors/core\" }\n";
    sees(arrows, &[("client/Cargo.toml", platform)], &[("client/Cargo.toml", &down)]);
    sees(arrows, &[("schema/Cargo.toml", &of("tokio"))], &[("schema/Cargo.toml", &of("serde"))]);
}

#[test]
fn every_crate_is_known_and_linted() {
    holds(members);
    let root = "[workspace]\nmembers = [\"schema\"]\n";
    let sound = "[lints]\nworkspace = true\n";
    sees(
        members,
        &[("Cargo.toml", root), ("schema/Cargo.toml", "")],
        &[("Cargo.toml", root), ("schema/Cargo.toml", sound)],
    );
    let more = "[workspace]\nmembers = [\"extra\"]\n";
    sees(
        members,
        &[("Cargo.toml", more), ("extra/Cargo.toml", sound)],
        &[("Cargo.toml", "[workspace]\nmembers = []\n")],
    );
}

#[test]
fn modules_of_the_actors_import_each_other_one_way() {
    holds(imports_go_one_way);
    let tree = |a: &'static str, b: &'static str| {
        [("actors/src/a/mod.rs", a), ("actors/src/a/child.rs", "use super::A;"), ("actors/src/b.rs", b)]
    };
    let sound = tree("mod child;\nuse child::C;\nuse crate::b::{self, B};\n", "use std::b::a;\n// crate::a::A\n");
    let of_tests = "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n";
    sees(imports_go_one_way, &tree("use crate::{b::B};\n", "pub use crate::{c, a::{A, X as Y}};\n"), &sound);
    sees(imports_go_one_way, &tree("fn a() { crate::b::go() }\n", "fn b(a: super::a::A) {}\n"), &sound);
    // By way of a child, or of the parent of one.
    sees(imports_go_one_way, &tree("mod child;\nuse crate::b::B;\n", "use crate::a::child::C;\n"), &sound);
    let by_child = tree("mod child;\nfn a() { child::go(crate::b::B) }\n", "use crate::a::child::C;\n");
    sees(imports_go_one_way, &by_child, &tree("use crate::b::B;\n", of_tests));
}

#[test]
fn modules_import_each_other_one_way_in_every_crate() {
    holds(no_import_circles);
    let tree = |parent: &'static str, x: &'static str, y: &'static str| {
        [("loadtest/src/a/mod.rs", parent), ("loadtest/src/a/x.rs", x), ("loadtest/src/a/y.rs", y)]
    };
    // A parent uses its children, and they use it and each other one way.
    let sound = tree("mod x;\nmod y;\nuse x::X;\n", "use super::{A, y::Y};\n", "use crate::a::A;\n");
    sees(no_import_circles, &tree("", "use super::y::Y;\n", "use super::x::X;\n"), &sound);
    // By way of the parent of one, out of a child, and between a module and its grandchild.
    let by_parent = [
        ("src/a/mod.rs", "use crate::b::B;\n"),
        ("src/a/x.rs", "use super::A;\n"),
        ("src/b.rs", "use crate::a::x::X;\n"),
    ];
    sees(no_import_circles, &by_parent, &sound);
    let by_child = [
        ("src/a/mod.rs", "mod x;\nuse x::X;\n"),
        ("src/a/x.rs", "use crate::b::B;\n"),
        ("src/b.rs", "use crate::a::A;\n"),
    ];
    sees(no_import_circles, &by_child, &sound);
    let grandchild =
        [("src/a/mod.rs", "use crate::a::x::z::Z;\n"), ("src/a/x/z.rs", "use crate::a::A;\n"), ("src/a/x/mod.rs", "")];
    sees(no_import_circles, &grandchild, &sound);
    // Each crate by itself: `b` is another one in a folder of the first.
    let two = [("src/serve/a.rs", "use crate::b::B;\n"), ("src/b.rs", "use crate::serve::a::A;\n")];
    sees(
        no_import_circles,
        &[("src/serve/a.rs", "use crate::b::B;\n"), ("src/serve/b.rs", "use crate::a::A;\n")],
        &two,
    );
}

#[test]
fn tasks_are_given_what_they_need() {
    holds(tasks_get_what_they_need);
    let file = |path: &'static str, text: &'static str| [(path, text)];
    let sound = file("actors/src/scheduler/jobs.rs", "fn a(handles: &SessionHandles) {} // a Directory\n");
    sees(tasks_get_what_they_need, &file("actors/src/a.rs", "fn a(directory: &Directory) {}\n"), &sound);
    sees(tasks_get_what_they_need, &file("actors/src/shard/mod.rs", "use crate::handles::SessionHandles;\n"), &sound);
}

#[test]
fn a_release_has_no_fault_hooks() {
    holds(faults_are_asked_for);
    holds(faults_are_gated);
    let manifest = |text: &'static str| [("Cargo.toml", text)];
    let asked = manifest("[features]\nfaults = [\"campanile-actors/faults\"]\n");
    sees(faults_are_asked_for, &manifest("[features]\ndefault = [\"faults\"]\nfaults = []\n"), &asked);
    let always = "[dependencies]\ncampanile-core = { path = \"core\", features = [\"faults\"] }\n";
    sees(faults_are_asked_for, &[("actors/Cargo.toml", always)], &asked);
    let source = |text: &'static str| [("actors/src/journal.rs", text)];
    let gated = "fn run() {\n    #[cfg(feature = \"faults\")]\n    {\n        crate::faults::point(\"x\");\n    }\n    go();\n}\n";
    let open = "fn run() {\n    #[cfg(feature = \"faults\")]\n    {\n        go();\n    }\n    crate::faults::point(\"x\");\n}\n";
    sees(faults_are_gated, &source(open), &source(gated));
    let sign = "fn fault() -> Option<String> {\n    std::env::var(\"CAMPANILE_FAULT\").ok()\n}\n";
    let root = |text: &'static str| [("src/lib.rs", text), ("src/faults.rs", sign)];
    sees(faults_are_gated, &root("pub mod faults;\n"), &root("#[cfg(feature = \"faults\")]\npub mod faults;\n"));
}

#[test]
fn source_files_are_short() {
    holds(files_are_short);
    let (long, short) = ("\n".repeat(501), "\n".repeat(500));
    sees(files_are_short, &[("src/a.rs", &long)], &[("src/a.rs", &short)]);
}

#[test]
fn nothing_was_left_for_later() {
    holds(no_markers);
    for marker in [["to", "do!()"], ["FIX", "ME"], ["XX", "X"], ["db", "g!(x)"], ["unimplem", "ented!()"]] {
        sees(no_markers, &[("src/a.rs", &marker.concat())], &[("src/a.rs", "fn debug() {} // XXXX, fixme not")]);
    }
}

#[test]
fn no_unsafe_code() {
    holds(no_unsafe);
    let with = "//! Text.\n#![forbid(unsafe_code)]\n";
    sees(no_unsafe, &[("client/src/lib.rs", "//! Text.\n")], &[("client/src/lib.rs", with)]);
    sees(no_unsafe, &[("src/main.rs", "fn main() {}\n")], &[("src/main.rs", with)]);
}

#[test]
fn every_limit_names_its_unit() {
    holds(limits_have_units);
    let limit = |comment: &str| format!("{comment}pub const NAME_CHARS: usize = 128;\n");
    let sound = limit("/// Longest name of a job, characters.\n");
    let second = format!("{sound}pub const OTHER: usize = 1;\n");
    for defect in [limit("/// Longest name of a job.\n"), limit(""), second] {
        sees(limits_have_units, &[("schema/src/limits.rs", &defect)], &[("schema/src/limits.rs", &sound)]);
    }
}

#[test]
fn tests_poll_instead_of_sleeping() {
    holds(tests_do_not_sleep);
    let test = |text: &'static str| [("actors/tests/a.rs", text)];
    let hopes = "async fn a() {\n    trigger().await;\n    sleep(TIME).await;\n    assert!(ended());\n}\n";
    let polls = "async fn a() {\n    while !ended() {\n        sleep(TIME).await;\n    }\n}\n";
    let body = "fn a() {\n    executor.any_handler(|_| async {\n        sleep(TIME).await;\n    })\n}\n";
    sees(tests_do_not_sleep, &test(hopes), &test(polls));
    sees(tests_do_not_sleep, &test("fn a() { loop { std::thread::sleep(TIME); } }\n"), &test(body));
    let inline = format!("#[cfg(test)]\nmod tests {{\n{hopes}}}\n");
    let before = format!("{hopes}#[cfg(test)]\nmod tests {{\n}}\n");
    sees(tests_do_not_sleep, &[("src/a.rs", &inline)], &[("src/a.rs", &before)]);
}

#[test]
fn files_are_put_in_place_durably() {
    holds(renames_are_durable);
    let renames = "fn put() { fs::rename(new, old) }\n";
    let in_a_test = format!("#[cfg(test)]\nmod tests {{\n{renames}}}\n");
    for sound in
        [("src/cli/a.rs", in_a_test.as_str()), ("tests/cli/a.rs", renames), ("src/store/file/real.rs", renames)]
    {
        sees(renames_are_durable, &[("src/cli/a.rs", renames)], &[sound]);
    }
    sees(renames_are_durable, &[("src/store/file/real.rs", "fn put() {}\n")], &[("src/store/file/real.rs", renames)]);
}

#[test]
fn the_core_does_no_io_and_reads_no_clock() {
    holds(the_core_is_pure);
    for defect in ["use std::fs;", "fn now() { SystemTime::now() }", "async fn f() {}", "let t = Instant::now();"] {
        sees(the_core_is_pure, &[("actors/core/src/a.rs", defect)], &[("actors/src/a.rs", defect)]);
    }
    sees(
        the_core_is_pure,
        &[("schema/src/a.rs", "x.await")],
        &[("schema/src/a.rs", "// never std::fs\nfn instant() {}")],
    );
}

#[test]
fn one_table_names_routes_and_methods() {
    holds(routes_stand_in_the_table);
    let table = (
        "schema/src/operations/table/jobs.rs",
        "JobPause = \"job.pause\": A => B {\n cli: Ok(\"job pause\"), http: Ok(Http::get(\"/readyz\")),\n}\n",
    );
    let sound = "// GET /api/v1/jobs\nlet told = \"see GET /api/v1/jobs\";\nask(JobPause::NAME, \"cluster.name\");\n";
    for defect in [
        "remote.get(\"/api/v1/jobs\")",
        "let url = format!(\"{base}/api/v1/jobs\");",
        "match method { \"job.pause\" => {} }",
        "get(\"/readyz\")",
    ] {
        sees(routes_stand_in_the_table, &[table, ("src/a.rs", defect)], &[table, ("src/a.rs", sound)]);
    }
    sees(
        routes_stand_in_the_table,
        &[("src/serve/api/examples.rs", "")],
        &[table, ("tests/a.rs", "get(\"/api/v1/jobs\")")],
    );
}

#[test]
fn no_path_of_one_machine() {
    holds(no_machine_paths);
    for name in ["work", "root", "home"] {
        sees(
            no_machine_paths,
            &[("docs/a.md", &format!("in /{name}/x"))],
            &[("docs/a.md", "in /home/ada/x, cron/root/x")],
        );
    }
}

#[test]
fn no_registry_is_named() {
    holds(no_registry_hosts);
    let host = ["registry.npm", "js.org"].concat();
    sees(no_registry_hosts, &[("Makefile", &host)], &[("console/package-lock.json", &host), ("Makefile", "npm ci")]);
}

#[test]
fn decision_records_are_whole() {
    holds(decisions_are_whole);
    let whole =
        "# 0001 Why\n\n## Status\nA\n\n## Context\nB\n\n## Decision\nC\n\n## Alternatives\nD\n\n## Figures\nE\n";
    let sound = [("docs/adr/0001-why.md", whole)];
    sees(decisions_are_whole, &[("docs/adr/0001-why.md", &whole.replace("D\n", ""))], &sound);
    sees(decisions_are_whole, &[("docs/adr/0001-why.md", &whole.replace("## Figures\nE\n", ""))], &sound);
    sees(decisions_are_whole, &[("docs/adr/0002-why.md", whole)], &sound);
}

#[test]
fn documents_lead_somewhere() {
    holds(documents_name_what_is_there);
    let there = ("docs/b.md", "");
    let with = |text: &'static str| [("docs/a.md", text), ("src/node.rs", ""), there];
    sees(documents_name_what_is_there, &with("[c](c.md)"), &with("[b](b.md#x), [n](../src/node.rs), [out](https://x)"));
    sees(documents_name_what_is_there, &with("see `gone.rs`"), &with("see `src/node.rs` and `node.rs`"));
}

#[test]
fn every_metric_is_described_and_named_alike() {
    holds(metrics_are_described);
    let table = |lines: &str| ("actors/src/measure.rs", lines.to_owned());
    let sees_in = |table: &(&str, String), used: &str| {
        let sound = [("actors/src/measure.rs", "counter!(\"campanile_a_total\", \"A\");"), ("src/a.rs", SOUND)];
        sees(metrics_are_described, &[(table.0, &table.1), ("src/a.rs", used)], &sound);
    };
    const SOUND: &str = "metrics::counter!(\"campanile_a_total\").increment(1);";
    sees_in(&table(""), SOUND);
    sees_in(&table("gauge!(\"campanile_a_total\", \"A\");"), SOUND);
    sees_in(&table("counter!(\"campanile_a_total\", \"A\");\ncounter!(\"campanile_b_total\", \"B\");"), SOUND);
    sees_in(&table("counter!(\"store_a_total\", \"A\");"), "metrics::counter!(\"store_a_total\").increment(1);");
    sees_in(&table("counter!(\"campanile_a\", \"A\");"), "metrics::counter!(\"campanile_a\").increment(1);");
}

#[test]
fn alerts_and_the_manual_name_metrics_that_there_are() {
    holds(alerts_ask_for_what_is_measured);
    let table = ("actors/src/measure.rs", "gauge!(\"campanile_a_bytes\", \"A\");");
    let rule = |text: &'static str| [table, ("deploy/prometheus/a.yml", text)];
    sees(
        alerts_ask_for_what_is_measured,
        &rule("expr: rate(campanile_b_bytes[5m]) > 0"),
        &rule("expr: rate(campanile_a_bytes_bucket[5m]) > campanile_a_bytes"),
    );
    sees(
        alerts_ask_for_what_is_measured,
        &[table, ("docs/operations.md", "`campanile_b`")],
        &[table, ("docs/operations.md", "`campanile_a_bytes`")],
    );
    for path in ["deploy/grafana/dashboards/a.json", "docs/runbooks/A.md", "docs/observability.md"] {
        let asking = |text: &'static str| [table, (path, text)];
        sees(alerts_ask_for_what_is_measured, &asking("campanile_b"), &asking("campanile_a_bytes"));
    }
}

#[test]
fn what_is_stored_or_sent_has_golden_lines() {
    holds(forms_have_golden_lines);
    let form = "#[derive(Clone, Serialize)]\n#[serde(rename_all = \"lowercase\")]\npub enum Call { Get }\n";
    let manifest = ("actors/Cargo.toml", "");
    let source = |text: &'static str| ("actors/src/calls.rs", text);
    let line = ("actors/golden/forms.jsonl", "{\"form\":\"calls::Call\",\"name\":\"Get\",\"hex\":\"a3476574\"}\n");
    let test = ("actors/src/forms_tests.rs", "forms.samples(\"calls::Call\")");
    let sound = [manifest, source(form), line, test];
    let other = ("actors/golden/forms.jsonl", "{\"form\":\"peers::Call\",\"name\":\"Get\",\"hex\":\"a3476574\"}\n");
    sees(forms_have_golden_lines, &[manifest, source(form), other, test], &sound);
    sees(forms_have_golden_lines, &[manifest, source(form), line], &sound);
    // Lines of another crate say nothing of this one's.
    let elsewhere = ("schema/golden/forms.jsonl", line.1);
    sees(forms_have_golden_lines, &[manifest, ("schema/Cargo.toml", ""), source(form), elsewhere, test], &sound);
    let lists = ["#[derive(\n    Serialize,\n    Clone,\n)]\nstruct A;\n", "impl serde::Serialize for A {\n"];
    let read =
        "#[derive(Deserialize)]\nstruct A;\n#[cfg(test)]\nmod tests {\n    #[derive(Serialize)]\n    struct B;\n}\n";
    for text in lists {
        sees(forms_have_golden_lines, &[manifest, source(text)], &[manifest, source(read)]);
    }
    let report = ("src/cli/doctor.rs", "#[derive(Serialize)]\nstruct Finding;\n");
    sees(forms_have_golden_lines, &[("src/cli/doctor.rs", "")], &[report]);
}
