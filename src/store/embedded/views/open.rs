//! Opens, begins and reopens the views' databases.

use super::{
    Db, FjallTables,
    compaction::LedgerRetention,
    staging::{Filters, Staging, Table},
    write,
};
use crate::{
    embedded::{EmbeddedOptions, history::TableSource},
    tables::{SHORT_RUN_MS, Tables},
};
use campanile_ports::{Position, StoreError};
use fjall::{
    Database, Keyspace, KeyspaceCreateOptions,
    compaction::Leveled,
    config::{FilterPolicy, PartitioningPolicy},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock, atomic::AtomicI64},
};
use thread_priority::{
    NormalThreadSchedulePolicy::Other, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy::Normal,
    set_thread_priority_and_policy, thread_native_id,
};

/// The tables of the operating system's files.
pub struct FjallSource;

/// What the databases are opened with.
#[derive(Clone, Debug)]
pub struct Settings {
    views: PathBuf,
    logs: PathBuf,
    cache_bytes: u64,
    memtable_bytes: u64,
    workers: usize,
}

impl Settings {
    fn of(options: &EmbeddedOptions) -> Self {
        Self {
            views: options.dir.join("views"),
            logs: options.dir.join("logs"),
            cache_bytes: options.views_cache_bytes,
            memtable_bytes: options.views_memtable_bytes.max(1 << 20),
            workers: options.views_workers.max(1),
        }
    }

    /// Of rows that no flush has taken: with more the next rows wait for one.
    pub(super) fn staged_bytes(&self) -> usize {
        STAGED_MEMTABLES * self.memtable_bytes as usize
    }
}

const CHUNKS: &str = "chunks";

/// Rows wait in memory for a flush up to so many times the size of a memtable: there are as many tables of some size.
const STAGED_MEMTABLES: usize = 4;
/// Journal of the views' database, bytes; nothing is written to it.
const JOURNAL_BYTES: u64 = 256 << 20;
/// Flushes of a table that are merged at once into what is below them. Rows are spread over all jobs, so each time all of the next
/// level is written anew, whose size follows from both figures; a reader looks into so many more files.
pub(super) const FLUSHES_MERGED: u8 = 8;
/// A file of a table, bytes. It is synced whole, and the journal's syncs wait behind it.
const TABLE_FILE_BYTES: u64 = 32 << 20;
/// Memory for blocks of logs that were read, bytes.
const LOGS_CACHE_BYTES: u64 = 4 << 20;

/// Marks a directory as a database of fjall.
const MARKER: &str = "version";

impl TableSource for FjallSource {
    fn open(&self, options: &EmbeddedOptions) -> Result<Arc<dyn Tables>, String> {
        let settings = Settings::of(options);
        let db = open_existing(&settings)?;
        Ok(FjallTables::shared(settings, db))
    }

    fn begin(&self, options: &EmbeddedOptions, position: Position) -> Result<Arc<dyn Tables>, StoreError> {
        let tables = begin(options, position)?;
        Ok(tables)
    }
}

/// Removes the views and begins empty ones.
pub(super) fn begin(options: &EmbeddedOptions, position: Position) -> Result<Arc<FjallTables>, StoreError> {
    let settings = Settings::of(options);
    let failed = |e: String| StoreError::WriteFailed(format!("{}: {e}", settings.views.display()));
    remove_dir(&settings.views).map_err(|e| failed(format!("cannot remove: {e}")))?;
    let db = open(&settings).map_err(&failed)?;
    sync_dirs(&settings).map_err(|e| failed(format!("cannot sync: {e}")))?;
    if position > Position::default() {
        write::put_position(&db, position)?;
        db.staging.flush(&db)?;
    }
    Ok(FjallTables::shared(settings, db))
}

impl FjallTables {
    fn shared(settings: Settings, db: Db) -> Arc<Self> {
        let (db, log_writer) = (RwLock::new(Some(Arc::new(db))), Mutex::new(()));
        Arc::new(Self { settings, db, log_writer, messages_from_ms: AtomicI64::new(i64::MAX) })
    }

    /// After a failed write: opens the databases anew, as a restart would.
    pub(super) fn reopen_if_poisoned(&self) -> Result<(), StoreError> {
        let mut slot = self.db.write().unwrap_or_else(PoisonError::into_inner);
        let healthy = |db: &Database| db.persist(fjall::PersistMode::Buffer).is_ok();
        if slot.as_ref().is_some_and(|db| healthy(&db.views) && healthy(&db.logs) && !db.staging.has_failed()) {
            return Ok(());
        }
        // fjall holds its directory until the last handle is gone; readers hold theirs only for a call.
        if slot.as_ref().is_some_and(|db| Arc::strong_count(db) > 1) {
            return Err(StoreError::Unavailable("the views are being read; try again".into()));
        }
        *slot = None;
        let db = open_existing(&self.settings)
            .map_err(|why| StoreError::WriteFailed(format!("{}: {why}", self.settings.views.display())))?;
        *slot = Some(Arc::new(db));
        Ok(())
    }
}

/// Opens what a flush left. The views' own journal is emptied first.
fn open_existing(settings: &Settings) -> Result<Db, String> {
    if !settings.views.join(MARKER).exists() {
        return Err("they are missing".into());
    }
    empty_journal(&settings.views).map_err(|e| format!("cannot empty their journal: {e}"))?;
    let opened = database(settings)?;
    // Releases before had no `fires`, no `audit` or no `definitions`: they are made, and what stands in other tables stays there.
    let is_newer = |table: &Table| matches!(table, Table::Fires | Table::Audit | Table::Definitions);
    let expected = Table::ALL.iter().filter(|table| !is_newer(table));
    if let Some(missing) = expected.copied().find(|t| !opened.database.keyspace_exists(t.name())) {
        return Err(format!("the table {} is missing", missing.name()));
    }
    let db = assemble(settings, opened.database, opened.ledger_from_ms)?;
    sync_dirs(settings).map_err(|e| format!("cannot sync: {e}"))?;
    Ok(db)
}

/// Removes the journal files and puts an empty one there: with none at all fjall would begin its sequence numbers anew,
/// below those in the tables.
fn empty_journal(views: &Path) -> io::Result<()> {
    for entry in fs::read_dir(views)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "jnl") {
            fs::remove_file(path)?;
        }
    }
    campanile_ports::private::options().create(true).truncate(true).open(views.join("0.jnl")).map(drop)
}

/// Opens or makes both databases.
fn open(settings: &Settings) -> Result<Db, String> {
    let views = database(settings)?;
    let from_ms = views.ledger_from_ms;
    assemble(settings, views.database, from_ms)
}

struct Opened {
    database: Database,
    ledger_from_ms: Arc<AtomicI64>,
}

fn database(settings: &Settings) -> Result<Opened, String> {
    let ledger_from_ms = Arc::new(AtomicI64::new(i64::MIN));
    let from_ms = Arc::clone(&ledger_from_ms);
    let database = Database::builder(&settings.views)
        .cache_size(settings.cache_bytes)
        .worker_threads(settings.workers)
        .max_journaling_size(JOURNAL_BYTES)
        .manual_journal_persist(true)
        .with_compaction_filter_factories(Arc::new(move |name| {
            let after_ms = match Table::ALL.iter().find(|table| table.name() == name)? {
                Table::Ledger => 0,
                Table::Fires => SHORT_RUN_MS,
                Table::Runs
                | Table::JobRuns
                | Table::Keys
                | Table::DeadLetters
                | Table::Failed
                | Table::ByTime
                | Table::Audit
                | Table::Definitions
                | Table::Meta => return None,
            };
            Some(Arc::new(LedgerRetention { from_ms: Arc::clone(&from_ms), after_ms }) as _)
        }));
    let database = in_background(|| database.open()).map_err(|e| format!("cannot open: {e}"))?;
    Ok(Opened { database, ledger_from_ms })
}

/// Opens, or flushes, on a thread of lower priority. The database's own threads, which compact, are started there and inherit it: on busy
/// processors they get a tenth of what a thread of ours gets. Not idle time only (`SCHED_IDLE`): they hold locks for which readers and flushes
/// wait, and beside programs that keep all processors busy history stood still for a quarter of a minute, until new runs were refused.
pub(super) fn in_background<T: Send>(work_itself: impl FnOnce() -> T + Send) -> T {
    /// A niceness of 10, on the crate's scale, which ends at 99.
    const LOWER: u8 = 22;
    let work = || {
        if let Ok(lower) = ThreadPriorityValue::try_from(LOWER) {
            let lower = ThreadPriority::Crossplatform(lower);
            // Without it everything works, only less evenly.
            if let Err(error) = set_thread_priority_and_policy(thread_native_id(), lower, Normal(Other)) {
                tracing::debug!(?error, "a thread of the read model keeps its priority");
            }
        }
        work_itself()
    };
    std::thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn assemble(settings: &Settings, views: Database, ledger_from_ms: Arc<AtomicI64>) -> Result<Db, String> {
    let keyspaces = Table::ALL
        .iter()
        .map(|table| keyspace(&views, table.name(), table.filters(), settings))
        .collect::<Result<_, _>>()?;
    let logs = open_logs(settings)?;
    Ok(Db {
        keyspaces,
        staging: Staging::default(),
        chunks: keyspace(&logs, CHUNKS, Filters::Usual, settings)?,
        views,
        logs,
        ledger_from_ms,
        retained: Mutex::new(Vec::new()),
        dir: settings.views.clone(),
    })
}

fn keyspace(database: &Database, name: &str, filters: Filters, settings: &Settings) -> Result<Keyspace, String> {
    let options = || {
        let leveled = Leveled::default().with_l0_threshold(FLUSHES_MERGED).with_table_target_size(TABLE_FILE_BYTES);
        let options = KeyspaceCreateOptions::default()
            .max_memtable_size(settings.memtable_bytes)
            // Of a file's index only the top stays in memory: files that are moved down as they are keep what they hold there.
            .index_block_partitioning_policy(PartitioningPolicy::all(true))
            .compaction_strategy(Arc::new(leveled));
        match filters {
            Filters::Usual => options,
            Filters::None => options.filter_policy(FilterPolicy::disabled()),
        }
    };
    database.keyspace(name, options).map_err(|e| format!("cannot open the table {name}: {e}"))
}

/// Logs are no journal's copy: damaged ones are put aside, not removed. Those that only cannot be opened now stay.
fn open_logs(settings: &Settings) -> Result<Database, String> {
    let logs = || Database::builder(&settings.logs).cache_size(LOGS_CACHE_BYTES).worker_threads(1);
    let open = || in_background(|| logs().open());
    open().or_else(|e| {
        if !is_damage(&e) {
            return Err(format!("cannot open {}: {e}", settings.logs.display()));
        }
        let aside = settings.logs.with_extension("damaged");
        tracing::error!(dir = %settings.logs.display(), aside = %aside.display(), error = %e, "the logs of attempts are damaged");
        remove_dir(&aside)
            .and_then(|()| fs::rename(&settings.logs, &aside))
            .map_err(|e| format!("cannot put {} aside: {e}", settings.logs.display()))?;
        open().map_err(|e| format!("cannot open {}: {e}", settings.logs.display()))
    })
}

/// Whether an error is about what the files hold, not about the disk being full or the database being in use.
fn is_damage(error: &fjall::Error) -> bool {
    if matches!(error, fjall::Error::Locked | fjall::Error::Poisoned) {
        return false;
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return matches!(
                io.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::NotFound
            );
        }
        cause = error.source();
    }
    true
}

fn remove_dir(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The folders themselves: fjall syncs only what is in them.
fn sync_dirs(settings: &Settings) -> io::Result<()> {
    let sync = |dir: &Path| fs::File::open(dir)?.sync_all();
    sync(&settings.views.join("keyspaces"))?;
    sync(&settings.views)?;
    settings.views.parent().map_or(Ok(()), sync)
}

/// Copies the views and their mark from one directory to another, as the last flush left them: crash tests put the copy
/// back where a power cut would have left it. The store must not be applying or flushing meanwhile; a compaction may still
/// be exchanging files, so a copy counts only if no file came or went while it was made.
#[cfg(any(test, feature = "faults"))]
pub fn copy_flushed_to(from: &Path, to: &Path) -> io::Result<()> {
    let (views, copy) = (from.join("views"), to.join("views"));
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        remove_dir(&copy)?;
        let before = names(&views);
        let copied = copy_dir(&views, &copy);
        match (before, copied, names(&views)) {
            (Ok(before), Ok(()), Ok(after)) if before == after => break,
            (before, copied, after) if std::time::Instant::now() > deadline => {
                before?;
                copied?;
                after?;
                return Err(io::Error::other("files of the views come and go"));
            }
            (Ok(_) | Err(_), Ok(()) | Err(_), Ok(_) | Err(_)) => std::thread::yield_now(),
        }
    }
    fs::copy(from.join("FLUSHED"), to.join("FLUSHED")).map(drop)
}

/// All files below a directory.
#[cfg(any(test, feature = "faults"))]
fn names(dir: &Path) -> io::Result<std::collections::BTreeSet<PathBuf>> {
    let mut all = std::collections::BTreeSet::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            all.extend(names(&entry.path())?);
        }
        all.insert(entry.path());
    }
    Ok(all)
}

#[cfg(any(test, feature = "faults"))]
fn copy_dir(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_dir(&entry.path(), &target)?;
        } else if entry.path().extension().is_none_or(|e| e != "jnl") {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Policy and niceness of the calling thread, as the kernel tells them.
    fn scheduling() -> (i64, i64) {
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        // proc_pid_stat(5): fields 41 and 19; the third one is the first behind the name.
        (fields[38].parse().unwrap(), fields[16].parse().unwrap())
    }

    #[test]
    fn a_thread_of_the_background_is_of_lower_priority_and_not_idle_and_the_caller_stays_as_it_is() {
        let mine = scheduling();
        let there = in_background(scheduling);
        assert_eq!(there, (mine.0, mine.1.max(10)), "policy SCHED_OTHER, niceness 10");
        assert_eq!(scheduling(), mine);
    }
}
