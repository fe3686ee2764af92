//! The output of a rival's program: one JSON object a line, the same for all rivals. `loadtest/peers/README.md`
//! describes it for authors of such a program.

use serde::Deserialize;

/// A line of a rival's program, in the order in which they come.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "event", rename_all = "camelCase", deny_unknown_fields)]
pub enum PeerLine {
    /// First: what it is and how it is set.
    System { version: String, settings: String },
    /// All jobs are stored, so many rows, and its workers run.
    Inserted { jobs: u64, ms: u64 },
    /// The window is over. `ran` bodies began since the window did; CPU is read now, and told so by a line on its input.
    Done { ran: u64 },
    /// Start of the body minus due time, microseconds, of bodies whose instant fell into the window and that began no later
    /// than a second after it. A clock of whole milliseconds may make it negative.
    Late { us: Vec<i64> },
    /// Nothing follows.
    End {},
}

/// None: a line of a library, for the log. Err: one that was meant for us and cannot be read.
pub fn parse(line: &str) -> Option<Result<PeerLine, String>> {
    if !line.starts_with("{\"event\"") {
        return None;
    }
    Some(serde_json::from_str(line).map_err(|error| {
        let shown: String = line.chars().take(200).collect();
        format!("{error} in the line {shown}")
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(line: &str) -> PeerLine {
        parse(line).unwrap().unwrap()
    }

    #[test]
    fn each_kind_of_line_is_read() {
        assert_eq!(
            read(r#"{"event":"system","version":"1.2","settings":"fast"}"#),
            PeerLine::System { version: "1.2".into(), settings: "fast".into() }
        );
        assert_eq!(read(r#"{"event":"inserted","jobs":20,"ms":7}"#), PeerLine::Inserted { jobs: 20, ms: 7 });
        assert_eq!(read(r#"{"event":"done","ran":19}"#), PeerLine::Done { ran: 19 });
        assert_eq!(read(r#"{"event":"late","us":[0,-1,1500000]}"#), PeerLine::Late { us: vec![0, -1, 1_500_000] });
        assert_eq!(read(r#"{"event":"end"}"#), PeerLine::End {});
    }

    #[test]
    fn what_libraries_print_is_passed_over_and_what_is_wrong_is_told() {
        assert_eq!(parse("12:00 INFO started"), None);
        assert_eq!(parse(r#"{"level":"warn"}"#), None);
        for wrong in [
            r#"{"event":"done"}"#,
            r#"{"event":"late","us":[1.5]}"#,
            r#"{"event":"finished"}"#,
            r#"{"event":"done","ran":1,"more":2}"#,
            r#"{"event":"late","us":[1"#,
        ] {
            assert!(parse(wrong).unwrap().is_err(), "{wrong}");
        }
    }
}
