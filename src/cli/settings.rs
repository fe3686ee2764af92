//! `campanile config ...`.

use super::{failure::Failure, output};
use crate::config::{Config, DEFAULT_FILE};
use std::path::PathBuf;

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Print a configuration file with every setting, its meaning and its default
    Default,
    /// Check a configuration file, and the environment over it
    Check { file: PathBuf },
}

pub(super) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Default => {
            output::text(DEFAULT_FILE);
            Ok(())
        }
        Command::Check { file } => match Config::load(Some(&file), super::server::environment()) {
            Ok(config) => {
                output::text(&format!("{}: ok\n", file.display()));
                if config.auth.token_file.is_empty() {
                    eprintln!("note: [auth] token_file is not set; `campanile server` needs it");
                }
                Ok(())
            }
            Err(errors) => {
                eprintln!("{errors}");
                Err(Failure::new(super::failure::USAGE, ""))
            }
        },
    }
}
