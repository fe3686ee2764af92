//! Who calls: bearer tokens, and the file that lists their hashes.
//!
//! A credential is one line of the token file: `NAME ROLE [tenant=T] [pools=a,b] sha256:HEX`. The file holds hashes
//! only; a token itself is shown once, when it is made. HTTP and RPC ask the same [`Authenticator`]. A changed file is
//! read again by itself, so a token can be taken back without a restart. Two lines may have one name, while a token is exchanged:
//! they are one credential, so they must have the same role, tenant and pools.
//!
//! Never here: what a role may do (that is `ops`), and no token is ever logged or stored.

mod watched;

use crate::rate::Rate;
use campanile_schema::{
    error::ApiError,
    limits::{TENANT_CHARS, TOKEN_BYTES, TOKEN_FILE_LINES, TOKENS_OF_A_NAME},
};
use sha2::{Digest, Sha256};
use std::{fmt, path::Path, sync::Arc, time::Instant};
use tokio::sync::watch;
use watched::WatchedFile;

/// What a credential is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Every tenant, quotas, the system.
    Operator,
    /// The jobs and runs of one tenant.
    Tenant,
    /// Takes and finishes attempts; no calls of callers.
    Executor,
    /// Reads `/metrics`, nothing else.
    Metrics,
}

impl Role {
    pub const ALL: &'static [Self] = &[Self::Operator, Self::Tenant, Self::Executor, Self::Metrics];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Tenant => "tenant",
            Self::Executor => "executor",
            Self::Metrics => "metrics",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Role {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .iter()
            .copied()
            .find(|role| role.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("'{text}' is not a role; write operator, tenant, executor or metrics"))
    }
}

/// Somebody whose token was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Name of the credential, for the audit log.
    pub name: String,
    pub role: Role,
    /// Set for `Role::Tenant`, else None.
    pub tenant: Option<String>,
    /// Executors: the pools that it may serve. Tenants: the pools that its jobs may name; empty = any.
    pub pools: Vec<String>,
}

/// What can be wrong with a token file.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    #[error("token file {path}: {error}")]
    Unreadable { path: String, error: std::io::Error },
    #[error(
        "token file {path} can be written by others (mode {mode:03o}): anybody could add a token. Run: chmod 600 {path}"
    )]
    TooOpen { path: String, mode: u32 },
    #[error("token file {path}, line {line}: {message}")]
    Line { path: String, line: usize, message: String },
    #[error("token file {path} has no token: make one with `campanile token new` and add its line")]
    Empty { path: String },
}

type Hash = [u8; 32];
/// Tokens by their hashes, and whose they are.
type Entries = Arc<[(Hash, Caller)]>;

/// A caller and the token by which it was known.
#[derive(Clone)]
pub struct Credential {
    hash: Hash,
    pub caller: Arc<Caller>,
}

/// Checks tokens.
#[derive(Clone)]
pub struct Authenticator {
    source: Source,
    /// Tokens of this process, whatever the file says.
    extra: Entries,
    /// None = everybody may call as often as they like.
    rate: Option<Arc<Rate>>,
}

#[derive(Clone)]
enum Source {
    Fixed(Entries),
    File(Arc<WatchedFile>),
}

impl Authenticator {
    /// Reads a token file; later changes of it are seen by themselves.
    pub fn from_file(path: &Path) -> Result<Self, TokenFileError> {
        Ok(Self { source: Source::File(Arc::new(WatchedFile::open(path)?)), extra: Arc::default(), rate: None })
    }

    /// One token for one caller: dev mode and tests.
    pub fn single(token: &str, caller: Caller) -> Self {
        Self::fixed(vec![(token, caller)])
    }

    /// Tokens given in memory.
    pub fn fixed(tokens: Vec<(&str, Caller)>) -> Self {
        let entries = tokens.into_iter().map(|(token, caller)| (hash(token), caller)).collect();
        Self { source: Source::Fixed(entries), extra: Arc::default(), rate: None }
    }

    /// One token more, known to this process only.
    pub fn and(mut self, token: &str, caller: Caller) -> Self {
        self.extra = self.extra.iter().cloned().chain([(hash(token), caller)]).collect();
        self
    }

    /// From now on a credential may make so many calls a second; 0 = as many as it likes.
    pub fn limited(mut self, per_sec: u32) -> Self {
        self.rate = (per_sec > 0).then(|| Arc::new(Rate::new(per_sec, Instant::now())));
        self
    }

    /// Whether this caller may make one more call now.
    pub fn admit(&self, caller: &Caller) -> Result<(), ApiError> {
        self.rate.as_ref().map_or(Ok(()), |rate| rate.take(&caller.name, Instant::now()))
    }

    /// The caller that a token belongs to. Takes the same time whichever entry matches.
    pub fn check(&self, token: &str) -> Option<Caller> {
        self.find(&self.hashed(token)?)
    }

    /// The same, for a connection that must end when the token is taken back.
    pub fn credential(&self, token: &str) -> Option<Credential> {
        let hash = self.hashed(token)?;
        self.find(&hash).map(|caller| Credential { hash, caller: Arc::new(caller) })
    }

    /// Whether its token still stands for the same caller.
    pub fn still_knows(&self, credential: &Credential) -> bool {
        self.find(&credential.hash).as_ref() == Some(&*credential.caller)
    }

    /// Told when tokens were added or taken back. None: they never are. Somebody must [`Self::look`] now and then.
    pub fn changes(&self) -> Option<watch::Receiver<u64>> {
        match &self.source {
            Source::Fixed(_) => None,
            Source::File(file) => Some(file.changes()),
        }
    }

    /// Looks at the token file if it was not looked at for a while.
    pub fn look(&self) {
        match &self.source {
            Source::Fixed(_) => {}
            Source::File(file) => drop(file.entries()),
        }
    }

    /// Why the token file as it is on disk is not in force; None: it is.
    pub fn refused(&self) -> Option<String> {
        match &self.source {
            Source::Fixed(_) => None,
            Source::File(file) => file.refused(),
        }
    }

    fn hashed(&self, token: &str) -> Option<Hash> {
        (!token.is_empty() && token.len() <= TOKEN_BYTES).then(|| hash(token))
    }

    fn find(&self, wanted: &Hash) -> Option<Caller> {
        let entries = match &self.source {
            Source::Fixed(entries) => entries.clone(),
            Source::File(file) => file.entries(),
        };
        let mut found = None;
        for (known, caller) in entries.iter().chain(self.extra.iter()) {
            if same(known, wanted) {
                found = Some(caller);
            }
        }
        found.cloned()
    }
}

/// Permission bits of a file.
pub(crate) fn file_mode(path: &Path) -> std::io::Result<u32> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::metadata(path)?.permissions().mode() & 0o777)
}

/// The lines of a token file; an error has the line's number, from 1.
fn parse(text: &str) -> Result<Vec<(Hash, Caller)>, (usize, String)> {
    let mut entries: Vec<(Hash, Caller)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let at = |message: String| (index + 1, message);
        let entry = parse_line(line).map_err(at)?;
        if entries.iter().any(|(known, _)| *known == entry.0) {
            return Err(at("this token is listed twice".to_owned()));
        }
        let mut namesakes = entries.iter().map(|(_, known)| known).filter(|known| known.name == entry.1.name);
        let name = &entry.1.name;
        if namesakes.clone().any(|known| *known != entry.1) {
            return Err(at(format!(
                "the name '{name}' is used twice, with another role, tenant or pools: two tokens of one name are one \
                 credential. Give it another name"
            )));
        }
        if namesakes.nth(TOKENS_OF_A_NAME - 1).is_some() {
            return Err(at(format!(
                "the name '{name}' has {TOKENS_OF_A_NAME} tokens already: remove the line of the one that is used no more"
            )));
        }
        if entries.len() == TOKEN_FILE_LINES {
            return Err(at(format!("more than {TOKEN_FILE_LINES} tokens")));
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn parse_line(line: &str) -> Result<(Hash, Caller), String> {
    const FORM: &str = "write: NAME ROLE [tenant=T] [pools=a,b] sha256:HEX";
    let mut words = line.split_whitespace();
    let name = words.next().ok_or(FORM)?.to_owned();
    let role: Role = words.next().ok_or(FORM)?.parse()?;
    let (mut tenant, mut pools, mut hash) = (None, Vec::new(), None);
    for word in words {
        if hash.is_some() {
            return Err(format!("'{word}' stands after the hash; {FORM}"));
        } else if let Some(value) = word.strip_prefix("tenant=") {
            tenant = Some(checked_name("tenant", value)?);
        } else if let Some(value) = word.strip_prefix("pools=") {
            pools = value.split(',').map(|pool| checked_name("pool", pool)).collect::<Result<_, _>>()?;
        } else if let Some(value) = word.strip_prefix("sha256:") {
            hash = Some(parse_hex(value).ok_or("after sha256: stand 64 hexadecimal digits")?);
        } else {
            return Err(format!("'{word}' is not understood; {FORM}"));
        }
    }
    let hash = hash.ok_or_else(|| format!("the hash is missing; {FORM}"))?;
    let caller = Caller { name, role, tenant, pools };
    check_shape(&caller)?;
    Ok((hash, caller))
}

/// The fields that a role needs or excludes.
fn check_shape(caller: &Caller) -> Result<(), String> {
    match (caller.role, &caller.tenant) {
        (Role::Tenant, None) => Err("a tenant's credential needs tenant=NAME".to_owned()),
        (Role::Operator, Some(_)) => Err("an operator's credential is for every tenant; leave tenant= out".to_owned()),
        (Role::Executor, Some(_)) => Err("an executor's credential names pools=, not tenant=".to_owned()),
        (Role::Executor, None) if caller.pools.is_empty() => {
            Err("an executor's credential needs pools=NAME[,NAME]".to_owned())
        }
        (Role::Operator, None) if !caller.pools.is_empty() => {
            Err("an operator's credential may use every pool; leave pools= out".to_owned())
        }
        (Role::Metrics, Some(_)) => {
            Err("a credential for metrics reads those of all tenants; leave tenant= out".to_owned())
        }
        (Role::Metrics, None) if !caller.pools.is_empty() => {
            Err("a credential for metrics names no pools; leave pools= out".to_owned())
        }
        (Role::Tenant, Some(_)) | (Role::Operator | Role::Executor | Role::Metrics, None) => Ok(()),
    }
}

/// Checks what a token file would be with one line more. True: it is the second token of a name.
pub fn check_with(text: &str, line: &str) -> Result<bool, String> {
    parse(text).map_err(|(line, message)| format!("line {line}: {message}. Correct that first"))?;
    let entries = parse(&format!("{text}\n{line}\n")).map_err(|(_, message)| message)?;
    let added = entries.last().map(|(_, caller)| caller.name.clone());
    Ok(entries.iter().filter(|(_, caller)| Some(&caller.name) == added.as_ref()).count() > 1)
}

fn checked_name(what: &str, name: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.chars().count() > TENANT_CHARS || !name.chars().all(fits) {
        return Err(format!("'{name}' is not a {what}'s name: 1 to {TENANT_CHARS} letters, digits, '.', '_', '-'"));
    }
    Ok(name.to_owned())
}

fn parse_hex(text: &str) -> Option<Hash> {
    let mut hash = Hash::default();
    hex::decode_to_slice(text, &mut hash).ok()?;
    Some(hash)
}

fn hash(token: &str) -> Hash {
    Sha256::digest(token.as_bytes()).into()
}

/// Compares without stopping at the first difference.
fn same(left: &Hash, right: &Hash) -> bool {
    left.iter().zip(right).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// A fresh token, `cmp_` and 256 random bits in hexadecimal. Error: the system gives no randomness.
pub fn new_token() -> Result<String, String> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| format!("no randomness from the system: {error}"))?;
    Ok(format!("cmp_{}", hex::encode(bytes)))
}

/// The line of the token file for a token. Error: the caller cannot be written as such.
pub fn token_line(token: &str, caller: &Caller) -> Result<String, String> {
    if caller.name.is_empty() || caller.name.starts_with('#') || caller.name.contains(char::is_whitespace) {
        return Err(format!("'{}' is not a name: no spaces, no # in front", caller.name.escape_debug()));
    }
    caller.tenant.iter().try_for_each(|tenant| checked_name("tenant", tenant).map(drop))?;
    caller.pools.iter().try_for_each(|pool| checked_name("pool", pool).map(drop))?;
    check_shape(caller)?;
    let tenant = caller.tenant.iter().map(|tenant| format!(" tenant={tenant}"));
    let pools = (!caller.pools.is_empty()).then(|| format!(" pools={}", caller.pools.join(",")));
    let scope: String = tenant.chain(pools).collect();
    Ok(format!("{} {}{scope} sha256:{}", caller.name, caller.role, hex::encode(hash(token))))
}

#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
