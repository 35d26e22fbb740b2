//! Vectors of 8-bit numbers, compared one by one.

use pulp::{Arch, Simd, WithSimd};

/// Returns the cosine of each vector with `query`, all of length one as [`quantize`] scales it.
///
/// With AVX2 where the processor has it; the result is the same without.
pub fn cosines<'v>(query: &[i8], vectors: impl ExactSizeIterator<Item = &'v [i8]>) -> Vec<f32> {
    Arch::new().dispatch(Cosines { query, vectors })
}

struct Cosines<'q, V> {
    query: &'q [i8],
    vectors: V,
}

impl<'v, V: ExactSizeIterator<Item = &'v [i8]>> WithSimd for Cosines<'_, V> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Vec<f32> {
        let mut cosines = Vec::with_capacity(self.vectors.len());
        // Plain loops: a closure given to an iterator might be compiled by itself, without wide instructions.
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            for vector in self.vectors {
                cosines.push(fast_dot(simd, self.query, vector) as f32 / (127.0 * 127.0));
            }
            return cosines;
        }
        for vector in self.vectors {
            cosines.push(dot(self.query, vector) as f32 / (127.0 * 127.0));
        }
        cosines
    }
}

#[inline(always)]
fn dot(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}

/// [`dot`] with instructions that multiply and add sixteen numbers at once.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn fast_dot(simd: pulp::x86::V3, a: &[i8], b: &[i8]) -> i32 {
    let ((a, rest_of_a), (b, rest_of_b)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    let mut sums = simd.avx._mm256_setzero_si256();
    for (a, b) in a.iter().zip(b) {
        let a = simd.avx2._mm256_cvtepi8_epi16(pulp::cast(*a));
        let b = simd.avx2._mm256_cvtepi8_epi16(pulp::cast(*b));
        sums = simd.avx2._mm256_add_epi32(sums, simd.avx2._mm256_madd_epi16(a, b));
    }
    let sums: [i32; 8] = pulp::cast(sums);
    sums.iter().sum::<i32>() + dot(rest_of_a, rest_of_b)
}

/// Scales a vector of length one to numbers from -127 to 127.
#[must_use]
pub fn quantize(vector: &[f32]) -> Vec<i8> {
    vector.iter().map(|value| (value * 127.0).round().clamp(-127.0, 127.0) as i8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosines_are_the_same_on_every_processor_and_for_any_length() {
        for length in [0_usize, 1, 3, 15, 16, 17, 100, 384] {
            let numbers = |seed: usize| -> Vec<i8> {
                (0..length).map(|at| ((at * 53 + seed * 29) % 255) as u8 as i8).collect()
            };
            let (query, some) = (numbers(1), [numbers(2), numbers(3)]);
            let wanted: Vec<f32> = some.iter().map(|one| dot(&query, one) as f32 / (127.0 * 127.0)).collect();
            assert_eq!(cosines(&query, some.iter().map(Vec::as_slice)), wanted);
        }
    }
}
