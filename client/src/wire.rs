//! One open connection: a socket with its codec. It reads and writes in one place, so that neither can starve the other: a
//! peer that stops reading does not stop us from reading what it sends.

use crate::{
    error::ClientError,
    tls::{Target, Tls},
};
use campanile_schema::{
    error::ApiError,
    format::WIRE_FORMAT,
    limits::{RPC_CONNECT_MS, RPC_READ_BYTES},
    rpc::{
        codec::{AFTER_HELLO, Decoder, FrameError, Message, from_map},
        encode,
        hello::{ConnectionRole, Hello, Welcome},
        method,
    },
};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};

/// Id of the hello; all others count from 1.
const HELLO_ID: u32 = 0;
/// MessagePack's nil.
const NIL: &[u8] = &[0xc0];

pub(crate) struct Wire {
    read: Box<dyn AsyncRead + Send + Unpin>,
    write: Box<dyn AsyncWrite + Send + Unpin>,
    decoder: Decoder,
    out: Vec<u8>,
    written: usize,
    /// TLS may hold bytes that it has taken.
    unflushed: bool,
}

impl Wire {
    /// Connects and says hello. `tls`: for addresses that begin with `tls://`, and those that say nothing of it.
    pub(crate) async fn open(
        address: &str,
        tls: Option<&Tls>,
        token: &str,
        role: ConnectionRole,
    ) -> Result<(Self, Welcome), ClientError> {
        let limit = Duration::from_millis(RPC_CONNECT_MS);
        match tokio::time::timeout(limit, Self::connect(address, tls, token, role)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(ClientError::io(address, format!("no hello within {RPC_CONNECT_MS} ms"))),
        }
    }

    async fn connect(
        address: &str,
        tls: Option<&Tls>,
        token: &str,
        role: ConnectionRole,
    ) -> Result<(Self, Welcome), ClientError> {
        let io = |e: io::Error| ClientError::io(address, e);
        let target = Target::of(address, tls.is_some()).map_err(|why| ClientError::io(address, why))?;
        let stream = TcpStream::connect(target.at).await.map_err(io)?;
        stream.set_nodelay(true).map_err(io)?;
        let mut wire = match tls.filter(|_| target.secure) {
            Some(tls) => Self::over(tokio::io::split(tls.over(target.host, stream).await.map_err(io)?)),
            // Never in clear what was asked to be secret.
            None if target.secure => return Err(ClientError::io(address, "TLS is not set up for this client")),
            None => Self::over(stream.into_split()),
        };
        let hello = Hello {
            protocol: WIRE_FORMAT,
            token: token.to_owned(),
            role,
            client: concat!("campanile-client/", env!("CARGO_PKG_VERSION")).to_owned(),
        };
        encode::request(&mut wire.out, HELLO_ID, method::HELLO, &hello)?;
        loop {
            while let Some(message) = wire.next_message()? {
                match message {
                    Message::Response { id: HELLO_ID, error, result } => {
                        let welcome: Welcome = outcome(error, result)?;
                        if welcome.protocol == 0 || welcome.protocol > WIRE_FORMAT {
                            return Err(ClientError::Protocol(format!(
                                "the node speaks version {}, this client {WIRE_FORMAT}",
                                welcome.protocol
                            )));
                        }
                        return Ok((wire, welcome));
                    }
                    Message::Notification { method: method::SESSION_ERROR, params } => {
                        return Err(ClientError::Api(params.read()?));
                    }
                    Message::Request { .. } | Message::Response { .. } | Message::Notification { .. } => {}
                }
            }
            wire.turn().await.map_err(io)?;
        }
    }

    fn over<R, W>((read, write): (R, W)) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let decoder = Decoder::new(AFTER_HELLO);
        Self { read: Box::new(read), write: Box::new(write), decoder, out: Vec::new(), written: 0, unflushed: false }
    }

    /// The buffer to append frames to; [`Wire::turn`] sends them.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Bytes not yet taken by the socket.
    pub(crate) fn unsent(&self) -> usize {
        self.out.len() - self.written
    }

    /// Reads or writes some bytes. May be dropped at any time without loss. An ended stream is an error.
    pub(crate) async fn turn(&mut self) -> io::Result<()> {
        let Self { read, write, decoder, out, written, unflushed } = self;
        let input = decoder.input(RPC_READ_BYTES);
        if *written == out.len() {
            return tokio::select! {
                n = read.read_buf(input) => received(n),
                flushed = write.flush(), if *unflushed => {
                    *unflushed = false;
                    flushed
                }
            };
        }
        tokio::select! {
            n = read.read_buf(input) => received(n),
            n = write.write(&out[*written..]) => {
                *written += n?;
                *unflushed = true;
                if *written == out.len() {
                    *written = 0;
                    out.clear();
                }
                Ok(())
            }
        }
    }

    pub(crate) fn next_message(&mut self) -> Result<Option<Message<'_>>, FrameError> {
        self.decoder.next_message()
    }
}

fn received(read: io::Result<usize>) -> io::Result<()> {
    let closed = || io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the node");
    match read {
        Ok(0) => Err(closed()),
        Ok(_) => Ok(()),
        // So TLS tells an end without a farewell.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(closed()),
        Err(error) => Err(error),
    }
}

/// The raw result of a response, or its error.
pub(crate) fn raw_outcome(error: &[u8], result: &[u8]) -> Result<Vec<u8>, ApiError> {
    if error == NIL {
        return Ok(result.to_vec());
    }
    Err(from_map(error).unwrap_or_else(|e| e))
}

fn outcome<T: serde::de::DeserializeOwned>(error: &[u8], result: &[u8]) -> Result<T, ClientError> {
    let raw = raw_outcome(error, result)?;
    from_map(&raw).map_err(|e| ClientError::Protocol(e.message))
}
