//! A node that says what a test tells it to: for what the real one does rarely or never.
#![allow(dead_code, clippy::unwrap_used)]

use campanile_client::schema::{
    error::ApiError,
    format::WIRE_FORMAT,
    ids::{Epoch, JobId, RunId, ShardId, Token},
    job::{Action, OnLostContact},
    payload::Payload,
    record::Source,
    rpc::{
        codec::{AFTER_HELLO, Decoder, Message, from_map},
        encode,
        executor::{
            Announce, Announced, Assign, Assignment, ClusterNodes, Credit, Ended, Finish, FinishOutcome, Finished,
            Hint, NodeAddress, Register, Registered,
        },
        hello::{Hello, Welcome},
        method,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Far above what anything here takes; reached only when something hangs.
pub const PATIENCE: Duration = Duration::from_secs(120);
pub const CLUSTER: u64 = 5;

pub async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("hangs")
}

pub struct FakeNode {
    listener: TcpListener,
    pub address: SocketAddr,
    name: &'static str,
}

impl FakeNode {
    pub async fn start() -> Self {
        Self::named("fake").await
    }

    pub async fn named(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { listener, address, name }
    }

    /// The next connection, hello answered.
    pub async fn accept(&self) -> FakeLink {
        let mut link = self.accept_raw().await;
        let (id, hello) = link.expect::<Hello>(method::HELLO).await;
        assert_eq!(hello.token, "token");
        let welcome = Welcome {
            protocol: WIRE_FORMAT,
            server: "fake".to_owned(),
            cluster_id: CLUSTER,
            node: self.name.to_owned(),
            max_frame_bytes: 4 << 20,
            heartbeat_ms: 2_000,
            lease_ms: 10_000,
            credit_ms: 2_000,
        };
        link.answer(id, &welcome).await;
        link
    }

    pub async fn accept_raw(&self) -> FakeLink {
        let (stream, _) = within(self.listener.accept()).await.unwrap();
        FakeLink { stream, decoder: Decoder::new(AFTER_HELLO), credit: None, announced: None }
    }

    /// Whether somebody has connected.
    pub async fn has_caller(&self) -> bool {
        let now = std::future::poll_fn(|context| std::task::Poll::Ready(self.listener.poll_accept(context).is_ready()));
        now.await
    }

    /// The next connection of an executor, registered and ready.
    pub async fn executor(&self, epoch: u64) -> FakeLink {
        let mut link = self.accept().await;
        let (id, _) = link.expect::<Register>(method::EXECUTOR_REGISTER).await;
        link.answer(id, &Registered { cluster_id: CLUSTER, epochs: vec![(ShardId(1), Epoch(epoch))] }).await;
        let (id, announce) = link.expect::<Announce>(method::EXECUTOR_ANNOUNCE).await;
        assert!(!announce.more);
        link.announced = Some(announce);
        link.answer(id, &Announced::default()).await;
        link.credit().await;
        link
    }
}

/// What the other side said.
#[derive(Debug)]
pub struct Said {
    /// None for a notification.
    pub id: Option<u32>,
    pub method: String,
    pub params: Vec<u8>,
}

impl Said {
    pub fn read<T: DeserializeOwned>(&self) -> T {
        from_map(&self.params).unwrap()
    }
}

pub struct FakeLink {
    pub stream: TcpStream,
    decoder: Decoder,
    /// The newest credit.
    pub credit: Option<Credit>,
    pub announced: Option<Announce>,
}

impl FakeLink {
    /// The next message; None when the other side has gone.
    pub async fn hear(&mut self) -> Option<Said> {
        loop {
            let said = match self.decoder.next_message().unwrap() {
                Some(Message::Request { id, method, params }) => {
                    Some(Said { id: Some(id), method: method.to_owned(), params: params.map().unwrap().to_vec() })
                }
                Some(Message::Notification { method, params }) => {
                    Some(Said { id: None, method: method.to_owned(), params: params.map().unwrap().to_vec() })
                }
                Some(Message::Response { .. }) => panic!("nothing was asked"),
                None => None,
            };
            if let Some(said) = said {
                if said.method == method::EXECUTOR_CREDIT {
                    self.credit = Some(said.read());
                }
                return Some(said);
            }
            let input = self.decoder.input(64 << 10);
            match within(self.stream.read_buf(input)).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The next message with this method; heartbeats and announcements are answered, credits are kept, others fail the test.
    pub async fn next(&mut self, wanted: &str) -> Said {
        loop {
            let said = self.hear().await.unwrap_or_else(|| panic!("gone while waiting for {wanted}"));
            if said.method == wanted {
                return said;
            }
            match (said.method.as_str(), said.id) {
                (method::EXECUTOR_HEARTBEAT | method::EXECUTOR_ANNOUNCE, Some(id)) => {
                    self.answer(id, &Announced::default()).await;
                }
                (method::EXECUTOR_CREDIT, None) => {}
                _ => panic!("{said:?} while waiting for {wanted}"),
            }
        }
    }

    pub async fn expect<T: DeserializeOwned>(&mut self, wanted: &str) -> (u32, T) {
        let said = self.next(wanted).await;
        (said.id.expect("a request"), said.read())
    }

    /// The next credit.
    pub async fn credit(&mut self) -> Credit {
        let said = self.next(method::EXECUTOR_CREDIT).await;
        said.read()
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }
    pub async fn answer<T: Serialize>(&mut self, id: u32, result: &T) {
        let mut out = Vec::new();
        encode::result(&mut out, id, result).unwrap();
        self.send(&out).await;
    }
    pub async fn fail(&mut self, id: u32, error: &ApiError) {
        let mut out = Vec::new();
        encode::error(&mut out, id, error).unwrap();
        self.send(&out).await;
    }
    pub async fn notify<T: Serialize>(&mut self, method: &str, params: &T) {
        let mut out = Vec::new();
        encode::notification(&mut out, method, params).unwrap();
        self.send(&out).await;
    }

    /// Tells of the nodes of the cluster: names and addresses.
    pub async fn tell_of(&mut self, nodes: &[(&str, String)]) {
        let nodes =
            nodes.iter().map(|(node, address)| NodeAddress { node: (*node).to_owned(), address: address.clone() });
        self.notify(method::MEMBERS, &ClusterNodes { nodes: nodes.collect() }).await;
    }

    /// Tells whether runs wait for credit.
    pub async fn hint(&mut self, waiting: bool) {
        self.notify(method::HINT, &Hint { waiting }).await;
    }

    /// Hears until the credit is of so many slots.
    pub async fn until_credit(&mut self, slots: u32) {
        within(async { while self.credit().await.slots != slots {} }).await;
    }

    /// Sends assignments that use the newest credit.
    pub async fn assign(&mut self, mut items: Vec<Assignment>) {
        let stamp = self.credit.as_ref().unwrap().stamp_ms;
        for item in &mut items {
            if item.credit_stamp_ms == FRESH {
                item.credit_stamp_ms = stamp;
            }
        }
        self.notify(method::ASSIGN, &Assign { items }).await;
    }

    /// The next results, answered item by item.
    pub async fn finish(&mut self, outcome: FinishOutcome) -> Vec<Ended> {
        let (id, finish) = self.expect::<Finish>(method::EXECUTOR_FINISH).await;
        let outcomes = vec![outcome; finish.items.len()];
        self.answer(id, &Finished { outcomes }).await;
        if finish.credit.is_some() {
            self.credit = finish.credit;
        }
        finish.items
    }
}

/// Stamp that [`FakeLink::assign`] replaces by that of the newest credit.
pub const FRESH: u64 = u64::MAX;

pub fn assignment(run: u64, token: u64, handler: &str) -> Assignment {
    Assignment {
        run: RunId(run),
        job: JobId(1),
        job_name: "job".into(),
        tenant: "fin".into(),
        attempt: 1,
        generation: 1,
        token: Token(token),
        shard: ShardId(1),
        epoch: Epoch(3),
        cluster_id: CLUSTER,
        credit_stamp_ms: FRESH,
        source: Source::Manual,
        logical_time: None,
        timeout_sec: 3600,
        on_lost_contact: OnLostContact::Continue,
        action: Action::Handler { name: handler.to_owned() },
        params: Payload::default(),
        secrets: Default::default(),
        traceparent: None,
        checkpoint: None,
    }
}
