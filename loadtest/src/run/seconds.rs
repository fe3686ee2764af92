//! The run second by second: phases begin, everything is looked at, and what must end the run ends it.

use super::{
    early::Early,
    observations::{RunObservations, Used},
    ramp::{self, Step},
    run_workload::{Run, read_tail, room},
    watch::{self, silent_in_a_row},
};
use crate::{
    limits::SILENT_PROBES,
    process::proc_stat::Usage,
    report::{Happened, Second, Use},
    scenario::{OnDeath, Restart},
};

/// Executors write a second's counts soon after it is over; the harness reads them this long after, milliseconds.
pub(super) const READ_AFTER_MS: i64 = 300;

impl Run<'_> {
    /// From the first instant to the last.
    pub async fn seconds(&mut self, seen: &mut RunObservations) -> Result<(), Early> {
        let frame = seen.created.frame.clone();
        let begin_s = frame.start_ms / 1000;
        let mut last = seen.at_start;
        for (n, phase) in frame.phases.iter().enumerate() {
            let stretch = frame.seconds_of(n);
            self.wait_until(frame.start_ms + stretch.start as i64 * 1000).await?;
            if n > 0 && frame.ramp.is_empty() {
                self.note(seen, stretch.start as i64, &format!("phase {}", phase.name));
            }
            if phase.kill_executors > 0 {
                let names = self.system.kill(phase.kill_executors);
                self.note(seen, stretch.start as i64, &format!("kill -9 of {}", names.join(", ")));
            }
            if let Some(count) = phase.executors.filter(|_| n > 0) {
                self.system.scale(&self.client, count).await.map_err(Early::NotRun)?;
                self.note(seen, stretch.start as i64, &format!("{count} executors"));
            }
            if let Some(how) = phase.restart {
                self.restart(seen, stretch.start as i64, &phase.name, how).await?;
            }
            for second in stretch {
                let second = second as i64;
                // All that is due in it counts from here on.
                seen.until_s = second + 1;
                self.wait_until((begin_s + second + 1) * 1000 + READ_AFTER_MS).await?;
                last = self.second(seen, second, &phase.name, last).await?;
                seen.at_end = last;
            }
            if let (Some(_), Some((.., rss_mb))) = (phase.restart, seen.restarts.last_mut()) {
                *rss_mb = last.node.map(|node| node.rss_kb as f64 / 1024.0);
            }
            if self.is_ceiling(seen, n) {
                break;
            }
        }
        Ok(())
    }

    /// Looks at everything once a second.
    pub async fn second(
        &mut self,
        seen: &mut RunObservations,
        second: i64,
        phase: &str,
        last: Used,
    ) -> Result<Used, Early> {
        let used = self.used().await;
        for file in self.system.stats_files() {
            read_tail(&mut self.tails, &file, &mut seen.measure);
        }
        seen.measure.close_old(second);
        let row = self.row(seen, second, &last, &used);
        self.progress.second(&row, phase);
        seen.seconds.insert(second, row);
        for dead in self.system.dead_executors() {
            self.note(seen, second, &format!("{dead} ended by itself; see executors.log"));
            if self.scenario.executors.on_death == OnDeath::Stop {
                return Err(Early::Red(format!(
                    "{dead} ended in second {second}, and the workload says: on_death = \"stop\""
                )));
            }
            if self.system.executor_pids().is_empty() {
                return Err(Early::Red("no executor is left; see executors.log".to_owned()));
            }
        }
        if let Some(status) = self.system.node_ended() {
            let message = format!(
                "the node ended by itself in second {second} ({status}); see {}",
                self.dir.join("node.log").display()
            );
            self.note(seen, second, &message);
            return Err(Early::Red(message));
        }
        if !self.system.is_own() && silent_in_a_row(&seen.up) >= SILENT_PROBES {
            let message = format!(
                "the node at {} did not answer {SILENT_PROBES} probes in a row, up to second {second}: does it still run?",
                self.system.address.rpc
            );
            self.note(seen, second, &message);
            return Err(Early::Red(message));
        }
        room(self.args, self.dir).map_err(Early::NotRun)?;
        Ok(used)
    }

    fn row(&self, seen: &RunObservations, second: i64, last: &Used, used: &Used) -> Second {
        let elapsed_us = (used.at_us - last.at_us).max(1) as f64;
        let part = |now: &Usage, before: &Usage| Use {
            cores: now.cpu_us.saturating_sub(before.cpu_us) as f64 / elapsed_us,
            rss_mb: now.rss_kb as f64 / 1024.0,
            written_mb: now.write_bytes.saturating_sub(before.write_bytes) as f64 / 1e6,
        };
        let told = seen.measure.row(second);
        let start = seen.measure.so_far(second);
        let node = used.node.zip(last.node).map(|(now, before)| part(&now, &before));
        let (executors, harness) = (part(&used.executors, &last.executors), part(&used.harness, &last.harness));
        let machine = used.machine_us.zip(last.machine_us).map(|(now, before)| now.saturating_sub(before) as f64);
        // Without the node's own share it would be among the others.
        let others =
            machine.zip(node).map(|(all, node)| all / elapsed_us - node.cores - executors.cores - harness.cores);
        Second {
            second,
            due: seen.measure.due_in(second),
            received: told.received,
            start_p50_ms: start.map(|p| p.p50_ms),
            start_p99_ms: start.map(|p| p.p99_ms),
            start_p999_ms: start.map(|p| p.p999_ms),
            node,
            executors,
            executor_count: self.system.executor_pids().len(),
            harness,
            others_cores: others.map(|cores| cores.max(0.0)),
            disk_mb: used.disk.map(|bytes| bytes as f64 / 1e6),
            open_runs: used.metrics.open_runs,
            waiting: used.metrics.waiting,
            retrying: used.metrics.retrying,
            lag_events: used.metrics.lag_events,
            lag_ms: used.metrics.lag_s.map(|lag| lag * 1000.0),
            syncs: used.metrics.batches.zip(last.metrics.batches).map(|(now, before)| (now - before).max(0.0)),
            ..Second::default()
        }
    }

    fn note(&self, seen: &mut RunObservations, second: i64, what: &str) {
        self.progress.tell(what);
        seen.happened.push(Happened { second, what: what.to_owned() });
    }

    /// Whether the step of the ramp that just ended was the last one.
    fn is_ceiling(&self, seen: &mut RunObservations, step: usize) -> bool {
        let Some(ramp) = &self.scenario.ramp else { return false };
        let figures = seen.measure.phase(step, seen.until_s);
        let seconds = seen.created.frame.seconds_of(step);
        let lags = seen.seconds.range(seconds.start as i64..seconds.end as i64).filter_map(|(_, s)| s.lag_ms);
        let ended = Step {
            figures: &figures,
            due_last: seen.measure.due_in(seconds.end as i64 - 1),
            lag_p99_ms: ramp::p99(lags),
        };
        let (rate, broken) = (ramp.rates[step], ramp::broken(ramp, &ended));
        if broken.is_empty() {
            seen.ceiling = Some(rate);
            let (start, durable) = (figures.start.p99_ms, figures.durable.p99_ms);
            let lag = ended.lag_p99_ms.unwrap_or_default();
            self.progress
                .tell(&format!("{rate}/s: p99 of starts {start:.0}, durable ends {durable:.0}, lag {lag:.0} ms"));
        } else {
            self.note(seen, seen.until_s - 1, &format!("{rate}/s was not followed: {}", broken.join(", ")));
        }
        !broken.is_empty()
    }

    /// Ends the node and starts it again, while the load goes on.
    async fn restart(
        &mut self,
        seen: &mut RunObservations,
        second: i64,
        phase: &str,
        how: Restart,
    ) -> Result<(), Early> {
        let word = match how {
            Restart::Term => "SIGTERM",
            Restart::Kill => "kill -9",
        };
        self.note(seen, second, &format!("{word} of the node, which is started again"));
        let stop = self.stop.clone();
        let begin_us = tokio::select! {
            begin_us = self.system.restart(how) => begin_us.map_err(Early::Red)?,
            () = stop.wanted() => return Err(Early::Interrupted),
        };
        // It listens for HTTP elsewhere now.
        self.prober = Some(watch::probe(self.system.address.clone(), self.client.clone(), &seen.up));
        seen.measure.restarts.push((begin_us, None));
        seen.restarts.push((phase.to_owned(), word, None));
        Ok(())
    }
}
