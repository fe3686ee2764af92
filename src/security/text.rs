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

/// Takes the byte order mark away from the first line of what is read line by line.
pub fn unmark(line: &mut Vec<u8>) {
    let mut mark = [0; 4];
    if line.starts_with(MARK.encode_utf8(&mut mark).as_bytes()) {
        line.drain(..MARK.len_utf8());
    }
}

/// The bytes of a file as text. `comments`: `#` begins a comment, as in YAML, TOML and crontabs.
pub fn decode(mut bytes: Vec<u8>, comments: bool) -> Result<String, NotText> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(NotText { line: 1, column: 1, what: "the file is UTF-16: save it as UTF-8" });
    }
    unmark(&mut bytes);
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => {
            let bytes = error.into_bytes();
            let mut block = BlockText::default();
            for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
                let is_value = block.holds(line);
                let Err(error) = std::str::from_utf8(line) else { continue };
                let before = &line[..error.valid_up_to()];
                if !comments || is_value || comment(before).is_none() {
                    let column = String::from_utf8_lossy(before).chars().count() + 1;
                    let what = "a byte that is not UTF-8: save the file as UTF-8";
                    return Err(NotText { line: index + 1, column, what });
                }
            }
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
    }
}

/// Where the comment of a line begins, when one does. A quote that begins a value and is still open makes `#` a part of it.
fn comment(line: &[u8]) -> Option<usize> {
    let mut open = None;
    for (at, byte) in line.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| line[before]);
        match (open, byte) {
            (Some(quote), _) if quote == *byte && !(quote == b'"' && before == Some(b'\\')) => open = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') if before.is_none_or(|before| b" \t[{,:=-".contains(&before)) => open = Some(*byte),
            (None, b'#') if before.is_none_or(|before| matches!(before, b' ' | b'\t')) => return Some(at),
            (None, _) => {}
        }
    }
    None
}

/// Follows the block texts of YAML (`|` and `>`): in them `#` is a part of the value.
#[derive(Default)]
struct BlockText {
    /// Indentation of the line that began the block text. What is indented further is in it.
    begun: Option<usize>,
}

impl BlockText {
    /// Whether the line, which is the next one, is in a block text.
    fn holds(&mut self, line: &[u8]) -> bool {
        let indent = line.iter().take_while(|byte| **byte == b' ').count();
        if line.trim_ascii().is_empty() {
            return self.begun.is_some();
        }
        if self.begun.is_some_and(|begun| indent > begun) {
            return true;
        }
        let code = line[..comment(line).unwrap_or(line.len())].trim_ascii_end();
        let marks = code.iter().rev().take_while(|byte| matches!(byte, b'+' | b'-' | b'1'..=b'9')).count();
        let head = &code[..code.len() - marks];
        let begins = head.strip_suffix(b"|").or_else(|| head.strip_suffix(b">"));
        let is_block = begins.is_some_and(|before| before.ends_with(b" ") || before.is_empty());
        self.begun = is_block.then_some(indent);
        false
    }
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
        assert_eq!(decode(b"\xef\xbb\xbf# caf\xe9\n".to_vec(), true).unwrap(), "# caf\u{fffd}\n");
        assert_eq!(decode("ü: 1\n".into(), false).unwrap(), "ü: 1\n");
        assert_eq!(decode(b"# caf\xe9\na: 1 # \xfc\n".to_vec(), true).unwrap(), "# caf\u{fffd}\na: 1 # \u{fffd}\n");
        for text in [
            &b"a: \"x\" # caf\xe9\n"[..],
            b"a: it's # caf\xe9\n",
            b"# it's \"caf\xe9\n",
            b"a = 'x' # \xfc\n",
            b"run: | # caf\xe9\n  # x\n# \xfc\n",
        ] {
            assert!(decode(text.to_vec(), true).is_ok(), "{}", String::from_utf8_lossy(text));
        }
        for (bytes, comments, line, column) in [
            (&b"a: 1\nb: caf\xe9\n"[..], true, 2, 7),
            (b"a: \"# \xe9\"\n", true, 1, 7),
            (b"a: 'x' \"\\\" # \xe9\"\n", true, 1, 14),
            (b"run: |-\n  # \xe9\n", true, 2, 5),
            (b"- >2\n  x\n\n  # \xe9\n", true, 4, 5),
            (b"a: x#\xe9\n", true, 1, 6),
            (b"{\n# \xe9\n", false, 2, 3),
            (b"\xff\xfea\0", true, 1, 1),
        ] {
            let error = decode(bytes.to_vec(), comments).unwrap_err();
            assert_eq!((error.line, error.column), (line, column), "{error}");
        }
        let mut line = b"\xef\xbb\xbf{}".to_vec();
        unmark(&mut line);
        unmark(&mut line);
        assert_eq!(line, b"{}");
        assert!(decode(vec![0xfe, 0xff, 0, b'a'], true).unwrap_err().to_string().contains("UTF-16"));
    }
}
