//! Line plots as inline SVG: no script, nothing from elsewhere.

use super::{Happened, Stretch};
use crate::limits::PLOT_POINTS;
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 210.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 24.0;
/// Names of phases stand above the frame, where no curve runs through them.
const TOP: f64 = 20.0;
const BOTTOM: f64 = 26.0;
/// Width of a letter of a label, about.
const LETTER: f64 = 6.2;
/// Values of a logarithmic axis begin here.
const LOG_LOW: f64 = 0.1;

/// A curve: its class gives its colour.
pub(super) struct Curve {
    pub name: &'static str,
    pub points: Vec<(f64, Option<f64>)>,
}

/// A plot with its axes.
pub(super) struct Plot<'a> {
    pub title: &'a str,
    pub unit: &'a str,
    pub log: bool,
    pub curves: Vec<Curve>,
    pub stretches: &'a [Stretch],
    pub happened: &'a [Happened],
}

/// Text that may stand in HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A number for people.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    if size >= 1e6 {
        format!("{:.1}M", value / 1e6)
    } else if size >= 10_000.0 {
        format!("{:.0}k", value / 1e3)
    } else if size >= 100.0 || value == value.trunc() {
        format!("{value:.0}")
    } else if size >= 1.0 {
        format!("{value:.1}")
    } else {
        // Two digits that say something, and none that do not: 0.25, 0.1, 0.0012.
        let decimals = (1.0 - size.log10().floor()).clamp(2.0, 9.0) as usize;
        let text = format!("{value:.decimals$}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// The next of 1, 2, 5, 10, 20, ... that is not below the value.
fn round_up(value: f64) -> f64 {
    let ten = 10_f64.powf(value.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * ten).find(|n| *n >= value * 0.999_999).unwrap_or(value)
}

/// Neighbours put together, the highest of them shown: a peak is what one looks for.
fn thinned(points: &[(f64, Option<f64>)]) -> Vec<(f64, Option<f64>)> {
    let many = points.len().div_ceil(PLOT_POINTS).max(1);
    let highest = |part: &[(f64, Option<f64>)]| part.iter().filter_map(|(_, y)| *y).reduce(f64::max);
    points.chunks(many).map(|part| (part[0].0, highest(part))).collect()
}

impl Plot<'_> {
    /// The figure; empty when there is nothing to show.
    pub(super) fn draw(&self) -> String {
        let curves: Vec<_> = self.curves.iter().map(|curve| (curve.name, thinned(&curve.points))).collect();
        let values = || curves.iter().flat_map(|(_, points)| points.iter().filter_map(|(_, y)| *y));
        if values().next().is_none() {
            return String::new();
        }
        let xs = || curves.iter().flat_map(|(_, points)| points.iter().map(|(x, _)| *x));
        let (first, last) = (xs().fold(f64::MAX, f64::min), xs().fold(f64::MIN, f64::max).max(1.0));
        let highest = values().fold(0.0, f64::max);
        // A logarithmic axis ends at a power of ten, so that its end has a number too.
        let top = if self.log { 10_f64.powf(highest.max(1.0).log10().ceil()) } else { round_up(highest) };
        let x = |second: f64| LEFT + (second - first) / (last - first).max(1.0) * (WIDTH - LEFT - RIGHT);
        let high = HEIGHT - TOP - BOTTOM;
        let share = |value: f64| {
            if self.log { (value.max(LOG_LOW) / LOG_LOW).ln() / (top / LOG_LOW).ln() } else { value / top.max(1e-9) }
        };
        let y = |value: f64| TOP + high * (1.0 - share(value));
        let mut svg = format!(
            "<figure><figcaption>{} <small>{}</small></figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
            escaped(self.title),
            escaped(self.unit),
            escaped(self.title)
        );
        let end = |stretch: &Stretch| x((stretch.to_s as f64).min(last)).max(LEFT);
        for (n, stretch) in self.stretches.iter().enumerate().filter(|_| self.stretches.len() > 1) {
            let begin = x(stretch.from_s as f64).max(LEFT);
            let wide = (end(stretch) - begin).max(0.0);
            let name = escaped(&stretch.name);
            let _ = write!(
                svg,
                "<rect class=\"phase{}\" x=\"{begin:.1}\" y=\"{TOP}\" width=\"{wide:.1}\" height=\"{high:.1}\"><title>{name}</title></rect>",
                n % 2
            );
            // A name that does not fit would run into the next one; the pointer still shows it.
            if 3.0 + LETTER * stretch.name.chars().count() as f64 <= wide {
                let at = (begin + 3.0, TOP - 6.0);
                let _ = write!(svg, "<text class=\"phase\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>", at.0, at.1);
            }
        }
        for level in self.levels(top) {
            let at = y(level);
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text class=\"y\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                at + 4.0,
                short(level)
            );
        }
        let step = round_up((last - first) / 8.0).max(1.0);
        let mut second = (first / step).ceil() * step;
        while second <= last {
            let _ =
                write!(svg, "<text class=\"x\" x=\"{:.1}\" y=\"{:.1}\">{second:.0} s</text>", x(second), HEIGHT - 8.0);
            second += step;
        }
        for event in self.happened.iter().filter(|event| (first..=last).contains(&(event.second as f64))) {
            let at = x(event.second as f64);
            let _ = write!(
                svg,
                "<line class=\"event\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{:.1}\"><title>{}</title></line>",
                HEIGHT - BOTTOM,
                escaped(&event.what)
            );
        }
        for (n, (name, points)) in curves.iter().enumerate() {
            let mut path = String::new();
            let mut open = false;
            for (second, value) in points {
                match value {
                    Some(value) => {
                        let _ = write!(path, "{}{:.1} {:.1}", if open { "L" } else { "M" }, x(*second), y(*value));
                        open = true;
                    }
                    None => open = false,
                }
            }
            let highest = points.iter().filter_map(|(_, y)| *y).fold(0.0, f64::max);
            let _ = write!(
                svg,
                "<path class=\"c{n}\" d=\"{path}\"><title>{name}, highest {}</title></path>",
                short(highest)
            );
        }
        svg.push_str("</svg><div class=\"legend\">");
        for (n, (name, _)) in curves.iter().enumerate() {
            let _ = write!(svg, "<span class=\"k{n}\">{}</span>", escaped(name));
        }
        svg.push_str("</div></figure>");
        svg
    }

    fn levels(&self, top: f64) -> Vec<f64> {
        if !self.log {
            // The top is 1, 2 or 5 times a power of ten: so many steps are round numbers too.
            let steps = if (top / 10_f64.powf(top.max(1e-9).log10().floor())).round() == 2.0 { 4 } else { 5 };
            return (0..=steps).map(|n| top * f64::from(n) / f64::from(steps)).collect();
        }
        let mut levels = Vec::new();
        let mut level = LOG_LOW;
        while level <= top * 1.001 {
            levels.push(level);
            level *= 10.0;
        }
        levels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, Option<f64>)>, log: bool) -> String {
        let curves = vec![Curve { name: "a<b", points }];
        Plot { title: "t", unit: "ms", log, curves, stretches: &[], happened: &[] }.draw()
    }

    #[test]
    fn a_plot_has_a_curve_with_holes_and_nothing_outside_the_frame() {
        let svg = plot(vec![(0.0, Some(1.0)), (1.0, None), (2.0, Some(1_500.0)), (3.0, Some(0.0))], true);
        assert_eq!(svg.matches('M').count(), 2, "{svg}");
        assert!(svg.contains("a&lt;b"), "{svg}");
        assert!(!svg.contains("NaN"), "{svg}");
        assert!(!svg.contains("inf"), "{svg}");
        assert!(plot(vec![(0.0, None)], false).is_empty());
        assert!(!plot(vec![(5.0, Some(0.0))], false).contains("NaN"));
    }

    #[test]
    fn names_of_short_phases_do_not_run_into_each_other() {
        let stretch = |name: &str, from_s, to_s| Stretch { name: name.to_owned(), from_s, to_s };
        let stretches =
            [stretch("a-rather-long-name", 0, 1), stretch("long-enough-for-it", 1, 50), stretch("z", 50, 100)];
        let curves = vec![Curve { name: "c", points: vec![(0.0, Some(1.0)), (100.0, Some(1.0))] }];
        let svg = Plot { title: "t", unit: "ms", log: false, curves, stretches: &stretches, happened: &[] }.draw();
        assert!(svg.contains("<title>a-rather-long-name</title>"), "{svg}");
        assert!(!svg.contains(">a-rather-long-name</text>"), "{svg}");
        assert!(svg.contains(">long-enough-for-it</text>"), "{svg}");
    }

    #[test]
    fn long_runs_keep_their_peaks() {
        let mut points: Vec<_> = (0..100_000).map(|n| (f64::from(n), Some(1.0))).collect();
        points[54_321].1 = Some(9.0);
        let thin = thinned(&points);
        assert!(thin.len() <= PLOT_POINTS);
        assert!(thin.iter().any(|(_, y)| *y == Some(9.0)));
    }

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!([0.3, 1.0, 11.0, 499.0].map(round_up), [0.5, 1.0, 20.0, 500.0]);
        assert_eq!([0.25, 7.5, 120.4, 20_000.0, 3e6].map(short), ["0.25", "7.5", "120", "20k", "3.0M"]);
        assert_eq!([0.1, 0.0012, 0.0, -0.25].map(short), ["0.1", "0.0012", "0", "-0.25"]);
        let plot = Plot { title: "t", unit: "u", log: false, curves: Vec::new(), stretches: &[], happened: &[] };
        let labels = |top: f64| plot.levels(top).into_iter().map(short).collect::<Vec<_>>().join(" ");
        assert_eq!(labels(0.5), "0 0.1 0.2 0.3 0.4 0.5");
        assert_eq!(labels(20_000.0), "0 5000 10k 15k 20k");
        assert_eq!(labels(1.0), "0 0.2 0.4 0.6 0.8 1");
    }
}
