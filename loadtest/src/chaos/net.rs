//! A network of hosts that are namespaces, joined by a bridge in the harness's own namespace. The harness reaches all
//! of them, whatever is cut between them. Faults are made in the bridge, so that a sender gets no error and no carrier
//! loss, as behind a real switch.

use super::act::At;
use crate::test_cluster::host::{Host, NAMESPACE, PREFIX, run};
use std::io;

/// The harness itself.
const OWN: u8 = 254;

/// Rules of the bridge: pairs of ports between which nothing passes, and a chain for random loss.
const RULES: &str = "table bridge fault {
  set cut { type ifname . ifname; }
  chain loss { }
  chain onforward { type filter hook forward priority 0; policy accept; iifname . oifname @cut counter drop; jump loss; }
}";

/// See the module's text. It ends with the process, see `world.rs`.
pub struct Net;

impl Net {
    /// Only in the inner process: it takes the namespaces that it is in for its own.
    pub fn new() -> io::Result<Self> {
        run("mount", &["-t", "tmpfs", "none", "/run"])?;
        ip("link set lo up")?;
        ip("link add br0 type bridge forward_delay 0 stp_state 0")?;
        ip(&format!("addr add {PREFIX}{OWN}/24 dev br0"))?;
        ip("link set br0 up")?;
        run("nft", &[RULES])?;
        for number in At::all().map(At::number) {
            let host = format!("{NAMESPACE}{number}");
            ip(&format!("netns add {host}"))?;
            ip(&format!("link add p{number} type veth peer name eth0 netns {host}"))?;
            ip(&format!("link set p{number} master br0 up"))?;
            ip(&format!("-n {host} link set lo up"))?;
            ip(&format!("-n {host} addr add {PREFIX}{number}/24 dev eth0"))?;
            ip(&format!("-n {host} link set eth0 up"))?;
        }
        Ok(Self)
    }

    pub fn host(&self, at: At) -> Host {
        Host::of(at.number())
    }

    /// Nothing passes from one to the other; the way back stays.
    pub fn cut_one_way(&self, from: At, to: At) -> io::Result<()> {
        self.element("add", from, to)
    }

    pub fn cut(&self, one: At, other: At) -> io::Result<()> {
        self.element("add", one, other)?;
        self.element("add", other, one)
    }

    /// From everybody else on the net but those named.
    pub fn cut_off(&self, one: At, but: &[At]) -> io::Result<()> {
        At::all().filter(|other| *other != one && !but.contains(other)).try_for_each(|other| self.cut(one, other))
    }

    pub fn heal(&self, one: At, other: At) -> io::Result<()> {
        self.element("delete", one, other)?;
        self.element("delete", other, one)
    }

    /// Everything passes again.
    pub fn heal_all(&self) -> io::Result<()> {
        run("nft", &["flush set bridge fault cut"])?;
        run("nft", &["flush chain bridge fault loss"])
    }

    /// So many frames of a hundred are lost, whosever they are.
    pub fn lose(&self, percent: u32) -> io::Result<()> {
        run("nft", &[&format!("add rule bridge fault loss numgen random mod 100 < {percent} counter drop")])
    }

    fn element(&self, what: &str, from: At, to: At) -> io::Result<()> {
        run("nft", &[&format!("{what} element bridge fault cut {{ \"p{}\" . \"p{}\" }}", from.number(), to.number())])
    }
}

fn ip(words: &str) -> io::Result<()> {
    run("ip", &words.split(' ').collect::<Vec<_>>())
}
