//! "Did you mean": the closest of a few known words to one that is not known.

use campanile_schema::shape::shortened;
use strsim::osa_distance;

/// Longest word that is compared, bytes.
const LONGEST: usize = 256;

/// The known word that is close enough to be a slip of `word`.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // What is longer than any known word is not a slip of one.
    if word.len() > LONGEST {
        return None;
    }
    let wanted = word.to_ascii_lowercase();
    let allowed = (wanted.chars().count() / 3).clamp(1, 4);
    known
        .into_iter()
        .map(|candidate| {
            (osa_distance(&wanted, &plain(candidate)).min(osa_distance(&plain(word), &plain(candidate))), candidate)
        })
        .filter(|(edits, candidate)| *edits <= allowed || word.len() >= 3 && plain(candidate).contains(&plain(word)))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// serde's sentence about a value of another kind in the words of [`campanile_schema::shape`], without the value.
fn in_words(message: &str) -> Option<String> {
    let (before, rest) = message.split_once("invalid type: ")?;
    let (found, expected) = rest.rsplit_once(", expected ")?;
    let found = match found.split([' ', '`']).next()? {
        "string" => "text",
        "integer" => "a number",
        "floating" => "a number with a fraction",
        "boolean" => "true or false",
        "null" | "unit" | "Option" => "null",
        "sequence" => "a list",
        "map" => "an object",
        _ => return None,
    };
    let (expected, place) = expected.split_once(" at line ").map_or((expected, None), |(e, place)| (e, Some(place)));
    let wanted = match expected {
        "a string" => "text is wanted: write it in quotes",
        "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" => "a whole number is wanted",
        "f32" | "f64" => "a number is wanted",
        "a boolean" => "true or false is wanted",
        "a sequence" => "a list is wanted",
        "a map" => "an object is wanted",
        other if other.starts_with("struct ") || other.starts_with("internally tagged enum ") => "an object is wanted",
        other => &format!("{other} is wanted"),
    };
    let place = place.map(|place| format!(" at line {place}")).unwrap_or_default();
    Some(format!("{before}this is {found}, and {wanted}{place}"))
}

/// Adds the closest known word to serde's texts ``unknown field `x`, expected one of `a`, `b` `` and ``unknown variant``.
pub fn explained(message: &str) -> String {
    const PHRASES: [&str; 2] = ["unknown field `", "unknown variant `"];
    let Some((before, phrase, rest)) =
        PHRASES.into_iter().find_map(|phrase| message.split_once(phrase).map(|(before, rest)| (before, phrase, rest)))
    else {
        return in_words(message).unwrap_or_else(|| message.to_owned());
    };
    // The word may have anything in it; what is known has not.
    let Some(end) = rest.rfind("`, expected ").or_else(|| rest.rfind("`, there are no ")) else {
        return message.to_owned();
    };
    let (unknown, known) = (&rest[..end], &rest[end + 1..]);
    let told = format!("{before}{phrase}{}`{known}", shortened(unknown));
    match closest(unknown, known.split('`').skip(1).step_by(2)) {
        Some(meant) => format!("{told}; did you mean `{meant}`?"),
        None => told,
    }
}

/// `time_zone`, `TimeZone` and `timezone` are one word.
fn plain(word: &str) -> String {
    word.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
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
        for (text, words) in [
            (
                "invalid type: integer `1`, expected a string",
                "this is a number, and text is wanted: write it in quotes",
            ),
            ("invalid type: string \"hunter2, expected\", expected u64", "this is text, and a whole number is wanted"),
            (
                "invalid type: null, expected struct Retry at line 1 column 2",
                "this is null, and an object is wanted at line 1 column 2",
            ),
            (
                "spec: invalid type: boolean `true`, expected a sequence",
                "spec: this is true or false, and a list is wanted",
            ),
        ] {
            assert_eq!(explained(text), words);
        }
        let long = "n".repeat(1 << 20);
        assert!(explained(&format!("unknown field `{long}`, expected `name`")).len() < 200);
        assert_eq!(
            explained("unknown field `a`b`, expected `ab` or `x`"),
            "unknown field `a`b`, expected `ab` or `x`; did you mean `ab`?"
        );
        assert_eq!(explained("missing field `name`"), "missing field `name`");
        assert_eq!(explained("unknown field `zzz`, there are no fields"), "unknown field `zzz`, there are no fields");
    }
}
