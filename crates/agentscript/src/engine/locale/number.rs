//! Numbers as English writes them: groups of three, percent, money, short forms, a chosen number of digits.

use super::{
    currency::{Money, currency},
    options::{Mistake, Options},
};

const STYLE: usize = 1;
const CURRENCY_SIGN: usize = 4;
const NOTATION: usize = 5;
const COMPACT_DISPLAY: usize = 6;
const USE_GROUPING: usize = 7;
const MIN_INTEGER: usize = 8;
const MIN_FRACTION: usize = 9;
const MAX_FRACTION: usize = 10;
const MIN_SIGNIFICANT: usize = 11;
const MAX_SIGNIFICANT: usize = 12;
const SIGN_DISPLAY: usize = 13;
const ROUNDING_MODE: usize = 14;
const ROUNDING_INCREMENT: usize = 15;
const ROUNDING_PRIORITY: usize = 16;
const TRAILING_ZEROS: usize = 17;
const NUMBERING_SYSTEM: usize = 18;
const LOCALE_MATCHER: usize = 19;
const UNIT: usize = 20;
const UNIT_DISPLAY: usize = 21;

/// A number as decimal digits: 0.d₁d₂… times ten to the power of `point`. No digits: zero.
#[derive(Clone)]
struct Decimal {
    digits: Vec<u8>,
    point: i32,
}

impl Decimal {
    /// Reads what JavaScript writes for a number without its sign: `12.5`, `1e+21`, `1.5e-7`.
    fn read(text: &str) -> Option<Self> {
        let (number, power) = text.split_once('e').unwrap_or((text, "0"));
        let power: i32 = power.strip_prefix('+').unwrap_or(power).parse().ok()?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let mut digits = Vec::with_capacity(number.len());
        for byte in whole.bytes().chain(fraction.bytes()) {
            digits.push(byte.is_ascii_digit().then(|| byte - b'0')?);
        }
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..zeros);
        let point =
            i32::try_from(whole.len()).ok()?.checked_sub(i32::try_from(zeros).ok()?)?.checked_add(power)?;
        Some(Self { digits, point }.trimmed())
    }

    fn trimmed(mut self) -> Self {
        let zeros = self.digits.iter().rev().take_while(|digit| **digit == 0).count();
        self.digits.truncate(self.digits.len() - zeros);
        if self.digits.is_empty() {
            self.point = 0;
        }
        self
    }

    fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Keeps the first `keep` digits; a half goes away from zero.
    fn rounded(mut self, keep: i64) -> Self {
        let Ok(keep) = usize::try_from(keep) else { return Self { digits: Vec::new(), point: 0 } };
        let Some(next) = self.digits.get(keep).copied() else { return self };
        self.digits.truncate(keep);
        if next >= 5 {
            let mut carried = true;
            for digit in self.digits.iter_mut().rev() {
                *digit = (*digit + 1) % 10;
                carried = *digit == 0;
                if !carried {
                    break;
                }
            }
            if carried {
                self.digits.insert(0, 1);
                self.point += 1;
            }
        }
        self.trimmed()
    }

    fn rounded_to(self, places: usize) -> Self {
        let keep = i64::from(self.point) + places as i64;
        self.rounded(keep)
    }

    /// Digits before and behind the point.
    fn written(&self, min_integer: usize, min_fraction: usize) -> (String, String) {
        let digit = |at: i64| {
            usize::try_from(at).ok().and_then(|at| self.digits.get(at)).map_or('0', |d| char::from(b'0' + d))
        };
        let point = i64::from(self.point);
        let whole: String = (0..point.max(0)).map(digit).collect();
        let places = (self.digits.len() as i64 - point).max(min_fraction as i64);
        let fraction: String = if self.is_zero() {
            "0".repeat(min_fraction)
        } else {
            (0..places.max(0)).map(|place| digit(point + place)).collect()
        };
        (format!("{whole:0>min_integer$}"), fraction)
    }
}

/// Formats a number as `toLocaleString` does. `text` is the number as JavaScript writes it, `-0` for a negative zero.
///
/// # Errors
/// An option out of its range, or one that only a full `Intl` has.
pub(super) fn number_text(text: &str, options: &Options<'_>) -> Result<String, Mistake> {
    options.language()?;
    let style = options.one_of(STYLE, "style", &["decimal", "percent", "currency"])?;
    let money = currency(options, style)?;
    let accounting = options.one_of(CURRENCY_SIGN, "currencySign", &["standard", "accounting"])?
        == "accounting"
        && style == "currency";
    let compact = options.one_of(NOTATION, "notation", &["standard", "compact"])? == "compact";
    let long = options.one_of(COMPACT_DISPLAY, "compactDisplay", &["short", "long"])? == "long";
    let sign = options.one_of(
        SIGN_DISPLAY,
        "signDisplay",
        &["auto", "always", "exceptZero", "never", "negative"],
    )?;
    options.one_of(ROUNDING_MODE, "roundingMode", &["halfExpand"])?;
    options.one_of(ROUNDING_INCREMENT, "roundingIncrement", &["1"])?;
    options.one_of(ROUNDING_PRIORITY, "roundingPriority", &["auto"])?;
    options.one_of(LOCALE_MATCHER, "localeMatcher", &["best fit", "lookup"])?;
    options.one_of(UNIT_DISPLAY, "unitDisplay", &["short", "narrow", "long"])?;
    options.only(NUMBERING_SYSTEM, "numberingSystem", "nu", "latn")?;
    if options.get(UNIT).is_some() {
        return Err(Mistake::Range(
            "unit is not supported in scripts: write it behind the number".to_owned(),
        ));
    }
    let digits = Digits::read(options, style, money.as_ref(), compact)?;

    let (negative, bare) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (body, zero) = match Decimal::read(bare) {
        Some(number) => digits.write(number, style == "percent", compact, long),
        None => (if bare == "NaN" { "NaN" } else { "∞" }.to_owned(), bare == "NaN"),
    };
    let negative = negative && bare != "NaN";
    let minus = match sign {
        "never" => false,
        "exceptZero" | "negative" => negative && !zero,
        _ => negative,
    };
    let plus = !negative && (sign == "always" || (sign == "exceptZero" && !zero));
    let unsigned = match &money {
        Some(money) => {
            let gap = money.sign.ends_with(|c: char| c.is_alphabetic() || c == '.')
                && body.starts_with(|c: char| c.is_ascii_digit());
            format!("{}{}{body}", money.sign, if gap { "\u{a0}" } else { "" })
        }
        None if style == "percent" => format!("{body}%"),
        None => body,
    };
    Ok(match (minus, plus) {
        (true, _) if accounting => format!("({unsigned})"),
        (true, _) => format!("-{unsigned}"),
        (_, true) => format!("+{unsigned}"),
        _ => unsigned,
    })
}

/// Numbers of digits to write.
struct Digits {
    grouped: bool,
    /// Numbers of four digits before the point are grouped too.
    early: bool,
    min_integer: usize,
    fraction: (usize, usize),
    significant: Option<(usize, usize)>,
    /// Nothing was said: short forms choose for themselves.
    free: bool,
    /// Zeros behind the point are left out when there is nothing else.
    whole_without_zeros: bool,
}

impl Digits {
    fn read(
        options: &Options<'_>,
        style: &str,
        money: Option<&Money>,
        compact: bool,
    ) -> Result<Self, Mistake> {
        let usual = if compact { "min2" } else { "auto" };
        let grouping = match options.get(USE_GROUPING) {
            Some(_) => options.one_of(USE_GROUPING, "useGrouping", &["auto", "always", "min2", "never"])?,
            None => usual,
        };
        let zeros = options.one_of(TRAILING_ZEROS, "trailingZeroDisplay", &["auto", "stripIfInteger"])?;
        let min_integer = options.count(MIN_INTEGER, "minimumIntegerDigits", 1, 21)?.unwrap_or(1);
        let least = options.count(MIN_FRACTION, "minimumFractionDigits", 0, 100)?;
        let most = options.count(MAX_FRACTION, "maximumFractionDigits", 0, 100)?;
        let least_significant = options.count(MIN_SIGNIFICANT, "minimumSignificantDigits", 1, 21)?;
        let most_significant =
            options.count(MAX_SIGNIFICANT, "maximumSignificantDigits", least_significant.unwrap_or(1), 21)?;
        let usual = match (style, money) {
            _ if compact => (0, 0),
            (_, Some(money)) => (money.places, money.places),
            ("percent", _) => (0, 0),
            _ => (0, 3),
        };
        let fraction = match (least, most) {
            (Some(least), Some(most)) if least > most => {
                return Err(Mistake::Range("maximumFractionDigits value is out of range.".to_owned()));
            }
            (least, most) => {
                let least_of = least.unwrap_or(usual.0.min(most.unwrap_or(usual.0)));
                (least_of, most.unwrap_or(usual.1.max(least_of)))
            }
        };
        let significant = (least_significant.is_some() || most_significant.is_some())
            .then(|| (least_significant.unwrap_or(1), most_significant.unwrap_or(21)));
        Ok(Self {
            grouped: grouping != "never",
            whole_without_zeros: zeros == "stripIfInteger",
            early: grouping != "min2",
            min_integer,
            fraction,
            free: compact && significant.is_none() && least.is_none() && most.is_none(),
            significant,
        })
    }

    fn round(&self, number: Decimal) -> Decimal {
        match self.significant {
            Some((_, most)) => number.rounded(most as i64),
            // Two digits, or all that stand before the point.
            None if self.free => {
                let keep = i64::from(number.point).max(2);
                number.rounded(keep)
            }
            None => number.rounded_to(self.fraction.1),
        }
    }

    /// The digits, and whether they are all zeros.
    fn write(&self, mut number: Decimal, percent: bool, compact: bool, long: bool) -> (String, bool) {
        if percent && !number.is_zero() {
            number.point += 2;
        }
        let mut suffix = "";
        let mut rounded = self.round(number.clone());
        if compact {
            let steps =
                [("", ""), ("K", " thousand"), ("M", " million"), ("B", " billion"), ("T", " trillion")];
            // Rounding may lead to the next step: 999,999 is 1M.
            let mut step = steps_of(&number);
            for _ in 0..2 {
                let mut scaled = number.clone();
                if !scaled.is_zero() {
                    scaled.point -= 3 * i32::try_from(step).unwrap_or(0);
                }
                rounded = self.round(scaled);
                if rounded.point <= 3 || step + 1 >= steps.len() {
                    break;
                }
                step += 1;
            }
            suffix = steps.get(step).map_or("", |names| if long { names.1 } else { names.0 });
        }
        let places = match self.significant {
            Some((least, _)) if rounded.is_zero() => least - 1,
            Some((least, _)) => usize::try_from(least as i64 - i64::from(rounded.point)).unwrap_or(0),
            None => self.fraction.0,
        };
        let zero = rounded.is_zero();
        let (whole, fraction) = rounded.written(self.min_integer, places);
        let mut text = if self.grouped { grouped(&whole, self.early) } else { whole };
        let left_out = self.whole_without_zeros && fraction.bytes().all(|digit| digit == b'0');
        if !fraction.is_empty() && !left_out {
            text.push('.');
            text.push_str(&fraction);
        }
        text.push_str(suffix);
        (text, zero)
    }
}

/// Counts the powers of a thousand in a number, up to trillions.
fn steps_of(number: &Decimal) -> usize {
    usize::try_from((number.point - 1).div_euclid(3).clamp(0, 4)).unwrap_or(0)
}

fn grouped(whole: &str, early: bool) -> String {
    if whole.len() < if early { 4 } else { 5 } {
        return whole.to_owned();
    }
    let mut text = String::with_capacity(whole.len() + whole.len() / 3);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
