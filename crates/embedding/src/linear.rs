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
        Arch::new().dispatch(Apply { linear: self, rows, out: &mut out });
        out
    }
}

/// Input rows as whole numbers, in blocks of at most [`ROWS`]. Of a block, first the first pair of inputs of each row,
/// then the second, and so on.
struct Rows {
    /// Rows of each block.
    blocks: Vec<usize>,
    pairs: Vec<[i16; 2]>,
    scales: Vec<f32>,
}

impl Rows {
    #[inline(always)]
    fn new(linear: &Linear, rows: &[f32]) -> Self {
        let count = rows.len() / linear.from;
        // Blocks of like size: a small one takes nearly as long as a full one.
        let blocks = count.div_ceil(ROWS);
        let blocks: Vec<usize> =
            (0..blocks).map(|at| count / blocks + usize::from(at < count % blocks)).collect();
        let mut pairs = vec![[0; 2]; count * linear.pairs];
        let mut scales = Vec::with_capacity(count);
        let mut whole = vec![0_i16; 2 * linear.pairs];
        let mut rows = rows.chunks_exact(linear.from);
        let mut rest = pairs.as_mut_slice();
        for size in &blocks {
            let (block, after) = rest.split_at_mut(size * linear.pairs);
            for (at, row) in rows.by_ref().take(*size).enumerate() {
                let largest = largest(row);
                let inverse = if largest > 0.0 { linear.most / largest } else { 0.0 };
                scales.push(largest / linear.most);
                whole.iter_mut().zip(row).for_each(|(to, number)| *to = nearest(number * inverse));
                let pairs = block[at..].iter_mut().step_by(*size);
                pairs.zip(whole.as_chunks::<2>().0).for_each(|(to, pair)| *to = *pair);
            }
            rest = after;
        }
        Self { blocks, pairs, scales }
    }
}

/// The whole number nearest to a small one.
#[inline(always)]
fn nearest(number: f32) -> i16 {
    /// Adding it rounds to a whole number, which is then in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    (number + ROUND).to_bits() as i16
}

/// The largest number of some, without its sign: such numbers compare like their bits.
#[inline(always)]
fn largest(numbers: &[f32]) -> f32 {
    f32::from_bits(numbers.iter().map(|number| number.to_bits() & 0x7FFF_FFFF).max().unwrap_or(0))
}

/// Works out the outputs of some rows.
struct Apply<'a> {
    linear: &'a Linear,
    rows: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { linear, rows, out } = self;
        let rows = Rows::new(linear, rows);
        // Weights are gone through once, and some outputs' worth of them stays at hand for all rows.
        for (panel, steps) in linear.steps.chunks_exact(linear.pairs).enumerate() {
            let (mut row, mut pairs) = (0, rows.pairs.as_slice());
            for size in &rows.blocks {
                let (block, after) = pairs.split_at(size * linear.pairs);
                let mut place =
                    Place { linear, panel, scales: &rows.scales[row..], out: &mut out[row * linear.to..] };
                match size {
                    1 => place.fill::<1>(steps, block),
                    2 => place.fill::<2>(steps, block),
                    3 => place.fill::<3>(steps, block),
                    4 => place.fill::<4>(steps, block),
                    5 => place.fill::<5>(steps, block),
                    _ => place.fill::<ROWS>(steps, block),
                }
                (row, pairs) = (row + size, after);
            }
        }
    }
}

/// Destination of [`COLUMNS`] outputs of a block of rows.
struct Place<'p> {
    linear: &'p Linear,
    panel: usize,
    scales: &'p [f32],
    out: &'p mut [f32],
}

impl Place<'_> {
    #[inline(always)]
    fn fill<const R: usize>(&mut self, steps: &[Step], pairs: &[[i16; 2]]) {
        let (linear, pairs) = (self.linear, pairs.as_chunks::<R>().0);
        #[cfg(target_arch = "x86_64")]
        let sums = match (pulp::x86::V4::try_new(), pulp::x86::V3::try_new()) {
            (Some(simd), _) => wide_sums(simd, steps, pairs),
            (None, Some(simd)) => fast_sums(simd, steps, pairs),
            (None, None) => sums(steps, pairs),
        };
        #[cfg(not(target_arch = "x86_64"))]
        let sums = sums(steps, pairs);
        let columns = self.panel * COLUMNS..linear.to.min((self.panel + 1) * COLUMNS);
        for ((row, sums), scale) in self.out.chunks_exact_mut(linear.to).zip(&sums).zip(self.scales) {
            let of = linear.scales[columns.clone()].iter().zip(&linear.bias[columns.clone()]);
            for ((out, sum), (weight, bias)) in row[columns.clone()].iter_mut().zip(sums).zip(of) {
                *out = *sum as f32 * (scale * weight) + bias;
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

/// The same with instructions that multiply and add 32 numbers at once.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn wide_sums<const R: usize>(simd: pulp::x86::V4, steps: &[Step], pairs: &[[[i16; 2]; R]]) -> Sums<R> {
    let mut sums = [simd.avx512f._mm512_setzero_si512(); R];
    for (step, pair) in steps.iter().zip(pairs) {
        let weights = simd.avx512bw._mm512_cvtepi8_epi16(pulp::cast(*step));
        for (sum, pair) in sums.iter_mut().zip(pair) {
            let pair = simd.avx512f._mm512_set1_epi32(pulp::cast(*pair));
            *sum = simd.avx512f._mm512_add_epi32(*sum, simd.avx512bw._mm512_madd_epi16(weights, pair));
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

    /// Works out the sums in each way that the processor has; their names.
    #[cfg(target_arch = "x86_64")]
    fn each_way<const R: usize>() -> Vec<&'static str> {
        let steps: Vec<Step> =
            (0..9_usize).map(|n| std::array::from_fn(|at| (n * 37 + at * 11) as u8 as i8)).collect();
        let pairs: Vec<[[i16; 2]; R]> = (0..9_usize)
            .map(|n| std::array::from_fn(|r| [(n * 4001 + r) as i16, (n * r * 911) as i16]))
            .collect();
        let plain = sums(&steps, &pairs);
        for (row, sums) in plain.iter().enumerate() {
            for (column, sum) in sums.iter().enumerate() {
                let product = |(step, pair): (&Step, &[[i16; 2]; R])| {
                    i32::from(step[2 * column]) * i32::from(pair[row][0])
                        + i32::from(step[2 * column + 1]) * i32::from(pair[row][1])
                };
                assert_eq!(*sum, steps.iter().zip(&pairs).map(product).sum::<i32>());
            }
        }
        let mut ways = vec!["plain loops"];
        if let Some(simd) = pulp::x86::V3::try_new() {
            assert_eq!(fast_sums(simd, &steps, &pairs), plain);
            ways.push("AVX2");
        }
        if let Some(simd) = pulp::x86::V4::try_new() {
            assert_eq!(wide_sums(simd, &steps, &pairs), plain);
            ways.push("AVX-512");
        }
        ways
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn sums_are_the_same_in_every_way_that_the_processor_has() {
        let of_one = each_way::<1>();
        for ways in [each_way::<2>(), each_way::<3>(), each_way::<4>(), each_way::<5>(), each_way::<ROWS>()] {
            assert_eq!(ways, of_one);
        }
        // Shown by `--nocapture`: what is not there cannot be tried.
        println!("sums by {}", of_one.join(", "));
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        let avx512 = avx2
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        assert_eq!(of_one.contains(&"AVX2"), avx2, "the processor has it, or not");
        assert_eq!(of_one.contains(&"AVX-512"), avx512, "the processor has it, or not");
    }
}
