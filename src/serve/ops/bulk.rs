//! Many jobs in one call, a line each: what one line gets does not depend on the others.

use super::{Answer, Operations, access, invalid};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    job::JobSpec,
    limits::KEY_BYTES,
    operations::{JobCreate, rows},
    rpc::calls::CreateCall,
    view::Created,
};
use campanile_security::auth::Caller;
use tokio::task::JoinSet;

/// What a line's number takes in its key, bytes.
const NUMBER_BYTES: usize = 8;

impl Operations {
    /// Whether this caller may create in bulk, with this key.
    pub fn check_bulk(&self, caller: &Caller, key: Option<&str>) -> Answer<()> {
        let may = access::least(caller, rows::JOB_CREATE_LINES.least);
        may.map_err(|error| self.refused(Some(caller), rows::JOB_CREATE_LINES, error))?;
        // A node that is not ready refuses the call and not each line.
        self.scheduler.now_ms()?;
        match key {
            Some("") => Err(invalid("Idempotency-Key: must not be empty")),
            Some(key) if key.len() > KEY_BYTES - NUMBER_BYTES => {
                let most = KEY_BYTES - NUMBER_BYTES;
                Err(invalid(format!("Idempotency-Key: {} bytes; for a bulk create at most {most}", key.len())))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Creates the jobs of some lines, durable together. With a key, line `n` is a create of its own with the key `KEY/n`: sent
    /// again it answers with the job that it made.
    pub async fn job_create_lines(
        &self,
        caller: &Caller,
        lines: Vec<(u64, JobSpec)>,
        key: Option<&str>,
    ) -> Vec<(u64, Answer<Created>)> {
        let (numbers, specs): (Vec<u64>, Vec<JobSpec>) = lines.into_iter().unzip();
        let answers = match key {
            None => {
                let made = self.create_many(caller, rows::JOB_CREATE_LINES, specs).await;
                made.unwrap_or_else(|error| vec![Err(error); numbers.len()])
            }
            Some(key) => self.create_keyed(caller, &numbers, specs, key).await,
        };
        numbers.into_iter().zip(answers).collect()
    }

    async fn create_keyed(
        &self,
        caller: &Caller,
        numbers: &[u64],
        specs: Vec<JobSpec>,
        key: &str,
    ) -> Vec<Answer<Created>> {
        let gone = || Err(ApiError::new(ErrorCode::Internal, "the create was given up; the node's log says why"));
        let mut answers: Vec<Answer<Created>> = numbers.iter().map(|_| gone()).collect();
        let mut creating = JoinSet::new();
        for (index, (number, spec)) in numbers.iter().zip(specs).enumerate() {
            let (ops, caller) = (self.clone(), caller.clone());
            let call = CreateCall::new(format!("{key}/{number}"), spec);
            creating.spawn(async move { (index, ops.call::<JobCreate>(&caller, call).await) });
        }
        while let Some(created) = creating.join_next().await {
            if let Ok((index, answer)) = created {
                answers[index] = answer;
            }
        }
        answers
    }
}
