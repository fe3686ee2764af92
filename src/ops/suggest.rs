//! "Did you mean": the closest of a few known words to one that is not known.

/// The known word that is close enough to be a slip of `word`.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = word.to_ascii_lowercase();
    let allowed = (wanted.chars().count() / 3).clamp(1, 4);
    known
        .into_iter()
        .map(|candidate| {
            (distance(&wanted, &plain(candidate)).min(distance(&plain(word), &plain(candidate))), candidate)
        })
        .filter(|(edits, candidate)| *edits <= allowed || word.len() >= 3 && plain(candidate).contains(&plain(word)))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Adds the closest known word to serde's texts ``unknown field `x`, expected one of `a`, `b` `` and ``unknown variant``.
pub fn explained(message: &str) -> String {
    let Some((_, rest)) = message.split_once("unknown field `").or_else(|| message.split_once("unknown variant `"))
    else {
        return message.to_owned();
    };
    let mut words = rest.split('`').step_by(2);
    let Some(unknown) = words.next() else {
        return message.to_owned();
    };
    let known: Vec<&str> = rest.split('`').skip(2).step_by(2).collect();
    match closest(unknown, known) {
        Some(meant) => format!("{message}; did you mean `{meant}`?"),
        None => message.to_owned(),
    }
}

/// `time_zone`, `TimeZone` and `timezone` are one word.
fn plain(word: &str) -> String {
    word.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Levenshtein distance with neighbours swapped counting as one, in characters.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().take(64).collect(), right.chars().take(64).collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let mut cost = (last[j] + usize::from(a != b)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                cost = cost.min(before_last[j - 1] + 1);
            }
            row.push(cost);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_their_word_and_strangers_do_not() {
        let fields = ["name", "tenantId", "trigger", "timeoutSec", "retryPolicy", "timezone", "priority"];
        for (slip, meant) in [
            ("nmae", "name"),
            ("tenant_id", "tenantId"),
            ("tenant", "tenantId"),
            ("policy", "retryPolicy"),
            ("TimeZone", "timezone"),
            ("timeout", "timeoutSec"),
            ("timoutSec", "timeoutSec"),
            ("retryPolcy", "retryPolicy"),
        ] {
            assert_eq!(closest(slip, fields), Some(meant), "{slip}");
        }
        for stranger in ["color", "xyz", "", "x"] {
            assert_eq!(closest(stranger, fields), None, "{stranger}");
        }
    }

    #[test]
    fn serdes_texts_are_read() {
        let text = "unknown field `nmae`, expected one of `name`, `trigger` at line 1 column 7";
        assert_eq!(explained(text), format!("{text}; did you mean `name`?"));
        assert_eq!(
            explained("unknown field `reson`, expected `reason`"),
            "unknown field `reson`, expected `reason`; did you mean `reason`?"
        );
        assert_eq!(explained("missing field `name`"), "missing field `name`");
        assert_eq!(explained("unknown field `zzz`, there are no fields"), "unknown field `zzz`, there are no fields");
    }
}
