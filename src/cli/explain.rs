//! `campanile run explain` and `campanile job explain`: reasons for people, the whole answer for programs.

use super::{
    failure::Failure,
    output::{self, Format},
    remote::Remote,
    repeat,
};
use serde_json::Value;
use std::fmt::Write;

/// The explanation at a path, once or again and again.
pub(super) fn show(
    watch: repeat::Flags,
    remote: &Remote,
    format: Format,
    path: &str,
    query: &[(&str, Option<String>)],
) -> Result<(), Failure> {
    repeat::drawn(
        watch,
        format,
        || remote.get(path, query),
        |view| match format {
            Format::Table => Ok((text(view), String::new())),
            Format::Json | Format::Yaml => Ok((output::one_text(format, view, None)?, String::new())),
        },
    )
}

fn word<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value[field].as_str()
}

/// A line for what it is about, and for each reason its code with a sentence, and below it who holds it and what would free it.
fn text(view: &Value) -> String {
    let name = word(view, "jobName").map_or_else(|| format!("job {}", view["jobId"]), str::to_owned);
    let about = match (view["runId"].as_u64(), word(view, "at")) {
        (Some(run), _) => format!("run {run} of {name} is {}", word(view, "runState").unwrap_or("?")),
        (None, Some(at)) => format!("{name} at {at}"),
        (None, None) => format!("{name} is {}", word(view, "jobStatus").unwrap_or("?")),
    };
    let mut text = about + "\n";
    let reasons = view["reasons"].as_array().map_or(&[][..], Vec::as_slice);
    if reasons.is_empty() {
        text.push_str("nothing is known that would explain it\n");
    }
    for reason in reasons {
        let (topic, code) = (word(reason, "topic").unwrap_or("?"), word(reason, "code").unwrap_or("?"));
        let sentence = output::words(reason, &["sentence"]);
        // Writing into a text cannot fail.
        let _ = writeln!(text, "{topic} {code}: {sentence}");
        for holder in reason["heldBy"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "    held by {}", holder_text(holder));
        }
        if reason["freedBy"].is_string() {
            let _ = writeln!(text, "    freed by {}", output::words(reason, &["freedBy"]));
        }
    }
    text
}

/// `run 7 RUNNING since 2026-02-24T08:00:00.000Z: reason`.
fn holder_text(holder: &Value) -> String {
    let kind = word(holder, "kind").unwrap_or("?").to_ascii_lowercase().replace('_', " ");
    let mut parts = vec![kind];
    for field in ["id", "name", "state"] {
        if holder[field].is_string() {
            parts.push(output::words(holder, &[field]));
        }
    }
    if let Some(since) = word(holder, "since") {
        parts.push(format!("since {since}"));
    }
    let reason =
        if holder["reason"].is_string() { format!(": {}", output::words(holder, &["reason"])) } else { String::new() };
    parts.join(" ") + &reason
}

#[cfg(test)]
mod tests {
    use super::text;
    use serde_json::json;

    #[test]
    fn an_explanation_is_a_line_for_each_reason_with_what_holds_and_frees_it() {
        let view = json!({
            "jobId": 5, "jobName": "report", "runId": 7, "runState": "QUEUED",
            "reasons": [
                {"topic": "ORIGIN", "code": "TRIGGERED", "sentence": "'olga' triggered the job"},
                {
                    "topic": "WAIT", "code": "JOB_PAUSED", "sentence": "the job is paused\u{1b}[2J",
                    "heldBy": [{"kind": "CALLER", "name": "olga", "since": "2026-02-24T08:00:00.000Z", "reason": "too loud"}],
                    "freedBy": "campanile job resume report",
                },
            ],
        });
        let expected = "run 7 of report is QUEUED\n\
            ORIGIN TRIGGERED: 'olga' triggered the job\n\
            WAIT JOB_PAUSED: the job is paused\\u{1b}[2J\n    \
            held by caller olga since 2026-02-24T08:00:00.000Z: too loud\n    \
            freed by campanile job resume report\n";
        assert_eq!(text(&view), expected);
        let instant = json!({"jobId": 5, "at": "2026-02-24T08:00:00.000Z", "reasons": []});
        assert!(text(&instant).starts_with("job 5 at 2026-02-24T08:00:00.000Z\nnothing is known"));
    }
}
