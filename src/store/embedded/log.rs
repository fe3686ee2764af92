//! The journal: one segmented log, appended and synced batch by batch.
//!
//! One log carries all lanes, so a position is a *place*: everything that stands before it in the log is covered by it.
//! Each session begins a segment of its own, at its first append, or at once after a failure. After a failed write or sync nothing more is appended:
//! what reached the disk is unknown until the log was cut at its last durable place ([`Log::cut`]).

use super::{
    damage::cannot_read,
    reader::SegmentReader,
    recovery::{self, Expect, SegmentMeta, TrimMark},
    segment::{LogPosition, PAGE, Salt, SegmentHeader, encode_batch, encode_header, file_name, padded, spare_name},
};
use crate::file::{File, Files, Open, SyncSite, stamped};
use campanile_ports::{Position, StoreError};
use campanile_schema::{
    ids::{ClusterId, SessionId},
    limits,
};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

/// The log of a directory, open for one session.
pub struct Log {
    files: Arc<dyn Files>,
    dir: PathBuf,
    cluster: ClusterId,
    segment_bytes: u64,
    session: SessionId,
    trim: TrimMark,
    /// In order; the last one may be the active one.
    segments: Vec<SegmentMeta>,
    spares: Vec<u64>,
    active: Option<Arc<dyn File>>,
    /// Next seq per lane of this session.
    next: BTreeMap<u16, u64>,
    last: Position,
    failed: Option<String>,
    buffer: Vec<u8>,
    /// Where the last page of `read_after` ended, to go on without a search.
    cursor: Option<(Position, LogPosition)>,
}

impl Log {
    /// Recovers the log in `dir` (see [`recovery`]) and stands ready to append under `expect.session`.
    pub fn open(files: Arc<dyn Files>, dir: &Path, expect: Expect, segment_bytes: u64) -> Result<Self, StoreError> {
        let mut found = recovery::inspect(files.as_ref(), dir, expect, &mut |_, _| Ok(()))?;
        recovery::repair(files.as_ref(), dir, expect.cluster, &mut found)
            .map_err(|e| StoreError::WriteFailed(format!("{}: cannot repair the log: {e}", dir.display())))?;
        if found.torn {
            tracing::warn!(dir = %dir.display(), end = ?found.end(), "the log had a torn tail; it was cut");
        }
        Ok(Self {
            files,
            dir: dir.to_path_buf(),
            cluster: expect.cluster,
            segment_bytes: segment_bytes.next_multiple_of(PAGE).max(4 * PAGE),
            session: expect.session,
            trim: found.trim,
            segments: found.segments,
            spares: found.spares,
            active: None,
            next: BTreeMap::new(),
            last: found.last,
            failed: None,
            buffer: Vec::new(),
            cursor: None,
        })
    }

    /// Appends a batch; durable when this returns Ok.
    pub fn append(&mut self, lane: u16, seq: u64, batch: &[u8]) -> Result<(), StoreError> {
        if let Some(why) = &self.failed {
            return Err(StoreError::WriteFailed(format!("an earlier append of this session failed: {why}")));
        }
        let due = self.next.get(&lane).copied().unwrap_or(1);
        if seq != due {
            return Err(StoreError::Refused(format!("lane {lane}: seq {seq} was appended where {due} is due")));
        }
        let size = padded(batch.len());
        if size > self.segment_bytes - PAGE {
            return Err(StoreError::Refused(format!(
                "a batch of {} bytes does not fit in a segment of {}",
                batch.len(),
                self.segment_bytes
            )));
        }
        let position = Position { session: self.session, lane, seq };
        match self.write(position, batch, size) {
            Ok(()) => {
                self.next.insert(lane, seq + 1);
                self.last = position;
                Ok(())
            }
            Err(e) => {
                let why = format!("{}: {e}", self.dir.display());
                self.failed = Some(why.clone());
                Err(StoreError::WriteFailed(why))
            }
        }
    }

    fn write(&mut self, position: Position, batch: &[u8], size: u64) -> io::Result<()> {
        let full = self.segments.last().is_none_or(|s| s.end + size > self.segment_bytes);
        if self.active.is_none() || full {
            self.begin_segment()?;
        }
        let (Some(file), Some(meta)) = (&self.active, self.segments.last_mut()) else {
            return Err(io::Error::other("no active segment"));
        };
        let place = LogPosition { segment: meta.number, offset: meta.end };
        let salt = Salt { cluster: self.cluster, segment: meta.number };
        // All that was written before is durable: appends are one after the other.
        encode_batch(&mut self.buffer, salt, place.offset, position, place, batch);
        file.write_at(&self.buffer, place.offset)?;
        let started = Instant::now();
        file.sync_data(SyncSite::Batch)?;
        metrics::histogram!("campanile_store_journal_sync_seconds").record(started.elapsed().as_secs_f64());
        metrics::counter!("campanile_store_journal_bytes_total").increment(size);
        meta.end += size;
        meta.last = Some(position);
        meta.batches += 1;
        Ok(())
    }

    /// Makes the next segment, from a spare one when there is one, and its name durable.
    fn begin_segment(&mut self) -> io::Result<()> {
        #[cfg(feature = "faults")]
        campanile_ports::faults::point("segment_roll");
        let number = self.segments.last().map_or(self.trim.first_segment, |s| s.number + 1);
        let path = self.dir.join(file_name(number));
        let file = match self.spares.pop() {
            Some(spare) => {
                self.files.rename(&self.dir.join(spare_name(spare)), &path)?;
                self.files.open(&path, Open::Write)?
            }
            None => self.files.open(&path, Open::Create)?,
        };
        let header = SegmentHeader { number, session: self.session, previous_end: self.end(), previous: self.last };
        file.allocate(self.segment_bytes)?;
        file.write_at(&encode_header(&header, self.cluster), 0)?;
        file.sync_data(SyncSite::SegmentHeader)?;
        self.files.sync_dir(&self.dir, SyncSite::SegmentDir)?;
        let file_len = file.size()?;
        self.segments.push(SegmentMeta { number, session: self.session, end: PAGE, file_len, last: None, batches: 0 });
        self.active = Some(file);
        Ok(())
    }

    /// What is durable now, to be read beside appends as long as nothing is trimmed.
    pub fn slice(&self) -> Slice {
        let segments = self.segments.iter().map(|meta| SlicedSegment {
            path: self.dir.join(file_name(meta.number)),
            salt: Salt { cluster: self.cluster, segment: meta.number },
            end: meta.end,
        });
        Slice { segments: segments.collect(), upto: self.last }
    }

    fn end(&self) -> LogPosition {
        self.segments.last().map_or_else(LogPosition::default, |s| LogPosition { segment: s.number, offset: s.end })
    }

    /// Ends the session at its last durable place and goes on as `session`, in a segment of its own: a disk that is still
    /// full shows here, not at the first append of a session that says that it is ready. The cut is durable when this
    /// returns; when it fails, appends still do.
    pub fn cut(&mut self, session: SessionId) -> io::Result<()> {
        if let (Some(_), Some(meta)) = (&self.active, self.segments.last_mut()) {
            let file = self.files.open(&self.dir.join(file_name(meta.number)), Open::Write)?;
            file.truncate(meta.end)?;
            file.sync_data(SyncSite::LogCut)?;
            meta.file_len = meta.end;
        }
        self.failed.get_or_insert_with(|| "the next session was not begun".to_owned());
        self.active = None;
        self.next.clear();
        self.cursor = None;
        self.session = session;
        self.begin_segment()?;
        self.failed = None;
        Ok(())
    }

    /// The session that it is open for.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Takes leading segments out of which nothing is needed after `upto`; their files are then removed by
    /// [`Trim::run`], without holding up appends. None when there are none.
    pub fn begin_trim(&mut self, upto: Position) -> Option<Trim> {
        // By the segments' last batches alone, as this holds up appends.
        let covered = |last: Position| {
            last.session < upto.session
                || (last.session == upto.session && last.lane == upto.lane && last.seq <= upto.seq)
        };
        let before_last = &self.segments[..self.segments.len().saturating_sub(1)];
        let whole = before_last.iter().rposition(|s| s.last.is_some_and(covered)).map_or(0, |at| at + 1);
        if whole == 0 {
            return None;
        }
        let last = self.segments[..whole].iter().rev().find_map(|s| s.last).unwrap_or(self.trim.upto);
        self.cursor = None;
        Some(Trim {
            files: Arc::clone(&self.files),
            dir: self.dir.clone(),
            mark: TrimMark { first_segment: self.segments[whole].number, upto: last },
            segments: self.segments.drain(..whole).collect(),
            segment_bytes: self.segment_bytes,
            room: limits::JOURNAL_SPARE_SEGMENTS.saturating_sub(self.spares.len()),
            spares: Vec::new(),
            marked: false,
        })
    }

    /// Takes note of what [`Trim::run`] did; what it did not mark as gone comes back.
    pub fn end_trim(&mut self, trim: Trim) {
        if trim.marked {
            self.trim = trim.mark;
            self.spares.extend(trim.spares);
        } else {
            self.segments.splice(0..0, trim.segments);
        }
    }

    /// Batches of earlier sessions after `after`, about `max_bytes` of them.
    pub fn read_after(&mut self, after: Position, max_bytes: usize) -> Result<Vec<(Position, Vec<u8>)>, StoreError> {
        let start = match self.cursor {
            Some((position, place)) if position == after => place,
            Some(_) | None => self.place_after(after)?,
        };
        let mut page = Vec::new();
        let mut bytes = 0;
        let mut place = start;
        for at in 0..self.segments.len() {
            let meta = &self.segments[at];
            if meta.number < start.segment || meta.session >= self.session {
                continue;
            }
            let offset = if meta.number == start.segment { start.offset.max(PAGE) } else { PAGE };
            if offset >= meta.end {
                continue;
            }
            let (path, end) = (self.dir.join(file_name(meta.number)), meta.end);
            let mut reader = self.reader(meta, offset)?;
            while reader.offset() < end {
                if bytes >= max_bytes && !page.is_empty() {
                    break;
                }
                let (_, header) = reader.must_step(&path)?;
                bytes += reader.payload().len();
                page.push((header.position, reader.payload().to_vec()));
            }
            place = LogPosition { segment: meta.number, offset: reader.offset() };
            if bytes >= max_bytes && !page.is_empty() {
                break;
            }
        }
        self.cursor = page.last().map(|(position, _)| (*position, place));
        Ok(page)
    }

    /// Just behind the last batch that `position` covers; the beginning when there is none.
    fn place_after(&self, position: Position) -> Result<LogPosition, StoreError> {
        for meta in self.segments.iter().rev() {
            if meta.session < position.session {
                return Ok(LogPosition { segment: meta.number, offset: meta.end });
            }
            if meta.session > position.session {
                continue;
            }
            if meta.last.is_some_and(|l| l.lane == position.lane && l.seq <= position.seq) {
                return Ok(LogPosition { segment: meta.number, offset: meta.end });
            }
            if let Some(place) = self.find_in(meta, position)? {
                return Ok(place);
            }
        }
        Ok(LogPosition::default())
    }

    fn find_in(&self, meta: &SegmentMeta, position: Position) -> Result<Option<LogPosition>, StoreError> {
        let path = self.dir.join(file_name(meta.number));
        let mut reader = self.reader(meta, PAGE)?;
        let mut place = None;
        while reader.offset() < meta.end {
            let (_, header) = reader.must_step(&path)?;
            if header.position.lane == position.lane && header.position.seq <= position.seq {
                place = Some(LogPosition { segment: meta.number, offset: reader.offset() });
            }
        }
        Ok(place)
    }

    fn reader(&self, meta: &SegmentMeta, offset: u64) -> Result<SegmentReader, StoreError> {
        let path = self.dir.join(file_name(meta.number));
        let file = self.files.open(&path, Open::Read).map_err(|e| cannot_read(&path, &e))?;
        let salt = Salt { cluster: self.cluster, segment: meta.number };
        SegmentReader::new(file, salt, offset).map_err(|e| cannot_read(&path, &e))
    }

    /// Whether everything that was ever appended is still there.
    pub fn reaches_beginning(&self) -> bool {
        self.trim.first_segment == TrimMark::BEGINNING.first_segment
    }

    /// The last position that was trimmed away.
    pub fn trimmed_upto(&self) -> Position {
        self.trim.upto
    }

    /// Bytes of all files of the log.
    pub fn stored_bytes(&self) -> u64 {
        self.segments.iter().map(|s| s.file_len).sum::<u64>() + self.spares.len() as u64 * self.segment_bytes
    }
}

/// See [`Log::slice`].
pub struct Slice {
    pub segments: Vec<SlicedSegment>,
    /// Its last batch.
    pub upto: Position,
}

/// A segment of a slice.
pub struct SlicedSegment {
    pub path: PathBuf,
    pub salt: Salt,
    /// Where its last batch ends.
    pub end: u64,
}

/// Segments on their way out.
pub struct Trim {
    files: Arc<dyn Files>,
    dir: PathBuf,
    mark: TrimMark,
    segments: Vec<SegmentMeta>,
    segment_bytes: u64,
    /// How many may become spares.
    room: usize,
    spares: Vec<u64>,
    /// The mark is written: the segments are gone for good, whatever happens to their files.
    marked: bool,
}

impl Trim {
    /// Says durably that the segments are gone, then removes their files. Files that stay go at the next start.
    pub fn run(&mut self) -> Result<(), StoreError> {
        self.remove().map_err(|e| StoreError::Unavailable(format!("{}: cannot trim the log: {e}", self.dir.display())))
    }

    fn remove(&mut self) -> io::Result<()> {
        let path = self.dir.join("TRIM");
        stamped::write(self.files.as_ref(), &path, &self.mark, SyncSite::TrimFile, Some(SyncSite::TrimDir))?;
        self.marked = true;
        for segment in &self.segments {
            let path = self.dir.join(file_name(segment.number));
            if self.spares.len() < self.room && segment.file_len >= self.segment_bytes {
                self.files.rename(&path, &self.dir.join(spare_name(segment.number)))?;
                self.spares.push(segment.number);
            } else {
                self.files.remove(&path)?;
            }
        }
        Ok(())
    }
}
