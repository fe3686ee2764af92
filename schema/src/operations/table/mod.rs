//! The operations of callers, one file for each area. The comment of each row is its text in the OpenAPI document and on the
//! reference page, which has the areas in the order of [`handled`].

mod administration;
mod jobs;
mod runs;

pub use administration::*;
pub use jobs::*;
pub use runs::*;

use super::{Row, Visit};

/// The row of every operation that has a handler, in the order of the table.
pub fn handled() -> impl Iterator<Item = &'static Row> {
    [jobs::ROWS, runs::ROWS, administration::ROWS].into_iter().flatten().copied()
}

/// Shows every operation to the visitor, in the order of the table.
pub fn visit_all<H, V: Visit<H>>(visitor: &mut V)
where
    H: JobHandlers + RunHandlers + AdministrationHandlers,
{
    jobs::visit_area(visitor);
    runs::visit_area(visitor);
    administration::visit_area(visitor);
}
