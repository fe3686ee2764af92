//! Keeps what is in this process's memory and environment, tokens above all, from other processes of its user.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// From here on no process but root's may read this one's memory, environment or open files (`/proc/PID/mem`, `environ`, `fd`) or
/// trace it, and it leaves no core file. Commands run as the executor's user, and could read its token otherwise. What it starts is
/// not bound to this: a program that is started begins anew.
pub(super) fn keep_memory_private() {
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "commands of this user may read this process's memory and environment, tokens included");
    }
}
