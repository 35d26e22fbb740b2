//! Calls over time, as bars on a common scale.

use std::time::Duration;

use gatewright_core::CallRecord;
use maud::{Markup, html};

use super::{ending, tool_path};
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
    html! {
        @if calls.is_empty() {
            p.soft { "It called no tool." }
        } @else {
            div.scale aria-hidden="true" {
                @for part in 0..=4_u32 { span { (text::duration(end / 4 * part)) } }
            }
            ol.list.waterfall {
                @for call in calls.iter().take(MOST_ROWS) {
                    li {
                        a.name href=(tool_path(&call.tool)) { (text::line(&call.tool, 100)) }
                        span.facts {
                            (ending(&call.ending))
                            span { span.visually-hidden { "took " } (text::duration(call.duration)) }
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

/// The bar of one call, for a row that states the same in words.
fn bars(calls: &[CallRecord], total: Duration) -> Markup {
    let units = |time: Duration| WIDTH * time.as_secs_f64() / total.as_secs_f64().max(1e-9);
    html! {
        svg.strip viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true" {
            @for call in calls {
                @let width = units(call.duration).clamp(NARROWEST, WIDTH);
                @let x = units(call.start).min(WIDTH - width);
                rect.bad[!call.ending.is_ok()] x=(format!("{x:.1}")) y="0" width=(format!("{width:.1}")) height="10" {}
            }
        }
    }
}

/// An execution that took `own`, with its first calls, on a scale of `scale`. Units are microseconds, so that a script can change the scale.
pub(crate) fn strip(calls: &[CallRecord], own: Duration, scale: Duration) -> Markup {
    let most = us(scale.max(own)).max(1);
    let path = |ok: bool| {
        let calls = calls.iter().take(MOST_BARS).filter(|call| call.ending.is_ok() == ok);
        let bar = |call: &CallRecord| {
            let (start, width) = (us(call.start).min(most), us(call.duration).min(most));
            format!("M{start} 0h{width}v10h-{width}z")
        };
        calls.map(bar).collect::<String>()
    };
    html! {
        svg.strip.shared viewBox=(format!("0 0 {most} 10")) data-total=(us(own)) preserveAspectRatio="none" aria-hidden="true" {
            rect.whole width=(us(own).max(1)) height="10" {}
            @for (ok, path) in [(true, path(true)), (false, path(false))] {
                @if !path.is_empty() { path.bad[!ok] d=(path) {} }
            }
        }
    }
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
