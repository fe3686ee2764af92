//! Somebody who is told: a server that keeps what is sent to it and answers as it is told, and the check of a signature by another
//! program than the one that made it.

use std::{
    collections::{HashMap, VecDeque},
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};

/// A message as it came.
#[derive(Clone, Debug)]
pub struct Message {
    pub line: String,
    /// By their names in small letters.
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Message {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Whether it is signed with this secret, by what Python says.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        const CHECK: &str = "import base64, hashlib, hmac, sys\n\
            secret, head, told = sys.argv[1:]\n\
            key = base64.b64decode(secret[6:]) if secret.startswith('whsec_') else secret.encode()\n\
            made = hmac.new(key, head.encode() + sys.stdin.buffer.read(), hashlib.sha256).digest()\n\
            sys.exit(0 if hmac.compare_digest('v1,' + base64.b64encode(made).decode(), told) else 1)\n";
        let of = |name: &str| self.headers.get(name).cloned().unwrap_or_default();
        let head = format!("{}.{}.", of("webhook-id"), of("webhook-timestamp"));
        let mut checking = Command::new("python3")
            .args(["-c", CHECK, secret, &head, &of("webhook-signature")])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        checking.stdin.take().unwrap().write_all(&self.body).unwrap();
        checking.wait().unwrap().success()
    }
}

/// Takes one message for each connection.
pub struct Receiver {
    pub address: SocketAddr,
    messages: Arc<Mutex<Vec<Message>>>,
}

impl Receiver {
    /// Answers with these status lines first, and then with 204. A status may have headers behind it, a line each.
    pub fn start(answers: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let receiver = Self { address: listener.local_addr().unwrap(), messages: Arc::default() };
        let messages = receiver.messages.clone();
        let mut answers: VecDeque<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let Some(message) = read(&mut BufReader::new(&stream)) else { continue };
                messages.lock().unwrap().push(message);
                let answer = answers.pop_front().unwrap_or_else(|| "204 No Content".to_owned());
                // Who has gone meanwhile hears nothing.
                let _ = stream.write_all(format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n").as_bytes());
            }
        });
        receiver
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn messages(&self) -> Vec<Message> {
        self.messages.lock().unwrap().clone()
    }
}

fn read(stream: &mut impl BufRead) -> Option<Message> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let header = |line: &String| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers: HashMap<String, String> = lines.iter().skip(1).filter_map(header).collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(Message { line: lines.first()?.clone(), headers, body })
}
