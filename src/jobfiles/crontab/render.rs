//! What a dry run prints. Plain text; widths follow the content; times in UTC, and the zone beside them.

use super::{Import, ImportedJob, plan::Plan, plan::schedule_text};
use campanile_schema::job::{Action, JobSpec, Trigger};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt::Write};

/// Longest command on one line, characters.
const COMMAND_CHARS: usize = 100;

pub fn render(import: &Import, plan: &Plan) -> String {
    let by_name: BTreeMap<&str, &ImportedJob> = import.jobs.iter().map(|j| (j.spec.name.as_str(), j)).collect();
    let mut out = String::new();
    let counts = format!(
        "{} to create, {} to change, {} unchanged, {} gone, {} refused",
        plan.create.len(),
        plan.change.len(),
        plan.same.len(),
        plan.gone.len(),
        import.refused.len()
    );
    line(&mut out, &counts);
    let created: Vec<ShownJob<'_>> = plan.create.iter().map(|spec| ShownJob { spec, what: &[] }).collect();
    jobs(&mut out, "CREATE", &created, &by_name);
    let changed: Vec<ShownJob<'_>> = plan.change.iter().map(|c| ShownJob { spec: &c.spec, what: &c.what }).collect();
    jobs(&mut out, "CHANGE", &changed, &by_name);
    names(&mut out, "UNCHANGED", &plan.same);
    names(
        &mut out,
        "GONE (their lines are no longer there; delete the jobs if they should not run any more)",
        &plan.gone,
    );
    if !import.refused.is_empty() {
        heading(&mut out, "REFUSED");
        for refused in &import.refused {
            // Line 0 stands for the file as a whole.
            let at = if refused.line == 0 { String::new() } else { format!(":{}", refused.line) };
            line(&mut out, &format!("  {}{at}  {}", refused.file, refused.text));
            line(&mut out, &format!("      why:  {}", refused.reason));
            line(&mut out, &format!("      do:   {}", refused.advice));
        }
    }
    if !import.notes.is_empty() {
        heading(&mut out, "NOTES");
        for note in &import.notes {
            line(&mut out, &format!("  - {note}"));
        }
    }
    out
}

/// The same for programs.
pub fn value(import: &Import, plan: &Plan) -> Value {
    let by_name: BTreeMap<&str, &ImportedJob> = import.jobs.iter().map(|j| (j.spec.name.as_str(), j)).collect();
    let item = |action: &str, spec: &JobSpec, what: &[String]| {
        let job = by_name.get(spec.name.as_str());
        json!({
            "action": action, "name": spec.name, "trigger": spec.trigger, "differences": what,
            "file": job.map(|job| &job.file), "line": job.map(|job| job.line),
            "next": job.map(|job| &job.next), "hazards": job.map(|job| &job.hazards),
        })
    };
    let mut items: Vec<Value> = plan.create.iter().map(|spec| item("CREATE", spec, &[])).collect();
    items.extend(plan.change.iter().map(|change| item("CHANGE", &change.spec, &change.what)));
    items.extend(plan.same.iter().map(|name| json!({"action": "UNCHANGED", "name": name})));
    items.extend(plan.gone.iter().map(|name| json!({"action": "GONE", "name": name})));
    let refused: Vec<Value> = import
        .refused
        .iter()
        .map(|line| {
            json!({
                "file": line.file, "line": line.line, "text": line.text, "reason": line.reason, "advice": line.advice,
            })
        })
        .collect();
    json!({"items": items, "refused": refused, "notes": import.notes})
}

struct ShownJob<'a> {
    spec: &'a JobSpec,
    what: &'a [String],
}

fn line(out: &mut String, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}", text.trim_end());
}

fn heading(out: &mut String, text: &str) {
    line(out, "");
    line(out, text);
}

fn names(out: &mut String, title: &str, names: &[String]) {
    if !names.is_empty() {
        heading(out, title);
        for name in names {
            line(out, &format!("  {name}"));
        }
    }
}

fn jobs(out: &mut String, title: &str, shown: &[ShownJob<'_>], by_name: &BTreeMap<&str, &ImportedJob>) {
    if shown.is_empty() {
        return;
    }
    heading(out, title);
    let mut rows = vec![["NAME", "SCHEDULE", "ZONE", "NEXT (UTC)", "FROM"].map(str::to_owned)];
    rows.extend(shown.iter().map(|s| row(s.spec, by_name.get(s.spec.name.as_str()).copied())));
    let mut widths = [0; 5];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for (index, row) in rows.iter().enumerate() {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        line(out, &format!("  {}", cells.join("  ")));
        let Some(shown) = index.checked_sub(1).and_then(|i| shown.get(i)) else {
            continue;
        };
        below(out, shown, by_name.get(shown.spec.name.as_str()).copied());
    }
}

/// Command, later fires, differences and hazards of a job, under its row.
fn below(out: &mut String, shown: &ShownJob<'_>, job: Option<&ImportedJob>) {
    if let Some(Action::Command { command, .. }) = &shown.spec.action {
        let text = command.last().map_or("", String::as_str);
        let short: String = text.chars().take(COMMAND_CHARS).collect();
        let more = if short.len() < text.len() { " ..." } else { "" };
        line(out, &format!("      $ {}{more}", short.replace('\n', " ")));
    }
    for what in shown.what {
        line(out, &format!("      ~ {what}"));
    }
    let Some(job) = job else { return };
    if job.next.len() > 1 {
        let later: Vec<String> = job.next[1..].iter().map(|t| minute(&t.to_string())).collect();
        line(out, &format!("      then {}", later.join(", ")));
    }
    for hazard in &job.hazards {
        line(out, &format!("      ! {hazard}"));
    }
}

fn row(spec: &JobSpec, job: Option<&ImportedJob>) -> [String; 5] {
    let zone = match &spec.trigger {
        Trigger::Cron { timezone, .. } => timezone.clone(),
        Trigger::FixedRate { .. } | Trigger::FixedDelay { .. } | Trigger::Once { .. } | Trigger::Manual {} => {
            "-".into()
        }
    };
    let next = job.and_then(|j| j.next.first()).map_or_else(|| "-".to_owned(), |t| minute(&t.to_string()));
    let from = job.map_or_else(String::new, |j| format!("{}:{}", j.file, j.line));
    [spec.name.clone(), schedule_text(&spec.trigger).to_owned(), zone, next, from]
}

/// `2026-11-21T11:05:00.000Z` to `2026-11-21 11:05`: cron has no seconds.
fn minute(instant: &str) -> String {
    instant.chars().take(16).collect::<String>().replace('T', " ")
}
