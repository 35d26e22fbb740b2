//! Models by hub id: downloaded once into a cache, checked against their checksums each time they are used.
//!
//! The hub serves `{endpoint}/{id}/resolve/{revision}/{file}`; for large files its first answer names their SHA-256
//! in `X-Linked-ETag` and sends the client elsewhere.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use data_encoding::HEXLOWER;
use reqwest::{Client, Response, StatusCode, Url, header::LOCATION, redirect::Policy};
use sha2::{Digest as _, Sha256};

use crate::{EmbeddingError, store::replace};

/// Most bytes of one file: 2 GiB.
const MAX_FILE: u64 = 2 << 30;
const MAX_REDIRECTS: usize = 5;
const IDLE: Duration = Duration::from_secs(30);
const CHECKSUMS: &str = "checksums.json";

/// Progress of a download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The file being fetched.
    pub file: String,
    /// Bytes there.
    pub done: u64,
    /// Bytes in all, if the server says.
    pub total: Option<u64>,
}

/// A source of models, with a cache folder.
#[derive(Debug, Clone)]
pub struct Hub {
    endpoint: String,
    cache: PathBuf,
    client: Client,
}

impl Hub {
    /// A hub at `endpoint` (`https://…`), with models kept under `cache`.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new(endpoint: impl Into<String>, cache: impl Into<PathBuf>) -> Result<Self, EmbeddingError> {
        let client = Client::builder()
            .redirect(Policy::none())
            .connect_timeout(IDLE)
            .read_timeout(IDLE)
            .build()
            .map_err(|error| failed("no HTTP client", &error))?;
        let endpoint = endpoint.into().trim_end_matches('/').to_owned();
        Ok(Self { endpoint, cache: cache.into(), client })
    }

    /// The folder of a model, downloaded if it is not in the cache whole. `model` is `owner/name`, with
    /// `@revision` for another than `main`. `progress` is told after each piece received.
    ///
    /// # Errors
    /// When the id is malformed, the hub has no such model or cannot be reached, or a file is not what its
    /// checksum says.
    pub async fn fetch(
        &self,
        model: &str,
        mut progress: impl FnMut(Progress) + Send,
    ) -> Result<PathBuf, EmbeddingError> {
        let (id, revision) = model.split_once('@').unwrap_or((model, "main"));
        if !is_id(id) || !is_name(revision) {
            return Err(EmbeddingError::Download(format!("{model:?} is not of the form owner/name")));
        }
        let folder = self.cache.join(id.replace('/', "--")).join(revision);
        if is_whole(&folder).await {
            return Ok(folder);
        }
        fs::create_dir_all(&folder).map_err(|error| failed("the cache cannot be written", &error))?;
        let mut sums = BTreeMap::new();
        for (file, needed) in [
            ("config.json", true),
            ("tokenizer.json", false),
            ("vocab.txt", false),
            ("model.safetensors", true),
        ] {
            if file == "vocab.txt" && sums.contains_key("tokenizer.json") {
                continue;
            }
            let url = format!("{}/{id}/resolve/{revision}/{file}", self.endpoint);
            match self.file(&url, &folder.join(file), file, &mut progress).await? {
                Some(sum) => {
                    sums.insert(file.to_owned(), sum);
                }
                None if needed => {
                    return Err(EmbeddingError::Download(format!("the hub has no {file} for {model}")));
                }
                None => {}
            }
        }
        let json = serde_json::to_vec_pretty(&sums).map_err(|error| failed("no checksums", &error))?;
        replace(&folder.join(CHECKSUMS), &json)
            .map_err(|error| failed("the cache cannot be written", &error))?;
        Ok(folder)
    }

    /// Fetches one file and returns its SHA-256, or `None` if there is none.
    async fn file(
        &self,
        url: &str,
        path: &Path,
        name: &str,
        progress: &mut (impl FnMut(Progress) + Send),
    ) -> Result<Option<String>, EmbeddingError> {
        let mut at = Url::parse(url).map_err(|error| failed("the address is malformed", &error))?;
        let mut wanted: Option<String> = None;
        for _ in 0..=MAX_REDIRECTS {
            let mut response = self
                .client
                .get(at.clone())
                .send()
                .await
                .map_err(|error| failed("the hub does not answer", &error))?;
            wanted = wanted.or_else(|| checksum(&response));
            let status = response.status();
            if status.is_redirection() {
                let next = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
                let next = next.and_then(|next| at.join(next).ok());
                let next = next.filter(|next| next.scheme() == at.scheme() || next.scheme() == "https");
                at = next
                    .ok_or_else(|| EmbeddingError::Download("the hub sends the client nowhere".to_owned()))?;
                continue;
            }
            if status == StatusCode::NOT_FOUND {
                return Ok(None);
            }
            if !status.is_success() {
                return Err(EmbeddingError::Download(format!("the hub answers {status} for {name}")));
            }
            return receive(&mut response, path, name, wanted, progress).await.map(Some);
        }
        Err(EmbeddingError::Download(format!("{name} is redirected too often")))
    }
}

async fn receive(
    response: &mut Response,
    path: &Path,
    name: &str,
    wanted: Option<String>,
    progress: &mut (impl FnMut(Progress) + Send),
) -> Result<String, EmbeddingError> {
    let total = response.content_length();
    if total.is_some_and(|total| total > MAX_FILE) {
        return Err(EmbeddingError::Download(format!("{name} is larger than 2 GiB")));
    }
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let kept = async {
        let mut file = File::create(&part).map_err(|error| failed("the cache cannot be written", &error))?;
        let mut hash = Sha256::new();
        let mut done = 0_u64;
        while let Some(bytes) =
            response.chunk().await.map_err(|error| failed("the download broke off", &error))?
        {
            done += bytes.len() as u64;
            if done > MAX_FILE {
                return Err(EmbeddingError::Download(format!("{name} is larger than 2 GiB")));
            }
            hash.update(&bytes);
            file.write_all(&bytes).map_err(|error| failed("the cache cannot be written", &error))?;
            progress(Progress { file: name.to_owned(), done, total });
        }
        let sum = hex(&hash.finalize());
        if wanted.is_some_and(|wanted| wanted != sum) {
            return Err(EmbeddingError::Download(format!("{name} does not have the checksum the hub names")));
        }
        file.sync_all().map_err(|error| failed("the cache cannot be written", &error))?;
        fs::rename(&part, path).map_err(|error| failed("the cache cannot be written", &error))?;
        Ok(sum)
    }
    .await;
    if kept.is_err() {
        let _ = fs::remove_file(&part);
    }
    kept
}

/// The SHA-256 the hub names for a file; small files carry another kind of tag.
fn checksum(response: &Response) -> Option<String> {
    let headers = response.headers();
    let tag = headers.get("x-linked-etag").or_else(|| headers.get("etag"))?.to_str().ok()?;
    let tag = tag.trim_start_matches("W/").trim_matches('"').to_ascii_lowercase();
    (tag.len() == 64 && tag.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(tag)
}

/// Returns true if every file of a folder is there and unchanged.
async fn is_whole(folder: &Path) -> bool {
    let folder = folder.to_owned();
    let check = move || {
        let sums: BTreeMap<String, String> =
            serde_json::from_slice(&fs::read(folder.join(CHECKSUMS)).ok()?).ok()?;
        for (file, wanted) in &sums {
            let mut file = File::open(folder.join(file)).ok()?;
            let mut hash = Sha256::new();
            let mut buffer = vec![0; 1 << 16];
            loop {
                match file.read(&mut buffer).ok()? {
                    0 => break,
                    length => hash.update(&buffer[..length]),
                }
            }
            (hex(&hash.finalize()) == *wanted).then_some(())?;
        }
        sums.contains_key("model.safetensors").then_some(())
    };
    tokio::task::spawn_blocking(check).await.ok().flatten().is_some()
}

fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

fn is_id(id: &str) -> bool {
    id.split_once('/').is_some_and(|(owner, name)| is_name(owner) && is_name(name))
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn failed(what: &str, error: &dyn std::error::Error) -> EmbeddingError {
    EmbeddingError::Download(format!("{what}: {error}"))
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
