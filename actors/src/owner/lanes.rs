//! The journal of a session of a cluster: one thread that collects frames of all shards into rows of the session's
//! lanes. It keeps as many rows in flight as the window allows, and tells shards and projector when the protocol
//! acknowledges them. The protocol repeats the writing of a row, never this thread. Frames of a shard that was lost
//! meanwhile belong to no owner and are dropped.

use super::{AppendError, OwnerHandle};
use crate::{
    journal::{JournalHandle, QueuedFrame, ToWriter, tell},
    messages::ToProject,
    projector::ProjectorHandle,
    shutdown,
};
use campanile_core::ownership::rows::lane_of;
use campanile_ports::{Position, StoreError};
use campanile_schema::{
    ids::{Epoch, SessionId, ShardId},
    limits,
};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};
use tokio::sync::mpsc::UnboundedSender;

/// Between two tries to append what was refused: the window was full, or the lease had run out.
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// Rows of a lane under way at which one that is not full waits for more frames: a store that is slow gets fewer, larger rows. One is on its
/// way to the servers while the next one is on its way to their disks.
const SMALL_IN_FLIGHT: usize = 2;

/// How the lanes are written.
#[derive(Clone, Copy, Debug)]
pub struct LaneOptions {
    pub session: SessionId,
    pub lanes: u16,
    /// From one round of rows to the next at the least, microseconds.
    pub linger_us: u64,
}

#[derive(Default)]
struct Lane {
    waiting: VecDeque<QueuedFrame>,
    /// Rows that are not acknowledged, by seq.
    flying: VecDeque<(u64, Vec<QueuedFrame>)>,
}

/// Whether a row of the first `frames` that wait goes now: a full one always does.
fn goes(frames: usize, waiting: usize, flying: usize) -> bool {
    frames > 0 && (frames < waiting || flying < SMALL_IN_FLIGHT)
}

struct Writer {
    receiver: mpsc::Receiver<ToWriter>,
    owner: OwnerHandle,
    projector: ProjectorHandle,
    options: LaneOptions,
    lanes: Vec<Lane>,
    in_flight: Arc<AtomicI64>,
}

/// Starts the thread behind a handle; it ends when it hears [`ToWriter::Over`].
pub fn start(
    handle: &JournalHandle,
    receiver: mpsc::Receiver<ToWriter>,
    owner: OwnerHandle,
    projector: ProjectorHandle,
    options: LaneOptions,
    failures: UnboundedSender<StoreError>,
) -> std::io::Result<()> {
    let lanes = (0..options.lanes).map(|_| Lane::default()).collect();
    let writer = Writer { receiver, owner, projector, options, lanes, in_flight: handle.counter() };
    shutdown::thread("lanes", failures, move || {
        writer.run();
        Ok(())
    })
}

impl Writer {
    fn run(mut self) {
        let linger = Duration::from_micros(self.options.linger_us);
        let mut round = Instant::now();
        while self.hear() {
            // Asleep, and not woken by each frame that comes: what comes meanwhile shares the rows of this round.
            std::thread::sleep((round + linger).saturating_duration_since(Instant::now()));
            round = Instant::now();
            while let Ok(message) = self.receiver.try_recv() {
                if !self.take(message) {
                    return;
                }
            }
            for lane in 0..self.lanes.len() {
                self.write(lane);
            }
        }
    }

    /// Waits until there is something to do; false: the session is over.
    fn hear(&mut self) -> bool {
        let message = if self.lanes.iter().all(|lane| lane.waiting.is_empty()) {
            self.receiver.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected)
        } else {
            self.receiver.recv_timeout(RETRY_PAUSE)
        };
        match message {
            Ok(message) => self.take(message),
            Err(mpsc::RecvTimeoutError::Timeout) => true,
            Err(mpsc::RecvTimeoutError::Disconnected) => false,
        }
    }

    fn take(&mut self, message: ToWriter) -> bool {
        match message {
            ToWriter::Frame(queued) => {
                let lane = lane_of(queued.frame.shard, self.options.lanes);
                self.lanes[usize::from(lane)].waiting.push_back(queued);
            }
            ToWriter::Acknowledged { lane, upto } => self.acknowledged(lane, upto),
            ToWriter::Over => return false,
        }
        true
    }

    /// Rows of what waits, until the window is full.
    fn write(&mut self, index: usize) {
        loop {
            let lane = &mut self.lanes[index];
            let mut bytes = 0;
            let fits = |queued: &&QueuedFrame| {
                let first = bytes == 0;
                bytes += queued.bytes.len();
                first || bytes <= limits::LANE_ROW_BYTES
            };
            let frames: Vec<(ShardId, Epoch, u64)> = lane
                .waiting
                .iter()
                .take_while(fits)
                .map(|queued| (queued.frame.shard, queued.frame.epoch, queued.frame.seq))
                .collect();
            if !goes(frames.len(), lane.waiting.len(), lane.flying.len()) {
                return;
            }
            #[cfg(feature = "faults")]
            if campanile_ports::faults::ack_before_sync() {
                let position = Position { session: self.options.session, lane: index as u16, seq: 0 };
                tell(&lane.waiting.make_contiguous()[..frames.len()], position);
                std::thread::sleep(campanile_ports::faults::HEARD_EARLY);
            }
            let waiting = &lane.waiting;
            let row = || {
                let parts: Vec<&[u8]> = waiting.iter().take(frames.len()).map(|queued| &*queued.bytes).collect();
                parts.concat().into()
            };
            match self.owner.append(index as u16, &frames, row) {
                Ok(seq) => {
                    let row: Vec<QueuedFrame> = lane.waiting.drain(..frames.len()).collect();
                    metrics::counter!("campanile_journal_frames_total").increment(row.len() as u64);
                    metrics::counter!("campanile_journal_bytes_total")
                        .increment(row.iter().map(|queued| queued.bytes.len() as u64).sum());
                    metrics::counter!("campanile_journal_batches_total").increment(1);
                    lane.flying.push_back((seq, row));
                }
                Err(AppendError::RetryLater) => return,
                Err(AppendError::NotServed(indexes)) => {
                    for index in indexes.iter().rev() {
                        lane.waiting.remove(*index);
                    }
                    self.in_flight.fetch_sub(indexes.len() as i64, Ordering::Relaxed);
                }
            }
        }
    }

    fn acknowledged(&mut self, index: u16, upto: u64) {
        loop {
            let flying = &mut self.lanes[usize::from(index)].flying;
            let Some((seq, row)) = flying.pop_front_if(|(seq, _)| *seq <= upto) else { return };
            #[cfg(feature = "faults")]
            campanile_ports::faults::point("after_append");
            let position = Position { session: self.options.session, lane: index, seq };
            // In this order: see the journal of a node alone.
            let frames: Vec<_> = row.iter().map(|queued| (queued.frame.clone(), queued.from.clone())).collect();
            let count = frames.len() as i64;
            self.projector.project(ToProject { frames, position });
            tell(&row, position);
            self.in_flight.fetch_sub(count, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_row_waits_behind_two_of_its_lane_and_a_full_one_does_not() {
        assert!(!goes(0, 0, 0), "there is nothing to write");
        assert!(goes(3, 3, 0));
        assert!(goes(3, 3, SMALL_IN_FLIGHT - 1));
        assert!(!goes(3, 3, SMALL_IN_FLIGHT));
        assert!(!goes(3, 3, 50));
        assert!(goes(3, 4, 50), "more than one row waits");
    }
}
