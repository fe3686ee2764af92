//! Stored forms of windows and blackouts.

use crate::{
    job::{Blackout, DAY_MINUTES, DayMinute, JobSpec, Trigger, Weekday, Window, WindowEffect},
    text::Text,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};

/// Bit n: the day n of the week, from Monday.
const ALL_DAYS: u8 = 0x7f;

/// Both of a job; one that has neither has none of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredWindows {
    #[serde(rename = "w", default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<StoredWindow>,
    #[serde(rename = "b", default, skip_serializing_if = "Vec::is_empty")]
    pub blackouts: Vec<StoredBlackout>,
}

/// A piece of every week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredWindow {
    #[serde(rename = "n", default, skip_serializing_if = "std::ops::Not::not")]
    pub deny: bool,
    /// Days on which it begins, as bits from Monday.
    #[serde(rename = "d", default = "all_days", skip_serializing_if = "is_all_days")]
    pub days: u8,
    /// Minutes since midnight.
    #[serde(rename = "f", default, skip_serializing_if = "is_midnight")]
    pub from: u16,
    /// The first minute after it; one that is not after `from` is of the next day.
    #[serde(rename = "t", default = "day", skip_serializing_if = "is_day")]
    pub to: u16,
    #[serde(rename = "z")]
    pub zone: Text,
}

/// `from <= instant < to`, ms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredBlackout {
    #[serde(rename = "f")]
    pub from_ms: i64,
    #[serde(rename = "t")]
    pub to_ms: i64,
    #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
}

fn all_days() -> u8 {
    ALL_DAYS
}
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_all_days(days: &u8) -> bool {
    *days == ALL_DAYS
}
fn day() -> u16 {
    DAY_MINUTES
}
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_day(minutes: &u16) -> bool {
    *minutes == DAY_MINUTES
}
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_midnight(minutes: &u16) -> bool {
    *minutes == 0
}

/// The zone of what names none.
pub(super) fn zone_of(trigger: &Trigger) -> &str {
    match trigger {
        Trigger::Cron { timezone, .. } => timezone.as_str(),
        Trigger::FixedRate { .. } | Trigger::FixedDelay { .. } | Trigger::Once { .. } | Trigger::Manual {} => "UTC",
    }
}

impl StoredWindows {
    /// Those of a spec. A window that names no zone takes the one of the trigger.
    pub fn of(spec: &JobSpec) -> Option<Box<Self>> {
        if !spec.has_windows() {
            return None;
        }
        let zone = zone_of(&spec.trigger);
        let windows = spec.windows.iter().map(|window| StoredWindow::of(window, zone)).collect();
        let blackouts = spec.blackouts.iter().map(StoredBlackout::from).collect();
        Some(Box::new(Self { windows, blackouts }))
    }

    /// As callers have them.
    pub fn to_spec(&self) -> (Vec<Window>, Vec<Blackout>) {
        let windows = self.windows.iter().map(StoredWindow::to_window).collect();
        (windows, self.blackouts.iter().map(Blackout::from).collect())
    }
}

impl StoredWindow {
    fn of(window: &Window, zone: &str) -> Self {
        let named = window.days.iter().fold(0, |days, day| days | 1 << day.code());
        Self {
            deny: window.effect == WindowEffect::Deny,
            days: if named == 0 { ALL_DAYS } else { named },
            from: window.from.minutes(),
            to: window.to.minutes(),
            zone: window.timezone.as_deref().unwrap_or(zone).into(),
        }
    }

    fn to_window(&self) -> Window {
        let named = |day: &Weekday| self.days >> day.code() & 1 == 1;
        let days =
            if self.days == ALL_DAYS { Vec::new() } else { Weekday::ALL.iter().copied().filter(named).collect() };
        Window {
            effect: if self.deny { WindowEffect::Deny } else { WindowEffect::Allow },
            days,
            from: DayMinute::new(self.from),
            to: DayMinute::new(self.to),
            timezone: Some(self.zone.to_string()),
        }
    }
}

impl From<&Blackout> for StoredBlackout {
    fn from(blackout: &Blackout) -> Self {
        let reason = blackout.reason.as_deref().filter(|reason| !reason.is_empty()).map(Text::from);
        Self { from_ms: blackout.from.ms(), to_ms: blackout.to.ms(), reason }
    }
}
impl From<&StoredBlackout> for Blackout {
    fn from(blackout: &StoredBlackout) -> Self {
        let reason = blackout.reason.as_ref().map(ToString::to_string);
        Self { from: Timestamp(blackout.from_ms), to: Timestamp(blackout.to_ms), reason }
    }
}
