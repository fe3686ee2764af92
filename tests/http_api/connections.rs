//! Ten thousand connections that say nothing, or little and slowly, from two other processes: the node stays small, and callers get in.
use crate::server::{OPERATOR, Server};
use campanile_schema::limits::{HTTP_CONNECTIONS, HTTP_HEAD_MS};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Of each process.
const CONNECTIONS: usize = 5_000;
/// Where the other processes connect.
const ADDRESS: &str = "CAMPANILE_TEST_ADDRESS";

#[test]
fn slow_and_silent_connections_are_bounded() {
    many_files();
    let server = Server::start();
    const { assert!(CONNECTIONS > HTTP_CONNECTIONS, "more than there are places for") };
    let before = resident_kb();
    let mut holders: Vec<Child> = (0..2).map(|_| holder(&server.address)).collect();
    let mut said: Vec<_> = holders.iter_mut().map(|h| BufReader::new(h.stdout.take().unwrap()).lines()).collect();
    for lines in &mut said {
        assert!(lines.any(|line| line.unwrap().contains("holding")), "it holds what it can");
    }
    let begun = Instant::now();
    server.call(OPERATOR, "GET", "/api/v1/jobs", None).expect(200);
    // Whoever waits in front is let go after that time, two rounds of them.
    let most = Duration::from_millis(3 * HTTP_HEAD_MS + 5_000);
    assert!(begun.elapsed() < most, "a caller waited {:?}", begun.elapsed());
    let grown = resident_kb().saturating_sub(before);
    assert!(grown < 256 << 10, "{grown} KiB more");
    for mut holder in holders {
        drop(holder.stdin.take());
        assert!(holder.wait().unwrap().success());
    }
    server.call(OPERATOR, "GET", "/api/v1/jobs", None).expect(200);
}

/// One that is never done with its first line gets no answer, and no place for ever.
#[test]
fn a_head_that_does_not_end_ends_the_connection() {
    let server = Server::start();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let begun = Instant::now();
    loop {
        // The pause between two letters is the wait for an answer.
        match (stream.write_all(b"x"), stream.read(&mut [0; 64])) {
            (Err(_), _) | (_, Ok(0)) => break,
            (Ok(()), Ok(_)) => break,
            (Ok(()), Err(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            (Ok(()), Err(_)) => break,
        }
        assert!(begun.elapsed() < Duration::from_millis(HTTP_HEAD_MS + 10_000), "still open");
    }
    assert!(begun.elapsed() >= Duration::from_millis(HTTP_HEAD_MS - 1_000), "{:?}", begun.elapsed());
}

/// A place for each connection, as far as the system lets us.
fn many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

fn holder(address: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "connections::holds_connections"])
        .env(ADDRESS, address)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Not a test of its own: the process that [`slow_and_silent_connections_are_bounded`] starts.
#[test]
#[ignore = "started by another test"]
fn holds_connections() {
    let Some(address) = std::env::var(ADDRESS).ok() else { return };
    many_files();
    let address: SocketAddr = address.parse().unwrap();
    let mut held: Vec<TcpStream> = Vec::new();
    for n in 0..CONNECTIONS {
        // One that does not get through waits in front of the node; it is not waited for.
        let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_millis(5)) else { continue };
        if n % 2 == 0 {
            let _ = stream.write_all(b"GET /api/v1/jobs HTTP/1.1\r\nhost: ");
        }
        held.push(stream);
    }
    println!("holding {}", held.len());
    let _ = std::io::stdin().read(&mut [0; 1]);
}

/// Memory of this process, in which the node is.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().split(' ').next().unwrap().parse().unwrap()
}
