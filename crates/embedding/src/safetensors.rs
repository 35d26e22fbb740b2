//! Reads the safetensors format: a JSON header with names, shapes and offsets, then raw little-endian numbers.
//!
//! Format: <https://github.com/huggingface/safetensors#format>.

use std::{collections::HashMap, path::Path};

use serde::Deserialize;

use crate::EmbeddingError;

/// Most bytes of header, as the reference implementation has it.
const MAX_HEADER: u64 = 100_000_000;

#[derive(Debug, Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

/// An opened file of tensors.
pub(crate) struct Tensors {
    entries: HashMap<String, Entry>,
    bytes: Vec<u8>,
    start: usize,
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, EmbeddingError> {
    std::fs::read(path).map_err(|source| EmbeddingError::ModelFile { path: path.to_owned(), source })
}

impl Tensors {
    pub(crate) fn parse(bytes: Vec<u8>) -> Result<Self, EmbeddingError> {
        let broken = |what: &str| EmbeddingError::Model(format!("the safetensors file {what}"));
        let length = bytes.first_chunk::<8>().ok_or_else(|| broken("is shorter than its header"))?;
        let length = u64::from_le_bytes(*length);
        let start = usize::try_from(length).ok().filter(|_| length <= MAX_HEADER).map(|length| length + 8);
        let start = start
            .filter(|start| *start <= bytes.len())
            .ok_or_else(|| broken("is shorter than its header"))?;
        let header: HashMap<String, serde_json::Value> = serde_json::from_slice(&bytes[8..start])
            .map_err(|error| broken(&format!("has a bad header: {error}")))?;
        let mut entries = HashMap::new();
        for (name, value) in header.into_iter().filter(|(name, _)| name != "__metadata__") {
            let entry: Entry = serde_json::from_value(value)
                .map_err(|error| broken(&format!("has a bad header: {error}")))?;
            let (from, to) = entry.data_offsets;
            if from > to || to > bytes.len() - start {
                return Err(broken(&format!("is truncated: {name} lies beyond its end")));
            }
            entries.insert(name, entry);
        }
        Ok(Self { entries, bytes, start })
    }

    /// Returns true if there is a tensor of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    fn numbers(&self, name: &str) -> Result<(&[usize], Vec<f32>), EmbeddingError> {
        let entry = self
            .entries
            .get(name)
            .ok_or_else(|| EmbeddingError::Model(format!("the model has no tensor {name}")))?;
        let bytes = &self.bytes[self.start + entry.data_offsets.0..self.start + entry.data_offsets.1];
        let numbers: Vec<f32> = match entry.dtype.as_str() {
            "F32" => bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect(),
            "BF16" => bytes
                .as_chunks::<2>()
                .0
                .iter()
                .map(|two| f32::from_bits(u32::from(u16::from_le_bytes(*two)) << 16))
                .collect(),
            "F16" => bytes.as_chunks::<2>().0.iter().map(|two| half(u16::from_le_bytes(*two))).collect(),
            other => {
                return Err(EmbeddingError::Model(format!(
                    "{name} is of type {other}, not F32, F16 or BF16"
                )));
            }
        };
        if Some(numbers.len()) != entry.shape.iter().try_fold(1_usize, |all, side| all.checked_mul(*side)) {
            return Err(EmbeddingError::Model(format!("{name} is of the wrong size for its shape")));
        }
        Ok((&entry.shape, numbers))
    }

    /// A tensor of one dimension.
    pub(crate) fn vector(&self, name: &str, length: usize) -> Result<Vec<f32>, EmbeddingError> {
        match self.numbers(name)? {
            ([stored], numbers) if *stored == length => Ok(numbers),
            (shape, _) => Err(EmbeddingError::Model(format!("{name} is of shape {shape:?}, not [{length}]"))),
        }
    }

    /// A tensor of two dimensions with so many columns, row by row.
    pub(crate) fn matrix(&self, name: &str, columns: usize) -> Result<Vec<f32>, EmbeddingError> {
        match self.numbers(name)? {
            ([_, width], numbers) if *width == columns => Ok(numbers),
            (shape, _) => {
                Err(EmbeddingError::Model(format!("{name} is of shape {shape:?}, not [_, {columns}]")))
            }
        }
    }

    /// The same with so many rows.
    pub(crate) fn matrix_of(
        &self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Vec<f32>, EmbeddingError> {
        let numbers = self.matrix(name, columns)?;
        if numbers.len() != rows * columns {
            let stored = numbers.len() / columns.max(1);
            return Err(EmbeddingError::Model(format!("{name} has {stored} rows, not {rows}")));
        }
        Ok(numbers)
    }
}

/// IEEE 754 half precision to single.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 31);
    let fraction = f32::from(bits & 1023) / 1024.0;
    match exponent {
        0 => sign * fraction * 2_f32.powi(-14),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1.0 + fraction) * 2_f32.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(data);
        bytes
    }

    #[test]
    fn a_tensor_is_read_with_its_shape_checked() {
        let header = r#"{"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"__metadata__":{"x":"y"}}"#;
        let tensors = Tensors::parse(file(header, &[0, 0, 128, 63, 0, 0, 0, 64])).unwrap();
        assert_eq!(tensors.matrix("a", 2).unwrap(), [1.0, 2.0]);
        assert!(tensors.matrix("a", 3).unwrap_err().to_string().contains("shape"));
        assert!(tensors.vector("b", 3).unwrap_err().to_string().contains("no tensor b"));
    }

    #[test]
    fn truncated_and_hostile_files_are_errors_and_not_crashes() {
        let header = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
        for bytes in [Vec::new(), vec![1; 7], vec![255; 32], file(header, &[0; 4]), file("{", &[])] {
            assert!(matches!(Tensors::parse(bytes), Err(EmbeddingError::Model(_))));
        }
    }

    #[test]
    fn half_precision_is_widened() {
        assert_eq!([half(0x3C00), half(0xC000), half(0x3555), half(0)], [1.0, -2.0, 0.333_251_95, 0.0]);
    }
}
