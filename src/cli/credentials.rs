//! `campanile token new` and `campanile secrets new-key`: what only its maker sees, once.

use super::{
    failure::Failure,
    output::{self, Format},
};
use campanile_ports::private;
use campanile_security::{
    auth::{Caller, Role, check_with, new_token, token_line},
    secrets::new_key_line,
};
use serde_json::json;
use std::{
    io::Write,
    path::{Path, PathBuf},
};

#[derive(clap::Subcommand)]
pub(super) enum TokenCommand {
    /// Make a token; it is shown once, the token file gets only its hash
    New {
        /// Name of the credential, for the audit log
        #[arg(long)]
        name: String,
        /// operator (everything), tenant (one tenant's jobs and runs), executor (takes runs of its pools) or metrics (reads /metrics)
        #[arg(long)]
        role: Role,
        /// The tenant, for role tenant
        #[arg(long)]
        tenant: Option<String>,
        /// The pools, for role executor; for role tenant those that its jobs may name (default: any)
        #[arg(long, value_delimiter = ',')]
        pools: Vec<String>,
        /// Append the line to this token file (made when missing). A name that the file has gets a second token, for the time until
        /// the first one's line is removed
        #[arg(long, value_name = "FILE")]
        append: Option<PathBuf>,
    },
}

#[derive(clap::Subcommand)]
pub(super) enum SecretsCommand {
    /// Make a key for the key file; put the line first to seal with it from the next start on
    NewKey,
}

pub(super) fn token(command: TokenCommand, format: Format) -> Result<(), Failure> {
    let TokenCommand::New { name, role, tenant, pools, append } = command;
    let token = new_token().map_err(Failure::here)?;
    let line = token_line(&token, &Caller { name, role, tenant, pools }).map_err(Failure::usage)?;
    let second = match &append {
        Some(path) => append_checked(path, &line)?,
        None => false,
    };
    match (format, append) {
        (Format::Json | Format::Yaml, _) => output::one(format, &json!({"token": token, "line": line})),
        (Format::Table, Some(path)) => {
            output::text(&format!("{token}\n"));
            eprintln!("The token above is shown only now. Its line was added to {}.", path.display());
            if second {
                eprintln!(
                    "It is the second token of its name, and both are valid. Remove the line of the first when nobody uses it any more."
                );
            }
            Ok(())
        }
        (Format::Table, None) => {
            output::text(&format!("token (shown only now):\n{token}\n\nline for the token file:\n{line}\n"));
            Ok(())
        }
    }
}

pub(super) fn secrets(command: SecretsCommand) -> Result<(), Failure> {
    match command {
        SecretsCommand::NewKey => {
            let line = new_key_line().map_err(Failure::here)?;
            output::said(&line, &json!({"line": line}))?;
            eprintln!(
                "Put this line first in the key file ([secrets] key_file), chmod 600 it, and keep a copy: what it sealed opens with nothing else."
            );
            Ok(())
        }
    }
}

/// A new file that only its owner can read. An existing one is replaced.
pub(super) fn create_private(path: &Path, text: &str) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = private::options().create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    private::sync_name(path)
}

pub(super) fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    create_private(path, text).map_err(|error| Failure::here(format!("{}: {error}", path.display())))
}

/// Adds a line that the file may have; else nothing is written. True: the name has two tokens now.
fn append_checked(path: &Path, line: &str) -> Result<bool, Failure> {
    // As the node reads it.
    let before = match campanile_security::text::read(path, true) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::here(format!("{}: {error}", path.display()))),
    };
    let second = check_with(&before, line)
        .map_err(|why| Failure::usage(format!("{}: nothing was added: {why}", path.display())))?;
    let apart = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    append_private(path, &format!("{apart}{line}\n"))?;
    Ok(second)
}

fn append_private(path: &Path, text: &str) -> Result<(), Failure> {
    let mut file = private::options().create(true).append(true).open(path);
    let appended = file.as_mut().map_err(|error| std::io::Error::new(error.kind(), error.to_string()));
    appended
        .and_then(|file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| private::sync_name(path))
        .map_err(|error| Failure::here(format!("{}: {error}", path.display())))
}
