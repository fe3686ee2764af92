//! What `campanile top` shows: made from a node's answers, the same for a terminal and for a script.

use super::figures::{Figures, Quantile};
use serde_json::{Value, json};
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// Rows of a section, at most; those with the most to do first.
const ROWS: usize = 20;
/// Characters of a cell, at most.
const CELL: usize = 48;

/// One look at a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    /// Null: the credential may not ask for it.
    pub node: Value,
    pub pools: Value,
    pub tenants: Value,
    pub executors: Value,
    pub failed: Value,
    pub figures: Option<Figures>,
}

/// A list with its title.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Section {
    pub title: &'static str,
    pub columns: Vec<&'static str>,
    /// As the node answered.
    pub rows: Vec<Vec<Value>>,
}

/// Where a section comes from.
struct List {
    title: &'static str,
    /// The title of each column and its field.
    columns: &'static [(&'static str, &'static str)],
    /// The field by which rows are ordered, the largest first. None: as they came.
    most: Option<&'static str>,
    of: fn(&Look) -> &Value,
}

const LISTS: [List; 4] = [
    List {
        title: "pools",
        columns: &[
            ("POOL", "name"),
            ("EXECUTORS", "executors"),
            ("RUNNING", "running"),
            ("WAITING", "waiting"),
            ("CREDIT", "credit"),
        ],
        most: Some("waiting"),
        of: |look| &look.pools,
    },
    List {
        title: "tenants",
        columns: &[
            ("TENANT", "tenantId"),
            ("JOBS", "jobs"),
            ("RUNNING", "running"),
            ("WAITING", "waiting"),
            ("PAUSED", "paused"),
        ],
        most: Some("waiting"),
        of: |look| &look.tenants,
    },
    List {
        title: "executors",
        columns: &[
            ("EXECUTOR", "executorId"),
            ("STATE", "state"),
            ("POOLS", "pools"),
            ("RUNNING", "running"),
            ("SLOTS", "slots"),
        ],
        most: Some("running"),
        of: |look| &look.executors,
    },
    List {
        title: "failed last",
        columns: &[
            ("RUN", "runId"),
            ("STATE", "state"),
            ("ENDED", "endedAt"),
            ("ATTEMPTS", "attemptCount"),
            ("ERROR", "lastError"),
        ],
        most: None,
        of: |look| &look.failed,
    },
];

/// All that is shown.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Board {
    /// What has no list: a name and a value each.
    pub head: Vec<(&'static str, String)>,
    pub sections: Vec<Section>,
}

impl Board {
    /// `before`: an earlier look and the seconds since then, for rates; without it, figures are of all the time since the node's start.
    pub fn new(now: &Look, before: Option<(&Look, f64)>) -> Self {
        let mut head = node(&now.node);
        match &now.figures {
            Some(figures) => head.extend(rates(figures, before)),
            None => head.push((
                "figures",
                "not for this credential: an operator's, or one of the role metrics, has them".to_owned(),
            )),
        }
        Self { head, sections: LISTS.iter().map(|list| list.section(now)).collect() }
    }

    /// For scripts that read text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (name, value) in &self.head {
            let _ = writeln!(out, "{name:<10} {value}");
        }
        for section in &self.sections {
            let _ = write!(out, "\n{}\n", section.title);
            out.push_str(&section.text());
        }
        out
    }

    /// For scripts that read JSON.
    pub fn json(&self) -> Value {
        let rows = |section: &Section| {
            let row = |row: &Vec<Value>| -> Value {
                section.columns.iter().zip(row).map(|(name, value)| (name.to_lowercase(), value.clone())).collect()
            };
            Value::Array(section.rows.iter().map(row).collect())
        };
        let mut all: serde_json::Map<String, Value> =
            self.head.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        all.extend(self.sections.iter().map(|section| (section.title.replace(' ', "_"), rows(section))));
        Value::Object(all)
    }
}

impl Section {
    fn text(&self) -> String {
        if self.rows.is_empty() {
            return "  none\n".to_owned();
        }
        let (cells, widths) = (self.cells(), self.widths());
        let line = |cells: &[&str]| {
            let mut line = String::new();
            for (cell, width) in cells.iter().zip(&widths) {
                let room = width.saturating_sub(cell.width());
                let _ = write!(line, "  {cell}{:room$}", "");
            }
            format!("{}\n", line.trim_end())
        };
        let rows = cells.iter().map(|row| line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
        std::iter::once(line(&self.columns)).chain(rows).collect()
    }

    /// The rows for people.
    pub fn cells(&self) -> Vec<Vec<String>> {
        self.rows.iter().map(|row| row.iter().map(shown).collect()).collect()
    }

    /// Of each column, in columns of the terminal.
    pub fn widths(&self) -> Vec<usize> {
        let cells = self.cells();
        let of = |(index, title): (usize, &&str)| {
            let widths = cells.iter().filter_map(|row| row.get(index)).map(|cell| cell.width());
            widths.max().unwrap_or(0).max(title.width())
        };
        self.columns.iter().enumerate().map(of).collect()
    }
}

fn node(node: &Value) -> Vec<(&'static str, String)> {
    if node.is_null() {
        return vec![("node", "not for this credential: an operator's has its facts".to_owned())];
    }
    let reasons: Vec<String> = node["notReadyReasons"].as_array().into_iter().flatten().map(shown).collect();
    let ready = if node["ready"] == true { "ready".to_owned() } else { format!("NOT READY: {}", reasons.join("; ")) };
    let missing = node["missing"].as_array().map_or(0, Vec::len);
    let others = node["nodes"].as_array().map_or(0, Vec::len);
    let cluster =
        if others + missing > 1 { format!(", {others} nodes answer, {missing} do not") } else { String::new() };
    vec![
        ("node", format!("{} {ready}, shards {}{cluster}", shown(&node["version"]), shown(&node["shards"]))),
        ("at", shown(&node["now"])),
        (
            "work",
            format!(
                "{} jobs, {} open runs, {} executors",
                shown(&node["jobs"]),
                shown(&node["openRuns"]),
                shown(&node["executors"])
            ),
        ),
    ]
}

/// Of the node that is asked.
fn rates(figures: &Figures, before: Option<(&Look, f64)>) -> Vec<(&'static str, String)> {
    let (earlier, seconds) = match before {
        Some((look, seconds)) => (look.figures.as_ref(), Some(seconds)),
        None => (None, None),
    };
    let count = |name: &str| {
        let added = figures.since(earlier, name);
        match seconds {
            Some(seconds) if seconds > 0.0 => format!("{:.1}/s", added / seconds),
            Some(_) | None => format!("{added:.0}"),
        }
    };
    let late = |name: &str| {
        let bound = |share| match figures.quantile(earlier, name, share) {
            None => "-".to_owned(),
            Some(Quantile::Over(bound)) => format!("over {bound} ms"),
            Some(Quantile::UpTo(bound)) => format!("{bound} ms"),
        };
        format!("p50 {}, p99 {}", bound(0.5), bound(0.99))
    };
    let span = if seconds.is_some() { "now" } else { "since the start" };
    vec![
        (
            "begun",
            format!(
                "{} by schedule, {} by hand ({span})",
                count("schedule_fires_total"),
                count("campanile_manual_triggers_total")
            ),
        ),
        (
            "ended",
            format!(
                "{} well, {} failed, {} timed out, {} retries, {} dead letters ({span})",
                count("runs_ended_total{SUCCESS}"),
                count("runs_ended_total{FAILED}"),
                count("runs_ended_total{TIMEOUT}"),
                count("campanile_retries_total"),
                count("dead_letters_total")
            ),
        ),
        ("late", format!("{} after the due instant ({span})", late("trigger_delay_ms"))),
        ("dispatch", format!("{} from the run to its first attempt ({span})", late("dispatch_delay_ms"))),
        (
            "waiting",
            format!(
                "{:.0} for an executor, {:.0} for their next attempt; {:.0} run, {:.0} are told to stop",
                figures.value("dispatch_queue_lag"),
                figures.value("retry_queue_depth"),
                figures.value("campanile_attempts_running"),
                figures.value("campanile_attempts_stopping")
            ),
        ),
    ]
}

impl List {
    fn section(&self, look: &Look) -> Section {
        let mut items: Vec<&Value> = (self.of)(look)["items"].as_array().into_iter().flatten().collect();
        if let Some(most) = self.most {
            items.sort_by_key(|item| std::cmp::Reverse(item[most].as_u64().unwrap_or_default()));
        }
        let row = |item: &&Value| self.columns.iter().map(|(_, field)| item[*field].clone()).collect();
        let columns = self.columns.iter().map(|(title, _)| *title).collect();
        Section { title: self.title, columns, rows: items.iter().take(ROWS).map(row).collect() }
    }
}

/// A value in a cell. Names and errors are other people's: no control character of theirs reaches the terminal.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.lines().next().unwrap_or_default().to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(_) | Value::Object(_) => value.to_string(),
    };
    let is_plain = text.chars().all(campanile_schema::text::is_shown);
    let text = if is_plain { text } else { text.escape_debug().to_string() };
    if text.chars().count() > CELL { text.chars().take(CELL - 3).chain("...".chars()).collect() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look() -> Look {
        Look {
            node: json!({"version": "0.1.0", "ready": true, "shards": 16, "jobs": 3, "openRuns": 2, "executors": 1,
                "now": "2026-01-01T00:00:00.000Z", "notReadyReasons": []}),
            pools: json!({"items": [
                {"name": "default", "executors": 1, "running": 1, "waiting": 0, "credit": 7},
                {"name": "gpu\u{1b}[2J", "executors": 0, "running": 0, "waiting": 12, "credit": 0},
            ]}),
            tenants: json!({"items": [{"tenantId": "default", "jobs": 3, "running": 1, "waiting": 0, "paused": false}]}),
            executors: json!({"items": []}),
            failed: json!({"items": [{"runId": 5, "state": "FAILED", "endedAt": "2026-01-01T00:00:00.000Z",
                "attemptCount": 3, "lastError": "exit code 3: no\nsecond line"}]}),
            figures: Some(Figures::read(
                "schedule_fires_total 10\nruns_ended_total{state=\"SUCCESS\"} 8\ndispatch_queue_lag 12\n\
                 trigger_delay_ms_bucket{le=\"1\"} 9\ntrigger_delay_ms_bucket{le=\"+Inf\"} 10\n",
            )),
        }
    }

    #[test]
    fn a_look_is_told_in_words_and_nothing_harmful_reaches_the_terminal() {
        let text = Board::new(&look(), None).text();
        for line in [
            "node       0.1.0 ready, shards 16\n",
            "work       3 jobs, 2 open runs, 1 executors\n",
            "begun      10 by schedule, 0 by hand (since the start)\n",
            "late       p50 1 ms, p99 over 1 ms after the due instant (since the start)\n",
            "waiting    12 for an executor, 0 for their next attempt; 0 run, 0 are told to stop\n",
            "\npools\n  POOL          EXECUTORS  RUNNING  WAITING  CREDIT\n  gpu\\u{1b}[2J  0          0        12       0\n",
            "\nexecutors\n  none\n",
            "  5    FAILED  2026-01-01T00:00:00.000Z  3         exit code 3: no\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn with_an_earlier_look_counts_are_rates() {
        let mut later = look();
        later.figures = Some(Figures::read("schedule_fires_total 30\nruns_ended_total{state=\"SUCCESS\"} 9\n"));
        let board = Board::new(&later, Some((&look(), 2.0)));
        assert!(board.head.contains(&("begun", "10.0/s by schedule, 0.0/s by hand (now)".to_owned())), "{board:?}");
    }

    #[test]
    fn what_a_credential_may_not_ask_for_is_said() {
        let board = Board::new(&Look { tenants: look().tenants, ..Look::default() }, None);
        assert_eq!(board.head.len(), 2);
        assert!(board.text().contains("not for this credential"), "{}", board.text());
        assert_eq!(board.json()["tenants"][0]["tenant"], "default");
        assert_eq!(board.json()["failed_last"], json!([]));
    }

    #[test]
    fn programs_get_values_as_the_node_answered_them() {
        let all = Board::new(&look(), None).json();
        assert_eq!(all["pools"][0]["waiting"], 12);
        assert_eq!(all["tenants"][0]["paused"], false);
        assert_eq!(all["failed_last"][0]["error"], "exit code 3: no\nsecond line");
    }
}
