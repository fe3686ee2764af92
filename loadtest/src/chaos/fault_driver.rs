//! All processes of a scenario, and the acts on them.

use super::{
    ChaosArgs,
    act::{Act, At},
    disturb::Disturbances,
    net::Net,
    relay_process::RelayProcess,
};
use crate::{
    process::node::{ExecutorProcess, ExecutorSetup, When},
    run_dir::{lines::now_us, record::Record},
    test_cluster::{Program, TestCluster, host::Host, store::Store},
};
use std::{
    error::Error,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{task::block_in_place, time::sleep};

/// A process that is to end itself must do so within this time.
const ENDS: Duration = Duration::from_secs(60);
/// Bodies at once of each executor, and attempts that fail, of 100.
const SLOTS: u32 = 256;
const FAIL_PERCENT: u32 = 2;

/// See the module's text.
pub struct FaultDriver<'a> {
    pub cluster: TestCluster,
    pub executors: Vec<ExecutorProcess>,
    pub net: Option<&'a Net>,
    /// Before each server of the store, where something is done to what passes.
    pub relays: Vec<RelayProcess>,
    /// What the acts so far explain.
    pub disturbances: Disturbances,
    started: usize,
    dir: PathBuf,
    faults: Arc<Record>,
}

impl<'a> FaultDriver<'a> {
    pub fn new(
        cluster: TestCluster,
        net: Option<&'a Net>,
        relays: Vec<RelayProcess>,
        disturbances: Disturbances,
        dir: &Path,
        faults: &Arc<Record>,
    ) -> Self {
        let (dir, faults) = (dir.to_owned(), Arc::clone(faults));
        Self { cluster, executors: Vec::new(), net, relays, disturbances, started: 0, dir, faults }
    }

    pub fn start_executors(&mut self, args: &ChaosArgs) -> io::Result<()> {
        for _ in 0..args.executors() {
            let executor = self.executor(self.executors.len(), None)?;
            self.executors.push(executor);
        }
        Ok(())
    }

    /// One on the host of this number; it ends itself, when told to.
    fn executor(&mut self, at: usize, ends: Option<(When, u32)>) -> io::Result<ExecutorProcess> {
        let host = match self.net {
            Some(net) => net.host(At::Executor(u8::try_from(at).unwrap_or(u8::MAX))),
            None => Host::loopback(),
        };
        let setup = ExecutorSetup {
            rpc: self.cluster.rpc(),
            token: self.cluster.token.clone(),
            pool: "default".to_owned(),
            slots: SLOTS,
            fail_percent: FAIL_PERCENT,
            // What one that ends itself has written must be there.
            flush_ms: u64::from(ends.is_none()),
            dir: self.dir.clone(),
            log: true,
            stats: false,
            ends,
        };
        self.started += 1;
        let name = format!("executor-{}", self.started);
        let command = host.command(&std::env::current_exe()?);
        ExecutorProcess::start_by(command, &setup, &name, &self.dir.join("executors.log"), &self.faults)
    }

    pub async fn carry_out(&mut self, act: Act, store: &mut Store) -> Result<(), Box<dyn Error>> {
        let executors: Vec<String> = self.executors.iter().map(|executor| executor.name.clone()).collect();
        let from_us = now_us();
        self.do_it(act, store).await?;
        self.disturbances.carried_out(act, &executors, from_us, now_us());
        Ok(())
    }

    async fn do_it(&mut self, act: Act, store: &mut Store) -> Result<(), Box<dyn Error>> {
        match act {
            Act::Wait(ms) => sleep(Duration::from_millis(ms)).await,
            Act::Flap(one, other, times, ms) => {
                for _ in 0..times {
                    self.net()?.cut(one, other)?;
                    sleep(Duration::from_millis(ms)).await;
                    self.net()?.heal(one, other)?;
                    sleep(Duration::from_millis(ms)).await;
                }
            }
            other => block_in_place(|| self.act(other, store))?,
        }
        Ok(())
    }

    fn act(&mut self, act: Act, store: &mut Store) -> io::Result<()> {
        let cluster = &mut self.cluster;
        match act {
            Act::Kill(n) => cluster.kill(n),
            Act::Start(n) => cluster.start(n, ""),
            Act::StartBoth(one, other) => {
                cluster.launch(one, "")?;
                cluster.launch(other, "")?;
                cluster.listens(one)?;
                cluster.listens(other)
            }
            Act::Stop(n) => cluster.stop(&[n]),
            Act::StopBoth(one, other) => cluster.stop(&[one, other]),
            Act::Freeze(n) => cluster.freeze(n, true),
            Act::Thaw(n) => cluster.freeze(n, false),
            Act::DieAt(n, point, times) => {
                cluster.kill(n)?;
                cluster.start(n, &format!("point:{point}=kill:{times}"))?;
                cluster.ends(n, ENDS)
            }
            Act::Store(order) => store.order(order),
            Act::KillExecutor => {
                self.executors.remove(0).kill9()?;
                let executor = self.executor(0, None)?;
                self.executors.insert(0, executor);
                Ok(())
            }
            Act::FreezeExecutor => self.oldest()?.freeze(true),
            Act::ThawExecutor => self.oldest()?.freeze(false),
            Act::ExecutorEnds(when, body) => self.let_executor_end(when, body),
            Act::Cut(one, other) => self.net()?.cut(one, other),
            Act::CutOff(one, but) => self.net()?.cut_off(one, but),
            Act::CutOneWay(from, to) => self.net()?.cut_one_way(from, to),
            Act::Heal => self.net()?.heal_all(),
            Act::Lose(percent) => self.net()?.lose(percent),
            Act::Clock(n, ms) => cluster.set_clock(n, ms),
            Act::Slow(ms) => self.order_ways(&format!("slow {ms}")).map(drop),
            Act::LoseLwts(percent) => self.lose_lwts(percent),
            Act::FillDisk(n) => cluster.fill_disk(n),
            Act::FreeDisk(n) => cluster.free_disk(n),
            Act::Refused(n, why) => cluster.refused(n, why),
            Act::Release(n, later) => {
                cluster.set_release(n, later);
                Ok(())
            }
            Act::Readable => cluster.is_readable(Program::Present),
            Act::Unreadable(why) => cluster.gets_unreadable(Program::Present, why),
            Act::Runs(n, program) => {
                cluster.set_program(n, program);
                Ok(())
            }
            Act::ApplySchema => cluster.apply_schema(Program::Present),
            Act::EarlierReads => cluster.is_readable(Program::Earlier),
            Act::BackOrRefused(n) => cluster.back_or_refused(n),
            // Those that wait are carried out above.
            Act::Wait(_) | Act::Flap(..) => Ok(()),
        }
    }

    fn lose_lwts(&mut self, percent: u64) -> io::Result<()> {
        let (seen, lost) = self.order_ways(&format!("lose {percent}"))?;
        if percent == 0 {
            println!("    {lost} of {seen} LWTs were not answered");
            if lost == 0 {
                return Err(io::Error::other("no answer of an LWT was lost: nothing was shown"));
            }
        }
        Ok(())
    }

    fn let_executor_end(&mut self, when: When, body: u32) -> io::Result<()> {
        let mut executor = self.executor(self.executors.len(), Some((when, body)))?;
        let deadline = Instant::now() + ENDS;
        while executor.ended().is_none() {
            if Instant::now() > deadline {
                return Err(io::Error::other(format!("{} had no {body} bodies", executor.name)));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn oldest(&self) -> io::Result<&ExecutorProcess> {
        self.executors.first().ok_or_else(|| io::Error::other("there is no executor"))
    }

    fn net(&self) -> io::Result<&'a Net> {
        self.net.ok_or_else(|| io::Error::other("there is no network to cut"))
    }

    /// LWTs that all relays have seen so far, and those whose answers they have lost.
    fn order_ways(&mut self, order: &str) -> io::Result<(u64, u64)> {
        if self.relays.is_empty() {
            return Err(io::Error::other("there is no relay before the store"));
        }
        self.relays.iter_mut().try_fold((0, 0), |(seen, lost), way| {
            let more = way.order(order)?;
            Ok((seen + more.0, lost + more.1))
        })
    }

    /// Everything ends.
    pub fn end(self) -> io::Result<()> {
        let Self { mut cluster, executors, .. } = self;
        (0..cluster.len()).try_for_each(|n| cluster.kill(n))?;
        cluster.clear()?;
        executors.into_iter().try_for_each(|executor| executor.stop(Duration::from_secs(10)))
    }
}
