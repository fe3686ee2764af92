//! Between the shim and a command that has limits: this program once more, which sets them for itself and then becomes the command.
//!
//! A limit belongs to a process and to what it starts. The shim needs files and memory of its own, so it cannot have them; setting
//! them from outside would come after the command's first steps. It is told what to do in its arguments, has the command's
//! environment, and the shim's report pipe as standard error until it becomes the command.

use super::{
    CONFINE_ARGUMENT, program,
    wire::{self, Fault, Report, StartFault},
};
use campanile_schema::{job::CommandLimits, limits::COMMAND_CPU_GRACE_SEC};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsString,
    io::Write,
    os::{fd::AsFd, unix::process::CommandExt},
    path::Path,
    process::{Command, ExitCode},
};

#[derive(Serialize, Deserialize)]
struct Confined {
    limits: CommandLimits,
    nice: u8,
}

/// Starts what becomes `file` under these limits; the command's own arguments are to follow.
pub(super) fn command(limits: &CommandLimits, nice: u8, word: &str, file: &Path) -> Result<Command, String> {
    let order = serde_json::to_string(&Confined { limits: *limits, nice }).map_err(|error| error.to_string())?;
    let mut command = Command::new(program::own());
    command.arg0("campanile").arg(CONFINE_ARGUMENT).arg(order).arg(word).arg(file);
    Ok(command)
}

/// The rest of this process's life, but for the command's. `main` calls this when the first argument is `__confine`.
pub fn confine_main() -> ExitCode {
    // What is written to standard error from here on would reach the report pipe: it is the command's output below.
    let Ok(mut report) = std::io::stderr().as_fd().try_clone_to_owned().map(std::fs::File::from) else {
        return ExitCode::FAILURE;
    };
    let fault = become_the_command(std::env::args_os().skip(2));
    let _ = report.write_all(&wire::line(&Report::Failed { fault: fault.fault, message: fault.message }));
    ExitCode::FAILURE
}

/// Returns only when it cannot.
fn become_the_command(mut args: impl Iterator<Item = OsString>) -> Fault {
    let failed = |what: &str| Fault::new(StartFault::ShimFailed, what.to_owned());
    let (Some(order), Some(word), Some(file)) = (args.next(), args.next(), args.next()) else {
        return failed("too few arguments");
    };
    let Some(Confined { limits, nice }) = order.to_str().and_then(|order| serde_json::from_str(order).ok()) else {
        return failed("the limits cannot be read");
    };
    let mut command = Command::new(&file);
    command.arg0(&word).args(args);
    if let Err(error) = nix::unistd::dup2_stderr(std::io::stdout()) {
        return failed(&format!("no standard error for the command: {error}"));
    }
    if nice > 0
        && let Err(error) = rustix::process::nice(i32::from(nice))
    {
        return failed(&format!("nice {nice}: {error}"));
    }
    let mib = |value: u64| value.saturating_mul(1 << 20);
    for (resource, soft, grace) in [
        (Resource::Cpu, limits.cpu_sec, COMMAND_CPU_GRACE_SEC),
        (Resource::Nofile, limits.open_files, 0),
        (Resource::Fsize, limits.file_size_mb.map(mib), 0),
        (Resource::Nproc, limits.processes, 0),
        // Last: from here on this process may get no memory either.
        (Resource::As, limits.memory_mb.map(mib), 0),
    ] {
        let Some(soft) = soft else { continue };
        // What the executor itself may not exceed cannot be given.
        let maximum = getrlimit(resource).maximum.unwrap_or(u64::MAX).min(soft.saturating_add(grace));
        let limit = Rlimit { current: Some(soft.min(maximum)), maximum: Some(maximum) };
        if let Err(error) = setrlimit(resource, limit) {
            return failed(&format!("{resource:?} cannot be limited to {soft}: {error}"));
        }
    }
    let error = command.exec();
    program::refusal(&error, &word.to_string_lossy(), Path::new(&file))
}
