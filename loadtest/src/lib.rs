//! Load driver, executors, faults and history checker. It links the client and the schema and never core or actors, so
//! that it shares no code with what it judges.
//!
//! Each mode of the program has a module: [`bench`], [`bulk`], [`chaos`], [`cluster`] (`bench-cluster`), [`endurance`],
//! [`faults`] (`kill9`, `executor-loss`, `restore`, `upgrade`), [`load::drive`], [`measured`] (`dags`, `backfill`),
//! [`peers`], [`proof`], [`run`] and [`process::executor`]. They share the processes that they start ([`process`]), the
//! calls that they make ([`load`]) and the files that they write ([`run_dir`]), which [`checker`] judges.
#![forbid(unsafe_code)]

pub mod bench;
pub mod bulk;
pub mod chaos;
pub mod checker;
pub mod cluster;
pub mod endurance;
pub mod faults;
pub mod limits;
pub mod load;
pub mod measured;
pub mod peers;
pub mod process;
pub mod proof;
pub mod random;
pub mod report;
pub mod run;
pub mod run_dir;
pub mod scenario;
pub(crate) mod test_cluster;
pub mod workload;
