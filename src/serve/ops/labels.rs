//! Label selectors: `key=value,key2!=value2,key3`, every term must hold. Checked here so that a slip is told with its
//! term; the shards apply it.

use campanile_schema::limits::{LABEL_BYTES, LABEL_SELECTOR_BYTES, LABELS};

/// One sentence about the first term that cannot be understood.
pub(super) fn check(selector: &str) -> Result<(), String> {
    if selector.len() > LABEL_SELECTOR_BYTES {
        return Err(format!("labels: longer than {LABEL_SELECTOR_BYTES} bytes"));
    }
    if selector.split(',').count() > LABELS {
        return Err(format!("labels: more than {LABELS} terms"));
    }
    for (index, term) in selector.split(',').enumerate() {
        check_term(term).map_err(|why| {
            format!("labels: term {} '{}': {why}; write key=value, key!=value or key", index + 1, term.escape_debug())
        })?;
    }
    Ok(())
}

fn check_term(term: &str) -> Result<(), &'static str> {
    let (key, value) = match term.split_once("!=").or_else(|| term.split_once('=')) {
        Some((key, value)) => (key.trim(), value.trim()),
        None => (term.trim(), ""),
    };
    if key.is_empty() {
        return Err("the key is missing");
    }
    if key.contains(['!', '<', '>', '(', ')', ' ']) {
        return Err("a key cannot have that character");
    }
    if value.contains('=') {
        return Err("more than one '='");
    }
    if key.len() > LABEL_BYTES || value.len() > LABEL_BYTES {
        return Err("too long");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors() {
        for fine in ["a=b", "a", "a!=b", "team=pay,env!=test,owner", "a/b.c=1-2_3", "a=", "a = b"] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        for (wrong, why) in [
            ("", "term 1 '': the key is missing"),
            ("=b", "term 1 '=b': the key is missing"),
            ("a=b,", "term 2 '': the key is missing"),
            ("a==b", "more than one '='"),
            ("!a", "cannot have that character"),
            ("a in (b)", "cannot have that character"),
        ] {
            let told = check(wrong).err().unwrap_or_default();
            assert!(told.contains(why), "{wrong}: {told}");
        }
        assert!(check(&"a,".repeat(LABELS)).is_err());
        assert!(check(&"a".repeat(LABEL_SELECTOR_BYTES + 1)).is_err());
    }
}
