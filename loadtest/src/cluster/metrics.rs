//! What nodes count of themselves, read from their `/metrics`, before and after.

use std::{collections::BTreeMap, time::Duration};

/// A busy node must give them in this time.
const READ: Duration = Duration::from_secs(10);

/// Requests to the store, by what they are for.
pub const REQUESTS: &str = "campanile_cql_requests_total";

/// Counters by name with labels, as Prometheus' text form writes them, of one node or summed over several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters(BTreeMap<String, f64>);

impl Counters {
    fn of(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let parsed = lines.filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Self(parsed.collect())
    }

    /// Of one node. Blocks.
    pub fn read(http: &str, token: &str) -> Result<Self, String> {
        let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(READ)).build().into();
        let wrong = |error: ureq::Error| format!("{http}/metrics cannot be read: {error}");
        let call = agent.get(format!("{http}/metrics")).header("Authorization", format!("Bearer {token}"));
        let text = call.call().and_then(|mut answer| answer.body_mut().read_to_string()).map_err(wrong)?;
        Ok(Self::of(&text))
    }

    pub fn add(&mut self, other: &Self) {
        for (name, value) in &other.0 {
            *self.0.entry(name.clone()).or_default() += value;
        }
    }

    /// All of a name, whatever its labels.
    pub fn sum(&self, name: &str) -> f64 {
        self.labelled(name).map(|(_, value)| value).sum()
    }

    /// Labels and value of each of a name.
    fn labelled<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        self.0.iter().filter_map(move |(key, value)| {
            // Another metric may begin with the same name.
            let labels = key.strip_prefix(name)?;
            (labels.is_empty() || labels.starts_with('{')).then_some((labels, *value))
        })
    }

    /// What a counter rose by since, by the value of its only label.
    pub fn by_label(&self, name: &str, since: &Self) -> BTreeMap<String, f64> {
        let before: BTreeMap<&str, f64> = since.labelled(name).collect();
        let rises = self.labelled(name).map(|(labels, value)| {
            let label = labels.split('"').nth(1).unwrap_or("all").to_owned();
            (label, value - before.get(labels).copied().unwrap_or(0.0))
        });
        rises.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_are_told_by_label_and_nodes_are_summed() {
        let before = Counters::of("# HELP a b\ncampanile_cql_requests_total{kind=\"view\"} 10\nother 7\n");
        let mut after = Counters::of(
            "campanile_cql_requests_total{kind=\"view\"} 30\ncampanile_cql_requests_total{kind=\"journal\"} 5\n\
             campanile_cql_requests_total_x 9\nother 8\n",
        );
        let rise = |after: &Counters| after.by_label(REQUESTS, &before);
        assert_eq!(rise(&after), BTreeMap::from([("view".to_owned(), 20.0), ("journal".to_owned(), 5.0)]));
        after.add(&Counters::of("campanile_cql_requests_total{kind=\"view\"} 1\n"));
        assert_eq!(rise(&after)["view"], 21.0);
        assert_eq!((after.sum(REQUESTS), after.sum("other")), (36.0, 8.0));
    }
}
