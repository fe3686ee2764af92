//! Trouble that a node must survive, or refuse with words that help: poisoned jobs, foreign, damaged and full directories,
//! taken ports, signals, and clocks that are wrong.
#![cfg(feature = "faults")]

mod clock;
mod directory;
mod disk_full;
mod poison;
mod stopping;

use crate::program;
use crate::support;
