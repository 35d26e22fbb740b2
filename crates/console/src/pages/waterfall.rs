//! Calls over time, as bars on a common scale.

use std::time::Duration;

use gatewright_core::CallRecord;
use maud::{Markup, html};

use super::{Tone, ending, tone, tool_path};
use crate::text;

/// Units of the drawing's width.
const WIDTH: f64 = 1_000.0;
/// Width of the narrowest bar, so that it stays visible.
const NARROWEST: f64 = 4.0;
/// Calls with rows of their own.
const MOST_ROWS: usize = 60;
/// Calls drawn in one strip.
const MOST_BARS: usize = 40;

/// All calls of an execution that took `total`.
pub(crate) fn waterfall(calls: &[CallRecord], more: usize, total: Duration) -> Markup {
    let end = calls
        .iter()
        .map(|call| call.start.saturating_add(call.duration))
        .max()
        .unwrap_or_default()
        .max(total);
    // Calls without an end go on to the edge, and have room to be seen.
    let end = if calls.iter().any(is_open) { end.saturating_mul(5) / 4 } else { end };
    html! {
        @if calls.is_empty() {
            p.soft { "It called no tool." }
        } @else {
            div.scale aria-hidden="true" {
                @for part in 0..=4_u32 { span { (text::duration(end / 4 * part)) } }
            }
            (legend(calls))
            ol.list.waterfall {
                @for call in calls.iter().take(MOST_ROWS) {
                    li {
                        a.name href=(tool_path(&call.tool)) { (text::line(&call.tool, 100)) }
                        span.facts {
                            (ending(&call.ending))
                            @if !is_open(call) { span { span.visually-hidden { "took " } (text::duration(call.duration)) } }
                            span.soft { "from " (text::duration(call.start)) }
                            @if let Some(bytes) = call.bytes { span.soft { (text::size(bytes)) } }
                        }
                        (bars(std::slice::from_ref(call), end))
                    }
                }
            }
            @let more = more + calls.len().saturating_sub(MOST_ROWS);
            @if more > 0 { p.soft { "… and " (text::count(more, "more call")) } }
        }
    }
}

/// Names of the colours, where there is more than one or not only that of success.
fn legend(calls: &[CallRecord]) -> Markup {
    let has = |wanted: Tone| calls.iter().take(MOST_ROWS).any(|call| tone(&call.ending) == wanted);
    let names = [(Tone::Good, "answered"), (Tone::Waiting, "waiting"), (Tone::Bad, "failed")];
    html! {
        @if has(Tone::Waiting) || has(Tone::Bad) {
            ul.legend {
                @for (tone, name) in names.into_iter().filter(|(tone, _)| has(*tone)) { li class=(tone.class()) { (name) } }
            }
        }
    }
}

/// The bar of one call, for a row that states the same in words.
fn bars(calls: &[CallRecord], total: Duration) -> Markup {
    let units = |time: Duration| WIDTH * time.as_secs_f64() / total.as_secs_f64().max(1e-9);
    html! {
        svg.strip viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true" {
            @for call in calls {
                @let width = if is_open(call) { WIDTH - units(call.start) } else { units(call.duration) }.clamp(NARROWEST, WIDTH);
                @let x = units(call.start).min(WIDTH - width);
                rect class=[drawn(tone(&call.ending))] x=(format!("{x:.1}")) y="0" width=(format!("{width:.1}")) height="10" {}
            }
        }
    }
}

/// An execution that took `own`, with its first calls, on a scale of `scale`. Units are microseconds, so that a script can change the scale.
pub(crate) fn strip(calls: &[CallRecord], own: Duration, scale: Duration) -> Markup {
    let most = us(scale.max(own)).max(1);
    let path = |wanted: Tone| {
        let calls = calls.iter().take(MOST_BARS).filter(|call| tone(&call.ending) == wanted);
        let bar = |call: &CallRecord| {
            let (start, width) = (us(call.start).min(most), us(call.duration).min(most));
            format!("M{start} 0h{width}v10h-{width}z")
        };
        calls.map(bar).collect::<String>()
    };
    html! {
        svg.strip.shared viewBox=(format!("0 0 {most} 10")) data-total=(us(own)) preserveAspectRatio="none" aria-hidden="true" {
            rect.whole width=(us(own).max(1)) height="10" {}
            @for tone in [Tone::Good, Tone::Waiting, Tone::Bad] {
                @let path = path(tone);
                @if !path.is_empty() { path class=[drawn(tone)] d=(path) {} }
            }
        }
    }
}

/// Returns `true` for a call without an end.
fn is_open(call: &CallRecord) -> bool {
    call.duration.is_zero() && tone(&call.ending) == Tone::Waiting
}

/// The class of a bar; that of a success has none.
fn drawn(tone: Tone) -> Option<&'static str> {
    (tone != Tone::Good).then(|| tone.class())
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
