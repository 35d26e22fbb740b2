//! Dates and times as American English writes them, in UTC; also as `en-GB`, `en-CA` and `sv-SE` do, which scripts use to get
//! `21/11/2026` and `2026-11-21`.
//!
//! This file reads the options; `write` formats.

mod moment;
mod write;

use super::options::{Mistake, Options, shortened};
use moment::Moment;

const WEEKDAY: usize = 1;
const ERA: usize = 2;
const YEAR: usize = 3;
const MONTH: usize = 4;
const DAY: usize = 5;
const DAY_PERIOD: usize = 6;
const HOUR: usize = 7;
const MINUTE: usize = 8;
const SECOND: usize = 9;
const FRACTION: usize = 10;
const ZONE_NAME: usize = 11;
const HOUR12: usize = 12;
const HOUR_CYCLE: usize = 13;
const ZONE: usize = 14;
const DATE_STYLE: usize = 15;
const TIME_STYLE: usize = 16;
const CALENDAR: usize = 17;
const NUMBERING_SYSTEM: usize = 18;
const LOCALE_MATCHER: usize = 19;
const FORMAT_MATCHER: usize = 20;

const TEXTUAL: [&str; 3] = ["short", "long", "narrow"];
const FIGURES: [&str; 2] = ["numeric", "2-digit"];
const LENGTHS: [&str; 4] = ["full", "long", "medium", "short"];

/// The method that was called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Parts {
    Both,
    Date,
    Time,
}

/// Formats `ms` since the Unix epoch as `toLocaleString`, `toLocaleDateString` or `toLocaleTimeString` does.
///
/// # Errors
/// An option out of its range, a time zone other than UTC, or something that only a full `Intl` has.
pub(super) fn date_text(ms: f64, parts: Parts, options: &Options<'_>) -> Result<String, Mistake> {
    let form = Form::read(parts, options)?;
    if !ms.is_finite() {
        return Ok("Invalid Date".to_owned());
    }
    Ok(form.write(&Moment::of(ms as i64)))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    American,
    British,
    Canadian,
    Swedish,
}

/// The fields to write.
struct Form {
    order: Order,
    weekday: Option<&'static str>,
    year: Option<&'static str>,
    month: Option<&'static str>,
    day: Option<&'static str>,
    hour: Option<&'static str>,
    minute: Option<&'static str>,
    second: Option<&'static str>,
    fraction: usize,
    zone: Option<Zone>,
    clock: Clock,
}

/// Style of the time zone's name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Zone {
    Short,
    Long,
    ShortOffset,
    LongOffset,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    Twelve,
    TwentyFour,
}

impl Form {
    fn read(parts: Parts, options: &Options<'_>) -> Result<Self, Mistake> {
        let order = match options.language()?.split("-u-").next().unwrap_or_default() {
            "en-GB" => Order::British,
            "en-CA" => Order::Canadian,
            "sv-SE" | "sv" => Order::Swedish,
            _ => Order::American,
        };
        options.one_of(LOCALE_MATCHER, "localeMatcher", &["best fit", "lookup"])?;
        options.one_of(FORMAT_MATCHER, "formatMatcher", &["best fit", "basic"])?;
        options.only(CALENDAR, "calendar", "ca", "gregory")?;
        options.only(NUMBERING_SYSTEM, "numberingSystem", "nu", "latn")?;
        let figure = |at, name| optional(options, at, name, &FIGURES);
        let textual = |at, name| optional(options, at, name, &TEXTUAL);
        for (at, name) in [(ERA, "era"), (DAY_PERIOD, "dayPeriod")] {
            if options.get(at).is_some() {
                return Err(Mistake::Range(format!("{name} is not supported in scripts")));
            }
        }
        if let Some(zone) = options.get(ZONE)
            && !["utc", "gmt", "etc/utc", "etc/gmt", "etc/zulu", "+00:00"]
                .contains(&zone.to_ascii_lowercase().as_str())
        {
            return Err(Mistake::Range(format!(
                "the time zone '{}' is not available in scripts, which know UTC only; add the offset to the date",
                shortened(zone)
            )));
        }
        let mut form = Self {
            order,
            weekday: textual(WEEKDAY, "weekday")?,
            year: figure(YEAR, "year")?,
            month: optional(options, MONTH, "month", &["numeric", "2-digit", "short", "long", "narrow"])?,
            day: figure(DAY, "day")?,
            hour: figure(HOUR, "hour")?,
            minute: figure(MINUTE, "minute")?,
            second: figure(SECOND, "second")?,
            fraction: options.count(FRACTION, "fractionalSecondDigits", 1, 3)?.unwrap_or(0),
            zone: zone_name(options)?,
            clock: clock(options, order)?,
        };
        form.fill(parts, options)?;
        if form.fraction > 0 {
            // The parts of a second come behind the second.
            if form.minute.is_some() {
                form.second = form.second.or(Some("numeric"));
            } else if form.hour.is_some() && form.second.is_none() {
                return Err(Mistake::Range(
                    "fractionalSecondDigits needs minute and second beside hour".to_owned(),
                ));
            }
        }
        Ok(form)
    }

    /// Fills in what a call without options, or with a style, means.
    fn fill(&mut self, parts: Parts, options: &Options<'_>) -> Result<(), Mistake> {
        let date_style = optional(options, DATE_STYLE, "dateStyle", &LENGTHS)?;
        let time_style = optional(options, TIME_STYLE, "timeStyle", &LENGTHS)?;
        if date_style.is_some() || time_style.is_some() {
            for (name, wrong) in [
                ("dateStyle", date_style.is_some() && parts == Parts::Time),
                ("timeStyle", time_style.is_some() && parts == Parts::Date),
            ] {
                if wrong {
                    return Err(Mistake::Type(format!("Invalid option : {name}")));
                }
            }
            if self.has_date() || self.has_time() || self.zone.is_some() {
                return Err(Mistake::Type(
                    "dateStyle and timeStyle cannot be used together with other parts".to_owned(),
                ));
            }
            self.style(date_style, time_style, usual_clock(options, self.order)?);
            return Ok(());
        }
        let wanted = match parts {
            Parts::Both => self.has_date() || self.has_time(),
            Parts::Date => self.has_date(),
            Parts::Time => self.has_time(),
        };
        if !wanted && parts != Parts::Time {
            (self.year, self.month, self.day) = (Some("numeric"), Some("numeric"), Some("numeric"));
        }
        if !wanted && parts != Parts::Date {
            (self.hour, self.minute, self.second) = (Some("numeric"), Some("numeric"), Some("numeric"));
        }
        Ok(())
    }

    fn style(&mut self, date: Option<&str>, time: Option<&str>, usual: Clock) {
        if let Some(length) = date {
            self.year = Some(if length == "short" { "2-digit" } else { "numeric" });
            self.day = Some("numeric");
            self.month = Some(match length {
                "full" | "long" => "long",
                "medium" => "short",
                _ => "numeric",
            });
            self.weekday = (length == "full").then_some("long");
            if length == "short" && self.order != Order::American {
                self.year = Some("numeric");
            }
        }
        if let Some(length) = time {
            // Zeros in front, where the language has 24 hours.
            let hour = if usual == Clock::TwentyFour { "2-digit" } else { "numeric" };
            (self.hour, self.minute) = (Some(hour), Some("numeric"));
            self.second = (length != "short").then_some("numeric");
            self.zone = match length {
                "full" => Some(Zone::Long),
                "long" => Some(Zone::Short),
                _ => None,
            };
        }
    }

    fn has_date(&self) -> bool {
        self.weekday.is_some() || self.year.is_some() || self.month.is_some() || self.day.is_some()
    }

    fn has_time(&self) -> bool {
        self.hour.is_some() || self.minute.is_some() || self.second.is_some() || self.fraction > 0
    }

    fn only_weekday(&self) -> bool {
        self.weekday.is_some() && self.year.is_none() && self.month.is_none() && self.day.is_none()
    }
}

fn optional(
    options: &Options<'_>,
    at: usize,
    name: &str,
    known: &[&'static str],
) -> Result<Option<&'static str>, Mistake> {
    match options.get(at) {
        Some(_) => options.one_of(at, name, known).map(Some),
        None => Ok(None),
    }
}

fn zone_name(options: &Options<'_>) -> Result<Option<Zone>, Mistake> {
    let known = ["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"];
    Ok(optional(options, ZONE_NAME, "timeZoneName", &known)?.map(|form| match form {
        "long" => Zone::Long,
        "short" => Zone::Short,
        "longOffset" | "longGeneric" => Zone::LongOffset,
        _ => Zone::ShortOffset,
    }))
}

const CYCLES: [&str; 4] = ["h11", "h12", "h23", "h24"];

fn clock_of(cycle: &str) -> Clock {
    if matches!(cycle, "h23" | "h24") { Clock::TwentyFour } else { Clock::Twelve }
}

/// The hours of the language, whatever the other options say.
fn usual_clock(options: &Options<'_>, order: Order) -> Result<Clock, Mistake> {
    let named = options.extension("hc")?.filter(|named| CYCLES.contains(named));
    Ok(match (named, order) {
        (Some(cycle), _) => clock_of(cycle),
        (None, Order::British | Order::Swedish) => Clock::TwentyFour,
        (None, Order::American | Order::Canadian) => Clock::Twelve,
    })
}

fn clock(options: &Options<'_>, order: Order) -> Result<Clock, Mistake> {
    let cycle = optional(options, HOUR_CYCLE, "hourCycle", &CYCLES)?;
    Ok(match (options.get(HOUR12), cycle) {
        (Some("false"), _) => Clock::TwentyFour,
        (Some(_), _) => Clock::Twelve,
        (None, Some(cycle)) => clock_of(cycle),
        (None, None) => usual_clock(options, order)?,
    })
}
