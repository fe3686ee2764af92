//! The tables of Quartz' JDBC job store in an SQL dump.

use super::model::{Found, Key, Kind, Misfire, QuartzJob, QuartzTrigger, State};
use crate::{
    ImportError, Options, Place,
    draft::Drafts,
    source,
    sql::{self, Dump, Row, told, unknown_columns},
    text,
};
use campanile_schema::time::Timestamp;
use std::{collections::BTreeMap, path::Path};

const TABLES: [&str; 4] = ["job_details", "triggers", "cron_triggers", "simple_triggers"];
const COLUMNS: [(&str, &[&str]); 4] = [
    (
        "job_details",
        &[
            "sched_name",
            "job_name",
            "job_group",
            "description",
            "job_class_name",
            "is_durable",
            "is_nonconcurrent",
            "is_update_data",
            "requests_recovery",
            "job_data",
        ],
    ),
    (
        "triggers",
        &[
            "sched_name",
            "trigger_name",
            "trigger_group",
            "job_name",
            "job_group",
            "description",
            "next_fire_time",
            "prev_fire_time",
            "priority",
            "trigger_state",
            "trigger_type",
            "start_time",
            "end_time",
            "calendar_name",
            "misfire_instr",
            "job_data",
            "misfire_orig_fire_time",
        ],
    ),
    ("cron_triggers", &["sched_name", "trigger_name", "trigger_group", "cron_expression", "time_zone_id"]),
    (
        "simple_triggers",
        &["sched_name", "trigger_name", "trigger_group", "repeat_count", "repeat_interval", "times_triggered"],
    ),
];

pub fn read(path: &Path, options: &Options, drafts: &mut Drafts) -> Result<Found, ImportError> {
    let prefix = options.table_prefix.to_ascii_lowercase();
    let named: Vec<String> = TABLES.iter().map(|table| format!("{prefix}{table}")).collect();
    let mut dump = sql::read(path, &|table| named.iter().any(|name| name == table))?;
    let file = source::shown(path);
    if dump.tables.is_empty() && dump.wrong.is_empty() {
        let reason =
            format!("has no rows of {}job_details or {}triggers", prefix.to_uppercase(), prefix.to_uppercase());
        return Err(source::refused(
            path,
            format!("{reason}: dump these tables with their data, or set --table-prefix"),
        ));
    }
    told(&dump, &file, drafts);
    let rows = |dump: &mut Dump, table: &str| dump.tables.remove(&format!("{prefix}{table}")).unwrap_or_default();
    let [jobs, triggers, crons, simples] = TABLES.map(|table| rows(&mut dump, table));
    for ((table, known), rows) in COLUMNS.iter().zip([&jobs, &triggers, &crons, &simples]) {
        unknown_columns(&file, table, known, rows, drafts);
    }
    let of_key = |rows: Vec<Row>| rows.into_iter().map(|row| (trigger_key(&row), row)).collect::<BTreeMap<Key, Row>>();
    let (crons, simples) = (of_key(crons), of_key(simples));
    let place = |row: &Row| Place { file: file.clone(), line: row.line };
    let mut found = Found::default();
    for row in &jobs {
        if row.words("job_name").is_empty() || row.words("job_class_name").is_empty() {
            drafts.refuse(&place(row), "job", "its row has no JOB_NAME or no JOB_CLASS_NAME", "dump the whole table");
            continue;
        }
        found.jobs.push(job(row, place(row)));
    }
    for row in &triggers {
        if row.words("trigger_name").is_empty() || row.words("job_name").is_empty() {
            drafts.refuse(&place(row), "trigger", "its row has no TRIGGER_NAME or no JOB_NAME", "dump the whole table");
            continue;
        }
        found.triggers.push(trigger(row, &crons, &simples, place(row)));
    }
    Ok(found)
}

fn job_key(row: &Row) -> Key {
    Key { scheduler: row.words("sched_name"), group: row.words("job_group"), name: row.words("job_name") }
}

fn trigger_key(row: &Row) -> Key {
    Key { scheduler: row.words("sched_name"), group: row.words("trigger_group"), name: row.words("trigger_name") }
}

fn job(row: &Row, place: Place) -> QuartzJob {
    let (data, data_lost) = job_data(row);
    QuartzJob {
        key: job_key(row),
        class: row.words("job_class_name"),
        description: row.words("description"),
        data,
        data_lost,
        one_at_a_time: row.cells.contains_key("is_nonconcurrent").then(|| row.flag("is_nonconcurrent")),
        recovers: row.flag("requests_recovery"),
        place,
    }
}

fn trigger(row: &Row, crons: &BTreeMap<Key, Row>, simples: &BTreeMap<Key, Row>, place: Place) -> QuartzTrigger {
    let key = trigger_key(row);
    let written = row.words("trigger_type");
    let kind = match (written.as_str(), crons.get(&key), simples.get(&key)) {
        ("CRON", Some(cron), _) => Kind::Cron {
            expr: cron.words("cron_expression"),
            zone: cron.text("time_zone_id").filter(|zone| !zone.is_empty()),
        },
        ("SIMPLE", _, Some(simple)) => match (simple.number("repeat_count"), simple.number("repeat_interval")) {
            (Some(repeats), Some(interval_ms)) => Kind::Simple { repeats, interval_ms },
            (_, _) => Kind::Other("its row of SIMPLE_TRIGGERS has no numbers".to_owned()),
        },
        ("CRON", None, _) => Kind::Other("its row of CRON_TRIGGERS is not in the dump".to_owned()),
        ("SIMPLE", _, None) => Kind::Other("its row of SIMPLE_TRIGGERS is not in the dump".to_owned()),
        (other, ..) => Kind::Other(format!("a trigger of the type '{}' cannot be expressed", text::shown(other))),
    };
    let at = |column: &str| row.number(column).filter(|ms| *ms > 0).map(Timestamp);
    let (data, data_lost) = job_data(row);
    QuartzTrigger {
        job: job_key(row),
        misfire: Misfire::of_number(row.number("misfire_instr").unwrap_or(0), written == "SIMPLE"),
        data,
        data_lost,
        priority: row.number("priority"),
        start: at("start_time"),
        end: at("end_time"),
        calendar: row.text("calendar_name").filter(|name| !name.is_empty()),
        state: match row.words("trigger_state").as_str() {
            "PAUSED" | "PAUSED_BLOCKED" => State::Paused,
            "COMPLETE" => State::Complete,
            "ERROR" => State::Error,
            _ => State::Active,
        },
        key,
        kind,
        place,
    }
}

/// A map of texts, else why there is none.
type Data = (BTreeMap<String, String>, Option<String>);

fn job_data(row: &Row) -> Data {
    if row.is_expression("job_data") {
        return (BTreeMap::new(), Some("it is an expression of SQL".to_owned()));
    }
    let bytes = row.bytes("job_data");
    // `pg_dump --inserts` writes bytes as a text in hex, without saying so.
    let decoded = bytes.strip_prefix(b"\\x").and_then(|digits| hex::decode(digits).ok());
    data_of(decoded.as_deref().unwrap_or(bytes))
}

/// Properties if Quartz keeps them (`useProperties`). Java's own form is only looked at to see whether it is empty.
fn data_of(bytes: &[u8]) -> Data {
    const SERIALIZED: [u8; 2] = [0xac, 0xed];
    // A block of eight bytes, capacity and size, and the end of the block.
    let is_empty_map = |window: &[u8]| window[..2] == [0x77, 0x08] && window[6..] == [0, 0, 0, 0, 0x78];
    if bytes.is_empty() {
        return (BTreeMap::new(), None);
    }
    if bytes.starts_with(&SERIALIZED) {
        let lost = "it is an object of Java".to_owned();
        return (BTreeMap::new(), (!bytes.windows(11).any(is_empty_map)).then_some(lost));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => (properties(text), None),
        Err(_) => (BTreeMap::new(), Some("it is not text".to_owned())),
    }
}

/// What `Properties.store` writes.
fn properties(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with(['#', '!']));
    let entry = |line: &str| {
        let (name, value) = entry(line);
        (unescaped(name), unescaped(value.trim_start()))
    };
    lines.map(entry).collect()
}

/// Name and value: the first sign between them that is not escaped.
fn entry(line: &str) -> (&str, &str) {
    let mut is_escaped = false;
    for (at, letter) in line.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '=' | ':' => return (&line[..at], &line[at + 1..]),
            _ => {}
        }
    }
    (line, "")
}

/// Characters beyond ASCII are written as `\uXXXX`, units of UTF-16.
fn unescaped(text: &str) -> String {
    let mut units: Vec<u16> = Vec::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let plain = match (letter, if letter == '\\' { letters.next() } else { None }) {
            (_, Some('n')) => '\n',
            (_, Some('t')) => '\t',
            (_, Some('r')) => '\r',
            (_, Some('f')) => '\u{c}',
            (_, Some('u')) => {
                let digits: String = letters.by_ref().take(4).collect();
                units.push(u16::from_str_radix(&digits, 16).unwrap_or(0xfffd));
                continue;
            }
            (_, Some(other)) => other,
            (other, None) => other,
        };
        units.extend_from_slice(plain.encode_utf16(&mut [0; 2]));
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::Cell;

    fn row(cell: Cell) -> Row {
        Row { line: 1, cells: BTreeMap::from([("job_data".to_owned(), cell)]) }
    }

    #[test]
    fn job_data_is_properties_an_empty_map_or_lost() {
        let (data, lost) = data_of(b"#\n#Wed Nov 25 2026\nreport=daily\npath=c\\:\\\\x\n");
        assert_eq!(data.get("path").map(String::as_str), Some("c:\\x"));
        assert_eq!((data.len(), lost), (2, None));
        let mut empty = vec![0xac, 0xed, 0, 5];
        empty.extend([0x77, 0x08, 0, 0, 0, 0x10, 0, 0, 0, 0, 0x78, 0]);
        assert_eq!(data_of(&empty), (BTreeMap::new(), None));
        empty[13] = 1;
        assert!(data_of(&empty).1.is_some());
        assert!(data_of(&[0xff, 0xfe]).1.is_some());
    }

    #[test]
    fn properties_have_escapes_for_signs_and_for_characters_beyond_ascii() {
        let (data, _) = data_of(br"a\=\=b=\u6bcf\u65e5\ud83d\ude00\tx=y");
        assert_eq!(data, BTreeMap::from([("a==b".to_owned(), "每日😀\tx=y".to_owned())]));
        let (data, _) = data_of(br"back\\=slash");
        assert_eq!(data, BTreeMap::from([("back\\".to_owned(), "slash".to_owned())]));
    }

    #[test]
    fn job_data_as_text_in_hex_is_bytes_and_an_expression_is_lost() {
        let (data, lost) = job_data(&row(Cell::Bytes(br"\x613d62".to_vec())));
        assert_eq!((data, lost), (BTreeMap::from([("a".to_owned(), "b".to_owned())]), None));
        let object = job_data(&row(Cell::Bytes(br"\xaced0005".to_vec())));
        assert_eq!(object, (BTreeMap::new(), Some("it is an object of Java".to_owned())));
        assert_eq!(job_data(&row(Cell::Null)), (BTreeMap::new(), None));
        let lost = job_data(&row(Cell::Other("EMPTY_BLOB()".to_owned()))).1;
        assert_eq!(lost.as_deref(), Some("it is an expression of SQL"));
    }
}
