//! PEM files of certificates and keys. Errors are sentences for the operator, with what the file is for and its name.

use crate::auth::file_mode;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use std::path::Path;

/// All certificates of a file; none is an error.
pub(crate) fn certificates(what: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{what} {}: {error}", path.display());
    let read: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))?.collect();
    let read = read.map_err(|error| wrong(&error))?;
    if read.is_empty() { Err(wrong(&"there is no certificate in it")) } else { Ok(read) }
}

/// A private key, in a file for its owner only.
pub(crate) fn private_key(what: &str, path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{what} {}: {error}", path.display());
    let mode = file_mode(path).map_err(|error| wrong(&error))?;
    if mode & 0o027 != 0 {
        return Err(wrong(&format!("it is open to others (mode {mode:03o}). Run: chmod 600 {}", path.display())));
    }
    PrivateKeyDer::from_pem_file(path).map_err(|error| wrong(&error))
}
