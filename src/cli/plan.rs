//! `campanile plan`: what an apply of manifests would do, and what that means: fires before and after, changes of the clock, full
//! minutes, limits of tenants. It changes nothing.

use super::{
    apply,
    failure::Failure,
    output::{self, Format},
    progress::{Progress, Unit},
    remote::Remote,
};
use campanile_schema::{
    apply::{JobForecast, MinuteForecast, PlanForecast, PlanItem, PlanView, TenantForecast},
    operations::JobPlan,
    time::Timestamp,
};
use std::{fmt::Write, path::PathBuf};

/// With --detailed-exitcode: the plan has changes.
pub(super) const HAS_CHANGES: u8 = 9;
/// Fires on one line, count.
const ON_A_LINE: usize = 4;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Manifests: files, directories (their .yaml, .yml and .json files, without going deeper), or - for stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    scope: apply::Scope,
    /// Exit with 9 when there are changes, and with 0 when there are none
    #[arg(long)]
    detailed_exitcode: bool,
}

pub(super) fn run(args: Args, remote: &Remote, format: Format) -> Result<(), Failure> {
    let mut body = apply::body(&args.files, args.scope)?;
    body.forecast = true;
    let planning = Progress::new("planning", Unit::Time, None);
    let plan: PlanView = apply::call(remote, JobPlan::PATH, &body)?;
    drop(planning);
    match format {
        Format::Table => output::text(&shown(&plan)),
        Format::Json | Format::Yaml => output::one(format, &apply::value(&plan)?)?,
    }
    if args.detailed_exitcode && plan.create + plan.change + plan.delete > 0 {
        return Err(Failure::new(HAS_CHANGES, ""));
    }
    Ok(())
}

fn shown(plan: &PlanView) -> String {
    let mut text = apply::shown_with(plan, below);
    if let Some(forecast) = &plan.forecast {
        whole(forecast, &mut text);
    }
    text
}

/// Clock changes and fires of a job.
fn below(item: &PlanItem, text: &mut String) {
    let Some(JobForecast { before, after, clock_changes }) = &item.forecast else { return };
    for change in clock_changes {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "        ! {change}");
    }
    let is_same = before == after;
    let lists = [("fires", after, is_same), ("before", before, !is_same), ("after", after, !is_same)];
    for (name, fires, _) in lists.into_iter().filter(|(_, fires, is_shown)| *is_shown && !fires.is_empty()) {
        for (index, line) in fires.chunks(ON_A_LINE).enumerate() {
            let name = if index == 0 { name } else { "" };
            let fires: Vec<String> = line.iter().copied().map(instant).collect();
            let _ = writeln!(text, "        {name:<6}  {}", fires.join("  "));
        }
    }
}

fn whole(forecast: &PlanForecast, text: &mut String) {
    let PlanForecast { minutes, tenants, truncated } = forecast;
    if !minutes.is_empty() {
        let _ = writeln!(text, "minutes of the next day that get many instants:");
    }
    for MinuteForecast { at, adds, removes, due } in minutes {
        let removed = if *removes == 0 { String::new() } else { format!(" and removes {}", grouped(*removes)) };
        let due = due.map(|due| format!("; {} are due in it now", grouped(due))).unwrap_or_default();
        let _ = writeln!(text, "        ! adds {} to {}{removed}{due}", grouped(*adds), minute(*at));
    }
    for TenantForecast { tenant_id, jobs, after, max_jobs, exceeds } in tenants {
        let unit = if *jobs == 1 { "job" } else { "jobs" };
        let limit = if *max_jobs == 0 { String::new() } else { format!(" of at most {}", grouped(*max_jobs)) };
        let _ =
            writeln!(text, "tenant {tenant_id}: {} {unit} now, {} after it{limit}", grouped(*jobs), grouped(*after));
        if *exceeds {
            let _ = writeln!(text, "        ! its limit maxJobs is too low for this plan: some jobs would be refused");
        }
    }
    if *truncated {
        let _ = writeln!(text, "the plan has more instants than are looked at: the numbers of minutes are too small");
    }
}

/// `2026-11-27 02:00:00Z`; thousandths only where there are any.
fn instant(at: Timestamp) -> String {
    let text = at.to_string().replace('T', " ");
    match text.strip_suffix(".000Z") {
        Some(whole) => format!("{whole}Z"),
        None => text,
    }
}

/// `2026-11-27 02:00Z`.
fn minute(at: Timestamp) -> String {
    at.to_string().chars().take(16).collect::<String>().replace('T', " ") + "Z"
}

/// `4,100`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_are_told_with_what_they_lose_and_what_is_due() {
        let minute = |removes, due| MinuteForecast { at: Timestamp(1_795_564_800_000), adds: 4_100, removes, due };
        let minutes = vec![minute(0, None), minute(1_000, Some(12))];
        let mut text = String::new();
        whole(&PlanForecast { minutes, ..PlanForecast::default() }, &mut text);
        let told: Vec<&str> = text.lines().skip(1).map(str::trim).collect();
        assert_eq!(
            told,
            [
                "! adds 4,100 to 2026-11-25 00:00Z",
                "! adds 4,100 to 2026-11-25 00:00Z and removes 1,000; 12 are due in it now"
            ]
        );
    }

    #[test]
    fn numbers_and_instants_are_written_for_people() {
        assert_eq!([0, 999, 4_100, 1_234_567].map(grouped), ["0", "999", "4,100", "1,234,567"]);
        assert_eq!(instant(Timestamp(1_795_564_800_000)), "2026-11-25 00:00:00Z");
        assert_eq!(instant(Timestamp(1_795_564_800_250)), "2026-11-25 00:00:00.250Z");
        assert_eq!(minute(Timestamp(1_795_564_800_000)), "2026-11-25 00:00Z");
    }
}
