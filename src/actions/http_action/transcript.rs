//! What the run's log gets of a request: who was asked, the status, the head of the body; secrets masked.

use crate::mask::Mask;
use campanile_schema::limits::{ERROR_MESSAGE_BYTES, HTTP_ACTION_RESPONSE_BYTES};
use std::collections::BTreeMap;

pub(super) struct Transcript {
    secrets: BTreeMap<String, String>,
    mask: Mask,
    text: Vec<u8>,
    /// Bytes of the present answer's body.
    body: usize,
    /// Where the present answer's body begins in `text`.
    body_from: usize,
}

impl Transcript {
    pub fn new(secrets: &BTreeMap<String, String>) -> Self {
        Self { secrets: secrets.clone(), mask: Mask::new(secrets.values()), text: Vec::new(), body: 0, body_from: 0 }
    }

    /// A line about the exchange; what follows is another body.
    pub fn line(&mut self, line: &str) {
        self.push_line(line);
        (self.body, self.body_from) = (0, self.text.len());
    }

    fn push_line(&mut self, line: &str) {
        self.end_body();
        self.text.extend(self.masked(line).into_bytes());
        self.text.push(b'\n');
    }

    /// Takes a piece of the body; false = enough of it.
    pub fn body(&mut self, piece: &[u8]) -> bool {
        let taken = piece.len().min(HTTP_ACTION_RESPONSE_BYTES - self.body);
        self.body += taken;
        self.text.extend(self.mask.push(piece[..taken].to_vec()));
        if self.body < HTTP_ACTION_RESPONSE_BYTES {
            return true;
        }
        self.push_line(&format!(
            "[campanile: of the answer only the first {HTTP_ACTION_RESPONSE_BYTES} bytes were read]"
        ));
        false
    }

    fn end_body(&mut self) {
        self.text.extend(self.mask.finish());
        if self.text.last().is_some_and(|last| *last != b'\n') {
            self.text.push(b'\n');
        }
    }

    /// The beginning of the last body, for the message of a failed attempt.
    pub fn excerpt(&mut self) -> String {
        self.end_body();
        let body = &self.text[self.body_from..];
        let text = String::from_utf8_lossy(&body[..body.len().min(ERROR_MESSAGE_BYTES / 4)]).trim().to_owned();
        if text.is_empty() { text } else { format!(": {text}") }
    }

    pub fn masked(&self, text: &str) -> String {
        let mut mask = Mask::new(self.secrets.values());
        let mut shown = mask.push(text.as_bytes().to_vec());
        shown.extend(mask.finish());
        String::from_utf8_lossy(&shown).into_owned()
    }

    pub fn take(&mut self) -> Vec<u8> {
        self.end_body();
        std::mem::take(&mut self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript() -> Transcript {
        Transcript::new(&[("k".to_owned(), "hunter2".to_owned())].into())
    }

    fn text(mut transcript: Transcript) -> String {
        String::from_utf8_lossy(&transcript.take()).into_owned()
    }

    #[test]
    fn secrets_are_masked_across_pieces_and_in_lines() {
        let mut transcript = transcript();
        transcript.line("> GET /hunter2");
        assert!(transcript.body(b"it is hun"));
        assert!(transcript.body(b"ter2, hunt"));
        assert_eq!(transcript.excerpt(), ": it is ***, hunt");
        assert_eq!(text(transcript), "> GET /***\nit is ***, hunt\n");
    }

    #[test]
    fn only_the_head_of_an_answer_is_kept() {
        let mut transcript = transcript();
        transcript.line("< 200");
        let mut pieces = 0;
        while transcript.body(&[b'x'; 1000]) {
            pieces += 1;
        }
        assert_eq!(pieces, HTTP_ACTION_RESPONSE_BYTES / 1000);
        let text = text(transcript);
        assert!(text.len() < HTTP_ACTION_RESPONSE_BYTES + 200, "{}", text.len());
        assert!(text.contains("\n[campanile: of the answer only"), "{}", text.len());
    }
}
