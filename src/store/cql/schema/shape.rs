//! Tables as the migrations make them, beside tables as the servers have them: one that somebody dropped or altered by hand, or restored
//! from another release, is told before anything is asked of it.

use super::text::{MIGRATIONS, foundation, statements};
use crate::cql::{CqlOptions, dialect::Dialect, error};
use campanile_ports::StoreError;
use scylla::client::session::Session;
use std::collections::BTreeMap;

/// Keyspace and table.
type Table = (String, String);
/// By name, its type as servers write it.
type Columns = BTreeMap<String, String>;

/// Table and columns of a CREATE TABLE of ours; None for other statements.
fn made(statement: &str) -> Option<(Table, Columns)> {
    let (name, rest) = statement.strip_prefix("CREATE TABLE IF NOT EXISTS ")?.split_once('(')?;
    let (keyspace, table) = name.trim().split_once('.')?;
    let mut columns = Columns::new();
    for part in parts(rest) {
        let Some((column, kind)) = part.split_once(char::is_whitespace).filter(|_| !part.starts_with("PRIMARY KEY"))
        else {
            continue;
        };
        columns.insert(column.to_owned(), kind.trim().trim_end_matches(" PRIMARY KEY").to_owned());
    }
    Some(((keyspace.to_owned(), table.to_owned()), columns))
}

/// What stands between the commas of a list, up to the bracket that closes it.
fn parts(list: &str) -> Vec<&str> {
    let (mut all, mut depth, mut begin) = (Vec::new(), 0, 0);
    for (at, c) in list.char_indices() {
        match c {
            '(' | '<' => depth += 1,
            ')' if depth == 0 => {
                all.push(list[begin..at].trim());
                break;
            }
            ')' | '>' => depth -= 1,
            ',' if depth == 0 => {
                all.push(list[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    all
}

/// All tables of these migrations.
fn wanted(options: &CqlOptions, applied: impl Fn(i32) -> bool) -> BTreeMap<Table, Columns> {
    // What follows from the servers' dialect is in no table.
    let first = foundation(options, Dialect::Cassandra);
    let migrations = MIGRATIONS.iter().filter(|(number, ..)| applied(*number));
    let all = first.into_iter().chain(migrations.flat_map(|(.., text)| statements(text, options)));
    all.filter_map(|statement| made(&statement)).collect()
}

/// Refuses tables that are not as the applied migrations made them. Columns that we do not know are nobody's business.
pub async fn compare(session: &Session, options: &CqlOptions, applied: impl Fn(i32) -> bool) -> Result<(), StoreError> {
    let mut there: BTreeMap<Table, Columns> = BTreeMap::new();
    for keyspace in [options.keyspace.clone(), options.logs_keyspace()] {
        for (table, column, kind) in columns(session, &keyspace).await? {
            there.entry((keyspace.clone(), table)).or_default().insert(column, kind);
        }
    }
    match first_difference(&wanted(options, applied), &there) {
        None => Ok(()),
        Some(what) => Err(StoreError::Refused(format!(
            "{what}: somebody changed the schema by hand, or it was not restored whole. `campanile schema print` shows how it must be; \
             restore the table from a backup of the servers"
        ))),
    }
}

async fn columns(session: &Session, keyspace: &str) -> Result<Vec<(String, String, String)>, StoreError> {
    const DOING: &str = "the tables' columns are read";
    let text = "SELECT table_name, column_name, type FROM system_schema.columns WHERE keyspace_name = ?";
    let answer = session.query_unpaged(text, (keyspace,)).await.map_err(|e| error::unavailable(DOING, &e))?;
    let rows = answer.into_rows_result().map_err(|e| error::damaged(DOING, e))?;
    let rows = rows.rows::<(String, String, String)>().map_err(|e| error::damaged(DOING, e))?;
    rows.collect::<Result<_, _>>().map_err(|e| error::damaged(DOING, e))
}

/// The beginning of a sentence.
fn first_difference(wanted: &BTreeMap<Table, Columns>, there: &BTreeMap<Table, Columns>) -> Option<String> {
    wanted.iter().find_map(|(table, columns)| {
        let name = format!("{}.{}", table.0, table.1);
        let Some(found) = there.get(table) else { return Some(format!("the table {name} is missing")) };
        columns.iter().find_map(|(column, kind)| match found.get(column) {
            None => Some(format!("the table {name} has no column {column}")),
            Some(other) if other != kind => {
                Some(format!("the column {column} of the table {name} is {other}, and has to be {kind}"))
            }
            Some(_) => None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_from_statements_of_ours() {
        let columns = |statement: &str| {
            let ((keyspace, table), columns) = made(statement)?;
            Some((format!("{keyspace}.{table}"), columns.into_iter().collect::<Vec<_>>()))
        };
        let pair = |name: &str, kind: &str| (name.to_owned(), kind.to_owned());
        let text = "CREATE TABLE IF NOT EXISTS k.t (\n    a int,\n    spans frozen<list<frozen<tuple<bigint, int>>>>,\n    b text,\n    \
                    PRIMARY KEY ((a), b)\n) WITH gc_grace_seconds = 10800 AND compaction = {'class': 'x', 'y': 1}";
        let spans = pair("spans", "frozen<list<frozen<tuple<bigint, int>>>>");
        assert_eq!(columns(text), Some(("k.t".to_owned(), vec![pair("a", "int"), pair("b", "text"), spans])));
        let short = "CREATE TABLE IF NOT EXISTS k.t (name text PRIMARY KEY, owner text) WITH id = 1-2";
        assert_eq!(columns(short), Some(("k.t".to_owned(), vec![pair("name", "text"), pair("owner", "text")])));
        assert_eq!(columns("CREATE KEYSPACE IF NOT EXISTS k WITH replication = {}"), None);
    }

    #[test]
    fn what_differs_first_is_told() {
        let table = |columns: &[(&str, &str)]| {
            let columns = columns.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned())).collect();
            BTreeMap::from([(("k".to_owned(), "t".to_owned()), columns)])
        };
        let wanted = table(&[("a", "int"), ("b", "text")]);
        assert_eq!(first_difference(&wanted, &table(&[("a", "int"), ("b", "text"), ("more", "int")])), None);
        let told = |there: &BTreeMap<Table, Columns>| first_difference(&wanted, there).unwrap_or_default();
        assert_eq!(told(&BTreeMap::new()), "the table k.t is missing");
        assert_eq!(told(&table(&[("a", "int")])), "the table k.t has no column b");
        assert_eq!(
            told(&table(&[("a", "bigint"), ("b", "text")])),
            "the column a of the table k.t is bigint, and has to be int"
        );
    }
}
