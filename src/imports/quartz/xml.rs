//! XML of the `job_scheduling_data` schema, versions 1.8 and 2.0, with the library roxmltree: it refuses DTDs, so nothing is expanded, and
//! has a limit of nodes.

use super::model::{Found, Key, Kind, Misfire, QuartzJob, QuartzTrigger, State};
use crate::{ImportError, Options, Place, draft::Drafts, source, text};
use campanile_core::cron::find_zone;
use campanile_schema::{
    limits::{IMPORT_XML_BYTES, IMPORT_XML_NODES},
    time::Timestamp,
};
use roxmltree::{Document, Node, ParsingOptions};
use std::{collections::BTreeMap, path::Path};

/// Levels of elements: the schema has five.
const DEPTH: usize = 64;
const GROUP: &str = "DEFAULT";

pub fn read(path: &Path, options: &Options, drafts: &mut Drafts) -> Result<Found, ImportError> {
    let text = source::text(path, IMPORT_XML_BYTES)?;
    let file = source::shown(path);
    if let Some(line) = too_deep(&text) {
        return Err(source::refused(path, format!("line {line}: elements are nested deeper than {DEPTH} levels")));
    }
    let parsing = ParsingOptions { allow_dtd: false, nodes_limit: IMPORT_XML_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(&text, parsing)
        .map_err(|error| source::refused(path, format!("is not valid XML: {}", text::sentence(&error.to_string()))))?;
    let root = document.root_element();
    if root.tag_name().name() != "job-scheduling-data" {
        let name = text::shown(root.tag_name().name());
        return Err(source::refused(path, format!("its root is <{name}>, not <job-scheduling-data>")));
    }
    let lines = Lines::of(&text);
    let reader = Reader { file, lines, options };
    Ok(reader.all(root, drafts))
}

/// The library reads elements within elements by calling itself. A quick count of tags tells how deeply, without what is in comments or
/// CDATA; a `<` there can only make it count too much within one text, and the library then says what is wrong.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let tag = &rest[at + 1..];
        let (end, skip) = match tag {
            _ if tag.starts_with("!--") => ("-->", true),
            _ if tag.starts_with("![CDATA[") => ("]]>", true),
            _ if tag.starts_with(['?', '!']) => (">", true),
            _ => (">", false),
        };
        let close = if skip { tag.find(end)? } else { tag_end(tag)? };
        if !skip {
            if tag.starts_with('/') {
                depth = depth.saturating_sub(1);
            } else if !tag[..close].ends_with('/') {
                depth += 1;
            }
            if depth > DEPTH {
                return Some(1 + text[..text.len() - rest.len() + at].matches('\n').count());
            }
        }
        rest = &tag[close + end.len()..];
    }
    None
}

/// The `>` of a tag, outside the values of its attributes.
fn tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    tag.bytes().position(|byte| {
        match (quote, byte) {
            (None, b'\'' | b'"') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            (None | Some(_), _) => {}
        }
        quote.is_none() && byte == b'>'
    })
}

/// Where lines begin: the library counts them anew for each place.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect())
    }
    fn line(&self, at: usize) -> u64 {
        1 + self.0.partition_point(|newline| *newline < at) as u64
    }
}

struct Reader<'a> {
    file: String,
    lines: Lines,
    options: &'a Options,
}

/// The text of a child, without comments and without blanks around it; None: empty or not there.
fn child(node: Node<'_, '_>, name: &str) -> Option<String> {
    let found = node.children().find(|child| child.tag_name().name() == name)?;
    let text: String = found.children().filter(Node::is_text).filter_map(|part| part.text()).collect();
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn elements<'a, 'i>(node: Node<'a, 'i>, name: &'a str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |child| child.tag_name().name() == name)
}

fn data(node: Node<'_, '_>) -> BTreeMap<String, String> {
    let entries = elements(node, "job-data-map").flat_map(|map| elements(map, "entry"));
    entries.filter_map(|entry| Some((child(entry, "key")?, child(entry, "value").unwrap_or_default()))).collect()
}

impl Reader<'_> {
    fn place(&self, node: Node<'_, '_>) -> Place {
        Place { file: self.file.clone(), line: self.lines.line(node.range().start) }
    }

    fn all(&self, root: Node<'_, '_>, drafts: &mut Drafts) -> Found {
        let mut found = Found::default();
        for part in root.children().filter(Node::is_element) {
            match part.tag_name().name() {
                "schedule" => self.schedule(part, &mut found, drafts),
                "processing-directives" => {}
                other => {
                    let place = self.place(part);
                    drafts.note(format!(
                        "{place}: <{}> is not carried out: it deletes jobs of Quartz",
                        text::shown(other)
                    ));
                }
            }
        }
        found
    }

    fn schedule(&self, schedule: Node<'_, '_>, found: &mut Found, drafts: &mut Drafts) {
        for part in schedule.children().filter(Node::is_element) {
            let place = self.place(part);
            match part.tag_name().name() {
                "job" => match self.job(part) {
                    Ok(job) => found.jobs.push(job),
                    Err(why) => drafts.refuse(&place, "job", why, "complete it"),
                },
                "trigger" => match self.trigger(part) {
                    Ok(trigger) => found.triggers.push(trigger),
                    Err(why) => drafts.refuse(&place, "trigger", text::sentence(&why), "complete it"),
                },
                "listener" | "calendar" => {
                    drafts.note(format!("{place}: <{}> is ignored", text::shown(part.tag_name().name())));
                }
                other => {
                    let why = format!("<{}> is not known here", text::shown(other));
                    drafts.refuse(&place, "element", why, "a schedule has <job> and <trigger>");
                }
            }
        }
    }

    fn job(&self, node: Node<'_, '_>) -> Result<QuartzJob, String> {
        let name = child(node, "name").ok_or("it has no <name>")?;
        let class =
            child(node, "job-class").ok_or_else(|| format!("the job {} has no <job-class>", text::shown(&name)))?;
        Ok(QuartzJob {
            key: key(child(node, "group"), name),
            class,
            description: child(node, "description").unwrap_or_default(),
            data: data(node),
            data_lost: None,
            one_at_a_time: None,
            recovers: child(node, "recover").is_some_and(|told| told == "true" || told == "1"),
            place: self.place(node),
        })
    }

    fn trigger(&self, node: Node<'_, '_>) -> Result<QuartzTrigger, String> {
        let inner = node.children().find(Node::is_element).ok_or("it is empty")?;
        let name = child(inner, "name").ok_or("it has no <name>")?;
        let job =
            child(inner, "job-name").ok_or_else(|| format!("the trigger {} has no <job-name>", text::shown(&name)))?;
        let number = |name: &str| child(inner, name).and_then(|text| text.parse::<i64>().ok());
        let kind = match inner.tag_name().name() {
            "cron" => Kind::Cron {
                expr: child(inner, "cron-expression").ok_or("it has no <cron-expression>")?,
                zone: child(inner, "time-zone"),
            },
            "simple" => Kind::Simple {
                repeats: number("repeat-count").unwrap_or(0),
                interval_ms: number("repeat-interval").unwrap_or(0),
            },
            "calendar-interval" => Kind::Interval {
                count: number("repeat-interval").unwrap_or(0),
                unit: child(inner, "repeat-interval-unit").unwrap_or_else(|| "DAY".to_owned()),
            },
            other => Kind::Other(format!("a trigger of the kind <{}> cannot be expressed", text::shown(other))),
        };
        let start = match (child(inner, "start-time"), number("start-time-seconds-in-future")) {
            (Some(at), _) => Some(self.instant(&at)?),
            // From when the file is loaded.
            (None, _) => None,
        };
        Ok(QuartzTrigger {
            key: key(child(inner, "group"), name),
            job: key(child(inner, "job-group"), job),
            kind,
            misfire: Misfire::of_name(&child(inner, "misfire-instruction").unwrap_or_default()),
            data: data(inner),
            data_lost: None,
            priority: number("priority"),
            start,
            end: child(inner, "end-time").map(|at| self.instant(&at)).transpose()?,
            calendar: child(inner, "calendar-name"),
            state: State::Active,
            place: self.place(node),
        })
    }

    /// `xs:dateTime`; without an offset in the zone of the import.
    fn instant(&self, text: &str) -> Result<Timestamp, String> {
        if let Ok(at) = text.parse::<jiff::Timestamp>() {
            return Ok(Timestamp(at.as_millisecond()));
        }
        let zone = self.options.zone.as_deref().unwrap_or(&self.options.machine_zone);
        let zone = find_zone(zone).map_err(|error| error.to_string())?;
        let local: jiff::civil::DateTime =
            text.parse().map_err(|_| format!("'{}' is not an xs:dateTime", text::shown(text)))?;
        local.to_zoned(zone).map(|at| Timestamp(at.timestamp().as_millisecond())).map_err(|error| error.to_string())
    }
}

fn key(group: Option<String>, name: String) -> Key {
    Key { scheduler: String::new(), group: group.unwrap_or_else(|| GROUP.to_owned()), name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_is_counted_before_the_library_reads() {
        let deep = "<a>\n".repeat(70);
        assert_eq!(too_deep(&deep), Some(65));
        let flat = format!("<a>{}<!-- {} --></a>", "<b/><c></c>".repeat(1_000), "<d>".repeat(100));
        assert_eq!(too_deep(&flat), None);
        assert_eq!(too_deep(&"<a b='>' c=\"/>\"/>".repeat(100)), None);
        assert_eq!(too_deep("<a b='"), None);
    }
}
