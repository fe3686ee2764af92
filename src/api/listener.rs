//! Accepts connections, at most `HTTP_CONNECTIONS` at once, and closes those on which nothing arrives.

use axum::{
    extract::connect_info::Connected,
    serve::{IncomingStream, Listener},
};
use campanile_schema::limits::{HTTP_CONNECTIONS, HTTP_IDLE_MS};
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

pub(super) struct BoundedListener {
    inner: TcpListener,
    places: Arc<Semaphore>,
}

impl BoundedListener {
    pub fn new(inner: TcpListener) -> Self {
        Self { inner, places: Arc::new(Semaphore::new(HTTP_CONNECTIONS)) }
    }
}

impl Listener for BoundedListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            let Ok(place) = self.places.clone().acquire_owned().await else {
                // The semaphore is never closed.
                std::future::pending::<()>().await;
                continue;
            };
            match self.inner.accept().await {
                Ok((stream, address)) => {
                    // Answers are written whole; waiting for more to send only adds latency.
                    let _ = stream.set_nodelay(true);
                    return (Connection { stream, quiet: Box::pin(sleep(IDLE)), _place: place }, address);
                }
                Err(error) => {
                    tracing::warn!(%error, "HTTP accept failed");
                    sleep(ACCEPT_AGAIN).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

/// A connection that counts against the bound as long as it lives.
pub(super) struct Connection {
    stream: TcpStream,
    quiet: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            Poll::Ready(read) => {
                self.quiet.as_mut().reset(Instant::now() + IDLE);
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
