//! A node in this process, and the three ways to call it.

use campanile::node::Node as Real;
use campanile_schema::{
    error::{ApiError, ErrorCode},
    rpc::{
        codec::{AFTER_HELLO, Decoder, Message, from_map},
        encode,
        hello::{ConnectionRole, Hello},
        method,
    },
};
use campanile_security::auth::{Authenticator, Caller, Role};
use serde_json::Value;
use std::{
    io::{Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
    time::Duration,
};
use tokio::runtime::Runtime;

use crate::support;

pub const OPERATOR: &str = "operator-token";
pub const TENANT: &str = "tenant-token";

/// See the module's text.
pub struct Node {
    runtime: Option<Runtime>,
    real: Option<Real>,
    dir: tempfile::TempDir,
    http: String,
    rpc: String,
}

/// One HTTP request.
pub struct Http {
    pub token: &'static str,
    pub method: &'static str,
    pub path: String,
    pub headers: &'static [(&'static str, &'static str)],
    pub body: Vec<u8>,
}

/// One RPC request, or bytes that are none.
pub enum Rpc {
    Call { token: &'static str, method: &'static str, params: Value },
    Bytes(Vec<u8>),
}

/// One command line; `FILE` in it is a file with the input.
pub struct Cli {
    pub token: &'static str,
    pub args: Vec<String>,
    pub file: Vec<u8>,
}

impl Node {
    pub fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut options = support::options(&dir.path().join("node"));
        let caller = |name: &str, role, tenant: Option<&str>| Caller {
            name: name.to_owned(),
            role,
            tenant: tenant.map(str::to_owned),
            pools: Vec::new(),
        };
        options.authenticator = Authenticator::fixed(vec![
            (OPERATOR, caller("ops", Role::Operator, None)),
            (TENANT, caller("fin", Role::Tenant, Some("finance"))),
        ]);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let real = runtime.block_on(Real::start(options)).unwrap();
        let (http, rpc) = (real.http_addr().to_string(), real.rpc_addr().to_string());
        Self { runtime: Some(runtime), real: Some(real), dir, http, rpc }
    }

    /// Code and status of an answer.
    pub fn http(&self, call: &Http) -> (String, u16) {
        let (status, body) = self.exchange(call);
        let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
        assert_eq!(problem["status"].as_u64(), Some(u64::from(status)), "{problem}");
        assert!(problem["advice"].as_str().is_some_and(|advice| !advice.is_empty()), "{problem}");
        (problem["code"].as_str().unwrap_or("no code").to_owned(), status)
    }

    /// A good answer's body.
    pub fn done(&self, method: &'static str, path: &str, body: &Value) -> Value {
        let call = Http { token: OPERATOR, method, path: path.to_owned(), headers: &[], body: body.to_string().into() };
        let (status, body) = self.exchange(&call);
        assert!((200..300).contains(&status), "{method} {path}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap_or_default()
    }

    pub fn accepted(&self, call: &Http) {
        let (status, body) = self.exchange(call);
        assert!((200..300).contains(&status), "{}", String::from_utf8_lossy(&body));
    }

    pub fn page(&self, path: &str) -> String {
        let call = Http { token: OPERATOR, method: "GET", path: path.to_owned(), headers: &[], body: Vec::new() };
        String::from_utf8(self.exchange(&call).1).unwrap()
    }

    fn exchange(&self, call: &Http) -> (u16, Vec<u8>) {
        let mut head =
            format!("{} {} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", call.method, call.path, self.http);
        head += &format!("authorization: Bearer {}\r\ncontent-length: {}\r\n", call.token, call.body.len());
        for (name, value) in call.headers {
            head += &format!("{name}: {value}\r\n");
        }
        let mut stream = connect(&self.http);
        stream.write_all((head + "\r\n").as_bytes()).unwrap();
        stream.write_all(&call.body).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let text = String::from_utf8_lossy(&answer);
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        let at = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        (status, answer.split_off(at))
    }

    /// The same good call so many times, sent at once.
    pub fn many(&self, method: &str, params: &Value, count: usize) {
        let mut stream = connect(&self.rpc);
        let mut out = Vec::new();
        encode::request(&mut out, 0, method::HELLO, &hello(OPERATOR)).unwrap();
        for n in 1..=count {
            encode::request(&mut out, u32::try_from(n).unwrap(), method, params).unwrap();
        }
        stream.write_all(&out).unwrap();
        let (mut decoder, mut answers, mut bytes) = (Decoder::new(AFTER_HELLO), 0, vec![0; 64 << 10]);
        while answers <= count {
            if let Some(message) = decoder.next_message().unwrap() {
                assert!(matches!(message, Message::Response { error: [0xc0], .. }), "{message:?}");
                answers += 1;
                continue;
            }
            let read = stream.read(&mut bytes).unwrap();
            assert_ne!(read, 0, "closed after {answers} answers");
            decoder.push(&bytes[..read]);
        }
    }

    /// Code and status in the code of the first error that comes back.
    pub fn rpc(&self, call: &Rpc) -> (String, u16) {
        let mut stream = connect(&self.rpc);
        let mut out = Vec::new();
        let token = match call {
            Rpc::Call { token, .. } => *token,
            Rpc::Bytes(_) => OPERATOR,
        };
        encode::request(&mut out, 0, method::HELLO, &hello(token)).unwrap();
        match call {
            Rpc::Call { method, params, .. } => encode::request(&mut out, 1, method, params).unwrap(),
            Rpc::Bytes(bytes) => out.extend_from_slice(bytes),
        }
        // A node that refuses the first bytes may close before the last ones are sent.
        let _ = stream.write_all(&out);
        let mut decoder = Decoder::new(AFTER_HELLO);
        loop {
            let error: Option<ApiError> = match decoder.next_message().unwrap() {
                Some(Message::Response { error, .. }) if error != [0xc0] => Some(from_map(error).unwrap()),
                Some(Message::Response { id: 1, .. }) => return ("no error".to_owned(), 0),
                Some(Message::Notification { params, .. }) => Some(params.read().unwrap()),
                Some(Message::Response { .. } | Message::Request { .. }) => continue,
                None => None,
            };
            if let Some(error) = error {
                let status = ErrorCode::parse(&error.code).map_or(0, ErrorCode::status);
                return (error.code, status);
            }
            let mut bytes = [0; 4096];
            match stream.read(&mut bytes).unwrap() {
                0 => return ("closed".to_owned(), 0),
                n => decoder.push(&bytes[..n]),
            }
        }
    }

    /// Code in what the command line says, and its exit code.
    pub fn cli(&self, call: &Cli) -> (String, u16) {
        let file = self.dir.path().join("input.json");
        std::fs::write(&file, &call.file).unwrap();
        let file = file.to_str().unwrap();
        let args: Vec<&str> = call.args.iter().map(|arg| if arg == "FILE" { file } else { arg }).collect();
        let (exit, told) = cli(&format!("http://{}", self.http), call.token, &args, "");
        let code =
            ErrorCode::ALL.iter().find(|code| told.contains(code.as_str())).map_or(told.as_str(), |c| c.as_str());
        (code.to_owned(), u16::try_from(exit).unwrap())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let (Some(runtime), Some(real)) = (self.runtime.take(), self.real.take()) {
            runtime.block_on(real.stop());
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

fn hello(token: &str) -> Hello {
    Hello { protocol: 1, token: token.to_owned(), role: ConnectionRole::Caller, client: "test".to_owned() }
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Exit code and stderr of the real program.
pub fn cli(server: &str, token: &str, args: &[&str], input: &str) -> (i32, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_campanile"))
        .env_clear()
        .envs([
            ("PATH", "/usr/bin:/bin"),
            ("HOME", "/nonexistent"),
            ("CAMPANILE_SERVER", server),
            ("CAMPANILE_API_TOKEN", token),
        ])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its arguments does not read.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let done = child.wait_with_output().unwrap();
    (done.status.code().unwrap_or(-1), String::from_utf8_lossy(&done.stderr).into_owned())
}
