//! Files that people write, as text: what Windows editors add or change, and what the bytes of a comment may be.
//!
//! A byte order mark at the beginning is left out. Bytes that are not UTF-8 are taken when they stand in a comment, where
//! they mean nothing; anywhere else the text is refused with its line and column. UTF-16 is named.

use std::fmt;

/// UTF-8's byte order mark, as a character.
const MARK: char = '\u{feff}';

/// Why bytes are no text; line and column from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotText {
    pub line: usize,
    pub column: usize,
    what: &'static str,
}

impl fmt::Display for NotText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.what)
    }
}

impl std::error::Error for NotText {}

impl From<NotText> for std::io::Error {
    fn from(why: NotText) -> Self {
        std::io::Error::new(std::io::ErrorKind::InvalidData, why)
    }
}

/// Without the byte order mark.
pub fn unmarked(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// The bytes of a file as text. `comments`: `#` begins a comment, as in YAML, TOML and crontabs.
pub fn decode(bytes: Vec<u8>, comments: bool) -> Result<String, NotText> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(NotText { line: 1, column: 1, what: "the file is UTF-16: save it as UTF-8" });
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let bytes = error.into_bytes();
            for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
                let Err(error) = std::str::from_utf8(line) else { continue };
                let before = &line[..error.valid_up_to()];
                if !(comments && in_comment(before)) {
                    let column = String::from_utf8_lossy(before).chars().count() + 1;
                    let what = "a byte that is not UTF-8: save the file as UTF-8";
                    return Err(NotText { line: index + 1, column, what });
                }
            }
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    match text.strip_prefix(MARK) {
        Some(rest) => Ok(rest.to_owned()),
        None => Ok(text),
    }
}

/// Whether a comment has begun on the line. With a quote before the `#` it may be part of a value, so it is none.
fn in_comment(before: &[u8]) -> bool {
    let begun = before
        .iter()
        .enumerate()
        .find(|(at, byte)| **byte == b'#' && (*at == 0 || matches!(before[at - 1], b' ' | b'\t')));
    begun.is_some_and(|(at, _)| !before[..at].iter().any(|byte| matches!(byte, b'"' | b'\'')))
}

/// Reads a file. The error does not name it.
pub fn read(path: &std::path::Path, comments: bool) -> std::io::Result<String> {
    Ok(decode(std::fs::read(path)?, comments)?)
}

/// Reads what comes, whole.
pub fn read_from(mut input: impl std::io::Read, comments: bool) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    Ok(decode(bytes, comments)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_editors_add_is_left_out_and_comments_may_hold_any_byte() {
        assert_eq!(decode(b"\xef\xbb\xbfa: 1\n".to_vec(), true).unwrap(), "a: 1\n");
        assert_eq!(decode("ü: 1\n".into(), false).unwrap(), "ü: 1\n");
        assert_eq!(decode(b"# caf\xe9\na: 1 # \xfc\n".to_vec(), true).unwrap(), "# caf\u{fffd}\na: 1 # \u{fffd}\n");
        for (bytes, comments, line, column) in [
            (&b"a: 1\nb: caf\xe9\n"[..], true, 2, 7),
            (b"a: \"# \xe9\"\n", true, 1, 7),
            (b"a: x#\xe9\n", true, 1, 6),
            (b"{\n# \xe9\n", false, 2, 3),
            (b"\xff\xfea\0", true, 1, 1),
        ] {
            let error = decode(bytes.to_vec(), comments).unwrap_err();
            assert_eq!((error.line, error.column), (line, column), "{error}");
        }
        assert!(decode(vec![0xfe, 0xff, 0, b'a'], true).unwrap_err().to_string().contains("UTF-16"));
    }
}
