//! What a caller is told about itself.

use crate::{job::upper_enum, time::Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

upper_enum!(/// Which callers may use the console.
    CallerKind { Operator = "OPERATOR" = 0, Tenant = "TENANT" = 1 } default Tenant);

upper_enum!(/// How the node knows a caller.
    KnownBy {
        /// The call has its token.
        Token = "TOKEN" = 0,
        /// The call has the cookie of a session.
        Session = "SESSION" = 1,
        /// `campanile dev`: the call has no credential and comes from the node's machine.
        Loopback = "LOOPBACK" = 2,
    } default Token);

/// `GET /session`, `session.get`: whose call it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    /// Name of the credential.
    pub name: String,
    pub role: CallerKind,
    /// Absent: every tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    pub known_by: KnownBy,
    /// When the session ends; absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Release of the node.
    pub version: String,
}
