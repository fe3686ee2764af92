//! The formats that this build can read and write.

use campanile_schema::format::Formats;

/// The newest formats that this program reads and writes. With the feature `faults`, `CAMPANILE_FORMATS` makes it a later release by so many
/// formats, which differs from this one in nothing else.
pub fn formats() -> Formats {
    #[cfg(feature = "faults")]
    let later = std::env::var("CAMPANILE_FORMATS").ok().and_then(|number| number.trim().parse().ok()).unwrap_or(0);
    #[cfg(not(feature = "faults"))]
    let later = 0;
    Formats { event: Formats::OURS.event + later, wire: Formats::OURS.wire + later }
}
