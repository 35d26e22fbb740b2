//! Writes what `Form` asks for, in the order and the words of its language.

use super::{Clock, FIGURES, Form, Moment, Order, TEXTUAL, Zone};

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
const SWEDISH_MONTHS: [&str; 12] = [
    "januari",
    "februari",
    "mars",
    "april",
    "maj",
    "juni",
    "juli",
    "augusti",
    "september",
    "oktober",
    "november",
    "december",
];
const SWEDISH_WEEKDAYS: [&str; 7] = ["söndag", "måndag", "tisdag", "onsdag", "torsdag", "fredag", "lördag"];

impl Form {
    /// The text for `moment`.
    pub(super) fn write(&self, moment: &Moment) -> String {
        let (date, long) = self.date(moment);
        let time = self.time(moment);
        let joined = match (date.is_empty(), time.is_empty()) {
            (false, false) => format!("{date}{}{time}", self.between(long)),
            (false, true) => date,
            _ => time,
        };
        match (self.zone, self.has_time()) {
            // There already.
            (Some(_), true) => joined,
            (Some(zone), false) if long => format!("{joined}{}{}", self.between(true), self.zone(zone)),
            (Some(zone), false) if self.order == Order::Swedish => format!("{joined} {}", self.zone(zone)),
            (Some(zone), false) => format!("{joined}, {}", self.zone(zone)),
            (None, _) => joined,
        }
    }

    /// Separator between a date and a time.
    fn between(&self, long: bool) -> &'static str {
        match self.order {
            Order::Swedish if long => " kl. ",
            Order::Swedish => " ",
            _ if long => " at ",
            Order::American | Order::Canadian if self.only_weekday() => " ",
            _ => ", ",
        }
    }

    fn zone(&self, zone: Zone) -> &'static str {
        match zone {
            Zone::Short => "UTC",
            Zone::Long if self.order == Order::Swedish => "koordinerad universell tid",
            Zone::Long => "Coordinated Universal Time",
            Zone::ShortOffset => "GMT+0",
            Zone::LongOffset => "GMT+00:00",
        }
    }

    /// The date, and whether its month is spelt out (which changes how a time is added).
    fn date(&self, moment: &Moment) -> (String, bool) {
        let year = self.year.map(|form| {
            // Before the year 1 the era is left out, as elsewhere.
            let year = if moment.year > 0 { moment.year } else { 1 - moment.year };
            if form == "2-digit" { format!("{:02}", year % 100) } else { year.to_string() }
        });
        let weekday = self.weekday.map(|form| self.weekday_name(moment.weekday, form));
        let spelt = self.month.filter(|form| TEXTUAL.contains(form));
        let text = match (spelt, self.month, weekday) {
            (_, Some(form), Some(weekday)) if self.year.is_none() && self.day.is_none() => {
                self.month_and_weekday(form, &self.month_text(moment, form), &weekday)
            }
            (Some(form), _, weekday) => self.in_words(moment, form, year, weekday),
            (None, _, weekday) => self.in_figures(moment, year, weekday),
        };
        (text, self.month == Some("long"))
    }

    fn month_text(&self, moment: &Moment, form: &str) -> String {
        match form {
            "numeric" | "2-digit" => figure(moment.month as i64 + 1, form == "2-digit"),
            _ => self.month_name(moment.month, form),
        }
    }

    fn month_and_weekday(&self, form: &str, month: &str, weekday: &str) -> String {
        let what = if self.order == Order::Swedish { "månad" } else { "month" };
        match (form, self.weekday) {
            ("2-digit" | "long", Some("short")) => format!("{weekday} ({what}: {month})"),
            _ => format!("{month} {weekday}"),
        }
    }

    /// A date whose month is a word.
    fn in_words(&self, moment: &Moment, form: &str, year: Option<String>, weekday: Option<String>) -> String {
        let mut text = self.month_name(moment.month, form);
        let day_first = matches!(self.order, Order::British | Order::Swedish);
        if let Some(form) = self.day {
            let day = figure(moment.day, form == "2-digit");
            text = if day_first { format!("{day} {text}") } else { format!("{text} {day}") };
        }
        if let Some(year) = &year {
            text = format!("{text}{} {year}", if self.day.is_some() && !day_first { "," } else { "" });
        }
        let Some(weekday) = weekday else { return text };
        if self.day.is_none() {
            return format!("{text} {weekday}");
        }
        let comma = match self.order {
            Order::American | Order::Canadian => true,
            Order::British => year.is_some(),
            Order::Swedish => false,
        };
        format!("{weekday}{} {text}", if comma { "," } else { "" })
    }

    /// A date in figures, or without a month.
    fn in_figures(&self, moment: &Moment, year: Option<String>, weekday: Option<String>) -> String {
        let Some(month) = self.month.filter(|form| FIGURES.contains(form)) else {
            return self.without_month(moment, year, weekday);
        };
        let padded = |form: &str| form == "2-digit";
        let (mut pad_month, mut pad_day) = (padded(month), self.day.is_some_and(padded));
        let swedish = self.order == Order::Swedish;
        match (self.order, self.day, &year) {
            (Order::American, ..) | (_, None, None) => {}
            (_, None, Some(_)) => pad_month = true,
            (Order::Swedish, Some(_), None) => pad_month &= pad_day || weekday.is_some(),
            // Both, unless one of them was asked for otherwise than the other.
            (_, Some(day), _) if weekday.is_some() || day == month => (pad_month, pad_day) = (true, true),
            _ => {}
        }
        let month = figure(moment.month as i64 + 1, pad_month);
        let day = self.day.map(|_| figure(moment.day, pad_day));
        let comma = year.is_some() || matches!(self.order, Order::American | Order::Canadian);
        let (parts, between) = match self.order {
            Order::British => ([day, Some(month), year], "/"),
            Order::Swedish if year.is_none() => ([day, Some(month), None], "/"),
            Order::Canadian | Order::Swedish => ([year, Some(month), day], "-"),
            Order::American => ([Some(month), day, year], "/"),
        };
        let joined = parts.into_iter().flatten().collect::<Vec<_>>().join(between);
        match weekday {
            None => joined,
            Some(weekday) if self.day.is_none() => format!("{joined} {weekday}"),
            Some(weekday) => format!(
                "{weekday}{} {joined}",
                if comma || (swedish && self.year.is_some()) { "," } else { "" }
            ),
        }
    }

    fn without_month(&self, moment: &Moment, year: Option<String>, weekday: Option<String>) -> String {
        let short_year = self.year == Some("2-digit");
        let day = self.day.map(|form| figure(moment.day, form == "2-digit"));
        let parts = match (self.order, year, day, weekday) {
            (order, Some(year), Some(day), None) => {
                match (order, short_year && self.day == Some("numeric")) {
                    (Order::Swedish, true) => [Some(year), Some(day), None],
                    (_, true) => [Some(day), Some(year), None],
                    (Order::Swedish, false) => return format!("{year} (dag: {day})"),
                    (_, false) => return format!("{year} (day: {day})"),
                }
            }
            (Order::American, year, day @ Some(_), weekday) => [day, weekday, year],
            (Order::British | Order::Canadian, year, day @ Some(_), weekday) => [weekday, day, year],
            (Order::Swedish, year, day, weekday) => [year, weekday, day],
            (_, year @ Some(_), None, weekday) if short_year && self.weekday == Some("short") => {
                [weekday, year, None]
            }
            (_, year, None, weekday) => [year, weekday, None],
        };
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    fn time(&self, moment: &Moment) -> String {
        let twelve = self.clock == Clock::Twelve;
        let swedish = self.order == Order::Swedish;
        // Without a minute, the second comes last.
        let apart = self.hour.is_some() && self.minute.is_none() && self.second.is_some();
        let mut text = String::new();
        if let Some(form) = self.hour {
            let hour = if twelve { (moment.hour + 11) % 12 + 1 } else { moment.hour };
            // With all three and a named zone, British and Swedish have no zero in front.
            let bare = matches!(self.order, Order::British | Order::Swedish)
                && matches!(self.zone, Some(Zone::Short | Zone::Long))
                && self.minute.is_some()
                && self.second.is_some();
            text = figure(hour, form == "2-digit" || !(twelve || bare));
        }
        let alone = self.hour.is_none() && self.second.is_none();
        if self.minute.is_some() {
            if !text.is_empty() {
                text.push(':');
            }
            text.push_str(&figure(moment.minute, !alone));
        }
        if self.second.is_some() && !apart {
            if !text.is_empty() {
                text.push(':');
            }
            text.push_str(&figure(moment.second, self.minute.is_some()));
        }
        if self.fraction > 0 && !apart {
            let digits = format!("{:03}", moment.millisecond);
            let kept = digits.get(..self.fraction).unwrap_or(&digits);
            let point = if swedish { ',' } else { '.' };
            text = if text.is_empty() { kept.to_owned() } else { format!("{text}{point}{kept}") };
        }
        if self.hour.is_some() && twelve {
            let (early, late) = match self.order {
                Order::American => ("AM", "PM"),
                Order::British => ("am", "pm"),
                Order::Canadian => ("a.m.", "p.m."),
                Order::Swedish => ("fm", "em"),
            };
            text.push(' ');
            text.push_str(if moment.hour < 12 { early } else { late });
        }
        if let Some(zone) = self.zone.filter(|_| !text.is_empty()) {
            text.push(' ');
            text.push_str(self.zone(zone));
        }
        if apart {
            let what = if swedish { "sekund" } else { "second" };
            text.push_str(&format!(" ({what}: {})", moment.second));
        }
        text
    }

    fn weekday_name(&self, weekday: usize, form: &str) -> String {
        if self.order == Order::Swedish {
            let full = SWEDISH_WEEKDAYS.get(weekday).copied().unwrap_or_default();
            return match form {
                "narrow" => first(full, 1).to_uppercase(),
                "short" if full == "torsdag" => "tors".to_owned(),
                "short" => first(full, 3),
                _ => full.to_owned(),
            };
        }
        name(WEEKDAYS.get(weekday), form)
    }

    fn month_name(&self, month: usize, form: &str) -> String {
        if self.order == Order::Swedish {
            let full = SWEDISH_MONTHS.get(month).copied().unwrap_or_default();
            return match form {
                "narrow" => first(full, 1).to_uppercase(),
                // Short enough as they are.
                "short" if full.len() > 4 => first(full, 3) + ".",
                _ => full.to_owned(),
            };
        }
        name(MONTHS.get(month), form)
    }
}

fn figure(number: i64, padded: bool) -> String {
    if padded { format!("{number:02}") } else { number.to_string() }
}

fn first(text: &str, letters: usize) -> String {
    text.chars().take(letters).collect()
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
