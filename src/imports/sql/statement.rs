//! Statements of a dump: columns of tables, and rows of those that are wanted.

use super::{
    Cell, Row,
    lexer::{Lexer, SqlError, Token},
};
use crate::{ImportError, source, text};
use campanile_schema::limits::{IMPORT_COLUMNS, IMPORT_DUMP_BYTES, IMPORT_ROW_BYTES, IMPORT_ROWS};
use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::Path,
};

/// Bytes at the beginning of a dump that tell which database wrote it.
const LOOK_BYTES: usize = 64 << 10;
/// Words that begin a line of `CREATE TABLE` that is no column.
const NO_COLUMNS: [&str; 9] =
    ["PRIMARY", "KEY", "UNIQUE", "CONSTRAINT", "INDEX", "FOREIGN", "FULLTEXT", "SPATIAL", "CHECK"];

/// The rows of a dump, by table in lower case.
#[derive(Debug, Default)]
pub struct Dump {
    pub tables: BTreeMap<String, Vec<Row>>,
    /// Columns of wanted tables, as they were created.
    pub columns: BTreeMap<String, Vec<String>>,
    /// Rows that could not be read: line, and why.
    pub wrong: Vec<(u64, String)>,
    /// Statements of wanted tables that were not read, with their line.
    pub passed_over: Vec<(u64, String)>,
}

/// Reads the rows of those tables that `wants` names, by their names in lower case.
pub fn read(path: &Path, wants: &dyn Fn(&str) -> bool) -> Result<Dump, ImportError> {
    let mut input = BufReader::with_capacity(LOOK_BYTES, source::open(path)?);
    let begin = input.fill_buf().map_err(|error| source::unreadable(path, error))?;
    let escapes = is_mysql(begin);
    let lexer = Lexer::new(input, IMPORT_DUMP_BYTES, escapes);
    let mut reader = Reader { lexer, wants, dump: Dump::default(), rows: 0, bytes: 0 };
    match reader.statements() {
        Ok(()) => Ok(reader.dump),
        Err(SqlError::Io(error)) => Err(source::unreadable(path, error)),
        Err(error @ SqlError::Wrong { .. }) => Err(source::refused(path, text::sentence(&error.to_string()))),
    }
}

/// In MySQL a backslash in a text is an escape.
fn is_mysql(begin: &[u8]) -> bool {
    let begin = String::from_utf8_lossy(begin);
    let has = |words: &[&str]| words.iter().any(|word| begin.contains(word));
    if has(&["PostgreSQL", "standard_conforming_strings", "COPY public."]) {
        return false;
    }
    has(&["`", "MySQL", "MariaDB", "ENGINE=", "mysqldump"])
}

struct Reader<'a, R> {
    lexer: Lexer<R>,
    wants: &'a dyn Fn(&str) -> bool,
    dump: Dump,
    rows: usize,
    bytes: usize,
}

type Read<T> = Result<T, SqlError>;

impl<R: BufRead> Reader<'_, R> {
    fn statements(&mut self) -> Read<()> {
        while let Some(token) = self.lexer.token()? {
            let Token::Word(word) = token else { continue };
            let ended = match word.to_ascii_uppercase().as_str() {
                "INSERT" | "REPLACE" => self.insert()?,
                "CREATE" => self.create()?,
                "COPY" => self.copy()?,
                _ => false,
            };
            if !ended {
                self.skip()?;
            }
        }
        Ok(())
    }

    /// To the end of the statement. Its values may be of any length.
    fn skip(&mut self) -> Read<()> {
        self.lexer.keeps = false;
        while let Some(token) = self.lexer.token()? {
            if token == Token::Sign(b';') {
                break;
            }
        }
        self.lexer.keeps = true;
        Ok(())
    }

    /// The name of a table behind `words`, without its schema. None: another statement, or the end of it was read.
    fn table(&mut self) -> Read<Option<(String, Option<Token>)>> {
        let mut name = None;
        loop {
            let token = self.lexer.token()?;
            match token {
                Some(Token::Name(part)) => name = Some(part),
                Some(Token::Word(word)) if name.is_none() && is_filler(&word) => {}
                // `a`.`b` has a lone dot between its parts.
                Some(Token::Word(word)) if word == "." => {}
                Some(Token::Word(word)) if name.is_none() || word.starts_with('.') => {
                    let last = word.rsplit('.').next().unwrap_or_default().to_owned();
                    // `public."a"` ends in a dot: the name follows.
                    if !last.is_empty() {
                        name = Some(last);
                    }
                }
                other => return Ok(name.map(|name| (name.to_ascii_lowercase(), other))),
            }
        }
    }

    /// Whether the statement was read to its end.
    fn create(&mut self) -> Read<bool> {
        let Some(Token::Word(word)) = self.lexer.token()? else { return Ok(false) };
        if !word.eq_ignore_ascii_case("TABLE") {
            return Ok(false);
        }
        let Some((table, next)) = self.table()? else { return Ok(true) };
        if next != Some(Token::Sign(b'(')) || !(self.wants)(&table) {
            return Ok(next == Some(Token::Sign(b';')));
        }
        let (mut columns, mut depth, mut begins) = (Vec::new(), 1, true);
        while let Some(token) = self.lexer.token()? {
            match token {
                Token::Sign(b'(') => depth += 1,
                Token::Sign(b')') => depth -= 1,
                Token::Sign(b',') if depth == 1 => {
                    begins = true;
                    continue;
                }
                Token::Name(name) if begins => columns.push(name.to_ascii_lowercase()),
                Token::Word(name) if begins && !NO_COLUMNS.contains(&name.to_ascii_uppercase().as_str()) => {
                    columns.push(name.to_ascii_lowercase());
                }
                Token::Name(_) | Token::Word(_) | Token::Text(_) | Token::Sign(_) => {}
            }
            begins = false;
            if depth == 0 {
                break;
            }
            if columns.len() > IMPORT_COLUMNS {
                return self.lexer.wrong(format!("a table has more than {IMPORT_COLUMNS} columns"));
            }
        }
        self.dump.columns.insert(table, columns);
        Ok(false)
    }

    fn insert(&mut self) -> Read<bool> {
        let begin = self.lexer.line;
        let Some((table, mut next)) = self.table()? else { return Ok(true) };
        if !(self.wants)(&table) {
            return Ok(next == Some(Token::Sign(b';')));
        }
        let mut columns = None;
        if next == Some(Token::Sign(b'(')) {
            columns = Some(self.names()?);
            next = self.lexer.token()?;
        }
        match next {
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("VALUES") || word.eq_ignore_ascii_case("VALUE") => {}
            other => {
                self.pass_over(begin, format!("an INSERT into {} that has no VALUES is not read", text::shown(&table)));
                return Ok(other == Some(Token::Sign(b';')));
            }
        }
        let columns = columns.or_else(|| self.dump.columns.get(&table).cloned());
        while let Some(token) = self.lexer.token()? {
            match token {
                Token::Sign(b'(') => {
                    let line = self.lexer.line;
                    let cells = self.cells()?;
                    self.row(&table, columns.as_deref(), line, cells)?;
                }
                Token::Sign(b',') => {}
                Token::Sign(b';') => return Ok(true),
                // SQL Server ends a statement with a line of its own.
                Token::Word(word) if word.eq_ignore_ascii_case("GO") => return Ok(true),
                Token::Word(word) if ["INSERT", "REPLACE"].iter().any(|next| word.eq_ignore_ascii_case(next)) => {
                    let why =
                        "an INSERT begins here before the one above it has ended in ';': what follows is not read";
                    self.pass_over(self.lexer.line, why.to_owned());
                    return Ok(false);
                }
                // `ON DUPLICATE KEY UPDATE ...`, `AS new`.
                Token::Word(_) | Token::Name(_) | Token::Text(_) | Token::Sign(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// After an opening bracket.
    fn names(&mut self) -> Read<Vec<String>> {
        let mut names = Vec::new();
        while let Some(token) = self.lexer.token()? {
            match token {
                Token::Name(name) | Token::Word(name) => names.push(name.to_ascii_lowercase()),
                Token::Sign(b')') => break,
                Token::Text(_) | Token::Sign(_) => {}
            }
            if names.len() > IMPORT_COLUMNS {
                return self.lexer.wrong(format!("a statement names more than {IMPORT_COLUMNS} columns"));
            }
        }
        Ok(names)
    }

    /// The values of a row, after its opening bracket.
    fn cells(&mut self) -> Read<Vec<Cell>> {
        let (mut cells, mut parts, mut depth, mut bytes) = (Vec::new(), Vec::new(), 0, 0);
        loop {
            let Some(token) = self.lexer.token()? else { return self.lexer.wrong("the file ends within a row") };
            match token {
                Token::Sign(b')') if depth == 0 => {
                    cells.push(cell(parts));
                    return Ok(cells);
                }
                Token::Sign(b',') if depth == 0 => cells.push(cell(std::mem::take(&mut parts))),
                token => {
                    match &token {
                        Token::Sign(b'(') => depth += 1,
                        Token::Sign(b')') => depth -= 1,
                        Token::Text(text) => bytes += text.len(),
                        Token::Word(word) | Token::Name(word) => bytes += word.len(),
                        Token::Sign(_) => {}
                    }
                    parts.push(token);
                }
            }
            if cells.len() > IMPORT_COLUMNS || parts.len() > IMPORT_COLUMNS || bytes > IMPORT_ROW_BYTES {
                return self.lexer.wrong(format!("a row has more than {IMPORT_COLUMNS} values"));
            }
        }
    }

    /// `COPY public.t (a, b) FROM stdin;` with its rows.
    fn copy(&mut self) -> Read<bool> {
        let Some((table, next)) = self.table()? else { return Ok(true) };
        let columns = match next {
            Some(Token::Sign(b'(')) => Some(self.names()?),
            Some(Token::Sign(b';')) => return Ok(true),
            Some(Token::Word(_) | Token::Name(_) | Token::Text(_) | Token::Sign(_)) | None => None,
        };
        let mut from_stdin = columns.is_none();
        loop {
            match self.lexer.token()? {
                None => return Ok(true),
                Some(Token::Sign(b';')) => break,
                Some(Token::Word(word)) if word.eq_ignore_ascii_case("stdin") => from_stdin = true,
                Some(_) => {}
            }
        }
        if !from_stdin {
            return Ok(true);
        }
        self.lexer.rest_of_line()?;
        let is_wanted = (self.wants)(&table);
        self.lexer.keeps = is_wanted;
        let columns = columns.or_else(|| self.dump.columns.get(&table).cloned());
        loop {
            let at = self.lexer.line;
            let Some(line) = self.lexer.rest_of_line()? else { break };
            let line = line.strip_suffix(b"\r").unwrap_or(&line);
            if line == b"\\." {
                break;
            }
            if is_wanted {
                let cells = line.split(|byte| *byte == b'\t').map(copied).collect();
                self.row(&table, columns.as_deref(), at, cells)?;
            }
        }
        self.lexer.keeps = true;
        Ok(true)
    }

    fn row(&mut self, table: &str, columns: Option<&[String]>, line: u64, cells: Vec<Cell>) -> Read<()> {
        let Some(columns) = columns else {
            self.wrong(line, "the statement names no columns, and the dump has no CREATE TABLE before it");
            return Ok(());
        };
        if columns.len() != cells.len() {
            let why = format!("the row has {} values for {} columns", cells.len(), columns.len());
            self.wrong(line, &why);
            return Ok(());
        }
        let bytes = |cell: &Cell| match cell {
            Cell::Null => 0,
            Cell::Bytes(bytes) => bytes.len(),
            Cell::Other(text) => text.len(),
        };
        self.bytes += cells.iter().map(bytes).sum::<usize>();
        self.rows += 1;
        if self.rows > IMPORT_ROWS || self.bytes > IMPORT_ROW_BYTES {
            let limits = format!("at most {IMPORT_ROWS} rows with {IMPORT_ROW_BYTES} bytes are read");
            return self.lexer.wrong(format!("the tables of the scheduler are too large: {limits}"));
        }
        let cells = columns.iter().cloned().zip(cells).collect();
        self.dump.tables.entry(table.to_owned()).or_default().push(Row { line, cells });
        Ok(())
    }

    fn pass_over(&mut self, line: u64, why: String) {
        if self.dump.passed_over.len() < IMPORT_ROWS {
            self.dump.passed_over.push((line, why));
        }
    }

    fn wrong(&mut self, line: u64, why: &str) {
        if self.dump.wrong.len() < IMPORT_ROWS {
            self.dump.wrong.push((line, why.to_owned()));
        }
    }
}

fn is_filler(word: &str) -> bool {
    const WORDS: [&str; 13] = [
        "INTO",
        "IGNORE",
        "LOW_PRIORITY",
        "DELAYED",
        "HIGH_PRIORITY",
        "IF",
        "NOT",
        "EXISTS",
        "ONLY",
        "OR",
        "ROLLBACK",
        "ABORT",
        "FAIL",
    ];
    WORDS.contains(&word.to_ascii_uppercase().as_str())
}

/// One value of its tokens: casts of PostgreSQL and introducers of MySQL say nothing new.
fn cell(parts: Vec<Token>) -> Cell {
    let mut parts = parts.as_slice();
    if let [Token::Word(word), rest @ ..] = parts
        && word.starts_with('_')
        && !rest.is_empty()
    {
        parts = rest;
    }
    let cast = parts.windows(2).position(|pair| pair == [Token::Sign(b':'), Token::Sign(b':')]);
    let (value, cast) = parts.split_at(cast.unwrap_or(parts.len()));
    let is_bytea = cast.iter().any(|token| matches!(token, Token::Word(word) if word.eq_ignore_ascii_case("bytea")));
    match value {
        [Token::Word(word)] if word.eq_ignore_ascii_case("null") => Cell::Null,
        [Token::Word(word)] => Cell::Bytes(word.clone().into_bytes()),
        [Token::Text(text)] if is_bytea => Cell::Bytes(bytea(text)),
        [Token::Text(text)] => Cell::Bytes(text.clone()),
        // MySQL reads text in double quotes as a literal.
        [Token::Name(text)] => Cell::Bytes(text.clone().into_bytes()),
        other => Cell::Other(text::shown(&format!("{other:?}"))),
    }
}

/// `\x6869` of PostgreSQL.
fn bytea(text: &[u8]) -> Vec<u8> {
    text.strip_prefix(b"\\x").and_then(|digits| hex::decode(digits).ok()).unwrap_or_else(|| text.to_vec())
}

/// A field of a row of `COPY`.
fn copied(field: &[u8]) -> Cell {
    if field == b"\\N" {
        return Cell::Null;
    }
    let (mut text, mut escaped) = (Vec::with_capacity(field.len()), false);
    for byte in field {
        match (escaped, byte) {
            (false, b'\\') => escaped = true,
            (false, byte) => text.push(*byte),
            (true, byte) => {
                text.push(match byte {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'f' => 0x0c,
                    b'v' => 0x0b,
                    other => *other,
                });
                escaped = false;
            }
        }
    }
    Cell::Bytes(bytea(&text))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn dump(text: &str) -> Result<Dump, ImportError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dump.sql");
        std::fs::write(&path, text).unwrap();
        read(&path, &|table| table == "t")
    }
    fn rows(text: &str) -> Vec<(u64, String, String)> {
        let dump = dump(text).unwrap();
        assert_eq!(dump.wrong, [], "{text}");
        let row = |row: &Row| (row.line, row.words("a"), row.words("b"));
        dump.tables.get("t").map(|rows| rows.iter().map(row).collect()).unwrap_or_default()
    }
    fn expected(rows: &[(u64, &str, &str)]) -> Vec<(u64, String, String)> {
        rows.iter().map(|(line, a, b)| (*line, (*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn rows_of_mysql() {
        let text = "-- MySQL dump\n/*!40101 SET NAMES utf8 */;\nDROP TABLE IF EXISTS `t`;\nCREATE TABLE `t` (\n  `a` int(11) NOT NULL \
                    DEFAULT '0' COMMENT 'a, b; (c)',\n  `b` varchar(10) DEFAULT NULL,\n  PRIMARY KEY (`a`),\n  KEY `k` (`b`,`a`)\n) \
                    ENGINE=InnoDB;\nINSERT INTO `other` VALUES (1,'); INSERT INTO `t` VALUES (9,9)');\nINSERT INTO `t` VALUES \
                    (1,'it\\'s; (x)'),\n(2,_binary 'y'),(3,NULL);\nINSERT IGNORE INTO db.t (`b`, a) VALUES ('z', 4) ON DUPLICATE KEY \
                    UPDATE a = 1;\n";
        assert_eq!(rows(text), expected(&[(11, "1", "it's; (x)"), (12, "2", "y"), (12, "3", ""), (13, "4", "z")]));
    }

    #[test]
    fn rows_of_postgresql() {
        let text = "-- PostgreSQL database dump\nSET standard_conforming_strings = on;\nCREATE TABLE public.t (\n    a integer NOT \
                    NULL,\n    b text,\n    CONSTRAINT x CHECK ((a > 0))\n);\nCOPY public.other (a) FROM stdin;\n'\n\\.\n\
                    COPY public.t (a, b) FROM stdin;\n1\tx\\ty\\\\z\n2\t\\N\n\\.\nINSERT INTO public.t VALUES (3, 'c:\\d');\n\
                    INSERT INTO \"public\".\"t\" VALUES (4, '\\x6869'::bytea);\nSELECT pg_catalog.setval('x', 1, true);\n";
        assert_eq!(rows(text), expected(&[(12, "1", "x\ty\\z"), (13, "2", ""), (15, "3", "c:\\d"), (16, "4", "hi")]));
    }

    #[test]
    fn rows_that_do_not_fit_are_told_and_the_others_are_read() {
        let found = dump(
            "INSERT INTO t (a, b) VALUES (1), (2, 'x'), (3, now() + 1);\nINSERT INTO t VALUES (5);\n\
             INSERT INTO t SELECT 1;\nINSERT INTO t (a) VALUES (6);\n",
        )
        .unwrap();
        assert_eq!(found.wrong[0], (1, "the row has 1 values for 2 columns".to_owned()));
        assert!(found.wrong[1].1.contains("no CREATE TABLE"), "{found:?}");
        assert_eq!(found.wrong.len(), 2);
        assert_eq!(found.passed_over.len(), 1);
        let rows = &found.tables["t"];
        assert_eq!(rows.len(), 3, "{rows:?}");
        assert_eq!(rows[0].number("a"), Some(2));
        assert!(matches!(rows[1].cells["b"], Cell::Other(_)), "{rows:?}");
    }

    #[test]
    fn functions_of_postgresql_and_large_values_of_other_tables_are_passed_over() {
        let large = "x".repeat(2 << 20);
        let text = format!(
            "-- PostgreSQL database dump\nCREATE FUNCTION public.f() RETURNS trigger AS $_$\nBEGIN -- it's\n  RAISE 'no; $1 \
             $$';\nEND;\n$_$;\nCREATE TABLE public.t (a integer, b text);\nCOPY public.other (a) FROM stdin;\n{large}\n\\.\n\
             INSERT INTO public.other VALUES ('{large}');\nINSERT INTO public.t VALUES (1, 'x');\n"
        );
        assert_eq!(rows(&text), expected(&[(12, "1", "x")]));
        let wanted = dump(&format!("INSERT INTO t (a) VALUES ('{large}');")).unwrap_err().to_string();
        assert!(wanted.contains("longer than 1048576 bytes"), "{wanted}");
    }

    #[test]
    fn statements_without_a_semicolon_are_read_to_their_go_or_told() {
        let text =
            "INSERT [dbo].[t] ([a], [b]) VALUES (1, N'x')\nGO\nINSERT [dbo].[t] ([a], [b]) VALUES (2, N'y')\nGO\n";
        assert_eq!(rows(text), expected(&[(1, "1", "x"), (3, "2", "y")]));
        let found = dump("INSERT t (a) VALUES (1)\nINSERT t (a) VALUES (2)\n").unwrap();
        assert_eq!(found.tables["t"].len(), 1);
        assert_eq!(found.passed_over[0].0, 2, "{found:?}");
        assert!(found.passed_over[0].1.contains("what follows is not read"), "{found:?}");
    }

    #[test]
    fn what_is_broken_is_told_with_its_line() {
        for (text, told) in [
            ("\nINSERT INTO t (a) VALUES ('x", "line 2: a text that begins here has no end"),
            ("INSERT INTO t (a) VALUES (1", "the file ends within a row"),
        ] {
            let error = dump(text).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
        let wide = format!("INSERT INTO t (a) VALUES ({});", "1,".repeat(1_000));
        assert!(dump(&wide).unwrap_err().to_string().contains("more than 256 values"));
    }
}
