//! Runs blocking store calls off the async runtime, a bounded number at once.
//!
//! Without a runtime (tools, tests) the call runs where it is. The journal's append does not come here: its caller
//! has a thread of its own.

use campanile_ports::{PortFuture, StoreError};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Gate in front of the runtime's blocking threads.
#[derive(Clone)]
pub struct Blocking {
    permits: Arc<Semaphore>,
}

impl Blocking {
    /// At most `at_once` calls run at the same time; the others wait without holding a thread.
    pub fn new(at_once: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(at_once)) }
    }

    /// Runs `call` and gives its result.
    pub fn run<'a, T, F>(&self, call: F) -> PortFuture<'a, T>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T, StoreError> + Send + 'static,
    {
        let permits = Arc::clone(&self.permits);
        Box::pin(async move {
            let permit =
                permits.acquire_owned().await.map_err(|_| StoreError::Unavailable("the store is closed".into()))?;
            let Ok(runtime) = tokio::runtime::Handle::try_current() else {
                return call();
            };
            runtime
                .spawn_blocking(move || {
                    let _permit = permit;
                    call()
                })
                .await
                .unwrap_or_else(|e| Err(StoreError::Unknown(format!("a store call was cut short: {e}"))))
        })
    }
}
