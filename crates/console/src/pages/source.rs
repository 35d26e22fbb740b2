//! Scripts with numbered lines.

use maud::{Markup, html};

use crate::text;

/// Lines before and after the place of an error, where not all are shown.
const AROUND: usize = 3;
/// Lines of a whole script.
const MOST_LINES: usize = 200;
/// Characters of one line.
const MOST_CHARS: usize = 200;

/// The script, with the place of an error marked. Of a long one the lines around the place, else the first.
pub(crate) fn numbered(script: &str, place: Option<(usize, usize)>) -> Markup {
    let count = script.lines().count();
    let first = match place {
        Some((line, _)) if count > MOST_LINES => line.saturating_sub(MOST_LINES / 2).max(1),
        _ => 1,
    };
    let left = count.saturating_sub(first - 1).saturating_sub(MOST_LINES);
    html! {
        (lines(script, first, MOST_LINES, place, "The script"))
        @if left > 0 || first > 1 { p.soft { "Lines " (first) " to " (count - left) " of " (count) "." } }
    }
}

/// The lines around a place, with a mark under the column.
pub(crate) fn excerpt(script: &str, line: usize, column: usize) -> Markup {
    let first = line.saturating_sub(AROUND).max(1);
    lines(script, first, line + AROUND - first, Some((line, column)), "The script around the error")
}

fn lines(script: &str, first: usize, most: usize, place: Option<(usize, usize)>, label: &str) -> Markup {
    let numbered = script.lines().enumerate().map(|(at, text)| (at + 1, text)).skip(first - 1).take(most);
    html! {
        pre.excerpt tabindex="0" role="region" aria-label=(label) {
            @for (at, text) in numbered {
                @let shown: String = text.chars().take(MOST_CHARS).collect();
                @let here = place.filter(|(line, _)| *line == at);
                span.line.here[here.is_some()] { span.number aria-hidden="true" { (format!("{at:>4} ")) } (text::plain(&shown)) "\n" }
                @if let Some((_, column)) = here {
                    span.mark aria-hidden="true" { "     " (" ".repeat(column.saturating_sub(1).min(MOST_CHARS))) "^\n" }
                }
            }
        }
    }
}
