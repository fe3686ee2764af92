//! `[Service]`: what.

use super::{
    Refusal,
    exec::{self, Exec, Names, specified},
    unit::{Unit, is_true, span_ms},
};
use crate::{Options, Place, source, text};
use campanile_schema::{
    job::{Action, CommandLimits},
    limits::{OUTPUT_CAP_KB, SECONDS_MAX},
};
use std::{collections::BTreeMap, path::Path};

pub struct Work {
    pub action: Action,
    pub timeout_sec: Option<u64>,
    pub changed: Vec<String>,
}

/// Settings without which the command would do something else.
const NEEDED: [&str; 22] = [
    "ExecCondition",
    "ExecStartPre",
    "ExecStartPost",
    "ExecStop",
    "ExecStopPost",
    "EnvironmentFile",
    "PassEnvironment",
    "RootDirectory",
    "RootImage",
    "RootDirectoryStartOnly",
    "LoadCredential",
    "LoadCredentialEncrypted",
    "SetCredential",
    "SetCredentialEncrypted",
    "ImportCredential",
    "PAMName",
    "StandardInputText",
    "StandardInputData",
    "Sockets",
    "BindPaths",
    "BindReadOnlyPaths",
    "NetworkNamespacePath",
];
/// Settings that are read here, or that mean nothing for a run.
const READ: [&str; 24] = [
    "Type",
    "ExecStart",
    "Environment",
    "WorkingDirectory",
    "User",
    "Group",
    "TimeoutStartSec",
    "TimeoutSec",
    "RuntimeMaxSec",
    "Nice",
    "LimitCPU",
    "LimitNOFILE",
    "LimitFSIZE",
    "LimitAS",
    "LimitNPROC",
    "SyslogIdentifier",
    "StandardOutput",
    "StandardError",
    "RemainAfterExit",
    "KillMode",
    "Restart",
    "RestartSec",
    "IgnoreSIGPIPE",
    "TimeoutStopSec",
];

pub fn work(path: &Path, name: &str, unit: &Unit, options: &Options) -> Result<Work, Refusal> {
    let mut changed = Vec::new();
    if let Some(needed) = NEEDED.into_iter().find_map(|name| unit.last("Service", name)) {
        let reason = format!("{}= has no counterpart, and the command may need it", needed.name);
        return Err(Refusal::new(&needed.place, reason, "put what it does into the command, or write a job by hand"));
    }
    let kind = unit.last("Service", "Type").map_or("simple", |setting| setting.value.as_str());
    if !["simple", "exec", "oneshot", "idle"].contains(&kind) {
        let place = unit.last("Service", "Type").map(|setting| setting.place.clone()).unwrap_or_default();
        let reason = format!("Type={kind} is a service that goes on in the background: a run ends with its command");
        return Err(Refusal::new(&place, reason, "keep this timer in systemd"));
    }
    user(path, unit, options, &mut changed)?;
    let env = environment(unit, name)?;
    let commands = commands(unit, name, &env)?;
    let command = match commands.as_slice() {
        [Exec { words, ignores_failure: false }] => words.clone(),
        several => {
            changed.push("its commands run one after the other in one /bin/sh -c".to_owned());
            vec!["/bin/sh".to_owned(), "-c".to_owned(), exec::shell(several)]
        }
    };
    let (limits, nice) = (limits(unit, &mut changed), nice(unit, &mut changed));
    let cwd = directory(unit, name, &mut changed)?;
    let output_cap_kb = OUTPUT_CAP_KB;
    let action = Action::Command { command, env, cwd, stdin: None, output_cap_kb, limits, nice };
    if let Some(restart) = unit.last("Service", "Restart").filter(|setting| setting.value != "no") {
        changed.push(format!(
            "Restart={} is not kept: set retryPolicy if a failed run is to be tried again",
            restart.value
        ));
    }
    surroundings(unit, &mut changed);
    others(unit, &mut changed);
    Ok(Work { action, timeout_sec: timeout(unit, kind)?, changed })
}

/// Whether a unit file belongs to a user's own systemd, as those in `/etc/systemd/user` and `~/.config/systemd/user`.
fn is_of_user(path: &Path) -> bool {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let parts: Vec<_> = whole.components().map(|part| part.as_os_str()).collect();
    parts.windows(2).any(|pair| pair[0] == "systemd" && pair[1] == "user")
}

/// The user of a service of the system is root unless it names one; a service of a user is that user's.
fn user(path: &Path, unit: &Unit, options: &Options, changed: &mut Vec<String>) -> Result<(), Refusal> {
    let named = unit.last("Service", "User");
    let user = match named {
        Some(setting) => setting.value.as_str(),
        None if is_of_user(path) => return Ok(()),
        None => "root",
    };
    if user == options.self_user {
        return Ok(());
    }
    if !options.as_self {
        let fallback = Place { file: source::shown(path), line: 0 };
        let place = named.map_or(&fallback, |setting| &setting.place);
        let reason = format!("the service runs as {}, and this import is for {}", text::shown(user), options.self_user);
        let advice = format!(
            "import it where an executor runs as {}; or use --as-self to run it as the executor's user",
            text::shown(user)
        );
        return Err(Refusal::new(place, reason, advice));
    }
    changed.push(format!("systemd runs it as {}; here it runs as the executor's user", text::shown(user)));
    Ok(())
}

fn environment(unit: &Unit, name: &str) -> Result<BTreeMap<String, String>, Refusal> {
    let mut env = BTreeMap::new();
    for setting in unit.list("Service", "Environment") {
        let read = exec::variables(&setting.value, name);
        let read = read.map_err(|why| Refusal::new(&setting.place, format!("Environment=: {why}"), "correct it"))?;
        env.extend(read);
    }
    Ok(env)
}

fn commands(unit: &Unit, name: &str, env: &BTreeMap<String, String>) -> Result<Vec<Exec>, Refusal> {
    let mut commands = Vec::new();
    for setting in unit.list("Service", "ExecStart") {
        let read = exec::commands(&setting.value, &Names { env, unit: name });
        let advice = "write the value out, or start a script that does it";
        commands.extend(read.map_err(|why| Refusal::new(&setting.place, format!("ExecStart=: {why}"), advice))?);
    }
    if commands.is_empty() {
        let reason = format!("its service {} has no ExecStart=", text::shown(name));
        return Err(Refusal::new(&Place::default(), reason, ""));
    }
    Ok(commands)
}

fn directory(unit: &Unit, name: &str, changed: &mut Vec<String>) -> Result<Option<String>, Refusal> {
    let Some(setting) = unit.last("Service", "WorkingDirectory") else {
        changed
            .push("without WorkingDirectory= systemd starts it in /; here it starts in the executor's home".to_owned());
        return Ok(None);
    };
    let path = setting.value.strip_prefix('-').unwrap_or(&setting.value);
    if path == "~" {
        return Ok(None);
    }
    let path = specified(path, name);
    let advice = "write the directory out";
    path.map(Some).map_err(|why| Refusal::new(&setting.place, format!("WorkingDirectory=: {why}"), advice))
}

/// Seconds that a run may take. The start of a oneshot is its whole run.
fn timeout(unit: &Unit, kind: &str) -> Result<Option<u64>, Refusal> {
    let names: &[&str] =
        if kind == "oneshot" { &["TimeoutStartSec", "TimeoutSec", "RuntimeMaxSec"] } else { &["RuntimeMaxSec"] };
    let Some(setting) = names.iter().find_map(|name| unit.last("Service", name)) else { return Ok(None) };
    if setting.value == "infinity" || setting.value == "0" {
        return Ok(None);
    }
    match span_ms(&setting.value).map(|ms| ms.div_ceil(1_000)) {
        Some(seconds) => Ok(Some(seconds.clamp(1, SECONDS_MAX))),
        None => {
            let reason = format!("{}={} is not a time span", setting.name, setting.value);
            Err(Refusal::new(&setting.place, reason, "write it as 30s, 5min or 1h"))
        }
    }
}

fn nice(unit: &Unit, changed: &mut Vec<String>) -> u8 {
    let Some(setting) = unit.last("Service", "Nice") else { return 0 };
    match setting.value.parse::<i8>() {
        Ok(nice @ 0..=19) => nice.unsigned_abs(),
        Ok(_) | Err(_) => {
            changed
                .push(format!("Nice={} is not kept: a command can only give way to others (0 to 19)", setting.value));
            0
        }
    }
}

fn limits(unit: &Unit, changed: &mut Vec<String>) -> CommandLimits {
    let mut read = |name: &str, unit_bytes: u64| {
        let setting = unit.last("Service", name).filter(|setting| setting.value != "infinity")?;
        // Of `soft:hard` the hard one counts.
        let hard = setting.value.rsplit(':').next().unwrap_or_default();
        let value = bytes(hard).map(|value| value.div_ceil(unit_bytes));
        if value.is_none() {
            changed.push(format!("{name}={} is not kept: it is not a number", setting.value));
        }
        value
    };
    CommandLimits {
        cpu_sec: read("LimitCPU", 1),
        memory_mb: read("LimitAS", 1 << 20),
        open_files: read("LimitNOFILE", 1),
        file_size_mb: read("LimitFSIZE", 1 << 20),
        processes: read("LimitNPROC", 1),
    }
}

/// `4096`, `64K`, `2G`.
fn bytes(text: &str) -> Option<u64> {
    const UNITS: [(char, u32); 4] = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let unit = UNITS.into_iter().find_map(|(letter, shift)| Some((text.strip_suffix(letter)?, shift)));
    let (number, shift) = unit.unwrap_or((text, 0));
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Settings that are read by systemd for the start of the command, and have no counterpart.
fn surroundings(unit: &Unit, changed: &mut Vec<String>) {
    for name in ["StandardOutput", "StandardError"] {
        let to_file = |value: &str| ["file:", "append:", "truncate:"].iter().any(|kind| value.starts_with(kind));
        if let Some(setting) = unit.last("Service", name).filter(|setting| to_file(&setting.value)) {
            let written = text::shown(&setting.value);
            changed.push(format!("{name}={written} is not kept: the output is in the log of the run"));
        }
    }
    if let Some(group) = unit.last("Service", "Group") {
        let group = text::shown(&group.value);
        changed.push(format!("Group={group} is not kept: the command has the groups of the executor's user"));
    }
    if unit.last("Service", "RemainAfterExit").is_some_and(|setting| is_true(&setting.value)) {
        let told = "RemainAfterExit= is not kept: systemd starts such a service once and then takes it for active; here it \
                    starts at each instant";
        changed.push(told.to_owned());
    }
}

/// Settings that are passed over: by name, in one sentence each.
fn others(unit: &Unit, changed: &mut Vec<String>) {
    let names = |section: &str, keep: &dyn Fn(&str) -> bool| {
        let mut found: Vec<&str> = Vec::new();
        for setting in unit.settings.iter().filter(|setting| setting.section == section) {
            if keep(&setting.name) && !found.contains(&setting.name.as_str()) {
                found.push(&setting.name);
            }
        }
        found.join(", ")
    };
    let passed_over = names("Service", &|name| !READ.contains(&name));
    if !passed_over.is_empty() {
        changed.push(text::sentence(&format!("settings of [Service] that are not kept: {passed_over}")));
    }
    let conditions = names("Unit", &|name| name.starts_with("Condition") || name.starts_with("Assert"));
    if !conditions.is_empty() {
        changed.push(text::sentence(&format!("it runs whether or not these hold: {conditions}")));
    }
    let order =
        names("Unit", &|name| ["After", "Before", "Requires", "Wants", "OnFailure", "OnSuccess"].contains(&name));
    if !order.is_empty() {
        changed.push(text::sentence(&format!("other units are neither started nor waited for: {order}")));
    }
}
