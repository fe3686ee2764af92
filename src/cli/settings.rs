//! `campanile config ...`.

use super::{failure::Failure, output};
use crate::config::{Config, DEFAULT_FILE};
use campanile_security::auth::Authenticator;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Print a configuration file with every setting, its meaning and its default
    Default,
    /// Check a configuration file, the environment over it, and the token file that it names
    Check { file: PathBuf },
}

pub(super) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Default => output::said(DEFAULT_FILE.trim_end(), &json!({"file": DEFAULT_FILE})),
        Command::Check { file } => match Config::load(Some(&file), super::server::environment()) {
            Ok(config) => {
                if config.auth.token_file.is_empty() {
                    eprintln!("note: [auth] token_file is not set; `campanile server` needs it");
                } else if let Err(error) = Authenticator::from_file(Path::new(&config.auth.token_file)) {
                    return Err(Failure::usage(format!("[auth] token_file: {error}")));
                }
                let value = json!({"file": file.display().to_string(), "ok": true});
                output::said(&format!("{}: ok", file.display()), &value)
            }
            Err(errors) => {
                if output::style().format != output::Format::Table {
                    let value = json!({"file": file.display().to_string(), "ok": false, "errors": errors.to_string()});
                    output::said("", &value)?;
                }
                eprintln!("{errors}");
                Err(Failure::new(super::failure::USAGE, ""))
            }
        },
    }
}
