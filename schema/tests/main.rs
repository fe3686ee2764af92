//! Tests of the schema, in one program, because each program is linked by itself.
#![allow(clippy::unwrap_used)]

mod forms;
mod forms_of_bulk;
mod forms_of_calendars;
mod golden;
mod golden_forms;
mod graph;
mod job_spec;
mod rpc_codec;
mod rpc_golden;
