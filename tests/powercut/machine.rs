//! A machine that loses power, and the node on it: the real session over the embedded store on the crash disk. Tables of
//! the read model are in memory and come back as their last flush left them.

use crate::{clock::TestClock, random::Random, story::Story};
use campanile_actors::{
    scheduler::Scheduler,
    session::{self, NodeSession, SessionParts},
};
use campanile_ports::{Opened, Position, SecretOwner, Secrets, StoreError};
use campanile_schema::{
    ids::{ClusterId, SessionId},
    stored::Sealed,
};
use campanile_store::{
    embedded::{EmbeddedOptions, EmbeddedStore, TableSource},
    file::crash::CrashFiles,
    memory::tables::MemoryTables,
    tables::Tables,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::mpsc;

pub const SHARDS: u16 = 4;
/// Seven batches of one page: many segments, so that trimming removes some.
const SEGMENT_BYTES: u64 = 32 << 10;
/// Attempts to reopen a store whose disk is full before the test takes it for broken.
const REOPENS: usize = 8;

/// No key: secret params are refused.
struct NoSecrets;
impl Secrets for NoSecrets {
    fn seal(&self, _: SecretOwner<'_>, _: &BTreeMap<String, String>) -> Option<Sealed> {
        None
    }
    fn open(&self, _: SecretOwner<'_>, _: &Sealed) -> Result<BTreeMap<String, String>, String> {
        Err("no key".to_owned())
    }
}

/// Tables of one life of the machine. What an earlier life still writes goes nowhere.
#[derive(Default)]
struct LifeTables(Mutex<Arc<MemoryTables>>);

impl LifeTables {
    fn now(&self) -> Arc<MemoryTables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The next life begins with what was flushed.
    fn next_life(&self) -> Result<(), StoreError> {
        let next = self.now().as_flushed();
        next.flush()?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        Ok(())
    }
}

impl TableSource for LifeTables {
    fn open(&self, _: &EmbeddedOptions) -> Result<Arc<dyn Tables>, String> {
        Ok(self.now())
    }

    fn begin(&self, _: &EmbeddedOptions, position: Position) -> Result<Arc<dyn Tables>, StoreError> {
        self.now().begin_at(position);
        Ok(self.now())
    }
}

/// What survives the node.
pub struct Machine {
    pub files: CrashFiles,
    tables: LifeTables,
    pub clock: Arc<TestClock>,
    boots: u32,
    session: SessionId,
    story: Story,
}

/// A node in one of its lives.
pub struct Node {
    pub store: Arc<EmbeddedStore>,
    pub scheduler: Scheduler,
    pub session: Option<NodeSession>,
    /// Of the present session.
    failures: mpsc::UnboundedReceiver<StoreError>,
    failed: Option<StoreError>,
}

impl Node {
    /// The session told that it cannot go on.
    pub fn has_failed(&mut self) -> bool {
        if let Ok(error) = self.failures.try_recv() {
            self.failed = Some(error);
        }
        self.failed.is_some()
    }

    /// Waits until the session tells that it cannot go on; for ever when it can.
    pub async fn failure(&mut self) -> String {
        if self.failed.is_none() {
            match self.failures.recv().await {
                Some(error) => self.failed = Some(error),
                None => std::future::pending().await,
            }
        }
        self.failed.as_ref().map(StoreError::to_string).unwrap_or_default()
    }

    /// The session ends at once.
    pub fn leave(&mut self) {
        self.scheduler.set_session(Err("the session was left".to_owned()));
        if let Some(session) = self.session.take() {
            session.stop();
        }
    }

    /// The session ends in order.
    pub async fn drain(&mut self) {
        if let Some(session) = self.session.take() {
            session.drain().await;
        }
        self.scheduler.set_session(Err("the node is stopping".to_owned()));
    }
}

impl Machine {
    pub fn new(seed: u64, story: Story) -> Self {
        Self {
            files: CrashFiles::new(seed),
            tables: LifeTables::default(),
            clock: Arc::new(TestClock::new()),
            boots: 0,
            session: SessionId(0),
            story,
        }
    }

    /// The power goes and comes back.
    pub fn cut(&mut self) -> Result<(), String> {
        self.files = self.files.cut();
        self.boots += 1;
        self.story.tell("the power goes".to_owned());
        self.tables.next_life().map_err(|e| e.to_string())
    }

    /// Only the process dies: what it wrote is still in the cache of the operating system.
    pub fn kill(&mut self) -> Result<(), String> {
        self.files = self.files.kill();
        self.story.tell("the process dies".to_owned());
        self.tables.next_life().map_err(|e| e.to_string())
    }

    /// Starts a node on what is there; while it recovers, the power may go again.
    pub async fn start(&mut self, random: &mut Random, cuts: &mut u64) -> Result<Node, String> {
        let mut unlucky = random.one_in(4);
        loop {
            if unlucky {
                self.files.power_off_in(random.below(60));
            }
            match self.try_start().await {
                Ok(node) => return Ok(node),
                Err(why) if self.files.powered() => return Err(format!("cannot be started: {why}")),
                Err(why) => self.story.tell(format!("no power while it started: {why}")),
            }
            if random.one_in(3) {
                self.kill()?;
            } else {
                *cuts += 1;
                self.cut()?;
            }
            unlucky = random.one_in(3);
        }
    }

    async fn try_start(&mut self) -> Result<Node, String> {
        let mut options = EmbeddedOptions::new("/data");
        options.shards = SHARDS;
        options.segment_bytes = SEGMENT_BYTES;
        options.cluster_id = Some(ClusterId(7));
        let (store, opened) =
            EmbeddedStore::open_on(Arc::new(self.files.clone()), &options, &self.tables).map_err(|e| e.to_string())?;
        self.story.tell(format!("opened as session {}", opened.session));
        let (_, failures) = mpsc::unbounded_channel();
        let mut node = Node { store, scheduler: Scheduler::new(), session: None, failures, failed: None };
        self.serve(&mut node, opened).await?;
        Ok(node)
    }

    async fn serve(&mut self, node: &mut Node, opened: Opened) -> Result<(), String> {
        if opened.session <= self.session {
            return Err(format!("session {} after session {}", opened.session, self.session));
        }
        self.session = opened.session;
        let (tell, failures) = mpsc::unbounded_channel();
        (node.failures, node.failed) = (failures, None);
        let session = session::start(SessionParts {
            node: "test".to_owned(),
            opened,
            journal: node.store.clone(),
            snapshots: node.store.clone(),
            views: node.store.clone(),
            secrets: Arc::new(NoSecrets),
            clock: self.clock.clone(),
            boot_id: self.boots.to_string(),
            saved_clock: None,
            linger_us: 0,
            retention: campanile_actors::maintenance::Retention::default(),
            tracer: campanile_ports::spans::Tracer::default(),
            failures: tell,
        })
        .await
        .map_err(|e| e.to_string())?;
        node.scheduler.set_session(Ok(session.handles.clone()));
        node.session = Some(session);
        Ok(())
    }

    /// After a write that failed: leaves the session, reopens the store as soon as it can be written, and goes on, as the
    /// node's own supervision does. False when the power went meanwhile. `full`: the disk stays full for a while.
    pub async fn reopen(&mut self, node: &mut Node, random: &mut Random, full: bool) -> Result<bool, String> {
        node.leave();
        self.files.calm();
        let mut why = String::new();
        for attempt in 0..REOPENS {
            if full && attempt < REOPENS / 2 && !random.one_in(3) {
                self.files.fail_write_in(random.below(4));
            } else {
                self.files.calm();
            }
            let done = match node.store.reopen() {
                Ok(opened) => {
                    self.story.tell(format!("reopened as session {}", opened.session));
                    self.serve(node, opened).await
                }
                Err(e) => Err(e.to_string()),
            };
            match done {
                Ok(()) => {
                    self.files.calm();
                    return Ok(true);
                }
                Err(_) if !self.files.powered() => return Ok(false),
                Err(e) => why = e,
            }
            self.story.tell(format!("not reopened: {why}"));
        }
        Err(format!("cannot be reopened: {why}"))
    }
}
