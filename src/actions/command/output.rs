//! The way of a command's output from the pipe to the run's log: masked, capped, in chunks, never waited for without end.

use super::{
    capture::Capture,
    spec::{AttemptEnv, CommandSpec},
};
use crate::mask::Mask;
use campanile_schema::limits::{COMMAND_DRAIN_MS, LOG_CHUNK_BYTES};
use std::time::Duration;
use tokio::{
    io::AsyncReadExt,
    process::ChildStdout,
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until, timeout},
};

/// The way of the output: mask, cap, log.
pub(super) struct Output {
    mask: Mask,
    capture: Capture,
    log: mpsc::Sender<Vec<u8>>,
    /// The receiver did not take a chunk in time: nothing more is sent.
    stalled: bool,
}

impl Output {
    pub fn new(spec: &CommandSpec, attempt: &AttemptEnv, log: mpsc::Sender<Vec<u8>>) -> Self {
        let capture = Capture::new(spec.output_cap_kb);
        Self { mask: Mask::new(attempt.secrets.values()), capture, log, stalled: false }
    }

    /// The end of the output, for the error message.
    pub fn last_output(&self) -> String {
        self.capture.last_output()
    }

    /// Reads until the pipe is closed by all that held it; after the shim's end only for a bounded time.
    pub async fn pump(&mut self, mut output: ChildStdout, mut ended: oneshot::Receiver<()>) {
        let mut deadline: Option<Instant> = None;
        let mut buffer = vec![0u8; LOG_CHUNK_BYTES];
        loop {
            let late = async {
                match deadline {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let read = tokio::select! {
                read = output.read(&mut buffer) => read.unwrap_or(0),
                _ = &mut ended, if deadline.is_none() => {
                    deadline = Some(Instant::now() + Duration::from_millis(COMMAND_DRAIN_MS));
                    continue;
                }
                // Somebody outside of the tree got hold of the pipe.
                () = late => return,
            };
            if read == 0 {
                return;
            }
            let shown = self.mask.push(buffer[..read].to_vec());
            self.show(shown).await;
        }
    }

    async fn show(&mut self, bytes: Vec<u8>) {
        let kept = self.capture.push(bytes);
        self.send(kept).await;
    }

    /// What was held back, the tail, and a remark that the output itself does not show.
    pub async fn finish(&mut self, remark: Option<String>) {
        let rest = self.mask.finish();
        self.show(rest).await;
        let tail = self.capture.finish();
        for chunk in tail.chunks(LOG_CHUNK_BYTES) {
            self.send(chunk.to_vec()).await;
        }
        if let Some(remark) = remark {
            self.send(format!("[campanile: {remark}]\n").into_bytes()).await;
        }
    }

    async fn send(&mut self, chunk: Vec<u8>) {
        if chunk.is_empty() || self.stalled {
            return;
        }
        // A full log slows the command down (its pipe fills), but never holds its end.
        self.stalled = timeout(Duration::from_millis(COMMAND_DRAIN_MS), self.log.send(chunk)).await.is_err();
    }
}
