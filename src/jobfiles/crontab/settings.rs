//! Variables of a crontab: which are in force at a line, and which of them its command sees.

use super::line::Refusal;
use campanile_schema::limits::{CRONTAB_RANDOM_DELAY_MIN, CRONTAB_SETTINGS};
use std::collections::BTreeMap;

/// What cron keeps for itself or sets by itself: never handed to the command from the file.
const NOT_FOR_THE_COMMAND: [&str; 8] =
    ["MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING", "CRON_TZ", "RANDOM_DELAY", "LOGNAME", "USER"];

/// The settings in force at a line.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    /// All, as written.
    pub all: BTreeMap<String, String>,
    /// Doubts about values, by variable.
    pub doubts: BTreeMap<String, &'static str>,
    pub random_delay_min: u32,
}

impl Settings {
    /// Those that the command sees.
    pub fn for_the_command(&self) -> impl Iterator<Item = (&String, &String)> {
        self.all.iter().filter(|(name, _)| !NOT_FOR_THE_COMMAND.contains(&name.as_str()))
    }

    /// Holds for the lines below.
    pub fn set(&mut self, name: String, value: String, doubt: Option<&'static str>) -> Result<(), Refusal> {
        if name == "RANDOM_DELAY" {
            let minutes = value.trim().parse::<u32>().ok().filter(|m| *m <= CRONTAB_RANDOM_DELAY_MIN);
            self.random_delay_min = minutes.ok_or_else(|| {
                Refusal::new(
                    format!("RANDOM_DELAY '{value}' is no number of minutes from 0 to {CRONTAB_RANDOM_DELAY_MIN}"),
                    "correct it; the lines below are imported with the delay that held before",
                )
            })?;
        }
        if self.all.len() >= CRONTAB_SETTINGS && !self.all.contains_key(&name) {
            return Err(Refusal::new(
                format!("the file has more than {CRONTAB_SETTINGS} variables"),
                "move some into a script; the lines below are imported without this one",
            ));
        }
        match doubt {
            Some(doubt) => self.doubts.insert(name.clone(), doubt),
            None => self.doubts.remove(&name),
        };
        self.all.insert(name, value);
        Ok(())
    }
}
