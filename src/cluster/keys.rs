//! Keys and certificates for a first try: a CA of its own, one certificate for the cluster's nodes, a key for gossip.
//!
//! Whoever runs a cluster for keeps lets its own CA make a certificate for each node; what it must say is the same.

use campanile_security::secrets::new_key_line;
use jiff::{ToSpan, Zoned, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};

/// How long what is made here is valid, years.
const YEARS: i64 = 10;

/// Texts of files.
pub struct ClusterKeys {
    pub ca: String,
    pub ca_key: String,
    pub certificate: String,
    pub key: String,
    pub gossip: String,
}

/// A CA with its key.
pub struct Authority {
    params: CertificateParams,
    certificate: String,
    key: KeyPair,
}

impl Authority {
    /// Made anew each time. Errors are sentences for the operator.
    pub fn new(cluster: &str) -> Result<Self, String> {
        let mut params = valid(CertificateParams::default())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, format!("Campanile cluster {cluster} CA"));
        let key = KeyPair::generate().map_err(wrong)?;
        let certificate = params.self_signed(&key).map_err(wrong)?.pem();
        Ok(Self { params, certificate, key })
    }

    /// For nodes of the cluster with that name.
    pub fn keys(&self, cluster: &str) -> Result<ClusterKeys, String> {
        let key = KeyPair::generate().map_err(wrong)?;
        let mut node = valid(CertificateParams::new(vec![cluster.to_owned()]).map_err(wrong)?)?;
        node.distinguished_name.push(DnType::CommonName, format!("Campanile node of {cluster}"));
        node.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // Each node calls and is called.
        node.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = node.signed_by(&key, &Issuer::from_params(&self.params, &self.key)).map_err(wrong)?;
        Ok(ClusterKeys {
            ca: self.certificate.clone(),
            ca_key: self.key.serialize_pem(),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            gossip: format!("{}\n", new_key_line()?),
        })
    }
}

fn wrong(error: rcgen::Error) -> String {
    format!("no certificate can be made: {error}")
}

/// From yesterday on: clocks differ.
fn valid(mut params: CertificateParams) -> Result<CertificateParams, String> {
    let today = Zoned::now().with_time_zone(TimeZone::UTC).date();
    let day = |date: jiff::civil::Date| date_time_ymd(date.year().into(), date.month() as u8, date.day() as u8);
    let moved = |span| today.checked_add(span).map_err(|error| format!("this machine's date is unusable: {error}"));
    params.not_before = day(moved((-1).day())?);
    params.not_after = day(moved(YEARS.years())?);
    Ok(params)
}
