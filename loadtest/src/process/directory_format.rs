//! What a data directory says of itself in its file `FORMAT`, and what follows for a program of an earlier release: it
//! must open the directory, or it must refuse it with a certain sentence. The expectation is computed before the program
//! is started, so that a wrong refusal cannot pass for a right one.

use campanile_schema::format::Formats;
use serde::Deserialize;
use std::{fs, io, path::Path};

/// Formats of a directory; also those that a program knows, by a directory that it has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryFormat {
    pub formats: Formats,
    /// Form of the read model.
    pub views: u32,
}

/// The first line of the file; the second one is its checksum.
#[derive(Deserialize)]
struct Line {
    event_format: u32,
    wire_format: u32,
    #[serde(default = "first")]
    views_format: u32,
}

/// Of directories that do not name one.
fn first() -> u32 {
    1
}

/// What an earlier program must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WayBack {
    /// It knows all formats that are written, so it starts.
    Open,
    /// It refuses to start, and its error contains this text.
    Refused(String),
}

impl DirectoryFormat {
    pub fn read(dir: &Path) -> io::Result<Self> {
        let path = dir.join("FORMAT");
        let wrong = |error: &dyn std::fmt::Display| io::Error::other(format!("{}: {error}", path.display()));
        let text = fs::read_to_string(&path).map_err(|error| wrong(&error))?;
        let line: Line = serde_json::from_str(text.lines().next().unwrap_or_default()).map_err(|e| wrong(&e))?;
        let formats = Formats { event: line.event_format, wire: line.wire_format };
        Ok(Self { formats, views: line.views_format })
    }

    /// For a program that knows this, to a directory that says `written`.
    pub fn way_back(self, written: Self) -> WayBack {
        match way_back(self.formats, written.formats) {
            WayBack::Open if written.views > self.views => WayBack::Refused(format!(
                "its read model is written in form {}; this release knows {}",
                written.views, self.views
            )),
            way => way,
        }
    }
}

/// For a program that knows some formats, to a cluster that writes others.
pub fn way_back(known: Formats, written: Formats) -> WayBack {
    if written.event <= known.event && written.wire <= known.wire {
        return WayBack::Open;
    }
    WayBack::Refused(format!(
        "written in event format {} / wire format {}; this release knows {} / {}",
        written.event, written.wire, known.event, known.wire
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(event: u32, wire: u32, views: u32) -> DirectoryFormat {
        DirectoryFormat { formats: Formats { event, wire }, views }
    }

    #[test]
    fn a_directory_says_its_formats() {
        let dir = tempfile::tempdir().unwrap();
        let written = |text: &str| {
            fs::write(dir.path().join("FORMAT"), text).unwrap();
            DirectoryFormat::read(dir.path())
        };
        let row = r#""cluster_id":7,"shards":16,"created_ms":1"#;
        let text = format!("{{\"event_format\":2,\"wire_format\":1,{row},\"views_format\":3}}\ncrc32c 00000000\n");
        assert_eq!(written(&text).unwrap(), of(2, 1, 3));
        assert_eq!(written(&format!("{{\"event_format\":1,\"wire_format\":1,{row}}}\n")).unwrap(), of(1, 1, 1));
        assert!(written("torn").unwrap_err().to_string().contains("FORMAT"));
    }

    #[test]
    fn the_way_back_is_open_to_all_that_is_known_and_refused_by_the_first_that_is_not() {
        let known = of(2, 2, 2);
        for written in [of(2, 2, 2), of(1, 2, 2), of(2, 1, 1)] {
            assert_eq!(known.way_back(written), WayBack::Open, "{written:?}");
        }
        let refused = |written: DirectoryFormat| match known.way_back(written) {
            WayBack::Refused(words) => words,
            WayBack::Open => panic!("{written:?} is not known"),
        };
        assert_eq!(refused(of(3, 1, 3)), "written in event format 3 / wire format 1; this release knows 2 / 2");
        assert_eq!(refused(of(1, 3, 2)), "written in event format 1 / wire format 3; this release knows 2 / 2");
        assert_eq!(refused(of(2, 2, 3)), "its read model is written in form 3; this release knows 2");
    }
}
