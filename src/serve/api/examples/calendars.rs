//! Examples of calendars.

use super::{AT, CREATED, ENDED};
use serde_json::{Value, json};

pub fn calendar() -> Value {
    json!({
        "tenantId": "finance", "calendar": "working-days", "version": 2, "effectiveFrom": AT, "spec": spec(),
        "versions": [{"version": 2, "effectiveFrom": AT}, {"version": 1, "effectiveFrom": CREATED}],
    })
}

pub fn spec() -> Value {
    json!({
        "exclude": {"weekly": ["SAT", "SUN"], "dates": ["2026-10-01"]}, "makeUp": {"dates": ["2026-10-10"]},
        "validThrough": "2026-12-31",
    })
}

pub fn preview() -> Value {
    json!({
        "effectiveFrom": AT, "days": ["2026-10-02", "2026-10-10"],
        "jobs": [{"jobId": 8193, "name": "daily-billing", "removed": [AT], "added": [ENDED]}], "truncated": false,
    })
}
