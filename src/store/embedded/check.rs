//! `campanile store check DIR`: looks at a directory that no process uses, and changes nothing in it.
//!
//! Checked: format and session, every batch of the journal and every frame in it (seq without a hole and hybrid time
//! rising per shard), manifests and checksums of snapshots and that the journal continues them, and that the views'
//! flushed position lies within the journal. The views' tables themselves are not read: they can be rebuilt or are checked
//! by fjall when they are read.

use super::{
    damage::cannot_read,
    history, meta,
    recovery::{self, Expect, InspectedLog},
    snapshots::SnapshotFiles,
    take_lock,
};
use crate::{
    file::{Files, real::RealFiles},
    progress::Progress,
};
use campanile_ports::{Manifest, Position, StoreError};
use campanile_schema::{
    format::FormatRow,
    frame::{self, Frame},
    ids::{SessionId, ShardId},
    limits,
};
use serde::Serialize;
use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};

/// What a check saw.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    pub format: FormatRow,
    /// Number of starts.
    pub session: SessionId,
    pub segments: usize,
    pub journal_bytes: u64,
    pub batches: u64,
    pub frames: u64,
    pub events: u64,
    /// Last batch of the journal.
    pub last: Position,
    /// What was trimmed away; session 0 = nothing.
    pub trimmed_upto: Position,
    /// The end of the journal was being written when the process or the machine stopped: normal after a crash, the next
    /// start cuts it.
    pub torn_tail: bool,
    /// Shards with frames in the journal.
    pub shards_in_journal: usize,
    pub snapshots: usize,
    pub snapshot_bytes: u64,
    /// How far the views are durable.
    pub views_flushed: Position,
    /// What is wrong, at most `limits::CHECK_FINDINGS`; empty = the directory is whole.
    pub findings: Vec<String>,
}

impl CheckReport {
    /// Nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.findings.is_empty()
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |p: &Position| format!("session {} lane {} seq {}", p.session, p.lane, p.seq);
        writeln!(
            f,
            "format     event {} wire {}, cluster {}, {} shards, {} starts",
            self.format.event_format, self.format.wire_format, self.format.cluster_id, self.format.shards, self.session
        )?;
        writeln!(
            f,
            "journal    {} segments, {} bytes, {} batches, {} frames, {} events of {} shards",
            self.segments, self.journal_bytes, self.batches, self.frames, self.events, self.shards_in_journal
        )?;
        writeln!(f, "           ends at {}, trimmed up to {}", at(&self.last), at(&self.trimmed_upto))?;
        if self.torn_tail {
            writeln!(f, "           torn tail: normal after a crash, the next start cuts it")?;
        }
        writeln!(f, "snapshots  {}, {} bytes", self.snapshots, self.snapshot_bytes)?;
        writeln!(f, "views      durable up to {}", at(&self.views_flushed))?;
        for finding in &self.findings {
            writeln!(f, "WRONG      {finding}")?;
        }
        write!(f, "{}", if self.is_whole() { "whole" } else { "damaged" })
    }
}

/// Checks a directory. An error means that it could not be looked at: it is no store, is in use, is of a newer format, or
/// cannot be read. What is wrong inside is in [`CheckReport::findings`].
pub fn check(dir: &Path) -> Result<CheckReport, StoreError> {
    check_on(Arc::new(RealFiles), dir)
}

pub(crate) fn check_on(files: Arc<dyn Files>, dir: &Path) -> Result<CheckReport, StoreError> {
    let is_store = files.exists(&dir.join("FORMAT"));
    if !is_store.map_err(|e| cannot_read(dir, &e))? {
        return Err(StoreError::Refused(format!("{}: there is no store here (no file FORMAT)", dir.display())));
    }
    let _lock = take_lock(files.as_ref(), dir)?;
    super::restore::refuse_marked(files.as_ref(), dir)?;
    let format = meta::read_format(files.as_ref(), dir)?
        .ok_or_else(|| StoreError::Refused(format!("{}: there is no store here", dir.display())))?;
    let mut check = Check { findings: Vec::new(), shards: BTreeMap::new(), frames: 0, events: 0 };
    let session = check.found(meta::read_session(files.as_ref(), dir)).unwrap_or(SessionId(u64::MAX));
    let mark = check.found(history::read_mark(files.as_ref(), dir)).flatten();
    let snapshots = SnapshotFiles::new(Arc::clone(&files), &dir.join("snap"));
    let manifests = check.manifests(&snapshots, format.shards);
    let floors = manifests.values().map(|m| m.replay_after).chain(mark.as_ref().map(|m| m.position));
    let expect = Expect { cluster: format.cluster_id, session, floor: floors.max().unwrap_or_default() };
    let log_dir = dir.join("log");
    let scan = recovery::inspect(files.as_ref(), &log_dir, expect, &mut |position, bytes| {
        check.batch(position, bytes);
        Ok(())
    });
    let log = check.found(scan);
    if let Some(log) = &log {
        check.continues(&manifests, log);
    }
    let mut snapshot_bytes = 0;
    for (shard, manifest) in &manifests {
        for part in &manifest.parts {
            if check.found(snapshots.read_part(*shard, part)).is_some() {
                snapshot_bytes += part.bytes;
            }
        }
    }
    check.views(files.as_ref(), dir, mark.as_ref(), log.as_ref());
    Ok(CheckReport {
        format,
        session,
        segments: log.as_ref().map_or(0, |l| l.segments.len()),
        journal_bytes: log.as_ref().map_or(0, |l| l.segments.iter().map(|s| s.file_len).sum()),
        batches: log.as_ref().map_or(0, |l| l.segments.iter().map(|s| s.batches).sum()),
        frames: check.frames,
        events: check.events,
        last: log.as_ref().map(|l| l.last).unwrap_or_default(),
        trimmed_upto: log.as_ref().map(|l| l.trim.upto).unwrap_or_default(),
        torn_tail: log.as_ref().is_some_and(|l| l.torn),
        shards_in_journal: check.shards.len(),
        snapshots: manifests.len(),
        snapshot_bytes,
        views_flushed: mark.map(|m| m.position).unwrap_or_default(),
        findings: check.findings,
    })
}

/// Frames of a shard seen so far.
struct ShardFrames {
    first: u64,
    last: u64,
    /// Hybrid time from which on the next frame may be.
    hlc: u64,
}

struct Check {
    findings: Vec<String>,
    shards: BTreeMap<ShardId, ShardFrames>,
    frames: u64,
    events: u64,
}

impl Check {
    fn wrong(&mut self, finding: String) {
        if self.findings.len() < limits::CHECK_FINDINGS {
            self.findings.push(finding);
        }
    }

    fn found<T>(&mut self, result: Result<T, StoreError>) -> Option<T> {
        result.map_err(|e| self.wrong(e.to_string())).ok()
    }

    fn manifests(&mut self, snapshots: &SnapshotFiles, shards: u16) -> BTreeMap<ShardId, Manifest> {
        let mut manifests = BTreeMap::new();
        for shard in (0..shards).map(ShardId) {
            if let Some(manifest) = self.found(snapshots.read_manifest(shard)).flatten() {
                manifests.insert(shard, manifest);
            }
        }
        manifests
    }

    fn batch(&mut self, position: Position, bytes: &[u8]) {
        match frame::decode_batch(bytes) {
            Ok(frames) => frames.iter().for_each(|frame| self.frame(position, frame)),
            Err(e) => self.wrong(format!("session {} seq {}: {e}", position.session, position.seq)),
        }
    }

    fn frame(&mut self, position: Position, frame: &Frame) {
        self.frames += 1;
        self.events += frame.events.len() as u64;
        let Frame { shard, seq, hlc, .. } = *frame;
        let end = hlc + frame.events.len().max(1) as u64;
        let Some(seen) = self.shards.get_mut(&shard) else {
            self.shards.insert(shard, ShardFrames { first: seq, last: seq, hlc: end });
            return;
        };
        let (due, from) = (seen.last + 1, seen.hlc);
        seen.last = seq;
        seen.hlc = end.max(from);
        let at = format!("session {} seq {}: shard {shard}", position.session, position.seq);
        if seq != due {
            self.wrong(format!("{at}: frame {seq} where {due} is due"));
        }
        if hlc < from {
            self.wrong(format!("{at}: frame {seq} has the hybrid time {hlc}, but {from} was reached before"));
        }
    }

    /// The journal must begin where the snapshots end, or before.
    fn continues(&mut self, manifests: &BTreeMap<ShardId, Manifest>, log: &InspectedLog) {
        let trimmed = log.trim.first_segment > recovery::TrimMark::BEGINNING.first_segment;
        let gaps: Vec<String> = self
            .shards
            .iter()
            .filter_map(|(shard, seen)| {
                let covered = manifests.get(shard).map_or(0, |m| m.shard_seq);
                (seen.first > covered + 1).then(|| {
                    format!(
                        "shard {shard}: its snapshot ends at frame {covered}, the journal{} begins at frame {}",
                        if trimmed { " (which was trimmed)" } else { "" },
                        seen.first
                    )
                })
            })
            .collect();
        for gap in gaps {
            self.wrong(gap);
        }
    }

    fn views(&mut self, files: &dyn Files, dir: &Path, mark: Option<&Progress>, log: Option<&InspectedLog>) {
        let path = dir.join("views");
        let covered = mark.map(|m| m.position).unwrap_or_default();
        let trimmed = log.map(|l| l.trim.upto).unwrap_or_default();
        if covered.max(trimmed) > Position::default() && !files.exists(&path).unwrap_or(false) {
            self.wrong(format!(
                "{}: missing, though FLUSHED covers session {} seq {}",
                path.display(),
                covered.session,
                covered.seq
            ));
        }
    }
}
