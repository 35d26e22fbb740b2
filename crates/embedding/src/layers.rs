//! The layers between the linear maps of a BERT encoder: normalisation, attention and GELU, in loops that the compiler
//! turns into wide instructions where the processor has them.

use pulp::{Arch, Simd, WithSimd};

/// Numbers that are added side by side.
const LANES: usize = 8;
/// Tokens that attend to the others at a time, and numbers of theirs that are worked out side by side.
const QUERIES: usize = 4;
const TILE: usize = 16;

/// Brings each row of `weight.len()` numbers to mean 0 and variance 1, then scales and shifts it.
pub(crate) struct Norm {
    pub(crate) weight: Vec<f32>,
    pub(crate) bias: Vec<f32>,
    pub(crate) epsilon: f32,
}

impl Norm {
    /// Adds `more` to `rows` and normalises.
    pub(crate) fn add(&self, rows: &mut [f32], more: &[f32]) {
        rows.iter_mut().zip(more).for_each(|(value, more)| *value += more);
        self.apply(rows);
    }

    pub(crate) fn apply(&self, rows: &mut [f32]) {
        Arch::new().dispatch(Normalise(self, rows));
    }
}

struct Normalise<'n>(&'n Norm, &'n mut [f32]);

impl WithSimd for Normalise<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self(Norm { weight, bias, epsilon }, rows) = self;
        for row in rows.chunks_exact_mut(weight.len()) {
            let length = row.len() as f32;
            let mean = sum(row, |value| value) / length;
            let variance = sum(row, |value| (value - mean) * (value - mean)) / length;
            let scale = (variance + epsilon).sqrt().recip();
            for ((value, weight), bias) in row.iter_mut().zip(weight).zip(bias) {
                *value = (*value - mean) * scale * weight + bias;
            }
        }
    }
}

/// x times the normal distribution function, for each x.
pub(crate) fn gelu(values: &mut [f32]) {
    Arch::new().dispatch(Gelu(values));
}

struct Gelu<'g>(&'g mut [f32]);

impl WithSimd for Gelu<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.0.iter_mut().for_each(|x| *x = gelu_of(*x));
    }
}

/// Computes each token's row after attending to all tokens, in `heads` parts. `rows` are query, key and value of
/// each token, each `size` long.
pub(crate) fn attend(rows: &[f32], size: usize, heads: usize) -> Vec<f32> {
    let mut out = vec![0.0; rows.len() / 3];
    Arch::new().dispatch(Attend { rows, size, heads, out: &mut out });
    out
}

struct Attend<'a> {
    rows: &'a [f32],
    size: usize,
    heads: usize,
    out: &'a mut [f32],
}

impl WithSimd for Attend<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { rows, size, heads, out } = self;
        let (count, width) = (rows.len() / (3 * size), size / heads);
        let scale = (width as f32).sqrt().recip();
        let (tokens, numbers) = (count.next_multiple_of(TILE), width.next_multiple_of(TILE));
        // A head's keys, one number of all tokens after another; its values, one token after another.
        let (mut keys, mut values) = (vec![0.0; width * tokens], vec![0.0; count * numbers]);
        let (mut scores, mut mixed) = (vec![0.0; QUERIES * tokens], vec![0.0; QUERIES * numbers]);
        for head in 0..heads {
            for (token, row) in rows.chunks_exact(3 * size).enumerate() {
                let part = |of: usize| &row[of * size + head * width..][..width];
                for (at, key) in part(1).iter().enumerate() {
                    keys[at * tokens + token] = *key;
                }
                values[token * numbers..][..width].copy_from_slice(part(2));
            }
            for first in (0..count).step_by(QUERIES) {
                // The last ones are worked out twice where there are no more.
                let query = |at: usize| (first + at).min(count - 1) * 3 * size + head * width;
                let queries: [&[f32]; QUERIES] = std::array::from_fn(|at| &rows[query(at)..][..width]);
                tiles(queries, &keys, tokens, &mut scores);
                for scores in scores.chunks_exact_mut(tokens) {
                    soften(&mut scores[..count], scale);
                }
                let shares: [&[f32]; QUERIES] = std::array::from_fn(|at| &scores[at * tokens..][..count]);
                tiles(shares, &values, numbers, &mut mixed);
                for (at, mixed) in mixed.chunks_exact(numbers).take(QUERIES.min(count - first)).enumerate() {
                    out[(first + at) * size + head * width..][..width].copy_from_slice(&mixed[..width]);
                }
            }
        }
    }
}

/// Each of some rows times a matrix whose rows are `width` long, a multiple of [`TILE`].
#[inline(always)]
fn tiles(rows: [&[f32]; QUERIES], matrix: &[f32], width: usize, out: &mut [f32]) {
    for start in (0..width).step_by(TILE) {
        let mut sums = [[0.0_f32; TILE]; QUERIES];
        for (at, line) in matrix.chunks_exact(width).enumerate() {
            let Some(line) = line[start..].first_chunk::<TILE>() else { break };
            for (sums, row) in sums.iter_mut().zip(rows) {
                let factor = row[at];
                for (sum, number) in sums.iter_mut().zip(line) {
                    *sum += factor * number;
                }
            }
        }
        for (out, sums) in out.chunks_exact_mut(width).zip(sums) {
            out[start..start + TILE].copy_from_slice(&sums);
        }
    }
}

/// Softmax of the scaled scores.
#[inline(always)]
fn soften(scores: &mut [f32], scale: f32) {
    let (chunks, rest) = scores.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for chunk in chunks {
        for (lane, score) in lanes.iter_mut().zip(chunk) {
            *lane = if *score > *lane { *score } else { *lane };
        }
    }
    let highest = lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max);
    for score in scores.iter_mut() {
        *score = exp((*score - highest) * scale);
    }
    let whole = sum(scores, |score| score).recip();
    for score in scores.iter_mut() {
        *score *= whole;
    }
}

#[inline(always)]
fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += of(*value));
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|value| of(*value)).sum::<f32>()
}

/// erf after Abramowitz and Stegun 7.1.26, error below 2e-7.
#[inline(always)]
fn gelu_of(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let poly = ((((1.061_405_4 * t - 1.453_152) * t + 1.421_413_7) * t - 0.284_496_74) * t + 0.254_829_6) * t;
    let erf = 1.0 - poly * exp(-z * z);
    0.5 * (x + x.abs() * erf)
}

/// e to the power of x, which is at most 0, with a relative error below 1e-6: the power of two nearest to it, times
/// the series of what is left.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// Adding it rounds to a whole number, which is then in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let x = x.max(-87.0);
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let whole = rounded - ROUND;
    let rest = x - whole * 0.693_359_4 + whole * 2.121_944_4e-4;
    let series = 1.0 / 120.0 + rest * (1.0 / 720.0);
    let series = 0.5 + rest * (1.0 / 6.0 + rest * (1.0 / 24.0 + rest * series));
    let series = 1.0 + rest * (1.0 + rest * series);
    let power = rounded.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    series * f32::from_bits(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gelu_has_its_known_values() {
        for (x, wanted) in [
            (0.0, 0.0),
            (1.0, 0.841_344_7),
            (-1.0, -0.158_655_3),
            (3.0, 2.995_950_2),
            (-40.0, 0.0),
            (50.0, 50.0),
        ] {
            let mut values = [x];
            gelu(&mut values);
            assert!((values[0] - wanted).abs() < 1e-5, "{x}: {values:?}");
        }
    }

    #[test]
    fn exp_is_near_that_of_the_library() {
        for at in 0..8600 {
            let x = at as f32 / -100.0;
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-6, "{x}: {} {}", exp(x), x.exp());
        }
        assert!(exp(f32::NEG_INFINITY) < 1e-37);
    }

    #[test]
    fn a_normalised_row_has_mean_0_and_variance_1() {
        let mut rows: Vec<f32> = (0..22).map(|at| (at * at) as f32).collect();
        Norm { weight: vec![1.0; 11], bias: vec![0.0; 11], epsilon: 1e-12 }.apply(&mut rows);
        for row in rows.chunks(11) {
            assert!(row.iter().sum::<f32>().abs() < 1e-4);
            assert!((row.iter().map(|value| value * value).sum::<f32>() - 11.0).abs() < 1e-3);
        }
    }

    #[test]
    fn a_token_attends_to_those_whose_key_is_like_its_query() {
        // Two heads of width 2; the first token's query is the second one's key.
        let rows = [
            [9.0, 0.0, 0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0],
            [0.0, 0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 5.0, 6.0, 7.0, 8.0],
        ]
        .concat();
        let out = attend(&rows, 4, 2);
        let wanted = [5.0, 6.0, 5.0, 6.0, 3.0, 4.0, 5.0, 6.0];
        assert!(out.iter().zip(wanted).all(|(out, wanted)| (out - wanted).abs() < 1e-4), "{out:?}");
    }

    /// Attention as it is written down, one number after another.
    fn attend_slowly(rows: &[f32], size: usize, heads: usize) -> Vec<f64> {
        let (count, width) = (rows.len() / (3 * size), size / heads);
        let number = |token: usize, of: usize, at: usize| f64::from(rows[(token * 3 + of) * size + at]);
        let mut out = vec![0.0; count * size];
        for (token, out) in out.chunks_exact_mut(size).enumerate() {
            for head in 0..heads {
                let part = head * width..(head + 1) * width;
                let scores: Vec<f64> = (0..count)
                    .map(|other| {
                        let product: f64 =
                            part.clone().map(|at| number(token, 0, at) * number(other, 1, at)).sum();
                        (product / (width as f64).sqrt()).exp()
                    })
                    .collect();
                let whole: f64 = scores.iter().sum();
                for at in part {
                    out[at] = (0..count).map(|other| scores[other] / whole * number(other, 2, at)).sum();
                }
            }
        }
        out
    }

    #[test]
    fn attention_is_that_of_a_plain_loop_for_any_number_of_tokens() {
        // Three heads of 20 numbers: more than a tile, and not a multiple of one.
        let (heads, size) = (3, 60);
        let mut random = 0x9E37_79B9_7F4A_7C15_u64;
        let mut next = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 40) as f32 / (1 << 22) as f32 - 2.0
        };
        for count in [1, 4, 5, 8, 16, 17, 37] {
            let rows: Vec<f32> = (0..count * 3 * size).map(|_| next()).collect();
            let (out, wanted) = (attend(&rows, size, heads), attend_slowly(&rows, size, heads));
            assert_eq!(out.len(), wanted.len());
            for (at, (out, wanted)) in out.iter().zip(wanted).enumerate() {
                assert!(
                    (f64::from(*out) - wanted).abs() < 1e-5,
                    "{count} tokens, number {at}: {out} {wanted}"
                );
            }
        }
    }
}
