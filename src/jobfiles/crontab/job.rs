//! The job of one line. What cron does is kept; nothing here decides whether the job exists already.

use super::{
    ImportOptions, ImportedJob, LABEL_FILE, LABEL_MAILTO, LABEL_USER, fields, file_name,
    line::{Entry, Refusal, When},
    reading::{LineLocation, Reading},
    settings::Settings,
    stdin, surprises,
};
use campanile_core::cron::{CronExpr, CronSchedule};
use campanile_schema::{
    job::{Action, ConcurrencyPolicy, Dialect, Gap, JobSpec, MisfirePolicy, Overlap, RetryPolicy, Trigger},
    limits::{CRONTAB_NEXT_FIRES, LABEL_BYTES, OUTPUT_CAP_KB, SECONDS_MAX},
    time::Timestamp,
};
use sha2::{Digest, Sha256};
use std::{collections::BTreeMap, path::Path};

/// Told once per import: how the jobs differ from what a new job gets by default.
pub(super) const KEPT_FROM_CRON: [&str; 2] = [
    "as under cron: runs may overlap (concurrencyPolicy ALLOW), missed times are skipped (misfirePolicy SKIP), a failed \
     run is neither tried again (maxAttempts 1) nor kept as a dead letter, and nothing is timed out; change this per job \
     afterwards, a later import leaves it alone",
    "output is kept with the run instead of being mailed; PATH is cron's /usr/bin:/bin where the file sets none; what a \
     command leaves running in the background is ended with it",
];
/// `PATH` of cron where the file sets none.
pub(super) const CRON_PATH: &str = "/usr/bin:/bin";
/// Longest file part of a job's name, characters; the hash, the number and the rest need 28.
const FILE_CHARS: usize = 100;

pub(super) fn of_entry(
    entry: &Entry<'_>,
    settings: &Settings,
    place: &LineLocation<'_>,
    options: &ImportOptions,
) -> Result<ImportedJob, Refusal> {
    let user = entry.user.unwrap_or(place.owner);
    let as_self = user != options.self_user;
    if as_self && !options.as_self {
        return Err(Refusal::new(
            format!("the line runs as {user}, and this import is for {}", options.self_user),
            format!("import it where an executor runs as {user}; or use --as-self to run it as the executor's user"),
        ));
    }
    let (command, input) = stdin::split(entry.command.trim_end());
    if command.trim().is_empty() {
        return Err(Refusal::new(
            "nothing stands before the first %: there is no command",
            "write \\% for a percent sign",
        ));
    }
    let zone = settings.all.get("CRON_TZ").map_or(options.machine_zone.as_str(), String::as_str);
    let mut notes = Vec::new();
    let when = match &entry.when {
        When::Fields(fields) => timed(fields, zone, &mut notes)?,
        When::Reboot => None,
    };
    let trigger = match &when {
        Some((expr, _)) => Trigger::Cron {
            expr: expr.clone(),
            dialect: Dialect::Unix,
            timezone: zone.to_owned(),
            gap: Gap::Shift,
            overlap: Overlap::First,
            start_at: None,
            end_at: None,
            jitter_sec: settings.random_delay_min * 60,
            misfire_policy: MisfirePolicy::Skip,
            misfire_threshold_sec: 60,
            max_catch_up: 1000,
        },
        None => Trigger::Manual {},
    };
    let name =
        format!("cron/{}/{}", name_part(&file_name(Path::new(place.file))), hash8(user, entry.command.trim_end()));
    let mut spec = JobSpec::new(&options.tenant, &name, trigger);
    spec.concurrency_policy = ConcurrencyPolicy::Allow;
    spec.retry_policy = RetryPolicy { max_attempts: 1, ..RetryPolicy::default() };
    spec.timeout_sec = SECONDS_MAX;
    spec.dead_letter = false;
    spec.executor_selector.clone_from(&options.pool);
    spec.labels.insert(LABEL_FILE.to_owned(), label(place.file));
    if as_self {
        spec.labels.insert(LABEL_USER.to_owned(), label(user));
    }
    if let Some(address) = settings.all.get("MAILTO").filter(|a| !a.is_empty()) {
        spec.labels.insert(LABEL_MAILTO.to_owned(), label(address));
    }
    let reading = Reading {
        place,
        settings,
        user,
        as_self,
        written: entry.command,
        is_reboot: matches!(entry.when, When::Reboot),
        input: input.as_deref(),
    };
    let schedule = when.map(|(_, schedule)| schedule);
    let mut hazards = surprises::of(&reading, schedule.as_ref(), options.now_ms);
    hazards.splice(0..0, notes);
    spec.action = Some(action(command, input, settings));
    let next = schedule.map(|s| next_fires(&s, options.now_ms)).unwrap_or_default();
    Ok(ImportedJob { spec, file: place.file.to_owned(), line: place.line, next, hazards })
}

/// When the line is due, by cron's rules. `None`: never, so that the job runs by hand only.
fn timed(fields: &str, zone: &str, notes: &mut Vec<String>) -> Result<Option<(String, CronSchedule)>, Refusal> {
    // Its meaning depends on the job's place in the store, so no preview could be trusted.
    if fields.split([' ', ',', '-', '/', '(']).any(|part| part.eq_ignore_ascii_case("H")) {
        return Err(Refusal::new(
            format!("the time fields '{fields}' hold an H, which cron does not know"),
            "write the time that is meant; or create the job by hand",
        ));
    }
    let meant = fields::meaning(fields);
    notes.extend(meant.notes);
    if meant.is_refused {
        notes.push(format!(
            "cron does not know the time fields '{fields}': Debian's refuses the whole file because of them, cronie the line; \
             under cron it never ran"
        ));
    }
    let by_hand =
        |why: &str| format!("it never fires under cron either: {why}; the job is MANUAL, it runs by hand only");
    let Some(expr) = meant.expr else {
        notes.push(by_hand("no value is left in a time field"));
        return Ok(None);
    };
    let parsed = match CronExpr::parse(&expr, Dialect::Unix, 0) {
        Ok((parsed, _)) => parsed,
        Err(error) if error.never_fires => {
            notes.push(by_hand(error.message.trim_start_matches("this never fires: ")));
            return Ok(None);
        }
        Err(error) => {
            let at = format!("the time fields '{fields}': {} (at character {})", error.message, error.position + 1);
            let cron = "because of such a line Debian's cron ignores the whole file, cronie the line";
            let advice = match (&error.suggestion, fields.contains('~')) {
                (_, true) => "cronie draws a time for ~ when it starts: write the time that is meant".to_owned(),
                (Some(suggestion), false) => format!("{suggestion}; {cron}"),
                (None, false) => format!("correct the fields; {cron}"),
            };
            return Err(Refusal::new(at, advice));
        }
    };
    let schedule = CronSchedule::new(parsed, zone, Gap::Shift, Overlap::First).map_err(|e| {
        Refusal::new(format!("CRON_TZ: {e}"), "correct CRON_TZ, or remove it to use the machine's zone")
    })?;
    Ok(Some((expr, schedule)))
}

fn next_fires(schedule: &CronSchedule, now_ms: i64) -> Vec<Timestamp> {
    let from = schedule.next_fire(now_ms);
    std::iter::successors(from, |at| schedule.next_fire(*at)).take(CRONTAB_NEXT_FIRES).map(Timestamp).collect()
}

fn action(command: String, stdin: Option<String>, settings: &Settings) -> Action {
    let shell = settings.all.get("SHELL").filter(|s| !s.is_empty()).map_or("/bin/sh", String::as_str);
    let mut env: BTreeMap<String, String> =
        settings.for_the_command().map(|(name, value)| (name.clone(), value.clone())).collect();
    env.entry("PATH".to_owned()).or_insert_with(|| CRON_PATH.to_owned());
    Action::Command {
        command: vec![shell.to_owned(), "-c".to_owned(), command],
        env,
        // The executor's default is the home directory, as under cron.
        cwd: None,
        stdin,
        output_cap_kb: OUTPUT_CAP_KB,
        limits: Default::default(),
        nice: 0,
    }
}

/// First 8 hexadecimal digits of SHA-256 over the user, a NUL, and the command as written.
fn hash8(user: &str, command: &str) -> String {
    let digest = Sha256::new().chain_update(user).chain_update([0]).chain_update(command).finalize();
    hex::encode(&digest[..4])
}

/// A file's name as part of a job's name.
fn name_part(file: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }
    };
    file.chars().map(plain).take(FILE_CHARS).collect()
}

/// Cut from the left: the end of a path tells more.
fn label(text: &str) -> String {
    let mut start = text.len().saturating_sub(LABEL_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_stay_within_their_limits() {
        assert_eq!(hash8("root", "echo hi").len(), 8);
        assert_ne!(hash8("root", "echo hi"), hash8("ada", "echo hi"));
        assert_ne!(hash8("a", "bc"), hash8("ab", "c"));
        assert_eq!(name_part("my cron:é.txt"), "my_cron__.txt");
        assert_eq!(name_part(&"x".repeat(300)).len(), FILE_CHARS);
        assert_eq!(label("/etc/crontab"), "/etc/crontab");
        assert!(label(&"é".repeat(300)).len() <= LABEL_BYTES);
    }
}
