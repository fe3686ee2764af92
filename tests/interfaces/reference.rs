//! `docs/reference`: the command line and the configuration as the program tells them. `UPDATE_GOLDEN=1` writes both.

use crate::program;

use program::run;
use std::fmt::Write;

/// The page holds exactly this.
pub fn holds(page: &str, text: &str) {
    let path = format!("{}/docs/reference/{page}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let shown = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(shown == text, "docs/reference/{page} is not what the program tells: write it with UPDATE_GOLDEN=1");
}

/// Subcommands that a help text lists, in its order.
fn subcommands(help: &str) -> Vec<String> {
    let listed = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let listed = listed.lines().take_while(|line| !line.is_empty());
    let named = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    named.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").map(str::to_owned).collect()
}

fn section(path: &[String], depth: usize, text: &mut String) {
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    let help = run(&[&words[..], &["--help"]].concat()).ok();
    // What every command takes is told once.
    let own: Vec<&str> = help.lines().map(str::trim_end).collect();
    writeln!(text, "{} campanile {}\n\n```text\n{}\n```\n", "#".repeat(depth), words.join(" "), own.join("\n"))
        .unwrap();
    for name in subcommands(&help) {
        section(&[path, &[name]].concat(), 3, text);
    }
}

#[test]
fn every_command_is_in_the_reference_as_its_help_tells_it() {
    let whole = run(&["--help"]).ok();
    let commands = subcommands(&whole);
    assert!(commands.len() > 15, "{commands:?}");
    assert!(commands.contains(&"store".to_owned()), "{commands:?}");
    let mut text = String::from(
        "# Command line\n\nWhat `--help` of every command tells. Written by `tests/interfaces/reference.rs` from the program itself: change the program, \
         not this page.\n\n",
    );
    let own: Vec<&str> = whole.lines().map(str::trim_end).collect();
    writeln!(text, "```text\n{}\n```\n", own.join("\n")).unwrap();
    for name in commands {
        section(&[name], 2, &mut text);
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    holds("cli.md", &text);
}

#[test]
fn every_setting_is_in_the_reference_with_its_default() {
    let mut text = String::from(
        "# Configuration\n\nEvery setting with its default, from the file that `campanile config default` prints. Written by \
         `tests/interfaces/reference.rs`: change `deploy/campanile.toml`, not this page. A setting is also taken from the environment, as \
         `CAMPANILE_SECTION__KEY`.\n",
    );
    let (mut section, mut said, mut settings) = (String::new(), Vec::new(), 0);
    for line in run(&["config", "default"]).ok().lines() {
        if let Some(comment) = line.strip_prefix('#') {
            said.push(comment.trim().to_owned());
        } else if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            name.clone_into(&mut section);
            write!(text, "\n## [{name}]\n\n").unwrap();
            if !said.is_empty() {
                write!(text, "{}\n\n", said.join(" ")).unwrap();
            }
            text += "| setting | default | meaning |\n|---|---|---|\n";
            said.clear();
        } else if let Some((key, value)) = line.split_once(" = ") {
            let meaning = said.join(" ").replace('|', "\\|");
            assert!(!section.is_empty(), "[{section}] {key} has no comment");
            assert!(!meaning.is_empty(), "[{section}] {key} has no comment");
            writeln!(text, "| `{key}` | `{value}` | {meaning} |").unwrap();
            said.clear();
            settings += 1;
        } else {
            assert!(line.is_empty(), "a line of another kind: {line}");
            said.clear();
        }
    }
    assert!(settings > 30, "{settings} settings");
    holds("configuration.md", &text);
}
