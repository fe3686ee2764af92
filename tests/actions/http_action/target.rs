//! A server that requests are sent to: writes down what it hears, answers as the test says, and sees when a connection is closed.

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// A request as it arrived; names of headers in small letters.
#[derive(Clone, Debug, Default)]
pub struct ReceivedRequest {
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

/// What the server does with a request.
pub enum Say {
    Answer(u16, Vec<(&'static str, String)>, String),
    /// Nothing, until the caller closes.
    Nothing,
    /// These bytes.
    Bytes(&'static [u8]),
}

pub fn ok(body: &str) -> Say {
    Say::Answer(200, Vec::new(), body.to_owned())
}

pub fn redirect(to: impl Into<String>) -> Say {
    Say::Answer(307, vec![("location", to.into())], String::new())
}

type Mind = dyn Fn(&ReceivedRequest) -> Say + Send + Sync;

#[derive(Clone)]
pub struct Target {
    pub address: SocketAddr,
    heard: Arc<Mutex<Vec<ReceivedRequest>>>,
    connections: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
}

impl Target {
    pub fn start(mind: impl Fn(&ReceivedRequest) -> Say + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1:0", None, mind)
    }

    pub fn at(
        address: &str,
        tls: Option<Arc<ServerConfig>>,
        mind: impl Fn(&ReceivedRequest) -> Say + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let target = Self {
            address: listener.local_addr().unwrap(),
            heard: Arc::default(),
            connections: Arc::default(),
            closed: Arc::default(),
        };
        let (own, mind): (_, Arc<Mind>) = (target.clone(), Arc::new(mind));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                own.connections.fetch_add(1, Ordering::SeqCst);
                let (own, mind, tls) = (own.clone(), mind.clone(), tls.clone());
                std::thread::spawn(move || match tls {
                    None => own.serve(stream, &*mind),
                    Some(tls) => own.serve(StreamOwned::new(ServerConnection::new(tls).unwrap(), stream), &*mind),
                });
            }
        });
        target
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
    pub fn heard(&self) -> Vec<ReceivedRequest> {
        self.heard.lock().unwrap().clone()
    }
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
    /// Callers that closed while they were told nothing.
    pub fn closed(&self) -> usize {
        self.closed.load(Ordering::SeqCst)
    }

    fn serve(&self, mut stream: impl Read + Write, mind: &Mind) {
        let Some(heard) = read(&mut stream) else { return };
        let say = mind(&heard);
        self.heard.lock().unwrap().push(heard);
        match say {
            Say::Answer(status, headers, body) => {
                let mut text = format!("HTTP/1.1 {status} Said\r\ncontent-length: {}\r\n", body.len());
                for (name, value) in headers {
                    text.push_str(&format!("{name}: {value}\r\n"));
                }
                let _ = stream.write_all(format!("{text}\r\n{body}").as_bytes());
            }
            Say::Bytes(bytes) => drop(stream.write_all(bytes)),
            Say::Nothing => {
                while !matches!(stream.read(&mut [0; 64]), Ok(0) | Err(_)) {}
                self.closed.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

fn read(stream: &mut (impl Read + Write)) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
        // The beginning of TLS: told in clear that it is not spoken here.
        if bytes[0] == 0x16 {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ').map(str::to_owned);
    let mut heard = ReceivedRequest { method: first.next()?, path: first.next()?, ..ReceivedRequest::default() };
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        assert!(heard.headers.insert(name.to_ascii_lowercase(), value.to_owned()).is_none(), "{name} twice");
    }
    let length = heard.headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = bytes.split_off(end + 4);
    while body.len() < length {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => body.extend_from_slice(&buffer[..count]),
        }
    }
    heard.body = String::from_utf8(body).unwrap();
    Some(heard)
}

/// Connects, so that a server that says it heard nothing is known to hear.
pub fn can_be_reached(target: &Target) -> bool {
    TcpStream::connect_timeout(&target.address, Duration::from_secs(5)).is_ok()
}
