//! A server that speaks TLS only, asks for our certificate, and for a password: who is let in, and what the others are told.

use super::{CqlOptions, CqlStore, CqlTls, on_runtime, options, schema, server::Server, shared};
use crate::cql::connection;
use campanile_ports::StoreError;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    time::{Duration, Instant},
};

/// The name in the server's certificate, beside its address.
const NAME: &str = "cql.bells";
/// The user that a new server makes by itself, some seconds after it is ready.
const FIRST_USER: &str = "cassandra";

fn authority(dir: &Path, name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    fs::write(dir.join(format!("{name}.pem")), ca.pem()).unwrap();
    ca
}

/// `NAME.pem` and `NAME-key.pem`; `NAME-both.pem` for a server.
fn certificate(dir: &Path, name: &str, of: &[&str], ca: &Issuer<'_, KeyPair>) {
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = of.iter().map(|name| (*name).to_owned()).collect();
    let made = CertificateParams::new(names).unwrap().signed_by(&key, ca).unwrap();
    fs::write(dir.join(format!("{name}.pem")), made.pem()).unwrap();
    secret(dir, &format!("{name}-key.pem"), &key.serialize_pem());
    fs::write(dir.join(format!("{name}-both.pem")), format!("{}{}", key.serialize_pem(), made.pem())).unwrap();
}

fn secret(dir: &Path, file: &str, text: &str) -> String {
    let path = dir.join(file);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// What is put in place of lines of `deploy/cassandra/cassandra.yaml`.
fn settings(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "authenticator: PasswordAuthenticator\n\
         client_encryption_options:\n  enabled: true\n  optional: false\n  require_client_auth: true\n  \
         ssl_context_factory:\n    class_name: org.apache.cassandra.security.PEMBasedSslContextFactory\n  \
         keystore: {dir}/server-both.pem\n  truststore: {dir}/ca.pem\n"
    )
}

/// Why nobody is connected.
fn told(options: CqlOptions) -> StoreError {
    match on_runtime(async move { connection::open(&options).await.map(|_| ()) }) {
        Err(error) => error,
        Ok(()) => panic!("connected"),
    }
}

fn refused(options: CqlOptions, why: &str) {
    match told(options) {
        StoreError::Refused(told) => assert!(told.contains(why), "told: {told}\n not: {why}"),
        other => panic!("{other:?}\n not: {why}"),
    }
}

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn tls_is_checked_on_both_sides_and_a_password_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let at = |file: &str| dir.path().join(file).to_str().unwrap().to_owned();
    let ca = authority(dir.path(), "ca");
    authority(dir.path(), "other-ca");
    certificate(dir.path(), "server", &["127.0.0.1", NAME], &ca);
    certificate(dir.path(), "node", &["node"], &ca);
    secret(dir.path(), "password", &format!("{FIRST_USER}\n"));
    secret(dir.path(), "wrong", "wrong");
    fs::write(at("settings.yaml"), settings(dir.path())).unwrap();
    let server = Server::start_with(1, &[("SETTINGS", &at("settings.yaml"))]);
    let usual = CqlOptions {
        user: FIRST_USER.to_owned(),
        password_file: at("password"),
        tls: Some(CqlTls {
            ca_file: at("ca.pem"),
            name: String::new(),
            cert_file: at("node.pem"),
            key_file: at("node-key.pem"),
        }),
        ..options(&server, "secured")
    };
    let with_tls = |change: &dyn Fn(&mut CqlTls)| {
        let mut options = usual.clone();
        options.tls.iter_mut().for_each(change);
        options
    };
    let with = |change: &dyn Fn(&mut CqlOptions)| {
        let mut options = usual.clone();
        change(&mut options);
        options
    };

    // Until the server has made its first user.
    let begin = Instant::now();
    while on_runtime({
        let options = usual.clone();
        async move { connection::open(&options).await.is_err() }
    }) {
        assert!(begin.elapsed() < Duration::from_secs(90), "{:?}", told(usual.clone()));
    }
    let named = with_tls(&|tls| tls.name = NAME.to_owned());
    on_runtime(async move {
        let report = schema::apply(&named, "tests", 1_000).await.unwrap();
        assert_eq!(report.missing.len(), 0);
        CqlStore::connect(&named).await.unwrap();
    });

    let not_believed = "have certificates that cannot be verified: check [cql] tls_ca_file";
    refused(with_tls(&|tls| tls.ca_file = at("other-ca.pem")), not_believed);
    refused(with_tls(&|tls| tls.name = "other.bells".to_owned()), not_believed);
    refused(
        with_tls(&|tls| (tls.cert_file, tls.key_file) = Default::default()),
        "set [cql] tls_cert_file and tls_key_file",
    );
    refused(with_tls(&|tls| tls.ca_file = at("nowhere.pem")), "[cql] tls_ca_file");
    refused(with_tls(&|tls| tls.key_file = at("server-key.pem")), "tls_cert_file and tls_key_file do not fit together");
    refused(with(&|o| o.password_file = at("wrong")), "refuse [cql] user or password_file");
    refused(with(&|o| o.user = "nobody".to_owned()), "refuse [cql] user or password_file");
    refused(
        with(&|o| (o.user, o.password_file) = Default::default()),
        "ask for a user: set [cql] user and password_file",
    );
    let StoreError::Unavailable(plain) = told(with(&|o| o.tls = None)) else { panic!("not unavailable") };
    assert!(plain.contains("if they speak TLS only, [cql] tls is to be true"), "{plain}");
    let tls = usual.tls.clone();
    let StoreError::Unavailable(clear) = told(CqlOptions { tls, ..shared().options.clone() }) else {
        panic!("not unavailable")
    };
    assert!(clear.contains("If not, [cql] tls is to be false"), "{clear}");
}
