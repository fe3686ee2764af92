//! A certificate and its key, as files and as what handshakes use.

use super::{certificates_in, is_private, key_in, pem, validity::Validity};
use rustls::{InconsistentKeys, ServerConfig, crypto::aws_lc_rs, pki_types::CertificateDer};
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

const CERTIFICATE: &str = "TLS certificate";
const KEY: &str = "TLS key";

/// PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The node's certificate, then those between it and the CA.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// What stands in the files.
#[derive(PartialEq, Eq)]
pub(super) struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl fmt::Debug for Texts {
    /// No keys in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Texts")
    }
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Pair {
    pub texts: Texts,
    pub leaf: CertificateDer<'static>,
    pub validity: Validity,
    pub http: Arc<ServerConfig>,
    pub rpc: Arc<ServerConfig>,
}

impl Files {
    /// Errors are sentences for the operator.
    pub(super) fn read(&self) -> Result<Texts, String> {
        let text = |what: &str, path: &Path| {
            pem(path).map_err(|error| format!("{what} {}: cannot be read: {error}", path.display()))
        };
        let certificate = text(CERTIFICATE, &self.certificate)?;
        is_private(KEY, &self.key)?;
        Ok(Texts { certificate, key: text(KEY, &self.key)? })
    }

    /// A sentence about the certificate.
    pub(super) fn blame(&self, why: &str) -> String {
        format!("{CERTIFICATE} {}: {why}", self.certificate.display())
    }

    /// What the certificate says of itself, when a node could serve with the pair: for `campanile doctor`. The error is a sentence.
    pub fn check(&self) -> Result<Validity, String> {
        let validity = Pair::new(self, self.read()?)?.validity;
        let now = campanile_schema::time::Timestamp(jiff::Timestamp::now().as_millisecond());
        validity.check(now).map_err(|why| self.blame(&why)).map(|()| validity)
    }
}

impl Pair {
    /// Whatever its age. Errors are sentences for the operator.
    pub fn new(files: &Files, texts: Texts) -> Result<Self, String> {
        let chain = certificates_in(&texts.certificate).map_err(|why| files.blame(&why))?;
        let key = key_in(&texts.key).map_err(|why| format!("{KEY} {}: {why}", files.key.display()))?;
        let leaf = chain.first().cloned().ok_or_else(|| files.blame("there is no certificate in it"))?;
        let validity = Validity::of(&leaf).map_err(|why| files.blame(&why))?;
        let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
        let rpc = builder.with_no_client_auth().with_single_cert(chain, key).map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => format!(
                "the TLS key {} does not belong to the certificate {}: its first certificate has another public key",
                files.key.display(),
                files.certificate.display()
            ),
            other => files.blame(&other.to_string()),
        })?;
        let mut http = rpc.clone();
        // What is served; a client that insists on another protocol is refused in the handshake.
        http.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { texts, leaf, validity, http: Arc::new(http), rpc: Arc::new(rpc) })
    }
}
