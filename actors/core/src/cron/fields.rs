//! What the fields of an expression count, in each dialect. The grammar that reads them is one (`items`).

/// What a field is called, what it counts, and which extras it takes.
pub(super) struct Field {
    pub name: &'static str,
    pub min: u32,
    pub max: u32,
    /// End of `*` and of `a/n`: 6 for a UNIX weekday, where 7 is a second name of Sunday; otherwise `max`.
    pub open_max: u32,
    /// A range may run over the end to the start: `NOV-FEB`.
    pub wraps: bool,
    pub names: &'static [&'static str],
    /// Value of the first name.
    pub first_name: u32,
    /// Values among which `H` chooses; `None` = the field takes no `H`.
    pub hash: Option<(u32, u32)>,
    /// Tells the `H` of one field from that of another.
    pub hash_key: u64,
    /// The largest step after `*` or a single value that is read; `None` = any. Quartz refuses larger ones, and cron
    /// takes the first value.
    pub step_max: Option<u32>,
    /// Its bit among those that the compiled expression keeps of steps (`Flags::stepped`): 0 = second to 6 = year.
    pub place: u32,
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const PLAIN: Field = Field {
    name: "",
    min: 0,
    max: 59,
    open_max: 59,
    wraps: false,
    names: &[],
    first_name: 0,
    hash: Some((0, 59)),
    hash_key: 0,
    step_max: None,
    place: 0,
};

/// The fields of one dialect.
pub(super) struct Fields {
    pub second: Field,
    pub minute: Field,
    pub hour: Field,
    pub day: Field,
    pub month: Field,
    pub weekday: Field,
    pub year: Field,
}

/// Where ranges may wrap the dialect is QUARTZ, which bounds its steps.
const fn up_to(wraps: bool, max: u32) -> Option<u32> {
    if wraps { Some(max) } else { None }
}

const fn fields(wraps: bool, weekday: Field) -> Fields {
    Fields {
        second: Field { name: "second", wraps, hash_key: 0, step_max: up_to(wraps, 59), place: 0, ..PLAIN },
        minute: Field { name: "minute", wraps, hash_key: 1, step_max: up_to(wraps, 59), place: 1, ..PLAIN },
        hour: Field {
            name: "hour",
            max: 23,
            open_max: 23,
            hash: Some((0, 23)),
            wraps,
            hash_key: 2,
            step_max: up_to(wraps, 23),
            place: 2,
            ..PLAIN
        },
        // `H` keeps to the days that every month has.
        day: Field {
            name: "day-of-month",
            min: 1,
            max: 31,
            open_max: 31,
            hash: Some((1, 28)),
            wraps,
            hash_key: 3,
            step_max: up_to(wraps, 31),
            place: 3,
            ..PLAIN
        },
        month: Field {
            name: "month",
            min: 1,
            max: 12,
            open_max: 12,
            names: MONTHS,
            first_name: 1,
            hash: Some((1, 12)),
            wraps,
            hash_key: 4,
            step_max: up_to(wraps, 12),
            place: 4,
        },
        weekday,
        year: Field { name: "year", min: 1970, max: 2099, open_max: 2099, hash: None, place: 6, ..PLAIN },
    }
}

/// Sunday is 0 or 7; ranges run forwards.
pub(super) static UNIX: Fields = fields(
    false,
    Field {
        name: "weekday",
        min: 0,
        max: 7,
        open_max: 6,
        wraps: false,
        names: WEEKDAYS,
        first_name: 0,
        hash: Some((0, 6)),
        hash_key: 5,
        step_max: None,
        place: 5,
    },
);

/// Sunday is 1; ranges may wrap, years excepted.
pub(super) static QUARTZ: Fields = fields(
    true,
    Field {
        name: "weekday",
        min: 1,
        max: 7,
        open_max: 7,
        wraps: true,
        names: WEEKDAYS,
        first_name: 1,
        hash: Some((1, 7)),
        hash_key: 5,
        step_max: Some(7),
        place: 5,
    },
);
