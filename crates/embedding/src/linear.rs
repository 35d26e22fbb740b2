//! Linear maps with 8-bit weights: a quarter of the memory to go through for a short text, and whole numbers that
//! multiply twice as fast as fractions.
//!
//! Each output has a scale of its own for its weights, each input row one for its numbers, which keep as many bits
//! (up to 15) as their sums leave room for. With AVX2 where the processor has it; the result is the same without.

use pulp::{Arch, Simd, WithSimd};

/// Outputs that are worked out side by side.
const COLUMNS: usize = 16;
/// Rows that are worked out side by side: as many as there are registers for.
const ROWS: usize = 6;

/// Weights of [`COLUMNS`] outputs for two inputs: first output's two, second output's two, and so on.
type Step = [i8; 2 * COLUMNS];
/// Sums of some rows.
type Sums<const R: usize> = [[i32; COLUMNS]; R];

/// A linear map: output = weights x input + bias.
pub(crate) struct Linear {
    /// Inputs, in pairs; the last is filled up with a zero.
    pairs: usize,
    from: usize,
    to: usize,
    /// For each [`COLUMNS`] outputs, a step for each pair of inputs.
    steps: Vec<Step>,
    scales: Vec<f32>,
    bias: Vec<f32>,
    /// Largest number of an input row.
    most: f32,
}

impl Linear {
    /// `weights` hold a row of `from` numbers for each output, `bias` a number for each.
    pub(crate) fn new(weights: &[f32], bias: Vec<f32>, from: usize) -> Self {
        let (to, pairs) = (bias.len(), from.div_ceil(2));
        let mut steps = vec![[0; 2 * COLUMNS]; pairs * to.div_ceil(COLUMNS)];
        let mut scales = Vec::with_capacity(to);
        for (output, row) in weights.chunks_exact(from).enumerate() {
            let scale = largest(row) / 127.0;
            let inverse = if scale > 0.0 { scale.recip() } else { 0.0 };
            scales.push(scale);
            let (panel, column) = (output / COLUMNS * pairs, output % COLUMNS);
            for (input, weight) in row.iter().enumerate() {
                steps[panel + input / 2][2 * column + input % 2] = (weight * inverse).round() as i8;
            }
        }
        // The sum over all inputs must fit into 32 bits.
        let most = (i32::MAX as f32 / (127.0 * from.max(1) as f32)).floor().min(f32::from(i16::MAX));
        Self { pairs, from, to, steps, scales, bias, most }
    }

    /// The outputs for each row of `rows`.
    pub(crate) fn apply(&self, rows: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; rows.len() / self.from * self.to];
        for (rows, out) in rows.chunks(ROWS * self.from).zip(out.chunks_mut(ROWS * self.to)) {
            match rows.len() / self.from {
                1 => self.block::<1>(rows, out),
                2 => self.block::<2>(rows, out),
                3 => self.block::<3>(rows, out),
                4 => self.block::<4>(rows, out),
                5 => self.block::<5>(rows, out),
                _ => self.block::<ROWS>(rows, out),
            }
        }
        out
    }

    fn block<const R: usize>(&self, rows: &[f32], out: &mut [f32]) {
        let mut scales = [0.0; R];
        // For each pair of inputs, both numbers of each row.
        let mut pairs = vec![[[0_i16; 2]; R]; self.pairs];
        for (at, row) in rows.chunks_exact(self.from).enumerate().take(R) {
            let largest = largest(row);
            let inverse = if largest > 0.0 { self.most / largest } else { 0.0 };
            scales[at] = largest / self.most;
            for (pair, numbers) in pairs.iter_mut().zip(row.chunks(2)) {
                for (to, number) in pair[at].iter_mut().zip(numbers) {
                    *to = (number * inverse).round_ties_even() as i16;
                }
            }
        }
        Arch::new().dispatch(Block { linear: self, pairs: &pairs, scales, out });
    }
}

/// The largest number of some, without its sign.
fn largest(numbers: &[f32]) -> f32 {
    numbers.iter().fold(0.0, |largest, number| largest.max(number.abs()))
}

/// Works out the outputs of some rows.
struct Block<'b, const R: usize> {
    linear: &'b Linear,
    pairs: &'b [[[i16; 2]; R]],
    scales: [f32; R],
    out: &'b mut [f32],
}

impl<const R: usize> WithSimd for Block<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let linear = self.linear;
        #[cfg(target_arch = "x86_64")]
        let fast = pulp::x86::V3::try_new();
        for (panel, steps) in linear.steps.chunks_exact(linear.pairs).enumerate() {
            #[cfg(target_arch = "x86_64")]
            let sums = match fast {
                Some(simd) => fast_sums(simd, steps, self.pairs),
                None => sums(steps, self.pairs),
            };
            #[cfg(not(target_arch = "x86_64"))]
            let sums = sums(steps, self.pairs);
            let columns = panel * COLUMNS..linear.to.min((panel + 1) * COLUMNS);
            for ((row, sums), scale) in self.out.chunks_exact_mut(linear.to).zip(&sums).zip(&self.scales) {
                let of = linear.scales[columns.clone()].iter().zip(&linear.bias[columns.clone()]);
                for ((out, sum), (weight, bias)) in row[columns.clone()].iter_mut().zip(sums).zip(of) {
                    *out = *sum as f32 * (scale * weight) + bias;
                }
            }
        }
    }
}

#[inline(always)]
fn sums<const R: usize>(steps: &[Step], pairs: &[[[i16; 2]; R]]) -> Sums<R> {
    let mut sums = [[0; COLUMNS]; R];
    for (step, pair) in steps.iter().zip(pairs) {
        for (sums, [a, b]) in sums.iter_mut().zip(pair) {
            for (sum, [x, y]) in sums.iter_mut().zip(step.as_chunks::<2>().0) {
                *sum += i32::from(*a) * i32::from(*x) + i32::from(*b) * i32::from(*y);
            }
        }
    }
    sums
}

/// The same with instructions that multiply and add sixteen numbers at once.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn fast_sums<const R: usize>(simd: pulp::x86::V3, steps: &[Step], pairs: &[[[i16; 2]; R]]) -> Sums<R> {
    let zero = simd.avx._mm256_setzero_si256();
    let mut sums = [[zero; 2]; R];
    for (step, pair) in steps.iter().zip(pairs) {
        let [low, high]: [[i8; COLUMNS]; 2] = pulp::cast(*step);
        let weights = [
            simd.avx2._mm256_cvtepi8_epi16(pulp::cast(low)),
            simd.avx2._mm256_cvtepi8_epi16(pulp::cast(high)),
        ];
        for (sums, pair) in sums.iter_mut().zip(pair) {
            let pair = simd.avx._mm256_set1_epi32(pulp::cast(*pair));
            for (sum, weights) in sums.iter_mut().zip(weights) {
                *sum = simd.avx2._mm256_add_epi32(*sum, simd.avx2._mm256_madd_epi16(weights, pair));
            }
        }
    }
    sums.map(pulp::cast)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|at| ((at * 7919 + seed * 104_729) % 2003) as f32 / 1001.0 - 1.0).collect()
    }

    #[test]
    fn outputs_are_near_those_of_whole_weights_for_any_number_of_rows() {
        for (from, to) in [(1, 1), (4, 8), (7, 17), (384, 48), (1536, 40)] {
            let (weights, bias) = (numbers(from * to, 1), numbers(to, 2));
            let linear = Linear::new(&weights, bias.clone(), from);
            for count in [0, 1, 2, 3, 4, 5, 6, 7, 13] {
                let rows = numbers(from * count, 3);
                let out = linear.apply(&rows);
                assert_eq!(out.len(), count * to);
                for (row, out) in rows.chunks(from).zip(out.chunks(to)) {
                    for ((weights, bias), out) in weights.chunks(from).zip(&bias).zip(out) {
                        let wanted: f32 = weights.iter().zip(row).map(|(a, b)| a * b).sum::<f32>() + bias;
                        let room = 0.008 * (from as f32).sqrt();
                        assert!((wanted - out).abs() < room, "{from} x {to}: {wanted} {out}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let from = 5000;
        let linear = Linear::new(&vec![3.0; from], vec![1.0], from);
        let out = linear.apply(&vec![-1e6; from]);
        assert!((out[0] / -1.5e10 - 1.0).abs() < 1e-3, "{out:?}");
        assert_eq!(linear.apply(&vec![0.0; from]), [1.0]);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn sums_are_the_same_on_every_processor() {
        let Some(simd) = pulp::x86::V3::try_new() else { return };
        let steps: Vec<Step> =
            (0..9_usize).map(|n| std::array::from_fn(|at| (n * 37 + at * 11) as u8 as i8)).collect();
        let pairs: Vec<[[i16; 2]; 3]> = (0..9_usize)
            .map(|n| std::array::from_fn(|r| [(n * 4001 + r) as i16, (n * r * 911) as i16]))
            .collect();
        assert_eq!(fast_sums(simd, &steps, &pairs), sums(&steps, &pairs));
    }
}
