//! Replaces the values of secret params in a stream of output by `***`, in every form that they are written in, across the borders
//! of chunks.
//!
//! It never holds back more than the longest value, and lets values below [`SECRET_MASK_MIN_BYTES`] pass: masking `1`
//! would shred the output and tell the value all the same.

use campanile_core::action::http::percent_encode;
use campanile_schema::limits::SECRET_MASK_MIN_BYTES;

pub(crate) struct Mask {
    /// Longest first, so that a value that begins with another one goes whole.
    values: Vec<Vec<u8>>,
    /// Whether any value starts with this byte.
    starts: [bool; 256],
    held: Vec<u8>,
}

/// Every form in which a value is written by us, or comes back from whoever was sent one of them: as it is, percent-encoded in
/// URLs and forms (with digits of both cases, and with `+` for a blank), and inside of a JSON string.
fn forms(value: &str) -> impl Iterator<Item = Vec<u8>> {
    let mut percent = String::new();
    percent_encode(value, &mut percent);
    let mut form = String::new();
    for (n, word) in value.split(' ').enumerate() {
        if n > 0 {
            form.push('+');
        }
        percent_encode(word, &mut form);
    }
    let quoted = serde_json::Value::from(value).to_string();
    let json = quoted[1..quoted.len() - 1].to_owned();
    // Some writers escape the slash, and all that is not ASCII.
    let (json_slash, json_ascii) = (json.replace('/', "\\/"), ascii(&json));
    let encoded = [lower_digits(&percent), lower_digits(&form), percent, form];
    encoded.into_iter().chain([json_slash, json_ascii, json, value.to_owned()]).map(String::into_bytes)
}

/// `%2F` becomes `%2f`.
fn lower_digits(encoded: &str) -> String {
    let mut left = 0;
    let lower = |c: char| {
        if c == '%' {
            left = 3;
        }
        let is_digit = left > 0;
        left -= i32::from(is_digit);
        if is_digit { c.to_ascii_lowercase() } else { c }
    };
    encoded.chars().map(lower).collect()
}

/// What is not ASCII as `\uXXXX`.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text
}

impl Mask {
    pub fn new<'a>(values: impl Iterator<Item = &'a String>) -> Self {
        let mut values: Vec<Vec<u8>> =
            values.filter(|v| v.len() >= SECRET_MASK_MIN_BYTES).flat_map(|v| forms(v)).collect();
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        let mut starts = [false; 256];
        for value in &values {
            starts[usize::from(value[0])] = true;
        }
        Self { values, starts, held: Vec::new() }
    }

    /// What can be shown now; an end that may be the beginning of a value waits for more.
    pub fn push(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        if self.values.is_empty() {
            return bytes;
        }
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(&bytes);
        let mut shown = Vec::with_capacity(all.len());
        let mut at = 0;
        while at < all.len() {
            let rest = &all[at..];
            if !self.starts[usize::from(rest[0])] {
                shown.push(rest[0]);
                at += 1;
            } else if self.values.iter().any(|v| v.len() > rest.len() && v.starts_with(rest)) {
                break;
            } else if let Some(value) = self.values.iter().find(|v| rest.starts_with(v)) {
                shown.extend_from_slice(b"***");
                at += value.len();
            } else {
                shown.push(rest[0]);
                at += 1;
            }
        }
        self.held = all.split_off(at);
        shown
    }

    /// What was held back when the stream ended: whole short values in it are masked, the rest is shown.
    pub fn finish(&mut self) -> Vec<u8> {
        let rest = std::mem::take(&mut self.held);
        let mut shown = Vec::with_capacity(rest.len());
        let mut at = 0;
        while at < rest.len() {
            match self.values.iter().find(|v| rest[at..].starts_with(v)) {
                Some(value) => {
                    shown.extend_from_slice(b"***");
                    at += value.len();
                }
                None => {
                    shown.push(rest[at]);
                    at += 1;
                }
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn masked(values: &[&str], chunks: &[&str]) -> String {
        let values: Vec<String> = values.iter().map(|v| (*v).to_owned()).collect();
        let mut mask = Mask::new(values.iter());
        let mut shown = Vec::new();
        for chunk in chunks {
            shown.extend(mask.push(chunk.as_bytes().to_vec()));
        }
        shown.extend(mask.finish());
        String::from_utf8_lossy(&shown).into_owned()
    }

    #[test]
    fn values_are_masked_also_across_chunks() {
        assert_eq!(masked(&["hunter2"], &["pw=hunter2\n"]), "pw=***\n");
        assert_eq!(masked(&["hunter2"], &["pw=hun", "t", "er2\n"]), "pw=***\n");
        assert_eq!(masked(&["hunter2"], &["pw=hunt", "ing\n"]), "pw=hunting\n");
        assert_eq!(masked(&["hunter2"], &["pw=hunt"]), "pw=hunt");
    }

    #[test]
    fn the_longest_value_wins_and_a_held_prefix_is_still_masked_at_the_end() {
        assert_eq!(masked(&["secret", "secret-long"], &["secret-long secret"]), "*** ***");
        assert_eq!(masked(&["secret", "secret-long"], &["secret-lo"]), "***-lo");
    }

    #[test]
    fn every_form_of_a_value_is_masked() {
        let secret = "a/b c\"d%\\é\n";
        for form in [
            secret,
            "a%2Fb%20c%22d%25%5C%C3%A9%0A",
            "a%2fb%20c%22d%25%5c%c3%a9%0a",
            "a%2Fb+c%22d%25%5C%C3%A9%0A",
            "a%2fb+c%22d%25%5c%c3%a9%0a",
            "a/b c\\\"d%\\\\é\\n",
            "a\\/b c\\\"d%\\\\é\\n",
            "a/b c\\\"d%\\\\\\u00e9\\n",
        ] {
            assert_eq!(masked(&[secret], &["<", form, ">"]), "<***>", "{form}");
        }
    }

    #[test]
    fn short_values_pass() {
        assert_eq!(masked(&["1", "ab"], &["1 ab 1"]), "1 ab 1");
    }

    proptest! {
        #[test]
        fn no_value_survives_however_the_stream_is_cut(text in "[ab]{0,40}", cuts in prop::collection::vec(1usize..9, 0..12)) {
            let mut chunks = Vec::new();
            let mut rest = text.as_str();
            for cut in cuts {
                let (head, tail) = rest.split_at(cut.min(rest.len()));
                chunks.push(head);
                rest = tail;
            }
            chunks.push(rest);
            let shown = masked(&["abba"], &chunks);
            prop_assert!(!shown.contains("abba"));
            prop_assert_eq!(shown, masked(&["abba"], &[&text]));
        }
    }
}
