//! What is known of a metric before it is measured. The table of them is in the parent.

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric of a node.
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
    pub labels: &'static [&'static str],
    /// What has to be so for it to be on the page; None: a new node shows it.
    pub when: Option<&'static str>,
    /// The recorder does not have it: it is written when the page is (`Page`).
    pub(super) derived: bool,
}

impl Metric {
    pub fn is_derived(&self) -> bool {
        self.derived
    }
}
