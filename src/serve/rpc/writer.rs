//! Writes to one connection: answers, in the order in which they become ready, and the messages of the pool to an
//! executor. Everything that is ready goes out in one write. The permits that answers carry limit what is not written
//! yet.

use campanile_actors::messages::ToExecutor;
use campanile_schema::{
    error::{ApiError, ErrorCode},
    limits::{EXECUTOR_BATCH, RPC_OUTBOX_FRAMES, RPC_UNSENT_BYTES, RPC_WRITE_STALL_MS},
    rpc::{
        encode,
        executor::{Assignment, Stop},
        method,
    },
};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::{OwnedSemaphorePermit, mpsc},
};

/// What a connection writes.
pub(super) enum Outgoing {
    /// Encoded messages. The permit is given back when they are written.
    Frame { bytes: Vec<u8>, permit: Option<OwnedSemaphorePermit> },
    /// From now on, what the pool sends to the executor on this connection.
    Pushes(mpsc::Receiver<ToExecutor>),
    /// Nothing after this.
    Close,
}

/// Writes until everything is said, the peer is gone or stalls.
pub(super) async fn run(mut write: impl AsyncWrite + Unpin, out: mpsc::Receiver<Outgoing>) {
    let mut writer = ConnectionWriter {
        out,
        pushes: None,
        buffer: Vec::new(),
        permits: Vec::new(),
        closing: false,
        #[cfg(feature = "faults")]
        assigned: false,
    };
    let mut items = Vec::new();
    while !writer.closing {
        writer.gather(&mut items).await;
        if let Err(error) = flush(&mut write, &writer.buffer).await {
            tracing::debug!(%error, "an RPC connection cannot be written");
            return;
        }
        #[cfg(feature = "faults")]
        if std::mem::take(&mut writer.assigned) {
            campanile_ports::faults::point("after_dispatch");
        }
        writer.buffer.clear();
        if writer.buffer.capacity() > 2 * RPC_UNSENT_BYTES {
            writer.buffer = Vec::new();
        }
        writer.permits.clear();
    }
    let _ = write.shutdown().await;
}

async fn flush(write: &mut (impl AsyncWrite + Unpin), mut bytes: &[u8]) -> io::Result<()> {
    let stall = Duration::from_millis(RPC_WRITE_STALL_MS);
    let stalled = |_| io::Error::new(io::ErrorKind::TimedOut, "the peer does not read");
    while !bytes.is_empty() {
        let written = tokio::time::timeout(stall, write.write(bytes)).await.map_err(stalled)??;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
    }
    // TLS may hold bytes that it has taken.
    tokio::time::timeout(stall, write.flush()).await.map_err(stalled)?
}

struct ConnectionWriter {
    out: mpsc::Receiver<Outgoing>,
    pushes: Option<mpsc::Receiver<ToExecutor>>,
    buffer: Vec<u8>,
    permits: Vec<OwnedSemaphorePermit>,
    closing: bool,
    /// Assignments are in the buffer.
    #[cfg(feature = "faults")]
    assigned: bool,
}

impl ConnectionWriter {
    /// Waits for something to write, then takes what else is ready, up to a bound.
    async fn gather(&mut self, items: &mut Vec<Outgoing>) {
        tokio::select! {
            count = self.out.recv_many(items, RPC_OUTBOX_FRAMES) => {
                // Everyone who could have an answer to write is gone.
                self.closing |= count == 0;
                for item in items.drain(..) {
                    if !self.closing {
                        self.take(item);
                    }
                }
            }
            push = next(&mut self.pushes) => self.push(push),
        }
        while self.buffer.len() < RPC_UNSENT_BYTES && !self.closing {
            let Some(pushes) = &mut self.pushes else {
                break;
            };
            match pushes.try_recv() {
                Ok(push) => self.push(Some(push)),
                Err(mpsc::error::TryRecvError::Empty) => break,
                Err(mpsc::error::TryRecvError::Disconnected) => self.push(None),
            }
        }
    }

    fn take(&mut self, item: Outgoing) {
        match item {
            Outgoing::Frame { bytes, permit } => {
                if self.buffer.is_empty() {
                    self.buffer = bytes;
                } else {
                    self.buffer.extend_from_slice(&bytes);
                }
                self.permits.extend(permit);
            }
            Outgoing::Pushes(pushes) => self.pushes = Some(pushes),
            Outgoing::Close => self.closing = true,
        }
    }

    fn push(&mut self, push: Option<ToExecutor>) {
        let encoded = match push {
            Some(ToExecutor::Assign(items)) => self.assign(&items),
            Some(ToExecutor::Stop(held)) => held.chunks(EXECUTOR_BATCH).try_for_each(|part| {
                encode::notification(&mut self.buffer, method::STOP, &Stop { items: part.to_vec(), ended: Vec::new() })
            }),
            Some(ToExecutor::Forget(held)) => held.chunks(EXECUTOR_BATCH).try_for_each(|part| {
                encode::notification(&mut self.buffer, method::STOP, &Stop { items: Vec::new(), ended: part.to_vec() })
            }),
            Some(ToExecutor::Epochs(taken)) => encode::notification(&mut self.buffer, method::EPOCHS, &taken),
            Some(ToExecutor::Hint(hint)) => encode::notification(&mut self.buffer, method::HINT, &hint),
            // The pool dropped its end: the session is on another connection now, or did not keep up.
            None => {
                self.closing = true;
                let why = "this executor session is on another connection now, or this one did not keep up";
                let error = ApiError::new(ErrorCode::NotReady, why);
                encode::notification(&mut self.buffer, method::SESSION_ERROR, &error)
            }
        };
        if let Err(error) = encoded {
            // An attempt that cannot be told must not be taken for started: announcing anew sorts it out.
            tracing::error!(%error, "cannot encode for an executor, closing its connection");
            self.closing = true;
        }
    }

    fn assign(&mut self, items: &[Box<Assignment>]) -> Result<(), encode::EncodeError> {
        #[cfg(feature = "faults")]
        {
            self.assigned |= !items.is_empty();
        }
        let mut rest = items;
        while !rest.is_empty() {
            let part = &rest[..rest.len().min(EXECUTOR_BATCH)];
            let written = encode::assign(&mut self.buffer, part, RPC_UNSENT_BYTES)?;
            rest = &rest[written..];
        }
        Ok(())
    }
}

/// Never, while there is no executor.
async fn next(pushes: &mut Option<mpsc::Receiver<ToExecutor>>) -> Option<ToExecutor> {
    match pushes {
        Some(pushes) => pushes.recv().await,
        None => std::future::pending().await,
    }
}
