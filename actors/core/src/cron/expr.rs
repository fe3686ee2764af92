//! The compiled form of a cron expression: bit masks in 64 bytes.
//!
//! Three million jobs hold one each (or share it by dialect and text), so it is `Copy` and owns nothing. It does not
//! know its text, its dialect or a zone; it never looks at a clock.

use super::calendar::Month;

/// First year that the year field can name.
pub(super) const FIRST_YEAR: i32 = 1970;
/// Last year that the year field can name. An expression without a year goes on after it.
pub(super) const LAST_YEAR: i32 = 2099;

/// A compiled cron expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CronExpr {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    /// 1970..=2097; the two years after it are in `flags`.
    pub(super) years: [u64; 2],
    pub(super) weekdays: Weekdays,
    pub(super) hours: u32,
    /// Bits 1..=31.
    pub(super) days: u32,
    /// Bit n: the day n before the last one (`L`, `L-n`).
    pub(super) days_from_end: u32,
    /// Bits 1..=31: the weekday nearest to that day (`15W`).
    pub(super) near_days: u32,
    /// Bit n: the weekday nearest to the day n before the last one (`LW`, `L-nW`).
    pub(super) near_days_from_end: u32,
    /// Bits 1..=12.
    pub(super) months: u16,
    pub(super) flags: Flags,
}

/// The size is a promise: it is most of what a passive cron job costs.
const _: () = assert!(size_of::<CronExpr>() <= 64);

/// Weekdays (bit 0 = Sunday): 7 bits for every one, 7 for each of the 1st..5th of the month, 7 for the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Weekdays(u64);

impl Weekdays {
    const LAST: u32 = 42;

    pub fn every(self) -> u32 {
        self.0 as u32 & 0x7f
    }

    pub fn nth(self, nth: u32) -> u32 {
        (self.0 >> (7 * nth)) as u32 & 0x7f
    }

    pub fn last(self) -> u32 {
        (self.0 >> Self::LAST) as u32 & 0x7f
    }

    pub fn add_every(&mut self, weekdays: u32) {
        self.0 |= u64::from(weekdays);
    }

    pub fn add_nth(&mut self, weekday: u32, nth: u32) {
        self.0 |= 1 << (7 * nth + weekday);
    }

    pub fn add_last(&mut self, weekday: u32) {
        self.0 |= 1 << (Self::LAST + weekday);
    }

    /// Only weekdays of every week are named: no `n#k`, no `nL`.
    pub fn plain(self) -> bool {
        self.0 >> 7 == 0
    }
}

/// What the masks alone do not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Flags(u16);

impl Flags {
    pub const YEAR_2098: Flags = Flags(1);
    pub const YEAR_2099: Flags = Flags(1 << 1);
    /// No year is named: it goes on for ever.
    pub const ANY_YEAR: Flags = Flags(1 << 2);
    /// The day-of-month field names days.
    pub const DAYS: Flags = Flags(1 << 3);
    /// The weekday field names days.
    pub const WEEKDAYS: Flags = Flags(1 << 4);
    /// Both day fields must match; otherwise one is enough.
    pub const BOTH: Flags = Flags(1 << 5);
    /// Follows elapsed time under daylight saving (an open second, minute or hour field).
    pub const ELAPSED: Flags = Flags(1 << 6);
    /// In a list, a step goes beyond the end of its range. (Of a field that is one item, its mask tells.)
    pub const STEP_BEYOND: Flags = Flags(1 << 7);

    /// The field (0 = second to 6 = year) is one item with a step of more than 1. Only hazards are read from it: the
    /// masks alone do not tell `*/45` from `0,45`.
    pub fn stepped(place: u32) -> Flags {
        Flags(1 << (8 + place))
    }

    pub fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }

    pub fn set(&mut self, flag: Flags, on: bool) {
        if on {
            self.0 |= flag.0;
        }
    }
}

impl CronExpr {
    /// Nothing matches yet.
    pub(super) const EMPTY: CronExpr = CronExpr {
        seconds: 0,
        minutes: 0,
        years: [0; 2],
        weekdays: Weekdays(0),
        hours: 0,
        days: 0,
        days_from_end: 0,
        near_days: 0,
        near_days_from_end: 0,
        months: 0,
        flags: Flags(0),
    };

    /// Whether daylight saving leaves it alone: a schedule whose second, minute or hour field is `*`, `*/n` or `a/n`
    /// runs in both hours of an overlap and makes nothing up for a gap. Any other is a fixed time of day.
    pub fn follows_elapsed_time(&self) -> bool {
        self.flags.has(Flags::ELAPSED)
    }

    /// False for what no calendar holds (30 February, 29 February of common years): parsing refuses those.
    pub fn can_ever_fire(&self) -> bool {
        let any_year = self.flags.has(Flags::ANY_YEAR);
        if any_year && self.names_a_day_of_every_month() {
            return true;
        }
        // Every kind of year (leap or not, first weekday) is among any 28 years without a common century.
        let years = if any_year { 2000..=2027 } else { FIRST_YEAR..=LAST_YEAR };
        years
            .filter(|year| self.has_year(*year))
            .any(|year| (1..=12).any(|month| self.has_month(month) && self.days_in(Month::of(year, month)) != 0))
    }

    /// The cheap sufficient test, true for nearly all expressions.
    fn names_a_day_of_every_month(&self) -> bool {
        const DAYS_1_TO_28: u32 = 0x1fff_fffe;
        !self.flags.has(Flags::BOTH)
            && (!self.flags.has(Flags::DAYS) || self.days & DAYS_1_TO_28 != 0)
            && (!self.flags.has(Flags::WEEKDAYS) || self.weekdays.every() != 0)
    }

    pub(super) fn has_year(&self, year: i32) -> bool {
        if self.flags.has(Flags::ANY_YEAR) {
            return true;
        }
        match year - FIRST_YEAR {
            index @ 0..=127 => self.years[index as usize / 64] >> (index % 64) & 1 == 1,
            128 => self.flags.has(Flags::YEAR_2098),
            129 => self.flags.has(Flags::YEAR_2099),
            _ => false,
        }
    }

    pub(super) fn add_year(&mut self, year: i32) {
        match year - FIRST_YEAR {
            index @ 0..=127 => self.years[index as usize / 64] |= 1 << (index % 64),
            128 => self.flags.set(Flags::YEAR_2098, true),
            129 => self.flags.set(Flags::YEAR_2099, true),
            _ => unreachable!("the year field is checked before"),
        }
    }

    pub(super) fn has_month(&self, month: u32) -> bool {
        self.months >> month & 1 == 1
    }

    /// The days of a month that match, as bits 1..=31.
    pub(super) fn days_in(&self, month: Month) -> u32 {
        let all = month.all_days();
        match (self.flags.has(Flags::DAYS), self.flags.has(Flags::WEEKDAYS)) {
            (false, false) => all,
            (true, false) => self.days_of_month(month),
            (false, true) => self.days_of_week(month),
            (true, true) if self.flags.has(Flags::BOTH) => self.days_of_month(month) & self.days_of_week(month),
            (true, true) => self.days_of_month(month) | self.days_of_week(month),
        }
    }

    fn days_of_month(&self, month: Month) -> u32 {
        let mut days = self.days & month.all_days();
        if self.days_from_end != 0 {
            days |= month.days_from_end(self.days_from_end);
        }
        let mut near = self.near_days & month.all_days();
        if self.near_days_from_end != 0 {
            near |= month.days_from_end(self.near_days_from_end);
        }
        while near != 0 {
            days |= 1 << month.nearest_weekday(near.trailing_zeros());
            near &= near - 1;
        }
        days
    }

    fn days_of_week(&self, month: Month) -> u32 {
        let mut days = month.days_on(self.weekdays.every());
        if !self.weekdays.plain() {
            for nth in 1..=5 {
                days |= month.nth_days_on(self.weekdays.nth(nth), nth);
            }
            days |= month.last_days_on(self.weekdays.last());
        }
        days
    }
}
