//! A BERT-shaped sentence encoder on the CPU: MiniLM, BGE, E5, GTE and their like.
//!
//! Post-norm layers, exact GELU, mean pooling over the tokens, vectors of length one
//! (Devlin et al. 2019; Reimers and Gurevych 2019).

use std::{fmt, path::Path};

use data_encoding::HEXLOWER;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::{
    Embedder, EmbeddingError,
    layers::{Norm, attend, gelu},
    linear::Linear,
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

struct Layer {
    /// Query, key and value.
    attention: Linear,
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
    /// A row for each token of the vocabulary.
    words: Vec<f32>,
    places: Vec<f32>,
    kind: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

impl fmt::Debug for BertEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BertEmbedder").field("id", &self.id).field("layers", &self.layers.len()).finish()
    }
}

impl BertEmbedder {
    /// Loads `config.json`, `model.safetensors` and `tokenizer.json` (or `vocab.txt`) of a folder. Takes less
    /// than a second for 90 MB and keeps two thirds of that in memory.
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
        // Weights are rounded to 8 bits: other vectors than those of the same model elsewhere, if only slightly.
        let id = format!("{}-q8", HEXLOWER.encode(&digest[..8]));
        let tensors = Tensors::parse(bytes)?;
        let prefix = if tensors.has("bert.embeddings.word_embeddings.weight") { "bert." } else { "" };
        let norm = |name: &str| {
            Ok::<_, EmbeddingError>(Norm {
                weight: tensors.vector(&format!("{prefix}{name}.weight"), size)?,
                bias: tensors.vector(&format!("{prefix}{name}.bias"), size)?,
                epsilon: config.layer_norm_eps,
            })
        };
        // Maps of the same input are one.
        let linear = |names: &[String], from, to| {
            let (mut weights, mut bias) = (Vec::new(), Vec::new());
            for name in names {
                weights.extend(tensors.matrix_of(&format!("{prefix}{name}.weight"), to, from)?);
                bias.extend(tensors.vector(&format!("{prefix}{name}.bias"), to)?);
            }
            Ok::<_, EmbeddingError>(Linear::new(&weights, bias, from))
        };
        let words = tensors.matrix(&format!("{prefix}embeddings.word_embeddings.weight"), size)?;
        if words.len() / size < tokens.size() {
            return Err(EmbeddingError::Model("the tokenizer has more words than the model".to_owned()));
        }
        let places = tensors.matrix(&format!("{prefix}embeddings.position_embeddings.weight"), size)?;
        let kinds = tensors.matrix(&format!("{prefix}embeddings.token_type_embeddings.weight"), size)?;
        if kinds.is_empty() {
            return Err(EmbeddingError::Model("token_type_embeddings is empty".to_owned()));
        }
        let layers = (0..config.num_hidden_layers).map(|number| {
            let at = format!("encoder.layer.{number}");
            let parts = ["query", "key", "value"].map(|part| format!("{at}.attention.self.{part}"));
            Ok(Layer {
                attention: linear(&parts, size, size)?,
                output: linear(&[format!("{at}.attention.output.dense")], size, size)?,
                output_norm: norm(&format!("{at}.attention.output.LayerNorm"))?,
                wide: linear(&[format!("{at}.intermediate.dense")], size, wide)?,
                narrow: linear(&[format!("{at}.output.dense")], wide, size)?,
                narrow_norm: norm(&format!("{at}.output.LayerNorm"))?,
            })
        });
        Ok(Self {
            id,
            heads: config.num_attention_heads,
            limit: MAX_TOKENS.min(places.len() / size).min(config.max_position_embeddings),
            tokens,
            kind: kinds[..size].to_vec(),
            norm: norm("embeddings.LayerNorm")?,
            words,
            places,
            layers: layers.collect::<Result<_, EmbeddingError>>()?,
        })
    }

    fn one(&self, text: &str) -> Vec<f32> {
        let size = self.kind.len();
        let tokens = self.tokens.encode(text, self.limit);
        let mut rows = Vec::with_capacity(tokens.len() * size);
        for (token, place) in tokens.iter().zip(self.places.chunks_exact(size)) {
            let word = &self.words[*token as usize * size..][..size];
            rows.extend(
                word.iter().zip(place).zip(&self.kind).map(|((word, place), kind)| word + place + kind),
            );
        }
        self.norm.apply(&mut rows);
        for layer in &self.layers {
            let mixed = attend(&layer.attention.apply(&rows), size, self.heads);
            let mut attended = layer.output.apply(&mixed);
            layer.output_norm.add(&mut attended, &rows);
            let mut wide = layer.wide.apply(&attended);
            gelu(&mut wide);
            rows = layer.narrow.apply(&wide);
            layer.narrow_norm.add(&mut rows, &attended);
        }
        let mut mean = vec![0.0; size];
        for row in rows.chunks_exact(size) {
            mean.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        let length = mean.iter().map(|value| value * value).sum::<f32>().sqrt().max(1e-12);
        mean.iter_mut().for_each(|value| *value /= length);
        mean
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

#[cfg(test)]
#[path = "bert_tests.rs"]
mod folder_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_model_is_an_error_that_names_the_file() {
        let error = BertEmbedder::load(Path::new("/nonexistent")).unwrap_err();
        assert_eq!(error.code(), "embedding.model_file");
        assert!(error.to_string().contains("config.json"), "{error}");
    }
}
