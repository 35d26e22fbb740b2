//! Nearness in meaning by a table of word vectors that is part of the program: no model, nothing to set up.
//!
//! A text is the sum of the vectors of its words, so it costs little more than looking them up. The table is made by
//! `scripts/train_meaning.py`; a word that it lacks is put together from pieces, and one that no pieces make has no
//! part in the sum. Words in scripts other than Latin have none.

use std::sync::LazyLock;

use pulp::{Arch, Simd, WithSimd};
use rustc_hash::FxHashMap;

use crate::{pieces::pieces, vectors::quantize};

/// The table as a file: `GWM1`, the numbers of dimensions, of words and of pieces that continue words (32 bits each, little end first),
/// for each a scale (32-bit fraction), for each its vector (8 bits a dimension), then the texts, each ended by a line feed.
static FILE: &[u8] = include_bytes!("meaning.bin");

static TABLE: LazyLock<Table> =
    LazyLock::new(|| Table::read(FILE).expect("the table in the program is whole"));

/// Numbers of a vector.
pub(crate) const DIMENSIONS: usize = 192;

/// The table in the program.
pub(crate) fn table() -> &'static Table {
    &TABLE
}

/// Vectors of words and of pieces of words.
pub(crate) struct Table {
    scales: Vec<f32>,
    rows: &'static [u8],
    words: FxHashMap<&'static str, u32>,
    continuing: FxHashMap<&'static str, u32>,
}

impl Table {
    fn read(file: &'static [u8]) -> Option<Self> {
        let (magic, rest) = file.split_at_checked(4)?;
        let (head, rest) = rest.split_at_checked(12)?;
        let mut numbers = head.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
        let (dimensions, whole, parts) = (numbers.next()? as usize, numbers.next()?, numbers.next()?);
        if dimensions != DIMENSIONS {
            return None;
        }
        let count = (whole + parts) as usize;
        let (scales, rest) = rest.split_at_checked(count * 4)?;
        let (rows, texts) = rest.split_at_checked(count * DIMENSIONS)?;
        let scales = scales.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let mut table = Self { scales, rows, words: FxHashMap::default(), continuing: FxHashMap::default() };
        table.words.reserve(whole as usize);
        table.continuing.reserve(parts as usize);
        for (text, number) in std::str::from_utf8(texts).ok()?.lines().zip(0..) {
            if number < whole {
                table.words.insert(text, number);
            } else {
                table.continuing.insert(text, number);
            }
        }
        (magic == b"GWM1" && table.words.len() + table.continuing.len() == count).then_some(table)
    }

    /// Adds the pieces of a lower-case word to `out`; none if some part of it is unknown.
    pub(crate) fn cut(&self, word: &str, out: &mut Vec<u32>) {
        let before = out.len();
        let find = |piece: &str, continues: bool| {
            let of = if continues { &self.continuing } else { &self.words };
            of.get(piece).copied()
        };
        // Longer ones are codes and keys.
        const LONGEST: usize = 40;
        if word.len() > LONGEST || !word.is_ascii() || !pieces(word, find, |number| out.push(number)) {
            out.truncate(before);
        }
    }

    /// The vector of a text with these pieces, of length one; zeros if it has none.
    pub(crate) fn vector(&self, pieces: &[u32]) -> Vec<i8> {
        let mut sum = vec![0.0_f32; DIMENSIONS];
        Arch::new().dispatch(Sum { table: self, pieces, sum: &mut sum });
        quantize(&sum)
    }
}

/// Sums up vectors, and makes the sum as long as one.
struct Sum<'s> {
    table: &'s Table,
    pieces: &'s [u32],
    sum: &'s mut [f32],
}

impl WithSimd for Sum<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { table, pieces, sum } = self;
        for piece in pieces {
            let at = *piece as usize;
            let row = &table.rows[at * DIMENSIONS..(at + 1) * DIMENSIONS];
            let scale = table.scales[at];
            for (sum, number) in sum.iter_mut().zip(row) {
                *sum += f32::from(*number as i8) * scale;
            }
        }
        let mut square = 0.0_f32;
        for value in &*sum {
            square += value * value;
        }
        let inverse = if square > 0.0 { square.sqrt().recip() } else { 0.0 };
        for value in &mut *sum {
            *value *= inverse;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::cosines;

    fn near(a: &str, b: &str) -> f32 {
        let vector = |text: &str| {
            let mut pieces = Vec::new();
            text.split(' ').for_each(|word| table().cut(word, &mut pieces));
            table().vector(&pieces)
        };
        cosines(&vector(a), [vector(b).as_slice()].into_iter())[0]
    }

    #[test]
    fn texts_of_like_meaning_are_near_without_a_word_in_common() {
        for (a, b, other) in [
            ("staff roster", "list employees", "delete file"),
            ("dispatch parcel", "ship order", "read calendar"),
            ("erase document", "delete file", "weather forecast"),
        ] {
            assert!(near(a, b) > near(a, other) + 0.1, "{a}: {} {}", near(a, b), near(a, other));
        }
        assert!((near("send mail", "send mail") - 1.0).abs() < 0.03);
    }

    #[test]
    fn what_the_table_does_not_know_has_no_part_in_a_text() {
        assert_eq!(near("привет", "hello"), 0.0);
        assert_eq!(near(&"x".repeat(50), "hello"), 0.0);
        assert!((near("hello привет", "hello") - 1.0).abs() < 0.03);
    }

    #[test]
    fn a_damaged_table_is_refused() {
        assert!(Table::read(FILE).is_some());
        assert!(Table::read(&FILE[..FILE.len() / 2]).is_none());
        assert!(Table::read(&FILE[4..]).is_none());
        assert!(Table::read(b"").is_none());
    }
}
