//! TLS to the servers: whose certificates are believed, under which name, and our own where they ask for one. Errors are sentences for the
//! operator.

use super::options::CqlTls;
use campanile_security::tls::{certificates, private_key};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use std::{path::Path, sync::Arc};

/// What the driver connects with.
pub fn client_config(tls: &CqlTls) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots(tls)?), provider.clone())
        .build()
        .map_err(|error| format!("[cql] tls_ca_file: {error}"))?;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    // Nothing of the check is left out: only the name that is looked for is another one.
    let builder = builder.map_err(|error| format!("[cql] tls: {error}"))?.dangerous();
    let builder = match tls.name.as_str() {
        "" => builder.with_custom_certificate_verifier(verifier),
        name => {
            let name = ServerName::try_from(name.to_owned()).map_err(|error| format!("[cql] tls_name: {error}"))?;
            builder.with_custom_certificate_verifier(Arc::new(Named { name, verifier }))
        }
    };
    let config = if tls.cert_file.is_empty() {
        builder.with_no_client_auth()
    } else {
        let chain = certificates("[cql] tls_cert_file", Path::new(&tls.cert_file))?;
        let key = private_key("[cql] tls_key_file", Path::new(&tls.key_file))?;
        let fitting = builder.with_client_auth_cert(chain, key);
        fitting.map_err(|error| format!("[cql] tls_cert_file and tls_key_file do not fit together: {error}"))?
    };
    Ok(Arc::new(config))
}

fn roots(tls: &CqlTls) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    if tls.ca_file.is_empty() {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err(
                "this machine has no CA certificates: install ca-certificates, or set [cql] tls_ca_file".to_owned()
            );
        }
        return Ok(roots);
    }
    let file = Path::new(&tls.ca_file);
    for ca in certificates("[cql] tls_ca_file", file)? {
        roots.add(ca).map_err(|error| format!("[cql] tls_ca_file {}: {error}", file.display()))?;
    }
    Ok(roots)
}

/// Servers tell each other's addresses, not names, and the driver looks for the address in a certificate. Where certificates carry a name,
/// that is looked for instead.
#[derive(Debug)]
struct Named {
    name: ServerName<'static>,
    verifier: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        _address: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier.verify_server_cert(own, between, &self.name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, own, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, own, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
