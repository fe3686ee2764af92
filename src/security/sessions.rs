//! Sessions of browsers: a token, sealed so that only a node can read it, with the time at which it stands for nothing
//! any more. The browser keeps the sealed text in a cookie; the node keeps nothing.
//!
//! A token that is taken back ends its sessions, because the token in them is checked with each call. The key is the
//! first one of the key file, so that every node of a cluster opens what another one sealed; without a key file it is a
//! key of this process, and its sessions end with it.
//!
//! Never: a session that opens for anything but a caller of HTTP, or that outlives its time.

use crate::secrets::{KeyRing, new_key_line};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use campanile_ports::{SecretOwner, Secrets};
use campanile_schema::{
    limits::{CONSOLE_SESSION_SEC, TOKEN_BYTES},
    stored::Sealed,
};
use std::{collections::BTreeMap, sync::Arc};

/// No job has a name with a space, so no secret param of a job opens as a session, and no session as a secret param.
const OWNER: SecretOwner<'static> = SecretOwner { tenant: "", job: "session of the console" };
const TOKEN: &str = "token";
const UNTIL: &str = "until";
/// Longest text of a session, bytes: what a sealed token of the largest size takes, with room.
const SEALED_BYTES: usize = 4 * TOKEN_BYTES + 1024;

/// Seals and opens sessions.
pub struct BrowserSessions {
    /// Of the key file; may have none.
    kept: Arc<dyn Secrets>,
    /// Of this process.
    own: KeyRing,
}

/// What a session stands for.
#[derive(Debug, PartialEq, Eq)]
pub struct OpenedSession {
    pub token: String,
    /// Its last millisecond.
    pub until_ms: i64,
}

impl BrowserSessions {
    /// Error: the system gives no randomness.
    pub fn new(kept: Arc<dyn Secrets>) -> Result<Self, String> {
        let own = KeyRing::parse(&new_key_line()?).map_err(|(_, why)| why)?;
        Ok(Self { kept, own })
    }

    /// The text of a new session. None: the system gives no randomness.
    pub fn seal(&self, token: &str, now_ms: i64) -> Option<(String, i64)> {
        let until_ms = now_ms.saturating_add(CONSOLE_SESSION_SEC * 1000);
        let held = BTreeMap::from([(TOKEN.to_owned(), token.to_owned()), (UNTIL.to_owned(), until_ms.to_string())]);
        let sealed = self.kept.seal(OWNER, &held).or_else(|| self.own.seal(OWNER, &held))?;
        let parts = [sealed.key_id.as_bytes(), &sealed.nonce, &sealed.ciphertext];
        Some((parts.map(|part| URL_SAFE_NO_PAD.encode(part)).join("."), until_ms))
    }

    /// None: a node did not seal it, its key is gone, or its time is over.
    pub fn open(&self, text: &str, now_ms: i64) -> Option<OpenedSession> {
        if text.len() > SEALED_BYTES {
            return None;
        }
        let mut parts = text.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).ok());
        let (Some(key_id), Some(nonce), Some(ciphertext), None) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next())
        else {
            return None;
        };
        let key_id = String::from_utf8(key_id).ok()?;
        let names = vec![TOKEN.to_owned(), UNTIL.to_owned()];
        let sealed = Sealed { names, key_id, nonce, ciphertext };
        let mut held = self.own.open(OWNER, &sealed).or_else(|_| self.kept.open(OWNER, &sealed)).ok()?;
        let until_ms = held.get(UNTIL)?.parse().ok()?;
        let token = held.remove(TOKEN)?;
        (now_ms <= until_ms).then_some(OpenedSession { token, until_ms })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const NOW: i64 = 1_772_000_000_000;
    const LONG: i64 = CONSOLE_SESSION_SEC * 1000;

    fn sessions(keys: &str) -> BrowserSessions {
        BrowserSessions::new(Arc::new(KeyRing::parse(keys).unwrap())).unwrap()
    }

    #[test]
    fn a_session_stands_for_its_token_until_its_time_is_over() {
        let sessions = sessions("");
        let (text, until_ms) = sessions.seal("cmp_1", NOW).unwrap();
        assert!(!text.contains("cmp_1"), "{text}");
        assert_eq!(until_ms, NOW + LONG);
        let opened = Some(OpenedSession { token: "cmp_1".to_owned(), until_ms });
        assert_eq!(sessions.open(&text, NOW), opened);
        assert_eq!(sessions.open(&text, NOW + LONG), opened);
        assert_eq!(sessions.open(&text, NOW + LONG + 1), None);
        let longest = sessions.seal(&"x".repeat(TOKEN_BYTES), NOW).unwrap().0;
        assert!(sessions.open(&longest, NOW).is_some());
    }

    #[test]
    fn nodes_with_one_key_file_open_the_sessions_of_each_other() {
        let key = new_key_line().unwrap();
        let (text, _) = sessions(&key).seal("cmp_1", NOW).unwrap();
        assert!(sessions(&key).open(&text, NOW).is_some());
        assert_eq!(sessions("").open(&text, NOW), None, "a process without the key");
        let (text, _) = sessions("").seal("cmp_1", NOW).unwrap();
        assert_eq!(sessions("").open(&text, NOW), None, "another process");
    }

    #[test]
    fn what_was_not_sealed_as_a_session_does_not_open() {
        let key = new_key_line().unwrap();
        let (ring, sessions) = (KeyRing::parse(&key).unwrap(), sessions(&key));
        let held = [(TOKEN, "cmp_1"), (UNTIL, "9999999999999")].map(|(name, text)| (name.to_owned(), text.to_owned()));
        let param = ring.seal(SecretOwner { tenant: "t", job: "j" }, &held.into()).unwrap();
        let parts = [param.key_id.as_bytes(), &param.nonce, &param.ciphertext];
        assert_eq!(sessions.open(&parts.map(|part| URL_SAFE_NO_PAD.encode(part)).join("."), NOW), None, "a param");
        let (text, _) = sessions.seal("cmp_1", NOW).unwrap();
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(sessions.open(&String::from_utf8(changed).unwrap(), NOW), None, "changed at {at}");
        }
        for text in ["", ".", "..", "...", "a.b.c", &"x".repeat(SEALED_BYTES + 1)] {
            assert_eq!(sessions.open(text, NOW), None, "{text}");
        }
    }
}
