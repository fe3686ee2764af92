//! HTTP by hand, so that what no client would send can be sent.
use super::server::HttpAnswer;
use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    time::Duration,
};

/// One request on a connection of its own.
pub fn call(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> HttpAnswer {
    let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        head.push_str(&format!("host: {address}\r\n"));
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() || matches!(method, "POST" | "PUT") {
        head.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    send(address, head.as_bytes(), body)
}

/// Bytes as they are, then the answer.
pub fn send(address: &str, head: &[u8], body: &[u8]) -> HttpAnswer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(head).unwrap();
    stream.write_all(body).unwrap();
    read(&mut BufReader::new(stream))
}

fn read(stream: &mut impl BufRead) -> HttpAnswer {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no status in {line:?}")).parse().unwrap();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut body = Vec::new();
    stream.read_to_end(&mut body).unwrap();
    HttpAnswer { status, headers, body }
}
