//! Creates jobs through HTTP, `POST /api/v1/jobs/bulk`: a line for each, and an answer a line.

use campanile_client::ClientError;
use campanile_schema::{error::ApiError, job::JobSpec, operations::rows, view::Created};
use serde::Deserialize;
use std::{sync::Arc, time::Duration};
use tokio::task::spawn_blocking;

/// Longest wait for an answer. Less than what batches under way get when a run is ended (`LAST_BATCHES`): what they made is deleted then.
const ANSWER: Duration = Duration::from_secs(8);

/// Where to. Cheap to clone.
#[derive(Clone)]
pub struct Bulk {
    agent: ureq::Agent,
    url: Arc<str>,
    authorization: Arc<str>,
}

/// The answer of one line, as `docs/http.md` says.
#[derive(Deserialize)]
struct Line {
    /// From 1.
    line: usize,
    ok: Option<Created>,
    error: Option<Problem>,
}

/// What we need of problem+json.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Problem {
    code: String,
    detail: String,
    retry_after_sec: Option<f64>,
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self { code: problem.code, message: problem.detail, detail: None, retry_after_sec: problem.retry_after_sec }
    }
}

impl Bulk {
    /// `base`: `http://host:port`.
    pub fn new(base: &str, token: &str) -> Self {
        // A refusal has a body that says why.
        let config = ureq::Agent::config_builder().timeout_global(Some(ANSWER)).http_status_as_error(false);
        Self {
            agent: config.build().into(),
            url: format!("{base}{}", rows::JOB_CREATE_LINES.path()).into(),
            authorization: format!("Bearer {token}").into(),
        }
    }

    /// Whether somebody is there who takes bulk creates from us: asked before jobs are, whose creation would be tried for long.
    pub async fn check(&self) -> Result<(), ClientError> {
        self.create(Vec::new()).await.map(drop)
    }

    /// Creates the jobs; an answer for each, at its place.
    pub async fn create(&self, specs: Vec<JobSpec>) -> Result<Vec<Result<Created, ApiError>>, ClientError> {
        let bulk = self.clone();
        let made = spawn_blocking(move || bulk.post(&specs)).await;
        made.unwrap_or_else(|error| Err(ClientError::Protocol(error.to_string())))
    }

    fn post(&self, specs: &[JobSpec]) -> Result<Vec<Result<Created, ApiError>>, ClientError> {
        let broke = |error: ureq::Error| match error {
            ureq::Error::Timeout(_) => ClientError::Timeout { method: "jobs/bulk", seconds: ANSWER.as_secs_f64() },
            error => ClientError::Io { address: self.url.to_string(), reason: error.to_string() },
        };
        let mut body = Vec::new();
        for spec in specs {
            serde_json::to_writer(&mut body, spec).map_err(|error| ClientError::Protocol(error.to_string()))?;
            body.push(b'\n');
        }
        let request = self.agent.post(&*self.url).header("Authorization", &*self.authorization);
        let mut answer = request.header("Content-Type", "application/x-ndjson").send(&body[..]).map_err(broke)?;
        let text = answer.body_mut().with_config().limit(u64::MAX).read_to_string().map_err(broke)?;
        if answer.status() != 200 {
            let problem: Result<Problem, _> = serde_json::from_str(&text);
            return Err(match problem {
                Ok(problem) => ClientError::Api(problem.into()),
                Err(_) => ClientError::Protocol(format!("HTTP {} {text}", answer.status())),
            });
        }
        answers(&text, specs.len()).map_err(ClientError::Protocol)
    }
}

/// One for each line that was sent.
fn answers(text: &str, count: usize) -> Result<Vec<Result<Created, ApiError>>, String> {
    let mut all = Vec::with_capacity(count);
    for text in text.lines() {
        let Line { line, ok, error } = serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))?;
        if line != all.len() + 1 {
            return Err(format!("the answer of line {line} where that of line {} is due", all.len() + 1));
        }
        all.push(match (ok, error) {
            (Some(created), _) => Ok(created),
            (None, Some(problem)) => Err(problem.into()),
            (None, None) => return Err(format!("neither ok nor error: {text}")),
        });
    }
    if all.len() == count { Ok(all) } else { Err(format!("{} answers to {count} lines", all.len())) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_schema::{error::ErrorCode, ids::JobId};

    #[test]
    fn each_line_has_its_answer_and_a_line_without_one_is_an_error() {
        let fine = r#"{"line":1,"ok":{"jobId":8193,"status":"ENABLED","nextFireAt":"2026-02-25T01:00:00.000Z"}}"#;
        let bad = r#"{"line":2,"error":{"type":"/errors#409_DUPLICATE_NAME","title":"t","status":409,"code":"409_DUPLICATE_NAME","detail":"taken"}}"#;
        let both = answers(&format!("{fine}\n{bad}\n"), 2).unwrap();
        assert_eq!(both[0].as_ref().unwrap().job_id, JobId(8193));
        let error = both[1].as_ref().unwrap_err();
        assert_eq!((error.known(), error.message.as_str()), (ErrorCode::DuplicateName, "taken"));
        for (text, count, why) in [
            (format!("{fine}\n"), 2, "1 answers to 2 lines"),
            (format!("{bad}\n{fine}\n"), 2, "the answer of line 2 where that of line 1 is due"),
            (r#"{"line":1}"#.to_owned(), 1, "neither ok nor error"),
            ("nothing".to_owned(), 1, "expected"),
        ] {
            let told = answers(&text, count).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
    }
}
