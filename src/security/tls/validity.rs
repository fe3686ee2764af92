//! What a certificate says of itself: until when it is valid, and whom it names.

use campanile_schema::time::Timestamp;
use rustls::pki_types::CertificateDer;
use x509_parser::{
    certificate::X509Certificate,
    extensions::GeneralName,
    prelude::{FromDer, ParsedExtension},
};

/// How many days before its end a certificate is warned of.
const WARN_DAYS: i64 = 14;
const DAY_MS: i64 = 24 * 3600 * 1000;

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validity {
    pub from: Timestamp,
    pub until: Timestamp,
    /// Hosts: DNS names and IP addresses.
    pub names: Vec<String>,
}

/// Where a certificate in use stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    NotYet,
    Fine,
    /// Less than [`WARN_DAYS`] are left.
    Ending,
    Expired,
}

impl Validity {
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, String> {
        let unreadable = |error: &dyn std::fmt::Display| format!("the certificate cannot be read: {error}");
        let (_, certificate) = X509Certificate::from_der(certificate).map_err(|error| unreadable(&error))?;
        let ms = |seconds: i64| Timestamp(seconds.saturating_mul(1000));
        let validity = certificate.validity();
        let mut names = Vec::new();
        for extension in certificate.extensions() {
            if let ParsedExtension::SubjectAlternativeName(alternatives) = extension.parsed_extension() {
                names.extend(alternatives.general_names.iter().filter_map(host));
            }
        }
        Ok(Self { from: ms(validity.not_before.timestamp()), until: ms(validity.not_after.timestamp()), names })
    }

    pub fn age(&self, now: Timestamp) -> Age {
        let left = self.until.ms().saturating_sub(now.ms());
        match left {
            _ if now < self.from => Age::NotYet,
            ..0 => Age::Expired,
            0.. if left < WARN_DAYS * DAY_MS => Age::Ending,
            _ => Age::Fine,
        }
    }

    /// Refused is what no caller could accept. The error is a sentence's end.
    pub fn check(&self, now: Timestamp) -> Result<(), String> {
        match self.age(now) {
            Age::Fine | Age::Ending => Ok(()),
            Age::Expired => Err(format!("the certificate expired at {}; renew it", self.until)),
            Age::NotYet => {
                Err(format!("the certificate is valid from {} on only; is this machine's clock right?", self.from))
            }
        }
    }
}

fn host(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match <[u8; 4]>::try_from(*bytes) {
            Ok(four) => Some(std::net::IpAddr::from(four).to_string()),
            Err(_) => <[u8; 16]>::try_from(*bytes).ok().map(|bytes| std::net::IpAddr::from(bytes).to_string()),
        },
        // Nothing that a client compares with the host it calls.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    #[test]
    fn a_certificate_tells_its_end_and_its_names() {
        let key = KeyPair::generate().unwrap();
        let names = ["bells.example", "192.0.2.7", "2001:db8::7"].map(str::to_owned);
        let mut params = CertificateParams::new(names.to_vec()).unwrap();
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2026, 4, 1);
        let validity = Validity::of(params.self_signed(&key).unwrap().der()).unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_eq!((validity.from, validity.until), (at("2026-01-01T00:00:00Z"), at("2026-04-01T00:00:00Z")));
        assert_eq!(validity.names, names);
        for (now, age) in [
            ("2025-12-31T23:59:59Z", Age::NotYet),
            ("2026-01-01T00:00:00Z", Age::Fine),
            ("2026-03-18T00:00:00Z", Age::Fine),
            ("2026-03-18T00:00:01Z", Age::Ending),
            ("2026-04-01T00:00:00Z", Age::Ending),
            ("2026-04-01T00:00:01Z", Age::Expired),
        ] {
            assert_eq!(validity.age(at(now)), age, "{now}");
        }
        assert!(validity.check(at("2026-04-02T00:00:00Z")).unwrap_err().contains("expired at 2026-04-01T00:00:00"));
        assert!(validity.check(at("2025-04-02T00:00:00Z")).unwrap_err().contains("valid from 2026-01-01T00:00:00"));
    }
}
