//! Ranges of numbers.

use std::ops::{RangeFrom, RangeInclusive, RangeToInclusive};

/// A range of numbers, both ends included: from `1..=5`, `1..`, `..=5`, or a single number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NumberRange {
    /// The smallest number. `None`: any.
    pub min: Option<f64>,
    /// The largest number. `None`: any.
    pub max: Option<f64>,
}

impl NumberRange {
    pub(crate) const AT_LEAST_ONE: Self = Self { min: Some(1.0), max: None };

    pub(crate) fn contains(&self, number: f64) -> bool {
        self.min.is_none_or(|min| number >= min) && self.max.is_none_or(|max| number <= max)
    }
}

impl std::fmt::Display for NumberRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.min, self.max) {
            (Some(min), Some(max)) if min.total_cmp(&max).is_eq() => write!(f, "{min}"),
            (Some(min), Some(max)) => write!(f, "{min} to {max}"),
            (Some(min), None) => write!(f, "{min} or more"),
            (None, Some(max)) => write!(f, "{max} or less"),
            (None, None) => f.write_str("any number"),
        }
    }
}

macro_rules! ranges {
    ($($number:ty),+) => {$(
        impl From<RangeInclusive<$number>> for NumberRange {
            fn from(range: RangeInclusive<$number>) -> Self {
                Self { min: Some(*range.start() as f64), max: Some(*range.end() as f64) }
            }
        }

        impl From<RangeFrom<$number>> for NumberRange {
            fn from(range: RangeFrom<$number>) -> Self {
                Self { min: Some(range.start as f64), max: None }
            }
        }

        impl From<RangeToInclusive<$number>> for NumberRange {
            fn from(range: RangeToInclusive<$number>) -> Self {
                Self { min: None, max: Some(range.end as f64) }
            }
        }

        impl From<$number> for NumberRange {
            fn from(number: $number) -> Self {
                Self { min: Some(number as f64), max: Some(number as f64) }
            }
        }
    )+};
}

ranges!(i32, i64, u64, usize, f64);

/// Number of times that something happens. Default: once or more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times(pub NumberRange);

impl Default for Times {
    fn default() -> Self {
        Self(NumberRange::AT_LEAST_ONE)
    }
}
