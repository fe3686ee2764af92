//! Measured modes besides `bench`: very many runs of DAGs at once (`dags`), and a large backfill beside a live load (`backfill`).

pub mod backfill;
mod bodies;
pub mod dags;
