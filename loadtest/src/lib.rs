//! Load driver, executors, faults and history checker. Links the client and the schema, never core or actors: what it judges, it
//! does not share.
#![forbid(unsafe_code)]

pub mod bench;
pub mod bulk;
pub mod caller;
pub mod chaos;
pub mod checker;
pub mod children;
pub mod cluster;
pub mod doors;
pub mod drive;
pub mod endurance;
pub mod executor;
pub mod export;
pub mod fleet;
pub mod forget;
pub mod kill9;
pub mod kills;
pub mod latency;
pub mod limits;
pub mod lines;
pub mod load;
pub mod loss;
pub mod mutation;
pub mod node;
pub mod peers;
pub mod people;
pub mod proc_stat;
pub mod proof;
pub mod random;
pub mod record;
pub mod report;
pub mod restore;
pub mod run;
pub mod scenario;
pub mod stats;
pub(crate) mod town;
pub mod workload;
