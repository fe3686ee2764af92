//! The first messages of two gateways on a connection: who they are, and the reason in words if one refuses the other.

use campanile_schema::limits::GATEWAY_HELLO_BYTES;
pub(super) use campanile_schema::peer::gateway::{Hello, Welcome};
use serde::{Serialize, de::DeserializeOwned};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Rises when what gateways say to each other is not understood by earlier ones.
pub(super) const VERSION: u32 = 1;

pub(super) async fn say(stream: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> io::Result<()> {
    let bytes = rmp_serde::to_vec(message).map_err(io::Error::other)?;
    let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), bytes.as_slice()].concat()).await?;
    stream.flush().await
}

/// Reads not one byte more: what follows is another's.
pub(super) async fn hear<T: DeserializeOwned>(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<T> {
    let length = usize::from(stream.read_u16().await?);
    if length > GATEWAY_HELLO_BYTES {
        return Err(io::Error::other("it says more than a gateway does"));
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await?;
    rmp_serde::from_slice(&bytes).map_err(|_| io::Error::other("it is no gateway, or one of another release"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::earlier_release::captured;

    #[test]
    fn hellos_of_an_earlier_release_are_read() {
        for (name, bytes) in captured("hello") {
            let again = if name == "Hello" {
                rmp_serde::to_vec(&rmp_serde::from_slice::<Hello>(&bytes).unwrap())
            } else {
                rmp_serde::to_vec(&rmp_serde::from_slice::<Welcome>(&bytes).unwrap())
            };
            assert_eq!(again.unwrap(), bytes, "{name}");
        }
    }
}
