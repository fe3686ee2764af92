//! Words of enums, and the numbers that are stored for them.

use crate::golden_forms::{Coding, Forms};
use campanile_schema::{
    error::ErrorCode,
    event::{Outcome, SkipReason, StopReason},
    frame,
    job::{
        Backoff, CalendarRule, ConcurrencyPolicy, Dialect, Gap, HttpMethod, JobStatus, MisfirePolicy, OnLostContact,
        Overlap, Weekday, WindowEffect,
    },
    record::{AttemptState, RunState, Source},
    stored::{
        backfill::{BackfillMode, BackfillState},
        bulk::{BulkAction, BulkState},
    },
    view::{ConfirmDecision, ExecutorState},
    watch::JobStep,
};

/// An enum's number, which stored forms have, and its word, which callers and other nodes are sent.
macro_rules! words {
    ($forms:ident: $($module:ident::$name:ident),+ $(,)?) => {$(
        let read = |bytes: &[u8]| {
            let (code, word): (u8, $name) = frame::decode("word", bytes).map_err(|error| error.to_string())?;
            if $name::from_code(code) == Some(word) { Ok(word) } else { Err(format!("{code} is not {word}")) }
        };
        let write = |value: &$name| frame::encode(&(value.code(), value));
        let all = $name::ALL.iter().map(|value| (value.as_str(), *value));
        $forms.samples(concat!(stringify!($module), "::", stringify!($name)), Coding::of(write, read).fixed(), all);
    )+};
}

pub fn words(forms: &mut Forms) {
    words!(forms: view::ExecutorState, event::Outcome, event::SkipReason, event::StopReason, record::RunState,
        record::AttemptState, record::Source, job::Dialect, job::Gap, job::Overlap, job::MisfirePolicy,
        job::ConcurrencyPolicy, job::Backoff, job::OnLostContact, job::JobStatus, job::HttpMethod,
        view::ConfirmDecision, watch::JobStep, backfill::BackfillMode, backfill::BackfillState,
        bulk::BulkAction, bulk::BulkState, job::Weekday, job::WindowEffect,
        job::CalendarRule);
    let read = |bytes: &[u8]| {
        let text: String = frame::decode("code", bytes).map_err(|error| error.to_string())?;
        ErrorCode::parse(&text).ok_or_else(|| format!("{text} is no code"))
    };
    let codes = ErrorCode::ALL.iter().map(|code| (code.as_str(), *code));
    forms.samples(
        "error::ErrorCode",
        Coding::of(|code: &ErrorCode| frame::encode(&code.as_str()), read).fixed(),
        codes,
    );
}
