//! Jobs that people write in files: manifests in the style of Kubernetes, and crontabs. They become job specs here; nothing here
//! calls a node.
#![forbid(unsafe_code)]

pub mod crontab;
pub mod manifest;
pub mod suggest;

/// Labels whose names begin so are set by `apply` itself.
pub const LABELS: &str = "apply.";
