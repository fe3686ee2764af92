//! Bytes to tokens, with the line of each. A token has a limit, and comments and what is in them are passed over.

use campanile_schema::limits::IMPORT_VALUE_BYTES;
use std::{
    collections::VecDeque,
    io::{self, BufRead},
};

/// How much is kept of a value that nobody reads, bytes: enough to see the end of a `COPY`.
const BEGINNING_BYTES: usize = 16;
/// `$tag$` of PostgreSQL, bytes: names have at most 63.
const TAG_BYTES: usize = 66;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// A word or a number as it is written.
    Word(String),
    /// A name in backticks, double quotes or brackets.
    Name(String),
    /// A literal.
    Text(Vec<u8>),
    /// `(`, `,`, `;` and the like.
    Sign(u8),
}

/// Why reading ends before the end of the file.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("line {line}: {what}")]
    Wrong { line: u64, what: String },
}

pub struct Lexer<R> {
    input: R,
    /// Of the byte that comes next, from 1.
    pub line: u64,
    /// Whether a backslash in a literal is an escape, as MySQL reads it.
    pub escapes: bool,
    /// Whether texts and names are kept as a whole, up to a limit. Otherwise only how they begin is, and they may be of any length.
    pub keeps: bool,
    read: u64,
    most: u64,
}

impl<R: BufRead> Lexer<R> {
    /// Reads at most `most` bytes.
    pub fn new(input: R, most: u64, escapes: bool) -> Self {
        Self { input, line: 1, escapes, keeps: true, read: 0, most }
    }

    pub fn wrong<T>(&self, what: impl Into<String>) -> Result<T, SqlError> {
        Err(SqlError::Wrong { line: self.line, what: what.into() })
    }

    fn peek(&mut self) -> Result<Option<u8>, SqlError> {
        Ok(self.input.fill_buf()?.first().copied())
    }

    fn take(&mut self) -> Result<Option<u8>, SqlError> {
        let Some(byte) = self.peek()? else { return Ok(None) };
        self.input.consume(1);
        self.read += 1;
        if self.read > self.most {
            return self
                .wrong(format!("the dump is larger than {} bytes: dump only the tables of the scheduler", self.most));
        }
        self.line += u64::from(byte == b'\n');
        Ok(Some(byte))
    }

    /// The rest of a line, for rows of `COPY`. None: the file ends.
    pub fn rest_of_line(&mut self) -> Result<Option<Vec<u8>>, SqlError> {
        let mut line = Vec::new();
        while let Some(byte) = self.take()? {
            if byte == b'\n' {
                return Ok(Some(line));
            }
            self.push(&mut line, byte)?;
        }
        Ok((!line.is_empty()).then_some(line))
    }

    fn push(&self, text: &mut Vec<u8>, byte: u8) -> Result<(), SqlError> {
        if !self.keeps && text.len() == BEGINNING_BYTES {
            return Ok(());
        }
        if text.len() == IMPORT_VALUE_BYTES {
            return self.wrong(format!("a value or a name is longer than {IMPORT_VALUE_BYTES} bytes"));
        }
        text.push(byte);
        Ok(())
    }

    /// The next token; None at the end of the file.
    pub fn token(&mut self) -> Result<Option<Token>, SqlError> {
        loop {
            let Some(byte) = self.take()? else { return Ok(None) };
            return Ok(Some(match byte {
                b' ' | b'\t' | b'\r' | b'\n' | 0x0c => continue,
                // A byte order mark.
                0xef if self.read == 1 => continue,
                0xbb if self.read == 2 => continue,
                0xbf if self.read == 3 => continue,
                b'-' if self.peek()? == Some(b'-') => {
                    self.skip_line()?;
                    continue;
                }
                b'#' if self.escapes => {
                    self.skip_line()?;
                    continue;
                }
                b'/' if self.peek()? == Some(b'*') => {
                    self.skip_comment()?;
                    continue;
                }
                b'\'' => Token::Text(self.literal(self.escapes)?),
                b'$' if !self.escapes => self.dollar()?,
                b'`' => Token::Name(self.quoted(b'`')?),
                b'"' => Token::Name(self.quoted(b'"')?),
                b'[' => Token::Name(self.quoted(b']')?),
                byte if is_word(byte) || byte == b'-' || byte == b'+' => self.word(byte)?,
                sign => Token::Sign(sign),
            }));
        }
    }

    fn skip_line(&mut self) -> Result<(), SqlError> {
        while let Some(byte) = self.take()? {
            if byte == b'\n' {
                break;
            }
        }
        Ok(())
    }

    /// What a server of MySQL does with `/*!40101 ... */` never has rows of a dump.
    fn skip_comment(&mut self) -> Result<(), SqlError> {
        let begin = self.line;
        self.take()?;
        let mut before = 0;
        while let Some(byte) = self.take()? {
            if before == b'*' && byte == b'/' {
                return Ok(());
            }
            before = byte;
        }
        Err(SqlError::Wrong { line: begin, what: "a comment that begins here has no end".to_owned() })
    }

    /// After the opening quote, up to the closing one, which is doubled inside.
    fn literal(&mut self, escapes: bool) -> Result<Vec<u8>, SqlError> {
        let begin = self.line;
        let mut text = Vec::new();
        while let Some(byte) = self.take()? {
            match byte {
                b'\'' if self.peek()? == Some(b'\'') => {
                    self.take()?;
                    self.push(&mut text, b'\'')?;
                }
                b'\'' => return Ok(text),
                b'\\' if escapes => {
                    let Some(next) = self.take()? else { break };
                    self.push(&mut text, unescaped(next))?;
                }
                byte => self.push(&mut text, byte)?,
            }
        }
        Err(SqlError::Wrong { line: begin, what: "a text that begins here has no end".to_owned() })
    }

    /// After a dollar sign: `$tag$ ... $tag$` of PostgreSQL, mostly the body of a function, whose text is not kept; else a word.
    fn dollar(&mut self) -> Result<Token, SqlError> {
        let begin = self.line;
        let mut tag = vec![b'$'];
        while let Some(byte) = self.peek()?.filter(|byte| is_word(*byte) && tag.len() < TAG_BYTES) {
            self.take()?;
            tag.push(byte);
            if byte == b'$' {
                return self.dollar_body(&tag, begin);
            }
        }
        Ok(Token::Word(String::from_utf8_lossy(&tag).into_owned()))
    }

    fn dollar_body(&mut self, tag: &[u8], begin: u64) -> Result<Token, SqlError> {
        let mut last = VecDeque::with_capacity(TAG_BYTES);
        while let Some(byte) = self.take()? {
            last.push_back(byte);
            if last.len() > tag.len() {
                last.pop_front();
            }
            if last.iter().eq(tag) {
                return Ok(Token::Text(Vec::new()));
            }
        }
        Err(SqlError::Wrong { line: begin, what: "a text that begins here has no end".to_owned() })
    }

    fn quoted(&mut self, end: u8) -> Result<String, SqlError> {
        let begin = self.line;
        let mut name = Vec::new();
        while let Some(byte) = self.take()? {
            if byte != end {
                self.push(&mut name, byte)?;
            } else if self.peek()? == Some(end) {
                self.take()?;
                self.push(&mut name, end)?;
            } else {
                return Ok(String::from_utf8_lossy(&name).into_owned());
            }
        }
        Err(SqlError::Wrong { line: begin, what: "a name that begins here has no end".to_owned() })
    }

    fn word(&mut self, first: u8) -> Result<Token, SqlError> {
        let mut word = vec![first];
        while let Some(byte) = self.peek()?.filter(|byte| is_word(*byte)) {
            self.take()?;
            self.push(&mut word, byte)?;
        }
        if self.peek()? == Some(b'\'') {
            match word.as_slice() {
                // Escapes are on, off, or have no meaning.
                b"E" | b"e" => {
                    self.take()?;
                    return Ok(Token::Text(self.literal(true)?));
                }
                b"N" | b"n" => {
                    self.take()?;
                    return Ok(Token::Text(self.literal(self.escapes)?));
                }
                b"X" | b"x" => {
                    self.take()?;
                    let digits = self.literal(false)?;
                    return Ok(bytes_of(&digits).map_or(Token::Word("X".to_owned()), Token::Text));
                }
                b"B" | b"b" => {
                    self.take()?;
                    let bits = self.literal(false)?;
                    let is_one = bits.contains(&b'1');
                    return Ok(Token::Text(vec![u8::from(is_one)]));
                }
                _ => {}
            }
        }
        let digits = word.strip_prefix(b"0x").or_else(|| word.strip_prefix(b"0X"));
        if let Some(bytes) = digits.and_then(bytes_of) {
            return Ok(Token::Text(bytes));
        }
        Ok(Token::Word(String::from_utf8_lossy(&word).into_owned()))
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80 || b"_$.@".contains(&byte)
}

fn bytes_of(digits: &[u8]) -> Option<Vec<u8>> {
    hex::decode(digits).ok()
}

/// Of MySQL, and of `E'...'` as far as dumps use it.
fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'0' => 0,
        b'b' => 8,
        b'Z' => 0x1a,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn tokens(text: &str, escapes: bool) -> Vec<Token> {
        let mut lexer = Lexer::new(text.as_bytes(), 1 << 20, escapes);
        std::iter::from_fn(|| lexer.token().unwrap()).collect()
    }
    fn texts(text: &str, escapes: bool) -> Vec<String> {
        let text_of = |token| match token {
            Token::Text(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Token::Word(_) | Token::Name(_) | Token::Sign(_) => None,
        };
        tokens(text, escapes).into_iter().filter_map(text_of).collect()
    }

    #[test]
    fn literals_names_and_comments() {
        assert_eq!(texts(r"'it''s' 'a\'b\n' 'c:\\d'", true), ["it's", "a'b\n", r"c:\d"]);
        assert_eq!(texts(r"'c:\d' E'a\tb' N'n' X'6869' 0x6869 '\'", false), [r"c:\d", "a\tb", "n", "hi", "hi", r"\"]);
        let plain = tokens("-- 'x'\n/*!40101 SET 'y' */ `a``b` \"c\" [d] # e\n-12.5", true);
        let name = |name: &str| Token::Name(name.to_owned());
        let word = |word: &str| Token::Word(word.to_owned());
        let dollars = tokens("$$it's; $1$$ $a$ $$ $a$ $1 a$b", false);
        assert_eq!(dollars, [Token::Text(Vec::new()), Token::Text(Vec::new()), word("$1"), word("a$b")]);
        assert_eq!(plain, [name("a`b"), name("c"), name("d"), Token::Word("-12.5".to_owned())]);
    }

    #[test]
    fn what_has_no_end_or_is_too_long_is_told_with_its_line() {
        for (text, told) in [
            ("\n'abc", "line 2: a text that begins here has no end"),
            ("\n\n/* abc", "line 3: a comment that begins here has no end"),
            ("`abc", "line 1: a name that begins here has no end"),
            ("\n$a$ $b$ $ $a", "line 2: a text that begins here has no end"),
        ] {
            let mut lexer = Lexer::new(text.as_bytes(), 1 << 20, !text.contains('$'));
            assert_eq!(lexer.token().unwrap_err().to_string(), told);
        }
        let long = format!("'{}'", "x".repeat(IMPORT_VALUE_BYTES + 1));
        let mut lexer = Lexer::new(long.as_bytes(), u64::MAX, true);
        assert!(lexer.token().unwrap_err().to_string().contains("longer than"));
        let mut lexer = Lexer::new("select 1".as_bytes(), 3, true);
        assert!(lexer.token().unwrap_err().to_string().contains("larger than 3 bytes"));
    }
}
