//! One workload from its start to its verdict. Whatever ends it early, what was seen until then is reported, and no process is
//! left behind.

use super::{
    Outcome, RunArgs,
    calls::Calls,
    create::{self, Created, Maker},
    early::Early,
    finish,
    measure::Measure,
    observations::{RunObservations, Used},
    progress::Progress,
    stop::Stop,
    system::{FailedProcess, System},
    traces::Traces,
    watch::{self, Answers, Prober},
};
use crate::{
    checker::check_dir,
    load::{bulk::Bulk, caller::Caller, stats::Tail},
    process::proc_stat::{Usage, dir_bytes, machine_cpu_us},
    report::{Happened, Report, machine::Machine},
    run_dir::{lines::now_us, record::Record},
    scenario::{Api, Scenario, jobs::Jobs},
};
use campanile_client::{Client, ClientError};
use campanile_schema::{error::ErrorCode, view::TenantBody};
use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{task::block_in_place, time::sleep};

/// What a run is made with.
pub(super) struct Run<'a> {
    pub args: &'a RunArgs,
    pub scenario: &'a Scenario,
    pub dir: &'a Path,
    pub progress: Progress,
    pub stop: Stop,
    pub system: System,
    pub client: Client,
    caller: Caller,
    pub tails: HashMap<PathBuf, Tail>,
    pub check: bool,
    /// Open runs of others, before the first job of ours.
    pub others: u64,
    pub prober: Option<Prober>,
    traces: Traces,
    /// In the names of all jobs: seconds since 1970, short and another in each run.
    mark: String,
}

/// How a run came out, and its report when there is one.
pub(super) type Made = (Outcome, Option<Report>);

/// Makes the run and its report.
pub(super) async fn run(args: &RunArgs, file: &str, scenario: &Scenario, dir: &Path, stop: Stop) -> Made {
    let progress = Progress::new(&scenario.name, scenario.length_s());
    println!("{}: {} ({} s)", scenario.name, scenario.about, scenario.length_s());
    let refuse = |message: &str| {
        eprintln!("error: {}: {message}", scenario.name);
        (Outcome::NotRun, None)
    };
    if let Err(message) = room(args, dir) {
        return refuse(&message);
    }
    if args.rpc.is_some() && scenario.phases.iter().any(|phase| phase.restart.is_some()) {
        return refuse("it restarts the node, and only one of the harness can be: leave --rpc out");
    }
    if args.rpc.is_some() && args.http.is_none() && scenario.create == Api::Http {
        return refuse("it creates its jobs through HTTP: give the node's HTTP address with --http");
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
    let (tails, traces, mark) = (HashMap::new(), Traces::default(), format!("{:x}", now_us() / 1_000_000));
    let mut run = Run {
        args,
        scenario,
        dir,
        progress,
        stop,
        system,
        client,
        caller,
        tails,
        check,
        others: 0,
        prober: None,
        traces,
        mark,
    };
    let (seen, mut early) = run.go().await;
    let check = run.check;
    let Run { system, client, caller, mut tails, progress, traces, mark, stop, .. } = run;
    let (own, address, files) = (system.is_own(), system.address.rpc.clone(), system.stats_files());
    let ended = system.stop();
    drop(caller);
    if let Some(record) = Arc::into_inner(record)
        && let Err(error) = record.close()
    {
        progress.tell(&format!("the caller's file is not whole: {error}"));
    }
    let (outcome, report) = match seen {
        Some(mut seen) => {
            traces.add_jobs(seen.calls.created.lock().iter().copied());
            for FailedProcess { what, failed } in ended {
                progress.tell(&what);
                if failed && early.is_none() {
                    early = Some(Early::Red(format!("{what}: what it counted is not whole")));
                }
                seen.happened.push(Happened { second: seen.until_s, what });
            }
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
            let report = finish::report(finish::Facts {
                scenario,
                short: args.short,
                strict: args.strict,
                file,
                system: if own { "a node of the harness".to_owned() } else { format!("the node at {address}") },
                machine: Machine::here(client.welcome().node),
                seen,
                early: early.as_ref(),
                checker: word,
            });
            // First what was found: a full disk may not take the report.
            finish::print(&report, dir);
            let written = report.write(dir);
            let outcome = match (written, &early) {
                (Err(error), _) => refuse(&format!("the report cannot be written: {}: {error}", dir.display())).0,
                (Ok(()), Some(Early::Interrupted)) => Outcome::Interrupted,
                (Ok(()), Some(Early::NotRun(_))) => Outcome::NotRun,
                (Ok(()), Some(Early::Red(_))) => Outcome::Red,
                (Ok(()), None) if report.green => Outcome::Green,
                (Ok(()), None) => Outcome::Red,
            };
            (outcome, Some(report))
        }
        None => {
            ended.iter().for_each(|ended| progress.tell(&ended.what));
            match &early {
                Some(Early::Interrupted) => {
                    progress.tell("stopped before the first instant: there is nothing to report");
                    (Outcome::Interrupted, None)
                }
                Some(Early::Red(message) | Early::NotRun(message)) => refuse(message),
                None => refuse("it ended before the first instant"),
            }
        }
    };
    if own || args.keep_jobs {
        return (outcome, report);
    }
    // Whatever ended it may have left creates without an answer.
    let sweep = early.is_some().then_some(mark.as_str());
    let left = traces.clean(&client, &stop, sweep, &|text| progress.tell(text)).await;
    let outcome = match &left {
        None => outcome,
        Some(left) => {
            progress.tell(left);
            if stop.is_wanted() { Outcome::Interrupted } else { outcome.max(Outcome::Red) }
        }
    };
    (outcome, report)
}

/// The disk has room for the run's files.
pub(super) fn room(args: &RunArgs, dir: &Path) -> Result<(), String> {
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

pub(super) fn read_tail(tails: &mut HashMap<PathBuf, Tail>, file: &Path, measure: &mut Measure) {
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
    async fn go(&mut self) -> (Option<RunObservations>, Option<Early>) {
        let created = match self.prepare().await {
            Ok(created) => created,
            Err(early) => return (None, Some(early)),
        };
        let frame = created.frame.clone();
        let due = self.scenario.loads.iter().map(|load| (load.name.clone(), Jobs::new(load, &frame).due())).collect();
        let up = Answers::default();
        self.prober = Some(watch::probe(self.system.address.clone(), self.client.clone(), &up));
        let at_start = self.used().await;
        let mut seen = RunObservations {
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
            restarts: Vec::new(),
        };
        let mut early = self.seconds(&mut seen).await.err();
        if early.is_none() {
            early = self.close(&mut seen).await.err();
        }
        self.prober = None;
        (Some(seen), early)
    }

    /// Executors, quotas, jobs.
    async fn prepare(&mut self) -> Result<Created, Early> {
        let stop = self.stop.clone();
        tokio::select! {
            ready = self.executors_and_limits() => ready.map_err(Early::NotRun)?,
            () = stop.wanted() => return Err(Early::Interrupted),
        }
        let tell = |text: &str| self.progress.tell(text);
        let address = &self.system.address;
        let bulk = address.http.as_ref().filter(|_| self.scenario.create == Api::Http);
        let bulk = bulk.map(|http| Bulk::new(http, &address.token));
        if let Some(bulk) = &bulk {
            bulk.check()
                .await
                .map_err(|error| Early::NotRun(format!("{error}; is --http the node's HTTP address?")))?;
        }
        let caller = self.caller.clone().creating_by(bulk);
        let maker = Maker { caller: &caller, stop: &self.stop, traces: &self.traces, tell: &tell };
        let created = create::create(self.scenario, &maker, &self.mark).await?;
        let count = created.all().count();
        tell(&format!("{count} jobs created in {:.1} s", created.took_ms as f64 / 1000.0));
        Ok(created)
    }

    async fn executors_and_limits(&mut self) -> Result<(), String> {
        let first = self.scenario.stretches().first().and_then(|phase| phase.executors);
        self.system.scale(&self.client, first.unwrap_or(self.scenario.executors.count)).await?;
        self.others = self.client.system_info().await.map_err(|error| error.to_string())?.open_runs;
        for tenant in &self.scenario.tenants {
            let before = match self.client.tenant_get(&tenant.name).await {
                Ok(known) => Some(known.quota),
                Err(ClientError::Api(api)) if api.known() == ErrorCode::NotFound => None,
                Err(error) => return Err(format!("the limits of tenant {} cannot be read: {error}", tenant.name)),
            };
            let quota = TenantBody {
                max_concurrent_runs: tenant.max_concurrent_runs,
                max_triggers_per_sec: tenant.max_triggers_per_sec,
                max_queued_runs: tenant.max_queued_runs,
                max_jobs: 0,
            };
            // Noted first: a set without an answer may have been done.
            self.traces.add_limits(&tenant.name, before);
            let set = self.client.tenant_set(&tenant.name, quota).await;
            set.map_err(|error| format!("the limits of tenant {} cannot be set: {error}", tenant.name))?;
        }
        Ok(())
    }

    pub async fn used(&self) -> Used {
        Used {
            at_us: now_us(),
            node: self.system.server_pid.and_then(|pid| Usage::of(pid).ok()).map(|used| Usage {
                cpu_us: used.cpu_us + self.system.gone.cpu_us,
                write_bytes: used.write_bytes + self.system.gone.write_bytes,
                ..used
            }),
            executors: watch::usage(&self.system.executor_pids()),
            harness: watch::usage(&[std::process::id()]),
            machine_us: machine_cpu_us().ok(),
            disk: self.system.data().map(|dir| block_in_place(|| dir_bytes(&dir))),
            metrics: watch::metrics(&self.system.address).await,
        }
    }

    pub async fn wait_until(&self, at_ms: i64) -> Result<(), Early> {
        let left = Duration::from_millis((at_ms - now_us() / 1000).max(0).unsigned_abs());
        tokio::select! {
            () = sleep(left) => Ok(()),
            () = self.stop.wanted() => Err(Early::Interrupted),
        }
    }
}
