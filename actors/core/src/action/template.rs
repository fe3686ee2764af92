//! `{{name}}` in an HTTP action becomes a fact of the attempt. That is all: no conditions, no loops, no functions, so that every
//! template can be judged when the job is created. `\{{` stands for two braces.
//!
//! Who renders says how a value is written where it stands (percent-encoded, as JSON, as it is): see [`Template::render`].

use crate::placeholder::{Piece, pieces, text_of};
use campanile_schema::rpc::executor::Assignment;
use serde_json::Value;

/// What may stand in braces, for messages and the documents.
pub const NAMES: &str = "runId, jobId, jobName, tenantId, attempt, generation, token, invocationId, source, logicalTime, \
                         logicalTimeMs, params, params.NAME, secrets.NAME";

/// What an attempt knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    RunId,
    JobId,
    JobName,
    TenantId,
    Attempt,
    Generation,
    Token,
    /// `runId/generation`, the same for all attempts.
    InvocationId,
    Source,
    /// RFC 3339; null for runs that stand for no instant.
    LogicalTime,
    /// Milliseconds since 1970; null for runs that stand for no instant.
    LogicalTimeMs,
    /// A value in params, by the names (or places in lists) on the way to it; none = all of params.
    Params(Vec<String>),
    Secret(String),
}

impl Fact {
    fn parse(name: &str) -> Result<Self, String> {
        Ok(match name {
            "runId" => Self::RunId,
            "jobId" => Self::JobId,
            "jobName" => Self::JobName,
            "tenantId" => Self::TenantId,
            "attempt" => Self::Attempt,
            "generation" => Self::Generation,
            "token" => Self::Token,
            "invocationId" => Self::InvocationId,
            "source" => Self::Source,
            "logicalTime" => Self::LogicalTime,
            "logicalTimeMs" => Self::LogicalTimeMs,
            "params" => Self::Params(Vec::new()),
            _ => {
                let whole = |names: &[String]| names.iter().all(|name| !name.is_empty());
                if let Some(path) = name.strip_prefix("params.") {
                    let names: Vec<String> = path.split('.').map(str::to_owned).collect();
                    if whole(&names) {
                        return Ok(Self::Params(names));
                    }
                } else if let Some(secret) = name.strip_prefix("secrets.").filter(|secret| !secret.is_empty()) {
                    return Ok(Self::Secret(secret.to_owned()));
                }
                return Err(format!(
                    "'{{{{{}}}}}' is not known; there are {NAMES} (write \\{{{{ for two braces)",
                    name.escape_debug()
                ));
            }
        })
    }
}

/// A text with places for facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece<Fact>>,
}

/// Why a template gives nothing for an attempt. No further attempt of the run would change it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    #[error("params have no '{0}'")]
    NoParam(String),
    #[error("there is no secret param '{0}'")]
    NoSecret(String),
    #[error("it is larger than {0} bytes once filled in")]
    TooLarge(usize),
}

impl Template {
    /// Errors are sentences that name what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(Self { pieces: pieces(text, Fact::parse)? })
    }

    /// Secret params that it names.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Name(Fact::Secret(name)) => Some(name.as_str()),
            Piece::Text(_) | Piece::Name(_) => None,
        })
    }

    /// The text before its first fact; all of it when it has none.
    pub fn head(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Text(text)) => text,
            Some(Piece::Name(_)) | None => "",
        }
    }

    /// The text with `stand_in` in each place, for judging its form.
    pub fn with(&self, stand_in: &str) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::Name(_) => stand_in,
        });
        pieces.collect()
    }

    /// The fact, when there is nothing beside it.
    pub(super) fn only_fact(&self) -> Option<&Fact> {
        match self.pieces.as_slice() {
            [Piece::Name(fact)] => Some(fact),
            _ => None,
        }
    }

    /// Filled in. `write` adds a value's text in the form of the place; at most `limit` bytes come of it.
    pub fn render(
        &self,
        facts: &Facts<'_>,
        limit: usize,
        write: impl Fn(&str, &mut String),
    ) -> Result<String, RenderError> {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Name(fact) => write(&text_of(facts.value(fact)?), &mut out),
            }
            if out.len() > limit {
                return Err(RenderError::TooLarge(limit));
            }
        }
        Ok(out)
    }
}

/// The facts of one attempt.
pub struct Facts<'a> {
    assignment: &'a Assignment,
    params: Value,
}

impl<'a> Facts<'a> {
    pub fn of(assignment: &'a Assignment) -> Self {
        Self { assignment, params: assignment.params.to_value() }
    }

    pub(super) fn value(&self, fact: &Fact) -> Result<Value, RenderError> {
        let a = self.assignment;
        Ok(match fact {
            Fact::RunId => a.run.0.into(),
            Fact::JobId => a.job.0.into(),
            Fact::JobName => a.job_name.as_str().into(),
            Fact::TenantId => a.tenant.as_str().into(),
            Fact::Attempt => a.attempt.into(),
            Fact::Generation => a.generation.into(),
            Fact::Token => a.token.0.into(),
            Fact::InvocationId => a.invocation_id().into(),
            Fact::Source => a.source.as_str().into(),
            Fact::LogicalTime => a.logical_time.map(|at| at.to_string()).into(),
            Fact::LogicalTimeMs => a.logical_time.map(|at| at.ms()).into(),
            Fact::Params(names) => {
                let mut value = &self.params;
                for name in names {
                    let place = || value.as_array().and_then(|list| list.get(name.parse::<usize>().ok()?));
                    value = value.get(name).or_else(place).ok_or_else(|| RenderError::NoParam(names.join(".")))?;
                }
                value.clone()
            }
            Fact::Secret(name) => {
                let secret = a.secrets.get(name).ok_or_else(|| RenderError::NoSecret(name.clone()))?;
                secret.as_str().into()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::action::tests::assignment;

    fn plain(text: &str) -> Result<String, RenderError> {
        let assignment = assignment();
        Template::parse(text).unwrap().render(&Facts::of(&assignment), 100, |value, out| out.push_str(value))
    }

    #[test]
    fn every_name_is_known_and_has_its_value() {
        for (name, value) in [
            ("runId", "11944"),
            ("jobId", "7848"),
            ("jobName", "daily/billing"),
            ("tenantId", "finance"),
            ("attempt", "2"),
            ("generation", "3"),
            ("token", "41"),
            ("invocationId", "11944/3"),
            ("source", "SCHEDULE"),
            ("logicalTime", "2026-06-21T00:00:00.000Z"),
            ("logicalTimeMs", "1782000000000"),
            ("params.customer.name", "Ada \"A\""),
            ("params.list.1", "20"),
            ("params.none", ""),
            ("params.list", "[10,20]"),
            ("secrets.key", "s3cret"),
        ] {
            assert_eq!(plain(&format!("<{{{{ {name} }}}}>")).unwrap(), format!("<{value}>"), "{name}");
        }
        for listed in NAMES.split(", ").filter(|name| !name.contains("NAME")) {
            assert!(Template::parse(&format!("{{{{{listed}}}}}")).is_ok(), "{listed}");
        }
    }

    #[test]
    fn slips_are_named() {
        for (text, told) in [
            ("{{runid}}", "'{{runid}}' is not known; there are runId"),
            ("{{params.}}", "'{{params.}}' is not known"),
            ("{{params..x}}", "is not known"),
            ("{{secrets.}}", "is not known"),
            ("{{}}", "'{{}}' is not known"),
            ("{{#if x}}", "is not known"),
            ("a {{ b", "without '}}'"),
        ] {
            assert!(Template::parse(text).unwrap_err().contains(told), "{text}");
        }
    }

    #[test]
    fn braces_can_be_written_and_what_is_missing_is_told() {
        assert_eq!(plain("a \\{{x}} {b} }} {{attempt}}").unwrap(), "a {{x}} {b} }} 2");
        assert_eq!(plain("{{params.nothing.x}}"), Err(RenderError::NoParam("nothing.x".to_owned())));
        assert_eq!(plain("{{params.list.2}}"), Err(RenderError::NoParam("list.2".to_owned())));
        assert_eq!(plain("{{secrets.other}}"), Err(RenderError::NoSecret("other".to_owned())));
        assert_eq!(plain(&"{{jobName}}".repeat(8)), Err(RenderError::TooLarge(100)));
    }
}
