//! What was imported, what changed its meaning, and what was refused: for people and for programs.

use super::{Import, ImportedJob, manifests};
use campanile_schema::job::Trigger;
use serde_json::{Value, json};
use std::fmt::Write;

/// Plain text; times in UTC.
pub fn render(import: &Import) -> String {
    let mut out = String::new();
    let changed = import.jobs.iter().filter(|job| !job.changed.is_empty()).count();
    let jobs_read = if import.jobs.len() == 1 { "1 job".to_owned() } else { format!("{} jobs", import.jobs.len()) };
    line(&mut out, &format!("{jobs_read}, {changed} with remarks, {} refused", import.refusals()));
    if !import.jobs.is_empty() {
        jobs(&mut out, &import.jobs);
    }
    if !import.refused.is_empty() {
        line(&mut out, "\nREFUSED");
    }
    for refused in &import.refused {
        line(&mut out, &format!("  {}  {}", refused.place, refused.origin));
        line(&mut out, &format!("      why:  {}", refused.reason));
        if !refused.advice.is_empty() {
            line(&mut out, &format!("      do:   {}", refused.advice));
        }
    }
    if import.more_refused > 0 {
        line(&mut out, &format!("  and {} more", import.more_refused));
    }
    if !import.notes.is_empty() {
        line(&mut out, "\nNOTES");
    }
    for note in &import.notes {
        line(&mut out, &format!("  - {note}"));
    }
    out
}

/// The same with the manifests.
pub fn value(import: &Import) -> Value {
    let item = |job: &ImportedJob| {
        json!({
            "tenantId": job.spec.tenant_id, "name": job.spec.name, "file": job.place.file, "line": job.place.line,
            "origin": job.origin, "next": job.next, "changed": job.changed, "manifest": manifests::value(job),
        })
    };
    let refused: Vec<Value> = import
        .refused
        .iter()
        .map(|refused| {
            json!({
                "file": refused.place.file, "line": refused.place.line, "origin": refused.origin,
                "reason": refused.reason, "advice": refused.advice,
            })
        })
        .collect();
    let items: Vec<Value> = import.jobs.iter().map(item).collect();
    json!({"items": items, "refused": refused, "moreRefused": import.more_refused, "notes": import.notes})
}

fn line(out: &mut String, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}", text.trim_end());
}

fn jobs(out: &mut String, jobs: &[ImportedJob]) {
    line(out, "\nJOBS");
    let mut rows = vec![["NAME", "SCHEDULE", "ZONE", "NEXT (UTC)", "FROM"].map(str::to_owned)];
    rows.extend(jobs.iter().map(row));
    let mut widths = [0; 5];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for (index, row) in rows.iter().enumerate() {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        line(out, &format!("  {}", cells.join("  ")));
        let Some(job) = index.checked_sub(1).and_then(|index| jobs.get(index)) else { continue };
        line(out, &format!("      = {}", job.origin));
        for changed in &job.changed {
            line(out, &format!("      ! {changed}"));
        }
    }
}

fn row(job: &ImportedJob) -> [String; 5] {
    let (schedule, zone) = match &job.spec.trigger {
        Trigger::Cron { expr, timezone, .. } => (expr.clone(), timezone.clone()),
        Trigger::FixedRate { every_sec, .. } => (format!("every {every_sec} s"), "-".to_owned()),
        Trigger::FixedDelay { every_sec, .. } => (format!("{every_sec} s after the last"), "-".to_owned()),
        Trigger::Once { .. } => ("once".to_owned(), "-".to_owned()),
        Trigger::Manual {} => ("MANUAL".to_owned(), "-".to_owned()),
    };
    let paused = if job.suspend == Some(true) { " (paused)" } else { "" };
    let next = job.next.first().map_or_else(|| "-".to_owned(), |at| second(&at.to_string()));
    let name = format!("{}/{}", job.spec.tenant_id, job.spec.name);
    [name, format!("{schedule}{paused}"), zone, next, job.place.to_string()]
}

/// `2026-11-21T11:05:00.000Z` to `2026-11-21 11:05:00`.
fn second(instant: &str) -> String {
    instant.chars().take(19).collect::<String>().replace('T', " ")
}
