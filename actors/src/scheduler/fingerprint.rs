//! The cause of a dead letter: the same for error texts that differ in numbers and ids only.

use campanile_schema::record::RunRecord;
use sha2::{Digest as _, Sha256};

/// Characters of a pattern that count for its cause.
const CHARS: usize = 500;
/// Letters and digits without a gap that are an id from this length on, if a digit is among them.
const ID_CHARS: usize = 8;

/// What a dead letter says of its run.
pub(super) fn dead_letter_reason(record: &RunRecord) -> String {
    record.last_error().map_or_else(|| record.state.to_string(), |e| format!("{}: {e}", record.state))
}

/// Names the error without its numbers and ids, so that the same trouble has the same cause in every run and job.
pub(super) fn cause(reason: &str) -> String {
    let hash = Sha256::digest(pattern(reason));
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The text in small letters, with `#` for each number and each id. It is cut behind that, because ids differ in length.
fn pattern(reason: &str) -> String {
    let text = reason.to_lowercase();
    let mut pattern = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let letters = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        let has_digit = letters.chars().any(|c| c.is_ascii_digit());
        if has_digit && letters.chars().count() >= ID_CHARS {
            pattern.push('#');
        } else {
            let mut in_number = false;
            for c in letters.chars() {
                if !c.is_ascii_digit() {
                    pattern.push(c);
                } else if !in_number {
                    pattern.push('#');
                }
                in_number = c.is_ascii_digit();
            }
        }
        pattern.push_str(&word[letters.len()..]);
    }
    let end = pattern.char_indices().nth(CHARS).map_or(pattern.len(), |(end, _)| end);
    pattern.truncate(end);
    pattern
}

#[cfg(test)]
mod tests {
    use super::{CHARS, cause, pattern};

    #[test]
    fn numbers_and_ids_do_not_make_another_cause() {
        let told = pattern("FAILED: order 4711 (0123-9f1c2a9017d3) timed out after 30s at db2:5432");
        assert_eq!(told, "failed: order # (#-#) timed out after #s at db#:#");
        assert_eq!(pattern("no such file: deadbeefcafe"), "no such file: deadbeefcafe", "a word");
        assert_eq!(pattern("no such file: deadbeef01"), "no such file: #");
        assert_eq!(cause("exit code 3"), cause("Exit code 17"));
        assert_ne!(cause("exit code 3"), cause("signal 3"));
        assert_eq!(cause("x").len(), 16);
    }

    #[test]
    fn the_length_of_a_number_does_not_move_the_end_of_a_long_text() {
        let text = |order: &str| format!("order {order} failed: {}", "because \u{e9} ".repeat(100));
        assert_eq!(pattern(&text("9")), pattern(&text("4711")));
        assert_eq!(pattern(&text("9")).chars().count(), CHARS);
    }
}
