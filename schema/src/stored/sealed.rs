//! Secret params as they are stored.

use serde::{Deserialize, Serialize};

/// Secret params sealed with a key of the node's key file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sealed {
    /// Names, in clear, so that they can be listed masked.
    #[serde(rename = "n")]
    pub names: Vec<String>,
    #[serde(rename = "k")]
    pub key_id: String,
    /// 24 bytes, XChaCha20-Poly1305.
    #[serde(rename = "o", with = "serde_bytes")]
    pub nonce: Vec<u8>,
    /// Sealed JSON object of the secret params.
    #[serde(rename = "c", with = "serde_bytes")]
    pub ciphertext: Vec<u8>,
}

impl Sealed {
    /// Stands for "as they are" in a replace whose caller gave the secrets back masked. Never stored.
    pub fn keep(names: Vec<String>) -> Self {
        Self { names, key_id: String::new(), nonce: Vec::new(), ciphertext: Vec::new() }
    }
    pub fn is_keep(&self) -> bool {
        self.key_id.is_empty()
    }
}
