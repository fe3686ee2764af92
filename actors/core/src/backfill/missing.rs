//! Which instants a backfill runs. `docs/guides/backfill.md` has the table for users, and a test compares the two.

use super::{
    look::Known,
    rules::{Rule, kept},
};
use campanile_schema::{
    event::{Outcome, SkipReason},
    ids::RunId,
    stored::backfill::BackfillMode,
};
use std::fmt::Write as _;

/// Whether an instant with this outcome should have made a run and made none. `reason`: of one that was skipped or missed.
pub fn is_missing(outcome: Outcome, reason: Option<SkipReason>) -> bool {
    match outcome {
        Outcome::Missed => true,
        Outcome::Skipped => reason.is_none_or(is_missing_for),
        // Another instant's run carried it.
        Outcome::Coalesced => !kept(Rule::OnlyMissing),
        Outcome::Fired | Outcome::FiredLate | Outcome::DstSkipped => false,
    }
}

fn is_missing_for(reason: SkipReason) -> bool {
    match reason {
        SkipReason::Paused
        | SkipReason::TenantPaused
        | SkipReason::SystemPaused
        | SkipReason::RunActive
        | SkipReason::OneQueued
        | SkipReason::QueueFull
        | SkipReason::Misfire
        | SkipReason::CatchUpCap
        | SkipReason::Quarantined
        | SkipReason::Edited
        | SkipReason::Restored
        // Nobody knew whether it was to run.
        | SkipReason::NoCalendar => true,
        // The job was not to run then.
        SkipReason::Window | SkipReason::Blackout | SkipReason::Calendar | SkipReason::Deleted => false,
    }
}

/// Whether an instant with this outcome was one on which the job is to run.
pub fn is_due(outcome: Outcome, reason: Option<SkipReason>) -> bool {
    match outcome {
        Outcome::Fired | Outcome::FiredLate | Outcome::Coalesced => true,
        Outcome::Skipped | Outcome::Missed => is_missing(outcome, reason),
        Outcome::DstSkipped => false,
    }
}

/// What a backfill is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    pub mode: BackfillMode,
    /// Instants of which nothing is known run as well.
    pub unknown_run: bool,
    /// No instant has a run of an earlier backfill.
    pub first: bool,
}

/// What it does with the instants of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    No,
    /// It counts them, because nothing is known of them.
    Unknown,
    /// It runs them. `look`: unless an earlier backfill has.
    Start {
        look: bool,
    },
    /// It goes on with the run that the ledger names, or runs it again.
    Run(RunId),
    /// The same with the run that an earlier backfill has made.
    RunOfBackfill,
}

impl Wish {
    pub fn of(self, known: Known) -> Wanted {
        let unknown = matches!(known, Known::Nothing) && !self.unknown_run && kept(Rule::UnknownStays);
        let starts = match known {
            Known::Before => kept(Rule::BeforeIsMissing),
            Known::Nothing => true,
            Known::Outcome { outcome, reason, .. } => match self.mode {
                BackfillMode::All => is_due(outcome, reason),
                BackfillMode::Missing | BackfillMode::Failed | BackfillMode::Replay => is_missing(outcome, reason),
            },
        };
        let look = !self.first && kept(Rule::ExistingIsPassed);
        match self.mode {
            _ if unknown => Wanted::Unknown,
            BackfillMode::Missing if starts => Wanted::Start { look },
            BackfillMode::All if starts => Wanted::Start { look: false },
            BackfillMode::Missing | BackfillMode::All => Wanted::No,
            BackfillMode::Failed | BackfillMode::Replay => match known {
                Known::Outcome { outcome: Outcome::Fired | Outcome::FiredLate, run: Some(run), .. } => Wanted::Run(run),
                Known::Outcome { .. } | Known::Before | Known::Nothing if starts && !self.first => {
                    Wanted::RunOfBackfill
                }
                Known::Outcome { .. } | Known::Before | Known::Nothing => Wanted::No,
            },
        }
    }
}

/// The table as Markdown; `docs/guides/backfill.md` holds exactly this (a test compares them).
pub fn markdown() -> String {
    let mut text = String::from("| outcome | reason | missing | run by ALL |\n|---|---|---|---|\n");
    let word = |yes: bool| if yes { "yes" } else { "no" };
    let mut row = |outcome: Outcome, reason: Option<SkipReason>| {
        let told = reason.map_or("", SkipReason::as_str);
        let (missing, due) = (word(is_missing(outcome, reason)), word(is_due(outcome, reason)));
        // Writing into a text cannot fail.
        let _ = writeln!(text, "| {outcome} | {told} | {missing} | {due} |");
    };
    for outcome in Outcome::ALL {
        match outcome {
            Outcome::Skipped => SkipReason::ALL.iter().for_each(|reason| row(*outcome, Some(*reason))),
            Outcome::Missed => row(*outcome, Some(SkipReason::CatchUpCap)),
            Outcome::Fired | Outcome::FiredLate | Outcome::Coalesced | Outcome::DstSkipped => row(*outcome, None),
        }
    }
    text
}
