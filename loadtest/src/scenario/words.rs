//! "Did you mean": finds the known word that is closest to an unknown one.

/// The known word that is close enough to be a slip of `word`.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = word.to_ascii_lowercase();
    let allowed = (wanted.chars().count() / 3).clamp(1, 4);
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&wanted, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(edits, _)| *edits <= allowed)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Adds the closest known word to serde's texts ``unknown field `x`, expected one of `a`, `b` `` and ``unknown variant``.
pub fn explained(message: &str) -> String {
    let rest = message.split_once("unknown field `").or_else(|| message.split_once("unknown variant `"));
    let Some((_, rest)) = rest else { return message.to_owned() };
    let unknown = rest.split('`').next().unwrap_or_default();
    let known = rest.split('`').skip(2).step_by(2);
    match closest(unknown, known) {
        Some(meant) => format!("{message}; did you mean `{meant}`?"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_their_word_and_strangers_do_not() {
        let known = ["rate", "jobs", "fail_percent", "p99_ms"];
        assert_eq!(closest("rtae", known), Some("rate"));
        assert_eq!(closest("fail_precent", known), Some("fail_percent"));
        assert_eq!(closest("p99", known), None);
        assert_eq!(closest("colour", known), None);
        let text = "unknown field `jbos`, expected one of `rate`, `jobs`";
        assert_eq!(explained(text), format!("{text}; did you mean `jobs`?"));
        assert_eq!(explained("missing field `rate`"), "missing field `rate`");
    }
}
