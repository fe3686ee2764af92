//! Counters with labels that the node itself counts. Each exists from the start, so that its first event shows as an
//! increase.

use campanile_actors::measure;
use campanile_cluster::membership::Reason;
use campanile_security::tls;
use campanile_serve::api;

/// Called once, when the recorder is there.
pub fn at_zero() {
    measure::at_zero("campanile_cql_requests_total", "kind", ["lease", "journal", "view", "snapshot"]);
    measure::at_zero("campanile_gateway_calls_total", "result", campanile_cluster::gateway::RESULTS);
    measure::at_zero("campanile_membership_packets_total", "way", ["sent", "received"]);
    measure::at_zero("campanile_membership_refused_total", "reason", Reason::ALL.iter().map(|reason| reason.label()));
    measure::at_zero("campanile_trace_spans_total", "outcome", ["sent", "failed", "dropped"]);
    tls::handshakes_at_zero();
    api::requests_at_zero();
    api::refusals_at_zero();
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_actors::measure::Kind;
    use metrics_exporter_prometheus::PrometheusBuilder;

    #[test]
    fn a_new_node_shows_every_counter_at_zero() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            measure::describe();
            at_zero();
        });
        let page = handle.render();
        let shown = |name: &str| {
            page.lines().any(|line| {
                line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']) && rest.ends_with(" 0"))
            })
        };
        let counters =
            measure::table().into_iter().filter(|metric| metric.kind == Kind::Counter && !metric.is_derived());
        let counters: Vec<&str> = counters.map(|metric| metric.name).collect();
        let lacking: Vec<&&str> = counters.iter().filter(|name| !shown(name)).collect();
        assert!(lacking.is_empty(), "not at zero from the start: {lacking:?}\n{page}");
        assert!(counters.len() > 40);
        assert!(counters.contains(&"dead_letters_total"));
    }
}
