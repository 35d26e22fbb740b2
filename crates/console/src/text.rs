//! Formatting: untrusted text made safe to show, and numbers.
//!
//! `maud` escapes markup. This module handles what escaping leaves: characters that hide or reorder text.

use std::{
    borrow::Cow,
    time::{Duration, SystemTime},
};

use gatewright_pages::breakable;
use humantime_serde::re::humantime;
use maud::{Markup, html};

/// Longest text shown of one result, in bytes. The page states how much was cut off.
pub(crate) const LONGEST: usize = 256 * 1024;

/// `text` with invisible and direction-changing characters written out, such as `⟨U+202E⟩`.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
    };
    if !text.chars().any(hidden) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\r' => {}
            c if hidden(c) => plain.push_str(&format!("⟨U+{:04X}⟩", u32::from(c))),
            c => plain.push(c),
        }
    }
    Cow::Owned(plain)
}

/// At most `most` characters of `text` on one line, hidden characters written out.
pub(crate) fn line(text: &str, most: usize) -> String {
    let first = text.trim().lines().next().unwrap_or_default();
    let mut line: String = plain(first).chars().take(most).collect();
    if first.chars().nth(most).is_some() {
        line.push('…');
    }
    line
}

/// Length from which a word of prose may break between its parts, in characters.
const LONG_WORD: usize = 24;

/// At most `most` characters of `text` on one line, in which parts between backticks are code.
pub(crate) fn prose(text: &str, most: usize) -> Markup {
    code_parts(&line(text, most))
}

/// The first [`LONGEST`] bytes of a message, in which parts between backticks are code.
pub(crate) fn message(text: &str) -> Markup {
    code_parts(&plain(cut(text).0))
}

fn code_parts(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return words(text);
    }
    html! {
        @for (at, part) in parts.into_iter().enumerate() {
            @if at % 2 == 1 { code { (words(part)) } } @else { (words(part)) }
        }
    }
}

/// Text whose addresses and long names break between their parts.
fn words(text: &str) -> Markup {
    html! {
        @for word in text.split_inclusive(' ') {
            @if word.chars().nth(LONG_WORD).is_some() { (breakable(word)) } @else { (word) }
        }
    }
}

/// The first [`LONGEST`] bytes, and the number of bytes cut off.
pub(crate) fn cut(text: &str) -> (&str, usize) {
    let end = text.floor_char_boundary(LONGEST);
    (&text[..end], text.len() - end)
}

/// `12 B`, `3.4 KiB`, `5.0 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let of = |unit: u64| bytes as f64 / unit as f64;
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", of(1024)),
        _ => format!("{:.1} MiB", of(1_048_576)),
    }
}

/// `0.4 ms`, `35 ms`, `1.20 s`.
pub(crate) fn duration(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    if ms == 0.0 {
        "0 ms".to_owned()
    } else if ms < 10.0 {
        format!("{ms:.1} ms")
    } else if ms < 1_000.0 {
        format!("{ms:.0} ms")
    } else {
        format!("{:.2} s", ms / 1e3)
    }
}

/// RFC 3339 with seconds, in UTC.
pub(crate) fn instant(at: SystemTime) -> String {
    humantime::format_rfc3339_seconds(at).to_string()
}

/// Day and time for people: `2026-11-23 08:15:09 UTC`.
pub(crate) fn moment(at: SystemTime) -> String {
    instant(at).replace('T', " ").replace('Z', " UTC")
}

/// Time of day in UTC: `08:15:09`.
pub(crate) fn clock(at: SystemTime) -> String {
    instant(at).get(11..19).unwrap_or_default().to_owned()
}

/// The time of day in UTC if `at` is on the day of `now`, else day and time.
pub(crate) fn day_or_clock(at: SystemTime, now: SystemTime) -> String {
    match instant(at).get(..10) == instant(now).get(..10) {
        true => format!("{} UTC", clock(at)),
        false => moment(at),
    }
}

/// `100,000`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 tool`, `2 tools`, `5,000 tools`.
pub(crate) fn count(number: usize, what: &str) -> String {
    format!("{} {what}{}", grouped(number as u64), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_hide_or_turn_text_are_written_out() {
        assert_eq!(plain("pay\u{202e}lla\u{200b}"), "pay⟨U+202E⟩lla⟨U+200B⟩");
        assert_eq!(plain("a\r\nb\tc"), "a\nb\tc");
        assert!(matches!(plain("Zürich 東京"), Cow::Borrowed(_)));
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let long = "é".repeat(LONGEST);
        let (shown, more) = cut(&long);
        assert!(shown.len() <= LONGEST && shown.len() + more == long.len());
        assert_eq!(line("one\ntwo", 10), "one");
        assert_eq!(line("abcdef", 3), "abc…");
    }

    #[test]
    fn numbers_have_units_and_separators() {
        assert_eq!(
            (size(12), size(3482), size(5 << 20)),
            ("12 B".into(), "3.4 KiB".into(), "5.0 MiB".into())
        );
        assert_eq!(duration(Duration::from_micros(1234)), "1.2 ms");
        assert_eq!(duration(Duration::from_millis(1234)), "1.23 s");
        assert_eq!(
            (grouped(7), grouped(1_000), grouped(10_000_000)),
            ("7".into(), "1,000".into(), "10,000,000".into())
        );
        assert_eq!((count(1, "tool"), count(5_013, "tool")), ("1 tool".into(), "5,013 tools".into()));
        assert_eq!(moment(SystemTime::UNIX_EPOCH), "1970-01-01 00:00:00 UTC");
        assert_eq!(clock(SystemTime::UNIX_EPOCH + Duration::from_secs(3_661)), "01:01:01");
    }

    #[test]
    fn times_of_another_day_have_their_day() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(day_or_clock(at(3_661), at(86_399)), "01:01:01 UTC");
        assert_eq!(day_or_clock(at(3_661), at(86_400)), "1970-01-01 01:01:01 UTC");
    }

    #[test]
    fn parts_between_backticks_are_code_and_long_addresses_break_between_their_parts() {
        let shown = |text| prose(text, 200).into_string();
        assert_eq!(shown("set `a.b` <now>"), "set <code>a.b</code> &lt;now&gt;");
        assert_eq!(shown("one ` alone"), "one ` alone");
        assert_eq!(message("`a`\nb").into_string(), "<code>a</code>\nb");
        assert_eq!(
            shown("at http://localhost:3000/oauth/account"),
            "at http:<wbr>/<wbr>/<wbr>localhost:<wbr>3000/<wbr>oauth/<wbr>account<wbr>"
        );
    }
}
