//! `campanile top`: what runs, what waits, how late runs begin, and the executors. In a terminal it is drawn anew each second;
//! `--once` prints it once, for scripts.
//!
//! It reads what other commands read (`system info`, `system pools`, `system executors`, `tenant list`, `run failed`) and the page of
//! metrics. Files: `figures` reads that page, `board` makes what is shown, `screen` draws it.

mod board;
mod figures;
mod screen;

use super::{
    failure::Failure,
    job_flags,
    output::{self, Format, style},
    remote::Remote,
};
use board::{Board, Look};
use campanile_schema::{
    error::ErrorCode,
    operations::{ExecutorList, PoolList, RunList, SystemInfo, TenantList, rows},
};
use figures::Figures;
use screen::News;
use serde_json::Value;
use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

/// Failed runs that are shown.
const FAILED: &str = "10";
/// Looks that wait to be drawn.
const WAITING: usize = 1;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Print it once and end; with -o json for programs. Figures are of all the time since the node's start
    #[arg(long)]
    once: bool,
    /// Between two looks: 1s, 10s
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = job_flags::seconds, conflicts_with = "once")]
    every: u64,
}

pub(super) fn run(args: Args, remote: &Remote, format: Format) -> Result<(), Failure> {
    if args.once {
        let board = Board::new(&look(remote)?, None);
        match format {
            Format::Table => output::text(&board.text()),
            Format::Json | Format::Yaml => output::one(format, &board.json())?,
        }
        return Ok(());
    }
    if !style().terminal || format != Format::Table {
        return Err(Failure::usage(
            "`campanile top` draws on a terminal: with --once it prints once, also with -o json",
        ));
    }
    let (say, news) = mpsc::sync_channel(WAITING);
    let (remote, every) = (remote.clone(), Duration::from_secs(args.every.max(1)));
    // It ends with the process, or when nobody looks any more.
    std::thread::spawn(move || keep_looking(&remote, every, &say));
    screen::show(&news)
}

fn keep_looking(remote: &Remote, every: Duration, say: &mpsc::SyncSender<News>) {
    let mut before: Option<(Look, Instant)> = None;
    loop {
        let news = match look(remote) {
            Ok(now) => {
                let at = Instant::now();
                let earlier = before.as_ref().map(|(look, then)| (look, (at - *then).as_secs_f64()));
                let board = Board::new(&now, earlier);
                before = Some((now, at));
                News::Board(board)
            }
            // Never at first, when the question itself may be wrong.
            Err(failure) if before.is_some() && failure.code == ErrorCode::NotReady.exit_code() => {
                News::Away(failure.message)
            }
            Err(failure) => News::Refused(failure),
        };
        if say.send(news).is_err() {
            return;
        }
        std::thread::sleep(every);
    }
}

fn look(remote: &Remote) -> Result<Look, Failure> {
    let get = |path: &str| allowed(remote.get(path, &[]));
    let of_failed = [("state", Some("FAILED,TIMEOUT".to_owned())), ("pageSize", Some(FAILED.to_owned()))];
    Ok(Look {
        node: get(SystemInfo::PATH)?,
        pools: get(PoolList::PATH)?,
        executors: get(ExecutorList::PATH)?,
        tenants: get(TenantList::PATH)?,
        failed: allowed(remote.get(RunList::PATH, &of_failed))?,
        figures: figures(remote)?,
    })
}

/// None: not for this credential, or the node records none.
fn figures(remote: &Remote) -> Result<Option<Figures>, Failure> {
    match remote.page(rows::PAGE_METRICS.path()) {
        Ok(page) => Ok(Some(Figures::read(&page))),
        Err(failure) if is_not_for_us(&failure) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Null for what the credential may not ask for: the rest is shown.
fn allowed(answer: Result<Value, Failure>) -> Result<Value, Failure> {
    match answer {
        Err(failure) if is_not_for_us(&failure) => Ok(Value::Null),
        answer => answer,
    }
}

fn is_not_for_us(failure: &Failure) -> bool {
    failure.error.is_some_and(|code| [ErrorCode::Forbidden, ErrorCode::NotFound].contains(&code))
}
