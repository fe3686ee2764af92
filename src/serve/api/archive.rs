//! `GET /api/v1/cluster/backup` and `GET /api/v1/cluster/history`: an archive, sent while it is made.
//!
//! The node holds some pieces for a caller; whoever reads nothing for a minute is cut off, because the journal is not trimmed
//! meanwhile. An archive that was cut off has no end, and is refused by whoever reads it.

use super::{
    access,
    route::{Answered, Call},
    stream,
};
use crate::ops::Backup;
use axum::{
    body::{Body, Bytes},
    http::Response,
};
use campanile_schema::limits::{BACKUP_PIECE_BYTES, BACKUP_STALL_MS};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{
    future::Future,
    io::{self, Write},
    pin::Pin,
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{mpsc, watch},
    time::timeout,
};

pub(super) const MEDIA: &str = "application/vnd.campanile.archive";
/// Pieces that wait for the caller.
const PIECES: usize = 4;

pub(super) async fn backup(call: Call) -> Answered {
    let backup = call.ops.store_backup(&call.caller)?;
    Ok(send(&call, backup))
}

/// Days in UTC, such as 2026-02-01.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Days {
    /// From this day on. Default: the first.
    from: Option<String>,
    /// Up to this day, which is included. Default: the last that is closed.
    to: Option<String>,
}

pub(super) async fn history(call: Call, days: Days) -> Answered {
    let history = call.ops.store_history(&call.caller, days.from.as_deref(), days.to.as_deref()).await?;
    Ok(send(&call, history))
}

fn send(call: &Call, backup: Backup) -> Response<Body> {
    let (pieces, response) = stream::answer(MEDIA, PIECES);
    let mut out = Pieces {
        pieces,
        buffer: Vec::new(),
        stopping: call.shared.stopping.clone(),
        revoked: Box::pin(call.revoked()),
        runtime: Handle::current(),
    };
    // It ends by itself when the caller is gone, reads nothing, or has no right to it any more, or the node stops.
    tokio::task::spawn_blocking(move || backup.write(&mut out));
    response
}

/// What is written goes to the caller in pieces.
struct Pieces {
    pieces: mpsc::Sender<Bytes>,
    buffer: Vec<u8>,
    stopping: watch::Receiver<bool>,
    revoked: Pin<Box<dyn Future<Output = ()> + Send>>,
    runtime: Handle,
}

impl Pieces {
    fn send(&mut self) -> io::Result<()> {
        if *self.stopping.borrow() {
            return Err(io::Error::other("the node stops"));
        }
        let piece = Bytes::from(std::mem::take(&mut self.buffer));
        let sending = timeout(Duration::from_millis(BACKUP_STALL_MS), self.pieces.send(piece));
        let revoked = self.revoked.as_mut();
        let sent = self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = revoked => Err(access::no_longer_valid()),
                sent = sending => Ok(sent),
            }
        });
        match sent.map_err(io::Error::other)? {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the caller is gone")),
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the caller reads nothing")),
        }
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BACKUP_PIECE_BYTES {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() { Ok(()) } else { self.send() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::future::{pending, ready};

    /// What becomes of the second piece of an archive, and the pieces that came.
    fn second_piece(revoked: Pin<Box<dyn Future<Output = ()> + Send>>) -> (io::Result<usize>, mpsc::Receiver<Bytes>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _entered = runtime.enter();
        let (pieces, received) = mpsc::channel(2);
        let (_stop, stopping) = watch::channel(false);
        let mut out = Pieces {
            pieces,
            buffer: Vec::new(),
            stopping,
            revoked: Box::pin(pending()),
            runtime: runtime.handle().clone(),
        };
        out.write_all(&vec![0; BACKUP_PIECE_BYTES]).unwrap();
        out.revoked = revoked;
        (out.write(&vec![0; BACKUP_PIECE_BYTES]), received)
    }

    #[test]
    fn an_archive_ends_when_the_token_of_its_caller_is_taken_back() {
        let (sent, received) = second_piece(Box::pin(pending()));
        assert_eq!((sent.unwrap(), received.len()), (BACKUP_PIECE_BYTES, 2));
        let (sent, received) = second_piece(Box::pin(ready(())));
        assert!(sent.unwrap_err().to_string().contains("not valid any more"));
        assert_eq!(received.len(), 1, "nothing more comes");
    }
}
