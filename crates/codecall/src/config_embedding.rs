//! `codecall.embedding`: how `codecall:search` ranks (contract: "Index strategy").

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use gatewright_core::InvalidField;

use crate::Secret;

/// Ranking of `codecall:search`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Lexical ranking; no model, works offline. The default.
    #[default]
    Tfidf,
    /// Semantic vectors blended with the lexical ranking; needs a model.
    Embedding,
}

/// The index behind `codecall:search`. Everything but `strategy` and `similarityThreshold` is for the strategy
/// `embedding`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct EmbeddingConfig {
    /// `tfidf` (default) or `embedding`.
    pub strategy: Strategy,
    /// Hits that score less are left out, 0 to 1; 0 leaves nothing out. Default: what measured best for the strategy,
    /// which also leaves out all hits when even the best is a near-miss.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub similarity_threshold: Option<f32>,
    /// The sentence encoder: a folder with `config.json`, `model.safetensors` and `tokenizer.json` (a path that is
    /// absolute or begins with `.`), or a hub id `owner/name`, with `@revision` for another than `main`, downloaded
    /// once. Default `sentence-transformers/all-MiniLM-L6-v2`.
    pub model: Option<String>,
    /// `true`: a model or store that cannot be opened ends the start of the server. Default false: search is lexical
    /// and says so.
    pub required: bool,
    /// The hub for ids of models. Default `https://huggingface.co`.
    pub hub: Option<String>,
    /// Folder for downloaded models and, unless `store` says otherwise, vectors. Default: `gatewright` in the user's
    /// cache folder (`$XDG_CACHE_HOME`, else `~/.cache`).
    pub cache: Option<PathBuf>,
    /// The store of vectors. Default: a file of this server.
    pub store: StoreConfig,
}

/// The store of vectors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum StoreConfig {
    /// A file of this server, one for each model.
    File {
        /// Folder of the files. Default `vectors` in `cache`.
        path: Option<PathBuf>,
    },
    /// PostgreSQL with the extension `vector`, shared between instances.
    Pgvector {
        /// Address of the database: `postgres://user:password@host/database`. The connection is not encrypted.
        #[serde(skip_serializing)]
        url: Secret,
        /// Table: small letters, digits and `_`. Made if there is none. Default `gatewright_tools`.
        table: Option<String>,
    },
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self::File { path: None }
    }
}

/// Source of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelSource<'c> {
    /// A folder of this machine.
    Folder(&'c Path),
    /// `owner/name` or `owner/name@revision` of the hub.
    Hub(&'c str),
}

impl EmbeddingConfig {
    /// The model used when the configuration names none.
    pub const DEFAULT_MODEL: &'static str = "sentence-transformers/all-MiniLM-L6-v2";
    /// The hub for ids of models when the configuration names none.
    pub const DEFAULT_HUB: &'static str = "https://huggingface.co";
    /// Name of a shared store's table when the configuration does not say.
    pub const DEFAULT_TABLE: &'static str = "gatewright_tools";

    /// Source of the model.
    pub fn model(&self) -> ModelSource<'_> {
        let model = self.model.as_deref().unwrap_or(Self::DEFAULT_MODEL);
        let path = Path::new(model);
        if path.is_absolute() || model.starts_with('.') || !is_hub_id(model) {
            ModelSource::Folder(path)
        } else {
            ModelSource::Hub(model)
        }
    }

    pub(crate) fn problems(&self) -> Vec<InvalidField> {
        let mut problems = Vec::new();
        let mut check = |path, fits: bool, problem: &str| {
            if !fits {
                problems.push(InvalidField::new(path, problem));
            }
        };
        check(
            "embedding.similarityThreshold",
            self.similarity_threshold.is_none_or(|t| (0.0..=1.0).contains(&t)),
            "must be 0 to 1",
        );
        let model_fits = self
            .model
            .as_ref()
            .is_none_or(|model| Path::new(model).is_absolute() || model.starts_with('.') || is_hub_id(model));
        check(
            "embedding.model",
            model_fits,
            "must be a hub id (owner/name) or a folder: an absolute path or one that begins with ./",
        );
        check(
            "embedding.hub",
            self.hub.as_deref().is_none_or(is_http),
            "must begin with https:// or http://",
        );
        match &self.store {
            StoreConfig::File { .. } => {}
            StoreConfig::Pgvector { table, .. } => {
                let fits = table.as_deref().is_none_or(|name| {
                    (1..=63).contains(&name.len())
                        && !name.as_bytes()[0].is_ascii_digit()
                        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
                });
                let problem = "may have small letters, digits and _ only, must not begin with a digit";
                check("embedding.store.table", fits, problem);
            }
        }
        problems
    }
}

fn is_http(url: &str) -> bool {
    url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).is_some_and(|rest| !rest.is_empty())
}

/// `owner/name` or `owner/name@revision`.
fn is_hub_id(text: &str) -> bool {
    let (id, revision) = text.split_once('@').unwrap_or((text, "main"));
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with('.')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    is_name(revision) && id.split_once('/').is_some_and(|(owner, name)| is_name(owner) && is_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: &str) -> EmbeddingConfig {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_model_is_a_folder_when_it_looks_like_a_path_and_a_hub_id_when_it_looks_like_one() {
        let of = |model: &str| config(&format!(r#"{{"model": "{model}"}}"#));
        assert_eq!(of("/srv/model").model(), ModelSource::Folder(Path::new("/srv/model")));
        assert_eq!(of("./model").model(), ModelSource::Folder(Path::new("./model")));
        assert_eq!(of("BAAI/bge-small@v1.5").model(), ModelSource::Hub("BAAI/bge-small@v1.5"));
        assert_eq!(
            EmbeddingConfig::default().model(),
            ModelSource::Hub("sentence-transformers/all-MiniLM-L6-v2")
        );
        assert_eq!(of("minilm").problems()[0].path, "embedding.model");
        assert!(of("./minilm").problems().is_empty());
    }

    #[test]
    fn every_field_of_a_store_is_checked_and_no_secret_is_shown() {
        let pgvector = r#"{"store": {"type": "pgvector", "url": "postgres://me:pw@h/d", "table": "1x"}}"#;
        assert_eq!(config(pgvector).problems()[0].path, "embedding.store.table");
        let shown = format!("{:?}{}", config(pgvector), serde_json::to_string(&config(pgvector)).unwrap());
        assert!(!shown.contains("pw"), "{shown}");
        let unknown = r#"{"store": {"type": "file", "url": "http://h"}}"#;
        assert!(serde_json::from_str::<EmbeddingConfig>(unknown).is_err());
    }
}
