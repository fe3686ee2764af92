//! Sealed packets: XChaCha20-Poly1305 with the first key of the key file; all of its keys open, so that keys can be changed by
//! putting a new one in front on every node.
//!
//! In clear, but authenticated: the key's id, the cluster's name, and when it was sent. A packet of another cluster does not open
//! even with the same key.

use campanile_schema::limits::{CLUSTER_NAME_CHARS, GOSSIP_KEY_ID_BYTES};
use campanile_security::secrets::KeyRing;
use chacha20poly1305::{
    XNonce,
    aead::{Aead, Payload},
};

const MAGIC: &[u8; 4] = b"CMG1";
pub(super) const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;

/// What sealing adds to a packet at most, bytes.
pub(super) const SEAL_BYTES: usize =
    MAGIC.len() + 1 + GOSSIP_KEY_ID_BYTES + 1 + CLUSTER_NAME_CHARS + 8 + NONCE_BYTES + TAG_BYTES;

/// Why a packet was not opened.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unopened {
    /// No packet of ours at all, or cut.
    Malformed,
    OtherCluster(String),
    UnknownKey(String),
    /// The key with that id is another one, or something was changed on the way.
    Spoilt(String),
}

/// The cluster's name and its keys.
pub(super) struct Seal {
    cluster: String,
    keys: KeyRing,
}

impl Seal {
    pub fn new(cluster: String, keys: KeyRing) -> Result<Self, String> {
        if keys.sealing().is_none() {
            return Err("membership has no key: name a key file in [cluster] key_file".to_owned());
        }
        if let Some(id) = keys.ids().find(|id| id.len() > GOSSIP_KEY_ID_BYTES) {
            return Err(format!("the id of gossip key '{id}' is longer than {GOSSIP_KEY_ID_BYTES} bytes"));
        }
        Ok(Self { cluster, keys })
    }

    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// None: the cipher refused, which it does only for lengths that no packet has.
    pub fn close(&self, sent_ms: i64, nonce: &[u8; NONCE_BYTES], plain: &[u8]) -> Option<Vec<u8>> {
        let (id, cipher) = self.keys.sealing()?;
        let mut packet = MAGIC.to_vec();
        for text in [id, &self.cluster] {
            packet.push(u8::try_from(text.len()).ok()?);
            packet.extend_from_slice(text.as_bytes());
        }
        packet.extend_from_slice(&sent_ms.to_be_bytes());
        packet.extend_from_slice(nonce);
        let sealed = cipher.encrypt(XNonce::from_slice(nonce), Payload { msg: plain, aad: &packet }).ok()?;
        packet.extend_from_slice(&sealed);
        Some(packet)
    }

    /// When it was sent by the sender's clock, and what it says.
    pub fn open(&self, packet: &[u8]) -> Result<(i64, Vec<u8>), Unopened> {
        let mut rest = packet.strip_prefix(MAGIC).ok_or(Unopened::Malformed)?;
        let id = text(&mut rest).ok_or(Unopened::Malformed)?;
        let cluster = text(&mut rest).ok_or(Unopened::Malformed)?;
        let (sent, rest) = rest.split_at_checked(8).ok_or(Unopened::Malformed)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_BYTES).ok_or(Unopened::Malformed)?;
        let authenticated = packet.len() - sealed.len();
        if cluster != self.cluster {
            return Err(Unopened::OtherCluster(cluster));
        }
        let cipher = self.keys.opening(&id).ok_or_else(|| Unopened::UnknownKey(id.clone()))?;
        let payload = Payload { msg: sealed, aad: &packet[..authenticated] };
        let plain = cipher.decrypt(XNonce::from_slice(nonce), payload).map_err(|_| Unopened::Spoilt(id))?;
        let sent: [u8; 8] = sent.try_into().map_err(|_| Unopened::Malformed)?;
        Ok((i64::from_be_bytes(sent), plain))
    }
}

/// A length and so many bytes; only what can stand in a log line.
fn text(rest: &mut &[u8]) -> Option<String> {
    let (length, after) = rest.split_first()?;
    let (bytes, after) = after.split_at_checked(usize::from(*length))?;
    *rest = after;
    let text = std::str::from_utf8(bytes).ok()?;
    text.chars().all(|c| c.is_ascii_graphic()).then(|| text.to_owned())
}
