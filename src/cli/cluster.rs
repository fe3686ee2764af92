//! `campanile cluster`: what a cluster needs before it runs; the rest is in `members.rs`.

use super::{
    credentials::write_private,
    failure::Failure,
    members,
    output::{self, Format},
    remote::Remote,
};
use crate::config::Config;
use campanile_cluster::keys::Authority;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Make all files that a cluster needs for a first try: a CA, a certificate for its nodes, a key for gossip
    NewKeys {
        /// Directory for them, made when missing; the same files go to every node
        dir: PathBuf,
        /// Name of the cluster ([cluster] name); the certificate carries it
        #[arg(long, default_value = "campanile")]
        name: String,
    },
    #[command(flatten)]
    Running(members::Command),
}

pub(super) fn run(
    command: Command,
    remote: impl FnOnce() -> Result<Remote, Failure>,
    format: Format,
) -> Result<(), Failure> {
    match command {
        Command::NewKeys { dir, name } => new_keys(&dir, &name),
        Command::Running(command) => members::run(command, &remote()?, format),
    }
}

fn new_keys(dir: &Path, name: &str) -> Result<(), Failure> {
    // By the rule of the configuration, so that what is made can be used.
    let mut config = Config::default();
    name.clone_into(&mut config.cluster.name);
    for file in [
        &mut config.cql.contact_points,
        &mut config.cluster.key_file,
        &mut config.cluster.tls_cert_file,
        &mut config.cluster.tls_key_file,
        &mut config.cluster.tls_ca_file,
    ] {
        "made here".clone_into(file);
    }
    config.check().map_err(|errors| Failure::usage(errors.to_string()))?;
    let here = |error: std::io::Error| Failure::here(format!("{}: {error}", dir.display()));
    let made = Authority::new(name).and_then(|ca| ca.keys(name)).map_err(Failure::here)?;
    let files = [
        ("gossip.keys", &made.gossip),
        ("node.pem", &made.certificate),
        ("node-key.pem", &made.key),
        ("ca.pem", &made.ca),
        ("ca-key.pem", &made.ca_key),
    ];
    campanile_ports::private::make_dir(dir).map_err(here)?;
    if let Some((there, _)) = files.iter().find(|(file, _)| dir.join(file).exists()) {
        return Err(Failure::usage(format!(
            "{} is there already: nodes that use it would no longer know each other. Choose another directory",
            dir.join(there).display()
        )));
    }
    for (file, text) in files {
        write_private(&dir.join(file), text)?;
    }
    let dir = std::fs::canonicalize(dir).map_err(here)?;
    let path = |file: &str| dir.join(file).display().to_string();
    let lines = format!(
        "[cql]\ncontact_points = \"127.0.0.1:9042\"\n\n[cluster]\nname = \"{name}\"\nkey_file = {:?}\ntls_cert_file = {:?}\ntls_key_file = {:?}\ntls_ca_file = {:?}",
        path("gossip.keys"),
        path("node.pem"),
        path("node-key.pem"),
        path("ca.pem")
    );
    let files: Vec<String> = files.iter().map(|(file, _)| path(file)).collect();
    output::said(&lines, &json!({"files": files, "configuration": lines}))?;
    eprintln!(
        "The lines above, with the addresses of your store, go into the configuration of every node, with all these files but ca-key.pem. Whoever has them can join: keep \
         ca-key.pem elsewhere. They are valid for ten years."
    );
    Ok(())
}
