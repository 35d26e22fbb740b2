//! The order of texts for people: the root collation for Latin text, Greek and Cyrillic letters; code points for the rest.
//!
//! Unicode TR10 with three levels: what the letters are, which marks they carry, whether they are capitals. Texts are compared level by
//! level and never copied.

use std::{cmp::Ordering, collections::VecDeque, str::Chars};

use unicode_normalization::char::{canonical_combining_class, decompose_canonical, decompose_compatible};

use super::{Mistake, Options};

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

/// How `a` and `b` are ordered.
///
/// # Errors
/// A language that is not one, an option that does not exist.
pub(super) fn compare<'t>(a: &'t str, b: &'t str, options: &Options<'_>) -> Result<Ordering, Mistake> {
    let language = options.language()?;
    let sensitivity = options.one_of(SENSITIVITY, "sensitivity", &["variant", "base", "accent", "case"])?;
    let case_first = options.one_of(CASE_FIRST, "caseFirst", &["false", "lower", "upper"])?;
    let truthy = |at: usize| options.get(at).map(|text| !matches!(text, "false" | "0" | "null" | "NaN"));
    let numeric = truthy(NUMERIC).unwrap_or_else(|| {
        // `en-u-kn` and `en-u-kn-true` ask for it in the language.
        language.split_once("-u-").is_some_and(|(_, keys)| {
            let mut keys = keys.split('-').skip_while(|key| *key != "kn").skip(1);
            keys.clone().next() != Some("false") && (keys.next().is_some() || language.ends_with("-kn"))
        })
    });
    if a == b {
        return Ok(Ordering::Equal);
    }
    let shifted = truthy(IGNORE_PUNCTUATION).unwrap_or(false);
    let elements = |text: &'t str| Elements::new(text, numeric, shifted);
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
    Ok(match sensitivity {
        "base" => letters,
        "accent" => letters.then_with(marks),
        // Small or capital, and nothing else that tells forms of a letter apart.
        "case" => letters.then_with(|| {
            let case =
                level(|element| if element.letter == 0 { 0 } else { 1 + u32::from(element.form & 3 == 2) });
            if case_first == "upper" { case.reverse() } else { case }
        }),
        _ => letters.then_with(marks).then_with(forms),
    })
}

struct Elements<'a> {
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
        loop {
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
    }
}

impl<'a> Elements<'a> {
    fn new(text: &'a str, numeric: bool, shifted: bool) -> Self {
        Self { chars: text.chars(), ready: VecDeque::new(), digits: 0, numeric, shifted }
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
        compare(a, b, &Options(&options)).unwrap()
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
