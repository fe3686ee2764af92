//! A store on the crash disk, driven at random from a seed, beside a model of what was promised.
//!
//! The promises: what an append acknowledged is there after any cut, in order and without a hole; what was in flight is
//! there or not, and what recovery decided stays so; a cut by `reopen` is final; sessions never repeat; snapshots that
//! were published and positions that were flushed do not go back; nothing is trimmed that was not asked for.

use super::super::EmbeddedStore;
use crate::{
    conformance::{MemorySource, options},
    file::{SyncSite, crash::CrashFiles},
    samples::{batch, wait},
};
use campanile_ports::{Journal, LocalViews, Manifest, Position, SnapshotPart, Snapshots, StoreError, Views};
use campanile_schema::ids::{Epoch, SessionId, ShardId};
use std::{collections::BTreeMap, path::Path, sync::Arc};

/// Calls that a world makes.
const STEPS: u64 = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Acknowledged, or seen after a recovery.
    There,
    /// In flight when something failed.
    Open,
}

struct Item {
    position: Position,
    bytes: Vec<u8>,
    fate: Fate,
}

/// Store and model.
pub struct World {
    files: CrashFiles,
    source: MemorySource,
    store: Option<Arc<EmbeddedStore>>,
    session: SessionId,
    seq: u64,
    failed: bool,
    log: Vec<Item>,
    /// Highest position that a trim named.
    trimmed: Position,
    /// Acknowledged, and attempted.
    flushed: (Position, Position),
    /// Per shard: the manifest that counts, and those whose publish failed.
    manifests: BTreeMap<ShardId, (Option<Manifest>, Vec<Manifest>)>,
    snapshot: u64,
    /// What happened, for the message of a failure.
    story: Vec<String>,
}

/// Runs a world to its end; tells what broke a promise.
pub fn run(seed: u64, ignored: Option<SyncSite>) -> Result<(), String> {
    let files = CrashFiles::new(seed);
    files.ignore(ignored);
    let mut world = World {
        files,
        source: MemorySource::default(),
        store: None,
        session: SessionId(0),
        seq: 0,
        failed: false,
        log: Vec::new(),
        trimmed: Position::default(),
        flushed: Default::default(),
        manifests: BTreeMap::new(),
        snapshot: 0,
        story: Vec::new(),
    };
    world.live().map_err(|why| format!("seed {seed}: {why}\n{}", world.story.join("\n")))
}

impl World {
    fn live(&mut self) -> Result<(), String> {
        if self.draw(4) == 0 {
            self.files.power_off_in(self.draw(40));
        }
        self.open()?;
        for _ in 0..STEPS {
            self.step()?;
            if !self.files.powered() {
                self.next_life(self.draw(2) == 0)?;
            }
        }
        self.next_life(true)
    }

    fn draw(&self, end: u64) -> u64 {
        self.files.draw(end)
    }

    fn store(&self) -> Arc<EmbeddedStore> {
        self.store.clone().expect("open between steps")
    }

    fn step(&mut self) -> Result<(), String> {
        match self.draw(24) {
            0..=9 => self.append(),
            10..=11 => self.publish(),
            12..=13 => self.flush(),
            14..=15 => self.trim(),
            16 => self.files.fail_write_in(self.draw(3)),
            17 => self.files.fail_sync_in(self.draw(3)),
            18..=19 => self.files.power_off_in(self.draw(14)),
            20 => return self.restart(),
            21 => return self.next_life(false),
            22 => return self.next_life(true),
            _ => {}
        }
        if self.failed && self.draw(2) == 0 {
            self.reopen()?;
        }
        Ok(())
    }

    fn tell(&mut self, what: String) {
        self.story.push(what);
    }

    fn append(&mut self) {
        let size = if self.draw(8) == 0 { self.draw(14_000) } else { self.draw(900) };
        let fill = self.draw(256) as u8;
        let bytes = vec![fill; size as usize];
        let position = Position { session: self.session, lane: 0, seq: self.seq + 1 };
        let result = wait(self.store().append(0, position.seq, &bytes));
        self.tell(format!("append {}/{} of {size}: {result:?}", position.session, position.seq));
        match result {
            Ok(()) => {
                self.seq += 1;
                self.log.push(Item { position, bytes, fate: Fate::There });
            }
            Err(_) if self.failed => {}
            Err(_) => {
                self.failed = true;
                self.log.push(Item { position, bytes, fate: Fate::Open });
            }
        }
    }

    fn last(&self) -> Position {
        let there = self.log.iter().rev().find(|item| item.fate == Fate::There);
        there.map(|item| item.position).unwrap_or_default()
    }

    fn publish(&mut self) {
        let shard = ShardId(self.draw(4) as u16);
        self.snapshot += 1;
        let number = self.snapshot;
        let store = self.store();
        let mut parts = Vec::new();
        for part in [SnapshotPart::Definitions, SnapshotPart::Hot] {
            let chunks = vec![vec![number as u8; self.draw(3_000) as usize], number.to_le_bytes().to_vec()];
            match wait(store.write_part(shard, number, part, chunks)) {
                Ok(written) => parts.push(written),
                Err(e) => return self.tell(format!("part {number}: {e}")),
            }
        }
        let (epoch, shard_seq, last_hlc) = (Epoch(self.session.0), number, number);
        let manifest = Manifest { number, epoch, shard_seq, replay_after: self.last(), last_hlc, parts };
        let result = wait(store.publish(shard, manifest.clone()));
        self.tell(format!("publish {number} of shard {shard}: {result:?}"));
        let known = self.manifests.entry(shard).or_default();
        match result {
            Ok(()) => *known = (Some(manifest), Vec::new()),
            Err(_) => known.1.push(manifest),
        }
    }

    fn flush(&mut self) {
        let position = self.last();
        let store = self.store();
        if wait(store.apply(batch(position, &[(0, position.seq)], Vec::new()))).is_err() {
            return;
        }
        self.flushed.1 = self.flushed.1.max(position);
        let result = wait(store.flush());
        self.tell(format!("flush {position:?}: {result:?}"));
        if let Ok(position) = result {
            self.flushed.0 = self.flushed.0.max(position);
        }
    }

    fn trim(&mut self) {
        let store = self.store();
        let upto = store.flushed();
        self.trimmed = self.trimmed.max(upto);
        let result = wait(store.trim(upto));
        self.tell(format!("trim {upto:?}: {result:?}"));
    }

    fn reopen(&mut self) -> Result<(), String> {
        let result = self.store().reopen();
        self.tell(format!("reopen: {result:?}"));
        match result {
            Ok(opened) => {
                self.begin(opened.session)?;
                // Without power the next life looks again.
                self.verify(false).map(drop)
            }
            // It stays as it was: a fault, or no power.
            Err(_) => Ok(()),
        }
    }

    fn restart(&mut self) -> Result<(), String> {
        self.files.calm();
        self.store = None;
        self.source.0.revert_to_last_flush();
        self.tell("restart".into());
        self.open()
    }

    fn next_life(&mut self, cut: bool) -> Result<(), String> {
        self.tell(if cut { "the power goes".into() } else { "the process dies".into() });
        self.files = if cut { self.files.cut() } else { self.files.kill() };
        self.store = None;
        self.source.0.revert_to_last_flush();
        self.open()
    }

    /// Opens until it works: the power may go meanwhile.
    fn open(&mut self) -> Result<(), String> {
        loop {
            let files = Arc::new(self.files.clone());
            let result = EmbeddedStore::open_on(files, &options(Path::new("/data")), &self.source);
            self.tell(format!("open: {:?}", result.as_ref().map(|(_, opened)| opened.session)));
            match result {
                Ok((store, opened)) => {
                    self.store = Some(store);
                    self.begin(opened.session)?;
                    if self.verify(true)? {
                        return Ok(());
                    }
                }
                Err(e) if self.files.powered() => return Err(format!("cannot be opened: {e}")),
                Err(_) => {}
            }
            let cut = self.draw(2) == 0;
            self.tell(format!("no power while it opened, cut {cut}"));
            self.files = if cut { self.files.cut() } else { self.files.kill() };
            self.store = None;
            self.source.0.revert_to_last_flush();
            if self.draw(3) == 0 {
                self.files.power_off_in(self.draw(40));
            }
        }
    }

    fn begin(&mut self, session: SessionId) -> Result<(), String> {
        if session <= self.session {
            return Err(format!("session {session} after session {}", self.session));
        }
        self.session = session;
        self.seq = 0;
        self.failed = false;
        Ok(())
    }

    /// Holds the store against the model. False when the power went meanwhile.
    fn verify(&mut self, fresh: bool) -> Result<bool, String> {
        for check in [Self::verify_journal, Self::verify_flushed, Self::verify_snapshots] {
            match check(self, fresh) {
                Ok(()) => {}
                Err(_) if !self.files.powered() => return Ok(false),
                Err(why) => return Err(why),
            }
        }
        Ok(true)
    }

    fn verify_journal(&mut self, _fresh: bool) -> Result<(), String> {
        let store = self.store();
        let mut seen = Vec::new();
        let mut after = Position::default();
        loop {
            let page = wait(store.read_after(after, 10_000)).map_err(|e| format!("cannot be read: {e}"))?;
            let Some((last, _)) = page.last() else { break };
            after = *last;
            seen.extend(page);
        }
        let first = seen.first().map(|(p, _)| *p);
        let mut seen = seen.into_iter().peekable();
        let mut kept = Vec::new();
        for mut item in self.log.drain(..) {
            match seen.next_if(|(position, _)| *position == item.position) {
                Some((position, bytes)) => {
                    if bytes != item.bytes {
                        return Err(format!("{position:?} came back with other bytes"));
                    }
                    item.fate = Fate::There;
                    kept.push(item);
                }
                None if item.fate == Fate::Open => {}
                None if item.position <= self.trimmed && first.is_none_or(|f| item.position < f) => {}
                None => return Err(format!("the acknowledged {:?} is not there", item.position)),
            }
        }
        self.log = kept;
        seen.next().map_or(Ok(()), |(position, _)| Err(format!("{position:?} was never appended, or was cut")))
    }

    fn verify_flushed(&mut self, fresh: bool) -> Result<(), String> {
        let position = self.store().flushed();
        if position < self.flushed.0 || position > self.flushed.1 {
            return Err(format!("flushed {position:?} is not between {:?} and {:?}", self.flushed.0, self.flushed.1));
        }
        // A mark whose write failed may still be found by the next process.
        self.flushed.0 = position;
        if fresh {
            self.flushed.1 = position;
        }
        Ok(())
    }

    fn verify_snapshots(&mut self, _fresh: bool) -> Result<(), String> {
        let store = self.store();
        let shards: Vec<ShardId> = self.manifests.keys().copied().collect();
        for shard in shards {
            let error = |e: StoreError| format!("snapshot of shard {shard}: {e}");
            let loaded = wait(store.load(shard, None)).map_err(error)?;
            let known = self.manifests.entry(shard).or_default();
            if loaded != known.0 && !loaded.as_ref().is_some_and(|m| known.1.contains(m)) {
                return Err(format!("shard {shard} has the manifest {loaded:?} where {known:?} are possible"));
            }
            for part in loaded.iter().flat_map(|m| &m.parts) {
                let chunks = wait(store.read_part(shard, part.clone())).map_err(error)?;
                if chunks.last().map(Vec::as_slice) != Some(&part.number.to_le_bytes()) {
                    return Err(format!("shard {shard}: part {} holds something else", part.number));
                }
            }
            *known = (loaded, Vec::new());
        }
        Ok(())
    }
}
