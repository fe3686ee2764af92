//! The first call of every connection.

use crate::error::ApiError;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// `session.hello`.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// Highest protocol version that the caller speaks ([`crate::format::WIRE_FORMAT`]).
    pub protocol: u32,
    /// Token of the token file.
    pub token: String,
    /// `CALLER` or `EXECUTOR`.
    pub role: ConnectionRole,
    /// Name and version of the client, for logs.
    #[serde(default)]
    pub client: String,
}

crate::redacted_debug!(Hello { protocol, role, client } hides { token });

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ConnectionRole {
    Caller,
    Executor,
}

/// Answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    /// The version that both speak from now on.
    pub protocol: u32,
    pub server: String,
    pub cluster_id: u64,
    pub node: String,
    pub max_frame_bytes: usize,
    pub heartbeat_ms: i64,
    pub lease_ms: i64,
    pub credit_ms: i64,
}

/// One answer of a batch: the result or the error of the item at the same index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemResult<T> {
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub ok: Option<T>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
}

impl<T> From<Result<T, ApiError>> for ItemResult<T> {
    fn from(result: Result<T, ApiError>) -> Self {
        match result {
            Ok(ok) => Self { ok: Some(ok), error: None },
            Err(error) => Self { ok: None, error: Some(error) },
        }
    }
}

/// Only in RPC, whose schemas serve to name a wrong field of a request: of an answer, the outline is enough.
impl<T: JsonSchema> JsonSchema for ItemResult<T> {
    fn schema_name() -> Cow<'static, str> {
        "ItemResult".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let ok = generator.subschema_for::<T>();
        schemars::json_schema!({"type": "object", "properties": {"ok": ok, "error": {"type": "object"}}})
    }
}

impl<T> ItemResult<T> {
    /// Back to a result; an item with neither is a fault of the peer.
    pub fn into_result(self) -> Result<Result<T, ApiError>, String> {
        match (self.ok, self.error) {
            (Some(ok), None) => Ok(Ok(ok)),
            (None, Some(error)) => Ok(Err(error)),
            (None, None) | (Some(_), Some(_)) => Err("an item of a batch needs either `ok` or `error`".to_owned()),
        }
    }
}
