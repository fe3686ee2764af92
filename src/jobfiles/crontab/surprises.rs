//! What may surprise the owner of a line after the move: one sentence each.

use super::reading::Reading;
use campanile_core::cron::{CronSchedule, hazards};

pub(super) const NO_NEWLINE: &str =
    "the file's last line does not end in a newline: cron may have passed over it until now, here it runs";
const DAY_MS: i64 = 86_400_000;
const MINUTES_PER_DAY: u64 = 1_440;

pub(super) fn of(line: &Reading<'_>, schedule: Option<&CronSchedule>, now_ms: i64) -> Vec<String> {
    let mut told = Vec::new();
    match schedule {
        Some(schedule) => of_schedule(line, schedule, now_ms, &mut told),
        None if !line.is_reboot => {}
        None => told.push(
            "@reboot: nothing here starts when a machine starts; the job is MANUAL: trigger it, or keep this line in cron"
                .to_owned(),
        ),
    }
    of_user(line, &mut told);
    of_settings(line, &mut told);
    of_command(line, &mut told);
    told
}

fn of_schedule(line: &Reading<'_>, schedule: &CronSchedule, now_ms: i64, told: &mut Vec<String>) {
    if schedule.count_fires(now_ms, now_ms.saturating_add(DAY_MS)) >= MINUTES_PER_DAY {
        told.push("it fires every minute: 1,440 runs a day, each kept in the history".to_owned());
    }
    told.extend(hazards(schedule, now_ms));
    if let Some(zone) = line.settings.all.get("CRON_TZ") {
        told.push(format!("CRON_TZ={zone} is obeyed; the cron of Debian and Ubuntu ignores it, cronie obeys it"));
    }
    let delay = line.settings.random_delay_min;
    if delay > 0 {
        told.push(format!(
            "RANDOM_DELAY={delay}: up to {delay} minutes are drawn for each run; cron draws once, when it starts"
        ));
    }
}

fn of_user(line: &Reading<'_>, told: &mut Vec<String>) {
    if line.as_self {
        told.push(format!("cron runs it as {}; here it runs as the executor's user", line.user));
    }
    if !line.place.known_users.is_empty() && !line.place.known_users.contains(line.user) {
        told.push(format!("this machine has no user {}: cron does not run this line here", line.user));
    }
}

fn of_settings(line: &Reading<'_>, told: &mut Vec<String>) {
    for (name, doubt) in &line.settings.doubts {
        told.push(format!("{name} {doubt}"));
    }
    let setting = |name: &str| line.settings.all.get(name).filter(|v| !v.is_empty());
    if let Some(address) = setting("MAILTO") {
        told.push(format!("no mail is sent to {address}; the address is kept as the label cron.mailto"));
    }
    if setting("TZ").is_some() {
        told.push("TZ is seen by the command only; it does not move the schedule (CRON_TZ does)".to_owned());
    }
    for name in ["LOGNAME", "USER"] {
        if setting(name).is_some() {
            told.push(format!("{name} is set by the executor, as cron sets it itself: the file's value is left out"));
        }
    }
    if setting("PATH").is_some_and(|path| path.split(':').any(|d| !d.starts_with('/') && !d.starts_with(['$', '~']))) {
        told.push("PATH holds an entry that is no absolute path: it depends on the working directory".to_owned());
    }
}

fn of_command(line: &Reading<'_>, told: &mut Vec<String>) {
    let written = line.written.trim_end();
    if let Some(input) = line.input {
        let lines = input.lines().count();
        told.push(format!(
            "a bare % ends the command: what follows is its standard input, {lines} lines (\\% is a percent sign)"
        ));
    }
    if written.contains("/run/systemd/system") {
        told.push(
            "the command looks for systemd and does nothing on a machine that runs it: a systemd timer does the work there"
                .to_owned(),
        );
    }
    if written.contains("/anacron") {
        told.push("the command leaves the work to anacron where that is installed".to_owned());
    }
    if background(written) {
        told.push(
            "the command puts something in the background: it is ended when the command ends, cron lets it run"
                .to_owned(),
        );
    }
    if written.ends_with('\\') {
        told.push("the line ends in a backslash: cron does not join lines, the next one is read by itself".to_owned());
    }
}

/// A single `&` that is neither part of `&&` nor of a redirection. Quotes are not looked at: a hint, not a verdict.
fn background(command: &str) -> bool {
    let bytes = command.as_bytes();
    bytes.iter().enumerate().any(|(at, byte)| {
        let before = at.checked_sub(1).map(|b| bytes[b]);
        let after = bytes.get(at + 1).copied();
        let part_of_more =
            matches!(before, Some(b'&' | b'>' | b'<' | b'\\' | b'|')) || matches!(after, Some(b'&' | b'>'));
        *byte == b'&' && !part_of_more && (after.is_none() || after.is_some_and(|b| b" \t;)".contains(&b)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_is_told_from_its_likes() {
        for (command, expected) in [
            ("daemon &", true),
            ("(a & ) ; b", true),
            ("a &; b", true),
            ("a && b", false),
            ("a >/dev/null 2>&1", false),
            ("a &>/dev/null", false),
            ("curl 'http://x/?a=1&b=2'", false),
            ("a", false),
        ] {
            assert_eq!(background(command), expected, "{command}");
        }
    }
}
