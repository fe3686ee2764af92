//! How long each parser of callers' text takes for the worst input that its limits let in. The table goes into `docs/parsers.md`:
//! `cargo test --workspace --features campanile/faults --test interfaces -- --ignored --nocapture parsers::`.
use super::server::Server;
use campanile_core::{
    action::template::Template,
    cron::{CronExpr, CronSchedule, hazards},
};
use campanile_jobfiles::{
    crontab::{Format, ImportOptions, import},
    manifest,
};
use campanile_schema::{
    apply::{ApplyBody, ManifestFile},
    job::{Dialect, Gap, JobSpec, Overlap},
    limits::{
        CRON_TEXT_BYTES, CRONTAB_FILE_BYTES, HTTP_ACTION_BODY_BYTES, HTTP_BODY_BYTES, LABEL_SELECTOR_BYTES,
        MANIFEST_FILE_BYTES, RPC_FRAME_BYTES,
    },
    rpc::{calls::Items, codec::from_map},
    view::TriggerBody,
};
use campanile_serve::api::parse_json;
use std::time::{Duration, Instant};

/// The slowest of a few inputs, with its name.
fn worst(parser: &str, inputs: &[(&str, String)], parse: impl Fn(&str)) {
    let mut slowest = (Duration::ZERO, "", 0);
    for (name, input) in inputs {
        let begun = Instant::now();
        parse(input);
        let took = begun.elapsed();
        eprintln!("    {parser}, {name}: {} KiB, {:.1} ms", input.len() >> 10, took.as_secs_f64() * 1e3);
        if took >= slowest.0 {
            slowest = (took, *name, input.len());
        }
    }
    let (took, name, bytes) = slowest;
    println!("| {parser} | {name} | {} | {:.1} |", bytes.div_ceil(1024), took.as_secs_f64() * 1e3);
}

fn filled(unit: &str, bytes: usize) -> String {
    unit.repeat(bytes / unit.len())
}

#[test]
#[ignore = "prints figures"]
fn the_worst_case_of_every_parser() {
    println!("| parser | worst input | KiB | ms |\n|---|---|---|---|");
    let most = MANIFEST_FILE_BYTES;
    let job = |n: usize| {
        format!("- {{apiVersion: campanile/v1, kind: Job, metadata: {{name: a{n}}}, spec: {{every: 5m}}}}\n")
    };
    let wrong =
        |n: usize| format!("- {{apiVersion: campanile/v1, kind: Job, metadata: {{nme: a{n}}}, spec: {{evry: 5m}}}}\n");
    let anchors: String = (0..20_000).map(|n| format!("- &a{n} x{n}\n- *a{n}\n")).collect();
    let indented: String = (0..1_000).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    let yaml = [
        ("nested flow collections", filled("{a: [", most)),
        ("nested flow collections, closed at 64", filled(&format!("{}{},\n", "[".repeat(63), "]".repeat(63)), most)),
        ("nested block sequences", filled("- ", most)),
        ("nested block mappings", indented),
        ("one flow sequence", format!("[{}]", filled("1,", most - 2))),
        ("a list of jobs", (0..10_000).map(job).collect()),
        ("a list of one job again and again", (0..20_000).map(|_| job(1)).collect()),
        ("a list of wrong jobs", (0..20_000).map(wrong).collect()),
        ("anchors and aliases", anchors),
        ("one alias again and again", format!("a: &x {}\nb: [{}]\n", filled("y", 1 << 20), filled("*x,", 1 << 20))),
        ("documents", filled("---\na\n", most)),
        ("comments", filled("# [ \" {\n", most)),
        ("one long text", format!("a: \"{}\"", filled("\\n", most - 8))),
        ("a key with many spaces", format!("a:{}b", filled(" ", most - 8))),
        ("one field twice", format!("{{{}}}", filled("abcdefgh: 1,", most - 2))),
        ("question marks", filled("? ", most)),
        ("tags", filled("- !!str x\n", most)),
    ];
    worst("YAML of manifests", &yaml, |text| {
        let file = ManifestFile { name: "x.yaml".to_owned(), text: text.to_owned() };
        drop(manifest::read(&[file], "default"));
    });
    let params = |inside: String| format!("{{\"params\":{inside}}}");
    let names: String = (0..200_000).map(|n| format!("\"n{n}\":1,")).collect();
    let json = [
        ("an object of many names", params(format!("{{{names}\"n\":1}}"))),
        ("nested lists", params(filled("[", HTTP_BODY_BYTES - 20))),
        ("one list", params(format!("[{}1]", filled("1,", HTTP_BODY_BYTES - 40)))),
        ("one long text", params(format!("\"{}\"", filled("\\u00fc", HTTP_BODY_BYTES - 40)))),
        ("one long number", params(filled("1", HTTP_BODY_BYTES - 40))),
        ("one long unknown name", format!("{{\"{}\":1}}", filled("x", HTTP_BODY_BYTES - 40))),
        ("blanks", filled(" ", HTTP_BODY_BYTES)),
    ];
    worst("JSON of a body", &json, |text| drop(parse_json::<TriggerBody>(text.as_bytes())));
    let files = (0..1_000).map(|n| format!("{{\"name\":\"{n}\",\"text\":\"{}\"}},", filled("\\n", 4_000)));
    let apply = format!("{{\"files\":[{}{{\"name\":\"a\",\"text\":\"\"}}]}}", files.collect::<String>());
    worst("JSON of an apply", &[("a thousand files", apply)], |text| drop(parse_json::<ApplyBody>(text.as_bytes())));

    let begun = Instant::now();
    let mut frame = vec![0x81, 0xa5, b'i', b't', b'e', b'm', b's', 0xdd];
    let count = (RPC_FRAME_BYTES - 16) as u32 / 36;
    frame.extend(count.to_be_bytes());
    for _ in 0..count {
        // {"name": "aaaaaaaa", "trigger": {"type": "MANUAL"}}
        frame.extend(b"\x82\xa4name\xa8aaaaaaaa\xa7trigger\x81\xa4type\xa6MANUAL");
    }
    from_map::<Items<JobSpec>>(&frame).unwrap();
    println!(
        "| MessagePack of a call | jobs of few fields | {} | {:.1} |",
        frame.len() >> 10,
        begun.elapsed().as_secs_f64() * 1e3
    );

    let longest = |unit: &str, tail: &str| format!("{}{tail}", filled(unit, CRON_TEXT_BYTES - tail.len()));
    let cron = [
        ("a long list", format!("{}1 * * * *", filled("1,", 1_000))),
        ("many blanks", longest(" ", "* * * * *")),
        ("no sense", longest("*/", "")),
        ("an instant every four years", "0 0 29 2 1".to_owned()),
        ("the fifth Sunday of February", "0 0 0 ? 2 1#5".to_owned()),
        ("a gap each year", "30 2 * 3 0".to_owned()),
        ("each second", "* * * * * ?".to_owned()),
    ];
    worst("cron, with the next 100 instants and hazards", &cron, |text| {
        let Ok((expr, _)) = CronExpr::parse(text, Dialect::Auto, 1) else { return };
        for gap in [Gap::Skip, Gap::Shift] {
            let schedule = CronSchedule::new(expr, "America/New_York", gap, Overlap::First).unwrap();
            let mut at = 1_767_225_600_000;
            for _ in 0..100 {
                let Some(next) = schedule.next_fire(at) else { break };
                at = next;
            }
            drop(hazards(&schedule, 1_767_225_600_000));
        }
    });
    let template = [
        ("many facts", filled("{{runId}}", HTTP_ACTION_BODY_BYTES)),
        ("many braces", filled("\\{{", HTTP_ACTION_BODY_BYTES)),
        ("an open one", format!("{{{{{}", filled("a", HTTP_ACTION_BODY_BYTES))),
        ("single braces", filled("{ ", HTTP_ACTION_BODY_BYTES)),
        ("a long path of params", format!("{{{{params{}}}}}", filled(".a", HTTP_ACTION_BODY_BYTES))),
    ];
    worst("template of an HTTP action", &template, |text| drop(Template::parse(text)));

    let zones = [
        ("64 letters", "a".repeat(64)),
        ("a city with a slip", "Amerika/Argentina/Buenos_Airez".to_owned()),
        ("a long name", filled("ab/", 4 << 10)),
    ];
    let (each_day, _) = CronExpr::parse("0 5 * * *", Dialect::Unix, 1).unwrap();
    worst("an unknown time zone, with the nearest names", &zones, |name| {
        drop(CronSchedule::new(each_day, name, Gap::Shift, Overlap::First));
    });

    let dir = tempfile::tempdir().unwrap();
    let (path, most) = (dir.path().join("tab"), CRONTAB_FILE_BYTES as usize);
    let crontabs = [
        (
            "fixed times in a zone with daylight saving",
            format!("CRON_TZ=America/New_York\n{}", filled("30 2 * * * x\n", most - 30)),
        ),
        ("every minute", filled("* * * * * x\n", most)),
        ("lines that are refused", filled("99 * * * * x\n", most)),
        ("a setting before each line", filled("A=b\n0 5 * * * x\n", most)),
        ("comments", filled("# x\n", most)),
    ];
    worst("crontab of a directory", &crontabs, |text| {
        std::fs::write(&path, text).unwrap();
        let options = ImportOptions {
            tenant: "default".to_owned(),
            pool: "default".to_owned(),
            as_self: false,
            now_ms: 1_767_225_600_000,
            machine_zone: "UTC".to_owned(),
            self_user: "root".to_owned(),
            format: Format::User,
        };
        drop(import(std::slice::from_ref(&path), &options));
    });

    // Whole calls: these parsers are not reached in any other way.
    let server = Server::start();
    let queries = [
        (
            "a selector of many terms",
            format!("/api/v1/jobs?labels={}", filled("a!=b,", LABEL_SELECTOR_BYTES - 8) + "c"),
        ),
        ("a selector of one long term", format!("/api/v1/jobs?labels={}", "a".repeat(LABEL_SELECTOR_BYTES))),
        ("many unknown names", format!("/api/v1/jobs?{}", filled("a=1&", 8 << 10))),
        ("a long page token", format!("/api/v1/jobs?pageToken={}", "0".repeat(8 << 10))),
        ("percent signs", format!("/api/v1/jobs?text={}", filled("%20", 8 << 10))),
    ];
    worst("query of a call, with the whole call", &queries, |path| drop(server.get(path)));
}
