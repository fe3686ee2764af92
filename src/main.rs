//! The `campanile` binary: node, executor and command line in one.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// A trigger makes some forty small allocations that cross threads; glibc spent a quarter of all CPU on them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before anything else: an attempt's shim is this binary too, and must stay small.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == campanile::command::SHIM_ARGUMENT) {
        return campanile::command::shim_main();
    }
    campanile::cli::main()
}
