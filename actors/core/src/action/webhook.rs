//! Webhooks: what may be asked of one, and with what it is signed.
//!
//! Signed is `ID.TIMESTAMP.BODY` by HMAC-SHA256, as <https://www.standardwebhooks.com> describes, so receivers can use the libraries that
//! there are.

use super::http::absolute;
use base64::{Engine, prelude::BASE64_STANDARD};
use campanile_schema::{job::JobSpec, limits, stored::MASK};

/// The secret param with which webhooks are signed.
pub const SECRET: &str = "secret";
/// The secret param with the address of a callback.
pub const URL: &str = "url";
/// Longest time of a callback, s.
pub const CALLBACK_SEC: u32 = 15;
/// With the usual growing delays, over about four hours.
pub const CALLBACK_ATTEMPTS: u32 = 12;
/// Begins a secret whose rest is the key in base64.
const ENCODED: &str = "whsec_";
/// Bytes of a key.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 16..=128;

/// The key of a secret: what `whsec_` encodes, or the text itself. The error says what is wrong with it, and nothing of it.
pub fn key(secret: &str) -> Result<Vec<u8>, String> {
    let key = match secret.strip_prefix(ENCODED) {
        Some(encoded) => BASE64_STANDARD.decode(encoded).map_err(|_| "what follows whsec_ is not base64".to_owned())?,
        None => secret.as_bytes().to_vec(),
    };
    if KEY_BYTES.contains(&key.len()) {
        return Ok(key);
    }
    Err(format!("a key has {} to {} bytes, and this one {}", KEY_BYTES.start(), KEY_BYTES.end(), key.len()))
}

/// Refuses a webhook that cannot be sent. Where it may go is for the node to say, who knows to which address a name leads.
pub(super) fn check(url: &str, timeout_sec: u32, spec: &JobSpec) -> Result<(), String> {
    check_url(url).map_err(|why| format!("action.{why}"))?;
    if !(1..=limits::WEBHOOK_TIMEOUT_SEC).contains(&timeout_sec) {
        return Err(format!("action.timeoutSec must be 1 to {}", limits::WEBHOOK_TIMEOUT_SEC));
    }
    if spec.executor_selector != JobSpec::new("", "", spec.trigger.clone()).executor_selector {
        return Err("executorSelector: nodes run webhooks themselves; leave it out".to_owned());
    }
    if spec.target.is_some() {
        return Err("target: a webhook has limits of its own, and no breaker; leave it out".to_owned());
    }
    for (name, secret) in &spec.secret_params {
        if name != SECRET {
            return Err(format!("secretParams: a webhook has only '{SECRET}', with which it is signed"));
        }
        if secret != MASK {
            key(secret).map_err(|why| format!("secretParams.{SECRET}: {why}"))?;
        }
    }
    Ok(())
}

fn check_url(url: &str) -> Result<(), String> {
    if url.len() > limits::HTTP_ACTION_URL_BYTES {
        return Err(format!("url: at most {} bytes are allowed", limits::HTTP_ACTION_URL_BYTES));
    }
    absolute(url).map(drop)
}

/// The same for a callback. The error begins with the field.
pub fn check_callback(url: &str, secret: Option<&str>) -> Result<(), String> {
    check_url(url)?;
    secret.map_or(Ok(()), |secret| key(secret).map(drop).map_err(|why| format!("{SECRET}: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_a_key_or_encodes_one() {
        assert_eq!(key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").map(|key| key.len()), Ok(24));
        assert_eq!(key("0123456789abcdef"), Ok(b"0123456789abcdef".to_vec()));
        for wrong in ["", "short", "whsec_", "whsec_AAAA", "whsec_???", &"x".repeat(129)] {
            let why = key(wrong).err().unwrap_or_default();
            assert!(why.contains("base64") || why.contains("16 to 128 bytes"), "{wrong}: {why}");
        }
    }
}
