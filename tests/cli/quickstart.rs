//! `docs/quickstart.md` and a guide as a new user types them: every line of their shell blocks runs, and shows what the page says.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::program as poll;

#[derive(Debug)]
struct Block {
    line: usize,
    /// What stands behind the fence: `sh`, `sh terminal`, `text`.
    kind: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (n, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(kind), false) => {
                blocks.push(Block { line: n + 1, kind: kind.to_owned(), text: String::new() });
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                let block = blocks.last_mut().unwrap();
                block.text += line;
                block.text.push('\n');
            }
            (None, false) => {}
        }
    }
    assert!(!open, "a block has no end");
    blocks
}

/// Whether a line is as told; `<...>` stands for anything, and any run of blanks for another.
fn fits(told: &str, line: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (told, line) = (words(told), words(line));
    let mut parts = told.split("<...>");
    let Some(rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut rest = rest;
    let mut open = false;
    for part in parts {
        open = true;
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        open &= part.is_empty();
    }
    rest.is_empty() || open
}

/// Every line that is told comes, in this order; `...` stands for any lines.
fn shows(told: &str, output: &str) -> Result<(), String> {
    let mut lines = output.lines();
    let mut skips = false;
    for wanted in told.lines() {
        if wanted.trim() == "..." {
            skips = true;
            continue;
        }
        loop {
            match lines.next() {
                Some(line) if fits(wanted, line) => break,
                Some(_) if skips => {}
                Some(line) => return Err(format!("'{line}' where '{wanted}' is told")),
                None => return Err(format!("no line '{wanted}'")),
            }
        }
        skips = false;
    }
    match lines.next() {
        Some(more) if !skips => Err(format!("more than is told: '{more}'")),
        Some(_) | None => Ok(()),
    }
}

/// The node of the first terminal; ends with the test.
struct Terminal(Child);

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A shell in the user's place, with nothing of this machine's environment but where programs are.
fn shell(home: &Path, text: &str) -> Command {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_campanile"));
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", text]).current_dir(home);
    command.env_clear().env("PATH", path).env("HOME", home).env("TZ", "UTC");
    command
}

fn typed(home: &Path, block: &Block) -> String {
    let output = shell(home, &block.text).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "line {}: {}\n{out}{err}", block.line, block.text);
    out
}

/// Types every line of a page and looks at what it shows. Gives how many blocks ran.
fn type_page(page: &str) -> usize {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
    let home = tempfile::tempdir().unwrap();
    let blocks = blocks(&page);
    let mut terminal = None;
    let mut ran = 0;
    for (at, block) in blocks.iter().enumerate() {
        match block.kind.as_str() {
            "sh terminal" => {
                // Other ports: the usual ones may be somebody's.
                let text = format!("exec {} --http 127.0.0.1:0 --rpc 127.0.0.1:0", block.text.trim());
                let child = shell(home.path(), &text).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
                let mut child = Terminal(child);
                let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
                assert!(lines.any(|line| line.unwrap().starts_with("token=")), "the node did not start");
                // It must not wait for somebody to read.
                std::thread::spawn(move || lines.for_each(drop));
                terminal = Some(child);
            }
            "sh" => {
                ran += 1;
                let told = blocks.get(at + 1).filter(|next| next.kind == "text");
                let output = typed(home.path(), block);
                let Some(told) = told else { continue };
                // What is shown may take a moment; only what is asked again without harm is.
                let harmless =
                    !["create", "trigger", "backup", "redrive", "apply"].iter().any(|verb| block.text.contains(verb));
                let Err(why) = shows(&told.text, &output) else { continue };
                assert!(harmless, "line {}: {why}\n{output}", told.line);
                let what = format!("line {}: {why}", told.line);
                poll::eventually(&what, || shows(&told.text, &typed(home.path(), block)).ok());
            }
            // Shown with a command before, or a part of a definition.
            "text" | "json" => {}
            other => panic!("line {}: a block of the kind '{other}' would not be tested", block.line),
        }
    }
    assert!(terminal.is_some(), "no node was started");
    ran
}

#[test]
fn every_line_of_the_quick_start_does_what_the_page_says() {
    let ran = type_page("docs/quickstart.md");
    assert!(ran >= 8, "{ran} blocks");
}

#[test]
fn every_line_of_the_guide_to_hooks_does_what_the_page_says() {
    let ran = type_page("docs/guides/hooks.md");
    assert!(ran >= 6, "{ran} blocks");
}

#[test]
fn every_line_of_the_guide_to_bulk_operations_does_what_the_page_says() {
    let ran = type_page("docs/guides/bulk.md");
    assert!(ran >= 6, "{ran} blocks");
}

#[test]
fn every_line_of_the_guide_to_dags_does_what_the_page_says() {
    let ran = type_page("docs/guides/dags.md");
    assert!(ran >= 6, "{ran} blocks");
}

#[test]
fn every_line_of_the_guide_to_imports_does_what_the_page_says() {
    let ran = type_page("docs/guides/import.md");
    assert!(ran >= 5, "{ran} blocks");
}

#[test]
fn every_line_of_the_guide_to_targets_does_what_the_page_says() {
    let ran = type_page("docs/guides/targets.md");
    assert!(ran >= 5, "{ran} blocks");
}

#[test]
fn every_line_of_the_guide_to_plans_does_what_the_page_says() {
    let ran = type_page("docs/guides/plan.md");
    assert!(ran >= 4, "{ran} blocks");
}

#[test]
fn every_line_of_the_guide_to_windows_does_what_the_page_says() {
    let ran = type_page("docs/guides/windows.md");
    assert!(ran >= 4, "{ran} blocks");
}

#[test]
fn what_differs_from_the_page_is_seen() {
    assert!(fits("run <...> of hello", "run 17   of hello"));
    assert!(fits("a <...>", "a b c"));
    assert!(fits("a", "a"));
    assert!(!fits("run <...> of hello", "run 17 of other"));
    assert!(!fits("a", "a b"));
    assert!(!fits("b", "a b"));
    assert_eq!(shows("a\n...\nc\n", "a\nb\nc\n"), Ok(()));
    assert_eq!(shows("...\n", "a\nb\n"), Ok(()));
    assert!(shows("a\nc\n", "a\nb\nc\n").is_err());
    assert!(shows("a\n", "a\nb\n").is_err());
    assert!(shows("a\nb\n", "a\n").is_err());
}
