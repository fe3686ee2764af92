//! The protocol's messages as MessagePack.

use super::identity::Identity;
use bytes::{Buf, BufMut};
use foca::{Codec, Header, Member};
use serde::{Serialize, de::DeserializeOwned};
use std::fmt;

/// Knows who we are, because a packet to whoever is at our address is to us.
pub(super) struct MessagePack {
    pub me: Identity,
}

#[derive(Debug)]
pub(super) struct CodecError(String);

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for CodecError {}

fn encode(value: &impl Serialize, buf: impl BufMut) -> Result<(), CodecError> {
    rmp_serde::encode::write(&mut buf.writer(), value).map_err(|error| CodecError(error.to_string()))
}

fn decode<T: DeserializeOwned>(buf: impl Buf) -> Result<T, CodecError> {
    rmp_serde::from_read(buf.reader()).map_err(|error| CodecError(error.to_string()))
}

impl Codec<Identity> for MessagePack {
    type Error = CodecError;

    fn encode_header(&mut self, header: &Header<Identity>, buf: impl BufMut) -> Result<(), CodecError> {
        encode(header, buf)
    }

    fn decode_header(&mut self, buf: impl Buf) -> Result<Header<Identity>, CodecError> {
        let mut header: Header<Identity> = decode(buf)?;
        if header.dst.is_whoever() {
            header.dst = self.me;
        }
        Ok(header)
    }

    fn encode_member(&mut self, member: &Member<Identity>, buf: impl BufMut) -> Result<(), CodecError> {
        encode(member, buf)
    }

    fn decode_member(&mut self, buf: impl Buf) -> Result<Member<Identity>, CodecError> {
        decode(buf)
    }
}
