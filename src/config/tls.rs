//! What may stand in `[tls]`, and what it makes of the ports.

use super::{TlsSection, cluster::Rule};
use campanile_security::tls::{Files, Ports, ServingCertificate};
use std::path::PathBuf;

impl TlsSection {
    /// The files; None: both ports speak in clear.
    pub fn files(&self) -> Option<Files> {
        let path = |file: &String| PathBuf::from(file);
        (!self.cert_file.is_empty()).then(|| Files { certificate: path(&self.cert_file), key: path(&self.key_file) })
    }

    /// Reads the files. Errors are sentences for the operator.
    pub fn ports(&self) -> Result<Ports, String> {
        let Some(files) = self.files() else { return Ok(Ports::default()) };
        let certificate = ServingCertificate::load(files)?;
        let with = |wanted: bool| wanted.then(|| certificate.clone());
        Ok(Ports { http: with(self.http), rpc: with(self.rpc) })
    }

    pub(super) fn rules(&self) -> Vec<Rule> {
        let is_set = !self.cert_file.is_empty();
        let together = self.key_file.is_empty() != is_set;
        let used = !is_set || self.http || self.rpc;
        vec![
            (together, "tls.key_file", "is needed with tls.cert_file, and only then".to_owned()),
            (used, "tls.cert_file", "is for no port: tls.http or tls.rpc must be true".to_owned()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_needs_a_key_and_a_port() {
        let broken = |cert: &str, key: &str, port: bool| {
            let (cert_file, key_file) = (cert.to_owned(), key.to_owned());
            let section = TlsSection { cert_file, key_file, http: port, rpc: port };
            section.rules().into_iter().filter(|(kept, ..)| !kept).map(|(_, setting, _)| setting).collect::<Vec<_>>()
        };
        assert_eq!(broken("", "", true), [""; 0]);
        assert_eq!(broken("c", "k", true), [""; 0]);
        assert_eq!(broken("c", "", true), ["tls.key_file"]);
        assert_eq!(broken("", "k", true), ["tls.key_file"]);
        assert_eq!(broken("c", "k", false), ["tls.cert_file"]);
        assert_eq!(broken("", "", false), [""; 0]);
    }
}
