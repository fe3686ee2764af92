//! The `campanile` binary: node, executor and command line in one.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// A trigger makes some forty small allocations that cross threads; glibc spent a quarter of all CPU on them, and mimalloc took a
/// third more memory (docs/performance.md).
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // Before anything else: an attempt's shim is this binary too, and must stay small.
    if let Some(argument) = std::env::args_os().nth(1) {
        if argument == campanile_actions::command::SHIM_ARGUMENT {
            // Files of commands are made as by whoever started the executor.
            if let Some(mask) = std::env::args().nth(2) {
                campanile_ports::private::restore(&mask);
            }
            return campanile_actions::command::shim_main();
        }
        if argument == campanile_actions::command::CONFINE_ARGUMENT {
            return campanile_actions::command::confine_main();
        }
    }
    campanile::cli::main()
}
