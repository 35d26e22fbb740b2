//! Vectors in a Qdrant server, over its HTTP API (<https://api.qdrant.tech>), shared between processes.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use reqwest::{Client, Method, StatusCode, header::HeaderValue};
use serde_json::{Value, json};

use super::{Key, VectorStore};
use crate::EmbeddingError;

const TIMEOUT: Duration = Duration::from_secs(10);

/// One collection of a Qdrant server. Vectors are never removed from it: other processes may use them.
pub struct QdrantStore {
    client: Client,
    collection: String,
}

impl fmt::Debug for QdrantStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QdrantStore").finish_non_exhaustive()
    }
}

impl QdrantStore {
    /// Opens a collection of the server at `url`, or makes it for vectors of so many dimensions.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses or redirects, or the collection has other dimensions.
    pub async fn open(
        url: &str,
        collection: &str,
        api_key: Option<&str>,
        dimensions: usize,
    ) -> Result<Self, EmbeddingError> {
        if collection.is_empty()
            || !collection.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        {
            return Err(EmbeddingError::store(
                "the collection's name may have letters, digits, - and _ only",
            ));
        }
        let mut headers = reqwest::header::HeaderMap::new();
        if let Some(key) = api_key {
            let mut value = HeaderValue::from_str(key)
                .map_err(|error| EmbeddingError::store_because("the API key is malformed", error))?;
            value.set_sensitive(true);
            headers.insert("api-key", value);
        }
        // A redirect would take the API key to another server: only well-known headers are dropped on the way.
        let mut client = Client::builder()
            .default_headers(headers)
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none());
        if url.starts_with("http://") {
            // Small images have no CA certificates, and nothing here needs them.
            client = client.tls_certs_only([]);
        }
        let client =
            client.build().map_err(|error| EmbeddingError::store_because("no HTTP client", error))?;
        let store =
            Self { client, collection: format!("{}/collections/{collection}", url.trim_end_matches('/')) };
        match store.call(Method::GET, "", None).await? {
            Some(info) => {
                let size = info["config"]["params"]["vectors"]["size"].as_u64().unwrap_or(0);
                let stored = usize::try_from(size).unwrap_or(usize::MAX);
                if stored != dimensions {
                    return Err(EmbeddingError::Dimension { stored, model: dimensions });
                }
            }
            None => {
                let body = json!({"vectors": {"size": dimensions, "distance": "Cosine"}});
                store.call(Method::PUT, "", Some(body)).await?;
            }
        }
        Ok(store)
    }

    /// The `result` of an answer, or `None` if there is no such thing.
    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Option<Value>, EmbeddingError> {
        let mut request = self.client.request(method, format!("{}{path}", self.collection));
        if let Some(body) = &body {
            request = request.json(body);
        }
        let response = request
            .send()
            .await
            .map_err(|error| EmbeddingError::store_because("Qdrant does not answer", error.without_url()))?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        if status.is_redirection() {
            return Err(EmbeddingError::store(format!(
                "Qdrant answers {status}, which is not followed: set the address it leads to"
            )));
        }
        if !status.is_success() {
            return Err(EmbeddingError::store(format!("Qdrant answers {status}")));
        }
        let mut answer: Value = response.json().await.map_err(|error| {
            EmbeddingError::store_because("Qdrant's answer is not JSON", error.without_url())
        })?;
        Ok(Some(answer["result"].take()))
    }

    async fn need(&self, method: Method, path: &str, body: Value) -> Result<Value, EmbeddingError> {
        let answer = self.call(method, path, Some(body)).await?;
        answer.ok_or_else(|| EmbeddingError::store("Qdrant no longer has the collection"))
    }
}

fn key_of(point: &Value) -> Option<Key> {
    Key::parse(point["id"].as_str()?)
}

fn texts(keys: &[Key]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

#[async_trait]
impl VectorStore for QdrantStore {
    async fn missing(&self, keys: &[Key]) -> Result<Vec<Key>, EmbeddingError> {
        let mut missing = Vec::new();
        for keys in keys.chunks(1000) {
            let body = json!({"ids": texts(keys), "with_payload": false, "with_vector": false});
            let found = self.need(Method::POST, "/points", body).await?;
            let found: std::collections::HashSet<Key> =
                found.as_array().into_iter().flatten().filter_map(key_of).collect();
            missing.extend(keys.iter().filter(|key| !found.contains(key)));
        }
        Ok(missing)
    }

    async fn put(&self, vectors: Vec<(Key, Vec<f32>)>) -> Result<(), EmbeddingError> {
        for vectors in vectors.chunks(200) {
            let points: Vec<Value> = vectors
                .iter()
                .map(|(key, vector)| json!({"id": key.to_string(), "vector": vector}))
                .collect();
            self.need(Method::PUT, "/points?wait=true", json!({"points": points})).await?;
        }
        Ok(())
    }

    async fn nearest(
        &self,
        query: &[f32],
        limit: usize,
        among: Option<&[Key]>,
    ) -> Result<Vec<(Key, f32)>, EmbeddingError> {
        if limit == 0 || among.is_some_and(<[Key]>::is_empty) {
            return Ok(Vec::new());
        }
        let mut body = json!({"query": query, "limit": limit});
        if let Some(keys) = among {
            body["filter"] = json!({"must": [{"has_id": texts(keys)}]});
        }
        let found = self.need(Method::POST, "/points/query", body).await?;
        let points = found["points"].as_array().into_iter().flatten();
        Ok(points.filter_map(|point| Some((key_of(point)?, point["score"].as_f64()? as f32))).collect())
    }

    async fn forget(&self, _: &[Key]) -> Result<(), EmbeddingError> {
        Ok(())
    }
}

#[cfg(test)]
#[path = "qdrant_tests.rs"]
mod tests;
