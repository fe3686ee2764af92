//! What is stored, byte for byte: one line per form in `golden/stored.jsonl`, with its fields as JSON to read and its bytes as
//! hex. `UPDATE_GOLDEN=1` adds lines of new samples. It changes none: stored data has the bytes that a line says.
//!
//! A line that is there must be readable for ever within its event format: [`bytes_written_once_are_read_for_ever`] reads what
//! the file holds, not what this build writes.

use crate::golden_forms::{
    samples::{Sample, backfill, bulk, calendars, events, graph, grow::grown, of_credentials, samples},
    variants,
};
use campanile_schema::{
    event::Event,
    format::{EVENT_FORMAT, FormatRow, WIRE_FORMAT},
    frame::{self, Frame, Skimmed, decode_batch, decode_batch_up_to, skim_batch},
    graph::{StoredGraph, change::GraphChange},
    ids::{ClusterId, Epoch, ShardId},
    peer::outbox::{Deliver, Delivered, EndBody, HookBody, NodeBody},
    record::RunRecord,
    stored::{
        StoredJob, TenantRecord,
        audit::AuditRecord,
        graph::{GraphItem, GraphRecord, StoredGraphRun},
        outbox::{Message, OutboxEvent, OutboxHead, OutboxItem},
    },
};
use serde::{Serialize, de::DeserializeOwned};
use std::{collections::BTreeSet, fmt::Debug, path::PathBuf};

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/stored.jsonl")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|n| u8::from_str_radix(&text[n..n + 2], 16).unwrap()).collect()
}

/// (form, name, bytes) of the golden file.
fn golden() -> Vec<(String, String, Vec<u8>)> {
    let text = std::fs::read_to_string(path()).unwrap_or_default();
    text.lines()
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let field = |name: &str| line[name].as_str().unwrap().to_owned();
            (field("form"), field("name"), unhex(&field("hex")))
        })
        .collect()
}

#[test]
fn stored_bytes_change_only_with_a_diff() {
    let lines: Vec<String> = samples()
        .iter()
        .map(|s| {
            let (form, name, fields, hex) = (s.form, &s.name, &s.fields, hex(&s.bytes));
            serde_json::json!({"form": form, "name": name, "fields": fields, "hex": hex}).to_string()
        })
        .collect();
    let text = lines.join("\n") + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let before = std::fs::read_to_string(path()).unwrap_or_default();
        let kept = before.lines().filter(|line| !text.lines().any(|now| now == *line)).collect::<Vec<_>>();
        assert!(kept.is_empty(), "a stored form has changed, and no line may:\n{}", kept.join("\n"));
        std::fs::write(path(), &text).unwrap();
    }
    let written = std::fs::read_to_string(path()).unwrap_or_default();
    for (now, golden) in text.lines().zip(written.lines()) {
        assert_eq!(now, golden, "a stored form has changed, or a new sample has no line: UPDATE_GOLDEN=1 adds it");
    }
    assert_eq!(text.lines().count(), written.lines().count());
}

#[test]
fn every_event_has_a_sample() {
    let (names, name) = variants!(Event: TenantSet, TenantDeleted, PauseSet, Lent, JobCreated, CreateKept, JobReplaced, JobPaused,
        JobResumed, JobDeleted, JobQuarantined, CursorMoved, RunCreated, RunReleased, RetryDue, AttemptStarted, AttemptSuspected,
        AttemptHeard, AttemptStopping, AttemptEnded, RunConfirmed, RunPrioritized, RunEnded, RunReopened, DeadLetterDiscarded, HookFailed, Outbox,
        GraphChanged, BackfillChanged, BulkChanged, CalendarSet, Audited);
    let sampled: BTreeSet<_> = events()
        .iter()
        .chain(&of_credentials())
        .chain(&[graph::event(), backfill::event(), bulk::event(), calendars::event()])
        .map(name)
        .collect();
    assert_eq!(sampled, names.iter().copied().collect());
}

/// Reads a form; what was read encodes to the same bytes again. A newer writer of the same format may add fields: they are
/// ignored.
fn read<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) {
    let value: T = frame::decode("golden", bytes).unwrap();
    assert_eq!(hex(&frame::encode(&value)), hex(bytes));
    let grown = grown(bytes);
    assert!(grown.len() > bytes.len());
    assert_eq!(frame::decode::<T>("grown", &grown).unwrap(), value, "an unknown field must be ignored");
}

/// An enum, which encodes to the same bytes again.
fn decoded<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> T {
    let value: T = frame::decode("golden", bytes).unwrap();
    assert_eq!(hex(&frame::encode(&value)), hex(bytes));
    value
}

#[test]
fn bytes_written_once_are_read_for_ever() {
    let golden = golden();
    assert!(!golden.is_empty());
    let (mut outbox_events, mut delivered, mut graph_changes) = (Vec::new(), Vec::new(), Vec::new());
    let mut graph_items = Vec::new();
    for (form, name, bytes) in golden {
        println!("{form} {name}: {} bytes", bytes.len());
        match form.as_str() {
            // An event is a one-entry map that tells its variant: it grows inside a frame.
            "event" => {
                let event: Event = frame::decode("event", &bytes).unwrap();
                let events = vec![event];
                assert_eq!(hex(&frame::encode(&events[0])), hex(&bytes));
                read::<Frame>(&frame::encode(&Frame {
                    shard: ShardId(1),
                    epoch: Epoch(1),
                    seq: 1,
                    hlc: 1,
                    events,
                    format: 1,
                }));
            }
            "frame" => {
                read::<Frame>(&bytes);
                let frame: Frame = frame::decode("frame", &bytes).unwrap();
                let twice = [bytes.clone(), bytes].concat();
                assert_eq!(decode_batch(&twice).unwrap(), [frame.clone(), frame.clone()]);
                let passed = Skimmed { shard: frame.shard, seq: frame.seq, frame: None };
                let whole = Skimmed { frame: Some(frame.clone()), ..passed.clone() };
                for (wanted, skimmed) in [(true, whole), (false, passed)] {
                    let skim = |shard, seq| wanted && (shard, seq) == (frame.shard, frame.seq);
                    assert_eq!(skim_batch(&twice, EVENT_FORMAT, skim).unwrap(), [skimmed.clone(), skimmed]);
                }
            }
            "run" => read::<RunRecord>(&bytes),
            "job" => read::<StoredJob>(&bytes),
            "tenant" => read::<TenantRecord>(&bytes),
            "format" => read::<FormatRow>(&bytes),
            "audit" => read::<AuditRecord>(&bytes),
            "message" => read::<Message>(&bytes),
            "outbox head" => read::<OutboxHead>(&bytes),
            "outbox item" => read::<OutboxItem>(&bytes),
            "deliver" => read::<Deliver>(&bytes),
            "hook body" => read::<HookBody>(&bytes),
            "node body" => read::<NodeBody>(&bytes),
            "end body" => read::<EndBody>(&bytes),
            "graph run" => read::<StoredGraphRun>(&bytes),
            "graph record" => read::<GraphRecord>(&bytes),
            // One-entry maps that tell a variant, as an event is: they grow inside a list.
            "outbox event" => outbox_events.push(decoded::<OutboxEvent>(&bytes)),
            "delivered" => delivered.push(decoded::<Delivered>(&bytes)),
            "graph" => read::<StoredGraph>(&bytes),
            "graph item" => graph_items.push(decoded::<GraphItem>(&bytes)),
            "graph change" => graph_changes.push(decoded::<GraphChange>(&bytes)),
            other => panic!("no reader for {other}"),
        }
    }
    read::<Vec<OutboxEvent>>(&frame::encode(&outbox_events));
    read::<Vec<Delivered>>(&frame::encode(&delivered));
    read::<Vec<GraphItem>>(&frame::encode(&graph_items));
    read::<Vec<GraphChange>>(&frame::encode(&graph_changes));
}

#[test]
fn a_newer_format_is_refused_with_what_to_do() {
    let row = |event_format, wire_format| FormatRow {
        event_format,
        wire_format,
        cluster_id: ClusterId(5),
        shards: 256,
        created_ms: 0,
    };
    assert_eq!(row(EVENT_FORMAT, WIRE_FORMAT).check(), Ok(()));
    for newer in [row(EVENT_FORMAT + 1, WIRE_FORMAT), row(EVENT_FORMAT, WIRE_FORMAT + 1)] {
        // It is read first, whatever a newer release adds to it.
        let mut json = serde_json::to_value(&newer).unwrap();
        json["something_new"] = serde_json::json!(true);
        let newer: FormatRow = serde_json::from_value(json).unwrap();
        let said = newer.check().unwrap_err().to_string();
        assert!(said.contains("written in event format"), "{said}");
        assert!(said.contains("Start a release"), "{said}");
    }
}

/// A torn or foreign byte string is an error that names the form, never a panic.
#[test]
fn damaged_bytes_are_an_error() {
    for Sample { form, name, bytes, .. } in samples() {
        for cut in 0..bytes.len() {
            if form == "frame" {
                let error = frame::decode::<Frame>("frame", &bytes[..cut]).unwrap_err();
                assert!(error.to_string().starts_with("frame: "), "{name}: {error}");
                assert!(cut == 0 || decode_batch(&bytes[..cut]).is_err());
            }
            for flip in [0x01, 0x80, 0xff] {
                let mut spoiled = bytes.clone();
                spoiled[cut] ^= flip;
                drop(frame::decode::<Frame>("frame", &spoiled));
                drop(frame::decode::<Event>("event", &spoiled));
                drop(frame::decode::<StoredJob>("job", &spoiled));
                drop(frame::decode::<StoredGraph>("graph", &spoiled));
                drop(frame::decode::<GraphChange>("graph change", &spoiled));
                drop(decode_batch(&spoiled));
            }
        }
    }
    assert!(frame::decode::<Event>("event", &frame::encode(&"jx")).is_err(), "an unknown event is not skipped");
}

#[test]
fn a_frame_of_a_later_format_is_refused_in_words_by_who_does_not_know_it() {
    let frame = |seq, format| Frame { shard: ShardId(1), epoch: Epoch(1), seq, hlc: seq, events: Vec::new(), format };
    let bytes = [frame::encode(&frame(1, 1)), frame::encode(&frame(2, EVENT_FORMAT + 1))].concat();
    let refused = decode_batch(&bytes).unwrap_err().to_string();
    assert!(refused.contains("event format 3, and this release knows 2: start a newer one"), "{refused}");
    // Wanted or not.
    for wanted in [true, false] {
        assert_eq!(skim_batch(&bytes, EVENT_FORMAT, |_, _| wanted).unwrap_err().to_string(), refused);
    }
    let read = decode_batch_up_to(&bytes, EVENT_FORMAT + 1).unwrap();
    assert_eq!(read, [frame(1, 1), frame(2, EVENT_FORMAT + 1)]);
}
