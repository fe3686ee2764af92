//! Configuration of a node: defaults < file < environment (`CAMPANILE_SECTION__KEY`) < flags.
//!
//! `deploy/campanile.toml` is the manual: every setting with meaning, unit, range and default. It is what
//! `campanile config default` prints, and a test holds it to [`Config::default`].
//!
//! Never here: reading the files that settings name.

mod cluster;
mod environment;
#[cfg(test)]
mod tests;
mod tls;

use crate::files::{FilesOptions, WhenGone};
use campanile_actions::http_action::Allowed;
use campanile_actors::maintenance::Retention;
use campanile_jobfiles::suggest::explained;
use campanile_schema::{
    limits::{CHANNEL_SLOTS, EXECUTOR_SLOTS_MAX, LEASE_MS, STOP_GRACE_MAX_SEC, STOP_GRACE_SEC, TENANT_CHARS},
    trace,
};
use campanile_serve::api::Origins;
use campanile_store::{
    cql::options::{CqlOptions, CqlTls, RETENTION_DAYS_MAX, is_data_center, is_keyspace},
    embedded::{self, EmbeddedOptions},
};
use environment::{typed, unknown};
use rustls::pki_types::ServerName;
use serde::{Deserialize, Serialize};
use std::{fmt, net::SocketAddr, path::Path, time::Duration};
use toml::{Table, Value};

/// The commented file with every default.
pub const DEFAULT_FILE: &str = include_str!("../../deploy/campanile.toml");

/// In front of environment variables that are settings; `__` stands between section and key.
const ENVIRONMENT: &str = "CAMPANILE_";

macro_rules! sections {
    ($($(#[$meta:meta])* $name:ident { $($field:ident : $type:ty = $default:expr),* $(,)? })+) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name { $(pub $field: $type),* }
        impl Default for $name { fn default() -> Self { Self { $($field: $default),* } } }
    )+};
}

sections! {
    /// All of it.
    Config {
        node: NodeSection = NodeSection::default(),
        http: HttpSection = HttpSection::default(),
        rpc: RpcSection = RpcSection::default(),
        tls: TlsSection = TlsSection::default(),
        auth: AuthSection = AuthSection::default(),
        secrets: SecretsSection = SecretsSection::default(),
        history: HistorySection = HistorySection::default(),
        journal: JournalSection = JournalSection::default(),
        cql: CqlSection = CqlSection::default(),
        log: LogSection = LogSection::default(),
        traces: TracesSection = TracesSection::default(),
        executor: ExecutorSection = ExecutorSection::default(),
        channels: ChannelsSection = ChannelsSection::default(),
        files: FilesSection = FilesSection::default(),
        cluster: ClusterSection = ClusterSection::default(),
    }
    /// `shards`: 0 = what suits the store; see [`Config::shards`]. `threads`: 0 = one for each processor. `tzdb_dir`: empty = the bundled time
    /// zones.
    NodeSection { name: String = "campanile".to_owned(), data_dir: String = "campanile-data".to_owned(), shards: u16 = 0, threads: u16 = 0, tzdb_dir: String = String::new() }
    HttpSection { listen: SocketAddr = loopback(7700), open_metrics: bool = false, cors_origins: Vec<String> = Vec::new() }
    /// `advertise`: empty = where it listens.
    RpcSection { listen: SocketAddr = loopback(7701), advertise: String = String::new() }
    /// No files: both ports in clear.
    TlsSection { cert_file: String = String::new(), key_file: String = String::new(), http: bool = true, rpc: bool = true }
    /// Empty = none.
    AuthSection { token_file: String = String::new(), calls_per_sec: u32 = 0 }
    /// Empty = none.
    SecretsSection { key_file: String = String::new() }
    HistorySection { retention_days: u32 = 30, max_mb: u64 = 0, audit_days: u32 = 400, accept_loss: bool = false, cache_mb: u64 = 16, memtable_mb: u64 = 32 }
    JournalSection { segment_mb: u64 = 64, linger_us: u64 = 2_000 }
    /// `contact_points`: with commas between them; empty = the embedded store.
    CqlSection {
        contact_points: String = String::new(),
        data_center: String = "datacenter1".to_owned(),
        keyspace: String = "campanile".to_owned(),
        replication: u32 = 3,
        user: String = String::new(),
        password_file: String = String::new(),
        tls: bool = false,
        tls_ca_file: String = String::new(),
        tls_name: String = String::new(),
        tls_cert_file: String = String::new(),
        tls_key_file: String = String::new(),
        max_in_flight: u32 = 128,
        request_timeout_ms: u64 = 1_000,
    }
    LogSection { format: LogFormat = LogFormat::Text, level: String = "info".to_owned() }
    /// `endpoint`: empty = no spans are recorded.
    TracesSection { endpoint: String = String::new(), sample_per_million: u32 = 10_000, headers_file: String = String::new(), ca_file: String = String::new() }
    ExecutorSection {
        slots: u32 = 0,
        pool: String = "default".to_owned(),
        http_allow: Vec<String> = Vec::new(),
        http_ca_file: String = String::new(),
        stop_grace_sec: u64 = STOP_GRACE_SEC,
    }
    /// `slots`: 0 = none. `ca_file`: empty = none.
    ChannelsSection { slots: u32 = CHANNEL_SLOTS, allow: Vec<String> = Vec::new(), ca_file: String = String::new() }
    /// `dir`: empty = none.
    FilesSection {
        dir: String = String::new(),
        owner: String = "files".to_owned(),
        tenant: String = "default".to_owned(),
        pool: String = "default".to_owned(),
        gone: WhenGone = WhenGone::Pause,
        scan_ms: u64 = 2_000,
    }
    /// No name: a node alone.
    ClusterSection {
        name: String = String::new(),
        seeds: Vec<String> = Vec::new(),
        key_file: String = String::new(),
        gossip_listen: SocketAddr = loopback(7702),
        gossip_advertise: String = String::new(),
        gateway_listen: SocketAddr = loopback(7703),
        gateway_advertise: String = String::new(),
        tls_cert_file: String = String::new(),
        tls_key_file: String = String::new(),
        tls_ca_file: String = String::new(),
        lease_ms: u32 = 2_500,
        beat_ms: u32 = 400,
        lanes: u16 = 1,
        window: u32 = 64,
        linger_us: u64 = 20_000,
    }
}

/// Shards of a new store that nodes share: some for each of fifty nodes.
const SHARDS_OF_CLUSTER: u16 = 256;

/// More threads than this for actors are a mistake.
const THREADS_MOST: u16 = 1024;

/// Least `history.max_mb` but 0: below it a few rounds of compaction take as much.
const HISTORY_LEAST_MB: u64 = 256;

/// Form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Text,
    // An object in each line.
    Json,
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Everything that is wrong with a configuration, one sentence each, with the place.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<String>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}
impl std::error::Error for ConfigErrors {}

impl Config {
    /// Reads the file, when one is named, and lays the environment over it. Flags are set by the caller, which then
    /// calls [`Config::check`].
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigErrors> {
        let text = match file {
            None => String::new(),
            Some(path) => campanile_security::text::read(path, true)
                .map_err(|error| ConfigErrors(vec![format!("{}: cannot be read: {error}", path.display())]))?,
        };
        let name = file.map_or_else(String::new, |path| path.display().to_string());
        let mut config = Self::parse(&name, &text)?;
        let mut wrong: Vec<String> =
            config.problems().into_iter().map(|problem| located(&name, &text, &problem)).collect();
        for (variable, value) in environment {
            if let Some(setting) = variable.strip_prefix(ENVIRONMENT).filter(|setting| setting.contains("__")) {
                match config.with(setting, &value) {
                    Ok(changed) => config = changed,
                    Err(why) => wrong.push(format!("environment variable {variable}: {why}")),
                }
            }
        }
        if wrong.is_empty() { config.check().map(|()| config) } else { Err(ConfigErrors(wrong)) }
    }

    /// A file's text; an error has the line.
    fn parse(name: &str, text: &str) -> Result<Self, ConfigErrors> {
        // A list would be read as the settings of a section in their order.
        let given: Table = toml::from_str(text).unwrap_or_default();
        let all = Table::try_from(Self::default()).unwrap_or_default();
        let lists =
            given.iter().filter(|(section, value)| value.is_array() && all.get(*section).is_some_and(Value::is_table));
        let told = |section: &str| {
            format!("{name}: {section} is a section, not a list: write [{section}] and settings below it")
        };
        let wrong: Vec<String> = lists.map(|(section, _)| told(section)).collect();
        if !wrong.is_empty() {
            return Err(ConfigErrors(wrong));
        }
        toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_at(text, span.start));
            let message = explained(error.message().trim_end());
            ConfigErrors(vec![format!("{name}, line {line}: {message}")])
        })
    }

    /// One setting changed, `SECTION__KEY` in any case.
    fn with(&self, setting: &str, value: &str) -> Result<Self, String> {
        let lower = setting.to_ascii_lowercase();
        let (section, key) = lower.split_once("__").ok_or("write CAMPANILE_SECTION__KEY")?;
        let mut all = Table::try_from(self).map_err(|error| error.to_string())?;
        let known = all.get_mut(section).and_then(Value::as_table_mut).and_then(|section| section.get_mut(key));
        let Some(known) = known else {
            return Err(unknown(&all, &format!("{section}.{key}")));
        };
        *known = typed(known, value)?;
        all.try_into::<Self>().map_err(|error| format!("{section}.{key}: {}", error.message().trim_end()))
    }

    /// The store's options.
    pub fn store(&self) -> EmbeddedOptions {
        let mut store = EmbeddedOptions::new(&self.node.data_dir);
        store.shards = self.shards();
        store.segment_bytes = self.journal.segment_mb << 20;
        store.views_cache_bytes = self.history.cache_mb << 20;
        store.views_memtable_bytes = self.history.memtable_mb << 20;
        store.accept_history_loss = self.history.accept_loss;
        store.raise_format = true;
        store
    }

    /// Options of the store that a cluster shares; None: the node has its own directory.
    pub fn cql(&self) -> Option<CqlOptions> {
        let cql = &self.cql;
        let points = cql.contact_points.split(',').map(str::trim).filter(|point| !point.is_empty());
        let contact_points: Vec<String> = points.map(str::to_owned).collect();
        (!contact_points.is_empty()).then(|| CqlOptions {
            contact_points,
            data_center: cql.data_center.clone(),
            keyspace: cql.keyspace.clone(),
            replication: cql.replication,
            user: cql.user.clone(),
            password_file: cql.password_file.clone(),
            tls: cql.tls.then(|| CqlTls {
                ca_file: cql.tls_ca_file.clone(),
                name: cql.tls_name.clone(),
                cert_file: cql.tls_cert_file.clone(),
                key_file: cql.tls_key_file.clone(),
            }),
            max_in_flight: cql.max_in_flight as usize,
            request_timeout: Duration::from_millis(cql.request_timeout_ms),
            retention_days: self.history.retention_days,
            audit_days: self.history.audit_days,
            cluster: self.cluster.name.clone(),
            shards: self.shards(),
            node: self.node.name.clone(),
        })
    }

    /// Shards of a new store. A shard's turn takes all that is due in it, so few shards share more work; many spread over more nodes.
    pub fn shards(&self) -> u16 {
        match self.node.shards {
            0 if self.cql.contact_points.is_empty() => embedded::SHARDS,
            0 => SHARDS_OF_CLUSTER,
            set => set,
        }
    }

    /// The directory of files that the node keeps jobs by.
    pub fn files(&self) -> Option<FilesOptions> {
        let FilesSection { dir, owner, tenant, pool, gone, scan_ms } = self.files.clone();
        let scan = Duration::from_millis(scan_ms);
        (!dir.is_empty()).then(|| FilesOptions { dir: dir.into(), owner, tenant, pool, gone, scan })
    }

    /// How much history is kept.
    pub fn retention(&self) -> Retention {
        let HistorySection { retention_days: days, audit_days, max_mb, .. } = self.history;
        Retention { days, max_bytes: max_mb << 20, audit_days }
    }

    /// Values outside their ranges.
    pub fn check(&self) -> Result<(), ConfigErrors> {
        let problems = self.problems();
        if problems.is_empty() {
            return Ok(());
        }
        Err(ConfigErrors(problems.into_iter().map(|problem| problem.to_string()).collect()))
    }

    fn problems(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        let mut need = |fine: bool, setting: &'static str, rule: String| {
            if !fine {
                found.push(Problem { setting, rule });
            }
        };
        let name = |text: &str| {
            (1..=TENANT_CHARS).contains(&text.len())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        };
        let name_rule = || format!("is 1 to {TENANT_CHARS} letters, digits, '.', '_', '-'");
        let in_range = |value: u64, low: u64, high: u64| (low..=high).contains(&value);
        let range = |low: u64, high: u64| format!("is {low} to {high}");
        need(name(&self.node.name), "node.name", name_rule());
        need(!self.node.data_dir.is_empty(), "node.data_dir", "must not be empty".to_owned());
        let shards = self.node.shards;
        let fine = shards == 0 || (shards.is_power_of_two() && shards <= 4096);
        need(fine, "node.shards", "is 0 or a power of two, 1 to 4096".to_owned());
        need(self.node.threads <= THREADS_MOST, "node.threads", range(0, THREADS_MOST.into()));
        need(self.history.retention_days <= 36_500, "history.retention_days", range(0, 36_500));
        // What a CQL server can keep, on any store: a directory can move there.
        let most = RETENTION_DAYS_MAX;
        need(self.history.audit_days <= most, "history.audit_days", range(0, most.into()));
        let max = self.history.max_mb;
        need(max == 0 || max >= HISTORY_LEAST_MB, "history.max_mb", format!("is 0 or at least {HISTORY_LEAST_MB}"));
        let own = max == 0 || self.cql.contact_points.is_empty();
        let own_rule = "is 0 with cql.contact_points: rows of a store that nodes share go by their age alone; set \
                        history.retention_days to what the servers' disks hold, and watch those";
        need(own, "history.max_mb", own_rule.to_owned());
        need(in_range(self.history.cache_mb, 8, 65_536), "history.cache_mb", range(8, 65_536));
        need(in_range(self.history.memtable_mb, 4, 4_096), "history.memtable_mb", range(4, 4_096));
        need(in_range(self.journal.segment_mb, 32, 4_096), "journal.segment_mb", range(32, 4_096));
        need(self.journal.linger_us <= 100_000, "journal.linger_us", range(0, 100_000));
        let cql = &self.cql;
        let shared = !self.cluster.is_on() || !cql.contact_points.is_empty();
        need(shared, "cql.contact_points", "is needed with cluster.name: nodes of a cluster share a store".to_owned());
        need(is_data_center(&cql.data_center), "cql.data_center", "is letters, digits, '.', '_', '-'".to_owned());
        let keyspace_rule = "is a letter, then letters, digits, '_', all small, at most 40";
        need(is_keyspace(&cql.keyspace), "cql.keyspace", keyspace_rule.to_owned());
        need(in_range(cql.replication.into(), 1, 9), "cql.replication", range(1, 9));
        let password_rule = "is needed with cql.user, and only then";
        need(cql.user.is_empty() == cql.password_file.is_empty(), "cql.password_file", password_rule.to_owned());
        let unused = cql.tls_ca_file.is_empty() && cql.tls_name.is_empty() && cql.tls_cert_file.is_empty();
        need(cql.tls || unused, "cql.tls", "is to be true when another tls_ setting of [cql] is set".to_owned());
        let paired = cql.tls_cert_file.is_empty() == cql.tls_key_file.is_empty();
        need(paired, "cql.tls_key_file", "is needed with cql.tls_cert_file, and only then".to_owned());
        let named = cql.tls_name.is_empty() || ServerName::try_from(cql.tls_name.as_str()).is_ok();
        need(named, "cql.tls_name", "is a DNS name or an IP address, as certificates carry it".to_owned());
        need(in_range(cql.max_in_flight.into(), 8, 4_096), "cql.max_in_flight", range(8, 4_096));
        need(in_range(cql.request_timeout_ms, 100, 30_000), "cql.request_timeout_ms", range(100, 30_000));
        let kept = cql.contact_points.is_empty() || self.history.retention_days <= RETENTION_DAYS_MAX;
        let kept_rule = format!("is 0 to {RETENTION_DAYS_MAX} with cql.contact_points: servers expire nothing later");
        need(kept, "history.retention_days", kept_rule);
        need(self.auth.calls_per_sec <= 1_000_000, "auth.calls_per_sec", range(0, 1_000_000));
        let slots = u64::from(EXECUTOR_SLOTS_MAX);
        need(self.executor.slots <= EXECUTOR_SLOTS_MAX, "executor.slots", range(0, slots));
        need(name(&self.executor.pool), "executor.pool", name_rule());
        let grace_rule = format!(
            "is 0 to {STOP_GRACE_MAX_SEC} seconds, so that a stopped body has ended before the executor's lease of {} s has",
            LEASE_MS / 1000
        );
        need(self.executor.stop_grace_sec <= STOP_GRACE_MAX_SEC, "executor.stop_grace_sec", grace_rule);
        let origins = self.http.origins().err();
        need(origins.is_none(), "http.cors_origins", format!("is a list of origins: {}", origins.unwrap_or_default()));
        let allowed = Allowed::parse(&self.executor.http_allow);
        let allow_rule = allowed.err().map(|why| format!("is a list of networks, addresses and hosts: {why}"));
        need(allow_rule.is_none(), "executor.http_allow", allow_rule.unwrap_or_default());
        need(self.channels.slots <= EXECUTOR_SLOTS_MAX, "channels.slots", range(0, slots));
        let allowed = Allowed::parse(&self.channels.allow);
        let allow_rule = allowed.err().map(|why| format!("is a list of networks, addresses and hosts: {why}"));
        need(allow_rule.is_none(), "channels.allow", allow_rule.unwrap_or_default());
        let files = &self.files;
        for (setting, value) in
            [("files.owner", &files.owner), ("files.tenant", &files.tenant), ("files.pool", &files.pool)]
        {
            need(name(value), setting, name_rule());
        }
        need(in_range(files.scan_ms, 100, 3_600_000), "files.scan_ms", range(100, 3_600_000));
        let level_rule =
            "is error, warn, info, debug, trace, off, or directives such as info,campanile_serve::api=debug";
        need(is_log_level(&self.log.level), "log.level", level_rule.to_owned());
        let traces = &self.traces;
        need(
            is_endpoint(&traces.endpoint),
            "traces.endpoint",
            "is empty, or a URL with http:// or https://".to_owned(),
        );
        need(traces.sample_per_million <= trace::ALL, "traces.sample_per_million", range(0, trace::ALL.into()));
        let told = [cluster::told_to_executors(&self.rpc.advertise)];
        for (kept, setting, rule) in told.into_iter().chain(self.cluster.rules()).chain(self.tls.rules()) {
            need(kept, setting, rule);
        }
        found
    }
}

impl HttpSection {
    /// Pages of which origins may call from a browser.
    pub fn origins(&self) -> Result<Origins, String> {
        Origins::parse(&self.cors_origins)
    }
}

/// A value outside its range.
struct Problem {
    setting: &'static str,
    rule: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.setting, self.rule)
    }
}

/// Directives that the log takes. A word alone must be a level: the log would take a slip for a module's name.
fn is_log_level(text: &str) -> bool {
    let level = |word: &str| {
        ["off", "error", "warn", "info", "debug", "trace"].iter().any(|known| known.eq_ignore_ascii_case(word.trim()))
    };
    text.split(',').all(|directive| directive.contains('=') || level(directive))
        && tracing_subscriber::EnvFilter::builder().parse(text).is_ok()
}

/// Where spans may be sent to, or nowhere.
fn is_endpoint(text: &str) -> bool {
    let fine = |uri: http::Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.authority().is_some();
    text.is_empty() || text.parse().is_ok_and(fine)
}

fn line_at(text: &str, offset: usize) -> usize {
    text.get(..offset).map_or(1, |before| before.matches('\n').count() + 1)
}

/// The problem with the line that sets it.
fn located(name: &str, text: &str, problem: &Problem) -> String {
    let (section, key) = problem.setting.split_once('.').unwrap_or(("", problem.setting));
    let mut inside = "";
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            inside = header.split(']').next().unwrap_or("").trim();
        } else if let Some((left, _)) = line.split_once('=') {
            let left = left.trim();
            if inside == section && left == key || inside.is_empty() && left == problem.setting {
                return format!("{name}, line {}: {problem}", index + 1);
            }
        }
    }
    format!("{name}: {problem}")
}
