//! Calendars, as they are stored and as nodes tell each other of them.

use crate::golden_forms::{Coding, Forms, samples::calendars, variants};

pub fn calendars(forms: &mut Forms) {
    use calendars::{calls, changes, record, rules, versions};
    use campanile_schema::peer::calendars::CalendarCall;
    forms.samples("calendars::CalendarVersion", Coding::named(), versions());
    forms.samples("calendars::CalendarRules", Coding::named(), [("every field", rules())]);
    forms.samples("calendars::MinusRules", Coding::named(), [("every field", rules().minus.remove(0))]);
    forms.samples("calendars::CalendarRecord", Coding::named(), [("every field", record())]);
    forms.samples("calendars::CalendarChange", Coding::named(), changes());
    let variants = variants!(CalendarCall: Set, Hold, Get);
    forms.enumeration("calendars::CalendarCall", Coding::named(), variants, calls());
}
