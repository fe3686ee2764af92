//! Figures from a node's page of metrics: counts, and quantiles of how late things were.

use std::collections::BTreeMap;

/// Upper bounds of a histogram with how many were at most that, in rising order; the last bound is infinite.
type Buckets = Vec<(f64, f64)>;

/// What one look at the page told.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// Sums over all labels, by name; by `name{state}` for those that have a state.
    values: BTreeMap<String, f64>,
    histograms: BTreeMap<String, Buckets>,
}

impl Figures {
    /// Reads the text form of Prometheus. Lines that are none of it are left out.
    pub fn read(page: &str) -> Self {
        let mut figures = Self::default();
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let Some((series, value)) = line.rsplit_once(' ') else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            if let (Some(name), Some(bound)) = (name.strip_suffix("_bucket"), label(labels, "le")) {
                let bound = bound.parse().unwrap_or(f64::INFINITY);
                let buckets = figures.histograms.entry(name.to_owned()).or_default();
                match buckets.iter_mut().find(|(known, _)| *known == bound) {
                    Some((_, count)) => *count += value,
                    None => buckets.push((bound, value)),
                }
                continue;
            }
            *figures.values.entry(name.to_owned()).or_default() += value;
            if let Some(state) = label(labels, "state") {
                *figures.values.entry(format!("{name}{{{state}}}")).or_default() += value;
            }
        }
        figures.histograms.values_mut().for_each(|buckets| buckets.sort_by(|a, b| a.0.total_cmp(&b.0)));
        figures
    }

    pub fn value(&self, name: &str) -> f64 {
        self.values.get(name).copied().unwrap_or_default()
    }

    /// What was added since an earlier look; all of it, where there is none, or where the node has begun anew.
    pub fn since(&self, before: Option<&Self>, name: &str) -> f64 {
        let now = self.value(name);
        let before = before.map_or(0.0, |before| before.value(name));
        if now >= before { now - before } else { now }
    }

    /// The bucket that holds a share of what was measured since an earlier look; None: nothing was measured.
    pub fn quantile(&self, before: Option<&Self>, name: &str, share: f64) -> Option<Quantile> {
        let now = self.histograms.get(name)?;
        let before = before.and_then(|before| before.histograms.get(name)).filter(|before| {
            let fits = |((a, count), (b, earlier)): (&(f64, f64), &(f64, f64))| a == b && count >= earlier;
            before.len() == now.len() && now.iter().zip(*before).all(fits)
        });
        let counts: Vec<f64> = match before {
            Some(before) => now.iter().zip(before).map(|((_, count), (_, earlier))| count - earlier).collect(),
            None => now.iter().map(|(_, count)| *count).collect(),
        };
        let all = counts.last().copied().filter(|all| *all > 0.0)?;
        let index = counts.iter().position(|count| *count >= share * all)?;
        let (bound, _) = now[index];
        let below = index.checked_sub(1).map_or(0.0, |below| now[below].0);
        Some(if bound.is_infinite() { Quantile::Over(below) } else { Quantile::UpTo(bound) })
    }
}

/// What a bucket says of a quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Quantile {
    UpTo(f64),
    /// It is in the last bucket, above this bound.
    Over(f64),
}

fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = labels.split_once(&format!("{name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# HELP trigger_delay_ms From the due instant\n# TYPE trigger_delay_ms histogram\n\
trigger_delay_ms_bucket{le=\"1\"} 90\ntrigger_delay_ms_bucket{le=\"5\"} 98\ntrigger_delay_ms_bucket{le=\"50\"} 99\n\
trigger_delay_ms_bucket{le=\"+Inf\"} 100\ntrigger_delay_ms_sum 700\ntrigger_delay_ms_count 100\n\
runs_ended_total{state=\"SUCCESS\"} 80\nruns_ended_total{state=\"FAILED\"} 5\nschedule_fires_total 100\n";

    #[test]
    fn quantiles_are_bounds_of_buckets() {
        let figures = Figures::read(PAGE);
        assert_eq!(figures.quantile(None, "trigger_delay_ms", 0.5), Some(Quantile::UpTo(1.0)));
        assert_eq!(figures.quantile(None, "trigger_delay_ms", 0.95), Some(Quantile::UpTo(5.0)));
        assert_eq!(figures.quantile(None, "trigger_delay_ms", 0.999), Some(Quantile::Over(50.0)));
        assert_eq!(figures.quantile(None, "dispatch_delay_ms", 0.5), None);
        assert_eq!(figures.quantile(Some(&figures), "trigger_delay_ms", 0.5), None, "nothing since then");
    }

    #[test]
    fn what_was_added_since_is_told_also_of_a_node_that_began_anew() {
        let before = Figures::read(PAGE);
        let after =
            Figures::read(&PAGE.replace("total 100", "total 130").replace("le=\"+Inf\"} 100", "le=\"+Inf\"} 104"));
        assert_eq!(after.since(Some(&before), "schedule_fires_total"), 30.0);
        assert_eq!(after.quantile(Some(&before), "trigger_delay_ms", 0.5), Some(Quantile::Over(50.0)));
        let anew = Figures::read("schedule_fires_total 7\n");
        assert_eq!(anew.since(Some(&before), "schedule_fires_total"), 7.0);
    }

    #[test]
    fn states_are_counted_apart_and_together() {
        let figures = Figures::read(PAGE);
        assert_eq!(figures.value("runs_ended_total{FAILED}"), 5.0);
        assert_eq!(figures.value("runs_ended_total"), 85.0);
        assert_eq!(Figures::read("not a page\n<html>"), Figures::default());
    }
}
