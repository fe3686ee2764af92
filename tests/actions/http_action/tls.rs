//! Requests to https URLs: the server must be who it says it is.
use super::{
    target::{Target, ok},
    world::World,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use serde_json::json;
use std::sync::Arc;

/// A CA's certificate as PEM, and a server with a certificate of it for `name`.
fn server(name: &str) -> (String, Target) {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = ca.self_signed(&ca_key).unwrap().pem();
    let key = KeyPair::generate().unwrap();
    let issuer = Issuer::new(ca, ca_key);
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    (pem, Target::at("127.0.0.1:0", Some(Arc::new(config)), |_| ok("sealed")))
}

#[test]
fn only_a_server_whose_certificate_is_right_hears_the_request() {
    let (pem, target) = server("localhost");
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.pem");
    std::fs::write(&ca, pem).unwrap();
    let port = target.address.port();
    let url = |host: &str| json!({"url": format!("https://{host}:{port}/")});
    let trusting = World::start(&["--http-allow", "127.0.0.1", "--http-ca", ca.to_str().unwrap()]);
    assert_eq!(trusting.outcome(url("localhost")).0, "SUCCESS");
    let (_, code, why) = trusting.outcome(url("127.0.0.1"));
    assert_eq!(code, "HTTP_TLS_FAILED", "{why}");
    let strict = World::start(&["--http-allow", "127.0.0.1"]);
    let (_, code, why) = strict.outcome(url("localhost"));
    assert_eq!(code, "HTTP_TLS_FAILED", "{why}");
    assert_eq!(target.heard().len(), 1);
    // No TLS at all on the other side.
    let plain = Target::start(|_| ok("in clear"));
    let (_, code, _) = trusting.outcome(json!({"url": format!("https://{}/", plain.address)}));
    assert_eq!(code, "HTTP_TLS_FAILED");
}
