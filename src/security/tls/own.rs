//! How a node's own executor calls the node: it trusts the certificate that the node has in use, and nothing else. So it needs no CA, and
//! no name of a certificate has to lead to the address on which the node listens.

use super::serving::ServingCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use std::sync::Arc;

#[derive(Debug)]
struct Own {
    certificate: Arc<ServingCertificate>,
    provider: Arc<CryptoProvider>,
}

impl ServingCertificate {
    /// For a caller in the same process.
    pub fn own_client(self: &Arc<Self>) -> Result<Arc<ClientConfig>, String> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let own = Own { certificate: self.clone(), provider: provider.clone() };
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| error.to_string())?.dangerous();
        Ok(Arc::new(builder.with_custom_certificate_verifier(Arc::new(own)).with_no_client_auth()))
    }
}

impl ServerCertVerifier for Own {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *shown == self.certificate.current().leaf {
            Ok(ServerCertVerified::assertion())
        } else {
            // Also when it changes in this moment: the next connection is right.
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
