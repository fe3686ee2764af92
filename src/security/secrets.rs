//! Secret params: sealed with a key of the key file before anything is stored, opened for one attempt at a time.
//!
//! XChaCha20-Poly1305 with a random nonce. A key file has one line per key, `KEYID KEY`, the key 32 bytes in base64 or
//! hexadecimal, `#` comments. The first key seals; all of them open, so that keys can be changed by putting a new one
//! in front. The id of the key and the names of the params are authenticated with the values.
//!
//! Sealed values open only for the job that they were sealed for: a mark of its tenant and name is sealed with them. It is written in
//! blanks behind the JSON object, which a node of an earlier release passes over, so that two releases can run side by side; that
//! is why it is not in the associated data, which an earlier release computes without it. Values of earlier releases have no mark
//! and open for any job.
//!
//! Never: a secret or a key in a log, an error or a debug form.

use crate::auth::file_mode;
use base64::Engine;
use campanile_ports::{SecretOwner, Secrets};
use campanile_schema::{limits::SECRET_KEYS, stored::Sealed};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use sha2::{Digest, Sha256};
use std::{collections::BTreeMap, path::Path};

/// In front of what is authenticated with the values.
const CONTEXT: &str = "campanile-secret-params-1";
/// In front of what the mark of an owner is made of.
const OWNER_CONTEXT: &str = "campanile-secret-owner-1";
const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;

/// The keys of a key file. Empty = no secret params.
#[derive(Default)]
pub struct KeyRing {
    keys: Vec<(String, XChaCha20Poly1305)>,
}

impl KeyRing {
    /// Errors are sentences for the operator.
    pub fn from_file(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let mode = file_mode(path).map_err(|error| format!("key file {shown}: {error}"))?;
        if mode & 0o027 != 0 {
            return Err(format!("key file {shown} is open to others (mode {mode:03o}). Run: chmod 600 {shown}"));
        }
        let text = crate::text::read(path, true).map_err(|error| format!("key file {shown}: {error}"))?;
        let ring = Self::parse(&text).map_err(|(line, why)| format!("key file {shown}, line {line}: {why}"))?;
        if ring.keys.is_empty() {
            return Err(format!("key file {shown} has no key: make one with `campanile secrets new-key`"));
        }
        Ok(ring)
    }

    /// The key that seals, with its id.
    pub fn sealing(&self) -> Option<(&str, &XChaCha20Poly1305)> {
        self.keys.first().map(|(id, cipher)| (id.as_str(), cipher))
    }

    /// The key with that id.
    pub fn opening(&self, id: &str) -> Option<&XChaCha20Poly1305> {
        self.keys.iter().find(|(known, _)| known == id).map(|(_, cipher)| cipher)
    }

    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|(id, _)| id.as_str())
    }

    /// The text of a key file; an error has the number of its line.
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut ring = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let at = |why: &str| (index + 1, why.to_owned());
            let mut words = line.split_whitespace();
            let (Some(id), Some(key), None) = (words.next(), words.next(), words.next()) else {
                return Err(at("write: KEYID KEY (32 bytes in base64 or hexadecimal)"));
            };
            let bytes = decode(key).ok_or_else(|| at("the key is not 32 bytes in base64 or hexadecimal"))?;
            if ring.keys.iter().any(|(known, _)| known == id) {
                return Err(at("this key id is used twice"));
            }
            if ring.keys.len() == SECRET_KEYS {
                return Err(at("too many keys"));
            }
            ring.keys.push((id.to_owned(), XChaCha20Poly1305::new(&bytes.into())));
        }
        Ok(ring)
    }
}

/// A line of the key file with a fresh key. Error: the system gives no randomness.
pub fn new_key_line() -> Result<String, String> {
    let key: [u8; KEY_BYTES] = random()?;
    let id: [u8; 4] = random()?;
    Ok(format!("key-{} {}", hex::encode(id), base64::engine::general_purpose::STANDARD.encode(key)))
}

fn random<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| format!("no randomness from the system: {error}"))?;
    Ok(bytes)
}

fn decode(text: &str) -> Option<[u8; KEY_BYTES]> {
    use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
    let mut key = [0; KEY_BYTES];
    if hex::decode_to_slice(text, &mut key).is_ok() {
        return Some(key);
    }
    let bare = text.trim_end_matches('=');
    let bytes = STANDARD_NO_PAD.decode(bare).or_else(|_| URL_SAFE_NO_PAD.decode(bare)).ok()?;
    bytes.try_into().ok()
}

/// What is authenticated beside the values.
fn authenticated(key_id: &str, names: &[String]) -> Vec<u8> {
    let mut text = format!("{CONTEXT}\0{key_id}");
    for name in names {
        text.push('\0');
        text.push_str(name);
    }
    text.into_bytes()
}

/// Bits of the mark of an owner: as hard to meet by chance as the seal itself.
const MARK_BYTES: usize = 16;

/// The owner, as blanks and tabs.
fn mark(owner: SecretOwner<'_>) -> Vec<u8> {
    // Neither name can have a NUL in it.
    let digest = Sha256::digest(format!("{OWNER_CONTEXT}\0{}\0{}", owner.tenant, owner.job));
    let bits = digest.iter().take(MARK_BYTES).flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
    bits.map(|bit| if bit == 0 { b' ' } else { b'\t' }).collect()
}

impl Secrets for KeyRing {
    fn seal(&self, owner: SecretOwner<'_>, secrets: &BTreeMap<String, String>) -> Option<Sealed> {
        let (key_id, cipher) = self.sealing()?;
        let names: Vec<String> = secrets.keys().cloned().collect();
        let mut plain = serde_json::to_vec(secrets).ok()?;
        plain.extend(mark(owner));
        let nonce = random::<NONCE_BYTES>().ok()?;
        let aad = authenticated(key_id, &names);
        let ciphertext = cipher.encrypt(XNonce::from_slice(&nonce), Payload { msg: &plain, aad: &aad }).ok()?;
        Some(Sealed { names, key_id: key_id.to_owned(), nonce: nonce.to_vec(), ciphertext })
    }

    fn open(&self, owner: SecretOwner<'_>, sealed: &Sealed) -> Result<BTreeMap<String, String>, String> {
        let Some(cipher) = self.opening(&sealed.key_id) else {
            return Err(format!("the key '{}' is not in the key file; put it back", sealed.key_id));
        };
        if sealed.nonce.len() != NONCE_BYTES {
            return Err("sealed params are damaged: the nonce has a wrong length".to_owned());
        }
        let aad = authenticated(&sealed.key_id, &sealed.names);
        let payload = Payload { msg: &sealed.ciphertext, aad: &aad };
        let plain = cipher.decrypt(XNonce::from_slice(&sealed.nonce), payload);
        let plain = plain.map_err(|_| format!("sealed params do not open with key '{}': damaged", sealed.key_id))?;
        let sealed_for = &plain[plain.trim_ascii_end().len()..];
        if !sealed_for.is_empty() && sealed_for != mark(owner) {
            return Err("sealed params were sealed for another job and do not open for this one".to_owned());
        }
        serde_json::from_slice(&plain).map_err(|_| "sealed params hold no names and values: damaged".to_owned())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const OWNER: SecretOwner<'static> = SecretOwner { tenant: "finance", job: "billing" };

    fn params() -> BTreeMap<String, String> {
        [("password", "hunter2"), ("token", "ü")].map(|(k, v)| (k.to_owned(), v.to_owned())).into()
    }

    #[test]
    fn what_is_sealed_opens_with_the_same_key_only() {
        let (first, second) = (new_key_line().unwrap(), new_key_line().unwrap());
        let ring = KeyRing::parse(&format!("# ours\n{first}\n")).unwrap();
        let sealed = ring.seal(OWNER, &params()).unwrap();
        assert_eq!(sealed.names, ["password", "token"]);
        assert!(!sealed.ciphertext.windows(7).any(|window| window == b"hunter2"));
        assert_eq!(ring.open(OWNER, &sealed).unwrap(), params());
        let changed = KeyRing::parse(&format!("{second}\n{first}")).unwrap();
        assert_eq!(changed.open(OWNER, &sealed).unwrap(), params());
        assert_ne!(changed.seal(OWNER, &params()).unwrap().key_id, sealed.key_id);
        let lost = KeyRing::parse(&second).unwrap();
        assert!(lost.open(OWNER, &sealed).unwrap_err().contains("not in the key file"));
        assert!(KeyRing::default().seal(OWNER, &params()).is_none());
        assert_ne!(ring.seal(OWNER, &params()).unwrap().ciphertext, sealed.ciphertext, "a nonce was used twice");
    }

    #[test]
    fn what_is_sealed_opens_for_its_own_job_only() {
        let ring = KeyRing::parse(&new_key_line().unwrap()).unwrap();
        let sealed = ring.seal(OWNER, &params()).unwrap();
        for (tenant, job) in
            [("finance", "other"), ("other", "billing"), ("finance\0billing", ""), ("", "finance\0billing")]
        {
            let told = ring.open(SecretOwner { tenant, job }, &sealed).unwrap_err();
            assert!(told.contains("another job"), "{told}");
        }
        assert_eq!(ring.open(OWNER, &sealed).unwrap(), params());
    }

    /// As 8f373c3 sealed and opened them.
    #[test]
    fn earlier_releases_are_understood_and_understand() {
        let ring = KeyRing::parse(&new_key_line().unwrap()).unwrap();
        let (key_id, cipher) = ring.sealing().unwrap();
        let names: Vec<String> = params().into_keys().collect();
        let (nonce, aad) = ([7; NONCE_BYTES], authenticated(key_id, &names));
        let plain = serde_json::to_vec(&params()).unwrap();
        let ciphertext = cipher.encrypt(XNonce::from_slice(&nonce), Payload { msg: &plain, aad: &aad }).unwrap();
        let old = Sealed { names, key_id: key_id.to_owned(), nonce: nonce.to_vec(), ciphertext };
        assert_eq!(ring.open(OWNER, &old).unwrap(), params());

        let new = ring.seal(OWNER, &params()).unwrap();
        let aad = authenticated(&new.key_id, &new.names);
        let payload = Payload { msg: &new.ciphertext, aad: &aad };
        let plain = cipher.decrypt(XNonce::from_slice(&new.nonce), payload).unwrap();
        assert_eq!(serde_json::from_slice::<BTreeMap<String, String>>(&plain).unwrap(), params());
    }

    #[test]
    fn anything_changed_does_not_open() {
        let ring = KeyRing::parse(&new_key_line().unwrap()).unwrap();
        let sealed = ring.seal(OWNER, &params()).unwrap();
        let mut spoilt: Vec<Sealed> = vec![sealed.clone(); 4];
        spoilt[0].ciphertext[0] ^= 1;
        spoilt[1].nonce[0] ^= 1;
        spoilt[2].names[0].push('x');
        spoilt[3].nonce.pop();
        for sealed in spoilt {
            assert!(ring.open(OWNER, &sealed).is_err(), "{sealed:?}");
        }
    }

    #[test]
    fn keys_are_read_in_three_spellings_and_slips_are_told() {
        let hex = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
        let bytes = decode(hex).unwrap();
        assert_eq!(bytes[1], 0x11);
        assert_eq!(decode(&base64::engine::general_purpose::STANDARD.encode(bytes)), Some(bytes));
        assert_eq!(decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)), Some(bytes));
        let told = |text: &str| KeyRing::parse(text).err().unwrap();
        assert_eq!(told("\nk short").0, 2);
        assert!(told("k").1.contains("KEYID KEY"));
        assert!(told(&format!("k {hex}\nk {hex}")).1.contains("twice"));
    }

    #[test]
    fn a_key_file_is_only_for_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), new_key_line().unwrap()).unwrap();
        let mode = |mode| std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        mode(0o644);
        assert!(KeyRing::from_file(file.path()).err().unwrap().contains("chmod 600"));
        mode(0o600);
        assert!(KeyRing::from_file(file.path()).is_ok());
        std::fs::write(file.path(), "").unwrap();
        assert!(KeyRing::from_file(file.path()).err().unwrap().contains("new-key"));
    }
}
