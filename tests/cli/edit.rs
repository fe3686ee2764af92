//! `job edit`, `doctor` and `man`.
use crate::program::{Dev, Done, campanile, run};
use std::{fs, os::unix::fs::PermissionsExt, path::Path};

/// An editor that is a script of sed.
fn edit(dev: &Dev, dir: &Path, sed: &str, args: &[&str]) -> Done {
    let editor = dir.join("editor");
    fs::write(&editor, format!("#!/bin/sh\nsed -i '{sed}' \"$1\"\n")).unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = campanile();
    command.env("EDITOR", &editor).env("TMPDIR", dir).env("CAMPANILE_SERVER", &dev.server);
    Done::new(&command.args(args).output().unwrap())
}

fn kept(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("campanile-edit-")).collect()
}

#[test]
fn a_job_is_edited_and_a_refused_text_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let dev = Dev::start(&path.join("data"), &["--no-demo", "--no-executor"]);
    dev.run(&["job", "create", "--name", "report", "--cron", "30 2 * * *", "--label", "team=pay"]).ok();
    let same = edit(&dev, path, "", &["job", "edit", "report"]);
    assert_eq!((same.code, same.err.as_str()), (0, "nothing was changed\n"), "{same:?}");

    let dry = edit(&dev, path, "s/30 2/45 3/", &["job", "edit", "report", "--dry-run"]);
    assert!(dry.err.contains("~ spec.schedule: 30 2 * * * -> 45 3 * * *\n"), "{dry:?}");
    assert!(dry.err.contains("a dry run"), "{dry:?}");
    let done = edit(&dev, path, "s/30 2/45 3/; s/team: pay/team: ops/", &["job", "edit", "report"]);
    assert!(done.err.contains("~ metadata.labels.team: pay -> ops\n"), "{done:?}");
    assert_eq!(done.ok(), "report is of version 2 now\n");
    assert_eq!(kept(path), Vec::<String>::new());
    let paused = edit(&dev, path, "s/^spec:/spec:\\n  suspend: true/", &["job", "edit", "report"]).ok();
    assert_eq!(paused, "report is of version 2 now\n");
    assert_eq!(dev.run(&["job", "get", "report", "-o", "json"]).json()["status"], "PAUSED");

    let slip = edit(&dev, path, "s/schedule:/schedul:/", &["job", "edit", "report"]).refused(2);
    assert!(slip.contains("spec.schedul: unknown field; did you mean `schedule`?"), "{slip}");
    let file = path.join(&kept(path)[0]);
    assert!(slip.contains(&format!("--file {}", file.display())), "{slip}");
    let again = edit(
        &dev,
        path,
        "s/schedul:/schedule:/; s/45 3/0 4/",
        &["job", "edit", "report", "--file", file.to_str().unwrap()],
    );
    assert_eq!(again.ok(), "report is of version 3 now\n");
    let gone = edit(&dev, path, "s/name: report/name: other/", &["job", "edit", "report"]).refused(2);
    assert!(gone.contains("cannot be changed"), "{gone}");
    let failed = edit(&dev, path, "", &["job", "edit", "report", "--file", "/nonexistent"]).refused(2);
    assert!(failed.contains("/nonexistent"), "{failed}");
}

#[test]
fn somebody_elses_edit_is_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(&dir.path().join("data"), &["--no-demo", "--no-executor"]);
    dev.run(&["job", "create", "--name", "report", "--every", "60"]).ok();
    // The editor's user takes so long that another edit comes first.
    let binary = env!("CARGO_BIN_EXE_campanile");
    let inner = format!("{binary} job replace report --file {}", dir.path().join("other.json").display());
    fs::write(dir.path().join("other.json"), r#"{"name":"report","trigger":{"type":"FIXED_RATE","everySec":7}}"#)
        .unwrap();
    let editor = dir.path().join("slow");
    fs::write(&editor, format!("#!/bin/sh\n{inner} >/dev/null\nsed -i s/1m/2m/ \"$1\"\n")).unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = campanile();
    command.env("EDITOR", &editor).env("TMPDIR", dir.path()).env("CAMPANILE_SERVER", &dev.server);
    let done = Done::new(&command.args(["job", "edit", "report"]).output().unwrap()).refused(5);
    assert!(done.contains("409_STALE_VERSION"), "{done}");
    assert!(done.contains("the text is kept"), "{done}");
    assert_eq!(dev.run(&["job", "get", "report", "-o", "json"]).json()["trigger"]["everySec"], 7);
}

#[test]
fn the_doctor_tells_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let dev = Dev::start(&path.join("data"), &["--no-demo", "--no-executor"]);
    let config = path.join("campanile.toml");
    let file = config.to_str().unwrap();
    let node = path.join("node");
    let tokens = path.join("tokens");
    run(&["token", "new", "--name", "me", "--role", "operator", "--append", tokens.to_str().unwrap()]).ok();
    let write = |more: &str| {
        let text = format!(
            "[node]\ndata_dir = {node:?}\n[http]\nlisten = \"127.0.0.1:0\"\n[rpc]\nlisten = \"127.0.0.1:0\"\n[auth]\ntoken_file = {tokens:?}\n{more}"
        );
        fs::write(&config, text).unwrap();
    };
    write("");
    let fine = dev.run(&["doctor", "--config", file]).ok();
    for line in [
        "ok    configuration",
        "ok    data directory",
        "ok    token file",
        "ok    node",
        "ok    clock",
        "ok    time zones",
    ] {
        assert!(fine.contains(line), "{line}: {fine}");
    }
    assert_eq!(fs::read_dir(path).unwrap().filter(|entry| entry.as_ref().unwrap().file_name() == "node").count(), 0);

    let port = dev.server.rsplit_once(':').unwrap().1.to_owned();
    write("[secrets]\nkey_file = \"/nonexistent\"\n[files]\ndir = \"/nonexistent\"\n");
    let text = fs::read_to_string(&config).unwrap().replacen("127.0.0.1:0", &format!("127.0.0.1:{port}"), 1);
    fs::write(&config, text).unwrap();
    let done = dev.run(&["doctor", "--config", file, "--server", "http://127.0.0.1:1"]);
    assert!(done.err.contains("checks failed"), "{done:?}");
    for line in
        ["FAIL  secret params", "FAIL  [files] dir", "warn  HTTP address", "is in use", "warn  node ", "what to do: "]
    {
        assert!(done.out.contains(line), "{line}: {done:?}");
    }
    assert_eq!(done.code, 1);
    fs::write(&config, "[http]\nlisen = 1\n").unwrap();
    let broken = dev.run(&["doctor", "--config", file, "-o", "json"]);
    let found: serde_json::Value = serde_json::from_str(&broken.out).unwrap();
    assert_eq!((broken.code, &found["findings"][1]["state"]), (1, &"fail".into()), "{found}");
}

#[test]
fn manual_pages_and_completions_are_whole() {
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("man");
    run(&["man", pages.to_str().unwrap()]).ok();
    let page = fs::read_to_string(pages.join("campanile-job-edit.1")).unwrap();
    assert!(page.contains(".TH campanile-job-edit 1"), "{page}");
    assert!(page.contains("dry"), "{page}");
    assert!(fs::read_dir(&pages).unwrap().count() > 40);
    let bash = dir.path().join("campanile.bash");
    fs::write(&bash, run(&["completions", "bash"]).ok()).unwrap();
    // bash itself reads it, and offers what begins so.
    let script = format!(
        "source {}; COMP_WORDS=(campanile ap); COMP_CWORD=1; _campanile campanile ap campanile; echo ${{COMPREPLY[@]}}",
        bash.display()
    );
    let offered = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&offered.stdout).trim(), "apply", "{offered:?}");
}
