//! A node with a credential of each kind, and calls to it.
use super::raw;
use campanile::node::Node;
use campanile_security::auth::{Authenticator, Caller, Role};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::runtime::Runtime;

pub use crate::program::eventually;
use crate::support;

pub const OPERATOR: &str = "operator-token";
pub const FINANCE: &str = "finance-token";
pub const SHOP: &str = "shop-token";
pub const EXECUTOR: &str = "executor-token";
pub const METRICS: &str = "metrics-token";

/// A node that lives as long as this.
pub struct Server {
    runtime: Option<Runtime>,
    node: Option<Node>,
    _dir: tempfile::TempDir,
    pub address: String,
}

impl Server {
    pub fn start() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut campanile::node::NodeOptions)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut options = support::options(dir.path());
        options.authenticator = Authenticator::fixed(vec![
            (OPERATOR, caller("ops", Role::Operator, None)),
            (FINANCE, caller("fin", Role::Tenant, Some("finance"))),
            (SHOP, caller("shop", Role::Tenant, Some("shop"))),
            (EXECUTOR, caller("box", Role::Executor, None)),
            (METRICS, caller("scraper", Role::Metrics, None)),
        ]);
        change(&mut options);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let node = runtime.block_on(Node::start(options)).unwrap();
        let address = node.http_addr().to_string();
        Self { runtime: Some(runtime), node: Some(node), _dir: dir, address }
    }

    /// Where executors connect.
    pub fn rpc(&self) -> String {
        self.node.as_ref().unwrap().rpc_addr().to_string()
    }

    /// What is spawned while this lives runs beside the node.
    pub fn runtime(&self) -> tokio::runtime::EnterGuard<'_> {
        self.runtime.as_ref().unwrap().enter()
    }

    /// Stops the node, and leaves its runtime to what has not ended with it.
    pub fn stop(mut self) -> Runtime {
        let (runtime, node) = (self.runtime.take().unwrap(), self.node.take().unwrap());
        runtime.block_on(node.stop());
        runtime
    }

    /// A call with a token, JSON in and out.
    pub fn call(&self, token: &str, method: &str, path: &str, body: Option<&Value>) -> HttpAnswer {
        let authorization = format!("Bearer {token}");
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut headers = vec![("authorization", authorization.as_str())];
        if !body.is_empty() {
            headers.push(("content-type", "application/json"));
        }
        raw::call(&self.address, method, path, &headers, body.as_bytes())
    }
    pub fn get(&self, path: &str) -> HttpAnswer {
        self.call(OPERATOR, "GET", path, None)
    }
    pub fn post(&self, path: &str, body: &Value) -> HttpAnswer {
        self.call(OPERATOR, "POST", path, Some(body))
    }

    /// Id of a new job that is only triggered by hand.
    pub fn manual_job(&self, token: &str, name: &str) -> u64 {
        let spec = json!({"name": name, "trigger": {"type": "MANUAL"}});
        let made = self.call(token, "POST", "/api/v1/jobs", Some(&spec)).expect(201);
        made["jobId"].as_u64().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let (Some(runtime), Some(node)) = (self.runtime.take(), self.node.take()) {
            runtime.block_on(node.stop());
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

pub fn caller(name: &str, role: Role, tenant: Option<&str>) -> Caller {
    let pools = if role == Role::Executor { vec!["default".to_owned()] } else { Vec::new() };
    Caller { name: name.to_owned(), role, tenant: tenant.map(str::to_owned), pools }
}

/// What came back.
#[derive(Debug)]
pub struct HttpAnswer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpAnswer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
    /// The body of an answer with this status.
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()
    }
    /// The detail of a problem, checked to be a whole one.
    pub fn problem(self, code: &str) -> String {
        let problem = self.json();
        assert_eq!(problem["code"], code, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        assert_eq!(problem["status"], self.status);
        assert!(code.starts_with(&self.status.to_string()));
        assert_eq!(problem["requestId"].as_str(), self.header("x-request-id"));
        assert_eq!(problem["type"], format!("/errors#{code}"));
        assert!(problem["title"].as_str().is_some_and(|title| !title.is_empty()));
        problem["detail"].as_str().unwrap().to_owned()
    }
}
