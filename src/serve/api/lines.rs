//! A body as lines, read while it comes: never more of it in memory than one line and what came with it.

use super::body::drain;
use axum::body::{Body, HttpBody};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    limits::{BULK_LINE_BYTES, CREATE_MANY_JOBS, HTTP_BODY_MS},
};
use std::{future::poll_fn, pin::Pin, time::Duration};

/// A line that is not blank, or why there is none; with its number, from 1.
pub(super) type Line = (u64, Result<Vec<u8>, ApiError>);

pub(super) struct Lines {
    body: Option<Body>,
    /// What came of the line that has no end yet.
    begun: Vec<u8>,
    /// That line is over its limit; the rest of it is passed over.
    over: bool,
    number: u64,
}

fn error(code: ErrorCode, message: impl Into<String>) -> ApiError {
    ApiError::new(code, message)
}

impl Lines {
    pub fn new(body: Body) -> Self {
        Self { body: Some(body), begun: Vec::new(), over: false, number: 0 }
    }

    /// The lines that came next, at least one; None at the end. After an error of the body itself there are no more.
    pub async fn next(&mut self) -> Option<Vec<Line>> {
        let mut lines = Vec::new();
        let wait = Duration::from_millis(HTTP_BODY_MS);
        while lines.is_empty() {
            let body = self.body.as_mut()?;
            let frame = tokio::time::timeout(wait, poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx))).await;
            match frame {
                Ok(Some(Ok(frame))) => {
                    let data = frame.into_data().unwrap_or_default();
                    self.feed(&data, &mut lines);
                }
                Ok(None) => {
                    self.body = None;
                    if self.over || !self.begun.is_empty() {
                        self.line(&mut lines);
                    }
                    break;
                }
                Ok(Some(Err(why))) => {
                    self.give_up(&mut lines, error(ErrorCode::MalformedBody, format!("the body broke off: {why}")))
                }
                Err(_) => {
                    let told = format!("nothing of the body came for {} s; send the rest again", wait.as_secs());
                    self.give_up(&mut lines, error(ErrorCode::Timeout, told));
                }
            }
            if self.number > CREATE_MANY_JOBS as u64 {
                // Read away for a while, so that the caller gets to see the answers.
                if let Some(body) = self.body.take() {
                    drain(body).await;
                }
            }
        }
        (!lines.is_empty()).then_some(lines)
    }

    /// No more is read of it, for this reason.
    pub fn ends_with(&mut self, why: ApiError) -> Line {
        self.body = None;
        (self.number + 1, Err(why))
    }

    fn give_up(&mut self, lines: &mut Vec<Line>, why: ApiError) {
        lines.push(self.ends_with(why));
    }

    fn feed(&mut self, data: &[u8], lines: &mut Vec<Line>) {
        for (n, piece) in data.split(|byte| *byte == b'\n').enumerate() {
            if n > 0 {
                self.line(lines);
            }
            if self.number > CREATE_MANY_JOBS as u64 {
                return;
            }
            if self.over || self.begun.len() + piece.len() > BULK_LINE_BYTES {
                (self.over, self.begun) = (true, Vec::new());
            } else {
                self.begun.extend_from_slice(piece);
            }
        }
    }

    /// The line that was begun is whole.
    fn line(&mut self, lines: &mut Vec<Line>) {
        self.number += 1;
        let mut line = std::mem::take(&mut self.begun);
        if self.number == 1 {
            campanile_security::text::unmark(&mut line);
        }
        if self.number > CREATE_MANY_JOBS as u64 {
            let told = format!("a call takes at most {CREATE_MANY_JOBS} lines; send this one and the rest in another");
            lines.push((self.number, Err(error(ErrorCode::BodyTooLarge, told))));
        } else if std::mem::take(&mut self.over) {
            let told = format!("a line has at most {BULK_LINE_BYTES} bytes");
            lines.push((self.number, Err(error(ErrorCode::BodyTooLarge, told))));
        } else if !line.trim_ascii().is_empty() {
            lines.push((self.number, Ok(line)));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(text: &[u8], pieces: usize) -> Vec<(u64, String)> {
        let mut lines = Lines::new(Body::empty());
        let mut read = Vec::new();
        for piece in text.chunks(pieces) {
            lines.feed(piece, &mut read);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        read.extend(runtime.block_on(lines.next()).unwrap_or_default());
        let told = |line: Result<Vec<u8>, ApiError>| match line {
            Ok(line) => String::from_utf8(line).unwrap(),
            Err(error) => error.code,
        };
        read.into_iter().map(|(number, line)| (number, told(line))).collect()
    }

    #[test]
    fn lines_keep_their_numbers_however_they_are_cut() {
        let wanted: Vec<_> = [(1, "a"), (3, "bc\r"), (5, "d")].map(|(n, line)| (n, line.to_owned())).into();
        for pieces in 1..10 {
            assert_eq!(read(b"a\n\nbc\r\n \nd", pieces), wanted, "{pieces}");
            assert_eq!(read(b"a\n\nbc\r\n \nd\n", pieces), wanted, "{pieces}");
        }
        assert_eq!(read(b"", 1), []);
    }

    #[test]
    fn a_line_or_a_call_that_is_too_long_is_told_so_where_it_is() {
        let mut text = vec![b'x'; BULK_LINE_BYTES + 1];
        text.extend_from_slice(b"\nb");
        let too_large = ErrorCode::BodyTooLarge.as_str().to_owned();
        assert_eq!(read(&text, 60_000), [(1, too_large.clone()), (2, "b".to_owned())]);
        let many = read("a\n".repeat(CREATE_MANY_JOBS + 5).as_bytes(), 1_000);
        assert_eq!(many.len(), CREATE_MANY_JOBS + 1);
        assert_eq!(many[CREATE_MANY_JOBS], (CREATE_MANY_JOBS as u64 + 1, too_large));
    }
}
