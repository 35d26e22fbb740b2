//! Tokens in a file that only its owner can read: `gatewright/tokens.json` in the user's configuration folder.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use gatewright_auth::{Clock as _, SystemClock};
use gatewright_core::read_file;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::{discovery::Discovered, grant::Answer, http::TokenResponse};
use crate::environment::environment;

/// Longest file, in bytes.
const LONGEST: u64 = 4 << 20;

/// Tokens for one MCP endpoint.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    issuer: String,
    pub resource: String,
    pub token_endpoint: String,
    pub revocation_endpoint: Option<String>,
    pub client_id: String,
    pub access_token: String,
    pub refresh_token: Option<String>,
    /// Seconds since the epoch; none if it is not known.
    expires_s: Option<u64>,
}

impl Tokens {
    pub fn new(server: &Discovered, answer: Answer) -> Self {
        let metadata = &server.metadata;
        let mut tokens = Self {
            issuer: metadata.issuer.clone(),
            resource: server.resource.clone(),
            token_endpoint: metadata.token_endpoint.clone(),
            revocation_endpoint: metadata.revocation_endpoint.clone(),
            client_id: answer.client.id,
            access_token: String::new(),
            refresh_token: None,
            expires_s: None,
        };
        tokens.renew(answer.tokens);
        tokens
    }

    /// Takes over new tokens. A server that does not rotate leaves the refresh token out (RFC 6749 §6).
    pub fn renew(&mut self, new: TokenResponse) {
        self.access_token = new.access_token;
        self.refresh_token = new.refresh_token.or(self.refresh_token.take());
        self.expires_s = new.expires_in.map(|seconds| now_s().saturating_add(seconds));
    }

    /// Returns true if the access token ends within `skew`.
    pub fn is_due(&self, skew: Duration) -> bool {
        self.expires_s.is_some_and(|end| now_s().saturating_add(skew.as_secs()) >= end)
    }
}

fn now_s() -> u64 {
    SystemClock.now_s()
}

/// The file of tokens.
pub struct Store {
    folder: PathBuf,
}

/// The file, while no other process changes it.
pub struct Locked {
    path: PathBuf,
    _lock: File,
}

impl Store {
    /// The user's own.
    ///
    /// # Errors
    /// The user has no home folder.
    pub fn open() -> anyhow::Result<Self> {
        let environment = environment();
        let folder = |name: &str| environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
        let base = base.context("there is no folder for tokens: set HOME or XDG_CONFIG_HOME")?;
        Ok(Self { folder: base.join("gatewright") })
    }

    fn path(&self) -> PathBuf {
        self.folder.join("tokens.json")
    }

    /// Returns true if anybody ever signed in.
    pub fn exists(&self) -> bool {
        self.path().exists()
    }

    /// Waits until no other process changes the file.
    pub fn lock(&self) -> anyhow::Result<Locked> {
        let cannot = |error: io::Error| anyhow::anyhow!("{} cannot be used: {error}", self.folder.display());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(cannot)?;
        let lock = private(&self.folder.join("tokens.lock"), true).map_err(cannot)?;
        lock.lock().map_err(cannot)?;
        Ok(Locked { path: self.path(), _lock: lock })
    }
}

/// Opens a file for writing that only its owner can read.
fn private(path: &Path, keep: bool) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(!keep).mode(0o600).open(path)
}

impl Locked {
    /// The tokens for `url`.
    pub fn get(&self, url: &Url) -> anyhow::Result<Option<Tokens>> {
        Ok(self.read()?.remove(url.as_str()))
    }

    /// Keeps tokens for `url`, in place of earlier ones.
    pub fn put(&mut self, url: &Url, tokens: Tokens) -> anyhow::Result<()> {
        let mut all = self.read()?;
        all.insert(url.to_string(), tokens);
        self.write(&all)
    }

    /// Forgets the tokens for `url`, and returns them.
    pub fn remove(&mut self, url: &Url) -> anyhow::Result<Option<Tokens>> {
        let mut all = self.read()?;
        let gone = all.remove(url.as_str());
        self.write(&all)?;
        Ok(gone)
    }

    fn read(&self) -> anyhow::Result<BTreeMap<String, Tokens>> {
        let bytes = match read_file(&self.path, LONGEST) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            bytes => bytes.with_context(|| format!("{} cannot be read", self.path.display()))?,
        };
        // The error could show a part of a token.
        let parsed = serde_json::from_slice(&bytes);
        parsed
            .map_err(|_| anyhow::anyhow!("{} is damaged; delete it, and sign in again", self.path.display()))
    }

    /// Writes a new file beside the old one, and moves it there.
    fn write(&self, all: &BTreeMap<String, Tokens>) -> anyhow::Result<()> {
        let new = self.path.with_extension("new");
        let written = || -> io::Result<()> {
            let mut file = private(&new, false)?;
            file.write_all(&serde_json::to_vec_pretty(all)?)?;
            file.sync_all()?;
            fs::rename(&new, &self.path)
        };
        written().with_context(|| format!("{} cannot be written", self.path.display()))
    }
}
