//! A job on the command line: its id, or its name.

use super::{failure::Failure, remote::Remote};
use campanile_schema::operations::{JobFind, JobGet, Operation};

#[derive(clap::Args)]
pub(super) struct JobRef {
    /// The job's id, or its name; `name:123` for a name that looks like an id
    job: String,
    /// The tenant of a name [default: the credential's; for operators `default`]
    #[arg(long)]
    tenant: Option<String>,
}

impl JobRef {
    pub fn new(job: String, tenant: Option<String>) -> Self {
        Self { job, tenant }
    }

    /// The path of `job.get`.
    pub fn path(&self, remote: &Remote) -> Result<String, Failure> {
        Ok(JobGet::ROW.path_of(self.id(remote)?))
    }

    /// Its number; a name is looked up.
    pub fn id(&self, remote: &Remote) -> Result<String, Failure> {
        let is_id = !self.job.is_empty() && self.job.bytes().all(|byte| byte.is_ascii_digit());
        if is_id {
            return Ok(self.job.clone());
        }
        let name = self.job.strip_prefix("name:").unwrap_or(&self.job).to_owned();
        let found = remote.get(JobFind::PATH, &[("name", Some(name)), ("tenantId", self.tenant.clone())])?;
        let id = found["jobId"].as_u64().ok_or_else(|| Failure::here("the node's answer has no jobId"))?;
        Ok(id.to_string())
    }
}
