//! Snapshots: `snap/<shard>/<number>.<hot|defs|outbox>` hold chunks with an index behind them, `snap/<shard>/MANIFEST` names
//! the parts that count. Parts and their names are durable before a manifest names them, the manifest is durable before
//! the journal may be trimmed. A part that no manifest names is removed by the next publish.

use super::damage::cannot_read;
use crate::file::{Files, Open, SyncSite, stamped};
use campanile_ports::{Manifest, PartRef, SnapshotPart, StoreError};
use campanile_schema::ids::ShardId;
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

const MAGIC: [u8; 8] = *b"CMPNSNP1";
/// Magic, number of chunks, checksum of all chunks, checksum of index and footer.
const FOOTER: usize = 24;
/// Length and checksum of a chunk.
const INDEX_ENTRY: usize = 8;

/// What of a part is on its way to the disk at once: the journal's syncs share the disk and wait behind it.
const SYNC_EACH_BYTES: u64 = 4 << 20;

const ADVICE: &str = "Restore the directory from a backup; if the journal still reaches back to its beginning, removing \
    the shard's directory under `snap` makes the next start replay it whole";

/// The snapshots of a directory.
#[derive(Clone)]
pub struct SnapshotFiles {
    files: Arc<dyn Files>,
    dir: PathBuf,
    /// Shards whose last publish failed: their manifest may be seen and yet not be durable.
    unsure: Arc<Mutex<BTreeSet<ShardId>>>,
    /// Readers for whom no part is removed.
    pins: Arc<AtomicU64>,
}

impl SnapshotFiles {
    /// `dir` is the `snap` directory; the shards' directories in it exist.
    pub fn new(files: Arc<dyn Files>, dir: &Path) -> Self {
        Self { files, dir: dir.to_path_buf(), unsure: Arc::default(), pins: Arc::default() }
    }

    /// How many want every part to stay that a manifest of now names.
    pub fn pins(&self) -> &AtomicU64 {
        &self.pins
    }

    fn shard_dir(&self, shard: ShardId) -> PathBuf {
        self.dir.join(shard.to_string())
    }

    /// Writes and syncs a part.
    pub fn write_part(
        &self,
        shard: ShardId,
        number: u64,
        part: SnapshotPart,
        chunks: &[Vec<u8>],
    ) -> Result<PartRef, StoreError> {
        let dir = self.shard_dir(shard);
        if let Some(manifest) = self.load(shard)?
            && manifest.parts.iter().any(|p| p.number == number && p.part == part)
        {
            return Err(StoreError::Refused(format!("shard {shard}: part {} is published", part_name(number, part))));
        }
        let path = dir.join(part_name(number, part));
        let mut index = Vec::with_capacity(chunks.len() * INDEX_ENTRY + FOOTER);
        let (mut crc, mut content) = (0, 0);
        for chunk in chunks {
            let length = u32::try_from(chunk.len())
                .map_err(|_| StoreError::Refused(format!("a chunk of {} bytes", chunk.len())))?;
            let chunk_crc = crc32c::crc32c(chunk);
            crc = crc32c::crc32c_combine(crc, chunk_crc, chunk.len());
            index.extend_from_slice(&length.to_le_bytes());
            index.extend_from_slice(&chunk_crc.to_le_bytes());
            content += chunk.len() as u64;
        }
        let count = u32::try_from(chunks.len())
            .map_err(|_| StoreError::Refused(format!("a part of {} chunks", chunks.len())))?;
        let mut footer = index;
        footer.extend_from_slice(&MAGIC);
        footer.extend_from_slice(&count.to_le_bytes());
        footer.extend_from_slice(&crc.to_le_bytes());
        // Four bytes are reserved.
        footer.extend_from_slice(&[0; 4]);
        let footer_crc = crc32c::crc32c(&footer);
        footer.extend_from_slice(&footer_crc.to_le_bytes());
        let write = || -> io::Result<()> {
            let file = self.files.open(&path, Open::Create)?;
            let (mut at, mut synced) = (0, 0);
            let last = chunks.len();
            for (index, bytes) in chunks.iter().chain([&footer]).enumerate() {
                file.write_at(bytes, at)?;
                at += bytes.len() as u64;
                if at - synced >= SYNC_EACH_BYTES || index == last {
                    file.sync_data(SyncSite::SnapshotPart)?;
                    synced = at;
                }
            }
            Ok(())
        };
        write().map_err(|e| StoreError::Unavailable(format!("cannot write {}: {e}", path.display())))?;
        Ok(PartRef { number, part, chunks: count, bytes: content, crc })
    }

    /// Makes a manifest the one that counts, then removes the parts that it does not name.
    pub fn publish(&self, shard: ShardId, manifest: &Manifest) -> Result<(), StoreError> {
        let dir = self.shard_dir(shard);
        if let Some(current) = self.load(shard)? {
            if current == *manifest {
                return Ok(());
            }
            if current.number >= manifest.number {
                return Err(StoreError::Refused(format!(
                    "shard {shard}: snapshot {} was to be published after {}",
                    manifest.number, current.number
                )));
            }
        }
        let path = dir.join("MANIFEST");
        self.unsure().insert(shard);
        self.files
            .sync_dir(&dir, SyncSite::SnapshotPartDir)
            .and_then(|()| {
                stamped::write(
                    self.files.as_ref(),
                    &path,
                    manifest,
                    SyncSite::ManifestFile,
                    Some(SyncSite::ManifestDir),
                )
            })
            .map_err(|e| StoreError::Unknown(format!("cannot publish {}: {e}", path.display())))?;
        self.unsure().remove(&shard);
        self.sweep(&dir, manifest);
        Ok(())
    }

    fn unsure(&self) -> MutexGuard<'_, BTreeSet<ShardId>> {
        self.unsure.lock()
    }

    /// Removes parts that are not named. What cannot be removed now goes with the next publish.
    fn sweep(&self, dir: &Path, manifest: &Manifest) {
        if self.pins.load(Ordering::Acquire) > 0 {
            return;
        }
        let named: Vec<String> = manifest.parts.iter().map(|p| part_name(p.number, p.part)).collect();
        let Ok(names) = self.files.list(dir) else {
            return;
        };
        for name in names {
            let part = [".hot", ".defs", ".outbox"].iter().any(|of| name.ends_with(of));
            if part
                && !named.contains(&name)
                && let Err(e) = self.files.remove(&dir.join(&name))
            {
                tracing::warn!(file = %dir.join(&name).display(), error = %e, "an old part of a snapshot stays");
            }
        }
    }

    /// The manifest that counts.
    pub fn load(&self, shard: ShardId) -> Result<Option<Manifest>, StoreError> {
        if self.unsure().contains(&shard) {
            return self.inherit(shard);
        }
        self.read_manifest(shard)
    }

    /// The manifest that somebody left who may have failed or died between the rename and the sync, made durable: the
    /// journal will be trimmed by it.
    pub fn inherit(&self, shard: ShardId) -> Result<Option<Manifest>, StoreError> {
        let manifest = self.read_manifest(shard)?;
        if manifest.is_some() {
            let dir = self.shard_dir(shard);
            self.files
                .sync_dir(&dir, SyncSite::Inherited)
                .map_err(|e| StoreError::Unavailable(format!("cannot sync {}: {e}", dir.display())))?;
        }
        self.unsure().remove(&shard);
        Ok(manifest)
    }

    /// The manifest as it stands in the file, durable or not.
    pub fn read_manifest(&self, shard: ShardId) -> Result<Option<Manifest>, StoreError> {
        stamped::read(self.files.as_ref(), &self.shard_dir(shard).join("MANIFEST"), ADVICE)
    }

    /// The chunks of a part, checked.
    pub fn read_part(&self, shard: ShardId, part: &PartRef) -> Result<Vec<Vec<u8>>, StoreError> {
        let path = self.shard_dir(shard).join(part_name(part.number, part.part));
        let file = match self.files.open(&path, Open::Read) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(damaged(&path, 0, "the file is missing"));
            }
            Err(e) => return Err(cannot_read(&path, &e)),
        };
        let len = file.size().map_err(|e| cannot_read(&path, &e))?;
        let expected = part.bytes + u64::from(part.chunks) * INDEX_ENTRY as u64 + FOOTER as u64;
        if len != expected {
            return Err(damaged(&path, len.min(expected), &format!("{len} bytes long, {expected} expected")));
        }
        let mut bytes = vec![0; len as usize];
        let got = file.read_at(&mut bytes, 0).map_err(|e| cannot_read(&path, &e))?;
        if got < bytes.len() {
            return Err(damaged(&path, got as u64, "the file ends here"));
        }
        let (content, tail) = bytes.split_at(part.bytes as usize);
        let (checked, stamp) = tail.split_at(tail.len() - 4);
        let footer = &checked[checked.len() - (FOOTER - 4)..];
        if stamp != crc32c::crc32c(checked).to_le_bytes() || footer[..8] != MAGIC {
            return Err(damaged(&path, part.bytes, "the index is damaged"));
        }
        if footer[12..16] != part.crc.to_le_bytes() {
            return Err(damaged(&path, part.bytes, "it is not the part that the manifest names"));
        }
        let mut chunks = Vec::with_capacity(part.chunks as usize);
        let mut at = 0;
        for entry in checked[..part.chunks as usize * INDEX_ENTRY].chunks_exact(INDEX_ENTRY) {
            let (length, crc) = entry.split_at(4);
            let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
            let chunk =
                content.get(at..at + length).ok_or_else(|| damaged(&path, at as u64, "the index is damaged"))?;
            if crc != crc32c::crc32c(chunk).to_le_bytes() {
                return Err(damaged(&path, at as u64, "a chunk's checksum does not match"));
            }
            chunks.push(chunk.to_vec());
            at += length;
        }
        if at != content.len() {
            return Err(damaged(&path, at as u64, "bytes that the index does not name"));
        }
        Ok(chunks)
    }

    /// Bytes of all files of all shards.
    pub fn disk_bytes(&self, shards: u16) -> io::Result<u64> {
        let mut bytes = 0;
        for shard in 0..shards {
            let dir = self.shard_dir(ShardId(shard));
            for name in self.files.list(&dir)? {
                // A file may be replaced while we look.
                if let Ok(file) = self.files.open(&dir.join(name), Open::Read) {
                    bytes += file.size()?;
                }
            }
        }
        Ok(bytes)
    }
}

fn part_name(number: u64, part: SnapshotPart) -> String {
    match part {
        SnapshotPart::Hot => format!("{number}.hot"),
        SnapshotPart::Definitions => format!("{number}.defs"),
        SnapshotPart::Outbox => format!("{number}.outbox"),
        SnapshotPart::Graphs => format!("{number}.graphs"),
    }
}

fn damaged(path: &Path, offset: u64, why: &str) -> StoreError {
    StoreError::Corrupt(format!("{}: offset {offset}: {why}. {ADVICE}", path.display()))
}
