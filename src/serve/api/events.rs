//! Server-sent events, written one after the other to a caller who may be slow or gone.

use super::problem::Problem;
use axum::body::Bytes;
use campanile_schema::error::ApiError;
use serde::Serialize;
use std::time::Duration;
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};

/// Content type of events.
pub(super) const MEDIA: &str = "text/event-stream";

/// A caller that lost the connection waits this long, milliseconds.
const RECONNECT_MS: u64 = 1_000;
/// So long may a caller take to read why the events end before their end.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why the events end before their end.
pub(super) enum Over {
    /// The caller is gone, or there is nothing more to say.
    Silent,
    Failed(ApiError),
}

impl From<ApiError> for Over {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

/// See the module's text.
pub(super) struct Events {
    pieces: mpsc::Sender<Bytes>,
}

impl Events {
    pub fn new(pieces: mpsc::Sender<Bytes>) -> Self {
        Self { pieces }
    }

    /// How soon to connect again.
    pub async fn begin(&self) -> Result<(), Over> {
        self.text(format!("retry: {RECONNECT_MS}\n\n")).await
    }

    pub async fn event(&self, name: &str, id: Option<&str>, data: &impl Serialize) -> Result<(), Over> {
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        // JSON has no line ends of its own.
        let data = serde_json::to_string(data).map_err(|_| Over::Silent)?;
        self.text(format!("{id}event: {name}\ndata: {data}\n\n")).await
    }

    /// So that the way there stays open, and a caller that is gone is noticed. The place counts as that of an event.
    pub async fn beat(&self, id: Option<&str>) -> Result<(), Over> {
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        self.text(format!(": nothing new\n{id}\n")).await
    }

    /// Why they end before their end. Who reads nothing does not hear it, and holds up nothing by that.
    pub async fn problem(&self, error: ApiError) {
        let _ = timeout(FAREWELL, self.event("problem", None, &Problem::new(error, None))).await;
    }

    /// Waits until the caller is gone.
    pub async fn gone(&self) {
        self.pieces.closed().await;
    }

    async fn text(&self, text: String) -> Result<(), Over> {
        self.pieces.send(text.into()).await.map_err(|_| Over::Silent)
    }
}

/// Waits until the node stops.
pub(super) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // Without a sender nothing stops: then it never comes.
    if stopping.wait_for(|stopping| *stopping).await.is_err() {
        std::future::pending().await
    }
}
