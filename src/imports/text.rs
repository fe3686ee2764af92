//! Names and texts of other systems, made safe: a job's name has few characters, a text for people has no control characters, and a
//! label has a length.

use campanile_schema::limits::{DESCRIPTION_BYTES, DISPLAY_NAME_CHARS, LABEL_BYTES, NAME_CHARS};

/// Characters of a text in a message, count.
const SHOWN_CHARS: usize = 120;
/// Characters of a sentence, count.
const SENTENCE_CHARS: usize = 600;
/// Characters that are left for the number of a twin, `-100000`.
const TWIN_CHARS: usize = 7;

/// A part of a job's name: other characters become `_`, and it is not empty.
pub fn part(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = text.chars().map(plain).take(NAME_CHARS - TWIN_CHARS).collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

/// A job's name of parts, `quartz/billing/daily`, not longer than a name may be.
pub fn name(parts: &[&str]) -> String {
    let parts: Vec<String> = parts.iter().map(|text| part(text)).collect();
    parts.join("/").chars().take(NAME_CHARS - TWIN_CHARS).collect()
}

/// On one line, without control characters, and not long: for messages.
pub fn shown(text: &str) -> String {
    cut(text, SHOWN_CHARS)
}

/// The same for a whole sentence.
pub fn sentence(text: &str) -> String {
    cut(text, SENTENCE_CHARS)
}

/// A name that people read; None of a text that is empty.
pub fn display_name(text: &str) -> Option<String> {
    let text = cut(text.trim(), DISPLAY_NAME_CHARS - 3);
    (!text.is_empty()).then_some(text)
}

fn cut(text: &str, most: usize) -> String {
    let mut shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(most).collect();
    if text.chars().nth(most).is_some() {
        shown.push_str("...");
    }
    shown
}

/// Lines of text without other control characters; None of one that is empty or too long.
pub fn description(text: &str) -> Option<String> {
    let text: String = text.chars().filter(|c| !c.is_control() || "\n\r\t".contains(*c)).collect();
    (!text.trim().is_empty() && text.len() <= DESCRIPTION_BYTES).then_some(text)
}

/// The value of a label, cut at its end.
pub fn label(text: &str) -> String {
    let mut label = String::new();
    for c in text.chars().map(|c| if c.is_control() { ' ' } else { c }) {
        if label.len() + c.len_utf8() > LABEL_BYTES {
            break;
        }
        label.push(c);
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_a_job_may_be_called() {
        assert_eq!(name(&["quartz", "DEFAULT", "Tägliche Rechnung\n"]), "quartz/DEFAULT/T_gliche_Rechnung_");
        assert_eq!(name(&["xxl", ""]), "xxl/_");
        let long = name(&["a", &"x".repeat(500)]);
        assert_eq!(long.len(), NAME_CHARS - TWIN_CHARS);
        assert!(campanile_core::names::check_name(&format!("{long}-100000")).is_ok());
    }

    #[test]
    fn texts_have_no_control_characters_and_a_length() {
        assert_eq!(shown("a\nb\u{1b}[31m"), "a b [31m");
        assert!(shown(&"x".repeat(500)).ends_with("xx..."));
        assert_eq!(display_name(" \n "), None);
        assert_eq!(display_name("每日账单").as_deref(), Some("每日账单"));
        assert_eq!(description("a\nb\u{7}").as_deref(), Some("a\nb"));
        assert!(label(&"é".repeat(300)).len() <= LABEL_BYTES);
    }
}
