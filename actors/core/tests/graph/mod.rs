//! DAGs: what compiles, what the rules say, what becomes of random runs, and that every clause broken on purpose is found out.

mod compile;
mod draw;
mod model;
mod order;
mod rules;
mod stories;
mod stories_people;
mod support;
