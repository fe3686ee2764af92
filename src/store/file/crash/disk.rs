//! What the crash disk holds: files as the cache shows them and as the platter has them, directories with the changes
//! that no sync made durable yet.

use super::super::SyncSite;
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

const SECTOR: usize = 512;

/// A file's content, whatever its name.
pub type NodeId = usize;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    File(NodeId),
    Dir,
}

#[derive(Default)]
struct Node {
    /// What a read sees.
    now: Vec<u8>,
    /// What the platter has.
    durable: Vec<u8>,
    /// Sectors of `now` that a sync will write.
    dirty: BTreeSet<usize>,
    /// Whether the length is to be written.
    len_dirty: bool,
}

#[derive(Clone, Debug)]
enum Change {
    Link(String, Entry),
    Unlink(String),
    Rename(String, String, Entry),
}

#[derive(Default)]
struct Dir {
    now: BTreeMap<String, Entry>,
    durable: BTreeMap<String, Entry>,
    pending: Vec<Change>,
}

impl Dir {
    fn change(&mut self, change: Change) {
        make(&mut self.now, &change);
        self.pending.push(change);
    }
}

fn make(names: &mut BTreeMap<String, Entry>, change: &Change) {
    match change {
        Change::Link(name, entry) => {
            names.insert(name.clone(), *entry);
        }
        Change::Unlink(name) => {
            names.remove(name);
        }
        Change::Rename(from, to, entry) => {
            names.remove(from);
            names.insert(to.clone(), *entry);
        }
    }
}

/// splitmix64.
pub struct Random(u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end.max(1)
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}

pub struct Disk {
    pub life: u64,
    pub off: bool,
    pub locks: BTreeSet<PathBuf>,
    pub changes_left: Option<u64>,
    pub ignored: Option<SyncSite>,
    pub fail_write_in: Option<u64>,
    pub fail_sync_in: Option<u64>,
    pub syncs: BTreeMap<SyncSite, u64>,
    pub random: Random,
    nodes: Vec<Node>,
    dirs: BTreeMap<PathBuf, Dir>,
}

fn not_found(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{} does not exist", path.display()))
}

fn split(path: &Path) -> io::Result<(&Path, String)> {
    match (path.parent(), path.file_name().and_then(OsStr::to_str)) {
        (Some(dir), Some(name)) => Ok((dir, name.to_owned())),
        (Some(_) | None, _) => Err(io::Error::other("a path without a name")),
    }
}

impl Disk {
    pub fn new(seed: u64) -> Self {
        Self {
            life: 0,
            off: false,
            locks: BTreeSet::new(),
            changes_left: None,
            ignored: None,
            fail_write_in: None,
            fail_sync_in: None,
            syncs: BTreeMap::new(),
            random: Random(seed),
            nodes: Vec::new(),
            dirs: BTreeMap::from([(PathBuf::from("/"), Dir::default())]),
        }
    }

    pub fn begin_life(&mut self) -> u64 {
        self.life += 1;
        self.off = false;
        self.changes_left = None;
        self.fail_write_in = None;
        self.fail_sync_in = None;
        self.locks.clear();
        self.life
    }

    /// Decides what the platter has after the power went.
    pub fn cut(&mut self) {
        let random = &mut self.random;
        for node in &mut self.nodes {
            let len = if node.len_dirty && random.coin() { node.now.len() } else { node.durable.len() };
            let mut kept = node.durable.clone();
            kept.resize(len, 0);
            for sector in &node.dirty {
                let from = sector * SECTOR;
                let to = (from + SECTOR).min(node.now.len()).min(len);
                if from >= to {
                    continue;
                }
                let (begin, end) = match random.below(4) {
                    0 => (from, from),
                    1 => (from, from + random.below((to - from) as u64) as usize),
                    2 => (from + random.below((to - from) as u64) as usize, to),
                    _ => (from, to),
                };
                kept[begin..end].copy_from_slice(&node.now[begin..end]);
            }
            *node = Node { now: kept.clone(), durable: kept, ..Node::default() };
        }
        for dir in self.dirs.values_mut() {
            for change in std::mem::take(&mut dir.pending) {
                if random.coin() {
                    make(&mut dir.durable, &change);
                }
            }
            dir.now = dir.durable.clone();
        }
        let known: Vec<PathBuf> = self.dirs.keys().cloned().collect();
        for path in known {
            if !self.reachable(&path) {
                self.dirs.remove(&path);
            }
        }
    }

    fn reachable(&self, path: &Path) -> bool {
        let Ok((dir, name)) = split(path) else {
            return true;
        };
        self.dirs.get(dir).is_some_and(|d| d.now.get(&name) == Some(&Entry::Dir)) && self.reachable(dir)
    }

    pub fn make_dirs(&mut self, path: &Path) -> io::Result<()> {
        if self.dirs.contains_key(path) {
            return Ok(());
        }
        let (dir, name) = split(path)?;
        self.make_dirs(dir)?;
        self.dir(dir)?.change(Change::Link(name, Entry::Dir));
        self.dirs.insert(path.to_path_buf(), Dir::default());
        Ok(())
    }

    fn dir(&mut self, path: &Path) -> io::Result<&mut Dir> {
        self.dirs.get_mut(path).ok_or_else(|| not_found(path))
    }

    pub fn entry(&self, path: &Path) -> Option<Entry> {
        let (dir, name) = split(path).ok()?;
        self.dirs.get(dir)?.now.get(&name).copied()
    }

    pub fn file(&self, path: &Path) -> io::Result<NodeId> {
        match self.entry(path) {
            Some(Entry::File(node)) => Ok(node),
            Some(Entry::Dir) => Err(io::Error::other("a directory")),
            None => Err(not_found(path)),
        }
    }

    pub fn list(&mut self, path: &Path) -> io::Result<Vec<String>> {
        Ok(self.dir(path)?.now.keys().cloned().collect())
    }

    pub fn create(&mut self, path: &Path) -> io::Result<NodeId> {
        if let Ok(node) = self.file(path) {
            self.resize(node, 0);
            return Ok(node);
        }
        let (dir, name) = split(path)?;
        self.nodes.push(Node { len_dirty: true, ..Node::default() });
        let node = self.nodes.len() - 1;
        self.dir(dir)?.change(Change::Link(name, Entry::File(node)));
        Ok(node)
    }

    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let entry = Entry::File(self.file(from)?);
        let ((dir, old), (to_dir, new)) = (split(from)?, split(to)?);
        if dir != to_dir {
            return Err(io::Error::other("a rename between directories is not modelled"));
        }
        self.dir(dir)?.change(Change::Rename(old, new, entry));
        Ok(())
    }

    pub fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.file(path)?;
        let (dir, name) = split(path)?;
        self.dir(dir)?.change(Change::Unlink(name));
        Ok(())
    }

    pub fn sync_dir(&mut self, path: &Path, site: SyncSite) -> io::Result<()> {
        self.fault_of_sync()?;
        *self.syncs.entry(site).or_default() += 1;
        let ignored = self.ignored == Some(site);
        let dir = self.dir(path)?;
        if !ignored {
            dir.durable = dir.now.clone();
            dir.pending.clear();
        }
        Ok(())
    }

    fn fault_of_sync(&mut self) -> io::Result<()> {
        match &mut self.fail_sync_in {
            Some(0) => {
                self.fail_sync_in = None;
                Err(io::Error::other("input/output error"))
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn fault_of_write(&mut self) -> bool {
        match &mut self.fail_write_in {
            Some(0) => {
                self.fail_write_in = None;
                true
            }
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        }
    }

    pub fn sync(&mut self, id: NodeId, site: SyncSite) -> io::Result<()> {
        *self.syncs.entry(site).or_default() += 1;
        let fault = self.fault_of_sync();
        let random = &mut self.random;
        let node = &mut self.nodes[id];
        if self.ignored == Some(site) && fault.is_ok() {
            return Ok(());
        }
        // A failed sync marks all pages clean, whether they were written or not.
        let written = |random: &mut Random| fault.is_ok() || random.coin();
        if written(random) {
            node.durable.resize(node.now.len(), 0);
        }
        node.len_dirty = node.len_dirty && node.durable.len() != node.now.len();
        for sector in std::mem::take(&mut node.dirty) {
            let from = sector * SECTOR;
            let to = (from + SECTOR).min(node.now.len()).min(node.durable.len());
            if from < to && written(random) {
                node.durable[from..to].copy_from_slice(&node.now[from..to]);
            }
        }
        fault
    }

    pub fn read(&self, id: NodeId, buffer: &mut [u8], offset: u64) -> usize {
        let now = &self.nodes[id].now;
        let from = (offset as usize).min(now.len());
        let size = buffer.len().min(now.len() - from);
        buffer[..size].copy_from_slice(&now[from..from + size]);
        size
    }

    pub fn len(&self, id: NodeId) -> u64 {
        self.nodes[id].now.len() as u64
    }

    pub fn write(&mut self, id: NodeId, bytes: &[u8], offset: u64) -> io::Result<()> {
        let full = self.fault_of_write();
        let size = if full { self.random.below(bytes.len() as u64 + 1) as usize } else { bytes.len() };
        let from = offset as usize;
        let node = &mut self.nodes[id];
        if node.now.len() < from + size {
            grow(node, from + size);
        }
        node.now[from..from + size].copy_from_slice(&bytes[..size]);
        if size > 0 {
            node.dirty.extend(from / SECTOR..=(from + size - 1) / SECTOR);
        }
        if full { Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device")) } else { Ok(()) }
    }

    pub fn resize(&mut self, id: NodeId, len: u64) {
        let node = &mut self.nodes[id];
        let len = len as usize;
        if len >= node.now.len() {
            grow(node, len);
            return;
        }
        node.now.truncate(len);
        node.len_dirty = true;
        node.dirty.retain(|s| s * SECTOR < len);
        if !len.is_multiple_of(SECTOR) {
            node.dirty.insert(len / SECTOR);
        }
    }

    pub fn allocate(&mut self, id: NodeId, len: u64) -> io::Result<()> {
        if self.fault_of_write() {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"));
        }
        grow(&mut self.nodes[id], len as usize);
        Ok(())
    }

    pub fn flip_bit(&mut self, id: NodeId, offset: u64, bit: u8) {
        let node = &mut self.nodes[id];
        for bytes in [&mut node.now, &mut node.durable] {
            if let Some(byte) = bytes.get_mut(offset as usize) {
                *byte ^= 1 << (bit % 8);
            }
        }
    }
}

/// Lengthens a file with zeros. Where the platter still has older bytes, the zeros are yet to be written.
fn grow(node: &mut Node, len: usize) {
    let old = node.now.len();
    if len <= old {
        return;
    }
    node.now.resize(len, 0);
    node.len_dirty = true;
    if old < node.durable.len() {
        node.dirty.extend(old / SECTOR..=(len.min(node.durable.len()) - 1) / SECTOR);
    }
}
