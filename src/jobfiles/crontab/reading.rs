//! A line with all that it is read by.

use super::settings::Settings;
use std::collections::BTreeSet;

/// Where a line stands.
pub(super) struct LineLocation<'a> {
    pub file: &'a str,
    pub line: u32,
    /// Owner of the file's lines when they have no user column.
    pub owner: &'a str,
    pub known_users: &'a BTreeSet<String>,
}

/// What the hazards of a line are read from.
pub(super) struct Reading<'a> {
    pub place: &'a LineLocation<'a>,
    pub settings: &'a Settings,
    pub user: &'a str,
    /// Runs as the executor's user instead of its own.
    pub as_self: bool,
    /// As written, with its `%`.
    pub written: &'a str,
    pub is_reboot: bool,
    pub input: Option<&'a str>,
}
