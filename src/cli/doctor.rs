//! `campanile doctor`: looks at everything that a node needs, and says what to do about what is wrong. Changes nothing, but for a file
//! that it makes and takes away in the data directory.

use super::{
    failure::Failure,
    output::{self, Format},
    remote::{Connection, Remote},
    server::{environment, on_runtime},
};
use crate::{config::Config, zones};
use campanile_actors::disk_pressure::{DiskPressure, FREE_LEAST_BYTES};
use campanile_schema::{
    operations::{SystemInfo, rows},
    time::Timestamp,
};
use campanile_security::{auth::Authenticator, secrets::KeyRing, tls::Age};
use campanile_store::cql::schema;
use serde::Serialize;
use serde_json::{Value, json};
use std::{
    fs, io,
    io::Write,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
};

/// Free room below which a node soon cannot write, MiB.
const ROOM_FAIL_MB: u64 = 256;
/// Free room that a node should have, MiB.
const ROOM_WARN_MB: u64 = FREE_LEAST_BYTES >> 20;
const LESS_HISTORY: &str = "free some, or keep less history ([history] retention_days, max_mb)";
/// Open files that the limits of connections can need.
const OPEN_FILES: u64 = 16_384;
/// Difference of clocks that shows in schedules, milliseconds.
const CLOCK_WARN_MS: i64 = 500;
/// What `/readyz` says of a token file that the node could not take over.
const TOKEN_FILE_NOT_IN_FORCE: &str = "NOT_IN_FORCE";
/// Difference at which a cluster refuses a node, and schedules are plainly wrong, milliseconds.
const CLOCK_FAIL_MS: i64 = 30_000;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Configuration file of the node [default: the defaults, and the environment over them]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Warn,
    Fail,
}

/// What was found about one thing.
#[derive(Serialize)]
struct Finding {
    state: State,
    about: &'static str,
    told: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    advice: &'static str,
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, about: &'static str, told: impl Into<String>) {
        self.0.push(Finding { state: State::Ok, about, told: told.into(), advice: "" });
    }
    fn warn(&mut self, about: &'static str, told: impl Into<String>, advice: &'static str) {
        self.0.push(Finding { state: State::Warn, about, told: told.into(), advice });
    }
    fn fail(&mut self, about: &'static str, told: impl Into<String>, advice: &'static str) {
        self.0.push(Finding { state: State::Fail, about, told: told.into(), advice });
    }
}

pub(super) fn run(args: Args, connection: &Connection, format: Format) -> Result<(), Failure> {
    let mut connection = connection.clone();
    let mut found = Findings::default();
    found.ok("version", concat!("campanile ", env!("CARGO_PKG_VERSION")));
    let shown = args.config.as_ref().map_or_else(|| "the defaults".to_owned(), |file| file.display().to_string());
    match Config::load(args.config.as_deref(), environment()) {
        Err(errors) => found.fail(
            "configuration",
            errors.to_string(),
            "correct it; `campanile config default` shows every setting",
        ),
        Ok(config) => {
            found.ok("configuration", shown);
            if args.config.is_some() && connection.server.is_none() {
                connection.server = Some(address_of(&config));
            }
            data_directory(Path::new(&config.node.data_dir), &mut found);
            files(&config, &mut found);
            ports(&config, &mut found);
            certificate(&config, &mut found);
            cluster(&config, &mut found);
        }
    }
    open_files(&mut found);
    node(Remote::new(&connection), &mut found);
    let Findings(found) = found;
    match format {
        Format::Table => output::text(&text(&found)),
        Format::Json | Format::Yaml => output::one(format, &json!({"findings": found}))?,
    }
    let failed = found.iter().filter(|finding| finding.state == State::Fail).count();
    if failed == 0 { Ok(()) } else { Err(Failure::here(format!("{failed} of {} checks failed", found.len()))) }
}

/// Where the node of a configuration is to be asked. One that listens everywhere also listens on loopback.
fn address_of(config: &Config) -> String {
    let mut address = config.http.listen;
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    let scheme = if config.tls.files().is_some() && config.tls.http { "https" } else { "http" };
    format!("{scheme}://{address}")
}

fn text(found: &[Finding]) -> String {
    let width = found.iter().map(|finding| finding.about.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { state, about, told, advice } in found {
        let state = match state {
            State::Ok => "ok  ",
            State::Warn => "warn",
            State::Fail => "FAIL",
        };
        text.push_str(&format!("{state}  {about:<width$}  {}\n", told.replace('\n', "; ")));
        if !advice.is_empty() {
            text.push_str(&format!("      {:<width$}  what to do: {advice}\n", ""));
        }
    }
    text
}

fn data_directory(dir: &Path, found: &mut Findings) {
    let shown = dir.display();
    let about = "data directory";
    if !dir.exists() {
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match writable(parent) {
            Ok(()) => found.ok(about, format!("{shown} is not there yet; the node makes it")),
            Err(error) => found.fail(
                about,
                format!("{shown} is not there and cannot be made: {error}"),
                "make it, and give it to the user that the node runs as",
            ),
        }
        return room(parent, found);
    }
    match writable(dir) {
        Ok(()) => found.ok(about, format!("{shown} can be written")),
        Err(error) => {
            found.fail(
                about,
                format!("{shown}: {error}"),
                "give it to the user that the node runs as (chown, chmod u+rwx)",
            );
        }
    }
    room(dir, found);
}

/// Written and synced, as the journal is.
fn writable(dir: &Path) -> io::Result<()> {
    let probe = dir.join(format!(".doctor-{}", std::process::id()));
    let written = fs::File::create_new(&probe).and_then(|mut file| {
        file.write_all(b"doctor")?;
        file.sync_all()
    });
    let removed = if probe.exists() { fs::remove_file(&probe) } else { Ok(()) };
    written.and(removed)
}

fn room(dir: &Path, found: &mut Findings) {
    let about = "free space";
    match rustix::fs::statvfs(dir) {
        Err(error) => found.warn(about, format!("{}: {error}", dir.display()), "look at it with df"),
        Ok(room) => {
            let free = room.f_bavail.saturating_mul(room.f_frsize) >> 20;
            let told = format!("{free} MiB");
            let low = || format!("{}: {told} are free, {ROOM_WARN_MB} should be", DiskPressure::FreeRoomLow.as_str());
            match free {
                ..ROOM_FAIL_MB => found.fail(about, low(), LESS_HISTORY),
                ROOM_FAIL_MB..ROOM_WARN_MB => found.warn(about, low(), LESS_HISTORY),
                _ => found.ok(about, told),
            }
        }
    }
}

/// Files that settings name.
fn files(config: &Config, found: &mut Findings) {
    match config.auth.token_file.as_str() {
        "" => found.warn(
            "token file",
            "none: `campanile server` does not start without one",
            "campanile token new --name me --role operator --append tokens, and set [auth] token_file",
        ),
        file => match Authenticator::from_file(Path::new(file)) {
            Ok(_) => found.ok("token file", file),
            Err(error) => found.fail("token file", error.to_string(), "correct the line, or the file's mode"),
        },
    }
    match config.secrets.key_file.as_str() {
        "" => found.ok("secret params", "no key file: jobs with secretParams are refused"),
        file => match KeyRing::from_file(Path::new(file)) {
            Ok(_) => found.ok("secret params", file),
            Err(why) => found.fail("secret params", why, "`campanile secrets new-key` makes a line of it"),
        },
    }
    match zones::use_directory(&config.node.tzdb_dir) {
        Ok(()) => found.ok("time zones", format!("tzdb {}", campanile_core::cron::tzdb_version())),
        Err(why) => found.fail(
            "time zones",
            why,
            "name a directory such as /usr/share/zoneinfo, or leave [node] tzdb_dir empty",
        ),
    }
    if let Some(files) = config.files() {
        match fs::read_dir(&files.dir) {
            Ok(_) => found.ok("[files] dir", files.dir.display().to_string()),
            Err(error) => found.fail(
                "[files] dir",
                format!("{}: {error}", files.dir.display()),
                "make it readable for the user that the node runs as",
            ),
        }
    }
}

fn ports(config: &Config, found: &mut Findings) {
    for (about, address) in [("HTTP address", config.http.listen), ("RPC address", config.rpc.listen)] {
        port(about, address, found);
    }
}

fn port(about: &'static str, address: SocketAddr, found: &mut Findings) {
    match TcpListener::bind(address) {
        Ok(_) => found.ok(about, format!("{address} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            found.warn(
                about,
                format!("{address} is in use"),
                "fine when this node runs already; else choose another address",
            );
        }
        Err(error) => {
            found.fail(about, format!("{address}: {error}"), "choose an address of this machine, and a port above 1023")
        }
    }
}

/// That callers see.
fn certificate(config: &Config, found: &mut Findings) {
    let about = "TLS";
    let Some(files) = config.tls.files() else {
        let open = [config.http.listen, config.rpc.listen].iter().any(|address| !address.ip().is_loopback());
        return if open {
            let advice = "set [tls] cert_file and key_file, or put a TLS proxy in front";
            found.warn(about, "none, and other machines can reach a port: tokens travel in clear", advice);
        } else {
            found.ok(about, "none: both ports speak in clear, to this machine only");
        };
    };
    match files.check() {
        Err(why) => found.fail(about, why, "see [tls] cert_file and key_file"),
        Ok(validity) => {
            let now = Timestamp(jiff::Timestamp::now().as_millisecond());
            let (until, names) = (validity.until, validity.names.join(", "));
            let told = format!("certificate and key fit together; valid until {until}, for {names}");
            if names.is_empty() {
                let advice = "make one with the names of the node as subject alternative names";
                found.warn(about, format!("valid until {until}, but it names no host: clients refuse it"), advice);
            } else if validity.age(now) == Age::Fine {
                found.ok(about, told);
            } else {
                found.warn(about, told, "renew it; the node takes the new files without a restart");
            }
        }
    }
}

fn cluster(config: &Config, found: &mut Findings) {
    if let Some(options) = config.cql() {
        let mut missing = 0;
        let checked = on_runtime(async {
            let report = schema::check(&options).await.map_err(|error| Failure::unreachable(error.to_string()))?;
            missing = report.missing.len();
            Ok(())
        });
        let (about, keyspace) = ("CQL store", &options.keyspace);
        match checked {
            Ok(()) if missing == 0 => found.ok(about, format!("{keyspace}: all tables are there")),
            Ok(()) => {
                let told = format!("{keyspace}: {missing} steps of the schema are missing");
                found.fail(about, told, "run `campanile schema apply`");
            }
            Err(failure) => {
                let advice = "is it running, and are [cql] contact_points, data_center and user right?";
                found.fail(about, failure.message, advice);
            }
        }
    }
    if config.cluster.is_on() {
        match config.cluster.tls_files().check(&config.cluster.name) {
            Ok(()) => found.ok("certificates", "those of the gateway can be used"),
            Err(why) => found.fail("certificates", why, "see [cluster] tls_cert_file, tls_key_file, tls_ca_file"),
        }
    }
}

fn open_files(found: &mut Findings) {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    match limit {
        Some(limit) if limit < OPEN_FILES => found.warn(
            "open files",
            format!("at most {limit}; many connections need up to {OPEN_FILES}"),
            "raise it: ulimit -n, or LimitNOFILE= in the systemd unit",
        ),
        Some(limit) => found.ok("open files", format!("at most {limit}")),
        None => found.ok("open files", "no limit"),
    }
}

/// The node that commands talk to, when one answers.
fn node(remote: Result<Remote, Failure>, found: &mut Findings) {
    let ready = remote.and_then(|remote| remote.get(rows::PAGE_READYZ.path(), &[]).map(|ready| (remote, ready)));
    let (remote, ready) = match ready {
        Ok(ready) => ready,
        Err(failure) => {
            let advice = "fine when none is meant to run; --server names another, /readyz tells why one is not ready";
            return found.warn("node", failure.message, advice);
        }
    };
    found.ok("node", "ready");
    if let Some(broken) = ready["brokenFiles"].as_u64().filter(|broken| *broken > 0) {
        found.warn(
            "node's files",
            format!("{broken} are put aside"),
            "`campanile system info` says what is wrong with them",
        );
    }
    if ready["tokenFile"] == TOKEN_FILE_NOT_IN_FORCE {
        found.fail(
            "node's tokens",
            format!(
                "{TOKEN_FILE_NOT_IN_FORCE}: the token file has an error; the tokens that the node read before stay valid, also those \
                 whose lines were removed"
            ),
            "on the node's machine, `campanile doctor --config FILE` and the node's log name the line; correct it",
        );
    }
    disk(&ready, found);
    let before = Timestamp(jiff::Timestamp::now().as_millisecond());
    match remote.get(SystemInfo::PATH, &[]) {
        Err(failure) => found.warn("node's facts", failure.message, "give an operator's token: --token"),
        Ok(facts) => {
            let after = Timestamp(jiff::Timestamp::now().as_millisecond());
            let theirs = facts["version"].as_str().unwrap_or("?");
            if theirs == env!("CARGO_PKG_VERSION") {
                found.ok("node's version", theirs);
            } else {
                found.warn(
                    "node's version",
                    format!("{theirs}, this is {}", env!("CARGO_PKG_VERSION")),
                    "use the same release",
                );
            }
            if let Some(now) = facts["now"].as_str().and_then(|now| now.parse::<Timestamp>().ok()) {
                clock(now.ms(), before.ms(), after.ms(), found);
            }
        }
    }
}

/// What the node's own disk will not do for. Silent otherwise: a node of a cluster does not look at it.
fn disk(ready: &Value, found: &mut Findings) {
    for name in ready["diskShort"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let why = match DiskPressure::ALL.into_iter().find(|why| why.as_str() == name) {
            Some(DiskPressure::FreeRoomLow) => format!("less than {ROOM_WARN_MB} MiB are free"),
            Some(DiskPressure::HistoryOutgrowsDisk) => {
                "at the pace of the last hour history needs more until its retention than is free; the node's log and its metric \
                 campanile_history_needs_bytes say how much"
                    .to_owned()
            }
            None => "this release does not know it; the node's log does".to_owned(),
        };
        found.warn("node's disk", format!("{name}: {why}"), LESS_HISTORY);
    }
}

/// The node's clock was read between two reads of ours.
fn clock(theirs: i64, before: i64, after: i64, found: &mut Findings) {
    let off = (before - theirs).max(theirs - after).max(0);
    let told = format!("{off} ms away from the node's");
    let advice = "let NTP or chrony set both clocks";
    match off {
        ..CLOCK_WARN_MS => found.ok("clock", if off == 0 { "as the node's".to_owned() } else { told }),
        CLOCK_WARN_MS..CLOCK_FAIL_MS => found.warn("clock", told, advice),
        _ => found.fail("clock", told, advice),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_node_of_a_configuration_is_asked_where_it_listens() {
        let mut config = Config::default();
        for (listen, asked) in [
            ("127.0.0.1:9900", "http://127.0.0.1:9900"),
            ("0.0.0.0:9900", "http://127.0.0.1:9900"),
            ("[::]:9900", "http://[::1]:9900"),
            ("192.0.2.7:9900", "http://192.0.2.7:9900"),
        ] {
            config.http.listen = listen.parse().unwrap();
            assert_eq!(address_of(&config), asked);
        }
    }

    #[test]
    fn clocks_are_compared_within_the_time_of_the_call() {
        for (theirs, expected) in
            [(1_000, State::Ok), (1_050, State::Ok), (400, State::Warn), (2_000, State::Warn), (100_000, State::Fail)]
        {
            let mut found = Findings::default();
            clock(theirs, 1_000, 1_100, &mut found);
            assert!(found.0[0].state == expected, "{theirs}");
        }
    }

    #[test]
    fn a_disk_that_will_not_do_is_told_by_name_with_what_to_do() {
        let told = |ready: Value| {
            let mut found = Findings::default();
            disk(&ready, &mut found);
            text(&found.0)
        };
        assert_eq!(told(json!({"ready": true})), "");
        let short = told(json!({"ready": true, "diskShort": ["FREE_ROOM_LOW", "HISTORY_OUTGROWS_DISK", "NEWER"]}));
        assert_eq!(short.matches("warn  node's disk").count(), 3, "{short}");
        assert!(short.contains("FREE_ROOM_LOW: less than 2048 MiB are free"), "{short}");
        assert!(short.contains("HISTORY_OUTGROWS_DISK: at the pace of the last hour"), "{short}");
        assert!(short.contains("what to do: free some, or keep less history"), "{short}");
    }

    #[test]
    fn a_full_or_closed_directory_is_told() {
        let mut found = Findings::default();
        data_directory(Path::new("/proc/nowhere/data"), &mut found);
        assert!(found.0[0].state == State::Fail);
        assert!(found.0[0].told.contains("cannot be made"));
    }
}
