//! What a shim gets from whoever started the executor, and must not hand on to a command: open files, and signals that are ignored.
//!
//! Everything that Campanile opens itself is closed at exec. What a service manager, a shell or a test left open for the executor is
//! not: a lock file, a listening socket or a pipe would be held by each command. A signal that the executor ignores, as SIGHUP under
//! nohup and SIGINT behind a shell's `&`, would be ignored by commands too.

use tokio::signal::unix::SignalKind;

/// Files that are looked for where `/proc` does not tell which are open, count.
const FILES_TRIED: i32 = 1_024;

/// Closes all files but the three standard ones. Only for the very beginning of a process, before anything is opened.
pub(super) fn close_files() {
    let listed: Option<Vec<i32>> = std::fs::read_dir("/proc/self/fd")
        .map(|open| open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
        .ok();
    // The directory itself is in the list, and closed by now.
    for file in listed.unwrap_or_else(|| (0..FILES_TRIED).collect()).into_iter().filter(|file| *file > 2) {
        let _ = nix::unistd::close(file);
    }
}

/// Signals that end or change a process by default and that somebody may have ignored, besides those that stop the shim. A handler
/// is reset to the default at exec; an ignored signal is not. Numbers that have no name here: SIGTSTP, SIGTTIN, SIGTTOU, SIGXCPU,
/// SIGXFSZ, SIGVTALRM, SIGPROF.
pub(super) fn to_reset() -> Vec<SignalKind> {
    let named = [
        SignalKind::user_defined1(),
        SignalKind::user_defined2(),
        SignalKind::alarm(),
        SignalKind::child(),
        SignalKind::window_change(),
        SignalKind::io(),
    ];
    named.into_iter().chain([20, 21, 22, 24, 25, 26, 27].map(SignalKind::from_raw)).collect()
}
