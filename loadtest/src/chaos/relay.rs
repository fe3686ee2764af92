//! A relay to the store that is slow, or that drops the answers of LWTs: they time out although they were applied. Of
//! CQL (version 4 of the protocol) it knows only frames, which prepared statements are conditional, and which stream
//! asks for one.
//!
//! It is a process of its own, `campanile-loadtest relay`, on the store's own address, because a driver uses the
//! address that the store reports and the port of its contact point. It reads `slow MS` and `lose PERCENT` on its
//! standard input, and answers each with the numbers of LWTs that it has seen and lost.

use crate::random::mix;
use clap::Args;
use parking_lot::Mutex;
use std::{
    collections::{HashMap, HashSet},
    error::Error,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    time::{Instant, sleep_until},
};

/// Frames on their way in one direction of a connection, count; more wait in the sender's socket.
const FRAMES_UNDER_WAY: usize = 4_096;
/// Orders that were not obeyed yet, count.
const ORDERS_WAITING: usize = 16;
/// Largest frame, bytes: above what either side sends.
const FRAME_BYTES: usize = 64 << 20;
const HEADER: usize = 9;
const RESULT: u8 = 0x08;
const PREPARE: u8 = 0x09;
const EXECUTE: u8 = 0x0A;
/// Kind of a RESULT.
const PREPARED: [u8; 4] = [0, 0, 0, 4];

#[derive(Default)]
struct State {
    /// Of each direction, milliseconds.
    delay_ms: AtomicU64,
    lose_percent: AtomicU64,
    /// LWTs seen so far.
    seen: AtomicU64,
    lost: AtomicU64,
    /// Ids of statements that are conditional.
    conditional: Mutex<HashSet<Vec<u8>>>,
}

/// What a stream of a connection asks for, as far as it matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamPurpose {
    /// Prepares a conditional statement.
    Preparation,
    Lwt,
}

type Streams = Arc<Mutex<HashMap<[u8; 2], StreamPurpose>>>;

#[derive(Args, Clone, Debug)]
pub struct RelayArgs {
    /// Where the store listens, IP:PORT; the relay has another port of the same address.
    #[arg(long)]
    pub store: SocketAddr,
    /// Where the relay listens; 0: any that is free.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
}

/// Says where it listens, and runs until its input ends.
pub async fn run(args: RelayArgs) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind((args.store.ip(), args.port)).await?;
    println!("{}", listener.local_addr()?);
    let state = Arc::new(State::default());
    let mut orders = orders()?;
    loop {
        tokio::select! {
            node = listener.accept() => {
                // A store that is down refuses: so is the node.
                if let Ok(store) = TcpStream::connect(args.store).await {
                    connect(&state, node?.0, store);
                }
            }
            order = orders.recv() => match order {
                Some(order) => println!("{}", state.obey(&order)?),
                None => return Ok(()),
            },
        }
    }
}

/// Lines of the input. A thread reads them: it waits for what may never come.
fn orders() -> io::Result<mpsc::Receiver<String>> {
    let (send, orders) = mpsc::channel(ORDERS_WAITING);
    std::thread::Builder::new().name("orders".into()).spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            if send.blocking_send(line).is_err() {
                return;
            }
        }
    })?;
    Ok(orders)
}

fn connect(state: &Arc<State>, node: TcpStream, store: TcpStream) {
    let _ = (node.set_nodelay(true), store.set_nodelay(true));
    let ((from_node, to_node), (from_store, to_store)) = (node.into_split(), store.into_split());
    let streams = Streams::default();
    let (asking, asked) = (Arc::clone(state), Arc::clone(&streams));
    direct(state, from_node, to_store, move |frame| {
        asking.note_request(&asked, frame);
        true
    });
    let answering = Arc::clone(state);
    direct(state, from_store, to_node, move |frame| answering.passes(&streams, frame));
}

/// One direction: frames that `passes` lets through, each after the delay.
fn direct(
    state: &Arc<State>,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    passes: impl Fn(&[u8]) -> bool + Send + 'static,
) {
    let (send, mut frames) = mpsc::channel::<(Instant, Vec<u8>)>(FRAMES_UNDER_WAY);
    let state = Arc::clone(state);
    tokio::spawn(async move {
        while let Ok(frame) = read_frame(&mut from).await {
            let due = Instant::now() + Duration::from_millis(state.delay_ms.load(Ordering::Relaxed));
            if passes(&frame) && send.send((due, frame)).await.is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        while let Some((due, frame)) = frames.recv().await {
            sleep_until(due).await;
            if to.write_all(&frame).await.is_err() {
                return;
            }
        }
    });
}

async fn read_frame(from: &mut OwnedReadHalf) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; HEADER];
    from.read_exact(&mut frame).await?;
    let length = u32::from_be_bytes([frame[5], frame[6], frame[7], frame[8]]) as usize;
    if length > FRAME_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    frame.resize(HEADER + length, 0);
    from.read_exact(&mut frame[HEADER..]).await?;
    Ok(frame)
}

fn stream(frame: &[u8]) -> [u8; 2] {
    [frame[2], frame[3]]
}

/// The bytes behind a length of two bytes.
fn short_bytes(body: &[u8]) -> Option<&[u8]> {
    let (length, rest) = body.split_first_chunk::<2>()?;
    rest.get(..usize::from(u16::from_be_bytes(*length)))
}

impl State {
    fn obey(&self, order: &str) -> Result<String, String> {
        let number = |text: &str| text.parse::<u64>().map_err(|error| format!("'{order}': {error}"));
        match order.split_once(' ') {
            // Half of it each way.
            Some(("slow", ms)) => self.delay_ms.store(number(ms)? / 2, Ordering::Relaxed),
            Some(("lose", percent)) => self.lose_percent.store(number(percent)?, Ordering::Relaxed),
            Some(_) | None => return Err(format!("slow MS or lose PERCENT, not '{order}'")),
        }
        Ok(format!("{} {}", self.seen.load(Ordering::Relaxed), self.lost.load(Ordering::Relaxed)))
    }

    fn note_request(&self, streams: &Streams, frame: &[u8]) {
        let body = &frame[HEADER..];
        let asked = match frame[4] {
            PREPARE => {
                let text = body.get(4..).map(String::from_utf8_lossy).unwrap_or_default();
                text.to_ascii_uppercase().contains(" IF ").then_some(StreamPurpose::Preparation)
            }
            EXECUTE => {
                let conditional = self.conditional.lock();
                short_bytes(body).filter(|id| conditional.contains(*id)).map(|_| StreamPurpose::Lwt)
            }
            _ => None,
        };
        let mut streams = streams.lock();
        match asked {
            Some(asked) => streams.insert(stream(frame), asked),
            None => streams.remove(&stream(frame)),
        };
    }

    fn passes(&self, streams: &Streams, frame: &[u8]) -> bool {
        let asked = streams.lock().remove(&stream(frame));
        let body = &frame[HEADER..];
        match asked {
            Some(StreamPurpose::Preparation) if frame[4] == RESULT && body.starts_with(&PREPARED) => {
                if let Some(id) = body.get(4..).and_then(short_bytes) {
                    self.conditional.lock().insert(id.to_vec());
                }
                true
            }
            Some(StreamPurpose::Lwt) => {
                let count = self.seen.fetch_add(1, Ordering::Relaxed);
                let lost = mix(count) % 100 < self.lose_percent.load(Ordering::Relaxed);
                self.lost.fetch_add(u64::from(lost), Ordering::Relaxed);
                !lost
            }
            Some(StreamPurpose::Preparation) | None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn frame(stream: u8, opcode: u8, body: &[u8]) -> Vec<u8> {
        let mut frame = vec![4, 0, 0, stream, opcode];
        frame.extend((body.len() as u32).to_be_bytes());
        frame.extend(body);
        frame
    }

    fn prepare(stream: u8, text: &str) -> Vec<u8> {
        let mut body = (text.len() as u32).to_be_bytes().to_vec();
        body.extend(text.as_bytes());
        frame(stream, PREPARE, &body)
    }

    fn prepared(stream: u8, id: &[u8]) -> Vec<u8> {
        frame(stream, RESULT, &[&PREPARED[..], &[0, id.len() as u8], id].concat())
    }

    fn execute(stream: u8, id: &[u8]) -> Vec<u8> {
        frame(stream, EXECUTE, &[&[0, id.len() as u8], id].concat())
    }

    #[test]
    fn only_answers_of_conditional_statements_are_lost() {
        let (state, streams) = (State::default(), Streams::default());
        for (number, text, id) in
            [(1, "update t set a = ? where k = ? if version = ?", b"lwt"), (2, "select ifs", b"any")]
        {
            state.note_request(&streams, &prepare(number, text));
            assert!(state.passes(&streams, &prepared(number, id)));
        }
        state.lose_percent.store(100, Ordering::Relaxed);
        state.note_request(&streams, &execute(1, b"lwt"));
        state.note_request(&streams, &execute(2, b"any"));
        assert!(!state.passes(&streams, &frame(1, RESULT, &[0, 0, 0, 2])));
        assert!(state.passes(&streams, &frame(2, RESULT, &[0, 0, 0, 2])));
        // The stream's next request is another one.
        state.note_request(&streams, &execute(1, b"any"));
        assert!(state.passes(&streams, &frame(1, RESULT, &[0, 0, 0, 2])));
        assert_eq!(state.seen.load(Ordering::Relaxed), 1);
    }
}
