//! `campanile bench`: a workload in its short form against a node of its own, by `campanile-loadtest`, which becomes this process:
//! its exit code, its signals and its terminal are its own.
//!
//! Never here: load, measuring or judging.

use super::failure::{Failure, USAGE};
use std::{
    env,
    ffi::OsString,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

const PROGRAM: &str = "campanile-loadtest";
/// What runs when no workload is named.
const WORKLOAD: &str = "steady";

#[derive(clap::Args)]
pub(super) struct Args {
    /// Workloads (default: steady; `campanile-loadtest workloads` lists them) or their files, and then options of
    /// `campanile-loadtest run`, such as --check or --dir DIR (default: a new directory among the temporary ones, which stays)
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORKLOAD... OPTION...")]
    run: Vec<OsString>,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let node = env::current_exe().map_err(|error| Failure::here(format!("where this program is: {error}")))?;
    let beside = node.parent().unwrap_or(Path::new("."));
    let Some(program) = find(beside, env::var_os("PATH")) else {
        return Err(Failure::new(
            USAGE,
            format!(
                "{PROGRAM}, which makes the load, is neither in {} nor on PATH. Put it beside this program, or build it: \
                 cargo build --release -p campanile-loadtest",
                beside.display()
            ),
        ));
    };
    let mut command = Command::new(&program);
    command.arg("run").args(arguments(args.run)).arg("--server-bin").arg(&node);
    // It only returns when it could not be started.
    Err(Failure::new(USAGE, format!("{}: cannot be started: {}", program.display(), command.exec())))
}

/// In the directory of this program, else the first on PATH.
fn find(beside: &Path, path: Option<OsString>) -> Option<PathBuf> {
    let on_path = path.iter().flat_map(env::split_paths).collect::<Vec<_>>();
    std::iter::once(beside.to_owned()).chain(on_path).map(|dir| dir.join(PROGRAM)).find(|file| file.is_file())
}

/// Workloads and options, with what was left out.
fn arguments(mut given: Vec<OsString>) -> Vec<OsString> {
    let is_option = |argument: &OsString| argument.as_encoded_bytes().starts_with(b"-");
    if given.first().is_none_or(is_option) {
        given.insert(0, WORKLOAD.into());
    }
    if !given.iter().any(|argument| argument == "--dir" || argument.as_encoded_bytes().starts_with(b"--dir=")) {
        given.push("--dir".into());
        given.push(env::temp_dir().join(format!("campanile-bench-{}", std::process::id())).into());
    }
    given.push("--short".into());
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(given: &[&str]) -> Vec<String> {
        let all = arguments(given.iter().map(OsString::from).collect());
        all.into_iter().map(|argument| argument.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn what_is_left_out_is_filled_in() {
        let bare = told(&[]);
        assert_eq!((bare[0].as_str(), bare[1].as_str(), bare[3].as_str()), ("steady", "--dir", "--short"));
        assert_eq!(told(&["--check", "--dir", "d"]), ["steady", "--check", "--dir", "d", "--short"]);
        assert_eq!(told(&["herd", "api", "--dir=d"]), ["herd", "api", "--dir=d", "--short"]);
    }
}
