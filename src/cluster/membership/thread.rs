//! The socket, the clock and the thread of membership. All else is the driver's.

use super::{
    Me, Options, OwnStatus,
    driver::{Driver, Now},
    members::{Counters, Members},
    seal::Seal,
};
use campanile_actors::time::AgreedTime;
use campanile_ports::Clock;
use campanile_schema::limits::{GOSSIP_PACKET_BYTES, GOSSIP_PACKETS_A_TURN};
use parking_lot::Mutex;
use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};
use tokio::{
    net::{UdpSocket, lookup_host},
    sync::{mpsc, watch},
};

/// Names of seeds are resolved again after this time: a container comes back with another address.
const RESOLVE_EVERY: Duration = Duration::from_secs(10);
/// One name may take so long.
const RESOLVE_WAIT: Duration = Duration::from_secs(5);

/// The thread with its first view.
pub(super) fn start(
    socket: std::net::UdpSocket,
    options: Options,
    me: &Me,
    address: SocketAddr,
    wanted: watch::Receiver<OwnStatus>,
    counters: Arc<Mutex<Counters>>,
) -> Result<(JoinHandle<()>, watch::Receiver<Arc<Members>>), String> {
    let began = Instant::now();
    let time = Time { began, clock: options.clock };
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| format!("no randomness from the system: {error}"))?;
    let seal = Seal::new(options.cluster, options.keys)?;
    let driver = Driver::new(seal, me, address, !options.seeds.is_empty(), seed, time.now())?;
    socket.set_nonblocking(true).map_err(|error| format!("membership: {error}"))?;
    // Without I/O of its own runtime, a busy node would delay probes and answers.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("membership: no runtime: {error}"))?;
    let (publish, members) = watch::channel(driver.members());
    let (resolved, seeds) = mpsc::channel(1);
    let (names, agreed) = (options.seeds, options.agreed);
    let run = async move {
        let resolving = tokio::spawn(resolve(names, resolved));
        match UdpSocket::from_std(socket) {
            Ok(socket) => Turns { driver, socket, time, wanted, seeds, publish, counters, agreed }.run().await,
            Err(error) => tracing::error!(%error, "membership ended: the socket cannot be used"),
        }
        resolving.abort();
    };
    let thread = std::thread::Builder::new()
        .name("membership".to_owned())
        .spawn(move || {
            runtime.block_on(run);
            // A name that is being resolved may not hold the node.
            runtime.shutdown_background();
        })
        .map_err(|error| format!("membership: no thread: {error}"))?;
    Ok((thread, members))
}

struct Time {
    began: Instant,
    clock: Arc<dyn Clock>,
}

impl Time {
    fn now(&self) -> Now {
        let mono_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Now { mono_ms, boot_ms: (self.clock.boot_us() / 1_000).cast_signed(), wall_ms: self.clock.wall_us() / 1_000 }
    }
}

struct Turns {
    driver: Driver,
    socket: UdpSocket,
    time: Time,
    wanted: watch::Receiver<OwnStatus>,
    seeds: mpsc::Receiver<Vec<SocketAddr>>,
    publish: watch::Sender<Arc<Members>>,
    counters: Arc<Mutex<Counters>>,
    agreed: AgreedTime,
}

impl Turns {
    /// Until the node has left, or nobody wants it any more.
    async fn run(mut self) {
        while !self.driver.has_left() {
            let wake = self.time.began + Duration::from_millis(self.driver.next_wake_ms());
            tokio::select! {
                changed = self.wanted.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.obey();
                }
                Some(seeds) = self.seeds.recv() => self.driver.set_seeds(seeds),
                ready = self.socket.readable() => {
                    if let Err(error) = ready {
                        tracing::error!(%error, "membership ended: the socket cannot be read");
                        return;
                    }
                }
                () = tokio::time::sleep_until(wake.into()) => {}
            }
            // Packets before timers, always: what we slept through may be the answer that a timer asks for.
            self.read();
            self.driver.wake(self.time.now());
            self.write();
            self.publish();
        }
    }

    fn obey(&mut self) {
        let wanted = *self.wanted.borrow_and_update();
        let now = self.time.now();
        self.driver.say(now, |card| {
            card.session = wanted.session.0;
            card.draining = wanted.draining;
            card.cordoned = wanted.cordoned;
        });
        if wanted.leaving {
            self.driver.leave(now);
        }
    }

    fn read(&mut self) {
        // One more, so that a longer packet is seen to be one.
        let mut packet = [0; GOSSIP_PACKET_BYTES + 1];
        for _ in 0..GOSSIP_PACKETS_A_TURN {
            match self.socket.try_recv_from(&mut packet) {
                Ok((length, from)) => self.driver.receive(self.time.now(), from, &packet[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // An earlier packet of ours found nobody: the next ones are there all the same.
                Err(error) => tracing::trace!(%error, "membership: a packet could not be read"),
            }
        }
    }

    fn write(&mut self) {
        for (to, packet) in self.driver.take_packets() {
            // One that cannot be sent now is one that is lost on the way.
            if let Err(error) = self.socket.try_send_to(&packet, to) {
                tracing::trace!(%error, %to, "membership: a packet could not be sent");
            }
        }
    }

    fn publish(&mut self) {
        self.agreed.set(self.driver.agreed_ms());
        for notice in self.driver.take_notices() {
            if notice.warning {
                tracing::warn!("membership: {}", notice.text);
            } else {
                tracing::info!("membership: {}", notice.text);
            }
        }
        let members = self.driver.members();
        self.publish.send_if_modified(|published| {
            let changed = !Arc::ptr_eq(published, &members);
            if changed {
                metrics::gauge!("campanile_members").set(members.all.len() as f64);
                let suspects = members.all.iter().filter(|member| member.suspect).count();
                metrics::gauge!("campanile_members_suspect").set(suspects as f64);
                published.clone_from(&members);
            }
            changed
        });
        let counters = self.driver.counters();
        let mut before = self.counters.lock();
        metrics::counter!("campanile_membership_packets_total", "way" => "sent").increment(counters.sent - before.sent);
        let received = counters.received - before.received;
        metrics::counter!("campanile_membership_packets_total", "way" => "received").increment(received);
        metrics::counter!("campanile_membership_downs_total").increment(counters.downs - before.downs);
        metrics::counter!("campanile_membership_rejoins_total").increment(counters.rejoins - before.rejoins);
        *before = counters;
    }
}

/// Resolves names again and again until nobody wants to know.
async fn resolve(names: Vec<String>, resolved: mpsc::Sender<Vec<SocketAddr>>) {
    loop {
        let mut all = Vec::new();
        for name in &names {
            match tokio::time::timeout(RESOLVE_WAIT, lookup_host(name)).await {
                Ok(Ok(addresses)) => all.extend(addresses),
                Ok(Err(error)) => tracing::warn!(%error, "membership: seed '{name}' cannot be resolved"),
                Err(_) => tracing::warn!("membership: seed '{name}' was not resolved in time"),
            }
        }
        if resolved.send(all).await.is_err() {
            return;
        }
        tokio::time::sleep(RESOLVE_EVERY).await;
    }
}
