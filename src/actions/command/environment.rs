//! The environment of a command: nothing of the executor's own leaks into it by accident.
//!
//! In rising order of precedence:
//! 1. **Base:** `PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`, `SHELL=/bin/sh`, `LANG=C.UTF-8`;
//!    `HOME`, `USER`, `LOGNAME` of the executor's user; and, only if the executor has them, `TZ`, `TMPDIR`, `LANG`.
//! 2. **`env` of the action.**
//! 3. **The attempt:** `CAMPANILE_JOB_ID`, `_JOB_NAME`, `_RUN_ID`, `_ATTEMPT`, `_TOKEN`, `_SOURCE`, `_PARAMS` (JSON);
//!    `_LOGICAL_TIME` (RFC 3339, UTC) only for runs that have one; `TRACEPARENT` (W3C Trace Context) only for runs of a trace;
//!    `CAMPANILE_SECRET_<name>` for each secret param, with every character of the name outside `A-Z a-z 0-9 _`
//!    turned into `_`; and `CAMPANILE_PROCESS_MARK`, by which the executor knows the attempt's processes again.

use super::{
    spec::{AttemptEnv, CommandSpec},
    wire::{Fault, StartFault},
};
use campanile_core::action::unusable;
use std::collections::BTreeMap;

/// `PATH` of the base environment.
pub const BASE_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Variable by which the processes of an attempt are known again when its shim was lost.
pub(super) const MARK: &str = "CAMPANILE_PROCESS_MARK";
const SECRET_PREFIX: &str = "CAMPANILE_SECRET_";

/// The whole environment of one attempt's command.
pub(super) fn of_attempt(
    spec: &CommandSpec,
    attempt: &AttemptEnv,
    mark: &str,
) -> Result<BTreeMap<String, String>, Fault> {
    let mut env = base(|name| std::env::var(name).ok(), || std::fs::read_to_string("/etc/passwd").unwrap_or_default());
    for (name, value) in &spec.env {
        if let Some(what) = unusable(name, value) {
            return Err(Fault::new(
                StartFault::EnvInvalid,
                format!("the variable {name:?} of the action's env {what}"),
            ));
        }
        env.insert(name.clone(), value.clone());
    }
    let mut own = BTreeMap::new();
    for (name, value) in &attempt.secrets {
        let variable = secret_variable(name);
        let clash = own.insert(variable.clone(), value.clone()).is_some();
        if clash || value.contains('\0') {
            let what = if clash { "shares its variable with another one" } else { "holds a NUL" };
            return Err(Fault::new(StartFault::EnvInvalid, format!("the secret param {name:?} ({variable}) {what}")));
        }
    }
    let mut put = |name: &str, value: String| {
        // A NUL cannot be passed on at all; names and params never hold one unescaped.
        own.insert(name.to_owned(), value.replace('\0', ""));
    };
    put("CAMPANILE_JOB_ID", attempt.job_id.to_string());
    put("CAMPANILE_JOB_NAME", attempt.job_name.clone());
    put("CAMPANILE_RUN_ID", attempt.run_id.to_string());
    put("CAMPANILE_ATTEMPT", attempt.attempt.to_string());
    put("CAMPANILE_TOKEN", attempt.token.to_string());
    put("CAMPANILE_SOURCE", attempt.source.clone());
    put("CAMPANILE_PARAMS", attempt.params_json.clone());
    put(MARK, mark.to_owned());
    // A stale value from the action's env would be taken for the attempt's own.
    env.remove("CAMPANILE_LOGICAL_TIME");
    if let Some(at) = attempt.logical_time {
        put("CAMPANILE_LOGICAL_TIME", at.to_string());
    }
    if let Some(traceparent) = &attempt.traceparent {
        put("TRACEPARENT", traceparent.clone());
    }
    env.extend(own);
    Ok(env)
}

/// The variable that carries a secret param.
pub fn secret_variable(name: &str) -> String {
    let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    SECRET_PREFIX.chars().chain(plain).collect()
}

fn base(executor: impl Fn(&str) -> Option<String>, passwd: impl FnOnce() -> String) -> BTreeMap<String, String> {
    let (user, home) = match (executor("USER").or_else(|| executor("LOGNAME")), executor("HOME")) {
        (Some(user), Some(home)) => (user, home),
        (user, home) => {
            let (known_user, known_home) = account(&passwd(), rustix::process::geteuid().as_raw());
            (user.unwrap_or(known_user), home.unwrap_or(known_home))
        }
    };
    let mut env = BTreeMap::from([
        ("PATH".to_owned(), BASE_PATH.to_owned()),
        ("SHELL".to_owned(), "/bin/sh".to_owned()),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ("HOME".to_owned(), home),
        ("USER".to_owned(), user.clone()),
        ("LOGNAME".to_owned(), user),
    ]);
    for name in ["TZ", "TMPDIR", "LANG"] {
        if let Some(value) = executor(name).filter(|v| !v.is_empty()) {
            env.insert(name.to_owned(), value);
        }
    }
    env
}

/// Name and home of a numeric user; containers often run as one that `/etc/passwd` does not name.
fn account(passwd: &str, uid: u32) -> (String, String) {
    let found = passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let (name, home) = (*fields.first()?, *fields.get(5)?);
        (fields.get(2)?.parse::<u32>() == Ok(uid)).then(|| (name.to_owned(), home.to_owned()))
    });
    found.unwrap_or_else(|| (uid.to_string(), "/".to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_schema::time::Timestamp;

    fn spec(env: &[(&str, &str)]) -> CommandSpec {
        let env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        CommandSpec { command: vec!["true".into()], env, output_cap_kb: 1, ..CommandSpec::default() }
    }

    #[test]
    fn the_base_takes_only_what_is_named() {
        let executor = |name: &str| match name {
            "HOME" => Some("/home/ada".to_owned()),
            "USER" => Some("ada".to_owned()),
            "TZ" => Some("Europe/Rome".to_owned()),
            _ => None,
        };
        let env = base(executor, || panic!("HOME and USER are known"));
        assert_eq!(env.get("LOGNAME").unwrap(), "ada");
        assert_eq!(env.get("TZ").unwrap(), "Europe/Rome");
        assert_eq!(env.get("LANG").unwrap(), "C.UTF-8");
        assert_eq!(env.len(), 7);
    }

    #[test]
    fn accounts_come_from_passwd() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\nbroken\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(account(passwd, 1000), ("ada".to_owned(), "/home/ada".to_owned()));
        assert_eq!(account(passwd, 7), ("7".to_owned(), "/".to_owned()));
    }

    #[test]
    fn the_attempt_wins_over_the_action_and_the_action_over_the_base() {
        let attempt =
            AttemptEnv { job_id: 7, job_name: "a/b".into(), params_json: "{}".into(), ..AttemptEnv::default() };
        let spec = spec(&[("PATH", "/opt/bin"), ("CAMPANILE_JOB_ID", "8"), ("CAMPANILE_LOGICAL_TIME", "never")]);
        let env = of_attempt(&spec, &attempt, "m").unwrap();
        assert_eq!(env.get("PATH").unwrap(), "/opt/bin");
        assert_eq!(env.get("CAMPANILE_JOB_ID").unwrap(), "7");
        assert_eq!(env.get("CAMPANILE_LOGICAL_TIME"), None);
        let attempt = AttemptEnv { logical_time: Some(Timestamp(0)), ..attempt };
        let env = of_attempt(&spec, &attempt, "m").unwrap();
        assert_eq!(env.get("CAMPANILE_LOGICAL_TIME").unwrap(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn secrets_get_variables_and_clashes_are_refused() {
        let secrets = BTreeMap::from([("db-password".to_owned(), "s3cret".to_owned())]);
        let attempt = AttemptEnv { secrets, ..AttemptEnv::default() };
        let env = of_attempt(&spec(&[]), &attempt, "m").unwrap();
        assert_eq!(env.get("CAMPANILE_SECRET_db_password").unwrap(), "s3cret");
        let shown = format!("{attempt:?}");
        assert!(shown.contains("db-password"), "{shown}");
        assert!(!shown.contains("s3cret"), "{shown}");
        let secrets = BTreeMap::from([("a-b".to_owned(), "1".to_owned()), ("a.b".to_owned(), "2".to_owned())]);
        let fault = of_attempt(&spec(&[]), &AttemptEnv { secrets, ..AttemptEnv::default() }, "m").unwrap_err();
        assert_eq!(fault.fault, StartFault::EnvInvalid);
    }

    #[test]
    fn names_that_cannot_be_passed_on_are_refused() {
        for (name, value) in [("", "x"), ("A=B", "x"), ("A", "x\0y"), ("A\0", "x")] {
            let fault = of_attempt(&spec(&[(name, value)]), &AttemptEnv::default(), "m").unwrap_err();
            assert_eq!(fault.fault, StartFault::EnvInvalid, "{name:?}");
        }
    }
}
