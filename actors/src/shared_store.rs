//! The store that the nodes of a cluster share.

use campanile_ports::{Leases, Snapshots, Views};
use std::sync::Arc;

/// See the module's text.
#[derive(Clone)]
pub struct SharedStore {
    pub leases: Arc<dyn Leases>,
    pub snapshots: Arc<dyn Snapshots>,
    pub views: Arc<dyn Views>,
}
