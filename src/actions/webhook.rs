//! What a webhook tells, and its signature, as <https://www.standardwebhooks.com> describes both.
//!
//! **What.** The body is `{"type", "timestamp", "data"}`, where `data` are the params of the run. `webhook-id` is the same for all attempts
//! of the run, so a receiver can tell a repeat. `webhook-signature` is `v1,` and the base64 of HMAC-SHA256 over `ID.TIMESTAMP.BODY`; a
//! receiver refuses a `webhook-timestamp` that is minutes away from its clock, so nobody can send an old one again.
//!
//! **What it never does.** It signs with nothing but the secret of the channel, and puts that into neither the body nor the log.

use aws_lc_rs::hmac;
use base64::{Engine, prelude::BASE64_STANDARD};
use campanile_core::action::webhook::{SECRET, key};
use campanile_schema::rpc::executor::Assignment;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

/// Of a run that no hook has started.
const TYPE: &str = "run";

/// A body with the headers that say what it is.
pub(crate) struct Told {
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Told {
    /// `now`: seconds since 1970. The error says why there is none.
    pub fn of(assignment: &Assignment, now: u64) -> Result<Self, String> {
        let body = body(assignment);
        let id = format!("msg_{}", assignment.invocation_id().replace('/', "_"));
        let mut headers = HeaderMap::new();
        let mut put = |name: &'static str, value: &str| {
            let value = HeaderValue::from_str(value).map_err(|_| format!("{name} cannot be sent"))?;
            headers.insert(HeaderName::from_static(name), value);
            Ok::<(), String>(())
        };
        put("content-type", "application/json")?;
        put("webhook-id", &id)?;
        put("webhook-timestamp", &now.to_string())?;
        if let Some(secret) = assignment.secrets.get(SECRET) {
            let key = key(secret).map_err(|why| format!("secretParams.{SECRET}: {why}"))?;
            put("webhook-signature", &signature(&key, &id, now, &body))?;
        }
        Ok(Self { headers, body })
    }
}

fn signature(key: &[u8], id: &str, now: u64, body: &[u8]) -> String {
    let mut signing = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    signing.update(format!("{id}.{now}.").as_bytes());
    signing.update(body);
    format!("v1,{}", BASE64_STANDARD.encode(signing.sign()))
}

/// The same bytes in every attempt.
fn body(assignment: &Assignment) -> Vec<u8> {
    let data = assignment.params.to_value();
    let of_hook = data.pointer("/run/hook").and_then(Value::as_str).unwrap_or(TYPE).to_owned();
    let timestamp = assignment.logical_time.map(|at| at.to_string());
    json!({"type": of_hook, "timestamp": timestamp, "data": data}).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The example of the specification, whose signature its authors give.
    #[test]
    fn a_signature_is_that_of_the_specification() {
        let key = key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let told = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(told, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
