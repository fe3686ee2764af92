//! Mutual TLS: a node is who has a certificate of the cluster's CA under the cluster's name.

use campanile_security::tls::{certificates, private_key};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, ServerName},
    server::WebPkiClientVerifier,
    version::TLS13,
};
use std::{path::PathBuf, sync::Arc};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// PEM files.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// This node's certificate, then those between it and the CA.
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub ca: PathBuf,
}

impl TlsFiles {
    /// Whether a node of this cluster could be with them. The error is a sentence for the operator.
    pub fn check(&self, cluster: &str) -> Result<(), String> {
        Tls::load(self, cluster).map(drop)
    }
}

/// Both sides of a connection.
#[derive(Clone)]
pub(super) struct Tls {
    pub acceptor: TlsAcceptor,
    pub connector: TlsConnector,
    /// The cluster's name, as certificates carry it.
    pub name: ServerName<'static>,
}

impl Tls {
    /// Errors are sentences for the operator.
    pub fn load(files: &TlsFiles, cluster: &str) -> Result<Self, String> {
        let name = ServerName::try_from(cluster.to_owned())
            .map_err(|_| format!("the cluster's name '{cluster}' cannot stand in a certificate"))?;
        let chain = certificates("TLS certificate", &files.certificate)?;
        let key = private_key("TLS key", &files.key)?;
        let mut roots = RootCertStore::empty();
        for ca in certificates("TLS CA", &files.ca)? {
            roots.add(ca).map_err(|error| format!("TLS CA {}: {error}", files.ca.display()))?;
        }
        let roots = Arc::new(roots);
        let own = chain.first().ok_or("the TLS certificate file is empty")?;
        names(own, &name).map_err(|why| format!("TLS certificate {}: {why}", files.certificate.display()))?;
        let provider: Arc<CryptoProvider> = Arc::new(aws_lc_rs::default_provider());
        let wrong = |error: rustls::Error| format!("TLS files do not fit together: {error}");
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
            .build()
            .map_err(|error| format!("TLS CA {}: {error}", files.ca.display()))?;
        let server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])
            .and_then(|builder| {
                builder.with_client_cert_verifier(verifier).with_single_cert(chain.clone(), key.clone_key())
            })
            .map_err(wrong)?;
        let client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .and_then(|builder| builder.with_root_certificates(roots).with_client_auth_cert(chain, key))
            .map_err(wrong)?;
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(server)),
            connector: TlsConnector::from(Arc::new(client)),
            name,
        })
    }

    /// Whether the caller's certificate, which the CA made, is for this cluster. Servers are checked by TLS itself.
    pub fn check_caller(&self, chain: Option<&[CertificateDer<'_>]>) -> Result<(), String> {
        let own = chain.and_then(<[_]>::first).ok_or("it shows no certificate")?;
        names(own, &self.name)
    }
}

fn names(certificate: &CertificateDer<'_>, cluster: &ServerName<'_>) -> Result<(), String> {
    let unreadable = |error: webpki::Error| format!("the certificate cannot be read: {error}");
    let certificate = webpki::EndEntityCert::try_from(certificate).map_err(unreadable)?;
    certificate
        .verify_is_valid_for_subject_name(cluster)
        .map_err(|_| format!("the certificate does not name the cluster '{}' (DNS name)", cluster.to_str()))
}
