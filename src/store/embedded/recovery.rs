//! What a log directory holds, and whether it may be trusted.
//!
//! [`inspect`] only reads. A bad batch below a place that something later states to be durable (a later batch, the next
//! segment's header, the views' flushed position, a snapshot) is **corruption**: refused, with file and offset. Above it
//! is a **torn tail**: never acknowledged, cut by [`repair`], which also writes again what no later batch states to be
//! durable, so that a page that only the cache holds cannot vanish later.

use super::{
    damage::{ADVICE, cannot_read, corrupt},
    reader::{SegmentReader, Step},
    segment::{LogPosition, PAGE, Salt, SegmentHeader, decode_header, file_name, number_of},
};
use crate::file::{Files, Open, SyncSite, stamped};
use campanile_ports::{Position, StoreError};
use campanile_schema::ids::{ClusterId, SessionId};
pub use campanile_schema::stored::journal::TrimMark;
use std::{collections::BTreeMap, io, path::Path};

/// One segment of the log.
#[derive(Clone, Debug)]
pub struct SegmentMeta {
    pub number: u64,
    pub session: SessionId,
    /// Where its last batch ends.
    pub end: u64,
    pub file_len: u64,
    /// Its last batch, if it has one.
    pub last: Option<Position>,
    pub batches: u64,
}

/// What [`inspect`] found.
#[derive(Debug)]
pub struct InspectedLog {
    pub trim: TrimMark,
    pub segments: Vec<SegmentMeta>,
    /// Numbers of the spare files.
    pub spares: Vec<u64>,
    /// Files that are of no use any more.
    pub leftovers: Vec<String>,
    /// Last batch of the log.
    pub last: Position,
    /// From here to the end of the last segment no later batch states that it is durable.
    pub unstated: LogPosition,
    /// Bytes of the last segment after its last whole batch are not all zeros.
    pub torn: bool,
}

impl InspectedLog {
    /// Where the log ends.
    pub fn end(&self) -> LogPosition {
        self.segments.last().map_or_else(LogPosition::default, |s| LogPosition { segment: s.number, offset: s.end })
    }
}

/// What [`inspect`] is to hold against the log.
#[derive(Clone, Copy, Debug)]
pub struct Expect {
    pub cluster: ClusterId,
    /// Highest session that was ever started.
    pub session: SessionId,
    /// Highest position that something outside of the log knows to be durable.
    pub floor: Position,
}

/// Shown each batch in order of the log.
pub type Visitor<'a> = &'a mut dyn FnMut(Position, &[u8]) -> Result<(), StoreError>;

/// Reads the whole log in `dir` and checks it.
pub fn inspect(files: &dyn Files, dir: &Path, expect: Expect, visit: Visitor<'_>) -> Result<InspectedLog, StoreError> {
    let trim: TrimMark = stamped::read(files, &dir.join("TRIM"), ADVICE)?
        .ok_or_else(|| StoreError::Corrupt(format!("{}: the file is missing. {ADVICE}", dir.join("TRIM").display())))?;
    let mut found = InspectedLog {
        trim,
        segments: Vec::new(),
        spares: Vec::new(),
        leftovers: Vec::new(),
        last: trim.upto,
        unstated: LogPosition::default(),
        torn: false,
    };
    let mut numbers = Vec::new();
    for name in files.list(dir).map_err(|e| cannot_read(dir, &e))? {
        if let Some(number) = number_of(&name, "seg") {
            if number < trim.first_segment {
                found.leftovers.push(name);
            } else {
                numbers.push(number);
            }
        } else if let Some(number) = number_of(&name, "spare") {
            found.spares.push(number);
        } else if name.ends_with(".tmp") {
            found.leftovers.push(name);
        }
    }
    numbers.sort_unstable();
    let headers = read_headers(files, dir, expect, &mut numbers, &mut found)?;
    if numbers.is_empty() && trim.first_segment > 1 {
        return Err(missing(dir, trim.first_segment));
    }
    let mut order = Order::new(trim.upto);
    for (at, header) in headers.iter().enumerate() {
        check_chain(dir, expect, trim, &headers[..at], header)?;
        read_segment(files, dir, expect.cluster, header, headers.get(at + 1), &mut found, &mut order, visit)?;
    }
    let floor = expect.floor;
    let last = found.last;
    if floor.session > last.session
        || (floor.session == last.session && floor.lane == last.lane && floor.seq > last.seq)
    {
        return Err(StoreError::Corrupt(format!(
            "{}: the log ends at session {} seq {}, but views or snapshots cover session {} seq {}. {ADVICE}",
            place_name(dir, found.end()),
            last.session,
            last.seq,
            floor.session,
            floor.seq,
        )));
    }
    Ok(found)
}

/// Removes what is of no use, cuts the torn tail and makes what was kept durable.
pub fn repair(files: &dyn Files, dir: &Path, cluster: ClusterId, found: &mut InspectedLog) -> io::Result<()> {
    // `TRIM` says what may go: its rename must be durable first.
    files.sync_dir(dir, SyncSite::Inherited)?;
    for name in found.leftovers.drain(..) {
        files.remove(&dir.join(name))?;
    }
    let Some(last) = found.segments.last_mut() else {
        return Ok(());
    };
    let kept_from = if found.unstated.segment == last.number { found.unstated.offset } else { PAGE };
    let tail = last.end.saturating_sub(kept_from);
    if tail == 0 && last.batches > 0 && last.file_len == last.end {
        return Ok(());
    }
    // The same bytes once more: after a failed fsync the cache may hold pages as clean that never reached the disk.
    let file = files.open(&dir.join(file_name(last.number)), Open::Write)?;
    if last.batches == 0 {
        // A batch would say that the header was durable before it.
        let mut page = vec![0; PAGE as usize];
        file.read_at(&mut page, 0)?;
        file.write_at(&page, 0)?;
    }
    let mut reader = SegmentReader::new(file.clone(), Salt { cluster, segment: last.number }, kept_from)?;
    while reader.offset() < last.end {
        let (offset, bytes) = reader.raw_step()?;
        file.write_at(&bytes, offset)?;
    }
    file.truncate(last.end)?;
    file.sync_data(SyncSite::LogCut)?;
    last.file_len = last.end;
    Ok(())
}

/// Headers of all segments; one that was being made when the power went is dropped from `numbers`.
fn read_headers(
    files: &dyn Files,
    dir: &Path,
    expect: Expect,
    numbers: &mut Vec<u64>,
    found: &mut InspectedLog,
) -> Result<Vec<SegmentHeader>, StoreError> {
    let mut headers = Vec::with_capacity(numbers.len());
    for (at, number) in numbers.iter().enumerate() {
        let path = dir.join(file_name(*number));
        let salt = Salt { cluster: expect.cluster, segment: *number };
        let file = files.open(&path, Open::Read).map_err(|e| cannot_read(&path, &e))?;
        let mut page = vec![0; PAGE as usize];
        let got = file.read_at(&mut page, 0).map_err(|e| cannot_read(&path, &e))?;
        if let Some(header) = decode_header(&page[..got], salt) {
            headers.push(header);
            continue;
        }
        let mut reader = SegmentReader::new(file, salt, PAGE).map_err(|e| cannot_read(&path, &e))?;
        let holds = reader.find_batch(PAGE).map_err(|e| cannot_read(&path, &e))?.is_some();
        if holds || at + 1 < numbers.len() {
            return Err(corrupt(&path, 0, "the segment's header is damaged"));
        }
        found.leftovers.push(file_name(*number));
    }
    numbers.truncate(headers.len());
    Ok(headers)
}

fn check_chain(
    dir: &Path,
    expect: Expect,
    trim: TrimMark,
    before: &[SegmentHeader],
    header: &SegmentHeader,
) -> Result<(), StoreError> {
    let wants = header.previous_end.segment;
    let linked = match before.last() {
        Some(previous) => wants == previous.number,
        None => wants < trim.first_segment,
    };
    if !linked {
        return Err(missing(dir, wants));
    }
    if header.session > expect.session {
        return Err(StoreError::Corrupt(format!(
            "{}: written by session {}, but the file SESSION says that only {} were started. {ADVICE}",
            dir.join(file_name(header.number)).display(),
            header.session,
            expect.session,
        )));
    }
    if before.last().is_some_and(|previous| previous.session > header.session) {
        return Err(corrupt(&dir.join(file_name(header.number)), 0, "its session is older than the one before"));
    }
    Ok(())
}

#[allow(clippy::too_many_arguments)]
fn read_segment(
    files: &dyn Files,
    dir: &Path,
    cluster: ClusterId,
    header: &SegmentHeader,
    next: Option<&SegmentHeader>,
    found: &mut InspectedLog,
    order: &mut Order,
    visit: Visitor<'_>,
) -> Result<(), StoreError> {
    let path = dir.join(file_name(header.number));
    let file = files.open(&path, Open::Read).map_err(|e| cannot_read(&path, &e))?;
    let salt = Salt { cluster, segment: header.number };
    let mut reader = SegmentReader::new(file, salt, PAGE).map_err(|e| cannot_read(&path, &e))?;
    found.unstated = found.unstated.max(header.previous_end);
    let mut meta = SegmentMeta {
        number: header.number,
        session: header.session,
        end: PAGE,
        file_len: reader.file_len(),
        last: None,
        batches: 0,
    };
    let sealed = next.map(|n| n.previous_end.offset);
    while sealed != Some(meta.end) {
        let (offset, batch) = if sealed.is_some() {
            reader.must_step(&path)?
        } else {
            match reader.step().map_err(|e| cannot_read(&path, &e))? {
                Step::Batch { offset, header } => (offset, header),
                Step::End { offset } => {
                    found.torn = refuse_if_stated(&mut reader, &path, header.number, offset)?;
                    break;
                }
                Step::Bad { offset, .. } => {
                    refuse_if_stated(&mut reader, &path, header.number, offset)?;
                    found.torn = true;
                    break;
                }
            }
        };
        if sealed.is_some_and(|end| reader.offset() > end) {
            return Err(corrupt(&path, offset, "a batch reaches beyond the end that the next segment states"));
        }
        order.check(header.session, batch.position).map_err(|why| corrupt(&path, offset, &why))?;
        visit(batch.position, reader.payload())?;
        found.unstated = found.unstated.max(batch.durable);
        found.last = batch.position;
        meta.end = reader.offset();
        meta.last = Some(batch.position);
        meta.batches += 1;
    }
    if next.is_some_and(|n| n.previous != found.last) {
        return Err(corrupt(&path, meta.end, "the next segment states another last batch"));
    }
    found.segments.push(meta);
    Ok(())
}

/// Looks past a bad place: a later whole batch that states it durable makes it corruption. Says whether there are later ones.
fn refuse_if_stated(reader: &mut SegmentReader, path: &Path, segment: u64, bad: u64) -> Result<bool, StoreError> {
    let mut from = bad;
    let mut later = false;
    while let Some((offset, header)) = reader.find_batch(from).map_err(|e| cannot_read(path, &e))? {
        if header.durable > (LogPosition { segment, offset: bad }) {
            let why = format!("a batch is damaged that the whole batch at offset {offset} states to be durable");
            return Err(corrupt(path, bad, &why));
        }
        later = true;
        from = offset + PAGE;
    }
    Ok(later)
}

/// Batches of a lane follow each other without a hole.
struct Order {
    session: SessionId,
    next: BTreeMap<u16, u64>,
    /// False while the beginning of the session may have been trimmed.
    from_start: bool,
}

impl Order {
    fn new(trimmed: Position) -> Self {
        Self { session: trimmed.session, next: BTreeMap::new(), from_start: false }
    }

    fn check(&mut self, segment_session: SessionId, position: Position) -> Result<(), String> {
        if position.session != segment_session {
            return Err(format!("a batch of session {} in a segment of session {segment_session}", position.session));
        }
        if position.session != self.session {
            self.session = position.session;
            self.next.clear();
            self.from_start = true;
        }
        let expected = match self.next.get(&position.lane) {
            Some(next) => Some(*next),
            None => self.from_start.then_some(1),
        };
        if expected.is_some_and(|e| e != position.seq) {
            return Err(format!("lane {}: seq {} where {} is due", position.lane, position.seq, expected.unwrap_or(0)));
        }
        self.next.insert(position.lane, position.seq + 1);
        Ok(())
    }
}

fn missing(dir: &Path, number: u64) -> StoreError {
    StoreError::Corrupt(format!("{}: the segment is missing. {ADVICE}", dir.join(file_name(number)).display()))
}

fn place_name(dir: &Path, place: LogPosition) -> String {
    format!("{}: offset {}", dir.join(file_name(place.segment)).display(), place.offset)
}
