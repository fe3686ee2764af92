//! What is fed, and with what it begins.

use campanile_core::{
    cron::{CronExpr, CronSchedule, describe},
    spec,
};
use campanile_jobfiles::{
    crontab::{self, Format, ImportOptions},
    manifest,
};
use campanile_schema::{
    apply::ManifestFile,
    event::Event,
    format::EVENT_FORMAT,
    frame::{Frame, decode_batch, encode, skim_batch},
    ids::{Epoch, JobId, RunId, ShardId},
    job::{Dialect, Gap, JobSpec, Overlap},
    rpc::{
        calls::{CreateCall, Items, JobCall, NoBody, RunCall},
        codec::{AFTER_HELLO, BEFORE_HELLO, Decoder, Message, Params},
        executor::{Announce, Assign, Credit, Finish, LogChunk, Register},
        hello::Hello,
    },
    stored::StoredJob,
    view::{JobFilter, LedgerBody, PreviewBody, ReplaceBody, RunGetBody, RunView, TenantBody, TriggerBody},
    watch::{WatchJobs, WatchRuns},
};
use campanile_serve::api::parse_json;
use std::{fs, path::Path};

/// 2026-11-21T11:00:00Z.
const NOW_MS: i64 = 1_795_258_800_000;

fn golden(folder: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/golden").join(folder);
    let mut files: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().filter(|path| path.is_file()).map(|path| fs::read_to_string(path).unwrap()).collect()
}

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    (0..digits.len() / 2).map(|n| u8::from_str_radix(&digits[2 * n..2 * n + 2], 16).unwrap()).collect()
}

/// Every message of the golden files; their bytes stand behind an empty line.
pub fn rpc_seeds() -> Vec<Vec<u8>> {
    let seeds: Vec<Vec<u8>> = golden("rpc").iter().map(|text| hex(text.split_once("\n\n").unwrap().1)).collect();
    assert!(seeds.len() > 20, "golden/rpc");
    assert!(seeds.iter().all(|seed| seed.len() > 3), "golden/rpc");
    seeds
}

/// As a connection reads: in pieces, each message with the types that its params could be of.
pub fn rpc(input: &[u8]) {
    for limits in [BEFORE_HELLO, AFTER_HELLO] {
        let mut decoder = Decoder::new(limits);
        let piece = input.first().map_or(1, |byte| usize::from(*byte) % 97 + 1);
        'pieces: for piece in input.chunks(piece) {
            decoder.push(piece);
            loop {
                match decoder.next_message() {
                    Ok(Some(Message::Request { params, .. } | Message::Notification { params, .. })) => typed(params),
                    Ok(Some(Message::Response { error, result, .. })) => {
                        let _ = campanile_schema::rpc::codec::from_map::<campanile_schema::error::ApiError>(error);
                        let _ = campanile_schema::rpc::codec::from_map::<RunView>(result);
                    }
                    Ok(None) => break,
                    Err(_) => break 'pieces,
                }
            }
        }
    }
}

fn typed(params: Params<'_>) {
    // What is read as a caller's span is written as one that is read again as the same.
    if let Some(span) = params.trace() {
        assert_eq!(span.to_string().parse(), Ok(span));
    }
    macro_rules! read {
        ($($type:ty),+ $(,)?) => { $(let _ = params.read::<$type>();)+ };
    }
    read!(
        Hello,
        CreateCall,
        Items<JobSpec>,
        JobCall<NoBody>,
        JobCall<ReplaceBody>,
        JobCall<TriggerBody>,
        JobCall<LedgerBody>,
        RunCall<RunGetBody>,
        JobFilter,
        PreviewBody,
        TenantBody,
        WatchRuns,
        WatchJobs,
        Register,
        Announce,
        Credit,
        Assign,
        Finish,
        LogChunk,
    );
}

pub fn frame_seeds() -> Vec<Vec<u8>> {
    let stored = golden("").concat();
    let bytes: Vec<Vec<u8>> = stored
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()?["hex"].as_str().map(hex))
        .collect();
    assert!(bytes.len() > 10, "golden/*.jsonl");
    // Whole batches, as a segment holds them.
    let frame = |seq| Frame {
        shard: ShardId(3),
        epoch: Epoch(2),
        seq,
        hlc: 1_795_258_800_000_000,
        events: vec![
            Event::RunReleased { job: JobId(7), run: RunId(8), at_ms: NOW_MS },
            Event::JobDeleted { job: JobId(7), at_ms: NOW_MS },
        ],
        format: 1,
    };
    let batch: Vec<u8> = (1..4).flat_map(|seq| encode(&frame(seq))).collect();
    bytes.into_iter().chain([batch]).collect()
}

pub fn frames(input: &[u8]) {
    if let Ok(frames) = decode_batch(input) {
        // What is read can be written, and is then read as the same.
        let written: Vec<u8> = frames.iter().flat_map(encode).collect();
        let again = decode_batch(&written).unwrap();
        assert_eq!(format!("{frames:?}"), format!("{again:?}"));
        // Nothing else is read when only some frames are wanted.
        let odd = |_, seq: u64| seq % 2 == 1;
        let skimmed = skim_batch(&written, EVENT_FORMAT, odd).unwrap();
        assert_eq!(skimmed.len(), frames.len());
        for (frame, skimmed) in frames.iter().zip(skimmed) {
            assert_eq!((frame.shard, frame.seq), (skimmed.shard, skimmed.seq));
            let wanted = odd(frame.shard, frame.seq).then_some(frame);
            assert_eq!(format!("{wanted:?}"), format!("{:?}", skimmed.frame.as_ref()));
        }
    }
    let _ = campanile_schema::frame::decode::<Event>("event", input);
    let _ = campanile_schema::frame::decode::<StoredJob>("job", input);
}

pub fn spec_seeds() -> Vec<Vec<u8>> {
    let whole = serde_json::json!({
        "name": "daily_billing", "tenantId": "finance",
        "trigger": {"type": "CRON", "expr": "0 0 2 * * ?", "timezone": "Europe/Berlin", "startAt": "2026-02-01T00:00:00Z"},
        "retryPolicy": {"maxAttempts": 3, "backoff": "EXPONENTIAL", "baseDelaySec": 10, "maxDelaySec": 3600, "jitter": 0.2},
        "timeoutSec": 3600, "executorSelector": "default", "params": {"a": [1, {"b": null}]}, "labels": {"team": "pay"},
        "action": {"kind": "COMMAND", "command": ["/bin/sh", "-c", "true"], "env": {"A": "b"}, "outputCapKb": 256},
        "priority": 100, "resources": {"cpu": 0.1, "memoryMb": 64, "storageMb": 0},
    });
    let small = "name: a\ntrigger: {type: ONCE, delaySec: 5}\nlabels:\n  x: &a y\n  z: *a\n";
    let rate = r#"{"name":"r","trigger":{"type":"FIXED_RATE","everySec":30,"anchorAt":null},"secretParams":{"k":"v"}}"#;
    let yaml = serde_yaml_ng::to_string(&whole).unwrap();
    vec![whole.to_string().into_bytes(), yaml.into_bytes(), small.into(), rate.into()]
}

/// As callers and files give them, then resolved as a create does.
pub fn specs(input: &[u8]) {
    let json = parse_json::<JobSpec>(input).ok();
    let yaml = std::str::from_utf8(input).ok().and_then(|text| serde_yaml_ng::from_str::<JobSpec>(text).ok());
    for job in json.into_iter().chain(yaml) {
        if let Ok(stored) = spec::resolve(&job, None, None, NOW_MS) {
            let _ = serde_json::to_string(&stored.to_spec()).unwrap();
        }
    }
    let _ = parse_json::<PreviewBody>(input);
}

/// The examples that come with the project, and the same as one list of JSON.
pub fn manifest_seeds() -> Vec<Vec<u8>> {
    let file =
        |name: &str| fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/manifests").join(name)).unwrap();
    let json = r#"{"kind":"List","items":[{"apiVersion":"campanile/v1","kind":"Job","metadata":{"name":"a","labels":{"b":"c"}},
        "spec":{"schedule":"0 2 * * *","timeZone":"Europe/Berlin","misfireThreshold":"5m","params":{"n":[1,2.5,null]}}}]}"#;
    vec![file("jobs.yaml"), file("cronjob.yaml"), json.into()]
}

pub fn manifest(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let file = ManifestFile { name: "a.yaml".to_owned(), text: text.to_owned() };
    for found in manifest::read(&[file], "default").jobs {
        let shown = manifest::manifest(&found.spec, found.suspend);
        let _ = shown.and_then(|shown| manifest::yaml(&shown));
    }
}

pub fn crontab_seeds() -> Vec<Vec<u8>> {
    [
        "SHELL=/bin/sh\nPATH=/usr/bin:/bin\nCRON_TZ=Europe/Berlin\nMAILTO=\"a@b\"\n17 *\t* * *\troot\tcd / && run-parts /etc/cron.hourly\n",
        "# a comment\n@daily echo 50\\% of%line one%line two\n@reboot root /bin/true\nRANDOM_DELAY=30\n*/5 8-18 * * 1-5 x\n",
        "0 2 1,15 jan,JUL sun-fri  a  b\n59 23 31 12 7 'quoted # text'\n  30 4 * * * -root nice\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

pub fn crontab(input: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("crontab");
    fs::write(&path, input).unwrap();
    for format in [Format::User, Format::System, Format::Auto] {
        let options = ImportOptions {
            tenant: "default".into(),
            pool: "default".into(),
            as_self: true,
            now_ms: NOW_MS,
            machine_zone: "UTC".into(),
            self_user: "root".into(),
            format,
        };
        let _ = crontab::import(std::slice::from_ref(&path), &options);
    }
}

pub fn cron_seeds() -> Vec<Vec<u8>> {
    [
        "* * * * *",
        "*/5 8-18 * * MON-FRI",
        "0 0 2 * * ?",
        "0 0 12 L-3 * ?",
        "0 15 10 ? * 6#3",
        "0 0 0 LW 2 ? 2028",
        "H H(0-7) * * *",
        "@hourly",
        "0 0 29 2 *",
        "59 59 23 31 12 ? 2099",
        "0 2 1-7 * 0",
        "15W * * *",
        "0 30 1 * * * 2026-2030/2",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

pub fn cron(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    for dialect in [Dialect::Auto, Dialect::Unix, Dialect::Quartz] {
        let Ok((expr, resolved)) = CronExpr::parse(text, dialect, 7) else { continue };
        let _ = describe(&expr, resolved);
        for zone in ["UTC", "Europe/Berlin", "Australia/Lord_Howe"] {
            next(CronSchedule::new(expr, zone, Gap::Shift, Overlap::Both).unwrap());
        }
    }
}

/// Instants rise, without end or to an end.
fn next(schedule: CronSchedule) {
    let mut at = NOW_MS;
    for _ in 0..4 {
        let Some(due) = schedule.next_fire(at) else { return };
        assert!(due > at, "{due} after {at}");
        at = due;
    }
}
