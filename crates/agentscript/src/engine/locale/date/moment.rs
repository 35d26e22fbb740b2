//! A time in its parts, in UTC.

const MS_PER_DAY: i64 = 86_400_000;

/// A time in its parts.
pub(super) struct Moment {
    pub(super) year: i64,
    /// From 0.
    pub(super) month: usize,
    pub(super) day: i64,
    /// Sunday is 0.
    pub(super) weekday: usize,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
    pub(super) millisecond: i64,
}

impl Moment {
    pub(super) fn of(ms: i64) -> Self {
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
