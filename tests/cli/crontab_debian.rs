//! The crontabs that Debian packages install, imported as they are.
//!
//! Downloads a handful of packages with `apt-get download`. Where that cannot work (not Debian, no network) the test
//! fails and says so; `CAMPANILE_SKIP_DEBIAN=1` skips it.

use campanile_jobfiles::crontab::{Format, Import, ImportOptions, import, plan, render};
use campanile_schema::job::{Action, Trigger};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const PACKAGES: [&str; 6] = ["sysstat", "mdadm", "e2fsprogs", "certbot", "php-common", "cron"];
/// Holds `/etc/crontab` where `cron` itself does not any more.
const SINCE_BOOKWORM: &str = "cron-daemon-common";

/// Why a program failed, for people.
fn call(program: &str, arguments: &[&str], directory: &Path) -> Result<(), String> {
    let line = format!("{program} {}", arguments.join(" "));
    let output = Command::new(program).args(arguments).current_dir(directory).output();
    match output {
        Err(e) => Err(format!("`{line}` cannot be started: {e}")),
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("`{line}`: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr))),
    }
}

fn download(package: &str, directory: &Path) -> Result<(), String> {
    call("apt-get", &["download", package], directory)
}

/// Unpacks every package into a directory of its own.
fn unpacked(root: &Path) -> Result<Vec<PathBuf>, String> {
    let packages = root.join("packages");
    fs::create_dir(&packages).unwrap();
    for package in PACKAGES {
        if download(package, &packages).is_err() {
            call("apt-get", &["update"], &packages)?;
            download(package, &packages)?;
        }
    }
    // Absent before bookworm: then /etc/crontab is in cron.
    let _ = download(SINCE_BOOKWORM, &packages);
    let mut trees = Vec::new();
    for archive in
        fs::read_dir(&packages).unwrap().flatten().filter(|e| e.path().extension().is_some_and(|e| e == "deb"))
    {
        let name = archive.file_name().into_string().unwrap();
        let tree = root.join(name.split('_').next().unwrap());
        call("dpkg-deb", &["-x", &archive.path().display().to_string(), &tree.display().to_string()], root)?;
        trees.push(tree);
    }
    Ok(trees)
}

fn imported(path: &Path) -> Import {
    let options = ImportOptions {
        tenant: "default".into(),
        pool: "default".into(),
        as_self: false,
        now_ms: 1_795_258_800_000,
        machine_zone: "Europe/Berlin".into(),
        self_user: "root".into(),
        format: Format::Auto,
    };
    import(&[path.to_owned()], &options).unwrap()
}

/// Lines that start something, counted without the code under test.
fn entries(directory: &Path) -> usize {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    let texts = files.filter(|f| f.path().is_file()).map(|f| fs::read_to_string(f.path()).unwrap());
    texts
        .map(|text| text.lines().filter(|l| l.starts_with(|c: char| c.is_ascii_digit() || "*@".contains(c))).count())
        .sum()
}

#[test]
fn crontabs_of_debian_packages_are_imported_whole() {
    if std::env::var("CAMPANILE_SKIP_DEBIAN").is_ok_and(|v| v == "1") {
        println!("SKIPPED: CAMPANILE_SKIP_DEBIAN=1");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let trees = unpacked(root.path()).unwrap_or_else(|why| {
        panic!(
            "this test needs Debian (or a relative) and its package mirror; set CAMPANILE_SKIP_DEBIAN=1 to skip it.\n{why}"
        )
    });
    let mut jobs = 0;
    let mut system_crontabs = 0;
    for tree in trees {
        let etc = tree.join("etc");
        let table = usize::from(etc.join("crontab").is_file());
        system_crontabs += table;
        let expected = entries(&etc.join("cron.d")) + if table == 1 { 4 } else { 0 };
        if expected == 0 {
            continue;
        }
        let import = imported(&etc);
        let text = render(&import, &plan(&import, &[]));
        println!("{}\n{text}", tree.display());
        assert_eq!(import.refused, [], "{text}");
        assert_eq!(import.jobs.len(), expected, "{text}");
        for job in &import.jobs {
            let Some(Action::Command { command, env, .. }) = &job.spec.action else { panic!("{job:?}") };
            assert_eq!((command.len(), command[1].as_str()), (3, "-c"));
            assert!(!command[2].starts_with("root"), "the user column is no part of the command: {command:?}");
            assert!(env.contains_key("PATH"));
            assert_eq!(job.next.len(), 3, "{job:?}");
            assert!(matches!(&job.spec.trigger, Trigger::Cron { timezone, .. } if timezone == "Europe/Berlin"));
        }
        specifics(&tree, &import);
        jobs += import.jobs.len();
    }
    assert_eq!(system_crontabs, 1, "/etc/crontab is in one of the packages");
    assert!(jobs >= 8, "{jobs} jobs");
}

/// Lines that stayed the same for many releases.
fn specifics(tree: &Path, import: &Import) {
    let find = |expr: &str| {
        let named = |t: &Trigger| matches!(t, Trigger::Cron { expr: e, .. } if e == expr);
        let job = import.jobs.iter().find(|j| named(&j.spec.trigger));
        let job = job.unwrap_or_else(|| panic!("no {expr} in {}", tree.display()));
        match job.spec.action.clone() {
            Some(Action::Command { command, env, .. }) => (command[2].clone(), env, job.hazards.join("\n")),
            other => panic!("{other:?}"),
        }
    };
    match tree.file_name().and_then(|n| n.to_str()) {
        Some("sysstat") => {
            let (_, env, _) = find("5-55/10 * * * *");
            assert!(env["PATH"].starts_with("/usr/lib/sysstat:"));
        }
        Some("mdadm") => {
            let (command, _, _) = find("57 0 * * 0");
            assert!(command.contains("date +%d)"), "the escaped percent sign lost its backslash: {command}");
        }
        Some("certbot") => {
            let (_, _, hazards) = find("0 */12 * * *");
            assert!(hazards.contains("systemd"));
        }
        Some("php-common") => {
            let (command, _, _) = find("09,39 * * * *");
            assert!(command.contains("sessionclean"));
        }
        Some("cron" | "cron-daemon-common") => {
            let (command, env, hazards) = find("25 6 * * *");
            assert!(command.contains("run-parts"));
            assert!(hazards.contains("anacron"));
            assert!(env["PATH"].contains("/usr/local/sbin"));
        }
        _ => {}
    }
}
