//! One open connection: a socket with its codec. It reads and writes in one place, so that neither can starve the other: a
//! peer that stops reading does not stop us from reading what it sends.

use crate::error::ClientError;
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
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// Id of the hello; all others count from 1.
const HELLO_ID: u32 = 0;
/// MessagePack's nil.
const NIL: &[u8] = &[0xc0];

pub(crate) struct Wire {
    read: OwnedReadHalf,
    write: OwnedWriteHalf,
    decoder: Decoder,
    out: Vec<u8>,
    written: usize,
}

impl Wire {
    /// Connects and says hello.
    pub(crate) async fn open(address: &str, token: &str, role: ConnectionRole) -> Result<(Self, Welcome), ClientError> {
        let limit = Duration::from_millis(RPC_CONNECT_MS);
        match tokio::time::timeout(limit, Self::connect(address, token, role)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(ClientError::io(address, format!("no hello within {RPC_CONNECT_MS} ms"))),
        }
    }

    async fn connect(address: &str, token: &str, role: ConnectionRole) -> Result<(Self, Welcome), ClientError> {
        let io = |e: io::Error| ClientError::io(address, e);
        let stream = TcpStream::connect(address).await.map_err(io)?;
        stream.set_nodelay(true).map_err(io)?;
        let (read, write) = stream.into_split();
        let mut wire = Self { read, write, decoder: Decoder::new(AFTER_HELLO), out: Vec::new(), written: 0 };
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
        let Self { read, write, decoder, out, written } = self;
        let input = decoder.input(RPC_READ_BYTES);
        if *written == out.len() {
            return received(read.read_buf(input).await?);
        }
        tokio::select! {
            n = read.read_buf(input) => received(n?),
            n = write.write(&out[*written..]) => {
                *written += n?;
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

fn received(bytes: usize) -> io::Result<()> {
    match bytes {
        0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the node")),
        _ => Ok(()),
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
