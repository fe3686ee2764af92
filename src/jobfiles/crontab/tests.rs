//! Whole files: what becomes of them, and what a second import does.
#![allow(clippy::unwrap_used)]

use super::*;
use campanile_schema::{
    ids::JobId,
    job::{Action, ConcurrencyPolicy, JobStatus, JobView, MisfirePolicy, Trigger},
};
use proptest::prelude::*;
use std::fs;

/// 2026-11-21T11:00:00Z, a Saturday.
const NOW_MS: i64 = 1_795_258_800_000;

fn options() -> ImportOptions {
    ImportOptions {
        tenant: "default".into(),
        pool: "default".into(),
        as_self: false,
        now_ms: NOW_MS,
        machine_zone: "UTC".into(),
        self_user: "root".into(),
        format: Format::Auto,
    }
}

struct Machine(tempfile::TempDir);

impl Machine {
    fn new(files: &[(&str, &str)]) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            machine.write(path, text);
        }
        machine
    }
    fn path(&self, path: &str) -> PathBuf {
        fs::canonicalize(self.0.path()).unwrap().join(path)
    }
    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fn import(&self, path: &str, options: &ImportOptions) -> Import {
        import(&[self.path(path)], options).unwrap()
    }
}

/// One system crontab.
fn system(text: &str) -> Import {
    Machine::new(&[("etc/crontab", text)]).import("etc/crontab", &options())
}

fn only(import: &Import) -> &ImportedJob {
    assert_eq!((import.jobs.len(), &import.refused[..]), (1, &[][..]));
    &import.jobs[0]
}

fn command(job: &ImportedJob) -> (Vec<String>, BTreeMap<String, String>, Option<String>) {
    match job.spec.action.clone().unwrap() {
        Action::Command { command, env, stdin, .. } => (command, env, stdin),
        other @ (Action::Handler { .. } | Action::Http { .. } | Action::Webhook { .. } | Action::Dag(_)) => {
            panic!("{other:?}")
        }
    }
}

fn cron(job: &ImportedJob) -> (String, String, u32) {
    match &job.spec.trigger {
        Trigger::Cron { expr, timezone, jitter_sec, .. } => (expr.clone(), timezone.clone(), *jitter_sec),
        other => panic!("{other:?}"),
    }
}

fn hazard(job: &ImportedJob, words: &str) -> bool {
    job.hazards.iter().any(|h| h.contains(words))
}

fn as_existing(import: &Import) -> Vec<JobView> {
    let view = |(id, job): (usize, &ImportedJob)| JobView {
        job_id: JobId(id as u64),
        status: JobStatus::Enabled,
        version: 3,
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
        next_fire_at: None,
        last_run_at: None,
        last_run_state: None,
        run_count: 0,
        quarantine_reason: None,
        spec: job.spec.clone(),
    };
    import.jobs.iter().enumerate().map(view).collect()
}

#[test]
fn a_line_becomes_a_job_that_behaves_as_under_cron() {
    let import = system("30 3 * * 0 root /sbin/scrub -A\n");
    let job = only(&import);
    assert!(job.spec.name.starts_with("cron/crontab/"));
    assert_eq!(job.spec.name.len(), "cron/crontab/".len() + 8);
    assert_eq!(cron(job), ("30 3 * * 0".into(), "UTC".into(), 0));
    let (command, env, stdin) = command(job);
    assert_eq!(command, ["/bin/sh", "-c", "/sbin/scrub -A"]);
    assert_eq!(env, BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]));
    assert_eq!(stdin, None);
    assert_eq!(job.spec.concurrency_policy, ConcurrencyPolicy::Allow);
    assert_eq!(job.spec.retry_policy.max_attempts, 1);
    let Trigger::Cron { misfire_policy, .. } = job.spec.trigger else { panic!() };
    assert_eq!(misfire_policy, MisfirePolicy::Skip);
    assert!(job.spec.labels[LABEL_FILE].ends_with("/etc/crontab"));
    let next: Vec<String> = job.next.iter().map(Timestamp::to_string).collect();
    assert_eq!(next, ["2026-11-22T03:30:00.000Z", "2026-11-29T03:30:00.000Z", "2026-12-06T03:30:00.000Z"]);
    assert!(import.notes.iter().any(|n| n.contains("as under cron")));
}

#[test]
fn settings_hold_for_the_lines_below_them() {
    let text = "0 1 * * * root first\nSHELL=/bin/bash\nPATH=/a:/b\nGREETING=\"hi there\"\nMAILTO=ada@example.org\n\
        CRON_TZ=Europe/Rome\nRANDOM_DELAY=30\nLOGNAME=eve\n0 2 * * * root second\nCRON_TZ=Asia/Tokyo\n0 3 * * * root third\n";
    let import = system(text);
    assert_eq!(import.refused, []);
    assert_eq!(command(&import.jobs[0]).0[0], "/bin/sh");
    assert_eq!(cron(&import.jobs[0]).1, "UTC");
    let second = &import.jobs[1];
    let (command, env, _) = command(second);
    assert_eq!(command, ["/bin/bash", "-c", "second"]);
    let expected = [("GREETING", "hi there"), ("PATH", "/a:/b"), ("SHELL", "/bin/bash")];
    assert_eq!(env, expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    assert_eq!(cron(second), ("0 2 * * *".into(), "Europe/Rome".into(), 1800));
    assert_eq!(second.next[0].to_string(), "2026-11-22T01:00:00.000Z");
    assert_eq!(second.spec.labels[LABEL_MAILTO], "ada@example.org");
    for words in ["no mail is sent", "CRON_TZ=Europe/Rome", "RANDOM_DELAY=30", "LOGNAME", "not exist in Europe/Rome"] {
        assert!(hazard(second, words), "{words}: {:?}", second.hazards);
    }
    assert_eq!(cron(&import.jobs[2]).1, "Asia/Tokyo");
}

#[test]
fn hazards_are_told() {
    for (line, words) in [
        ("* * * * * root x", "every minute"),
        ("0 0 13 * 5 root x", "both day fields"),
        ("0 0 L * * root x", "cron does not know"),
        ("0 0 * * * root mail joe%Joe,%bye", "a bare % ends the command"),
        ("0 0 * * * root test -d /run/systemd/system || x", "systemd"),
        ("0 0 * * * root test -x /usr/sbin/anacron || x", "anacron"),
        ("0 0 * * * root daemon &", "in the background"),
        ("0 0 * * * root x \\", "does not join"),
        ("0 0 31 * * root x", "months without a day 31"),
        ("@reboot root x", "MANUAL"),
        ("TZ=Asia/Tokyo\n0 0 * * * root x", "does not move the schedule"),
        ("PATH=$HOME/bin:/bin\n0 0 * * * root x", "does not expand"),
        ("PATH=bin:/bin\n0 0 * * * root x", "no absolute path"),
    ] {
        let import = system(&format!("{line}\n"));
        assert!(hazard(only(&import), words), "{line}: {:?}", import.jobs[0].hazards);
    }
    let quiet = system("0 4 * * * root x\n");
    assert_eq!(only(&quiet).hazards, Vec::<String>::new());
    assert!(hazard(only(&system("0 4 * * * root x")), "newline"));
}

#[test]
fn reboot_becomes_manual() {
    let import = system("@reboot root /bin/start\n");
    let job = only(&import);
    assert_eq!(job.spec.trigger, Trigger::Manual {});
    assert_eq!(job.next, []);
}

#[test]
fn refused_lines_tell_place_reason_and_advice() {
    let text = "# ok\n61 * * * * root x\nhello\n0 0 30 2 * root x\nH * * * * root x\nCRON_TZ=Mars/Base\n0 0 * * * root x\n\
        RANDOM_DELAY=soon\n0 0 * * * root %x\n0 0 * * * /bin/x\n";
    let import = system(text);
    // A line that never fires is a job without a trigger of its own.
    assert_eq!(import.jobs.iter().map(|job| &job.spec.trigger).collect::<Vec<_>>(), [&Trigger::Manual {}]);
    let found: Vec<(u32, &str)> = import.refused.iter().map(|r| (r.line, r.reason.as_str())).collect();
    for (line, words) in [
        (2, "61 * * * *"),
        (3, "of the five time fields"),
        (5, "hold an H"),
        (7, "Mars/Base"),
        (8, "RANDOM_DELAY"),
        (9, "before the first %"),
        (10, "is no name of one"),
    ] {
        assert!(found.iter().any(|(at, reason)| *at == line && reason.contains(words)), "{line} {words}: {found:?}");
    }
    assert_eq!(found.len(), 7);
    assert!(import.refused.iter().all(|r| !r.advice.is_empty() && r.file.ends_with("/etc/crontab")));
    assert_eq!(import.refused[0].text, "61 * * * * root x");
}

#[test]
fn lines_of_other_users_need_as_self() {
    let machine = Machine::new(&[("etc/crontab", "0 0 * * * www-data x\n0 0 * * * root x\n")]);
    let import = machine.import("etc", &options());
    assert_eq!((import.jobs.len(), import.refused.len()), (1, 1));
    assert!(import.refused[0].advice.contains("--as-self"));
    let import = machine.import("etc", &ImportOptions { as_self: true, ..options() });
    assert_eq!((import.jobs.len(), import.refused.len()), (2, 0));
    assert!(hazard(&import.jobs[0], "cron runs it as www-data"));
    assert_eq!(import.jobs[0].spec.labels[LABEL_USER], "www-data");
    assert_ne!(import.jobs[0].spec.name, import.jobs[1].spec.name, "the user is in the hash");
}

#[test]
fn user_crontabs_belong_to_the_user_that_the_spool_names() {
    let files = [("var/spool/cron/crontabs/ada", "0 0 * * * x\n"), ("var/spool/cron/crontabs/root", "0 0 * * * y\n")];
    let machine = Machine::new(&files);
    let import = machine.import("var/spool/cron/crontabs", &options());
    assert_eq!(import.jobs.len(), 1);
    assert!(import.jobs[0].spec.name.starts_with("cron/root/"));
    assert_eq!(import.refused.len(), 1);
    assert!(import.refused[0].reason.contains("ada"));
}

#[test]
fn files_elsewhere_are_read_by_their_lines() {
    let machine = Machine::new(&[
        ("a.cron", "0 0 * * * root /bin/x\n5 0 * * * root y\n"),
        ("b.cron", "0 0 * * * mail -s hi joe\n5 0 * * * sync\n"),
        ("c.cron", "0 0 * * * root\n5 0 * * * root x\n"),
    ]);
    assert_eq!(command(&machine.import("a.cron", &options()).jobs[0]).0[2], "/bin/x");
    assert_eq!(command(&machine.import("b.cron", &options()).jobs[0]).0[2], "mail -s hi joe");
    assert_eq!(command(&machine.import("c.cron", &options()).jobs[1]).0[2], "root x");
    let forced = ImportOptions { format: Format::User, ..options() };
    assert_eq!(command(&machine.import("a.cron", &forced).jobs[0]).0[2], "root /bin/x");
}

#[test]
fn directories_follow_the_rules_of_cron() {
    let machine = Machine::new(&[
        ("etc/cron.d/good", "0 0 * * * root x\n"),
        ("etc/cron.d/old.dpkg-old", "0 0 * * * root never\n"),
        ("etc/cron.d/.placeholder", "# none\n"),
        ("etc/cron.daily/script", "#!/bin/sh\n"),
        ("etc/crontab", "25 6 * * * root run-parts /etc/cron.daily\n"),
    ]);
    let import = machine.import("etc", &options());
    assert_eq!((import.jobs.len(), import.refused.len()), (2, 0));
    assert!(import.notes.iter().any(|n| n.contains("old.dpkg-old: skipped")));
    assert!(!import.notes.iter().any(|n| n.contains("placeholder")));
    // Named by itself, such a file is what the caller wants.
    assert_eq!(machine.import("etc/cron.d/old.dpkg-old", &options()).jobs.len(), 1);
    let daily = machine.import("etc/cron.daily", &options());
    assert!(daily.jobs.is_empty());
    assert!(daily.refused[0].advice.contains("/etc/crontab"));
    let twice = super::import(&[machine.path("etc"), machine.path("etc/crontab")], &options()).unwrap();
    assert_eq!(twice.jobs.len(), 2, "a file named twice is read once");
    machine.write("etc/anacrontab", "1 5 cron.daily run-parts /etc/cron.daily\n");
    assert!(machine.import("etc/anacrontab", &options()).refused[0].advice.contains("FIRE_ONCE_NOW"));
    let missing = super::import(&[machine.path("nowhere")], &options()).unwrap_err();
    assert!(matches!(missing, ImportError::Unreadable { .. }));
    let zone = ImportOptions { machine_zone: "Nowhere/X".into(), ..options() };
    assert!(matches!(super::import(&[machine.path("etc")], &zone), Err(ImportError::Zone(_))));
}

#[test]
fn windows_line_ends_and_other_encodings() {
    let machine = Machine::new(&[("etc/crontab", "SHELL=/bin/bash\r\n0 0 * * * root x\r\n")]);
    let import = machine.import("etc/crontab", &options());
    assert_eq!(command(only(&import)).0, ["/bin/bash", "-c", "x"]);
    assert!(import.notes.iter().any(|n| n.contains("Windows")));
    fs::write(machine.path("etc/crontab"), b"0 0 * * * root caf\xe9\n0 1 * * * root y\n").unwrap();
    let import = machine.import("etc/crontab", &options());
    assert_eq!((import.jobs.len(), import.refused.len()), (1, 1));
    assert!(import.refused[0].reason.contains("UTF-8"));
}

#[test]
fn twins_are_numbered_and_a_second_import_has_nothing_to_do() {
    let import = system("0 1 * * * root x\n0 2 * * * root x\n0 3 * * * root x\n0 4 * * * root y\n");
    let names: Vec<&str> = import.jobs.iter().map(|j| j.spec.name.as_str()).collect();
    assert_eq!(names[1], format!("{}-2", names[0]));
    assert_eq!(names[2], format!("{}-3", names[0]));
    let first = plan(&import, &[]);
    assert_eq!((first.create.len(), first.is_empty()), (4, false));
    let second = plan(&import, &as_existing(&import));
    assert!(second.is_empty());
    assert!(second.gone.is_empty());
    assert_eq!(second.same.len(), 4);
}

#[test]
fn an_edited_time_changes_the_job_and_leaves_its_owners_settings_alone() {
    let machine = Machine::new(&[("etc/crontab", "0 1 * * * root x\n0 5 * * * root gone\n")]);
    let mut existing = as_existing(&machine.import("etc/crontab", &options()));
    existing[0].spec.priority = 900;
    existing[0].spec.retry_policy.max_attempts = 5;
    existing[0].spec.labels.insert("team".into(), "ops".into());
    assert!(plan(&machine.import("etc/crontab", &options()), &existing).is_empty());

    machine.write("etc/crontab", "A=1\nMAILTO=ada\nRANDOM_DELAY=5\n30 1 * * * root x\n0 6 * * * root new\n");
    let import = machine.import("etc/crontab", &options());
    let found = plan(&import, &existing);
    assert_eq!((found.create.len(), found.change.len(), found.gone.len()), (1, 1, 1));
    let change = &found.change[0];
    assert_eq!((change.version, change.spec.priority, change.spec.retry_policy.max_attempts), (3, 900, 5));
    assert_eq!(change.spec.labels["team"], "ops");
    assert_eq!(
        change.what,
        [
            "schedule: 0 1 * * * -> 30 1 * * *",
            "random delay: 0 s -> 300 s",
            "variable A: (none) -> \"1\"",
            "label cron.mailto: (none) -> \"ada\"",
        ]
    );
    assert_eq!(found.gone, [existing[1].spec.name.clone()]);
    let text = render(&import, &found);
    for words in [
        "1 to create, 1 to change, 0 unchanged, 1 gone, 0 refused",
        "~ schedule: 0 1 * * * -> 30 1 * * *",
        "! no mail is sent",
        "2026-11-22 01:30",
        "$ new",
    ] {
        assert!(text.contains(words), "{words} in:\n{text}");
    }
    // Applied, there is nothing left to do.
    existing[0].spec = change.spec.clone();
    existing.truncate(1);
    let mut after = existing;
    after.extend(as_existing(&import).into_iter().filter(|v| v.spec.name == found.create[0].name));
    assert!(plan(&import, &after).is_empty());
}

#[test]
fn a_deleted_file_of_an_imported_directory_makes_its_jobs_gone() {
    let machine = Machine::new(&[("etc/cron.d/a", "0 0 * * * root x\n"), ("etc/cron.d/b", "0 0 * * * root y\n")]);
    let existing = as_existing(&machine.import("etc/cron.d", &options()));
    fs::remove_file(machine.path("etc/cron.d/b")).unwrap();
    let one = plan(&machine.import("etc/cron.d/a", &options()), &existing);
    assert_eq!(one.gone, Vec::<String>::new(), "the other file was not looked at");
    let all = plan(&machine.import("etc/cron.d", &options()), &existing);
    assert_eq!(all.gone, [existing[1].spec.name.clone()]);
}

fn read(bytes: &[u8], kind: sources::SourceKind) -> Import {
    let source = sources::Source { path: "/x/any".into(), kind, explicit: true };
    let mut import = Import::default();
    let options = ImportOptions { as_self: true, ..options() };
    reader::read_file(&source, "/x/any", bytes, &options, &BTreeSet::new(), &|| true, &mut import);
    number_twins(&mut import.jobs);
    import
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read(&bytes, sources::SourceKind::System);
        read(&bytes, sources::SourceKind::Unknown);
    }

    #[test]
    fn lines_like_a_crontab_become_a_job_or_a_refusal(
        lines in prop::collection::vec(
            "[-@ \t]?([0-9*/,#LWH?-]{1,6}[ \t]){4,6}(root|é|a%b\\\\%)?( [-a-z%\\\\&#=\"']{0,8}){0,3}\r?|[A-Z_\"']{1,5} ?= ?[\"'a$~ #]{0,6}|@[a-z]{2,8} x",
            0..12,
        ),
        system in any::<bool>(),
    ) {
        let kind = if system { sources::SourceKind::System } else { sources::SourceKind::User { owner: None } };
        let import = read(lines.join("\n").as_bytes(), kind);
        prop_assert!(import.jobs.len() + import.refused.len() <= lines.len());
        for refused in &import.refused {
            prop_assert!(!refused.reason.is_empty());
            prop_assert!(!refused.advice.is_empty());
            prop_assert!(refused.line >= 1);
        }
        for job in &import.jobs {
            prop_assert!(job.spec.name.len() <= limits::NAME_CHARS);
            prop_assert!(job.spec.name.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c)));
            prop_assert!(job.next.windows(2).all(|w| w[0] < w[1]));
        }
        let names: BTreeSet<&str> = import.jobs.iter().map(|j| j.spec.name.as_str()).collect();
        prop_assert_eq!(names.len(), import.jobs.len());
        prop_assert!(plan(&import, &as_existing(&import)).is_empty());
        render(&import, &plan(&import, &[]));
    }
}

/// Cron takes these lines and never runs them, or runs them at the first value of a step.
#[test]
fn lines_are_read_as_cron_reads_them() {
    let expr = |line: &str| match &only(&system(&format!("{line} root x\n"))).spec.trigger {
        Trigger::Cron { expr, .. } => Some(expr.clone()),
        Trigger::Manual {} => None,
        other => panic!("{other:?}"),
    };
    for (line, kept) in [
        ("*/60 * * * *", Some("*/60 * * * *")),
        ("10-10/5 * * * *", Some("10-10/5 * * * *")),
        ("0 0 31 2 *", None),
        ("0 22-6 * * *", None),
        ("0 22-6,12 * * *", Some("0 12 * * *")),
        ("0 14 */10 * 1-5", Some("0 14 */10 * 1-5")),
        ("0 5 * * 1#2", Some("0 5 * * 1")),
        ("0 5 L * *", Some("0 5 L * *")),
    ] {
        assert_eq!(expr(line).as_deref(), kept, "{line}");
    }
    let beyond = system("*/60 * * * * root x\n");
    assert!(hazard(only(&beyond), "only its first value is due"), "{:?}", only(&beyond).hazards);
    let never = system("0 0 31 2 * root x\n");
    assert!(hazard(only(&never), "February has no 31st; the job is MANUAL"), "{:?}", only(&never).hazards);
    assert!(only(&never).next.is_empty());
    let unknown = system("5/10 * * * * root x\n");
    assert!(hazard(only(&unknown), "Debian's refuses the whole file"), "{:?}", only(&unknown).hazards);
    let refused = system("0 0 * * monday root x\n0~9 * * * * root y\n").refused;
    assert!(refused[0].advice.contains("Debian's cron ignores the whole file, cronie the line"), "{refused:?}");
    assert!(refused[1].advice.contains("cronie draws a time"), "{refused:?}");
}

#[test]
fn what_windows_editors_write_is_read() {
    let machine = Machine::new(&[("etc/crontab", "")]);
    fs::write(machine.path("etc/crontab"), b"\xef\xbb\xbfAPP-ENV=prod\r\n# caf\xe9\r\n0 5 * * * root x\r\n").unwrap();
    let import = machine.import("etc/crontab", &options());
    let (_, env, _) = command(only(&import));
    assert_eq!(env.get("APP-ENV").map(String::as_str), Some("prod"));
    fs::write(machine.path("etc/crontab"), b"0 5 * * * root caf\xe9\n").unwrap();
    assert!(machine.import("etc/crontab", &options()).refused[0].reason.contains("not UTF-8"));
    fs::write(machine.path("etc/crontab"), b"\xff\xfe0\0 \0").unwrap();
    assert!(machine.import("etc/crontab", &options()).refused[0].reason.contains("UTF-16"));
}

#[test]
fn a_file_that_takes_too_long_is_given_up_at_a_line() {
    let machine = Machine::new(&[("etc/crontab", "0 1 * * * root a\n0 2 * * * root b\n0 3 * * * root c\n")]);
    let asked = std::cell::Cell::new(0);
    let two_lines = || {
        asked.set(asked.get() + 1);
        asked.get() <= 2
    };
    let import = import_while(&[machine.path("etc/crontab")], &options(), &two_lines).unwrap();
    assert_eq!((import.jobs.len(), import.refused.len(), import.refused[0].line), (2, 1, 3));
    assert!(import.refused[0].reason.contains("took too long"), "{:?}", import.refused);
}
