//! Actions as definitions hold them.

use super::{is_default, limits::StoredLimits};
use crate::{
    graph::StoredGraph,
    job::{Action, HttpMethod},
    payload::Payload,
    record::code,
    text::Text,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// Action of a stored job; None in [`StoredJob`] = the handler named like the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StoredAction {
    #[serde(rename = "h")]
    Handler {
        #[serde(rename = "n")]
        name: Text,
    },
    #[serde(rename = "c")]
    Command {
        #[serde(rename = "c")]
        command: Vec<String>,
        #[serde(rename = "e", default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
        #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
        stdin: Option<String>,
        #[serde(rename = "o")]
        output_cap_kb: u32,
        #[serde(rename = "l", default, skip_serializing_if = "is_default")]
        limits: StoredLimits,
        #[serde(rename = "n", default, skip_serializing_if = "is_default")]
        nice: u8,
    },
    #[serde(rename = "u")]
    Http {
        #[serde(rename = "m", with = "code")]
        method: HttpMethod,
        #[serde(rename = "u")]
        url: String,
        #[serde(rename = "h", default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
        #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
        body: Option<Payload>,
        #[serde(rename = "e")]
        expect_status: (u16, u16),
        #[serde(rename = "t")]
        timeout_sec: u32,
        #[serde(rename = "r", default, skip_serializing_if = "is_default")]
        max_redirects: u8,
    },
    /// Event format 2.
    #[serde(rename = "g")]
    Dag(Arc<StoredGraph>),
    /// Event format 2.
    #[serde(rename = "w")]
    Webhook {
        #[serde(rename = "u")]
        url: String,
        #[serde(rename = "t")]
        timeout_sec: u32,
    },
}

impl From<Action> for StoredAction {
    fn from(action: Action) -> Self {
        match action {
            Action::Handler { name } => Self::Handler { name: name.into() },
            Action::Command { command, env, cwd, stdin, output_cap_kb, limits, nice } => {
                Self::Command { command, env, cwd, stdin, output_cap_kb, limits: limits.into(), nice }
            }
            Action::Http { method, url, headers, body, expect_status, timeout_sec, max_redirects } => {
                Self::Http { method, url, headers, body, expect_status, timeout_sec, max_redirects }
            }
            Action::Dag(spec) => Self::Dag(Arc::new(StoredGraph::from(&spec))),
            Action::Webhook { url, timeout_sec } => Self::Webhook { url, timeout_sec },
        }
    }
}
impl From<StoredAction> for Action {
    fn from(action: StoredAction) -> Self {
        match action {
            StoredAction::Handler { name } => Self::Handler { name: name.into() },
            StoredAction::Command { command, env, cwd, stdin, output_cap_kb, limits, nice } => {
                Self::Command { command, env, cwd, stdin, output_cap_kb, limits: limits.into(), nice }
            }
            StoredAction::Http { method, url, headers, body, expect_status, timeout_sec, max_redirects } => {
                Self::Http { method, url, headers, body, expect_status, timeout_sec, max_redirects }
            }
            StoredAction::Dag(graph) => Self::Dag(graph.to_spec()),
            StoredAction::Webhook { url, timeout_sec } => Self::Webhook { url, timeout_sec },
        }
    }
}
