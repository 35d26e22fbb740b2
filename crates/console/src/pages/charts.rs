//! Charts of the last hour: a bar or a line for each minute. Each has its numbers in words, too.

use std::time::Duration;

use maud::{Markup, html};

use crate::{
    hour::{HourSummary, Numbers},
    text,
};

/// Height of a drawing; its width is a unit for each minute.
const HEIGHT: f64 = 30.0;

/// The charts of requests, failures and durations.
pub(crate) fn charts(hour: &HourSummary) -> Markup {
    let Numbers { all, failed, p50_us, p95_us } = hour.total;
    let most = hour.minutes.iter().map(|one| one.all).max().unwrap_or_default();
    let most_failed = hour.minutes.iter().map(|one| one.failed).max().unwrap_or_default();
    let slowest = hour.minutes.iter().map(|one| one.p95_us).max().unwrap_or_default();
    let requests = format!("{} in the last hour, at most {most} a minute", text::count(all as usize, "call"));
    let failures = format!("{} failed, at most {most_failed} a minute", text::count(failed as usize, "call"));
    let durations =
        format!("Half of the calls took up to {}, 95 of 100 up to {}", time(p50_us), time(p95_us));
    html! {
        div.charts {
            (chart("Calls", &text::grouped(all.into()), &requests, most, html! { (bars(&hour.minutes, most, |one| one.all, false)) }))
            (chart("Errors", &text::grouped(failed.into()), &failures, most_failed, html! { (bars(&hour.minutes, most_failed, |one| one.failed, true)) }))
            figure.chart {
                figcaption { span { "p50 / p95" } strong { @if all == 0 { "–" } @else { (time(p50_us)) " / " (time(p95_us)) } } }
                svg viewBox=(format!("0 0 {} {HEIGHT}", hour.minutes.len().max(1))) preserveAspectRatio="none" role="img" aria-label=(durations) {
                    path.p95 d=(line(&hour.minutes, slowest, |one| one.p95_us)) {}
                    path.p50 d=(line(&hour.minutes, slowest, |one| one.p50_us)) {}
                }
                p.scale aria-hidden="true" { span { "60 min ago" } span { "up to " (time(slowest)) } span { "now" } }
            }
        }
    }
}

fn chart(name: &str, total: &str, words: &str, most: u32, bars: Markup) -> Markup {
    html! {
        figure.chart {
            figcaption { span { (name) } strong { (total) } }
            svg viewBox=(format!("0 0 60 {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(words) { (bars) }
            p.scale aria-hidden="true" { span { "60 min ago" } span { "up to " (most) " / min" } span { "now" } }
        }
    }
}

/// A duration in microseconds, for people.
pub(crate) fn time(us: u64) -> String {
    text::duration(Duration::from_micros(us))
}

fn bars(minutes: &[Numbers], most: u32, value: impl Fn(&Numbers) -> u32, bad: bool) -> Markup {
    let height = |one: &Numbers| HEIGHT * f64::from(value(one)) / f64::from(most.max(1));
    let bar = |(at, one): (usize, &Numbers)| {
        let height = height(one);
        (height > 0.0).then(|| format!("M{at}.1 {HEIGHT}v-{height:.1}h.8v{height:.1}z"))
    };
    let path: String = minutes.iter().enumerate().filter_map(bar).collect();
    html! { @if !path.is_empty() { path.bar.bad[bad] d=(path) {} } }
}

/// A line through the minutes that have a value; it has gaps where there is none.
#[expect(clippy::cast_precision_loss, reason = "drawn, not counted")]
fn line(minutes: &[Numbers], most: u64, value: impl Fn(&Numbers) -> u64) -> String {
    let mut path = String::new();
    let mut goes_on = false;
    for (at, one) in minutes.iter().enumerate() {
        let value = value(one);
        if value == 0 {
            goes_on = false;
            continue;
        }
        let y = HEIGHT - (HEIGHT - 2.0) * value as f64 / most.max(1) as f64;
        path.push_str(&match goes_on {
            true => format!("L{at}.5 {y:.1}"),
            // A minute alone is a short line.
            false => format!("M{at}.1 {y:.1}h.8"),
        });
        goes_on = true;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_without_calls_draw_nothing_and_say_so() {
        let empty = HourSummary { minutes: vec![Numbers::default(); 60], ..HourSummary::default() };
        let shown = charts(&empty).into_string();
        assert!(
            shown.contains("0 calls in the last hour") && !shown.contains("NaN") && !shown.contains("inf"),
            "{shown}"
        );
    }

    #[test]
    fn the_highest_bar_fills_the_drawing_and_gaps_stay_gaps() {
        let mut minutes = vec![Numbers::default(); 60];
        minutes[0] = Numbers { all: 4, failed: 0, p50_us: 10, p95_us: 10 };
        minutes[59] = Numbers { all: 2, failed: 1, p50_us: 5, p95_us: 20 };
        let hour = HourSummary { minutes, ..HourSummary::default() };
        let shown = charts(&hour).into_string();
        assert!(
            shown.contains("M0.1 30v-30.0h.8v30.0z") && shown.contains("M59.1 30v-15.0h.8v15.0z"),
            "{shown}"
        );
        assert_eq!(line(&hour.minutes, 20, |one| one.p95_us).matches('M').count(), 2);
    }
}
