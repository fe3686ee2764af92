//! The answer that a request is owed: exactly one, even when the code that makes it panics.

use super::writer::Outgoing;
use campanile_schema::{
    error::{ApiError, ErrorCode},
    rpc::encode,
};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// See the module's text.
pub(super) struct Reply {
    id: u32,
    out: mpsc::Sender<Outgoing>,
    /// What the request takes of its connection's room; given back when the answer is written.
    permit: Option<OwnedSemaphorePermit>,
    owed: bool,
}

impl Reply {
    pub(super) fn new(id: u32, out: mpsc::Sender<Outgoing>, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self { id, out, permit, owed: true }
    }

    /// Sends the answer; waits while the peer does not read.
    pub(super) async fn send<T: Serialize>(self, outcome: &Result<T, ApiError>) {
        let mut bytes = Vec::new();
        encode::answer(&mut bytes, self.id, outcome);
        self.send_encoded(bytes).await;
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) async fn send_encoded(mut self, bytes: Vec<u8>) {
        self.owed = false;
        let permit = self.permit.take();
        // Fails only when the connection is gone.
        let _ = self.out.send(Outgoing::Frame { bytes, permit }).await;
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.owed {
            let mut bytes = Vec::new();
            let error = ApiError::new(ErrorCode::Internal, "the call was given up; the node's log says why");
            encode::answer::<()>(&mut bytes, self.id, &Err(error));
            let _ = self.out.try_send(Outgoing::Frame { bytes, permit: self.permit.take() });
        }
    }
}
