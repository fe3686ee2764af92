//! What may stand in `[cluster]`.

use super::ClusterSection;
use campanile_cluster::gateway::TlsFiles;
use campanile_schema::limits::{CLUSTER_NAME_CHARS, CLUSTER_SEEDS, RPC_ADVERTISE_BYTES};
use std::{net::SocketAddr, path::PathBuf};

/// Beats that fit into a lease at least: one may be lost, and one may be late.
const BEATS_PER_LEASE: u32 = 3;

/// A rule, whether it is kept, and the setting.
pub(super) type Rule = (bool, &'static str, String);

impl ClusterSection {
    /// Whether this node is one of several. A node without a cluster's name is alone.
    pub fn is_on(&self) -> bool {
        !self.name.is_empty()
    }

    /// Where others send packets of membership.
    pub fn gossip_at(&self) -> SocketAddr {
        self.gossip_advertise.parse().unwrap_or(self.gossip_listen)
    }

    /// Where other nodes call this one.
    pub fn gateway_at(&self) -> SocketAddr {
        self.gateway_advertise.parse().unwrap_or(self.gateway_listen)
    }

    /// How others reach an address on which this node listens: one that means all of the machine is told as where gossip goes.
    pub fn reached_at(&self, listen: SocketAddr) -> SocketAddr {
        let ip = if listen.ip().is_unspecified() { self.gossip_at().ip() } else { listen.ip() };
        SocketAddr::new(ip, listen.port())
    }

    /// Files of the mutual TLS between nodes.
    pub fn tls_files(&self) -> TlsFiles {
        TlsFiles {
            certificate: PathBuf::from(&self.tls_cert_file),
            key: PathBuf::from(&self.tls_key_file),
            ca: PathBuf::from(&self.tls_ca_file),
        }
    }

    pub(super) fn rules(&self) -> Vec<Rule> {
        let name_rule = format!(
            "is empty (a node alone), or 1 to {CLUSTER_NAME_CHARS} lower-case letters, digits and '-', with a letter or digit at \
             both ends"
        );
        let between = |value: u32, low: u32, high: u32| (low..=high).contains(&value);
        let lease = self.lease_ms;
        let mut rules = vec![
            (self.name.is_empty() || is_label(&self.name), "cluster.name", name_rule),
            (is_reachable(&self.gossip_advertise), "cluster.gossip_advertise", advertise_rule()),
            (is_reachable(&self.gateway_advertise), "cluster.gateway_advertise", advertise_rule()),
            (
                self.seeds.len() <= CLUSTER_SEEDS && self.seeds.iter().all(|seed| is_host_port(seed)),
                "cluster.seeds",
                format!("is a list of at most {CLUSTER_SEEDS} HOST:PORT"),
            ),
            (between(lease, 500, 60_000), "cluster.lease_ms", "is 500 to 60000".to_owned()),
            (
                self.beat_ms >= 50 && self.beat_ms.saturating_mul(BEATS_PER_LEASE) <= lease,
                "cluster.beat_ms",
                format!("is 50 to a {BEATS_PER_LEASE}rd of cluster.lease_ms ({})", lease / BEATS_PER_LEASE),
            ),
            (between(self.lanes.into(), 1, 64), "cluster.lanes", "is 1 to 64".to_owned()),
            (between(self.window, 1, 4_096), "cluster.window", "is 1 to 4096".to_owned()),
            (self.linger_us <= 100_000, "cluster.linger_us", "is 0 to 100000".to_owned()),
        ];
        if !self.is_on() {
            let lonely = self.seeds.is_empty();
            rules.push((lonely, "cluster.seeds", "needs cluster.name: a node without it is alone".to_owned()));
            return rules;
        }
        let files = [
            (&self.key_file, "cluster.key_file"),
            (&self.tls_cert_file, "cluster.tls_cert_file"),
            (&self.tls_key_file, "cluster.tls_key_file"),
            (&self.tls_ca_file, "cluster.tls_ca_file"),
        ];
        let made = "is needed when cluster.name is set; `campanile cluster new-keys DIR` makes all four files";
        rules.extend(files.map(|(file, setting)| (!file.is_empty(), setting, made.to_owned())));
        let listens = [
            (self.gossip_listen, &self.gossip_advertise, "cluster.gossip_advertise"),
            (self.gateway_listen, &self.gateway_advertise, "cluster.gateway_advertise"),
        ];
        rules.extend(listens.map(|(listen, advertised, setting)| {
            let told = !listen.ip().is_unspecified() || !advertised.is_empty();
            (told, setting, format!("is needed: other nodes cannot reach {listen}"))
        }));
        rules
    }
}

/// The rule of `rpc.advertise`: a node of a cluster tells executors of it.
pub(super) fn told_to_executors(advertised: &str) -> Rule {
    let kept = advertised.is_empty() || advertised.len() <= RPC_ADVERTISE_BYTES && is_host_port(advertised);
    let rule = format!("is empty, or HOST:PORT of at most {RPC_ADVERTISE_BYTES} bytes, without a scheme");
    (kept && !advertised.contains("://"), "rpc.advertise", rule)
}

fn advertise_rule() -> String {
    "is empty, or IP:PORT as other nodes reach it".to_owned()
}

/// As in a name of the DNS: certificates name the cluster so.
fn is_label(name: &str) -> bool {
    let end = |byte: Option<&u8>| byte.is_some_and(|byte| *byte != b'-');
    name.len() <= CLUSTER_NAME_CHARS
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && end(name.as_bytes().first())
        && end(name.as_bytes().last())
}

fn is_reachable(advertised: &str) -> bool {
    advertised.is_empty()
        || advertised.parse::<SocketAddr>().is_ok_and(|address| !address.ip().is_unspecified() && address.port() != 0)
}

fn is_host_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && host.len() <= 255 && port.parse::<u16>().is_ok_and(|port| port != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(change: impl Fn(&mut ClusterSection)) -> Vec<&'static str> {
        let file = || "f".to_owned();
        let mut section = ClusterSection {
            name: "bells".to_owned(),
            key_file: file(),
            tls_cert_file: file(),
            tls_key_file: file(),
            tls_ca_file: file(),
            ..ClusterSection::default()
        };
        assert!(section.rules().iter().all(|(kept, ..)| *kept), "the section is sound before it is changed");
        change(&mut section);
        section.rules().into_iter().filter(|(kept, ..)| !kept).map(|(_, setting, _)| setting).collect()
    }

    #[test]
    fn each_rule_has_its_setting() {
        assert_eq!(broken(|c| c.name = "Bells".to_owned()), ["cluster.name"]);
        assert_eq!(broken(|c| c.name = "bells-".to_owned()), ["cluster.name"]);
        assert_eq!(broken(|c| c.name = "b".repeat(64)), ["cluster.name"]);
        assert_eq!(broken(|c| c.gossip_advertise = "0.0.0.0:1".to_owned()), ["cluster.gossip_advertise"]);
        assert_eq!(broken(|c| c.gateway_advertise = "here".to_owned()), ["cluster.gateway_advertise"]);
        assert_eq!(broken(|c| c.gossip_listen = ([0, 0, 0, 0], 7702).into()), ["cluster.gossip_advertise"]);
        assert_eq!(broken(|c| c.seeds = vec!["a:1".to_owned(), "b".to_owned()]), ["cluster.seeds"]);
        assert_eq!(broken(|c| c.seeds = vec!["a:1".to_owned(); 65]), ["cluster.seeds"]);
        assert_eq!(broken(|c| c.lease_ms = 400), ["cluster.lease_ms", "cluster.beat_ms"]);
        assert_eq!(broken(|c| c.beat_ms = 900), ["cluster.beat_ms"]);
        assert_eq!(broken(|c| c.beat_ms = 10), ["cluster.beat_ms"]);
        assert_eq!(broken(|c| c.lanes = 0), ["cluster.lanes"]);
        assert_eq!(broken(|c| c.window = 0), ["cluster.window"]);
        assert_eq!(broken(|c| c.key_file.clear()), ["cluster.key_file"]);
        assert_eq!(broken(|c| c.tls_cert_file.clear()), ["cluster.tls_cert_file"]);
        assert_eq!(broken(|c| c.tls_key_file.clear()), ["cluster.tls_key_file"]);
        assert_eq!(broken(|c| c.tls_ca_file.clear()), ["cluster.tls_ca_file"]);
        let alone = |c: &mut ClusterSection| {
            c.name.clear();
            c.seeds = vec!["[::1]:7702".to_owned()];
        };
        assert_eq!(broken(alone), ["cluster.seeds"]);
        assert!(broken(|c| c.seeds = vec!["[::1]:7702".to_owned(), "node-1.bells.svc:7702".to_owned()]).is_empty());
    }

    #[test]
    fn executors_are_told_a_host_and_a_port() {
        let kept = |advertised: &str| told_to_executors(advertised).0;
        assert!(kept(""));
        assert!(kept("node-1.bells.example:7701"));
        assert!(kept("[::1]:7701"));
        assert!(!kept("node-1"));
        assert!(!kept("node-1:0"));
        assert!(!kept("tls://node-1:7701"));
        assert!(!kept(&format!("{}:7701", "n".repeat(RPC_ADVERTISE_BYTES))));
    }

    #[test]
    fn an_address_that_means_everywhere_is_told_as_one() {
        let section = ClusterSection { gossip_advertise: "10.0.0.7:7702".to_owned(), ..ClusterSection::default() };
        assert_eq!(section.gossip_at(), SocketAddr::from(([10, 0, 0, 7], 7702)));
        let everywhere = SocketAddr::from(([0, 0, 0, 0], 7701));
        assert_eq!(section.reached_at(everywhere), SocketAddr::from(([10, 0, 0, 7], 7701)));
        let one = SocketAddr::from(([10, 0, 0, 9], 7701));
        assert_eq!(section.reached_at(one), one);
        assert_eq!(section.gateway_at(), section.gateway_listen);
    }
}
