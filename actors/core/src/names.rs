//! What jobs, tenants and pools may be called.

use crate::reject::Rejection;
use campanile_schema::{error::ErrorCode, limits};

/// Name of a job: 1..128 of letters, digits, `. _ - /`.
pub fn check_name(name: &str) -> Result<(), Rejection> {
    check_word("name", name, limits::NAME_CHARS, "._-/")
}

/// Name of a tenant or a pool: 1..64 of letters, digits, `. _ -`.
pub fn check_tenant(field: &str, name: &str) -> Result<(), Rejection> {
    check_word(field, name, limits::TENANT_CHARS, "._-")
}

pub(crate) fn check_word(field: &str, text: &str, max: usize, marks: &str) -> Result<(), Rejection> {
    let fits = (1..=max).contains(&text.len());
    if fits && text.chars().all(|c| c.is_ascii_alphanumeric() || marks.contains(c)) {
        return Ok(());
    }
    let marks: Vec<String> = marks.chars().map(String::from).collect();
    Err(Rejection::new(
        ErrorCode::InvalidArgument,
        format!("{field} '{}' must be 1 to {max} ASCII letters, digits or {}", text.escape_debug(), marks.join(" ")),
    ))
}
