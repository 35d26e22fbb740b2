//! Text to words: folds accents, splits identifiers, cuts scripts without spaces into character pairs.
//!
//! Stop words and stems are in `terms`.

use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// Longest word kept, in bytes; the rest of a longer one is dropped.
const MAX_WORD_BYTES: usize = 64;
/// Most parts of an identifier whose joined form is kept.
const MAX_JOINED_PARTS: usize = 4;

/// Origin of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A whole word or a part of an identifier.
    Word,
    /// An identifier of several parts without its separators: `getUser` gives `getuser`.
    Joined,
    /// Two neighbouring characters of a script written without spaces (or one standing alone).
    Gram,
}

/// Calls `each` with every word of `text`, lower-case and without accents, in order.
pub(crate) fn words(text: &str, mut each: impl FnMut(&str, TokenKind)) {
    let mut cutter = Cutter::default();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at].is_ascii() {
            if cutter.run.is_empty()
                && let Some(end) = plain_word(bytes, at)
            {
                cutter.end_grams(&mut each);
                lower_into(&text[at..end], &mut cutter.buffer);
                each(&cutter.buffer, TokenKind::Word);
                at = end;
            } else {
                cutter.latin(char::from(bytes[at]), &mut each);
                at += 1;
            }
            continue;
        }
        let Some(c) = text[at..].chars().next() else { break };
        at += c.len_utf8();
        if unspaced(c) {
            cutter.unspaced(c, &mut each);
        } else {
            cutter.folded(c, &mut each);
        }
    }
    cutter.end_run(&mut each);
    cutter.end_grams(&mut each);
}

/// Returns the end of the word at `at`, if it is of plain lower-case letters (the first may be a capital) and nothing
/// that could make it part of an identifier follows.
fn plain_word(bytes: &[u8], at: usize) -> Option<usize> {
    if !bytes[at].is_ascii_alphabetic() {
        return None;
    }
    let end = bytes[at + 1..]
        .iter()
        .position(|byte| !byte.is_ascii_lowercase())
        .map_or(bytes.len(), |length| at + 1 + length);
    match bytes.get(end) {
        Some(next) if next.is_ascii_alphanumeric() || matches!(next, b'_' | b'-') || !next.is_ascii() => None,
        _ => Some(end),
    }
}

/// Scripts that put no spaces between words.
fn unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF // Thai, Lao
        | 0x1000..=0x109F // Myanmar
        | 0x1100..=0x11FF // Hangul jamo
        | 0x1780..=0x17FF // Khmer
        | 0x3005..=0x3007
        | 0x3040..=0x30FF // kana
        | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF // Han
        | 0xAC00..=0xD7AF // Hangul
        | 0xF900..=0xFAFF
        | 0x20000..=0x3FFFF)
        && c.is_alphanumeric()
}

#[derive(Default)]
struct Cutter {
    /// The identifier being read: folded, case kept, `_` for separators.
    run: String,
    /// The last character of an unspaced script, and whether a pair ended with it.
    last: Option<(char, bool)>,
    buffer: String,
}

impl Cutter {
    fn latin(&mut self, c: char, each: &mut impl FnMut(&str, TokenKind)) {
        self.end_grams(each);
        if c.is_ascii_alphanumeric() {
            self.run.push(c);
        } else if (c == '_' || c == '-') && !self.run.is_empty() {
            self.run.push('_');
        } else {
            self.end_run(each);
        }
    }

    fn folded(&mut self, c: char, each: &mut impl FnMut(&str, TokenKind)) {
        if is_combining_mark(c) {
            return;
        }
        if !c.is_alphanumeric() {
            self.end_run(each);
            self.end_grams(each);
            return;
        }
        self.end_grams(each);
        match c {
            'ß' => self.run.push_str("ss"),
            'æ' | 'Æ' => self.run.push_str("ae"),
            'œ' | 'Œ' => self.run.push_str("oe"),
            'ø' | 'Ø' => self.run.push('o'),
            'ł' | 'Ł' => self.run.push('l'),
            'đ' | 'Đ' => self.run.push('d'),
            'ı' => self.run.push('i'),
            _ => {
                let run = &mut self.run;
                decompose_compatible(c, |part| {
                    if part.is_alphanumeric() && !is_combining_mark(part) {
                        run.push(part);
                    }
                });
            }
        }
    }

    fn unspaced(&mut self, c: char, each: &mut impl FnMut(&str, TokenKind)) {
        self.end_run(each);
        if let Some((before, _)) = self.last {
            self.buffer.clear();
            self.buffer.push(before);
            self.buffer.push(c);
            each(&self.buffer, TokenKind::Gram);
            self.last = Some((c, true));
        } else {
            self.last = Some((c, false));
        }
    }

    fn end_grams(&mut self, each: &mut impl FnMut(&str, TokenKind)) {
        if let Some((c, false)) = self.last.take() {
            self.buffer.clear();
            self.buffer.push(c);
            each(&self.buffer, TokenKind::Gram);
        }
    }

    fn end_run(&mut self, each: &mut impl FnMut(&str, TokenKind)) {
        if self.run.is_empty() {
            return;
        }
        let mut parts = 0;
        let mut start = 0;
        let total = part_ends(&self.run).count();
        for end in part_ends(&self.run) {
            let part = self.run[start..end].trim_matches('_');
            start = end;
            // A single letter split off an identifier (`iPhone`, `s3`) says nothing; the joined form has it.
            if part.is_empty() || (total > 1 && part.len() == 1 && part.as_bytes()[0].is_ascii_alphabetic()) {
                parts += usize::from(!part.is_empty());
                continue;
            }
            parts += 1;
            lower_into(part, &mut self.buffer);
            each(&self.buffer, TokenKind::Word);
        }
        if (2..=MAX_JOINED_PARTS).contains(&parts) {
            self.buffer.clear();
            for c in self.run.chars().filter(|c| *c != '_') {
                self.buffer.extend(c.to_lowercase());
            }
            if self.buffer.len() <= MAX_WORD_BYTES {
                each(&self.buffer, TokenKind::Joined);
            }
        }
        self.run.clear();
    }
}

fn lower_into(part: &str, buffer: &mut String) {
    buffer.clear();
    if part.is_ascii() {
        buffer.push_str(&part[..part.len().min(MAX_WORD_BYTES)]);
        buffer.make_ascii_lowercase();
        return;
    }
    for c in part.chars() {
        if buffer.len() >= MAX_WORD_BYTES {
            break;
        }
        buffer.extend(c.to_lowercase());
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Separator,
}

fn class(c: char) -> Class {
    if c == '_' {
        Class::Separator
    } else if c.is_numeric() {
        Class::Digit
    } else if c.is_uppercase() {
        Class::Upper
    } else {
        Class::Lower
    }
}

/// Returns the ends of the parts of an identifier: at a separator, between letters and digits, at `aB`, at `ABc`
/// before `B`, but not inside a plural like `PRs`.
fn part_ends(run: &str) -> impl Iterator<Item = usize> + '_ {
    let mut chars = run.char_indices();
    let mut before: Option<(usize, Class)> = None;
    std::iter::from_fn(move || {
        for (at, c) in chars.by_ref() {
            let now = class(c);
            let previous = before.replace((at, now));
            let Some((_, then)) = previous else { continue };
            let cut = match (then, now) {
                (Class::Separator, Class::Separator) => false,
                (Class::Separator, _) | (_, Class::Separator) => then != Class::Separator,
                (Class::Lower, Class::Upper) => true,
                (Class::Digit, Class::Digit) => false,
                (Class::Digit, _) | (_, Class::Digit) => true,
                (Class::Upper, Class::Upper) => {
                    let rest = &run[at + c.len_utf8()..];
                    let next = rest.chars().next();
                    let plural = rest
                        .strip_prefix('s')
                        .is_some_and(|tail| tail.chars().next().is_none_or(|c| class(c) != Class::Lower));
                    next.is_some_and(|next| class(next) == Class::Lower) && !plural
                }
                _ => false,
            };
            if cut {
                return Some(at);
            }
        }
        before.take().map(|_| run.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<String> {
        let mut out = Vec::new();
        words(text, |word, kind| {
            out.push(match kind {
                TokenKind::Joined => format!("={word}"),
                TokenKind::Word | TokenKind::Gram => word.to_owned(),
            });
        });
        out
    }

    #[test]
    fn splits_identifiers_and_keeps_the_joined_form() {
        assert_eq!(cut("getUserProfile"), ["get", "user", "profile", "=getuserprofile"]);
        assert_eq!(cut("list_open-PRs"), ["list", "open", "prs", "=listopenprs"]);
        assert_eq!(cut("HTTPServer2"), ["http", "server", "2", "=httpserver2"]);
        assert_eq!(cut("_private__name_"), ["private", "name", "=privatename"]);
    }

    #[test]
    fn single_letters_split_off_an_identifier_are_only_in_the_joined_form() {
        assert_eq!(cut("iPhone s3"), ["phone", "=iphone", "3", "=s3"]);
        assert_eq!(cut("x"), ["x"]);
    }

    #[test]
    fn accents_and_width_fold_away() {
        assert_eq!(cut("Crème BRÛLÉE Straße ｆｕｌｌ"), ["creme", "brulee", "strasse", "full"]);
        assert_eq!(cut("cafe\u{301}"), ["cafe"]);
        assert_eq!(cut("Привет"), ["привет"]);
    }

    #[test]
    fn scripts_without_spaces_become_character_pairs() {
        assert_eq!(cut("使用必应search搜"), ["使用", "用必", "必应", "search", "搜"]);
        assert_eq!(cut("東京"), ["東京"]);
    }

    #[test]
    fn binary_and_punctuation_give_no_words() {
        assert!(cut("\u{0}\u{1}!!! \u{fffd} --- ___").is_empty());
    }
}
