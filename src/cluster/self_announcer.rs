//! What this node announces of itself: its session, and whether it takes shards.

use crate::membership::Membership;
use campanile_ports::private;
use campanile_schema::ids::SessionId;
use parking_lot::Mutex;
use std::{
    io,
    path::{Path, PathBuf},
    pin::Pin,
};
use tokio::runtime::Runtime;

/// There while the node is cordoned: a restart does not change that.
const CORDON_FILE: &str = "CORDONED";

/// Runs the store's requests, where it needs threads of its own. Not dropped but let go: whoever lets it go may be a task of another runtime.
#[derive(Default)]
pub struct StoreRuntime(Mutex<Option<Runtime>>);

impl From<Runtime> for StoreRuntime {
    fn from(runtime: Runtime) -> Self {
        Self(Mutex::new(Some(runtime)))
    }
}

impl Drop for StoreRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.lock().take() {
            runtime.shutdown_background();
        }
    }
}

/// Tells the other members of this node.
pub trait Announce: Send + Sync + 'static {
    /// Its session from now on.
    fn session(&self, session: SessionId);
    /// It gives its shards away.
    fn draining(&self);
    /// It goes: nobody has to find out.
    fn leave(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// See the module's text.
pub struct SelfAnnouncer {
    dir: PathBuf,
    membership: Mutex<Option<Membership>>,
    _store: StoreRuntime,
}

impl SelfAnnouncer {
    /// `dir`: the node's own. `store` ends with it.
    pub fn new(dir: PathBuf, membership: Membership, store: StoreRuntime) -> Self {
        Self { dir, membership: Mutex::new(Some(membership)), _store: store }
    }

    fn tell(&self, tell: impl FnOnce(&Membership)) {
        if let Some(membership) = &*self.membership.lock() {
            tell(membership);
        }
    }

    /// From now on, also after a restart.
    pub fn set_cordoned(&self, cordoned: bool) -> io::Result<()> {
        if cordoned {
            private::put_file(&self.dir, CORDON_FILE, b"")?;
        } else {
            private::remove_file(&self.dir, CORDON_FILE)?;
        }
        self.tell(|membership| membership.set_cordoned(cordoned));
        Ok(())
    }

    /// Whether its directory says so.
    pub fn is_written_down(&self, cordoned: bool) -> bool {
        is_cordoned(&self.dir) == cordoned
    }
}

/// Whether an operator has cordoned the node of this directory.
pub fn is_cordoned(dir: &Path) -> bool {
    dir.join(CORDON_FILE).exists()
}

impl Announce for SelfAnnouncer {
    fn session(&self, session: SessionId) {
        self.tell(|membership| membership.set_session(session));
    }

    fn draining(&self) {
        self.tell(|membership| membership.set_draining(true));
    }

    fn leave(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let membership = self.membership.lock().take();
        Box::pin(async move {
            if let Some(membership) = membership {
                membership.leave().await;
            }
        })
    }
}
