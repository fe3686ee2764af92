//! Dead letters and failed runs of a tenant, and for operators of all tenants, one tenant after the other.

use super::{Answer, Operations, check_times, invalid, paging};
use campanile_actors::scheduler::DeadLetterFilter;
use campanile_schema::{
    operations::{DlqCauses, DlqDiscard, DlqList, DlqRedrive, Handle, RunFailed},
    rpc::calls::{NoBody, RunCall},
    view::{
        DeadLetterView, Page, ReasonBody, RetryBody, RunView, TenantPageBody,
        runs::{CausesBody, CausesView, DeadLettersBody},
    },
};
use campanile_security::auth::Caller;
use std::future::Future;

/// Newest first within a tenant.
impl Handle<DlqList> for Operations {
    fn check(request: &DeadLettersBody) -> Answer<()> {
        check_times(request.from, request.to)
    }

    async fn handle(&self, _: &Caller, body: DeadLettersBody) -> Answer<Page<DeadLetterView>> {
        let wanted = paging::wanted(body.page_token, body.page, body.page_size)?;
        let filter = DeadLetterFilter {
            job: body.job_id,
            from_ms: body.from.map_or(i64::MIN, |from| from.ms()),
            to_ms: body.to.map_or(i64::MAX, |to| to.ms()),
            cause: body.cause.filter(|cause| !cause.is_empty()),
        };
        let of_tenant =
            async |tenant: String, token, size| self.scheduler.dead_letters(&tenant, &filter, token, size).await;
        match body.tenant_id {
            Some(tenant) => paging::read(wanted, |token, size| of_tenant(tenant.clone(), token, size)).await,
            None => {
                let tenants = self.tenant_names().await?;
                paging::read(wanted, |token, size| across(&tenants, token, size, of_tenant)).await
            }
        }
    }
}

/// Of the newest dead letters of a tenant; of all tenants of those of the first ones, in the order of their names.
impl Handle<DlqCauses> for Operations {
    fn check(request: &CausesBody) -> Answer<()> {
        check_times(request.from, request.to)
    }

    async fn handle(&self, _: &Caller, body: CausesBody) -> Answer<CausesView> {
        let tenants = match body.tenant_id {
            Some(tenant) => vec![tenant],
            None => self.tenant_names().await?,
        };
        let (from, to) = (body.from.map_or(i64::MIN, |from| from.ms()), body.to.map_or(i64::MAX, |to| to.ms()));
        self.scheduler.causes(&tenants, from, to).await
    }
}

/// FAILED and TIMEOUT runs, newest first within a tenant.
impl Handle<RunFailed> for Operations {
    async fn handle(&self, _: &Caller, body: TenantPageBody) -> Answer<Page<RunView>> {
        let wanted = paging::wanted(body.page_token, body.page, body.page_size)?;
        let of_tenant = async |tenant: String, token, size| self.scheduler.failed_runs(&tenant, token, size).await;
        match body.tenant_id {
            Some(tenant) => paging::read(wanted, |token, size| of_tenant(tenant.clone(), token, size)).await,
            None => {
                let tenants = self.tenant_names().await?;
                paging::read(wanted, |token, size| across(&tenants, token, size, of_tenant)).await
            }
        }
    }
}

/// As a retry, but it takes only dead letters.
impl Handle<DlqRedrive> for Operations {
    async fn handle(&self, _: &Caller, request: RunCall<RetryBody>) -> Answer<RunView> {
        let (run, body) = request.parts()?;
        self.scheduler.retry_run_anyway(run, true, body).await
    }
}

/// Puts a dead letter away; the run stays in the history.
impl Handle<DlqDiscard> for Operations {
    async fn handle(&self, _: &Caller, request: RunCall<ReasonBody>) -> Answer<NoBody> {
        let (run, body) = request.parts()?;
        self.scheduler.discard_dead_letter(run, body.reason).await.map(|()| NoBody {})
    }
}

impl Operations {
    async fn tenant_names(&self) -> Answer<Vec<String>> {
        let mut names: Vec<String> =
            self.scheduler.tenants().await?.into_iter().map(|tenant| tenant.tenant_id).collect();
        names.sort_unstable();
        Ok(names)
    }
}

/// A page over several tenants in order of name. The token is `TENANT:TOKEN`, the second part empty at a tenant's start.
async fn across<T, F, Fut>(tenants: &[String], token: Option<String>, size: usize, fetch: F) -> Answer<Page<T>>
where
    F: Fn(String, Option<String>, usize) -> Fut,
    Fut: Future<Output = Answer<Page<T>>>,
{
    let (start, mut inner) = match token {
        None => (String::new(), None),
        Some(token) => {
            let (tenant, inner) = token.split_once(':').ok_or_else(|| invalid("pageToken: not one of this list"))?;
            (tenant.to_owned(), Some(inner.to_owned()).filter(|inner| !inner.is_empty()))
        }
    };
    let mut items = Vec::new();
    for tenant in tenants.iter().filter(|tenant| **tenant >= start) {
        if items.len() >= size {
            return Ok(Page { items, next_page_token: Some(format!("{tenant}:")) });
        }
        // The token belongs to the tenant that it names, also when that one is gone by now.
        let token = inner.take().filter(|_| *tenant == start);
        let page = fetch(tenant.clone(), token, size - items.len()).await?;
        items.extend(page.items);
        if let Some(next) = page.next_page_token {
            return Ok(Page { items, next_page_token: Some(format!("{tenant}:{next}")) });
        }
    }
    Ok(Page { items, next_page_token: None })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Tenant `c3` has the items `c30`, `c31`, `c32`.
    async fn of_tenant(tenant: String, token: Option<String>, size: usize) -> Answer<Page<String>> {
        let count: usize = tenant[1..].parse().unwrap();
        let from: usize = token.map_or(0, |token| token.parse().unwrap());
        let to = count.min(from + size);
        let items = (from..to).map(|n| format!("{tenant}{n}")).collect();
        Ok(Page { items, next_page_token: (to < count).then(|| to.to_string()) })
    }

    #[test]
    fn walking_all_tenants_gives_everything_once_in_order() {
        let tenants: Vec<String> = ["a0", "b2", "c3", "d0", "e1"].map(str::to_owned).into();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for size in 1..8 {
            let (mut seen, mut token) = (Vec::new(), None);
            loop {
                let page = runtime.block_on(across(&tenants, token, size, of_tenant)).unwrap();
                assert!(page.items.len() <= size);
                seen.extend(page.items);
                token = page.next_page_token;
                if token.is_none() {
                    break;
                }
            }
            assert_eq!(seen, ["b20", "b21", "c30", "c31", "c32", "e10"], "size {size}");
        }
        assert!(runtime.block_on(across(&tenants, Some("rubbish".into()), 1, of_tenant)).is_err());
    }
}
