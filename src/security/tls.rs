//! TLS: PEM files of certificates and keys, and what callers of a node see of them. Errors are sentences for the operator, with what the
//! file is for and its name.
//!
//! Never here: certificates between nodes (`cluster/gateway/tls.rs`), and those of servers that HTTP actions call.

mod handshakes;
mod own;
mod pair;
mod serving;
mod transport;
mod validity;

pub use pair::Files;
pub use serving::ServingCertificate;

pub use handshakes::{Handshakes, handshakes_at_zero};
pub use serving::Port;
pub use transport::Transport;
pub use validity::Age;

use crate::auth::file_mode;
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{Error, PemObject},
};
use std::{path::Path, sync::Arc};

/// Which ports of a node speak TLS, and with what. The default is neither.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    pub http: Option<Arc<ServingCertificate>>,
    pub rpc: Option<Arc<ServingCertificate>>,
}

impl Ports {
    /// The certificate to be watched; both ports have the same one.
    pub fn certificate(&self) -> Option<&Arc<ServingCertificate>> {
        self.http.as_ref().or(self.rpc.as_ref())
    }
}

/// A file of PEM. With a byte order mark its first line would begin nothing.
fn pem(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut text = std::fs::read(path)?;
    crate::text::unmark(&mut text);
    Ok(text)
}

/// All certificates of a file; none is an error.
pub fn certificates(what: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{what} {}: {error}", path.display());
    let text = pem(path).map_err(|error| wrong(&error))?;
    certificates_in(&text).map_err(|why| wrong(&why))
}

/// A private key, in a file for its owner only.
pub fn private_key(what: &str, path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    is_private(what, path)?;
    let wrong = |error: &dyn std::fmt::Display| format!("{what} {}: {error}", path.display());
    let text = pem(path).map_err(|error| wrong(&error))?;
    key_in(&text).map_err(|why| wrong(&why))
}

/// Whether a file is for its owner (and its group to read) only.
fn is_private(what: &str, path: &Path) -> Result<(), String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{what} {}: {error}", path.display());
    let mode = file_mode(path).map_err(|error| wrong(&error))?;
    if mode & 0o027 != 0 {
        return Err(wrong(&format!("it is open to others (mode {mode:03o}). Run: chmod 600 {}", path.display())));
    }
    Ok(())
}

/// The end of a sentence when there is none, or one cannot be read.
fn certificates_in(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, Error> = CertificateDer::pem_slice_iter(pem).collect();
    let read = read.map_err(|error| error.to_string())?;
    if read.is_empty() {
        return Err("there is no certificate in it (PEM: -----BEGIN CERTIFICATE-----)".to_owned());
    }
    Ok(read)
}

fn key_in(pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
        Error::NoItemsFound => "there is no private key in it (PEM: -----BEGIN PRIVATE KEY-----)".to_owned(),
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rcgen::{CertificateParams, KeyPair};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn pem_files_may_begin_with_a_byte_order_mark() {
        let dir = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let made = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        let files = Files { certificate: dir.path().join("cert.pem"), key: dir.path().join("key.pem") };
        std::fs::write(&files.certificate, format!("\u{feff}{}", made.pem())).unwrap();
        std::fs::write(&files.key, format!("\u{feff}{}", key.serialize_pem())).unwrap();
        std::fs::set_permissions(&files.key, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(certificates("CA", &files.certificate).unwrap().len(), 1);
        assert!(private_key("key", &files.key).is_ok());
        assert!(ServingCertificate::load(files).is_ok());
    }
}
