//! Text for `/metrics` that the recorder of the crate `metrics` cannot write: series that come and go, and figures that
//! are read when the page is.

use super::metric::{Kind, Metric};
use std::fmt::Write;

/// Lines of the page. Each family is begun once, and its samples follow.
pub struct Page {
    table: &'static [Metric],
    text: String,
}

impl Page {
    pub(super) fn new(table: &'static [Metric]) -> Self {
        Self { table, text: String::new() }
    }

    /// Begins the samples of a metric with its help text. The table must have the name.
    pub fn family(&mut self, name: &str) {
        if let Some(metric) = self.table.iter().find(|metric| metric.name == name) {
            let Metric { help, kind, .. } = metric;
            self.line(format_args!("\n# HELP {name} {help}"));
            self.line(format_args!("# TYPE {name} {}", kind.as_str()));
            debug_assert!(*kind != Kind::Histogram, "{name}: a histogram has several samples");
        }
    }

    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
        if labels.is_empty() {
            self.line(format_args!("{name} {value}"));
        } else {
            self.line(format_args!("{name}{{{}}} {value}", labels.join(",")));
        }
    }

    /// A metric with one sample and no label.
    pub fn single(&mut self, name: &str, value: f64) {
        self.family(name);
        self.sample(name, &[], value);
    }

    pub fn text(self) -> String {
        self.text
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a String does not fail.
        let _ = writeln!(self.text, "{text}");
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_value_cannot_end_its_line() {
        let mut page = Page::new(&[]);
        page.sample("a", &[("pool", "x\"} 1\nb{y=\"\\")], 2.5);
        assert_eq!(page.text(), "a{pool=\"x\\\"} 1\\nb{y=\\\"\\\\\"} 2.5\n");
    }

    #[test]
    fn a_family_begins_with_what_the_table_says() {
        const TABLE: [Metric; 1] = [Metric {
            name: "process_threads",
            kind: Kind::Gauge,
            help: "Threads of the node",
            labels: &[],
            when: None,
            derived: true,
        }];
        let mut page = Page::new(&TABLE);
        page.single("process_threads", 3.0);
        assert_eq!(
            page.text(),
            "\n# HELP process_threads Threads of the node\n# TYPE process_threads gauge\nprocess_threads 3\n"
        );
    }
}
