//! A CQL server of the tests' own: `deploy/cassandra/cassandra.sh`, which ends with this process, however that ends.

use std::{
    io::{BufRead, BufReader, Lines, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// Who holds it holds the server: the script ends when its stdin does.
pub struct Server {
    _script: Child,
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    /// Its data; `node1/data/KEYSPACE/TABLE-ID` holds the files of a table.
    pub dir: PathBuf,
    /// `host:port` of each node.
    pub addresses: Vec<String>,
    /// Processes of the nodes, as they were started first.
    pub pids: Vec<u32>,
}

impl Server {
    /// Starts nodes with empty data and waits until they are ready.
    pub fn start(nodes: usize) -> Self {
        Self::start_with(nodes, &[])
    }

    /// With more in the script's environment.
    pub fn start_with(nodes: usize, environment: &[(&str, &str)]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/cassandra/cassandra.sh");
        // The script removes it in the end.
        let dir = tempfile::tempdir().unwrap().keep();
        let mut script = Command::new(script)
            .args(["run".as_ref(), dir.as_os_str(), nodes.to_string().as_ref()])
            .env("REMOVE", "1")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let commands = script.stdin.take().unwrap();
        let answers = BufReader::new(script.stdout.take().unwrap()).lines();
        let mut server = Self { _script: script, commands, answers, dir, addresses: Vec::new(), pids: Vec::new() };
        let told = server.until("ready");
        for line in told.iter().filter_map(|line| line.strip_prefix("node ")) {
            let mut words = line.split(' ').skip(1);
            server.addresses.extend(words.next().map(str::to_owned));
            server.pids.extend(words.next().and_then(|pid| pid.parse::<u32>().ok()));
        }
        server
    }

    /// CPU that the nodes have used, microseconds.
    pub fn cpu_us(&self) -> u64 {
        const TICK_US: u64 = 10_000;
        let of = |pid: &u32| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            // Behind the name, which may hold anything: the 12th and 13th field are user and system time.
            let fields: Vec<u64> = text
                .rsplit_once(')')
                .unwrap()
                .1
                .split_whitespace()
                .skip(11)
                .take(2)
                .map(|f| f.parse().unwrap())
                .collect();
            (fields[0] + fields[1]) * TICK_US
        };
        self.pids.iter().map(of).sum()
    }

    /// `kill 1`, `start 1`, `pause 1`, `resume 1`: done when it returns.
    pub fn tell(&mut self, command: &str, answer: &str) {
        writeln!(self.commands, "{command}").unwrap();
        self.until(answer);
    }

    /// Lines up to the one that is waited for.
    fn until(&mut self, last: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line = self.answers.next().expect("the server ended; its script says why on stderr").unwrap();
            if line == last {
                return lines;
            }
            lines.push(line);
        }
    }
}
