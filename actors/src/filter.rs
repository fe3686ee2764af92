//! Which jobs a list shows: status, tenant, part of the name, label selector.

use campanile_schema::{
    channel::is_hidden,
    job::{JobSpec, JobStatus, JobView},
    view::JobFilter,
};
use std::collections::BTreeMap;

/// One term of a label selector: `key=value`, `key!=value` or `key`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    Equal(String, String),
    NotEqual(String, String),
    Has(String),
}

/// A compiled filter.
#[derive(Clone, Debug, Default)]
pub struct JobMatcher {
    tenant: Option<String>,
    status: Option<JobStatus>,
    text: Option<String>,
    terms: Vec<Term>,
}

impl JobMatcher {
    /// Errors name the term that cannot be read.
    pub fn parse(filter: &JobFilter) -> Result<Self, String> {
        let mut terms = Vec::new();
        for term in filter.labels.iter().flat_map(|l| l.split(',')).map(str::trim).filter(|t| !t.is_empty()) {
            let parsed = if let Some((key, value)) = term.split_once("!=") {
                Term::NotEqual(key.trim().to_owned(), value.trim().to_owned())
            } else if let Some((key, value)) = term.split_once('=') {
                Term::Equal(key.trim().to_owned(), value.trim_start_matches('=').trim().to_owned())
            } else {
                Term::Has(term.to_owned())
            };
            let (Term::Equal(key, _) | Term::NotEqual(key, _) | Term::Has(key)) = &parsed;
            if key.is_empty() {
                return Err(format!("labels: '{term}' has no key; write key=value, key!=value or key"));
            }
            terms.push(parsed);
        }
        Ok(Self {
            tenant: filter.tenant_id.clone(),
            status: filter.status,
            text: filter.text.as_ref().map(|t| t.to_lowercase()),
            terms,
        })
    }

    /// For filters that were checked at the door: a term that cannot be read matches nothing more.
    pub fn lenient(filter: &JobFilter) -> Self {
        Self::parse(filter).unwrap_or_default()
    }

    pub fn matches(&self, job: &JobView) -> bool {
        !is_hidden(&job.spec.name)
            && self.tenant.as_ref().is_none_or(|t| *t == job.spec.tenant_id)
            && self.status.is_none_or(|s| s == job.status)
            && self.text.as_ref().is_none_or(|text| has_text(&job.spec, text))
            && self.labels(&job.spec.labels)
    }

    /// Whether the selector's terms hold for these.
    pub fn labels(&self, labels: &BTreeMap<String, String>) -> bool {
        self.terms.iter().all(|term| match term {
            Term::Equal(key, value) => labels.get(key) == Some(value),
            Term::NotEqual(key, value) => labels.get(key) != Some(value),
            Term::Has(key) => labels.contains_key(key),
        })
    }
}

/// Whether a part of what people wrote about a job is this, in small letters: its names, description, owner and annotations.
fn has_text(spec: &JobSpec, text: &str) -> bool {
    let has = |field: &String| field.to_lowercase().contains(text);
    has(&spec.name)
        || [&spec.display_name, &spec.description, &spec.owner].into_iter().flatten().any(has)
        || spec.annotations.iter().any(|(key, value)| has(key) || has(value))
}
