//! Days on the calendar, as `YYYY-MM-DD`.

const MONTHS: [u32; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// The day `days` after `date`. A text that is no date comes back unchanged.
pub(crate) fn plus_days(date: &str, days: u32) -> String {
    let mut parts = date.splitn(3, '-').map(str::parse::<u32>);
    let (Some(Ok(mut year)), Some(Ok(mut month @ 1..=12)), Some(Ok(mut day))) =
        (parts.next(), parts.next(), parts.next())
    else {
        return date.to_owned();
    };
    day += days;
    loop {
        let length = month_length(year, month);
        if day <= length {
            return format!("{year:04}-{month:02}-{day:02}");
        }
        day -= length;
        month += 1;
        if month > 12 {
            month = 1;
            year += 1;
        }
    }
}

fn month_length(year: u32, month: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        _ => MONTHS[(month - 1) as usize],
    }
}

/// Returns true if `text` is a day that exists, written `YYYY-MM-DD`.
pub(crate) fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else {
        return false;
    };
    if (year.len(), month.len(), day.len()) != (4, 2, 2)
        || !text.chars().all(|c| c == '-' || c.is_ascii_digit())
    {
        return false;
    }
    match (year.parse::<u32>(), month.parse::<u32>(), day.parse::<u32>()) {
        (Ok(year), Ok(month @ 1..=12), Ok(day)) => day >= 1 && day <= month_length(year, month),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_days_crosses_months_years_and_leap_days() {
        assert_eq!(plus_days("2026-03-31", 30), "2026-04-30");
        assert_eq!(plus_days("2025-12-31", 1), "2026-01-01");
        assert_eq!(plus_days("2024-02-28", 1), "2024-02-29");
        assert_eq!(plus_days("2026-02-28", 1), "2026-03-01");
    }

    #[test]
    fn only_days_that_exist_are_dates() {
        assert!(is_date("2024-02-29"));
        for wrong in ["2026-02-29", "2026-13-01", "2026-1-1", "yesterday", "2026-00-10", "2026-01-00"] {
            assert!(!is_date(wrong), "{wrong}");
        }
    }
}
