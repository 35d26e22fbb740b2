//! A BERT-shaped sentence encoder on the CPU: MiniLM, BGE, E5, GTE and their like.
//!
//! Post-norm layers, exact GELU, mean pooling over the tokens, vectors of length one
//! (Devlin et al. 2019; Reimers and Gurevych 2019).

use std::{fmt, path::Path};

use ndarray::{Array1, Array2, ArrayView1, Axis, Slice};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::{
    Embedder, EmbeddingError,
    safetensors::{Tensors, read},
    wordpiece::WordPiece,
};

/// Tokens of a text that are read; the rest is ignored.
const MAX_TOKENS: usize = 128;

#[derive(Debug, Deserialize)]
struct Config {
    model_type: Option<String>,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    #[serde(default = "epsilon")]
    layer_norm_eps: f32,
    #[serde(default = "positions")]
    max_position_embeddings: usize,
}

fn epsilon() -> f32 {
    1e-12
}

fn positions() -> usize {
    512
}

/// A linear map: weights transposed for multiplication from the left.
struct Linear {
    weight: Array2<f32>,
    bias: Array1<f32>,
}

impl Linear {
    fn load(tensors: &Tensors, name: &str, from: usize, to: usize) -> Result<Self, EmbeddingError> {
        let weight = tensors.matrix(&format!("{name}.weight"), from)?;
        Ok(Self {
            weight: weight.reversed_axes().as_standard_layout().into_owned(),
            bias: tensors.vector(&format!("{name}.bias"), to)?,
        })
    }

    fn apply(&self, input: &Array2<f32>) -> Array2<f32> {
        input.dot(&self.weight) + &self.bias
    }
}

struct Norm {
    weight: Array1<f32>,
    bias: Array1<f32>,
    epsilon: f32,
}

impl Norm {
    fn load(tensors: &Tensors, name: &str, size: usize, epsilon: f32) -> Result<Self, EmbeddingError> {
        Ok(Self {
            weight: tensors.vector(&format!("{name}.weight"), size)?,
            bias: tensors.vector(&format!("{name}.bias"), size)?,
            epsilon,
        })
    }

    fn apply(&self, rows: &mut Array2<f32>) {
        for mut row in rows.rows_mut() {
            let length = row.len() as f32;
            let mean = row.sum() / length;
            let variance = row.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / length;
            let scale = (variance + self.epsilon).sqrt().recip();
            row.iter_mut()
                .zip(&self.weight)
                .zip(&self.bias)
                .for_each(|((value, weight), bias)| *value = (*value - mean) * scale * weight + bias);
        }
    }
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    output_norm: Norm,
    wide: Linear,
    narrow: Linear,
    narrow_norm: Norm,
}

/// A sentence encoder loaded from a folder.
pub struct BertEmbedder {
    id: String,
    heads: usize,
    limit: usize,
    tokens: WordPiece,
    words: Array2<f32>,
    places: Array2<f32>,
    kind: Array1<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

impl fmt::Debug for BertEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BertEmbedder").field("id", &self.id).field("layers", &self.layers.len()).finish()
    }
}

impl BertEmbedder {
    /// Loads `config.json`, `model.safetensors` and `tokenizer.json` (or `vocab.txt`) of a folder. Takes about a
    /// second for 90 MB and keeps that much memory.
    ///
    /// # Errors
    /// When a file is missing, truncated, of the wrong shape, or the model is not BERT-shaped.
    pub fn load(folder: &Path) -> Result<Self, EmbeddingError> {
        let config: Config =
            serde_json::from_slice(&read(&folder.join("config.json"))?).map_err(|error| {
                EmbeddingError::Model(format!("config.json does not describe a BERT model: {error}"))
            })?;
        if let Some(kind) = config.model_type.as_deref().filter(|kind| *kind != "bert") {
            return Err(EmbeddingError::Model(format!("models of type {kind} are not supported, only bert")));
        }
        let (size, wide) = (config.hidden_size, config.intermediate_size);
        if config.num_attention_heads == 0 || size == 0 || size % config.num_attention_heads != 0 {
            return Err(EmbeddingError::Model(
                "the attention heads do not divide the hidden size".to_owned(),
            ));
        }
        let tokens = WordPiece::load(folder)?;
        let bytes = read(&folder.join("model.safetensors"))?;
        let digest = Sha256::digest(&bytes);
        let id = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let tensors = Tensors::parse(bytes)?;
        let prefix = if tensors.has("bert.embeddings.word_embeddings.weight") { "bert." } else { "" };
        let norm = |name: &str| Norm::load(&tensors, &format!("{prefix}{name}"), size, config.layer_norm_eps);
        let linear = |name: &str, from, to| Linear::load(&tensors, &format!("{prefix}{name}"), from, to);
        let words = tensors.matrix(&format!("{prefix}embeddings.word_embeddings.weight"), size)?;
        if words.nrows() < tokens.size() {
            return Err(EmbeddingError::Model("the tokenizer has more words than the model".to_owned()));
        }
        let places = tensors.matrix(&format!("{prefix}embeddings.position_embeddings.weight"), size)?;
        let kinds = tensors.matrix(&format!("{prefix}embeddings.token_type_embeddings.weight"), size)?;
        if kinds.nrows() == 0 {
            return Err(EmbeddingError::Model("token_type_embeddings is empty".to_owned()));
        }
        let layers = (0..config.num_hidden_layers).map(|number| {
            let at = format!("encoder.layer.{number}");
            Ok(Layer {
                query: linear(&format!("{at}.attention.self.query"), size, size)?,
                key: linear(&format!("{at}.attention.self.key"), size, size)?,
                value: linear(&format!("{at}.attention.self.value"), size, size)?,
                output: linear(&format!("{at}.attention.output.dense"), size, size)?,
                output_norm: norm(&format!("{at}.attention.output.LayerNorm"))?,
                wide: linear(&format!("{at}.intermediate.dense"), size, wide)?,
                narrow: linear(&format!("{at}.output.dense"), wide, size)?,
                narrow_norm: norm(&format!("{at}.output.LayerNorm"))?,
            })
        });
        Ok(Self {
            id,
            heads: config.num_attention_heads,
            limit: MAX_TOKENS.min(places.nrows()).min(config.max_position_embeddings),
            tokens,
            kind: kinds.row(0).to_owned(),
            norm: norm("embeddings.LayerNorm")?,
            words,
            places,
            layers: layers.collect::<Result<_, EmbeddingError>>()?,
        })
    }

    fn one(&self, text: &str) -> Vec<f32> {
        let tokens = self.tokens.encode(text, self.limit);
        let mut rows = Array2::zeros((tokens.len(), self.kind.len()));
        for ((mut row, token), place) in rows.rows_mut().into_iter().zip(&tokens).zip(self.places.rows()) {
            row += &self.words.row(*token as usize);
            row += &place;
            row += &self.kind;
        }
        self.norm.apply(&mut rows);
        for layer in &self.layers {
            let mut attended = layer.output.apply(&self.attend(layer, &rows)) + &rows;
            layer.output_norm.apply(&mut attended);
            let mut wide = layer.wide.apply(&attended);
            wide.mapv_inplace(gelu);
            rows = layer.narrow.apply(&wide) + &attended;
            layer.narrow_norm.apply(&mut rows);
        }
        let mean = rows.mean_axis(Axis(0)).unwrap_or_else(|| Array1::zeros(self.kind.len()));
        unit(mean.view())
    }

    fn attend(&self, layer: &Layer, rows: &Array2<f32>) -> Array2<f32> {
        let (query, key, value) = (layer.query.apply(rows), layer.key.apply(rows), layer.value.apply(rows));
        let width = rows.ncols() / self.heads;
        let scale = (width as f32).sqrt().recip();
        let mut out = Array2::zeros(rows.raw_dim());
        for head in 0..self.heads {
            let columns = Slice::from(head * width..(head + 1) * width);
            let part = |of: &Array2<f32>| of.slice_axis(Axis(1), columns).to_owned();
            let mut scores = part(&query).dot(&part(&key).t());
            for mut row in scores.rows_mut() {
                let highest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                row.mapv_inplace(|score| ((score - highest) * scale).exp());
                let sum = row.sum();
                row /= sum;
            }
            out.slice_axis_mut(Axis(1), columns).assign(&scores.dot(&part(&value)));
        }
        out
    }
}

impl Embedder for BertEmbedder {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.kind.len()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        Ok(texts.iter().map(|text| self.one(text)).collect())
    }
}

fn unit(vector: ArrayView1<'_, f32>) -> Vec<f32> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt().max(1e-12);
    vector.iter().map(|value| value / length).collect()
}

/// x times the normal distribution function; erf after Abramowitz and Stegun 7.1.26, error below 2e-7.
fn gelu(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let poly = ((((1.061_405_4 * t - 1.453_152) * t + 1.421_413_7) * t - 0.284_496_74) * t + 0.254_829_6) * t;
    let erf = 1.0 - poly * (-z * z).exp();
    0.5 * x * (1.0 + if x < 0.0 { -erf } else { erf })
}

#[cfg(test)]
#[path = "bert_tests.rs"]
mod folder_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gelu_has_its_known_values() {
        for (x, wanted) in [(0.0, 0.0), (1.0, 0.841_344_7), (-1.0, -0.158_655_3), (3.0, 2.995_950_2)] {
            assert!((gelu(x) - wanted).abs() < 1e-5, "{x}");
        }
    }

    #[test]
    fn a_folder_without_a_model_is_an_error_that_names_the_file() {
        let error = BertEmbedder::load(Path::new("/nonexistent")).unwrap_err();
        assert_eq!(error.code(), "embedding.model_file");
        assert!(error.to_string().contains("config.json"), "{error}");
    }
}
