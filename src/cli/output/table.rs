//! Tables: columns as wide as their cells, and on a terminal no wider than it.
//!
//! What is of least use is shortened first, and left out when that is not enough. Ids are never shortened: they are there to be
//! copied. Widths are those on the screen: a letter of Chinese has two columns, an accent of its own has none.

use super::{
    Column, ColumnKind, at, cell,
    style::{bold, painted},
    times::{self, TimeForm},
};
use campanile_schema::time::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Between two columns.
const GAP: usize = 2;
/// No text is cut shorter than this, columns.
const SHORTEST: usize = 8;
/// Nor one that always stays: a table is read by it.
const SHORTEST_KEPT: usize = 20;

/// How a table is shown.
pub(super) struct TableStyle<'a> {
    /// Columns of the terminal; None: as wide as it gets.
    pub width: Option<usize>,
    pub colours: bool,
    pub time: Option<&'a TimeForm>,
    pub terminal: bool,
    pub now: Timestamp,
    /// Of rows that do not name their job's zone.
    pub zone: &'a TimeZone,
}

/// A table as text, and the titles that it had no room for.
pub(super) fn table(items: &[Value], columns: &[Column], table_style: &TableStyle<'_>) -> (String, Vec<&'static str>) {
    let rows: Vec<Vec<String>> =
        items.iter().map(|item| columns.iter().map(|column| shown(item, column, table_style)).collect()).collect();
    let natural = |index: usize| {
        let title = columns[index].title.width();
        rows.iter().map(|row| row[index].width()).fold(title, usize::max)
    };
    let widths = fitted(&(0..columns.len()).map(natural).collect::<Vec<_>>(), columns, table_style.width);
    let kept: Vec<(usize, usize)> = widths.iter().enumerate().filter_map(|(n, width)| Some((n, (*width)?))).collect();
    let mut out = String::new();
    let head: Vec<String> = kept.iter().map(|(n, width)| padded(columns[*n].title, *width, columns[*n].kind)).collect();
    let head = head.join("  ");
    out.push_str(&if table_style.colours { bold(head.trim_end()) } else { head.trim_end().to_owned() });
    out.push('\n');
    for row in &rows {
        let mut line = String::new();
        for (place, (n, width)) in kept.iter().enumerate() {
            let cell = padded(&cut(&row[*n], *width), *width, columns[*n].kind);
            line.push_str(if place == 0 { "" } else { "  " });
            match columns[*n].kind {
                ColumnKind::State if table_style.colours => line.push_str(&painted(&row[*n], &cell)),
                ColumnKind::State | ColumnKind::Id | ColumnKind::Text | ColumnKind::Number | ColumnKind::Time => {
                    line.push_str(&cell)
                }
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    let dropped = columns.iter().zip(&widths).filter(|(_, width)| width.is_none()).map(|(column, _)| column.title);
    (out, dropped.collect())
}

fn shown(item: &Value, column: &Column, table_style: &TableStyle<'_>) -> String {
    let value = at(item, column.field);
    let instant = || value.as_str()?.parse::<Timestamp>().ok();
    match column.kind {
        ColumnKind::Time => match instant() {
            Some(instant) => {
                let named = item["trigger"]["timezone"].as_str();
                let own = named.map(|name| times::zone_or_utc(Some(name)));
                times::in_list(
                    instant,
                    table_style.time,
                    table_style.terminal,
                    table_style.now,
                    own.as_ref().unwrap_or(table_style.zone),
                )
            }
            None => cell(value),
        },
        // A body that was told to stop and has not ended: people must not take the run for one that goes on.
        ColumnKind::State if value == "RUNNING" && item["stopping"].is_object() => "STOPPING".to_owned(),
        ColumnKind::Id | ColumnKind::Text | ColumnKind::State | ColumnKind::Number => cell(value),
    }
}

/// Width of each column; None: it is left out.
fn fitted(natural: &[usize], columns: &[Column], limit: Option<usize>) -> Vec<Option<usize>> {
    let Some(limit) = limit else { return natural.iter().copied().map(Some).collect() };
    // Of least use first; of two alike, the one further to the right.
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by_key(|n| (std::cmp::Reverse(columns[*n].rank), std::cmp::Reverse(*n)));
    let may_go: Vec<usize> = order.iter().copied().filter(|n| columns[*n].rank > 0).collect();
    for gone in 0..=may_go.len() {
        let mut widths: Vec<Option<usize>> = natural.iter().copied().map(Some).collect();
        may_go[..gone].iter().for_each(|n| widths[*n] = None);
        for n in &order {
            let over = total(&widths).saturating_sub(limit);
            let Some(width) = widths[*n].filter(|_| over > 0 && columns[*n].kind == ColumnKind::Text) else { continue };
            let shortest = if columns[*n].rank == 0 { SHORTEST_KEPT } else { SHORTEST };
            let least = columns[*n].title.width().max(shortest).min(width);
            widths[*n] = Some(width.saturating_sub(over).max(least));
        }
        if total(&widths) <= limit || gone == may_go.len() {
            return widths;
        }
    }
    natural.iter().copied().map(Some).collect()
}

fn total(widths: &[Option<usize>]) -> usize {
    let kept = widths.iter().flatten().count();
    widths.iter().flatten().sum::<usize>() + GAP * kept.saturating_sub(1)
}

/// Cut to a width on the screen; `…` says that something was.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut end = 0;
    for (at, c) in text.char_indices() {
        let next = at + c.len_utf8();
        // By the whole beginning: several characters may be one sign.
        if text[..next].width() > width.saturating_sub(1) {
            break;
        }
        end = next;
    }
    // A joiner without what it joins would take the next sign.
    let beginning = text[..end].trim_end_matches('\u{200d}');
    format!("{beginning}…")
}

fn padded(text: &str, width: usize, kind: ColumnKind) -> String {
    let space = " ".repeat(width.saturating_sub(text.width()));
    match kind {
        ColumnKind::Number => format!("{space}{text}"),
        ColumnKind::Id | ColumnKind::Text | ColumnKind::State | ColumnKind::Time => format!("{text}{space}"),
    }
}

/// Lines as wide as the screen at the most, for what is drawn over again.
pub(in crate::cli) fn within(text: &str, width: usize) -> String {
    let (mut out, mut used, mut escape) = (String::new(), 0, false);
    for c in text.chars() {
        // Colours take no room, and are kept behind the end too: the last one switches them off.
        if c == '\u{1b}' {
            escape = true;
        }
        if escape {
            out.push(c);
            escape = c != 'm';
            continue;
        }
        used += c.width().unwrap_or(0);
        if used <= width {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    const COLUMNS: &[Column] = &[
        Column::id("ID", "id"),
        Column::text("TENANT", "tenant").minor(2),
        Column::text("NAME", "name"),
        Column::state("STATE", "state"),
        Column::number("RUNS", "runs").minor(3),
        Column::time("NEXT", "next").minor(1),
        Column::text("ERROR", "error").minor(4),
    ];

    fn items() -> Vec<Value> {
        let row = |id: u64, name: &str, runs: u64, error: &str| {
            json!({"id": id, "tenant": "default", "name": name, "state": "SUCCESS", "runs": runs,
                "next": "2026-03-29T01:00:00Z", "error": error})
        };
        vec![
            row(8_193, "nightly-report", 7, ""),
            row(
                1_152_921_504_606_846_977,
                "夜間バッチ処理のとても長い名前のジョブです",
                1_234_567,
                "exit status 1: disk full",
            ),
            row(
                16_385,
                "👩\u{200d}🚀 launch 🚀 with a name that goes on and on and on, so long is it",
                0,
                "e\u{301}clair",
            ),
        ]
    }

    fn at_width(width: Option<usize>) -> (String, Vec<&'static str>) {
        let now = "2026-03-29T00:00:00Z".parse().unwrap();
        let zone = TimeZone::UTC;
        table(
            &items(),
            COLUMNS,
            &TableStyle { width, colours: false, time: None, terminal: width.is_some(), now, zone: &zone },
        )
    }

    #[test]
    fn tables_of_long_names_at_four_widths_and_none() {
        for width in [60, 80, 120, 200] {
            let (text, dropped) = at_width(Some(width));
            let widest = text.lines().map(UnicodeWidthStr::width).max().unwrap();
            assert!(widest <= width, "{widest} > {width}:\n{text}");
            // What is needed to copy is there in full.
            assert!(text.contains("1152921504606846977"), "{text}");
            insta::assert_snapshot!(format!("table-{width}"), format!("left out: {dropped:?}\n{text}"));
        }
        let (text, dropped) = at_width(None);
        assert!(dropped.is_empty());
        assert!(!text.contains('…'));
        insta::assert_snapshot!("table-unlimited", text);
    }

    #[test]
    fn what_must_stay_stays_where_nothing_fits() {
        let (text, dropped) = at_width(Some(10));
        assert_eq!(dropped, ["TENANT", "RUNS", "NEXT", "ERROR"]);
        assert!(text.contains("1152921504606846977"), "{text}");
        assert!(text.contains('…'), "{text}");
        assert!(text.contains("SUCCESS"), "{text}");
    }

    #[test]
    fn a_cut_is_never_wider_than_asked_and_splits_no_sign() {
        for text in ["plain", "夜間バッチ", "e\u{301}e\u{301}e\u{301}e\u{301}", "👩\u{200d}🚀👩\u{200d}🚀👩\u{200d}🚀"]
        {
            for width in 1..12 {
                let short = cut(text, width);
                assert!(short.width() <= width, "{short:?} at {width}");
                assert!(short == text || short.ends_with('…') && !short.contains("\u{200d}…"), "{short:?}");
            }
        }
        assert_eq!((cut("abcdef", 4).as_str(), cut("夜間", 3).as_str()), ("abc…", "夜…"));
    }

    #[test]
    fn colours_do_not_count() {
        let (zone, now) = (TimeZone::UTC, Timestamp(0));
        let table_style = TableStyle { width: Some(120), colours: true, time: None, terminal: true, now, zone: &zone };
        let (coloured, _) = table(&items(), COLUMNS, &table_style);
        let (plain, _) = table(&items(), COLUMNS, &TableStyle { colours: false, ..table_style });
        let mut bare = coloured.replace("\u{1b}[0m", "");
        for code in ["\u{1b}[1m", "\u{1b}[32m"] {
            assert!(bare.contains(code), "{code:?}: {bare:?}");
            bare = bare.replace(code, "");
        }
        assert_eq!(bare, plain);
        assert_eq!(within("\u{1b}[32mSUCCESS\u{1b}[0m and more", 4), "\u{1b}[32mSUCC\u{1b}[0m");
        assert_eq!(within("夜間", 3), "夜");
    }
}
