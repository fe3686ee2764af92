//! TLS to nodes: whose certificates are believed, and which addresses it is for.

use rustls::{
    CertificateError, ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use std::{fmt, io, path::Path, sync::Arc};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

/// In front of an address: TLS, and no TLS.
const SECURE: &str = "tls://";
const PLAIN: &str = "tcp://";

/// TLS cannot be set up: a sentence for the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(String);

/// Whose certificates a client believes. A node must have one that names the host of its address (a DNS name or an IP address).
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Certificates of the CAs that this machine trusts.
    pub fn system() -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            let message =
                "this machine has no CA certificates: install ca-certificates, or name a file with the CA of the node";
            return Err(TlsError(message.to_owned()));
        }
        Self::trusting(roots)
    }

    /// Certificates of the CAs in this PEM file, and of no others.
    pub fn ca_file(path: impl AsRef<Path>) -> Result<Self, TlsError> {
        let path = path.as_ref();
        let wrong = |error: &dyn fmt::Display| TlsError(format!("CA file {}: {error}", path.display()));
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))? {
            let certificate = certificate.map_err(|error| wrong(&error))?;
            roots.add(certificate).map_err(|error| wrong(&error))?;
        }
        if roots.is_empty() {
            return Err(wrong(&"there is no certificate in it (PEM: -----BEGIN CERTIFICATE-----)"));
        }
        Self::trusting(roots)
    }

    /// Whatever else rustls can do; the caller answers for it.
    pub fn with_config(config: Arc<ClientConfig>) -> Self {
        Self { config }
    }

    fn trusting(roots: RootCertStore) -> Result<Self, TlsError> {
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(|error| TlsError(error.to_string()))?;
        Ok(Self { config: Arc::new(builder.with_root_certificates(roots).with_no_client_auth()) })
    }

    /// What these addresses need: as given, else the machine's CAs when one of them asks for TLS.
    pub(crate) fn for_addresses(given: Option<Self>, addresses: &[String]) -> Result<Option<Self>, TlsError> {
        match given {
            None if addresses.iter().any(|address| address.starts_with(SECURE)) => Self::system().map(Some),
            given => Ok(given),
        }
    }

    /// TLS over a connection to this host. Errors say what to do.
    pub(crate) async fn over(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| io::Error::other(format!("TLS: {host} is neither a DNS name nor an IP address")))?;
        let stream = TlsConnector::from(self.config.clone()).connect(name, stream).await;
        stream.map_err(|error| io::Error::new(error.kind(), why(host, &error)))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// An address taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    /// `host:port`.
    pub at: &'a str,
    /// Without the brackets of an IPv6 address.
    pub host: &'a str,
    pub secure: bool,
}

impl<'a> Target<'a> {
    /// `host:port`, `tls://host:port` or `tcp://host:port`; the first is TLS where TLS was set up.
    pub(crate) fn of(address: &'a str, set_up: bool) -> Result<Self, String> {
        let (at, secure) = match (address.strip_prefix(SECURE), address.strip_prefix(PLAIN)) {
            (Some(at), _) => (at, true),
            (None, Some(at)) => (at, false),
            (None, None) => (address, set_up),
        };
        if at.contains("://") {
            return Err("write host:port of the node's RPC port, or tls://host:port".to_owned());
        }
        let host = at.rsplit_once(':').map_or(at, |(host, _)| host);
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        Ok(Self { at, host, secure })
    }
}

/// Why a handshake failed, for people.
fn why(host: &str, error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(why)) => format!("TLS: {}", refused(host, why)),
        Some(rustls::Error::InvalidMessage(_)) => {
            "TLS: the other side does not speak TLS; if the node serves in clear there, leave tls:// and the CA file out"
                .to_owned()
        }
        _ if error.kind() == io::ErrorKind::UnexpectedEof => {
            "TLS: closed in the handshake; is it the node's RPC port, and does it speak TLS?".to_owned()
        }
        _ => format!("TLS: {error}"),
    }
}

fn refused(host: &str, why: &CertificateError) -> String {
    match why {
        // The latter: a CA of the same name, made anew.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the node's certificate is not of a CA that this client trusts; name the right CA file".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("the node's certificate does not name {host}; call the node by a name that it has")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the node's certificate has expired (or this machine's clock is wrong)".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the node's certificate is not valid yet (or this machine's clock is wrong)".to_owned()
        }
        // rustls says more of these than we could.
        other => format!("the node's certificate is refused: {other}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_address_says_whether_it_is_tls() {
        let target = |at, host, secure| Ok(Target { at, host, secure });
        assert_eq!(Target::of("tls://n1:7701", false), target("n1:7701", "n1", true));
        assert_eq!(Target::of("tcp://n1:7701", true), target("n1:7701", "n1", false));
        assert_eq!(Target::of("n1:7701", true), target("n1:7701", "n1", true));
        assert_eq!(Target::of("[::1]:7701", false), target("[::1]:7701", "::1", false));
        assert!(Target::of("https://n1:7700", true).unwrap_err().contains("tls://host:port"));
    }

    #[test]
    fn a_ca_file_must_have_certificates() {
        let missing = Tls::ca_file("/nowhere/ca.pem").unwrap_err().to_string();
        assert!(missing.starts_with("CA file /nowhere/ca.pem: "), "{missing}");
        let empty = Tls::ca_file("/dev/null").unwrap_err().to_string();
        assert!(empty.contains("there is no certificate in it"), "{empty}");
    }
}
