//! What lies between the linear maps of a BERT encoder: normalisation, attention and GELU, in loops that the compiler
//! turns into wide instructions where the processor has them.

use pulp::{Arch, Simd, WithSimd};

/// Numbers that are added side by side.
const LANES: usize = 8;

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

/// What each token's row becomes by attending to all tokens, in `heads` parts. `rows` hold query, key and value of
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
        let padded = count.next_multiple_of(LANES);
        // A head's keys, one number of all tokens after another.
        let mut keys = vec![0.0; width * padded];
        let mut scores = vec![0.0; padded];
        for head in 0..heads {
            for (token, row) in rows.chunks_exact(3 * size).enumerate() {
                let start = size + head * width;
                for (at, key) in row[start..start + width].iter().enumerate() {
                    keys[at * padded + token] = *key;
                }
            }
            for (row, out) in rows.chunks_exact(3 * size).zip(out.chunks_exact_mut(size)) {
                scores.fill(0.0);
                for (query, keys) in
                    row[head * width..(head + 1) * width].iter().zip(keys.chunks_exact(padded))
                {
                    scores.iter_mut().zip(keys).for_each(|(score, key)| *score += query * key);
                }
                let highest =
                    scores[..count].iter().fold(f32::NEG_INFINITY, |highest, score| highest.max(*score));
                scores.iter_mut().for_each(|score| *score = exp((*score - highest) * scale));
                let whole = scores[..count].iter().sum::<f32>().recip();
                let out = &mut out[head * width..(head + 1) * width];
                for (score, row) in scores.iter().zip(rows.chunks_exact(3 * size)) {
                    let (start, share) = (2 * size + head * width, score * whole);
                    out.iter_mut()
                        .zip(&row[start..start + width])
                        .for_each(|(out, value)| *out += share * value);
                }
            }
        }
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
}
