//! What cron takes from the machine: its zone, its users, and who we are.

use std::{collections::BTreeSet, path::Path};

/// The machine's zone as an IANA name: `TZ`, else the link `/etc/localtime`, else `/etc/timezone`, else `UTC`. Names that
/// the zone database does not hold are passed over.
pub fn zone() -> String {
    let link = std::fs::read_link("/etc/localtime").ok();
    let text = std::fs::read_to_string("/etc/timezone").ok();
    choose_zone(std::env::var("TZ").ok().as_deref(), link.as_deref(), text.as_deref())
}

fn choose_zone(tz: Option<&str>, link: Option<&Path>, text: Option<&str>) -> String {
    let inside = |path: &str| {
        let name = path.rsplit_once("/zoneinfo/")?.1;
        Some(name.trim_start_matches("posix/").trim_start_matches("right/").to_owned())
    };
    let tz = tz.map(|tz| tz.trim_start_matches(':')).and_then(|tz| inside(tz).or_else(|| Some(tz.to_owned())));
    let link = link.and_then(|l| inside(l.to_str()?));
    let text = text.map(|t| t.trim().to_owned());
    let known = [tz, link, text]
        .into_iter()
        .flatten()
        .find(|name| !name.is_empty() && !name.starts_with('/') && jiff::tz::TimeZone::get(name).is_ok());
    known.unwrap_or_else(|| "UTC".to_owned())
}

/// The name of the user that this process runs as; its number when no name is known.
pub fn user() -> String {
    let uid = rustix::process::geteuid().as_raw();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse::<u32>() == Ok(uid)).then(|| name.to_owned())
    });
    named.unwrap_or_else(|| uid.to_string())
}

/// Users that `/etc/passwd` names; empty when it cannot be read.
pub(super) fn users() -> BTreeSet<String> {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    passwd.lines().filter_map(|l| l.split_once(':')).map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_comes_from_the_first_place_that_names_a_known_one() {
        let rome = Path::new("/usr/share/zoneinfo/Europe/Rome");
        for (tz, link, text, expected) in [
            (Some("Asia/Tokyo"), Some(rome), Some("UTC\n"), "Asia/Tokyo"),
            (Some(":/usr/share/zoneinfo/Asia/Tokyo"), Some(rome), None, "Asia/Tokyo"),
            (Some(""), Some(rome), Some("UTC\n"), "Europe/Rome"),
            (Some("Nowhere/Land"), Some(rome), None, "Europe/Rome"),
            (None, Some(Path::new("../usr/share/zoneinfo/posix/Europe/Rome")), None, "Europe/Rome"),
            (None, Some(Path::new("/somewhere/else")), Some("Asia/Tokyo\n"), "Asia/Tokyo"),
            (None, None, None, "UTC"),
        ] {
            assert_eq!(choose_zone(tz, link, text), expected, "{tz:?} {link:?} {text:?}");
        }
    }
}
