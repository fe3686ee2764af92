//! One workload from its start to its verdict. Whatever ends it early, what was seen until then is reported, and no process is
//! left behind.

use super::{
    Outcome, RunArgs,
    calls::Calls,
    create::{self, Created},
    finish,
    measure::Measure,
    progress::Progress,
    system::System,
    watch::{self, Answers, Metrics},
};
use crate::{
    caller::Caller,
    checker::check_dir,
    export::{Scope, export},
    lines::now_us,
    proc_stat::{Usage, dir_bytes},
    record::Record,
    report::{Happened, Second, Use, machine::Machine},
    scenario::{OnDeath, Scenario, jobs::Jobs},
    stats::Tail,
};
use campanile_client::Client;
use campanile_schema::{ids::JobId, view::TenantBody};
use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    sync::{Arc, PoisonError},
    time::Duration,
};
use tokio::{sync::watch::Receiver, task::block_in_place, time::sleep};

/// Executors write a second's counts soon after it is over; the harness reads them this long after, milliseconds.
const READ_AFTER_MS: i64 = 300;
/// Open runs are asked for so often at the end, milliseconds.
const POLL_MS: i64 = 100;
/// Calls that are still under way at the end get this long.
const LAST_CALLS: Duration = Duration::from_secs(15);

/// Why a run ended before its time.
pub(super) enum Early {
    Interrupted,
    /// The system did not do what it should.
    Red(String),
    /// The run could not be made, or not to its end.
    NotRun(String),
}

/// What was used so far, of everything.
#[derive(Clone, Copy, Default)]
pub(super) struct Used {
    pub at_us: i64,
    pub node: Option<Usage>,
    executors: Usage,
    harness: Usage,
    pub disk: Option<u64>,
    pub metrics: Metrics,
}

/// Everything that is known of a run.
pub(super) struct Seen {
    pub created: Created,
    pub measure: Measure,
    /// By second from the start; what executors told is filled in at the end.
    pub seconds: BTreeMap<i64, Second>,
    pub happened: Vec<Happened>,
    pub calls: Calls,
    pub up: Answers,
    pub at_start: Used,
    pub at_end: Used,
    /// Instants before this second were asked for.
    pub until_s: i64,
    pub drain_s: Option<f64>,
    pub runs_left: Option<u64>,
    pub ceiling: Option<f64>,
}

/// What a run is made with.
struct Run<'a> {
    args: &'a RunArgs,
    scenario: &'a Scenario,
    dir: &'a Path,
    progress: Progress,
    stop: Receiver<bool>,
    system: System,
    client: Client,
    caller: Caller,
    tails: HashMap<PathBuf, Tail>,
    check: bool,
    /// Open runs of others, before the first job of ours.
    others: u64,
}

/// Makes the run and its report.
pub(super) async fn run(args: &RunArgs, file: &str, scenario: &Scenario, dir: &Path, stop: Receiver<bool>) -> Outcome {
    let progress = Progress::new(&scenario.name, scenario.length_s());
    println!("{}: {} ({} s)", scenario.name, scenario.about, scenario.length_s());
    let refuse = |message: &str| {
        eprintln!("error: {}: {message}", scenario.name);
        Outcome::NotRun
    };
    if let Err(message) = room(args, dir) {
        return refuse(&message);
    }
    let check = args.check && scenario.checkable;
    let system = match System::start(args, dir, scenario.executors.slots, check) {
        Ok(system) => system,
        Err(message) => return refuse(&message),
    };
    let client = match system.connect().await {
        Ok(client) => client,
        Err(message) => return refuse(&message),
    };
    let record =
        if check { Record::open(&dir.join("caller-1.jsonl"), Duration::from_millis(5)) } else { Record::nowhere() };
    let record = match record {
        Ok(record) => Arc::new(record),
        Err(error) => return refuse(&format!("{}: {error}", dir.display())),
    };
    let caller = Caller::new(client.clone(), Arc::clone(&record));
    let tails = HashMap::new();
    let mut run = Run { args, scenario, dir, progress, stop, system, client, caller, tails, check, others: 0 };
    let (seen, early) = run.go().await;
    let version = run.client.welcome().node;
    let Run { system, caller, mut tails, progress, .. } = run;
    let (own, address, files) = (system.is_own(), system.address.rpc.clone(), system.stats_files());
    system.stop();
    drop(caller);
    if let Some(record) = Arc::into_inner(record)
        && let Err(error) = record.close()
    {
        progress.tell(&format!("the caller's file is not whole: {error}"));
    }
    let Some(mut seen) = seen else {
        return match early {
            Some(Early::Interrupted) => {
                progress.tell("stopped before the first instant: there is nothing to report");
                Outcome::Interrupted
            }
            Some(Early::Red(message) | Early::NotRun(message)) => refuse(&message),
            None => refuse("it ended before the first instant"),
        };
    };
    // Executors have written their last second when they were stopped.
    files.iter().for_each(|file| read_tail(&mut tails, file, &mut seen.measure));
    let word = if early.is_none() && check {
        match block_in_place(|| check_dir(dir)) {
            Ok(verdict) => Some((verdict.green, verdict.to_string())),
            Err(error) => Some((false, format!("the history cannot be read: {error}"))),
        }
    } else {
        None
    };
    let system = if own { "a node of the harness".to_owned() } else { format!("the node at {address}") };
    let report = finish::report(finish::Facts {
        scenario,
        short: args.short,
        file,
        system,
        machine: Machine::here(version),
        seen,
        early: early.as_ref(),
        checker: word,
    });
    if let Err(error) = report.write(dir) {
        return refuse(&format!("the report cannot be written: {}: {error}", dir.display()));
    }
    drop(progress);
    finish::print(&report, dir);
    match early {
        Some(Early::Interrupted) => Outcome::Interrupted,
        Some(Early::NotRun(_)) => Outcome::NotRun,
        Some(Early::Red(_)) => Outcome::Red,
        None if report.green => Outcome::Green,
        None => Outcome::Red,
    }
}

/// The disk has room for the run's files.
fn room(args: &RunArgs, dir: &Path) -> Result<(), String> {
    let Ok(disk) = rustix::fs::statvfs(dir) else { return Ok(()) };
    let free = (disk.f_bavail * disk.f_frsize) >> 20;
    if free >= args.least_free_mib {
        return Ok(());
    }
    Err(format!(
        "the disk of {} has only {free} MiB free, and {} must stay free: make room, name a directory on another disk with \
         --dir, or set --least-free-mib lower",
        dir.display(),
        args.least_free_mib
    ))
}

fn read_tail(tails: &mut HashMap<PathBuf, Tail>, file: &Path, measure: &mut Measure) {
    if !tails.contains_key(file) {
        match Tail::open(file) {
            Ok(tail) => tails.insert(file.to_owned(), tail),
            // An executor that is not up yet.
            Err(_) => return,
        };
    }
    if let Some(Ok(lines)) = tails.get_mut(file).map(Tail::read) {
        lines.iter().for_each(|line| measure.take(line));
    }
}

impl Run<'_> {
    /// The run itself. Nothing seen: it ended before its first instant.
    async fn go(&mut self) -> (Option<Seen>, Option<Early>) {
        let mut stop = self.stop.clone();
        let made = tokio::select! {
            made = self.prepare() => made.map_err(Early::NotRun),
            _ = stop.wait_for(|stop| *stop) => Err(Early::Interrupted),
        };
        let (created, quotas) = match made {
            Ok(made) => made,
            Err(early) => return (None, Some(early)),
        };
        let frame = created.frame.clone();
        let due = self.scenario.loads.iter().map(|load| (load.name.clone(), Jobs::new(load, &frame).due())).collect();
        let (prober, up) = watch::probe(self.system.address.clone(), self.client.clone());
        let at_start = self.used().await;
        let mut seen = Seen {
            measure: Measure::new(&frame, due),
            calls: Calls::start(self.scenario, &frame, &self.caller, &created.jobs),
            created,
            seconds: BTreeMap::new(),
            happened: Vec::new(),
            up,
            at_start,
            at_end: at_start,
            until_s: 0,
            drain_s: None,
            runs_left: None,
            ceiling: None,
        };
        let early = self.seconds(&mut seen).await.err();
        prober.abort();
        let early = match early {
            None => self.close(&mut seen).await.err(),
            early => early,
        };
        if !self.system.is_own() && !self.args.keep_jobs {
            self.clean(&seen, quotas).await;
        }
        (Some(seen), early)
    }

    /// Executors, quotas, jobs; the quotas as they were before.
    async fn prepare(&mut self) -> Result<(Created, Vec<(String, TenantBody)>), String> {
        let first = self.scenario.stretches().first().and_then(|phase| phase.executors);
        self.system.scale(&self.client, first.unwrap_or(self.scenario.executors.count)).await?;
        self.others = self.client.system_info().await.map_err(|error| error.to_string())?.open_runs;
        let mut before = Vec::new();
        for tenant in &self.scenario.tenants {
            if let Ok(known) = self.client.tenant_get(&tenant.name).await {
                before.push((tenant.name.clone(), known.quota));
            }
            let quota = TenantBody {
                max_concurrent_runs: tenant.max_concurrent_runs,
                max_triggers_per_sec: tenant.max_triggers_per_sec,
                max_queued_runs: tenant.max_queued_runs,
                max_jobs: 0,
            };
            let set = self.client.tenant_set(&tenant.name, quota).await;
            set.map_err(|error| format!("the limits of tenant {} cannot be set: {error}", tenant.name))?;
        }
        // Seconds since 1970: short, and another in each run.
        let mark = format!("{:x}", now_us() / 1_000_000);
        let created = create::create(self.scenario, &self.caller, &mark, &|text| self.progress.tell(text)).await?;
        let count = created.all().count();
        self.progress.tell(&format!("{count} jobs created in {:.1} s", created.took_ms as f64 / 1000.0));
        Ok((created, before))
    }

    async fn used(&self) -> Used {
        Used {
            at_us: now_us(),
            node: self.system.server_pid.and_then(|pid| Usage::of(pid).ok()),
            executors: watch::usage(&self.system.executor_pids()),
            harness: watch::usage(&[std::process::id()]),
            disk: self.system.data().map(|dir| block_in_place(|| dir_bytes(&dir))),
            metrics: watch::metrics(&self.system.address).await,
        }
    }

    /// From the first instant to the last.
    async fn seconds(&mut self, seen: &mut Seen) -> Result<(), Early> {
        let frame = seen.created.frame.clone();
        let begin_s = frame.start_ms / 1000;
        let mut last = seen.at_start;
        for (n, phase) in frame.phases.iter().enumerate() {
            let stretch = frame.seconds_of(n);
            self.wait_until(frame.start_ms + stretch.start as i64 * 1000).await?;
            if n > 0 && frame.ramp.is_empty() {
                self.note(seen, stretch.start as i64, &format!("phase {}", phase.name));
            }
            if phase.kill_executors > 0 {
                let names = self.system.kill(phase.kill_executors);
                self.note(seen, stretch.start as i64, &format!("kill -9 of {}", names.join(", ")));
            }
            if let Some(count) = phase.executors.filter(|_| n > 0) {
                self.system.scale(&self.client, count).await.map_err(Early::NotRun)?;
                self.note(seen, stretch.start as i64, &format!("{count} executors"));
            }
            for second in stretch {
                let second = second as i64;
                // All that is due in it counts from here on.
                seen.until_s = second + 1;
                self.wait_until((begin_s + second + 1) * 1000 + READ_AFTER_MS).await?;
                last = self.second(seen, second, &phase.name, last).await?;
                seen.at_end = last;
            }
            if self.is_ceiling(seen, n) {
                break;
            }
        }
        Ok(())
    }

    /// Looks at everything once a second.
    async fn second(&mut self, seen: &mut Seen, second: i64, phase: &str, last: Used) -> Result<Used, Early> {
        let used = self.used().await;
        for file in self.system.stats_files() {
            read_tail(&mut self.tails, &file, &mut seen.measure);
        }
        seen.measure.close_old(second);
        let row = self.row(seen, second, &last, &used);
        self.progress.second(&row, phase);
        seen.seconds.insert(second, row);
        for dead in self.system.dead_executors() {
            self.note(seen, second, &format!("{dead} ended by itself; see executors.log"));
            if self.scenario.executors.on_death == OnDeath::Stop {
                return Err(Early::Red(format!(
                    "{dead} ended in second {second}, and the workload says: on_death = \"stop\""
                )));
            }
            if self.system.executor_pids().is_empty() {
                return Err(Early::Red("no executor is left; see executors.log".to_owned()));
            }
        }
        if let Some(status) = self.system.node_ended() {
            let message = format!(
                "the node ended by itself in second {second} ({status}); see {}",
                self.dir.join("node.log").display()
            );
            self.note(seen, second, &message);
            return Err(Early::Red(message));
        }
        room(self.args, self.dir).map_err(Early::NotRun)?;
        Ok(used)
    }

    fn row(&self, seen: &Seen, second: i64, last: &Used, used: &Used) -> Second {
        let elapsed_us = (used.at_us - last.at_us).max(1) as f64;
        let part = |now: &Usage, before: &Usage| Use {
            cores: now.cpu_us.saturating_sub(before.cpu_us) as f64 / elapsed_us,
            rss_mb: now.rss_kb as f64 / 1024.0,
            written_mb: now.write_bytes.saturating_sub(before.write_bytes) as f64 / 1e6,
        };
        let told = seen.measure.row(second);
        let start = seen.measure.so_far(second);
        let node = used.node.zip(last.node).map(|(now, before)| part(&now, &before));
        Second {
            second,
            due: seen.measure.due_in(second),
            received: told.received,
            start_p50_ms: start.map(|p| p.p50_ms),
            start_p99_ms: start.map(|p| p.p99_ms),
            start_p999_ms: start.map(|p| p.p999_ms),
            node,
            executors: part(&used.executors, &last.executors),
            executor_count: self.system.executor_pids().len(),
            harness: part(&used.harness, &last.harness),
            disk_mb: used.disk.map(|bytes| bytes as f64 / 1e6),
            open_runs: used.metrics.open_runs,
            waiting: used.metrics.waiting,
            retrying: used.metrics.retrying,
            lag_events: used.metrics.lag_events,
            syncs: used.metrics.batches.zip(last.metrics.batches).map(|(now, before)| now - before),
            ..Second::default()
        }
    }

    fn note(&self, seen: &mut Seen, second: i64, what: &str) {
        self.progress.tell(what);
        seen.happened.push(Happened { second, what: what.to_owned() });
    }

    /// Whether the step of the ramp that just ended was the last one.
    fn is_ceiling(&self, seen: &mut Seen, step: usize) -> bool {
        let Some(ramp) = &self.scenario.ramp else { return false };
        let figures = seen.measure.phase(step, seen.until_s);
        // The last few may still be on their way, within what is allowed.
        let missing = figures.due.saturating_sub(figures.start.count) as f64;
        let followed = figures.start.p99_ms <= ramp.stop_p99_ms && missing <= figures.due as f64 * 0.01;
        let (rate, p99) = (ramp.rates[step], figures.start.p99_ms);
        if followed {
            seen.ceiling = Some(rate);
            self.progress.tell(&format!("{rate}/s: p99 {p99:.0} ms"));
        } else {
            let what = format!(
                "{rate}/s was not followed: p99 {p99:.0} ms, {} of {} received",
                figures.start.count, figures.due
            );
            self.note(seen, seen.until_s - 1, &what);
        }
        !followed
    }

    /// After the last instant: calls end, runs end, the history is written down.
    async fn close(&mut self, seen: &mut Seen) -> Result<(), Early> {
        seen.calls.finish(LAST_CALLS).await;
        let frame = seen.created.frame.clone();
        // A ramp that ended early has jobs that are still due.
        if seen.until_s == frame.length_s() as i64 {
            self.drain(seen).await?;
        }
        if self.check {
            let mut jobs: Vec<JobId> = seen.created.all().collect();
            jobs.extend(seen.calls.created.lock().unwrap_or_else(PoisonError::into_inner).iter());
            let from_ms = frame.start_ms - seen.created.took_ms - self.scenario.settle_s as i64 * 1000 - 2_000;
            let quotas = self.scenario.tenants.iter().map(|t| (t.name.clone(), t.max_concurrent_runs)).collect();
            let drained = seen.runs_left == Some(0);
            let scope = Scope { from_ms, until_ms: frame.end_ms() + 1_000, drained, quotas, rates: Default::default() };
            self.progress.tell(&format!("writing down the history of {} jobs", jobs.len()));
            let (mut stop, client) = (self.stop.clone(), self.client.clone());
            let exported = tokio::select! {
                exported = export(&client, &jobs, scope, self.dir) => exported,
                _ = stop.wait_for(|stop| *stop) => return Err(Early::Interrupted),
            };
            exported.map_err(|error| Early::NotRun(format!("the history cannot be written down: {error}")))?;
        }
        Ok(())
    }

    async fn drain(&mut self, seen: &mut Seen) -> Result<(), Early> {
        let end_ms = seen.created.frame.end_ms();
        let patience_ms = self.scenario.drain_s as i64 * 1000;
        let mut second = seen.until_s;
        let mut last = seen.at_end;
        loop {
            let left = self.client.system_info().await.ok().map(|info| info.open_runs.saturating_sub(self.others));
            let late_ms = (now_us() / 1000 - end_ms).max(0);
            seen.runs_left = left.or(seen.runs_left);
            if left == Some(0) {
                seen.drain_s = Some(late_ms as f64 / 1000.0);
                break;
            }
            if late_ms > patience_ms {
                break;
            }
            self.wait_until(now_us() / 1000 + POLL_MS).await?;
            // Seconds go on, so that the report shows how it drained.
            if now_us() / 1000 >= seen.created.frame.start_ms + (second + 1) * 1000 + READ_AFTER_MS {
                last = self.second(seen, second, "draining", last).await?;
                second += 1;
            }
        }
        seen.at_end = self.used().await;
        Ok(())
    }

    /// On a node that is not ours: no job and no limit of this run stays.
    async fn clean(&self, seen: &Seen, quotas: Vec<(String, TenantBody)>) {
        let mut jobs: Vec<JobId> = seen.created.all().collect();
        jobs.extend(seen.calls.created.lock().unwrap_or_else(PoisonError::into_inner).iter());
        self.progress.tell(&format!("deleting {} jobs", jobs.len()));
        create::delete(&self.caller, &jobs).await;
        for (tenant, quota) in quotas {
            if let Err(error) = self.client.tenant_set(&tenant, quota).await {
                self.progress.tell(&format!("the limits of tenant {tenant} are not as before: {error}"));
            }
        }
    }

    async fn wait_until(&self, at_ms: i64) -> Result<(), Early> {
        let mut stop = self.stop.clone();
        let left = Duration::from_millis((at_ms - now_us() / 1000).max(0).unsigned_abs());
        tokio::select! {
            () = sleep(left) => Ok(()),
            _ = stop.wait_for(|stop| *stop) => Err(Early::Interrupted),
        }
    }
}
