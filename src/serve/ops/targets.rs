//! Targets of tenants: named systems that bodies call.

use super::{Answer, Operations, invalid};
use campanile_schema::{
    limits::TARGET_OPEN_SEC,
    operations::{Handle, TargetDelete, TargetGet, TargetList, TargetSet},
    rpc::calls::{Listed, NoBody, TargetCall, TenantCall},
    view::{
        ReasonBody,
        targets::{TargetBody, TargetView},
    },
};
use campanile_security::auth::Caller;

/// The most attempts that a breaker may wait for.
const MIN_ATTEMPTS: u32 = 10_000;

/// The two names and the body of a call.
fn parts<B>(request: TargetCall<B>) -> Answer<(String, String, B)> {
    let (tenant, call) = request.parts()?;
    let (target, body) = call.parts()?;
    Ok((tenant, target, body))
}

impl Handle<TargetList> for Operations {
    async fn handle(&self, _: &Caller, request: TenantCall<NoBody>) -> Answer<Listed<TargetView>> {
        let (tenant, NoBody {}) = request.parts()?;
        Ok(Listed { items: self.scheduler.targets(&tenant).await? })
    }
}

impl Handle<TargetGet> for Operations {
    async fn handle(&self, _: &Caller, request: TargetCall<NoBody>) -> Answer<TargetView> {
        let (tenant, target, NoBody {}) = parts(request)?;
        self.scheduler.target(&tenant, &target).await
    }
}

/// A tenant sets how its own downstreams are spared; its own limits stay an operator's.
impl Handle<TargetSet> for Operations {
    fn check(request: &TargetCall<TargetBody>) -> Answer<()> {
        let settings = &request.body.body;
        let rate = settings.max_runs_per_sec;
        if !rate.is_finite() || !(0.0..=1e9).contains(&rate) {
            return Err(invalid("maxRunsPerSec: must be 0 (no limit) to 1000000000"));
        }
        for (name, percent) in [("retryPercent", settings.retry_percent), ("failurePercent", settings.failure_percent)]
        {
            if percent > 100 {
                return Err(invalid(format!("{name}: must be 0 to 100")));
            }
        }
        if !(1..=MIN_ATTEMPTS).contains(&settings.min_attempts) {
            return Err(invalid(format!("minAttempts: must be 1 to {MIN_ATTEMPTS}")));
        }
        if !(1..=TARGET_OPEN_SEC).contains(&settings.open_sec) {
            return Err(invalid(format!("openSec: must be 1 to {TARGET_OPEN_SEC}")));
        }
        Ok(())
    }

    async fn handle(&self, _: &Caller, request: TargetCall<TargetBody>) -> Answer<TargetView> {
        let (tenant, target, settings) = parts(request)?;
        self.scheduler.set_target(&tenant, &target, &settings).await
    }
}

impl Handle<TargetDelete> for Operations {
    async fn handle(&self, _: &Caller, request: TargetCall<ReasonBody>) -> Answer<NoBody> {
        let (tenant, target, _) = parts(request)?;
        self.scheduler.delete_target(&tenant, &target).await.map(|()| NoBody {})
    }
}
