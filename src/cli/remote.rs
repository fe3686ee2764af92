//! The node that operators' commands talk to, over HTTP.

use super::{
    failure::Failure,
    progress::{Progress, Unit},
};
use campanile_ports::private;
use campanile_schema::{
    error::{ApiError, ErrorCode},
    limits::HTTP_WAIT_MS,
};
use campanile_security::tls::certificates;
use campanile_serve::api::Problem;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use ureq::{
    http,
    tls::{Certificate, RootCerts, TlsConfig},
};

const DEFAULT_SERVER: &str = "http://127.0.0.1:7700";
/// Longest answer that is read, bytes.
const ANSWER_BYTES: u64 = 256 << 20;
/// A call is given up after this; more than the longest wait of the server.
const CALL: Duration = Duration::from_millis(HTTP_WAIT_MS + 30_000);
const CONNECT: Duration = Duration::from_secs(10);
/// File of a running `campanile dev` in its data directory.
const DEV_FILE: &str = "dev.json";
/// A file with one token, bytes.
const TOKEN_FILE_BYTES: u64 = 4_096;

/// Which node, and who calls.
#[derive(clap::Args, Clone)]
pub(super) struct Connection {
    /// The node's URL
    #[arg(long, global = true, env = "CAMPANILE_SERVER", value_name = "URL")]
    pub server: Option<String>,
    /// The credential's token. Other users of the machine see a command line: better is --token-file
    #[arg(long, global = true, env = "CAMPANILE_API_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub token: Option<String>,
    /// File with the credential's token, one line; it wins over --token
    #[arg(long, global = true, env = "CAMPANILE_API_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<String>,
    /// Certificates of CAs (PEM) that a node with TLS may be of, instead of the machine's own
    #[arg(long, global = true, env = "CAMPANILE_TLS_CA", value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
}

impl Connection {
    /// The token that was given, by file or as it is.
    pub fn credential(&self) -> Result<Option<String>, Failure> {
        let Some(file) = self.token_file.as_deref().filter(|file| !file.is_empty()) else {
            return Ok(self.token.clone());
        };
        let read = || {
            let file = std::fs::File::open(file)?.take(TOKEN_FILE_BYTES);
            campanile_security::text::read_from(file, false)
        };
        let text = read().map_err(|error: std::io::Error| Failure::usage(format!("--token-file {file}: {error}")))?;
        match text.trim() {
            token if !token.is_empty() && !token.contains(char::is_whitespace) => Ok(Some(token.to_owned())),
            _ => Err(Failure::usage(format!(
                "--token-file {file}: it must hold one token and nothing else, as `campanile token new` prints it; a node's file \
                 of all tokens is another one"
            ))),
        }
    }
}

/// Where `campanile dev` is, and its token.
#[derive(Serialize, Deserialize)]
pub(super) struct DevFile {
    pub server: String,
    pub rpc: String,
    pub token: String,
}

/// Where `campanile dev` keeps its things unless told otherwise.
pub(super) fn default_dev_dir() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")));
    data.map_or_else(|| PathBuf::from("campanile-dev"), |data| data.join("campanile/dev"))
}

impl DevFile {
    pub fn read(dir: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(dir.join(DEV_FILE)).ok()?).ok()
    }
    /// For its owner only.
    pub fn write(&self, dir: &Path) -> std::io::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        private::put_file(dir, DEV_FILE, text.as_bytes())
    }
    /// The token stays, so that executors and shells of an earlier start still fit.
    pub fn forget(dir: &Path) {
        if let Some(mut file) = Self::read(dir) {
            file.server = String::new();
            // A file that cannot be written is as stale as after a kill.
            let _ = file.write(dir);
        }
    }
}

/// One event of a node's.
#[derive(Default)]
pub(super) struct ServerEvent {
    pub id: Option<String>,
    pub name: String,
    pub data: String,
}

/// A node.
#[derive(Clone)]
pub(super) struct Remote {
    agent: ureq::Agent,
    server: String,
    token: Option<String>,
}

impl Remote {
    pub fn new(connection: &Connection) -> Result<Self, Failure> {
        let dev = DevFile::read(&default_dev_dir()).filter(|dev| !dev.server.is_empty());
        let server = connection.server.clone().or_else(|| dev.as_ref().map(|dev| dev.server.clone()));
        let server = server.unwrap_or_else(|| DEFAULT_SERVER.to_owned()).trim_end_matches('/').to_owned();
        let server = match connection.tls_ca {
            _ if server.contains("://") => server,
            Some(_) => format!("https://{server}"),
            None => format!("http://{server}"),
        };
        if !server.starts_with("http://") && !server.starts_with("https://") {
            return Err(Failure::usage(format!("{server}: the API is spoken over http:// or https://")));
        }
        let dev_token = dev.filter(|dev| dev.server == server).map(|dev| dev.token);
        let token = connection.credential()?.or(dev_token);
        let mut config = ureq::Agent::config_builder();
        if server.starts_with("https://") {
            config = config.tls_config(tls_config(connection.tls_ca.as_deref(), "--tls-ca")?);
        }
        let config = config
            .http_status_as_error(false)
            .timeout_global(Some(CALL))
            .timeout_connect(Some(CONNECT))
            .proxy(None)
            .user_agent(concat!("campanile/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self { agent: config.into(), server, token })
    }

    pub fn get(&self, path: &str, query: &[(&str, Option<String>)]) -> Result<Value, Failure> {
        self.json("GET", path, query, None, None)
    }
    /// A page that is no JSON.
    pub fn page(&self, path: &str) -> Result<String, Failure> {
        Ok(String::from_utf8_lossy(&self.call("GET", path, &[], None, None)?).into_owned())
    }
    pub fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.json("POST", path, &[], Some(body), None)
    }
    pub fn post_once(&self, path: &str, body: &Value, key: Option<&str>) -> Result<Value, Failure> {
        self.json("POST", path, &[], Some(body), key)
    }
    pub fn put(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.json("PUT", path, &[], Some(body), None)
    }
    pub fn delete(&self, path: &str, query: &[(&str, Option<String>)]) -> Result<Value, Failure> {
        self.json("DELETE", path, query, None, None)
    }

    /// Every item of a list, page by page.
    pub fn all(&self, path: &str, query: &[(&str, Option<String>)]) -> Result<Vec<Value>, Failure> {
        let mut items = Vec::new();
        let mut token = None;
        let reading = Progress::new("reading", Unit::Things("items"), None);
        loop {
            let mut query = query.to_vec();
            query.push(("pageSize", Some("1000".to_owned())));
            query.push(("pageToken", token));
            let mut page = self.get(path, &query)?;
            if let Some(Value::Array(more)) = page.get_mut("items").map(Value::take) {
                reading.add(more.len() as u64);
                items.extend(more);
            }
            token = page["nextPageToken"].as_str().map(str::to_owned);
            if token.is_none() {
                return Ok(items);
            }
        }
    }

    /// Server-sent events, one after the other, until they end or `hear` wants no more.
    pub fn events(
        &self,
        path: &str,
        query: &[(&str, Option<String>)],
        last: Option<&str>,
        mut hear: impl FnMut(ServerEvent) -> bool,
    ) -> Result<(), Failure> {
        let mut request = http::Request::builder().uri(self.url(path, query)).header("Accept", "text/event-stream");
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let request = request.body(()).map_err(|error| Failure::usage(format!("{}{path}: {error}", self.server)))?;
        // It lasts as long as there is something to hear.
        let request = self.agent.configure_request(request).timeout_global(None).build();
        let mut answer = self.agent.run(request).map_err(|error| self.unreachable(&error))?;
        if !answer.status().is_success() {
            let status = answer.status();
            let bytes = answer.body_mut().with_config().limit(ANSWER_BYTES).read_to_vec();
            return Err(self.refused(status, &bytes.map_err(|error| self.unreachable(&error))?));
        }
        let mut event = ServerEvent::default();
        for line in BufReader::new(answer.body_mut().as_reader()).lines() {
            let line = line.map_err(|error| Failure::unreachable(format!("{}: {error}", self.server)))?;
            match line.split_once(": ") {
                Some(("id", id)) => event.id = Some(id.to_owned()),
                Some(("event", name)) => name.clone_into(&mut event.name),
                Some(("data", data)) => data.clone_into(&mut event.data),
                Some(_) => {}
                None => {
                    let whole = line.is_empty() && !event.name.is_empty();
                    if whole && !hear(std::mem::take(&mut event)) {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// An answer of any length as it comes, and the name of where it comes from.
    pub fn stream(&self, path: &str, query: &[(&str, Option<String>)]) -> Result<(String, impl Read + use<>), Failure> {
        let mut request = http::Request::builder().uri(self.url(path, query));
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let request = request.body(()).map_err(|error| Failure::usage(format!("{}{path}: {error}", self.server)))?;
        // It lasts as long as it takes.
        let request = self.agent.configure_request(request).timeout_global(None).build();
        let mut answer = self.agent.run(request).map_err(|error| self.unreachable(&error))?;
        if !answer.status().is_success() {
            let status = answer.status();
            let bytes = answer.body_mut().with_config().limit(ANSWER_BYTES).read_to_vec();
            return Err(self.refused(status, &bytes.map_err(|error| self.unreachable(&error))?));
        }
        Ok((self.server.clone(), answer.into_body().into_with_config().limit(u64::MAX).reader()))
    }

    /// Lines of JSON, and the answer of each.
    pub fn post_lines(&self, path: &str, lines: String, key: Option<&str>) -> Result<Vec<Value>, Failure> {
        let body = Some(("application/x-ndjson", lines));
        let answer = self.call("POST", path, &[], body, key)?;
        let unreadable = |error| Failure::here(format!("{}: not a node's answer: {error}", self.server));
        serde_json::Deserializer::from_slice(&answer).into_iter().collect::<Result<_, _>>().map_err(unreadable)
    }

    fn json(
        &self,
        method: &str,
        path: &str,
        query: &[(&str, Option<String>)],
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Result<Value, Failure> {
        let body = body.map(|body| ("application/json", body.to_string()));
        let answer = self.call(method, path, query, body, key)?;
        if answer.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&answer)
            .map_err(|error| Failure::here(format!("{}: not a node's answer: {error}", self.server)))
    }

    /// A call's answer as it came; a problem is the failure that it tells of.
    fn call(
        &self,
        method: &str,
        path: &str,
        query: &[(&str, Option<String>)],
        body: Option<(&str, String)>,
        key: Option<&str>,
    ) -> Result<Vec<u8>, Failure> {
        let mut request = http::Request::builder().method(method).uri(self.url(path, query));
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        let unusable = |error: http::Error| Failure::usage(format!("{}{path}: {error}", self.server));
        let answer = match body {
            Some((kind, body)) => self.agent.run(request.header("Content-Type", kind).body(body).map_err(unusable)?),
            None => self.agent.run(request.body(()).map_err(unusable)?),
        };
        let mut answer = answer.map_err(|error| self.unreachable(&error))?;
        let status = answer.status();
        let bytes = answer.body_mut().with_config().limit(ANSWER_BYTES).read_to_vec();
        let bytes = bytes.map_err(|error| self.unreachable(&error))?;
        if status.is_success() {
            return Ok(bytes);
        }
        Err(self.refused(status, &bytes))
    }

    /// The failure that an answer tells of.
    fn refused(&self, status: http::StatusCode, body: &[u8]) -> Failure {
        match serde_json::from_slice::<Problem>(body) {
            Ok(problem) => problem.into_error().into(),
            Err(_) => {
                let message = format!("{} answered {status} without a reason; is it a Campanile node?", self.server);
                ApiError::new(ErrorCode::Internal, message).into()
            }
        }
    }

    fn url(&self, path: &str, query: &[(&str, Option<String>)]) -> String {
        let set: Vec<String> = query
            .iter()
            .filter_map(|(name, value)| value.as_ref().map(|value| format!("{name}={}", encoded(value))))
            .collect();
        let mark = if set.is_empty() { "" } else { "?" };
        format!("{}{path}{mark}{}", self.server, set.join("&"))
    }

    fn unreachable(&self, error: &ureq::Error) -> Failure {
        let hint = match error {
            ureq::Error::Timeout(_) => "no answer in time; the call may have been carried out",
            ureq::Error::Rustls(error) => tls_hint(error),
            ureq::Error::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref()) {
                Some(error) => tls_hint(error),
                None => NOT_THERE,
            },
            _ => NOT_THERE,
        };
        Failure::unreachable(format!("{}: {error}; {hint}", self.server))
    }
}

const NOT_THERE: &str = "is it running? `campanile dev` starts one to try; --server names another";

/// What to do about a handshake that failed.
fn tls_hint(error: &rustls::Error) -> &'static str {
    use rustls::CertificateError::{BadSignature, NotValidForName, NotValidForNameContext, UnknownIssuer};
    match error {
        rustls::Error::InvalidMessage(_) => "it does not speak TLS there: write http:// if it serves in clear",
        // The latter: a CA of the same name, made anew.
        rustls::Error::InvalidCertificate(UnknownIssuer | BadSignature) => {
            "its certificate is not of a CA that is trusted here: --tls-ca names a file with the right one"
        }
        rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => {
            "its certificate does not name this host: call the node by a name that it has"
        }
        _ => "TLS with it failed; `campanile doctor` on its machine looks at the certificate",
    }
}

/// Whose certificates are believed: those of a file, else of the machine's CAs.
///
/// `setting`: what names the file.
pub(super) fn tls_config(ca: Option<&Path>, setting: &str) -> Result<TlsConfig, Failure> {
    let trusted = match ca {
        Some(file) => certificates("CA file", file).map_err(|why| Failure::usage(format!("{setting}: {why}")))?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    if trusted.is_empty() {
        let why = format!("this machine has no CA certificates: install ca-certificates, or give {setting} FILE");
        return Err(Failure::usage(why));
    }
    let trusted: Vec<_> = trusted.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::from(trusted))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .build())
}

/// Percent-encoded for a query or one segment of a path.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::new();
    campanile_core::action::http::percent_encode(text, &mut out);
    out
}
