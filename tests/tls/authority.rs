//! A CA, and certificates of it as the files of a node.

use campanile_client::Tls;
use campanile_security::tls::Files;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// See the module's text.
pub struct Authority {
    pub name: String,
    dir: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
}

/// A certificate that was made.
pub struct Made {
    pub certificate: String,
    pub der: CertificateDer<'static>,
    pub key: String,
}

impl Authority {
    pub fn new() -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        Self::called(format!("CA {}", MADE.fetch_add(1, Ordering::Relaxed)))
    }

    pub fn called(name: String) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name.clone());
        let own = params.self_signed(&key).unwrap();
        fs::write(dir.path().join("ca.pem"), own.pem()).unwrap();
        let root = own.der().clone();
        Self { name, dir, issuer: Issuer::new(params, key), root }
    }

    /// Its own certificate, PEM.
    pub fn ca(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    pub fn tls(&self) -> Tls {
        Tls::ca_file(self.ca()).unwrap()
    }

    /// For a client that looks at certificates itself.
    pub fn client_config(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        builder.with_root_certificates(roots).with_no_client_auth()
    }

    /// Valid from 2020 until the first of January of that year.
    pub fn make(&self, name: &str, until: i32) -> Made {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Made { certificate: certificate.pem(), der: certificate.der().clone(), key: key.serialize_pem() }
    }

    /// Where a node's files are put.
    pub fn files(&self) -> Files {
        Files { certificate: self.dir.path().join("cert.pem"), key: self.dir.path().join("key.pem") }
    }

    /// Files with a new certificate for localhost.
    pub fn node(&self) -> Files {
        self.make("localhost", 2100).put(&self.files());
        self.files()
    }
}

impl Made {
    /// As a tool that renews does it: each file is replaced at once.
    pub fn put(&self, files: &Files) {
        replace(&files.key, &self.key);
        replace(&files.certificate, &self.certificate);
    }
}

/// A file for its owner only, whole in one moment.
pub fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(new, path).unwrap();
}
