//! A PostgreSQL cluster of our own for the rivals: new, durable, on the loopback, and removed when its handle is
//! dropped. Clusters of the machine are never changed.

use crate::process::{children::OwnChild, node::free_port};
use rustix::process::{Signal, geteuid};
use std::{
    fs::{self, File},
    io,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// It must answer within this time of its start.
const READY: Duration = Duration::from_secs(30);
/// Its superuser, known in this cluster only.
const USER: &str = "campanile";
/// Whom it runs as when we are root: it refuses root. The first that the machine knows.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// Durable as ours is (the first three), and else as its documentation advises for many small writes: no checkpoint by time or size
/// within a window, no compilation of queries. What is not named has its default.
pub const SETTINGS: [(&str, &str); 10] = [
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("full_page_writes", "on"),
    ("shared_buffers", "1GB"),
    ("max_wal_size", "8GB"),
    ("checkpoint_timeout", "30min"),
    ("max_connections", "100"),
    ("jit", "off"),
    ("listen_addresses", "127.0.0.1"),
    ("unix_socket_directories", ""),
];

/// The settings on one line, for reports.
pub fn settings() -> String {
    let named = SETTINGS.iter().filter(|(_, value)| !value.is_empty());
    named.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
}

/// A cluster that answers. Dropping it ends all of its processes.
pub struct Cluster {
    child: OwnChild,
    programs: PathBuf,
    port: u16,
    pub version: String,
}

impl Cluster {
    /// `dir` is made new. All of its parents must be open to other users when we are root.
    pub fn start(dir: &Path) -> io::Result<Self> {
        let programs = programs()?;
        let user = user()?;
        fs::create_dir_all(dir)?;
        if let Some((uid, gid)) = user {
            chown(dir, Some(uid), Some(gid))?;
        }
        let log = File::create(dir.join("postgresql.log"))?;
        let command = |name: &str| -> io::Result<Command> {
            let mut command = Command::new(programs.join(name));
            command.current_dir(dir).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
            if let Some((uid, gid)) = user {
                command.uid(uid).gid(gid);
            }
            Ok(command)
        };
        let see = || format!("see {}", dir.join("postgresql.log").display());
        let mut make = command("initdb")?;
        make.arg("--pgdata").arg(dir.join("data"));
        make.args(["--username", USER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C"]);
        let mut making = OwnChild::start(&mut make)?;
        if !making.wait(READY)?.is_some_and(|status| status.success()) {
            return Err(io::Error::other(format!("initdb made no cluster; {}", see())));
        }
        let port = free_port()?;
        let mut serve = command("postgres")?;
        serve.arg("-D").arg(dir.join("data")).args(["-p", &port.to_string()]);
        for (name, value) in SETTINGS {
            serve.arg("-c").arg(format!("{name}={value}"));
        }
        // Its processes have groups of their own; at SIGQUIT the first one ends them all at once, without a last checkpoint.
        let child = OwnChild::start_asked_by(&mut serve, Signal::QUIT)?;
        let mut cluster = Self { child, programs, port, version: String::new() };
        let deadline = Instant::now() + READY;
        cluster.version = loop {
            match cluster.sql("postgres", "show server_version") {
                Ok(version) => break version,
                Err(_) if Instant::now() < deadline && cluster.child.wait(Duration::ZERO)?.is_none() => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(error) => {
                    return Err(io::Error::other(format!("the database does not answer: {error}; {}", see())));
                }
            }
        };
        Ok(cluster)
    }

    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Understood by JDBC as well, which takes the user as a parameter only.
    pub fn url(&self, database: &str) -> String {
        format!("postgresql://127.0.0.1:{}/{database}?user={USER}&sslmode=disable", self.port)
    }

    /// One statement by itself; gives what it says.
    pub fn sql(&self, database: &str, statement: &str) -> io::Result<String> {
        let out = Command::new(self.programs.join("psql"))
            .args(["--no-psqlrc", "-qAt", "-v", "ON_ERROR_STOP=1", "-d", &self.url(database), "-c", statement])
            .stdin(Stdio::null())
            .output()?;
        if !out.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&out.stderr).trim().to_owned()));
        }
        Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
    }
}

/// Debian keeps the programs of each version in a directory of its own; elsewhere they are in the path.
fn programs() -> io::Result<PathBuf> {
    let versions: Vec<fs::DirEntry> =
        fs::read_dir("/usr/lib/postgresql").map(|dir| dir.filter_map(Result::ok).collect()).unwrap_or_default();
    let number = |path: &Path| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let mut found: Vec<(u32, PathBuf)> =
        versions.iter().filter_map(|entry| Some((number(&entry.path())?, entry.path().join("bin")))).collect();
    found.retain(|(_, bin)| bin.join("initdb").exists() && bin.join("postgres").exists());
    found.sort();
    if let Some((_, bin)) = found.pop() {
        return Ok(bin);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .find(|dir| ["initdb", "postgres", "psql"].iter().all(|name| dir.join(name).exists()))
        .ok_or_else(|| io::Error::other("there is no PostgreSQL: apt-get install postgresql"))
}

/// None: we are not root, and it runs as we do.
fn user() -> io::Result<Option<(u32, u32)>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let known = fs::read_to_string("/etc/passwd")?;
    let found = UNPRIVILEGED.iter().find_map(|name| ids_of(&known, name));
    found.map(Some).ok_or_else(|| io::Error::other("PostgreSQL refuses root, and there is no user postgres"))
}

/// User and group of a name in the text of a passwd file.
fn ids_of(known: &str, name: &str) -> Option<(u32, u32)> {
    let fields: Vec<&str> = known.lines().map(|line| line.split(':').collect()).find(|f: &Vec<_>| f[0] == name)?;
    Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_durable_as_ours() {
        for durable in ["fsync", "synchronous_commit", "full_page_writes"] {
            assert!(SETTINGS.contains(&(durable, "on")), "{durable}");
        }
    }

    #[test]
    fn a_users_ids_are_found_by_the_whole_name() {
        let known =
            "root:x:0:0::/:/bin/sh\npostgres2:x:7:8::/:/bin/sh\npostgres:x:101:104:PostgreSQL,,,:/x:/bin/bash\n";
        assert_eq!(ids_of(known, "postgres"), Some((101, 104)));
        assert_eq!(ids_of(known, "post"), None);
        assert_eq!(ids_of("broken", "broken"), None);
    }
}
