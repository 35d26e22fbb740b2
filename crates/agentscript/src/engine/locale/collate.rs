//! The order of texts for people: the root collation for Latin text, Greek and Cyrillic letters; code points for the rest.
//!
//! Unicode TR10 with three levels: what the letters are, which marks they carry, whether they are capitals. Texts are compared level by
//! level and never copied.

use std::{cell::Cell, cmp::Ordering, collections::VecDeque, str::Chars};

use unicode_normalization::char::{canonical_combining_class, decompose_canonical, decompose_compatible};

use super::options::{Mistake, Options};

/// Spaces, in order.
const SPACES: &str = "\t\n\u{b}\u{c}\r\u{85}\u{2028}\u{2029} ";
/// Punctuation, in order.
const PUNCTUATION: &str =
    "_-\u{2010}\u{2011}\u{2012}\u{2013}\u{2014}\u{2015},;:!¡?¿.·'‘’‚‛‹›\"“”„‟«»()[]{}§¶@*/\\&#%‰‱†‡•‣";
/// Symbols before those that are ordered by code point, and behind them.
const SYMBOLS: [&str; 2] = ["`´˜^¯˘˙¨˚˝¸˛°©®", "+±÷×<=>¬|¦~"];
/// Currency signs, in order.
const CURRENCIES: &str = "¤¢$£¥₠₡₢₣₤₥₦₩₪₫€₭₮₯₰₱₲₳₴₵₶₷₸₹₺₻₼₽₾₿";
/// Marks over and under letters, in order.
const MARKS: &str =
    "\u{301}\u{300}\u{306}\u{302}\u{30c}\u{30a}\u{308}\u{30b}\u{303}\u{307}\u{338}\u{327}\u{328}\u{304}";

/// Letters written as others with a stroke, or joined: they differ from those only as an accent does.
const JOINED: [(char, &str); 8] =
    [('æ', "ae"), ('œ', "oe"), ('ß', "ss"), ('ø', "o"), ('đ', "d"), ('ð', "d"), ('ł', "l"), ('ħ', "h")];
/// Letters of their own, behind the one they follow.
const OWN: [(char, char); 6] = [('ı', 'i'), ('ĸ', 'q'), ('ŋ', 'n'), ('ŧ', 't'), ('ə', 'e'), ('þ', 'z')];

const SPACE: u32 = 1 << 24;
const PUNCT: u32 = 2 << 24;
const SYMBOL: u32 = 3 << 24;
const CURRENCY: u32 = 4 << 24;
const DIGIT: u32 = 5 << 24;
const LATIN: u32 = 6 << 24;
const OTHER: u32 = 7 << 24;
const HAN: u32 = 8 << 24;

/// One unit of a text: 0 where it says nothing at a level.
#[derive(Clone, Copy, Default)]
struct Element {
    letter: u32,
    mark: u32,
    form: u8,
}

/// Positions of the options `localeCompare` reads.
const SENSITIVITY: usize = 1;
const NUMERIC: usize = 2;
const IGNORE_PUNCTUATION: usize = 3;
const CASE_FIRST: usize = 4;
const USAGE: usize = 5;
const LOCALE_MATCHER: usize = 6;
const COLLATION: usize = 7;

/// Compares `a` and `b`. Asks `stop` after each [`STEPS`] characters and elements whether to go on; when not, the texts
/// count as equal.
///
/// # Errors
/// A language that is not one, an option that does not exist.
pub(super) fn compare<'t>(
    a: &'t str,
    b: &'t str,
    options: &Options<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<Ordering, Mistake> {
    options.one_of(USAGE, "usage", &["sort"])?;
    options.one_of(LOCALE_MATCHER, "localeMatcher", &["best fit", "lookup"])?;
    options.only(COLLATION, "collation", "co", "default")?;
    let sensitivity = options.one_of(SENSITIVITY, "sensitivity", &["variant", "base", "accent", "case"])?;
    let mut case_first = options.one_of(CASE_FIRST, "caseFirst", &["false", "lower", "upper"])?;
    if options.get(CASE_FIRST).is_none() && options.extension("kf")? == Some("upper") {
        case_first = "upper";
    }
    // `en-u-kn` and `en-u-kn-true` ask for it in the language.
    let in_language = matches!(options.extension("kn")?, Some("" | "true"));
    let numeric = options.get(NUMERIC).map_or(in_language, |text| text == "true");
    if a == b {
        return Ok(Ordering::Equal);
    }
    let shifted = options.get(IGNORE_PUNCTUATION) == Some("true");
    let work = Work { left: Cell::new(STEPS), over: Cell::new(false), stop };
    let elements = |text: &'t str| Elements::new(text, numeric, shifted, &work);
    let level = |of: fn(&Element) -> u32| {
        let ours = elements(a).map(|element| of(&element)).filter(|weight| *weight != 0);
        ours.cmp(elements(b).map(|element| of(&element)).filter(|weight| *weight != 0))
    };
    let letters = level(|element| element.letter);
    let marks = || level(|element| element.mark);
    let forms =
        || {
            if case_first == "upper" {
                level(|element| {
                    if element.form == 0 { 0 } else { u32::from((element.form & 4) + 3 - (element.form & 3)) }
                })
            } else {
                level(|element| u32::from(element.form))
            }
        };
    let order = match sensitivity {
        "base" => letters,
        "accent" => letters.then_with(marks),
        // Small or capital, and nothing else that tells forms of a letter apart.
        "case" => letters.then_with(|| {
            let case =
                level(|element| if element.letter == 0 { 0 } else { 1 + u32::from(element.form & 3 == 2) });
            if case_first == "upper" { case.reverse() } else { case }
        }),
        _ => letters.then_with(marks).then_with(forms),
    };
    Ok(if work.over.get() { Ordering::Equal } else { order })
}

/// Steps between two looks at whether to go on: less than a millisecond of work.
const STEPS: u32 = 4_096;

/// Steps of a comparison since it last asked whether to go on.
struct Work<'w> {
    left: Cell<u32>,
    over: Cell<bool>,
    stop: &'w dyn Fn() -> bool,
}

impl Work<'_> {
    /// Counts a step; whether it may be made.
    fn step(&self) -> bool {
        let left = self.left.get() - 1;
        self.left.set(if left == 0 { STEPS } else { left });
        if left == 0 {
            self.over.set(self.over.get() || (self.stop)());
        }
        !self.over.get()
    }
}

struct Elements<'a> {
    work: &'a Work<'a>,
    chars: Chars<'a>,
    ready: VecDeque<Element>,
    /// Digits at the front of `chars` whose number has been announced.
    digits: usize,
    numeric: bool,
    shifted: bool,
}

impl Iterator for Elements<'_> {
    type Item = Element;

    fn next(&mut self) -> Option<Element> {
        while self.work.step() {
            if let Some(element) = self.ready.pop_front() {
                let variable = (SPACE..SYMBOL).contains(&element.letter);
                if self.shifted && variable {
                    continue;
                }
                return Some(element);
            }
            let next = self.chars.next()?;
            if self.digits > 0 {
                self.digits -= 1;
                return Some(letter(DIGIT + 1 + u32::from(next) - 48));
            }
            if self.numeric && next.is_ascii_digit() {
                self.number(next);
            } else {
                self.spell(next);
            }
        }
        None
    }
}

impl<'a> Elements<'a> {
    fn new(text: &'a str, numeric: bool, shifted: bool, work: &'a Work<'a>) -> Self {
        Self { work, chars: text.chars(), ready: VecDeque::new(), digits: 0, numeric, shifted }
    }

    /// Announces a run of digits by its length without leading zeros, and its first digit.
    fn number(&mut self, first: char) {
        let mut digit = first;
        while digit == '0' && self.chars.as_str().starts_with(|next: char| next.is_ascii_digit()) {
            digit = self.chars.next().unwrap_or(digit);
        }
        self.digits = self.chars.as_str().bytes().take_while(u8::is_ascii_digit).count();
        let length = u32::try_from(self.digits).unwrap_or(u32::MAX).min(0x00f0_0000);
        self.ready.push_back(letter(DIGIT + 256 + length));
        self.ready.push_back(letter(DIGIT + 1 + u32::from(digit) - 48));
    }

    fn spell(&mut self, whole: char) {
        // Syllables, one letter that Russian counts as its own, and marks that stand alone are not taken apart.
        let entire = whole.is_ascii()
            || matches!(whole, '\u{ac00}'..='\u{d7a3}' | 'й' | 'Й')
            || SYMBOLS.iter().any(|list| list.contains(whole));
        if entire {
            self.ready.extend(plain(whole, false));
            return;
        }
        let (mut parts, mut same) = (Vec::new(), Vec::new());
        decompose_compatible(whole, |part| parts.push(part));
        decompose_canonical(whole, |part| same.push(part));
        let variant = parts != same;
        for part in parts {
            // Beside numbers, a raised or round digit is a sign behind them.
            if self.numeric && part.is_ascii_digit() {
                self.ready.push_back(letter(DIGIT + 0x00ff_ff00 + u32::from(part)));
            } else {
                self.part(part, variant);
            }
        }
    }

    fn part(&mut self, part: char, variant: bool) {
        let lower = part.to_lowercase().next().unwrap_or(part);
        let Some((_, letters)) = JOINED.iter().find(|(joined, _)| *joined == lower) else {
            self.ready.extend(plain(part, variant));
            return;
        };
        for (at, one) in letters.chars().enumerate() {
            let one = if lower == part { one } else { one.to_ascii_uppercase() };
            self.ready.extend(plain(one, variant));
            if at == 0 {
                self.ready.push_back(Element { letter: 0, mark: stroke(lower), form: 1 });
            }
        }
    }
}

/// Weight of the stroke through a letter, or of its being joined.
fn stroke(letter: char) -> u32 {
    match letter {
        // That of U+0338 in `MARKS`.
        'ø' => 20,
        'ð' => 101,
        _ => 100,
    }
}

fn letter(letter: u32) -> Element {
    Element { letter, mark: 1, form: 1 }
}

/// The element of a character that is not taken apart further; none for one that says nothing.
fn plain(c: char, variant: bool) -> Option<Element> {
    let at = |list: &str| list.chars().position(|one| one == c).and_then(|at| u32::try_from(at).ok());
    let code = c as u32;
    let behind = if variant { 4 } else { 0 };
    let form = |capital: bool| if capital { 2 + behind } else { 1 + behind };
    if c.is_ascii_alphabetic() {
        let lower = u32::from(c.to_ascii_lowercase() as u8 - b'a');
        return Some(Element { letter: LATIN + 16 * lower, mark: 1, form: form(c.is_ascii_uppercase()) });
    }
    if c.is_ascii_digit() {
        return Some(Element { letter: DIGIT + 1 + code - 48, mark: 1, form: form(false) });
    }
    if canonical_combining_class(c) != 0 {
        let weight = at(MARKS).map_or(code, |at| 10 + at);
        return Some(Element { letter: 0, mark: weight, form: 1 });
    }
    let class = if let Some(at) = at(SPACES) {
        SPACE + 1 + at
    } else if let Some(at) = at(PUNCTUATION) {
        PUNCT + 1 + at
    } else if let Some(at) = at(SYMBOLS[0]) {
        SYMBOL + 1 + at
    } else if let Some(at) = at(SYMBOLS[1]) {
        SYMBOL + 0x20_0000 + at
    } else if let Some(at) = at(CURRENCIES) {
        CURRENCY + 1 + at
    } else if matches!(code, 0x2010..=0x205e | 0x3001..=0x303f) && !matches!(c, '\u{2044}' | '\u{2052}') {
        PUNCT + 0x100 + code
    } else if says_nothing(c) {
        return None;
    } else if c.is_alphanumeric() {
        let lower = match c.to_lowercase().next().unwrap_or(c) {
            'ς' => 'σ',
            lower => lower,
        };
        let own = OWN.iter().find(|(own, _)| *own == lower);
        let han = matches!(code, 0x3400..=0x9fff | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff);
        let unknown = if han { HAN } else { OTHER } + lower as u32;
        let weight = own.map_or(unknown, |(_, after)| LATIN + 16 * (*after as u32 - 97) + 8);
        return Some(Element { letter: weight, mark: 1, form: form(lower != c) });
    } else {
        SYMBOL + 0x100 + code
    };
    Some(Element { letter: class, mark: 1, form: form(false) })
}

/// Controls and characters without width.
fn says_nothing(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(a: &str, b: &str, options: &[&str]) -> Ordering {
        let options: Vec<String> = options.iter().map(|text| (*text).to_owned()).collect();
        compare(a, b, &Options(&options), &|| false).unwrap()
    }

    #[test]
    fn long_texts_are_compared_in_steps_that_can_be_the_last() {
        // What says nothing, what is passed over, numbers, characters of eighteen parts: all of it takes time.
        for (unit, count, options) in [
            ("a", 65_536, &[][..]),
            ("\u{200b}", 65_536, &[]),
            ("-", 65_536, &["", "", "", "true"]),
            ("a1", 65_536, &["", "", "true"]),
            ("\u{fdfa}", 8_192, &[]),
        ] {
            let options: Vec<String> = options.iter().map(|text| (*text).to_owned()).collect();
            let (a, b) = (unit.repeat(count) + "x", unit.repeat(count) + "y");
            let asked = Cell::new(0_usize);
            let ask = |limit: usize| {
                asked.set(0);
                let stop = || {
                    asked.set(asked.get() + 1);
                    asked.get() >= limit
                };
                compare(&a, &b, &Options(&options), &stop)
            };
            assert_eq!(ask(usize::MAX), Ok(Ordering::Less), "{unit}");
            assert!(asked.get() >= 2 * count / 4_096, "{unit}: {}", asked.get());
            assert_eq!(ask(3), Ok(Ordering::Equal), "{unit}");
            assert_eq!(asked.get(), 3, "{unit}: it went on");
        }
    }

    #[test]
    fn letters_come_before_marks_and_marks_before_capitals() {
        let mut words = [
            "Zebra", "zebra", "résumé", "resume", "Résumé", "Resume", "apple", "Äpfel", "Banana", "_x", "10",
            "9",
        ];
        words.sort_by(|a, b| order(a, b, &[]));
        assert_eq!(
            words,
            [
                "_x", "10", "9", "Äpfel", "apple", "Banana", "resume", "Resume", "résumé", "Résumé", "zebra",
                "Zebra"
            ]
        );
    }

    #[test]
    fn numbers_inside_texts_are_ordered_by_their_value_when_asked() {
        assert_eq!(order("item 10", "item 9", &["", "", "true"]), Ordering::Greater);
        assert_eq!(order("item 10", "item 9", &[]), Ordering::Less);
        assert_eq!(order("a007", "a7", &["", "", "true"]), Ordering::Equal);
        assert_eq!(order("a10", "a9", &["en-u-kn-true"]), Ordering::Greater);
        assert_eq!(order("a10", "a9", &["en-u-kn"]), Ordering::Greater);
        assert_eq!(order("a10", "a9", &["en-u-kn-false"]), Ordering::Less);
    }

    #[test]
    fn the_order_is_one_that_sorting_can_rely_on() {
        let texts = [
            "", "a", "A", "á", "a\u{301}", "ª", "æ", "ae", "Æ", "10", "9", "½", "ß", "ss", "й", "и", " ",
            "-", "\u{0}", "한",
        ];
        for a in texts {
            assert_eq!(order(a, a, &[]), Ordering::Equal);
            for b in texts {
                assert_eq!(order(a, b, &[]), order(b, a, &[]).reverse(), "{a} {b}");
                for c in texts {
                    if order(a, b, &[]).is_le() && order(b, c, &[]).is_le() {
                        assert!(order(a, c, &[]).is_le(), "{a} {b} {c}");
                    }
                }
            }
        }
    }
}
