//! One connection: reads frames, checks the hello, hands calls out. It reads no further while too much of what the peer asked
//! is under way or unread by it, so that a connection's memory is bounded whatever the peer does.

use super::{
    Server, calls,
    executor::{self, ExecutorConnection},
    places::Seat,
    reply::Reply,
    watching::{self, Watches},
    writer::{self, Outgoing},
};
use crate::ops::{CameFrom, Operations};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    format::WIRE_FORMAT,
    limits::{
        CREDIT_MS, HEARTBEAT_MS, LEASE_MS, RPC_BYTES_PER_REQUEST, RPC_CLOSE_MS, RPC_FRAME_BYTES, RPC_FRAME_IDLE_MS,
        RPC_HELLO_MS, RPC_OUTBOX_FRAMES, RPC_READ_BYTES, RPC_REQUESTS_IN_FLIGHT,
    },
    operations::rows,
    rpc::{
        codec::{AFTER_HELLO, BEFORE_HELLO, Decoder, Message, Params},
        encode,
        hello::{ConnectionRole, Hello, Welcome},
        method as m,
    },
    trace::TraceContext,
};
use campanile_security::{
    auth::{Authenticator, Caller, Credential, Role},
    tls::Transport,
};
use std::{
    net::IpAddr,
    sync::{Arc, LazyLock},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    time::{Instant, sleep_until},
};

/// Room for reading on a connection that says little, bytes; grows to [`RPC_READ_BYTES`] on a busy one.
const FIRST_READ_BYTES: usize = 2 << 10;
/// A moment that does not come.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Different after each start: calls are numbered by their connection, and connections by their start.
static START: LazyLock<u32> = LazyLock::new(|| getrandom::u32().unwrap_or(0));

/// Why a connection is read no more.
enum ConnectionEnd {
    /// The peer has said all, or is gone.
    Peer,
    /// The node stops.
    Stopping,
    /// The peer broke a rule, and is told.
    Fault(ApiError),
}

/// What a message means for the connection.
enum Flow {
    On,
    /// The hello was right: larger frames may come.
    Greeted,
    End(ConnectionEnd),
}

/// As what a connection is counted.
enum HasPlace {
    Peer { _seat: Seat<IpAddr> },
    Credential { _seat: Seat<String> },
}

struct Connection {
    server: Arc<Server>,
    number: u64,
    address: IpAddr,
    out: mpsc::Sender<Outgoing>,
    room: Arc<Semaphore>,
    who: Option<(Arc<Caller>, ConnectionRole)>,
    place: HasPlace,
    /// Told to [`revoked`].
    credential: watch::Sender<Option<Credential>>,
    executor: ExecutorConnection,
    watches: Watches,
}

pub(super) async fn run(
    transport: Transport,
    number: u64,
    (address, peer): (IpAddr, Seat<IpAddr>),
    server: Arc<Server>,
    stop: watch::Receiver<bool>,
) {
    let from = (address, peer);
    match transport {
        Transport::Plain(stream) => serve(stream.into_split(), number, from, server, stop).await,
        Transport::Secure(stream) => serve(tokio::io::split(*stream), number, from, server, stop).await,
    }
}

async fn serve<R, W>(
    (read, write): (R, W),
    number: u64,
    (address, peer): (IpAddr, Seat<IpAddr>),
    server: Arc<Server>,
    mut stop: watch::Receiver<bool>,
) where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let gauge = metrics::gauge!("campanile_rpc_connections");
    gauge.increment(1.0);
    let (out, waiting) = mpsc::channel(RPC_OUTBOX_FRAMES);
    let mut writer = tokio::spawn(writer::run(write, waiting));
    let room = Arc::new(Semaphore::new(RPC_REQUESTS_IN_FLIGHT));
    let executor = ExecutorConnection::new(server.clone(), number, out.clone());
    let (credential, known) = watch::channel(None);
    let revoked = revoked(server.authenticator.clone(), known);
    let mut connection = Connection {
        server,
        number,
        address,
        out: out.clone(),
        room,
        who: None,
        place: HasPlace::Peer { _seat: peer },
        credential,
        executor,
        watches: Watches::new(),
    };
    let end = tokio::select! {
        end = connection.read(read) => end,
        () = revoked => ConnectionEnd::Fault(ApiError::new(ErrorCode::Unauthenticated, "this token is not valid any more")),
        _ = stop.wait_for(|stop| *stop) => ConnectionEnd::Stopping,
    };
    let patience = Duration::from_millis(RPC_CLOSE_MS);
    let farewell = async {
        match end {
            ConnectionEnd::Peer => {}
            ConnectionEnd::Stopping => {
                // Answers under way hold room; when all of it is back, they are written.
                let _ = connection.room.acquire_many(RPC_REQUESTS_IN_FLIGHT as u32).await;
                connection.say(&ApiError::new(ErrorCode::NotReady, "the node stops; connect to another")).await;
            }
            ConnectionEnd::Fault(error) => {
                tracing::info!(connection = number, %error, "an RPC connection is closed");
                // A peer that does not read takes its time over the farewell: nothing more comes before it.
                connection.watches = Watches::new();
                connection.say(&error).await;
            }
        }
        // With the last sender the writer ends, once every answer under way is written.
        drop(connection);
        drop(out);
        let _ = (&mut writer).await;
    };
    if tokio::time::timeout(patience, farewell).await.is_err() {
        writer.abort();
    }
    gauge.decrement(1.0);
}

/// Waits until the connection's token is taken back, or stands for another caller than it did.
async fn revoked(authenticator: Authenticator, mut known: watch::Receiver<Option<Credential>>) {
    let Some(mut changes) = authenticator.changes() else { return std::future::pending().await };
    let Ok(credential) = known.wait_for(Option::is_some).await.map(|known| known.clone()) else {
        return std::future::pending().await;
    };
    loop {
        changes.mark_unchanged();
        if credential.as_ref().is_some_and(|credential| !authenticator.still_knows(credential)) {
            return;
        }
        if changes.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

impl Connection {
    async fn read(&mut self, mut read: impl AsyncRead + Unpin) -> ConnectionEnd {
        let mut decoder = Decoder::new(BEFORE_HELLO);
        let hello_until = Instant::now() + Duration::from_millis(RPC_HELLO_MS);
        let mut room = FIRST_READ_BYTES;
        let mut unfinished = self.server.places.unfinished();
        loop {
            let until = match (&self.who, decoder.unfinished()) {
                (None, _) => hello_until,
                (Some(_), 0) => Instant::now() + NEVER,
                (Some(_), _) => Instant::now() + Duration::from_millis(RPC_FRAME_IDLE_MS),
            };
            let input = decoder.input(room);
            let received = tokio::select! {
                received = read.read_buf(input) => received,
                () = sleep_until(until) => return ConnectionEnd::Fault(self.too_slow()),
                // The writer has given up: the peer does not read, or is gone.
                () = self.out.closed() => return ConnectionEnd::Peer,
            };
            match received {
                Ok(0) | Err(_) => return ConnectionEnd::Peer,
                // Nobody unknown makes the node read more at once than a frame may have.
                Ok(bytes) if bytes >= room && self.who.is_some() => room = (room * 4).min(RPC_READ_BYTES),
                Ok(_) => {}
            }
            loop {
                let flow = match decoder.next_message() {
                    Ok(Some(message)) => self.handle(message).await,
                    Ok(None) => break,
                    Err(error) => return ConnectionEnd::Fault(error.into()),
                };
                match flow {
                    Flow::On => {}
                    Flow::Greeted => decoder.set_limits(AFTER_HELLO),
                    Flow::End(end) => return end,
                }
            }
            if let Err(full) = unfinished.holds(decoder.unfinished()) {
                return ConnectionEnd::Fault(full);
            }
        }
    }

    fn too_slow(&self) -> ApiError {
        match self.who {
            None => ApiError::new(ErrorCode::Unauthenticated, format!("no {} within {RPC_HELLO_MS} ms", m::HELLO)),
            Some(_) => ApiError::new(
                ErrorCode::MalformedBody,
                format!("a frame was begun and not finished within {RPC_FRAME_IDLE_MS} ms"),
            ),
        }
    }

    async fn handle(&mut self, message: Message<'_>) -> Flow {
        match (message, self.who.clone()) {
            (Message::Request { id, method: m::HELLO, params }, None) => self.hello(id, params).await,
            (Message::Request { id, method, params }, Some((who, role))) => {
                self.request(id, method, params, who, role).await;
                Flow::On
            }
            // Some clients introduce themselves to other kinds of servers first: told, not cut off.
            (Message::Request { id, .. }, None) => {
                let error = ApiError::new(ErrorCode::Unauthenticated, format!("{} comes first", m::HELLO));
                Reply::new(id, self.out.clone(), None).send::<()>(&Err(error)).await;
                Flow::On
            }
            (Message::Notification { method, params }, Some((who, ConnectionRole::Executor)))
                if executor::is_executors(method) =>
            {
                self.executor.handle(&who, method, params, None).await;
                Flow::On
            }
            // Nobody waits for an answer to these.
            (Message::Notification { method, .. }, _) => {
                tracing::debug!(connection = self.number, method, "an unknown notification");
                Flow::On
            }
            (Message::Response { .. }, _) => Flow::On,
        }
    }

    async fn hello(&mut self, id: u32, params: Params<'_>) -> Flow {
        let reply = Reply::new(id, self.out.clone(), None);
        match self.greet(params) {
            Ok((who, place, role, welcome)) => {
                self.place = HasPlace::Credential { _seat: place };
                tracing::debug!(connection = self.number, caller = who.caller.name, "hello");
                self.who = Some((who.caller.clone(), role));
                self.credential.send_replace(Some(who));
                reply.send(&Ok(welcome)).await;
                Flow::Greeted
            }
            Err(error) => {
                metrics::counter!("campanile_rpc_hellos_refused_total").increment(1);
                let error = self.operations(id, None).refused(None, rows::HELLO, error);
                reply.send::<()>(&Err(error.clone())).await;
                Flow::End(ConnectionEnd::Fault(error))
            }
        }
    }

    fn greet(&self, params: Params<'_>) -> Result<(Credential, Seat<String>, ConnectionRole, Welcome), ApiError> {
        let hello: Hello = params.read()?;
        if hello.protocol == 0 {
            return Err(ApiError::new(ErrorCode::InvalidArgument, "protocol: versions begin with 1"));
        }
        let who = self
            .server
            .authenticator
            .credential(&hello.token)
            .ok_or_else(|| ApiError::new(ErrorCode::Unauthenticated, "this token is not known"))?;
        match (who.caller.role, hello.role) {
            (Role::Tenant, ConnectionRole::Executor) => {
                let message = "a tenant's token cannot run jobs; use an executor's";
                return Err(ApiError::new(ErrorCode::Forbidden, message));
            }
            (Role::Metrics, ConnectionRole::Caller | ConnectionRole::Executor) => {
                let message = "a credential for metrics reads /metrics over HTTP only";
                return Err(ApiError::new(ErrorCode::Forbidden, message));
            }
            (Role::Tenant, ConnectionRole::Caller)
            | (Role::Operator | Role::Executor, ConnectionRole::Caller | ConnectionRole::Executor) => {}
        }
        let place = self.server.places.greeted(&who.caller.name)?;
        let welcome = Welcome {
            protocol: hello.protocol.min(WIRE_FORMAT),
            server: concat!("campanile/", env!("CARGO_PKG_VERSION")).to_owned(),
            cluster_id: self.server.cluster_id,
            node: self.server.node.clone(),
            max_frame_bytes: RPC_FRAME_BYTES,
            heartbeat_ms: HEARTBEAT_MS,
            lease_ms: LEASE_MS,
            credit_ms: CREDIT_MS,
        };
        Ok((who, place, hello.role, welcome))
    }

    /// For a call of this connection.
    fn operations(&self, id: u32, trace: Option<TraceContext>) -> Operations {
        let request_id = Some(format!("{:08x}-{}.{id}", *START, self.number));
        self.server.operations.called_from(CameFrom { address: Some(self.address), request_id, trace })
    }

    /// Waits for room, then hands the call out. Executors' own messages stay in order as far as it matters.
    async fn request(&mut self, id: u32, method: &str, params: Params<'_>, who: Arc<Caller>, role: ConnectionRole) {
        let weight = calls::weight(method).max((params.0.len() / RPC_BYTES_PER_REQUEST) as u32);
        let permit = self.acquire(weight).await;
        let reply = Reply::new(id, self.out.clone(), permit);
        if executor::is_executors(method) {
            match role {
                ConnectionRole::Executor => self.executor.handle(&who, method, params, Some(reply)).await,
                ConnectionRole::Caller => {
                    let message = format!("{method} needs a connection that said hello with role EXECUTOR");
                    reply.send::<()>(&Err(ApiError::new(ErrorCode::Forbidden, message))).await;
                }
            }
            return;
        }
        if method == m::HELLO {
            let error = ApiError::new(ErrorCode::IllegalState, "this connection has said hello");
            return reply.send::<()>(&Err(error)).await;
        }
        if let Err(refused) = self.server.authenticator.admit(&who) {
            return reply.send::<()>(&Err(refused)).await;
        }
        if watching::is_watching(method) {
            return self.watch(method, params, who, reply).await;
        }
        let operations = self.operations(id, params.trace());
        let (method, params) = (method.to_owned(), params.0.to_vec());
        tokio::spawn(async move {
            let mut bytes = Vec::new();
            calls::call(&operations, &who, reply.id(), &method, Params(&params), &mut bytes).await;
            metrics::counter!("campanile_rpc_calls_total").increment(1);
            reply.send_encoded(bytes).await;
        });
    }

    /// Opens or stops a watch. Its notifications come behind the answer.
    async fn watch(&mut self, method: &str, params: Params<'_>, who: Arc<Caller>, reply: Reply) {
        if method == m::WATCH_STOP {
            return reply.send(&self.watches.stop(params)).await;
        }
        let reserved = match self.watches.reserve() {
            Ok(reserved) => reserved,
            Err(refused) => return reply.send::<()>(&Err(refused)).await,
        };
        let (operations, out) = (self.server.operations.clone(), self.out.clone());
        let (method, params) = (method.to_owned(), params.0.to_vec());
        tokio::spawn(async move {
            match watching::open(&operations, &who, &method, Params(&params), reserved).await {
                Ok(opened) => {
                    reply.send(&Ok(opened.answer())).await;
                    opened.begin(out);
                }
                Err(refused) => reply.send::<()>(&Err(refused)).await,
            }
        });
    }

    /// Never fails: the semaphore is not closed while the connection lives.
    async fn acquire(&self, weight: u32) -> Option<OwnedSemaphorePermit> {
        let weight = weight.clamp(1, RPC_REQUESTS_IN_FLIGHT as u32);
        self.room.clone().acquire_many_owned(weight).await.ok()
    }

    /// Tells the peer why the connection ends.
    async fn say(&self, error: &ApiError) {
        let mut bytes = Vec::new();
        if encode::notification(&mut bytes, m::SESSION_ERROR, error).is_ok() {
            let _ = self.out.send(Outgoing::Frame { bytes, permit: None }).await;
        }
        let _ = self.out.send(Outgoing::Close).await;
    }
}
