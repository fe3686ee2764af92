//! Callbacks: who triggers a run names somebody who is told when it has ended. One channel of the tenant tells all of them; where a message
//! goes and what signs it are secret params of its run.

use super::Scheduler;
use crate::{ask::ask, calls::ShardCall, handles::SessionHandles};
use campanile_core::action::webhook;
use campanile_ports::SecretOwner;
use campanile_schema::{
    channel::{CALLBACK_JOB, Callback},
    error::{Answer, ApiError, ErrorCode},
    format::MESSAGES_FORMAT,
    ids::{JobId, shard_of_slot, slot_of},
    job::{Action, JobSpec, Trigger},
    stored::{Sealed, StoredJob, StoredTrigger},
};
use std::{collections::BTreeMap, sync::Arc};

impl Scheduler {
    /// What the run keeps of a callback. The channel is there when this has answered.
    pub(super) async fn callback(
        &self,
        handles: &SessionHandles,
        job: JobId,
        callback: Callback,
    ) -> Answer<Arc<Sealed>> {
        let invalid = |why: String| ApiError::new(ErrorCode::InvalidArgument, format!("callback.{why}"));
        webhook::check_callback(&callback.url, callback.secret.as_deref()).map_err(invalid)?;
        if handles.in_use.event() < MESSAGES_FORMAT {
            let why =
                "callback: not all nodes of the cluster run the release that knows it; repeat the call when they do";
            return Err(ApiError::new(ErrorCode::UpgradeUnderWay, why).retry_after(10.0));
        }
        let spec = self.job(job).await?.spec;
        if matches!(spec.action, Some(Action::Webhook { .. })) {
            return Err(invalid("url: the job is a webhook, so it tells somebody itself".to_owned()));
        }
        let tenant = spec.tenant_id;
        let url = Some((webhook::URL.to_owned(), callback.url));
        let secret = callback.secret.map(|secret| (webhook::SECRET.to_owned(), secret));
        let secrets: BTreeMap<String, String> = url.into_iter().chain(secret).collect();
        let sealed = handles.secrets.seal(SecretOwner { tenant: &tenant, job: CALLBACK_JOB }, &secrets);
        let sealed = sealed.ok_or_else(|| {
            let why = "callback: its address and its secret are stored encrypted, which needs a key: set secrets.key_file in the \
                       configuration ('campanile secrets new-key' makes one)";
            ApiError::new(ErrorCode::NoSecretKey, why)
        })?;
        let shard = shard_of_slot(slot_of(&tenant, CALLBACK_JOB), handles.identity.shards);
        let create = ShardCall::Create { spec: Box::new(channel(&tenant)), once: None };
        match ask::<campanile_schema::view::Created>(&handles.client, shard, create).await {
            Ok(_) => {}
            Err(error) if error.code() == ErrorCode::DuplicateName => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Arc::new(sealed))
    }
}

/// The job that tells of a tenant's runs.
fn channel(tenant: &str) -> StoredJob {
    let mut spec = JobSpec::new(tenant, CALLBACK_JOB, Trigger::Manual {});
    // The address is that of each run.
    spec.action = Some(Action::Webhook { url: String::new(), timeout_sec: webhook::CALLBACK_SEC });
    spec.retry_policy.max_attempts = webhook::CALLBACK_ATTEMPTS;
    StoredJob::from_spec(&spec, StoredTrigger::Manual {}, None)
}
