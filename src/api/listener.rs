//! Accepts connections, at most `HTTP_CONNECTIONS` at once, and closes those on which nothing arrives, or whose first request does not
//! come to the end of its head: whoever connects and says little holds a place for seconds only.

use super::problem::Problem;
use crate::tls::{Handshakes, Port, ServingCertificate, Transport};
use axum::{
    extract::connect_info::Connected,
    serve::{IncomingStream, Listener},
};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    limits::{HTTP_CONNECTIONS, HTTP_HEAD_MS, HTTP_IDLE_MS},
};
use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Sleep, sleep},
};

/// Pause after a failed accept (no file descriptors left, for example).
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
const IDLE: Duration = Duration::from_millis(HTTP_IDLE_MS);
const HEAD: Duration = Duration::from_millis(HTTP_HEAD_MS);
/// What ends a head.
const HEAD_END: &[u8] = b"\r\n\r\n";

pub(super) struct BoundedListener {
    inner: TcpListener,
    places: Arc<Semaphore>,
    handshakes: Handshakes<(OwnedSemaphorePermit, SocketAddr)>,
}

impl BoundedListener {
    /// `tls`: None = in clear.
    pub fn new(inner: TcpListener, tls: Option<Arc<ServingCertificate>>) -> Self {
        let handshakes = Handshakes::new(tls, Port::Http, speaks_tls);
        Self { inner, places: Arc::new(Semaphore::new(HTTP_CONNECTIONS)), handshakes }
    }
}

/// The whole answer to a request in clear on a port that speaks TLS.
fn speaks_tls() -> Vec<u8> {
    let message = "this port speaks TLS, and the request came in clear: write https:// in the node's address";
    let problem = Problem::new(ApiError::new(ErrorCode::InvalidArgument, message), None);
    let body = serde_json::to_string(&problem).unwrap_or_default();
    let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\nconnection: close";
    format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The next connection, with its place.
async fn next(
    inner: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let Ok(place) = places.clone().acquire_owned().await else {
        // The semaphore is never closed.
        return std::future::pending().await;
    };
    let (stream, address) = inner.accept().await?;
    // Answers are written whole; waiting for more to send only adds latency.
    let _ = stream.set_nodelay(true);
    Ok((stream, address, place))
}

impl Listener for BoundedListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            let ready = tokio::select! {
                accepted = next(&self.inner, &self.places) => match accepted {
                    Ok((stream, address, place)) => self.handshakes.begin(stream, (place, address)),
                    Err(error) => {
                        tracing::warn!(%error, "HTTP accept failed");
                        sleep(ACCEPT_AGAIN).await;
                        None
                    }
                },
                ready = self.handshakes.next() => Some(ready),
            };
            if let Some((stream, (place, address))) = ready {
                let quiet = Box::pin(sleep(HEAD));
                return (Connection { stream, quiet, head: 0, _place: place }, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

/// A connection that counts against the bound as long as it lives.
pub(super) struct Connection {
    stream: Transport,
    quiet: Pin<Box<Sleep>>,
    /// Bytes of [`HEAD_END`] that came in a row; all of them = the first request has its head.
    head: usize,
    _place: OwnedSemaphorePermit,
}

/// How much of [`HEAD_END`] there is after some more bytes.
fn head_after(before: usize, bytes: &[u8]) -> usize {
    bytes.iter().fold(before, |found, byte| match HEAD_END.get(found) {
        None => found,
        Some(wanted) if wanted == byte => found + 1,
        // A return begins it anew.
        Some(_) => usize::from(*byte == b'\r'),
    })
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            Poll::Ready(read) => {
                self.head = head_after(self.head, &buffer.filled()[before..]);
                if self.head == HEAD_END.len() {
                    self.quiet.as_mut().reset(Instant::now() + IDLE);
                }
                Poll::Ready(read)
            }
            Poll::Pending => {
                self.quiet.as_mut().poll(cx).map(|()| Err(io::Error::new(io::ErrorKind::TimedOut, "nothing arrived")))
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub SocketAddr);

impl Connected<IncomingStream<'_, BoundedListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, BoundedListener>) -> Self {
        Self(*stream.remote_addr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_head_is_found_however_it_comes() {
        for (text, whole) in [
            ("GET / HTTP/1.1\r\nhost: x\r\n\r\n", true),
            ("GET / HTTP/1.1\r\n\r\nbody", true),
            ("\r\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nhost: x\r\n", false),
            ("\r\n\n\r\n", false),
        ] {
            let at_once = head_after(0, text.as_bytes());
            let by_bytes = text.bytes().fold(0, |found, byte| head_after(found, &[byte]));
            assert_eq!((at_once == HEAD_END.len(), by_bytes), (whole, at_once), "{text:?}");
        }
    }
}
