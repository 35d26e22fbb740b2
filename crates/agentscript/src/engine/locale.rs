//! `localeCompare` and the `toLocaleString` family without `Intl`, as Node does them in English.
//!
//! Pure functions over texts: the realm's prelude reads the options of a call into a list, in the order of the enums below, an
//! empty text for each that is not given. Every language is treated as English in UTC; `date` says for which the order of a date differs.

mod collate;
mod currency;
mod date;
mod number;
mod options;

use date::Parts;
use options::{Mistake, Options};

/// Returns the text for a call of the prelude, or `!` and the message of a `RangeError`, or `?` and that of a `TypeError`.
///
/// `kind` 0 compares `a` and `b` (`-1`, `0`, `1`); 1 writes the number `a`; 2, 3 and 4 the date and time, the date, the time of
/// `a` in milliseconds. Long work asks `stop` from time to time; when it returns true, the text has no meaning.
pub(super) fn answer(kind: i32, a: &str, b: &str, options: &[String], stop: &dyn Fn() -> bool) -> String {
    let options = Options(options);
    let moment = |parts| date::date_text(a.parse().unwrap_or(f64::NAN), parts, &options);
    let answer = match kind {
        0 => collate::compare(a, b, &options, stop).map(|order| (order as i8).to_string()),
        1 => number::number_text(a, &options),
        2 => moment(Parts::Both),
        3 => moment(Parts::Date),
        _ => moment(Parts::Time),
    };
    answer.unwrap_or_else(|mistake| match mistake {
        Mistake::Range(message) => format!("!{message}"),
        Mistake::Type(message) => format!("?{message}"),
    })
}
