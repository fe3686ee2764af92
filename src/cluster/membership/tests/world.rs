//! Members, the network between them, and the time. What happens follows from the seed alone.

use super::super::{
    Me,
    card::{Addresses, Versions},
    driver::{Driver, Now},
    members::Members,
    seal::Seal,
};
use crate::node_id;
use campanile_core::placement::NodeId;
use campanile_schema::ids::SessionId;
use campanile_security::secrets::KeyRing;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
};

pub const KEY: &str = "key-1 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
/// When the world begins by everybody's wall clock.
const EPOCH_MS: i64 = 1_800_000_000_000;

/// Chooses what of a packet's way is cut: from, to.
type Cut = Box<dyn Fn(usize, usize) -> bool>;

/// How a member is started.
#[derive(Clone)]
pub struct Start {
    pub me: Me,
    pub cluster: String,
    pub keys: String,
    pub seeds: Vec<usize>,
    pub clock_off_ms: i64,
}

impl Start {
    pub fn named(name: &str, address: SocketAddr) -> Self {
        let me = Me {
            node: node_id(name),
            name: name.to_owned(),
            generation: 1,
            session: SessionId(1),
            addresses: Addresses { gateway: address, rpc: address, http: address },
            executors_at: None,
            build: "0.1.0".to_owned(),
            event_format: Versions(1, 1),
            wire_format: Versions(1, 1),
            shards: 256,
            cordoned: false,
        };
        Self { me, cluster: "test".to_owned(), keys: KEY.to_owned(), seeds: vec![0, 1, 2], clock_off_ms: 0 }
    }
}

pub struct World {
    pub now_ms: u64,
    /// Part of packets that are lost.
    pub loss: f64,
    pub cut: Cut,
    pub random: StdRng,
    /// By place: an address each. None: no process there.
    pub places: Vec<Option<Driver>>,
    clocks: BTreeMap<usize, i64>,
    /// Places whose process does not run, though it is there.
    pub stopped: BTreeSet<usize>,
    /// All that members said, with who and when.
    pub told: Vec<(u64, usize, String)>,
    /// The last packets that arrived: from, to, bytes.
    pub seen: Vec<(usize, usize, Vec<u8>)>,
    pub delivered: u64,
    under_way: BTreeMap<(u64, u64), (usize, usize, Vec<u8>)>,
    sent: u64,
}

pub fn address(place: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, (place >> 8) as u8, place as u8], 7702))
}

fn place_of(address: SocketAddr) -> Option<usize> {
    match address.ip() {
        std::net::IpAddr::V4(ip) if ip.octets()[0] == 10 => {
            Some(usize::from(ip.octets()[2]) << 8 | usize::from(ip.octets()[3]))
        }
        std::net::IpAddr::V4(_) | std::net::IpAddr::V6(_) => None,
    }
}

impl World {
    pub fn new(seed: u64) -> Self {
        Self {
            now_ms: 0,
            loss: 0.0,
            cut: Box::new(|_, _| false),
            random: StdRng::seed_from_u64(seed),
            places: Vec::new(),
            clocks: BTreeMap::new(),
            stopped: BTreeSet::new(),
            told: Vec::new(),
            seen: Vec::new(),
            delivered: 0,
            under_way: BTreeMap::new(),
            sent: 0,
        }
    }

    /// So many members that know each other.
    pub fn of(seed: u64, members: usize) -> Self {
        let mut world = Self::new(seed);
        for place in 0..members {
            world.start(place, Start::named(&format!("n{place}"), address(place)));
        }
        world.until(60_000, "all see all", |world| world.all_see_all());
        world
    }

    pub fn now(&self, place: usize) -> Now {
        let off = self.clocks.get(&place).copied().unwrap_or(0);
        Now { mono_ms: self.now_ms, boot_ms: self.now_ms as i64, wall_ms: EPOCH_MS + self.now_ms as i64 + off }
    }

    pub fn start(&mut self, place: usize, start: Start) {
        self.clocks.insert(place, start.clock_off_ms);
        let keys = KeyRing::parse(&start.keys).unwrap();
        let seal = Seal::new(start.cluster, keys).unwrap();
        let now = self.now(place);
        let seeds: Vec<_> = start.seeds.iter().filter(|seed| **seed != place).map(|seed| address(*seed)).collect();
        let seed = self.random.random();
        let mut driver = Driver::new(seal, &start.me, address(place), !seeds.is_empty(), seed, now).unwrap();
        driver.set_seeds(seeds);
        if self.places.len() <= place {
            self.places.resize_with(place + 1, || None);
        }
        self.places[place] = Some(driver);
    }

    /// The clock of a member is off by so much from now on, milliseconds.
    pub fn set_clock(&mut self, place: usize, off_ms: i64) {
        self.clocks.insert(place, off_ms);
    }

    /// Ends without a word.
    pub fn kill(&mut self, place: usize) {
        self.places[place] = None;
    }

    pub fn living(&self) -> Vec<usize> {
        (0..self.places.len()).filter(|place| self.places[*place].is_some()).collect()
    }

    pub fn members(&self, place: usize) -> Arc<Members> {
        self.places[place].as_ref().unwrap().members()
    }

    pub fn sees(&self, place: usize) -> Vec<NodeId> {
        self.members(place).all.iter().map(|member| member.node).collect()
    }

    pub fn all_see_all(&self) -> bool {
        let living = self.living();
        let mut nodes: Vec<NodeId> =
            living.iter().map(|place| NodeId(self.places[*place].as_ref().unwrap().me().node)).collect();
        nodes.sort_unstable();
        living.iter().all(|place| self.sees(*place) == nodes)
    }

    /// Runs until it is so; how long that took, milliseconds.
    pub fn until(&mut self, within_ms: u64, what: &str, is_so: impl Fn(&Self) -> bool) -> u64 {
        let began = self.now_ms;
        while !is_so(self) {
            assert!(self.now_ms < began + within_ms, "not within {within_ms} ms: {what}\n{}", self.story());
            self.run(10);
        }
        self.now_ms - began
    }

    /// What was told last.
    pub fn story(&self) -> String {
        let last = self.told.len().saturating_sub(30);
        self.told[last..].iter().map(|(ms, place, text)| format!("  {ms} ms, {place}: {text}\n")).collect()
    }

    pub fn was_told(&self, place: usize, part: &str) -> bool {
        self.told.iter().any(|(_, by, text)| *by == place && text.contains(part))
    }

    /// So much time passes.
    pub fn run(&mut self, ms: u64) {
        let end = self.now_ms + ms;
        loop {
            let packet = self.under_way.first_key_value().map(|((at, _), _)| *at);
            let running = self.living().into_iter().filter(|place| !self.stopped.contains(place));
            let wake = running.map(|place| (self.places[place].as_ref().unwrap().next_wake_ms(), place)).min();
            let next = packet.into_iter().chain(wake.map(|(at, _)| at)).min().unwrap_or(end).max(self.now_ms);
            if next > end {
                self.now_ms = end;
                return;
            }
            self.now_ms = next;
            if packet.is_some_and(|at| at <= next) {
                let (_, (from, to, bytes)) = self.under_way.pop_first().unwrap();
                self.arrive(from, to, &bytes);
            } else if let Some((_, place)) = wake {
                let now = self.now(place);
                self.places[place].as_mut().unwrap().wake(now);
                self.collect(place);
            }
        }
    }

    fn arrive(&mut self, from: usize, to: usize, bytes: &[u8]) {
        if self.stopped.contains(&to) {
            // A stopped process finds them in its socket: they come when it runs, or were too many.
            if self.under_way.len() < 4_096 {
                self.sent += 1;
                self.under_way.insert((self.now_ms + 50, self.sent), (from, to, bytes.to_vec()));
            }
            return;
        }
        self.delivered += 1;
        if self.seen.len() >= 64 {
            self.seen.remove(0);
        }
        self.seen.push((from, to, bytes.to_vec()));
        self.deliver(from, to, bytes);
    }

    /// A packet arrives now, from wherever.
    pub fn deliver(&mut self, from: usize, to: usize, bytes: &[u8]) {
        let now = self.now(to);
        if let Some(driver) = self.places.get_mut(to).and_then(Option::as_mut) {
            driver.receive(now, address(from), bytes);
            self.collect(to);
        }
    }

    /// Puts on the network what a member wants sent.
    pub fn collect(&mut self, place: usize) {
        let driver = self.places[place].as_mut().unwrap();
        for told in driver.take_notices() {
            self.told.push((self.now_ms, place, told.text));
        }
        for (to, bytes) in driver.take_packets() {
            let Some(to) = place_of(to) else { continue };
            if (self.cut)(place, to) || self.random.random_bool(self.loss) {
                continue;
            }
            self.sent += 1;
            let on_the_way = self.random.random_range(1..6);
            self.under_way.insert((self.now_ms + on_the_way, self.sent), (place, to, bytes));
        }
    }
}
