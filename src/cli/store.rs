//! `campanile store ...`: the data directory, while no node uses it.

use super::{
    failure::Failure,
    output::{self, Format},
};
use crate::store::embedded::check;
use std::path::PathBuf;

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Read everything in a data directory and say what is damaged; changes nothing. Exit code 1: damaged
    Check { dir: PathBuf },
}

pub(super) fn run(command: Command, format: Format) -> Result<(), Failure> {
    let Command::Check { dir } = command;
    let report = check::check(&dir).map_err(|error| Failure::usage(error.to_string()))?;
    match format {
        Format::Table => output::text(&format!("{report}\n")),
        Format::Json | Format::Yaml => {
            let value = serde_json::to_value(&report);
            output::one(format, &value.map_err(|error| Failure::here(error.to_string()))?)?;
        }
    }
    if report.is_whole() { Ok(()) } else { Err(Failure::here(format!("{} is damaged", dir.display()))) }
}
