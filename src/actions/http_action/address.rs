//! Who may be called: public addresses, and what the executor's operator allows besides.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const fn v4(a: u8, b: u8, c: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, 0), prefix)
}
const fn v6(a: u16, b: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), prefix)
}

/// IANA's special-purpose registry for IPv4, and what is not one host.
const NOT_PUBLIC_V4: [(Ipv4Net, &str); 15] = [
    (v4(0, 0, 0, 8), "an address of this host"),
    (v4(10, 0, 0, 8), "a private address"),
    (v4(100, 64, 0, 10), "an address of a carrier's network"),
    (v4(127, 0, 0, 8), "a loopback address"),
    (v4(169, 254, 0, 16), "a link-local address"),
    (v4(172, 16, 0, 12), "a private address"),
    (v4(192, 0, 0, 24), "an address for protocols"),
    (v4(192, 0, 2, 24), "an address for documents"),
    (v4(192, 88, 99, 24), "an address for relays"),
    (v4(192, 168, 0, 16), "a private address"),
    (v4(198, 18, 0, 15), "an address for benchmarks"),
    (v4(198, 51, 100, 24), "an address for documents"),
    (v4(203, 0, 113, 24), "an address for documents"),
    (v4(224, 0, 0, 4), "a multicast address"),
    (v4(240, 0, 0, 4), "a reserved address"),
];
/// Of IPv6 only this is public ...
const PUBLIC_V6: Ipv6Net = v6(0x2000, 0, 3);
/// ... without these. 2001::/23 holds Teredo, 2002::/16 is 6to4: both carry IPv4 addresses inside.
const NOT_PUBLIC_V6: [(Ipv6Net, &str); 4] = [
    (v6(0x2001, 0, 23), "an address for protocols"),
    (v6(0x2001, 0xdb8, 32), "an address for documents"),
    (v6(0x2002, 0, 16), "an address for relays"),
    (v6(0x3fff, 0, 20), "an address for documents"),
];
/// Translated to IPv4: the last 32 bits are the address that is reached.
const NAT64: Ipv6Net = v6(0x64, 0xff9b, 96);

/// What keeps an address from being public; None = it is.
fn not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => NOT_PUBLIC_V4.iter().find(|(net, _)| net.contains(&v4)).map(|(_, what)| *what),
        IpAddr::V6(v6) => {
            if let Some(v4) = v6.to_ipv4_mapped() {
                return not_public(v4.into());
            }
            if NAT64.contains(&v6) {
                let [.., a, b, c, d] = v6.octets();
                return not_public(Ipv4Addr::new(a, b, c, d).into());
            }
            if !PUBLIC_V6.contains(&v6) {
                return Some("a loopback, private, link-local, multicast or reserved address");
            }
            NOT_PUBLIC_V6.iter().find(|(net, _)| net.contains(&v6)).map(|(_, what)| *what)
        }
    }
}

/// What may be called besides public addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    nets: Vec<IpNet>,
    /// Names in small letters; with a dot in front: all names below it.
    names: Vec<String>,
}

impl Allowed {
    /// Of items like `10.0.0.0/8`, `127.0.0.1`, `fd00::/8`, `hooks.internal`, `*.internal`. The error names the item.
    pub fn parse<T: AsRef<str>>(items: &[T]) -> Result<Self, String> {
        let mut allowed = Self::default();
        for item in items.iter().map(|item| item.as_ref().trim()) {
            if let Ok(net) = item.parse::<IpNet>() {
                allowed.nets.push(net);
            } else if let Ok(address) = item.parse::<IpAddr>() {
                allowed.nets.push(address.into());
            } else {
                allowed.names.push(name(item).ok_or_else(|| {
                    format!("'{item}' is no network, address or host: write 10.0.0.0/8, 127.0.0.1, hooks.internal or *.internal")
                })?);
            }
        }
        Ok(allowed)
    }

    /// Why `host`, which leads to `address`, may not be called; None = it may.
    pub fn refuses(&self, host: &str, address: IpAddr) -> Option<&'static str> {
        let address = address.to_canonical();
        let what = not_public(address)?;
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let named = |name: &String| match name.strip_prefix('.') {
            Some(_) => host.ends_with(name.as_str()),
            None => *name == host,
        };
        let allowed = self.nets.iter().any(|net| net.contains(&address)) || self.names.iter().any(named);
        (!allowed).then_some(what)
    }
}

/// A host's name as it is kept. One of digits and dots alone is a mistyped address.
fn name(item: &str) -> Option<String> {
    let (below, plain) = match item.strip_prefix("*.") {
        Some(rest) => (".", rest),
        None => ("", item),
    };
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    let is_name = plain.split('.').all(label) && plain.chars().any(|c| c.is_ascii_alphabetic());
    is_name.then(|| format!("{below}{}", plain.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for refused in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(Allowed::default().refuses("x", refused.parse().unwrap()).is_some(), "{refused}");
        }
        for public in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.255.255",
            "172.32.0.1",
            "192.167.1.1",
            "198.17.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
        ] {
            assert_eq!(Allowed::default().refuses("x", public.parse().unwrap()), None, "{public}");
        }
    }

    #[test]
    fn what_is_allowed_is_called_and_no_more() {
        let allowed =
            Allowed::parse(&["10.1.0.0/16", " 127.0.0.1 ", "fd00::/8", "Hooks.Internal", "*.svc.local"]).unwrap();
        for (host, address, fine) in [
            ("x", "10.1.255.1", true),
            ("x", "::ffff:10.1.0.1", true),
            ("x", "10.2.0.1", false),
            ("x", "127.0.0.1", true),
            ("x", "127.0.0.2", false),
            ("x", "fd12::1", true),
            ("hooks.internal", "192.168.0.1", true),
            ("HOOKS.internal.", "192.168.0.1", true),
            ("other.internal", "192.168.0.1", false),
            ("evilhooks.internal", "192.168.0.1", false),
            ("a.b.svc.local", "192.168.0.1", true),
            ("svc.local", "192.168.0.1", false),
            ("evilsvc.local", "192.168.0.1", false),
        ] {
            assert_eq!(allowed.refuses(host, address.parse().unwrap()).is_none(), fine, "{host} {address}");
        }
        for wrong in ["", "10.0.0.0/33", "10.0.0", "256.1.1.1", "a b", "*", "http://x", "x:80", "a..b"] {
            assert!(Allowed::parse(&[wrong]).unwrap_err().contains("is no network"), "{wrong}");
        }
    }
}
