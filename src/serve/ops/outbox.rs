//! Messages between jobs that wait or were given up.

use super::{Answer, Operations, paging};
use campanile_actors::calls::OutboxAction;
use campanile_schema::{
    operations::{Handle, OutboxDiscard, OutboxList, OutboxResend},
    rpc::calls::{NoBody, RunCall},
    view::{Page, ReasonBody, TenantPageBody, outbox::OutboxMessageView},
};
use campanile_security::auth::Caller;

/// In the order of the runs that send them.
impl Handle<OutboxList> for Operations {
    async fn handle(&self, _: &Caller, body: TenantPageBody) -> Answer<Page<OutboxMessageView>> {
        let wanted = paging::wanted(body.page_token, body.page, body.page_size)?;
        paging::read(wanted, |token, size| self.scheduler.outbox(body.tenant_id.clone(), token, size)).await
    }
}

/// Sends what was given up again, while its receiver knows whether it has acted on it.
impl Handle<OutboxResend> for Operations {
    async fn handle(&self, _: &Caller, request: RunCall<ReasonBody>) -> Answer<NoBody> {
        let (run, _) = request.parts()?;
        self.scheduler.change_outbox(run, OutboxAction::Resend).await.map(|()| NoBody {})
    }
}

/// Takes what was given up off the list.
impl Handle<OutboxDiscard> for Operations {
    async fn handle(&self, _: &Caller, request: RunCall<ReasonBody>) -> Answer<NoBody> {
        let (run, _) = request.parts()?;
        self.scheduler.change_outbox(run, OutboxAction::Discard).await.map(|()| NoBody {})
    }
}
