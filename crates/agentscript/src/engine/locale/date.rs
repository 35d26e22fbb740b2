//! Dates and times as American English writes them, in UTC. The order of a date in figures also for `en-GB`, `en-CA` and `sv-SE`,
//! which scripts use to get `21/11/2026` and `2026-11-21`.

use super::{Mistake, Options, shortened};

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

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const TEXTUAL: [&str; 3] = ["short", "long", "narrow"];
const FIGURES: [&str; 2] = ["numeric", "2-digit"];
const LENGTHS: [&str; 4] = ["full", "long", "medium", "short"];
const MS_PER_DAY: i64 = 86_400_000;

/// Which of the three methods was called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Parts {
    Both,
    Date,
    Time,
}

/// What `toLocaleString`, `toLocaleDateString` or `toLocaleTimeString` writes for `ms` since the Unix epoch.
///
/// # Errors
/// An option out of its range, a time zone other than UTC, or something that only a full `Intl` has.
pub(super) fn date_text(ms: f64, parts: Parts, options: &Options<'_>) -> Result<String, Mistake> {
    let form = Form::read(parts, options)?;
    if !ms.is_finite() {
        return Ok("Invalid Date".to_owned());
    }
    let moment = Moment::of(ms as i64);
    let (date, long) = form.date(&moment);
    let time = form.time(&moment);
    let joined = match (date.is_empty(), time.is_empty()) {
        (false, false) => {
            let between = match () {
                () if long => " at ",
                () if form.only_weekday() => " ",
                () if form.order == Order::Swedish && form.in_figures() => " ",
                () => ", ",
            };
            format!("{date}{between}{time}")
        }
        (false, true) => date,
        _ => time,
    };
    Ok(match (form.zone, form.has_time()) {
        (Some(zone), true) => format!("{joined} {zone}"),
        (Some(zone), false) => format!("{joined}, {zone}"),
        (None, _) => joined,
    })
}

/// A time in its parts.
struct Moment {
    year: i64,
    month: usize,
    day: i64,
    weekday: usize,
    hour: i64,
    minute: i64,
    second: i64,
    millisecond: i64,
}

impl Moment {
    fn of(ms: i64) -> Self {
        let (days, rest) = (ms.div_euclid(MS_PER_DAY), ms.rem_euclid(MS_PER_DAY));
        // Years counted from March, so that the leap day is the last of its year; eras of 400 years are alike.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let month = if from_march < 10 { from_march + 2 } else { from_march - 10 };
        Self {
            year: year_of_era + era * 400 + i64::from(month < 2),
            month: usize::try_from(month).unwrap_or(0),
            day: day_of_year - (153 * from_march + 2) / 5 + 1,
            weekday: usize::try_from((days + 4).rem_euclid(7)).unwrap_or(0),
            hour: rest / 3_600_000,
            minute: rest / 60_000 % 60,
            second: rest / 1_000 % 60,
            millisecond: rest % 1_000,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    American,
    British,
    Canadian,
    Swedish,
}

/// What is to be written.
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
    zone: Option<&'static str>,
    /// `None`: the hours of the language.
    clock: Clock,
    /// A date in words that was asked for by its length.
    styled: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    Twelve,
    TwentyFour,
    /// Midnight is 24.
    OneToTwentyFour,
}

impl Form {
    fn read(parts: Parts, options: &Options<'_>) -> Result<Self, Mistake> {
        let order = match options.language()? {
            "en-GB" => Order::British,
            "en-CA" => Order::Canadian,
            "sv-SE" | "sv" => Order::Swedish,
            _ => Order::American,
        };
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
            styled: false,
        };
        form.fill(parts, options)?;
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
            self.style(date_style, time_style);
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

    fn style(&mut self, date: Option<&str>, time: Option<&str>) {
        if let Some(length) = date {
            self.year = Some(if length == "short" { "2-digit" } else { "numeric" });
            self.day = Some("numeric");
            self.month = Some(match length {
                "full" | "long" => "long",
                "medium" => "short",
                _ => "numeric",
            });
            self.weekday = (length == "full").then_some("long");
            self.styled = true;
            if length == "short" && self.order != Order::American {
                self.year = Some("numeric");
            }
        }
        if let Some(length) = time {
            (self.hour, self.minute) = (Some("numeric"), Some("numeric"));
            self.second = (length != "short").then_some("numeric");
            self.zone = match length {
                "full" => Some("Coordinated Universal Time"),
                "long" => Some("UTC"),
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

    fn in_figures(&self) -> bool {
        self.month.is_none_or(|month| FIGURES.contains(&month))
    }

    /// The date, and whether its month is spelt out (which changes how a time is added).
    fn date(&self, moment: &Moment) -> (String, bool) {
        let year = self.year.map(|form| {
            // Before the year 1 the era is left out, as elsewhere.
            let year = if moment.year > 0 { moment.year } else { 1 - moment.year };
            if form == "2-digit" { format!("{:02}", year % 100) } else { year.to_string() }
        });
        let day = self.day.map(|form| figure(moment.day, form == "2-digit"));
        let weekday = self.weekday.map(|form| name(WEEKDAYS.get(moment.weekday), form));
        let Some(month) = self.month.filter(|form| TEXTUAL.contains(form)) else {
            let month = self.month.map(|form| figure(moment.month as i64 + 1, form == "2-digit"));
            return (self.figures(year, month, day, weekday), false);
        };
        let mut text = name(MONTHS.get(moment.month), month);
        if let Some(day) = &day {
            text = format!("{text} {day}");
        }
        if let Some(year) = year {
            text = format!("{text}{} {year}", if day.is_some() { "," } else { "" });
        }
        if let Some(weekday) = weekday {
            text = if day.is_some() { format!("{weekday}, {text}") } else { format!("{text} {weekday}") };
        }
        (text, month == "long")
    }

    fn figures(
        &self,
        year: Option<String>,
        month: Option<String>,
        day: Option<String>,
        weekday: Option<String>,
    ) -> String {
        let joined = match (year, month, day) {
            (Some(year), None, Some(day)) => format!("{year} (day: {day})"),
            (year, month, day) => {
                let whole = year.is_some() && month.is_some() && day.is_some();
                let padded =
                    |part: Option<String>| part.map(|part| if whole { format!("{part:0>2}") } else { part });
                let (parts, between) = match self.order {
                    Order::British => ([padded(day), padded(month), year], "/"),
                    Order::Canadian | Order::Swedish => ([year, padded(month), padded(day)], "-"),
                    Order::American => ([month, day, year], "/"),
                };
                let parts: Vec<String> = parts.into_iter().flatten().collect();
                parts.join(between)
            }
        };
        let Some(weekday) = weekday else { return joined };
        if joined.is_empty() {
            weekday
        } else if self.month.is_some() {
            format!("{weekday}, {joined}")
        } else {
            format!("{joined} {weekday}")
        }
    }

    fn time(&self, moment: &Moment) -> String {
        let mut text = String::new();
        let twelve = self.clock == Clock::Twelve;
        if let Some(form) = self.hour {
            let hour = match self.clock {
                Clock::Twelve => (moment.hour + 11) % 12 + 1,
                Clock::OneToTwentyFour if moment.hour == 0 => 24,
                _ => moment.hour,
            };
            text = figure(hour, form == "2-digit" || !twelve);
        }
        let alone = self.hour.is_none() && self.second.is_none();
        if self.minute.is_some() {
            if !text.is_empty() {
                text.push(':');
            }
            text.push_str(&figure(moment.minute, !alone));
        }
        if self.second.is_some() {
            if !text.is_empty() {
                text.push(':');
            }
            text.push_str(&figure(moment.second, self.minute.is_some() || self.hour.is_some()));
        }
        if self.fraction > 0 {
            let digits = format!("{:03}", moment.millisecond);
            let shown = digits.get(..self.fraction).unwrap_or(&digits);
            text = if text.is_empty() { shown.to_owned() } else { format!("{text}.{shown}") };
        }
        if self.hour.is_some() && twelve {
            let (early, late) = if self.order == Order::Canadian { ("a.m.", "p.m.") } else { ("AM", "PM") };
            text.push(' ');
            text.push_str(if moment.hour < 12 { early } else { late });
        }
        text
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

fn zone_name(options: &Options<'_>) -> Result<Option<&'static str>, Mistake> {
    let known = ["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"];
    Ok(optional(options, ZONE_NAME, "timeZoneName", &known)?.map(|form| match form {
        "long" => "Coordinated Universal Time",
        "short" => "UTC",
        _ => "GMT",
    }))
}

fn clock(options: &Options<'_>, order: Order) -> Result<Clock, Mistake> {
    let usual =
        if matches!(order, Order::British | Order::Swedish) { Clock::TwentyFour } else { Clock::Twelve };
    let cycle = optional(options, HOUR_CYCLE, "hourCycle", &["h12", "h23", "h24"])?;
    Ok(match (options.get(HOUR12), cycle) {
        (Some("false"), _) | (None, Some("h23")) => Clock::TwentyFour,
        (None, Some("h24")) => Clock::OneToTwentyFour,
        (Some(_), _) | (None, Some(_)) => Clock::Twelve,
        (None, None) => usual,
    })
}

fn figure(number: i64, padded: bool) -> String {
    if padded { format!("{number:02}") } else { number.to_string() }
}

fn name(full: Option<&&str>, form: &str) -> String {
    let full = full.copied().unwrap_or_default();
    let letters = match form {
        "short" => 3,
        "narrow" => 1,
        _ => full.len(),
    };
    full.get(..letters).unwrap_or(full).to_owned()
}
