//! The end of a run: after the last instant, calls and runs end, and the history is recorded.

use super::{early::Early, observations::RunObservations, run_workload::Run, seconds::READ_AFTER_MS};
use crate::{
    run_dir::{
        export::{Scope, export},
        lines::now_us,
    },
    scenario::Tenant,
};
use campanile_schema::ids::JobId;
use std::{collections::BTreeMap, time::Duration};

/// Open runs are asked for so often at the end, milliseconds.
const POLL_MS: i64 = 100;
/// Calls that are still under way at the end get this long.
const LAST_CALLS: Duration = Duration::from_secs(15);

impl Run<'_> {
    /// After the last instant: calls end, runs end, the history is written down.
    pub async fn close(&mut self, seen: &mut RunObservations) -> Result<(), Early> {
        tokio::select! {
            () = seen.calls.finish(LAST_CALLS) => {}
            () = self.stop.wanted() => return Err(Early::Interrupted),
        }
        let frame = seen.created.frame.clone();
        // A ramp that ended early has jobs that are still due.
        if seen.until_s == frame.length_s() as i64 {
            self.drain(seen).await?;
        }
        let ended_early = seen.until_s < frame.length_s() as i64;
        if self.check && ended_early {
            self.check = false;
            self.progress.tell("not judged by the history checker: its ramp ended before its last step");
        }
        if self.check {
            let mut jobs: Vec<JobId> = seen.created.all().collect();
            jobs.extend(seen.calls.created.lock().iter());
            let from_ms = frame.start_ms - seen.created.took_ms - self.scenario.settle_s as i64 * 1000 - 2_000;
            let scope = Scope {
                from_ms,
                until_ms: frame.end_ms() + 1_000,
                drained: seen.runs_left == Some(0),
                quotas: self.limits(|tenant| tenant.max_concurrent_runs),
                rates: self.limits(|tenant| tenant.max_triggers_per_sec),
                queued: self.limits(|tenant| tenant.max_queued_runs),
                ..Scope::default()
            };
            self.progress.tell(&format!("writing down the history of {} jobs", jobs.len()));
            let exported = tokio::select! {
                exported = export(&self.client, &jobs, scope, self.dir) => exported,
                () = self.stop.wanted() => return Err(Early::Interrupted),
            };
            exported.map_err(|error| Early::NotRun(format!("the history cannot be written down: {error}")))?;
        }
        Ok(())
    }

    /// One of the limits of each tenant of the workload; 0 = none.
    fn limits<T>(&self, of: impl Fn(&Tenant) -> T) -> BTreeMap<String, T> {
        self.scenario.tenants.iter().map(|tenant| (tenant.name.clone(), of(tenant))).collect()
    }

    async fn drain(&mut self, seen: &mut RunObservations) -> Result<(), Early> {
        let end_ms = seen.created.frame.end_ms();
        let patience_ms = self.scenario.drain_s as i64 * 1000;
        let mut second = seen.until_s;
        let mut last = seen.at_end;
        loop {
            let asked = tokio::select! {
                asked = self.client.system_info() => asked,
                () = self.stop.wanted() => return Err(Early::Interrupted),
            };
            let left = asked.ok().map(|info| info.open_runs.saturating_sub(self.others));
            let late_ms = (now_us() / 1000 - end_ms).max(0);
            seen.runs_left = left.or(seen.runs_left);
            if left == Some(0) {
                seen.drain_s = Some(late_ms as f64 / 1000.0);
                break;
            }
            if late_ms > patience_ms {
                break;
            }
            self.wait_until(now_us() / 1000 + POLL_MS).await?;
            // Seconds go on, so that the report shows how it drained.
            if now_us() / 1000 >= seen.created.frame.start_ms + (second + 1) * 1000 + READ_AFTER_MS {
                last = self.second(seen, second, "draining", last).await?;
                second += 1;
            }
        }
        seen.at_end = self.used().await;
        Ok(())
    }
}
