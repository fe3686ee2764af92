//! What is known of jobs beside their definitions: explanations, statistics, versions, and what is due soon.

use super::{Answer, Operations, invalid, paging};
use campanile_schema::{
    job::JobView,
    limits::{LOAD_MINUTES, STATISTICS_WINDOW_MS},
    operations::{Handle, JobExplain, JobRollback, JobStatistics, JobVersions, ScheduleLoad},
    rpc::calls::JobCall,
    view::{
        Page,
        explain::{ExplainBody, ExplainView},
        runs::{LoadBody, LoadView, StatisticsBody, StatisticsView},
        versions::{RollbackBody, VersionView, VersionsBody},
    },
};
use campanile_security::auth::Caller;

/// The window of statistics when the call names none, milliseconds.
const WINDOW_MS: i64 = 24 * 3_600_000;
/// Versions of a page when the call names no size: each has a whole definition.
const VERSIONS: usize = 20;

impl Handle<JobExplain> for Operations {
    async fn handle(&self, _: &Caller, request: JobCall<ExplainBody>) -> Answer<ExplainView> {
        let (job, body) = request.parts()?;
        self.scheduler.explain_job(job, body.at).await
    }
}

impl Handle<JobStatistics> for Operations {
    fn check(request: &JobCall<StatisticsBody>) -> Answer<()> {
        window(request.body.window.as_deref()).map(drop)
    }

    async fn handle(&self, _: &Caller, request: JobCall<StatisticsBody>) -> Answer<StatisticsView> {
        let (job, body) = request.parts()?;
        self.scheduler.statistics(job, window(body.window.as_deref())?).await
    }
}

/// `90s`, `30m`, `24h`, `7d`, in milliseconds.
fn window(text: Option<&str>) -> Answer<i64> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(WINDOW_MS) };
    let bad = || {
        invalid(format!("window: write a number with s, m, h or d, such as 24h, instead of '{}'", text.escape_debug()))
    };
    let units = [('s', 1_000), ('m', 60_000), ('h', 3_600_000), ('d', 24 * 3_600_000)];
    let found = units.into_iter().find_map(|(unit, ms)| Some((text.strip_suffix(unit)?, ms)));
    let (number, unit_ms): (&str, u64) = found.ok_or_else(bad)?;
    let number: u64 = number.parse().map_err(|_| bad())?;
    match number.checked_mul(unit_ms) {
        Some(ms @ 1..=STATISTICS_WINDOW_MS) => Ok(ms.cast_signed()),
        Some(_) | None => Err(invalid(format!("window: {text} is not within 1s and 366d"))),
    }
}

/// Minutes ahead when the call names none.
const MINUTES: u32 = 60;

impl Handle<ScheduleLoad> for Operations {
    fn check(request: &LoadBody) -> Answer<()> {
        match request.minutes {
            None | Some(1..=LOAD_MINUTES) => Ok(()),
            Some(_) => Err(invalid(format!("minutes: is 1 to {LOAD_MINUTES}"))),
        }
    }

    async fn handle(&self, _: &Caller, body: LoadBody) -> Answer<LoadView> {
        self.scheduler.load(body.tenant_id, body.minutes.unwrap_or(MINUTES)).await
    }
}

impl Handle<JobVersions> for Operations {
    fn check(request: &JobCall<VersionsBody>) -> Answer<()> {
        before(&request.body)?;
        paging::page_size(request.body.page_size, VERSIONS).map(drop)
    }

    async fn handle(&self, _: &Caller, request: JobCall<VersionsBody>) -> Answer<Page<VersionView>> {
        let (job, body) = request.parts()?;
        let (size, before) = (paging::page_size(body.page_size, VERSIONS)?, before(&body)?);
        self.scheduler.job_versions(job, body.against, before, size).await
    }
}

/// The token of a page is the version below which the next one begins.
fn before(body: &VersionsBody) -> Answer<Option<u64>> {
    let token = body.page_token.as_deref().filter(|token| !token.is_empty());
    token.map(|token| token.parse().map_err(|_| invalid("pageToken: not one of this list"))).transpose()
}

impl Handle<JobRollback> for Operations {
    async fn handle(&self, _: &Caller, request: JobCall<RollbackBody>) -> Answer<JobView> {
        let (job, RollbackBody { to, version, reason }) = request.parts()?;
        self.scheduler.rollback_job(job, to, version, reason).await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_window_is_a_number_with_a_unit() {
        let ms = |text: &str| window(Some(text)).ok();
        assert_eq!([ms("90s"), ms("30m"), ms("24h"), ms("7d")], [90_000, 1_800_000, 86_400_000, 604_800_000].map(Some));
        assert_eq!(window(None).unwrap(), 86_400_000);
        for wrong in ["24", "h", "-1h", "1.5h", "0s", "367d", "1w", "24h\u{e9}"] {
            assert_eq!(ms(wrong), None, "{wrong}");
        }
    }
}
