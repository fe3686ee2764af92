//! Accepts connections within the limits of [`super::places`]. It closes connections whose request head does not arrive
//! in time, and idle ones, so that a caller that connects and sends little occupies a place for seconds only.

use super::{
    link::Link,
    places::{ConnectionPlace, NoPlace, Places},
    problem::Problem,
};
use axum::{
    extract::connect_info::Connected,
    serve::{IncomingStream, Listener},
};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    limits::{HTTP_CONNECTIONS_PER_PEER, HTTP_REFUSAL_MS, HTTP_REFUSALS},
};
use campanile_security::tls::{Handshakes, Port, ServingCertificate, Transport};
use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Sleep, sleep, timeout},
};

/// Pause after a failed accept (no file descriptors left, for example).
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

pub(super) struct BoundedListener {
    inner: TcpListener,
    places: Arc<Places>,
    handshakes: Handshakes<(ConnectionPlace, SocketAddr)>,
    is_clear: bool,
    /// Those who are being told that there is no place.
    refusals: Arc<Semaphore>,
}

impl BoundedListener {
    /// `tls`: None = in clear.
    pub fn new(inner: TcpListener, tls: Option<Arc<ServingCertificate>>) -> Self {
        let is_clear = tls.is_none();
        let handshakes = Handshakes::new(tls, Port::Http, speaks_tls);
        let refusals = Arc::new(Semaphore::new(HTTP_REFUSALS));
        Self { inner, places: Arc::default(), handshakes, is_clear, refusals }
    }

    /// With its place, when it gets one.
    fn begin(&mut self, stream: TcpStream, address: SocketAddr) -> Option<(Transport, (ConnectionPlace, SocketAddr))> {
        // Answers are written whole; waiting for more to send only adds latency.
        let _ = stream.set_nodelay(true);
        match self.places.take(address) {
            Ok(place) => self.handshakes.begin(stream, (place, address)),
            Err(why) => {
                metrics::counter!("campanile_http_connections_refused_total", "reason" => why.label()).increment(1);
                if self.is_clear
                    && let Ok(turn) = self.refusals.clone().try_acquire_owned()
                {
                    tokio::spawn(refuse(stream, why, turn));
                }
                None
            }
        }
    }
}

/// Says it, and reads what came until the peer has closed: a connection that is closed with bytes unread loses what was said.
async fn refuse(mut stream: TcpStream, why: NoPlace, _turn: OwnedSemaphorePermit) {
    let telling = async {
        stream.write_all(&refusal(why)).await?;
        stream.shutdown().await?;
        let mut away = [0; 1024];
        while stream.read(&mut away).await? > 0 {}
        io::Result::Ok(())
    };
    // Whether it is heard is the peer's business.
    let _ = timeout(Duration::from_millis(HTTP_REFUSAL_MS), telling).await;
}

impl NoPlace {
    const ALL: [Self; 2] = [Self::Peer, Self::All];

    fn label(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::All => "all",
        }
    }
}

/// Connections that found no place, as counters that exist before the first one.
pub fn refusals_at_zero() {
    let reasons = NoPlace::ALL.iter().map(|why| why.label());
    campanile_actors::measure::at_zero("campanile_http_connections_refused_total", "reason", reasons);
}

fn answer(status: &str, error: ApiError) -> Vec<u8> {
    let problem = Problem::new(error, None);
    let body = serde_json::to_string(&problem).expect("a problem is plain data, written into memory");
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\nconnection: close");
    format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The whole answer to a request in clear on a port that speaks TLS.
fn speaks_tls() -> Vec<u8> {
    let message = "this port speaks TLS, and the request came in clear: write https:// in the node's address";
    answer("400 Bad Request", ApiError::new(ErrorCode::InvalidArgument, message))
}

/// The whole answer on a connection that gets no place.
fn refusal(why: NoPlace) -> Vec<u8> {
    let message = match why {
        NoPlace::Peer => {
            format!("this address has {HTTP_CONNECTIONS_PER_PEER} connections already: close some, or use them again")
        }
        NoPlace::All => "the node has as many connections as it takes: connect again later".to_owned(),
    };
    answer("503 Service Unavailable", ApiError::new(ErrorCode::Overloaded, message))
}

impl Listener for BoundedListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            let ready = tokio::select! {
                accepted = self.inner.accept() => match accepted {
                    Ok((stream, address)) => self.begin(stream, address),
                    Err(error) => {
                        tracing::warn!(%error, "HTTP accept failed");
                        sleep(ACCEPT_AGAIN).await;
                        None
                    }
                },
                ready = self.handshakes.next() => Some(ready),
            };
            if let Some((stream, (place, address))) = ready {
                let link = Link::new(self.places.clone(), place.kind);
                return (Connection { stream, quiet: Box::pin(sleep(Duration::ZERO)), link, _place: place }, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

/// A connection that counts against the bounds as long as it lives.
pub(super) struct Connection {
    stream: Transport,
    quiet: Pin<Box<Sleep>>,
    link: Arc<Link>,
    _place: ConnectionPlace,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.link.gone();
    }
}

impl Connection {
    /// Ready with an error when the connection has had its time.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        self.link.wake(cx.waker());
        loop {
            let Some(until) = self.link.until() else {
                return Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "closed for another connection"));
            };
            if self.quiet.deadline() > until || self.quiet.is_elapsed() {
                if until <= tokio::time::Instant::now() {
                    return Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "nothing arrived in time"));
                }
                self.quiet.as_mut().reset(until);
            }
            // A timer that goes off early is set anew.
            ready!(self.quiet.as_mut().poll(cx));
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            Poll::Ready(read) => {
                if buffer.filled().len() > before {
                    self.link.came();
                }
                // Whoever sends without a pause has no more time than others.
                match self.poll_over(cx) {
                    Poll::Ready(error) => Poll::Ready(Err(error)),
                    Poll::Pending => Poll::Ready(read),
                }
            }
            Poll::Pending => self.poll_over(cx).map(Err),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write(cx, bytes) {
            Poll::Ready(written) => {
                self.link.went();
                Poll::Ready(written)
            }
            // Whoever does not read what it asked for.
            Poll::Pending => self.poll_over(cx).map(Err),
        }
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(flushed) => Poll::Ready(flushed),
            Poll::Pending => self.poll_over(cx).map(Err),
        }
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write_vectored(cx, slices) {
            Poll::Ready(written) => {
                self.link.went();
                Poll::Ready(written)
            }
            Poll::Pending => self.poll_over(cx).map(Err),
        }
    }
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub SocketAddr);

/// The connection that a request came on.
#[derive(Clone)]
pub(super) struct RequestConnection {
    pub peer: Peer,
    pub link: Arc<Link>,
}

impl Connected<IncomingStream<'_, BoundedListener>> for RequestConnection {
    fn connect_info(stream: IncomingStream<'_, BoundedListener>) -> Self {
        Self { peer: Peer(*stream.remote_addr()), link: stream.io().link.clone() }
    }
}
