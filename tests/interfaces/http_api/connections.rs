//! Ten thousand connections that say nothing, or little and slowly, from two other processes, over HTTP and over RPC: the node stays small,
//! and callers get in.
use super::server::{OPERATOR, Server};
use campanile_client::Client;
use campanile_schema::{
    limits::{
        HTTP_CONNECTIONS, HTTP_CONNECTIONS_PER_PEER, HTTP_HEAD_MS, RPC_CONNECTIONS, RPC_FRAME_BEFORE_HELLO_BYTES,
        RPC_UNFINISHED_BYTES, RPC_UNGREETED_PER_PEER,
    },
    rpc::{
        encode,
        hello::{ConnectionRole, Hello},
        method,
    },
    view::JobFilter,
};
use std::{
    io::{BufRead, BufReader, Lines, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

/// It only ends a test that hangs: whatever a busy machine does, it is not reached.
const PATIENCE: Duration = Duration::from_secs(180);
use crate::program as poll;

/// Of each process.
const CONNECTIONS: usize = 5_000;
/// Where the other processes connect.
const ADDRESS: &str = "CAMPANILE_TEST_ADDRESS";
/// What half of the connections begin with, and never end.
const BEGINS: &str = "CAMPANILE_TEST_BEGINS";
const HTTP: &str = "http";
const RPC: &str = "rpc";

#[test]
fn slow_and_silent_connections_are_bounded() {
    many_files();
    let server = Server::start();
    const { assert!(CONNECTIONS > HTTP_CONNECTIONS, "more than there are places for") };
    let before = resident_kb();
    let holders = Holders::start(&server.address, HTTP);
    assert_eq!(server.get("/healthz").status, 200, "places are kept for it");
    let begun = Instant::now();
    // Until the silent ones have had their time; otherwise this call would never be answered.
    while server.get("/api/v1/jobs").status != 200 {
        assert!(begun.elapsed() < PATIENCE, "no caller gets a place");
    }
    let grown = resident_kb().saturating_sub(before);
    assert!(grown < 256 << 10, "{grown} KiB more");
    holders.let_go();
    server.call(OPERATOR, "GET", "/api/v1/jobs", None).expect(200);
}

#[test]
fn slow_and_silent_rpc_connections_are_bounded() {
    many_files();
    let server = Server::start();
    const { assert!(2 * CONNECTIONS >= RPC_CONNECTIONS, "as many as there are places for") };
    let before = resident_kb();
    let holders = Holders::start(&server.rpc(), RPC);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let jobs = runtime.block_on(async {
        loop {
            // One too many is told so, and comes again.
            match Client::connect(server.rpc(), OPERATOR).await {
                Ok(client) => break client.job_list(JobFilter::default()).await.unwrap(),
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
        }
    });
    assert_eq!(jobs.items.len(), 0);
    let grown = resident_kb().saturating_sub(before);
    assert!(grown < 256 << 10, "{grown} KiB more");
    holders.let_go();
}

/// Before the hello a frame may be small only, and one address holds few connections; after it all unfinished frames have one budget.
#[test]
fn frames_that_do_not_end_are_bounded_for_all_connections_together() {
    const LARGE: usize = 3_900_000;
    let server = Server::start();
    let closed = |stream: &mut TcpStream, begun: &mut Vec<u8>| {
        let mut bytes = [0; 4096];
        stream.set_nonblocking(true).unwrap();
        loop {
            match stream.read(&mut bytes) {
                Ok(0) => return true,
                Ok(n) => begun.extend_from_slice(&bytes[..n]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return false,
                Err(_) => return true,
            }
        }
    };
    // A call whose params are bytes that do not end.
    let mut call = b"\x94\x00\x01\xa7job.get\x91\xc6".to_vec();
    call.extend_from_slice(&(LARGE as u32 + 1).to_be_bytes());

    let mut silent: Vec<_> = (0..RPC_UNGREETED_PER_PEER).map(|_| TcpStream::connect(server.rpc()).unwrap()).collect();
    let mut one_more = TcpStream::connect(server.rpc()).unwrap();
    let mut told = Vec::new();
    let _ = one_more.read_to_end(&mut told);
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("have not said hello yet"), "{told}");
    for stream in &mut silent {
        // The node may hang up before all of it is written.
        let _ = stream.write_all(&call).and_then(|()| stream.write_all(&vec![0; RPC_FRAME_BEFORE_HELLO_BYTES]));
    }
    let mut said = Vec::new();
    for stream in &mut silent {
        poll::eventually("a large frame before the hello is refused", || closed(stream, &mut said).then_some(()));
    }
    drop(silent);

    let mut hello = Vec::new();
    let role = ConnectionRole::Caller;
    let greeting = Hello { protocol: 1, token: OPERATOR.to_owned(), role, client: "test".to_owned() };
    encode::request(&mut hello, 1, method::HELLO, &greeting).unwrap();
    let count = RPC_UNFINISHED_BYTES / LARGE + 8;
    let mut greeted: Vec<_> = (0..count)
        .map(|_| {
            let mut stream = TcpStream::connect(server.rpc()).unwrap();
            stream.write_all(&hello).unwrap();
            // Its answer: from now on large frames may come.
            assert!(stream.read(&mut [0; 512]).unwrap() > 0);
            let _ = stream.write_all(&call).and_then(|()| stream.write_all(&vec![0; LARGE]));
            (stream, Vec::new())
        })
        .collect();
    poll::eventually("those beyond the budget are closed", || {
        let ended = greeted.iter_mut().filter_map(|(stream, said)| closed(stream, said).then_some(said));
        let texts: Vec<_> = ended.map(|said| String::from_utf8_lossy(said).into_owned()).collect();
        texts.iter().any(|text| text.contains("unfinished messages")).then_some(())
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listed = runtime.block_on(async {
        Client::connect(server.rpc(), OPERATOR).await.unwrap().job_list(JobFilter::default()).await
    });
    assert!(listed.is_ok(), "small calls are taken: {listed:?}");
}

/// One that is never done with its first line gets no answer, and no place for ever.
#[test]
fn a_head_that_does_not_end_ends_the_connection() {
    let server = Server::start();
    // Before the node can have heard of it: a machine that is busy makes the time longer only.
    let begun = Instant::now();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    loop {
        // The pause between two letters is the wait for an answer.
        match (stream.write_all(b"x"), stream.read(&mut [0; 64])) {
            (Err(_), _) | (_, Ok(0)) => break,
            (Ok(()), Ok(_)) => break,
            (Ok(()), Err(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            (Ok(()), Err(_)) => break,
        }
        assert!(begun.elapsed() < PATIENCE, "still open");
    }
    assert!(begun.elapsed() >= Duration::from_millis(HTTP_HEAD_MS - 1_000), "{:?}", begun.elapsed());
}

/// A connection from another address of this machine.
fn connect_from(source: Ipv4Addr, to: SocketAddr, within: Duration) -> std::io::Result<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let connected = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind((source, 0).into())?;
        tokio::time::timeout(within, socket.connect(to)).await?
    })?;
    let stream = connected.into_std()?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// A request and the head of its answer; the connection stays open.
fn ask(stream: &mut TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut answer = [0; 1024];
    let bytes = stream.read(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[..bytes]).into_owned()
}

fn idle_connections(server: &Server, source: Ipv4Addr, count: usize) -> Vec<TcpStream> {
    let to = server.address.parse().unwrap();
    let one = |_| {
        let mut stream = connect_from(source, to, Duration::from_secs(60)).unwrap();
        let answer = ask(&mut stream);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        stream
    };
    (0..count).map(one).collect()
}

#[test]
fn one_address_does_not_take_every_place() {
    many_files();
    let server = Server::start();
    let source = Ipv4Addr::new(127, 0, 0, 2);
    let held = idle_connections(&server, source, HTTP_CONNECTIONS_PER_PEER);
    let mut one_more = connect_from(source, server.address.parse().unwrap(), Duration::from_secs(60)).unwrap();
    one_more.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut told = String::new();
    let _ = one_more.read_to_string(&mut told);
    assert!(told.contains("503_DISPATCHER_OVERLOADED"), "{told}");
    assert!(told.contains("this address has"), "{told}");
    server.call(OPERATOR, "GET", "/api/v1/jobs", None).expect(200);
    drop(held);
}

#[test]
fn idle_connections_give_way() {
    many_files();
    let server = Server::start();
    let mut held = Vec::new();
    for n in 0..HTTP_CONNECTIONS / HTTP_CONNECTIONS_PER_PEER {
        let source = Ipv4Addr::new(127, 0, 1, 1 + n as u8);
        held.extend(idle_connections(&server, source, HTTP_CONNECTIONS_PER_PEER));
    }
    assert_eq!(held.len(), HTTP_CONNECTIONS);
    // Every place is taken, by those who say nothing any more.
    server.call(OPERATOR, "GET", "/api/v1/jobs", None).expect(200);
    let closed = held[0].read_to_end(&mut Vec::new());
    assert!(closed.is_ok(), "the one that was idle longest is closed: {closed:?}");
    assert!(ask(held.last_mut().unwrap()).starts_with("HTTP/1.1 200 "));
}

/// Not only the first one of a connection.
#[test]
fn every_head_has_its_time() {
    let server = Server::start();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    assert!(ask(&mut stream).starts_with("HTTP/1.1 200 "));
    stream.write_all(b"GET /healthz HTTP/1.1\r\n").unwrap();
    // An answer or a reset, but no wait without end.
    match stream.read(&mut [0; 64]) {
        Ok(0) => {}
        Ok(_) => panic!("half a head is answered"),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
    }
}

/// A place for each connection, as far as the system lets us.
fn many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Two processes that hold connections.
struct Holders {
    processes: Vec<Child>,
    /// Open as long as they may say something.
    _said: Vec<Lines<BufReader<ChildStdout>>>,
}

impl Holders {
    /// When they hold all that they can.
    fn start(address: &str, begins: &str) -> Self {
        let mut processes: Vec<Child> = (0..2).map(|_| holder(address, begins)).collect();
        let mut said: Vec<_> = processes.iter_mut().map(|h| BufReader::new(h.stdout.take().unwrap()).lines()).collect();
        for lines in &mut said {
            assert!(lines.any(|line| line.unwrap().contains("holding")), "it holds what it can");
        }
        Self { processes, _said: said }
    }

    fn let_go(self) {
        for mut holder in self.processes {
            drop(holder.stdin.take());
            assert!(holder.wait().unwrap().success());
        }
    }
}

fn holder(address: &str, begins: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "http_api::connections::holds_connections"])
        .env(ADDRESS, address)
        .env(BEGINS, begins)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Not a test of its own: what [`Holders`] start.
#[test]
#[ignore = "started by another test"]
fn holds_connections() {
    let Some(address) = std::env::var(ADDRESS).ok() else { return };
    many_files();
    let address: SocketAddr = address.parse().unwrap();
    let begin: &[u8] = match std::env::var(BEGINS).unwrap().as_str() {
        HTTP => b"GET /api/v1/jobs HTTP/1.1\r\nhost: ",
        // An array of four, a request's kind and id: its method is to follow.
        RPC => &[0x94, 0x00, 0x01],
        other => panic!("{other} is not known"),
    };
    let mut held: Vec<TcpStream> = Vec::new();
    for n in 0..CONNECTIONS {
        // One that does not get through waits in front of the node; it is not waited for.
        // From many addresses, since each has its bound.
        let source = Ipv4Addr::new(127, 0, 2, 1 + (n % 5) as u8);
        let Ok(mut stream) = connect_from(source, address, Duration::from_millis(5)) else { continue };
        if n % 2 == 0 {
            let _ = stream.write_all(begin);
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
