//! Reading the document of an app from a file or a URL, and what it means together with the configuration.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use gatewright_core::{Catalog, CatalogFinding, InvalidField, rmcp::model::ServerCapabilities};
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;
use url::Url;

use crate::{
    ApiSignIn, Operation,
    call::{HttpApi, Surroundings, Validators, fits, token_endpoint},
    config::{ApiAuth, Credential, DocumentPlace, OpenapiConfig},
    document::{self, Document, DocumentOptions, Finding},
    endpoints,
    listed::listed,
    sign_in,
};

/// Findings about one document that are kept.
const MOST_FINDINGS: usize = 100;
/// Documents that one may refer to.
const MOST_REFERRED: usize = 50;

/// A document in use.
#[derive(Debug)]
pub(crate) struct Loaded {
    document: Document,
    by_tool: HashMap<Arc<str>, Arc<Operation>>,
    pub(crate) surroundings: Surroundings,
    /// The server of the first operation that has one.
    pub(crate) server: Option<Url>,
    /// The sign-in of users, if the API is called on behalf of them.
    pub(crate) sign_in: Option<ApiSignIn>,
    /// Fields of the configuration that do not fit the document.
    misfits: Vec<InvalidField>,
    /// Tools without a server, and why.
    without_server: Vec<(Arc<str>, String)>,
}

impl Loaded {
    fn new(document: Document, url: Option<Url>, api: &HttpApi) -> Self {
        let operations = document.operations.iter();
        let (mut without_server, mut server, mut origins) = (Vec::new(), None, BTreeSet::new());
        for operation in operations.clone() {
            match api.server(operation, url.as_ref()) {
                Ok(url) => {
                    let origin = url.origin();
                    if server.as_ref().is_none_or(|server: &Url| server.origin() != origin) {
                        origins.insert(origin.ascii_serialization());
                    }
                    server.get_or_insert(url);
                }
                Err(why) => without_server.push((operation.tool.clone(), why)),
            }
        }
        let left_out: HashSet<&Arc<str>> = without_server.iter().map(|(tool, _)| tool).collect();
        let by_tool = operations
            .clone()
            .filter(|operation| !left_out.contains(&operation.tool))
            .map(|operation| (operation.tool.clone(), operation.clone()))
            .collect();
        let surroundings =
            Surroundings::new(document.schemes.clone(), url, operations.map(|operation| &**operation));
        let mut misfits = misfits(api.config(), &document);
        misfits.extend(token_endpoints(api.config(), &document, server.as_ref()));
        let sign_in = match sign_in::of_document(api.config(), &document.schemes, server.as_ref(), &origins) {
            Ok(sign_in) => sign_in,
            Err(misfit) => {
                misfits.push(misfit);
                None
            }
        };
        Self { sign_in, by_tool, surroundings, server, misfits, without_server, document }
    }

    /// The operation behind a tool.
    pub(crate) fn operation(&self, tool: &str) -> Option<&Arc<Operation>> {
        self.by_tool.get(tool)
    }

    /// The reason why no operation can be called.
    pub(crate) fn problem(&self) -> Option<String> {
        let (_, why) = self.without_server.first().filter(|_| self.by_tool.is_empty())?;
        Some(format!("it is not known where its API is: {why}; set `baseUrl`"))
    }

    /// The lists of the app.
    pub(crate) fn catalog(&self) -> Catalog {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        let tools = self
            .document
            .tools
            .iter()
            .filter(|tool| self.by_tool.contains_key(&*tool.name))
            .cloned()
            .collect();
        let about = match (&*self.document.title, &self.document.about) {
            ("", about) => about.clone(),
            (title, None) => Some(title.to_owned()),
            (title, Some(about)) => Some(format!("{title}: {about}")),
        };
        let about = about.map(|mut about| {
            about.truncate(about.floor_char_boundary(1024));
            about
        });
        let left_out = self.without_server.iter().map(|(tool, why)| CatalogFinding {
            item: tool.to_string(),
            problem: why.clone(),
            is_left_out: true,
        });
        let of_config = self.misfits.iter().map(|field| finding(&field.path, &field.problem));
        let of_document = self.document.findings.iter().map(|found| finding(&found.place, &found.problem));
        let unread = left_out.chain(of_config).chain(of_document).take(MOST_FINDINGS).collect();
        Catalog { capabilities, about, tools, unread, ..Catalog::default() }
    }
}

fn finding(item: &str, problem: &str) -> CatalogFinding {
    let clip = |text: &str, most: usize| text[..text.floor_char_boundary(most)].to_owned();
    CatalogFinding { item: clip(item, 200), problem: clip(problem, 500), is_left_out: false }
}

/// Credentials that no scheme of the document is for.
fn misfits(config: &OpenapiConfig, document: &Document) -> Vec<InvalidField> {
    let known = || match document.schemes.is_empty() {
        true => "it has none".to_owned(),
        false => format!("it has {}", listed(document.schemes.keys(), ", ")),
    };
    match &config.auth {
        None | Some(ApiAuth::Every(Credential::None {})) => Vec::new(),
        Some(ApiAuth::Every(credential)) => {
            let Credential::ApiKey { name: None, .. } = credential else { return Vec::new() };
            match document.schemes.values().any(|scheme| fits(credential, scheme)) {
                true => Vec::new(),
                false => {
                    let problem = format!(
                        "the document has no API key among its security schemes ({}); set `name` and `in`",
                        known()
                    );
                    vec![InvalidField::new("auth", problem)]
                }
            }
        }
        Some(ApiAuth::Schemes(configured)) => {
            let unknown = configured.keys().filter(|name| !document.schemes.contains_key(name.as_str()));
            unknown
                .map(|name| {
                    let problem = format!("`{name}` is no security scheme of the document; {}", known());
                    InvalidField::new(format!("auth.{name}"), problem)
                })
                .collect()
        }
    }
}

/// Token endpoints of the document that may not have the gateway's client secret, and that nothing replaces.
fn token_endpoints(config: &OpenapiConfig, document: &Document, server: Option<&Url>) -> Vec<InvalidField> {
    let base = config.base().unwrap_or_default();
    let mut problems = Vec::new();
    for (name, credential) in config.auth.iter().flat_map(ApiAuth::all) {
        if !matches!(credential, Credential::ClientCredentials(client) if client.token_url.is_none()) {
            continue;
        }
        let schemes = document.schemes.iter().filter(|(own, _)| name.is_none_or(|name| name == &***own));
        let field = name.map_or("auth.tokenUrl".to_owned(), |name| format!("auth.{name}.tokenUrl"));
        let endpoints = schemes.filter_map(|(_, scheme)| token_endpoint(scheme));
        let problem = endpoints
            .map(|url| endpoints::of_document(url, &field, server, base.as_ref()))
            .find_map(Result::err);
        problems.extend(problem.map(|problem| InvalidField::new(field, problem)));
    }
    problems
}

/// State of a file: size and time of its last change.
type Fingerprint = Option<(u64, SystemTime)>;

/// Reads a document, as often as it changes.
#[derive(Debug)]
pub(crate) struct Loader {
    api: Arc<HttpApi>,
    validators: Validators,
    /// Digest of the text in use.
    digest: Option<[u8; 32]>,
    /// Files that were read, as they were before.
    files: Vec<(PathBuf, Fingerprint)>,
}

impl Loader {
    pub(crate) fn new(api: Arc<HttpApi>) -> Self {
        Self { api, validators: Validators::default(), digest: None, files: Vec::new() }
    }

    pub(crate) fn config(&self) -> &OpenapiConfig {
        self.api.config()
    }

    /// Reads the document. None if it is the same as the last time.
    ///
    /// # Errors
    /// It cannot be read, or is no document that can be used.
    pub(crate) async fn load(&mut self) -> Result<Option<Loaded>, String> {
        match self.config().place() {
            DocumentPlace::File(path) => self.load_file(path).await.map(Some),
            DocumentPlace::Url(url) => self.load_url(url).await,
        }
    }

    async fn load_file(&mut self, path: PathBuf) -> Result<Loaded, String> {
        self.files = vec![(path.clone(), fingerprint(&path))];
        let most = self.config().max_document_bytes;
        let options = options(self.config());
        let (read, files) = blocking(move || {
            let mut files = Vec::new();
            let read = read_file(&path, most).and_then(|text| {
                let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
                let mut fetch = |name: &str| {
                    let (path, text) = referred_file(&folder, name, most)?;
                    files.push((path.clone(), fingerprint(&path)));
                    Ok(text)
                };
                document::read(&text, &options, &mut fetch).map_err(|error| error.to_string())
            });
            (read, files)
        })
        .await?;
        self.files.extend(files);
        Ok(Loaded::new(read?, None, &self.api))
    }

    async fn load_url(&mut self, url: Url) -> Result<Option<Loaded>, String> {
        let Some(fetched) = self.api.fetch_document(&url, &self.validators).await? else { return Ok(None) };
        let digest: [u8; 32] = Sha256::digest(fetched.text.as_bytes()).into();
        if self.digest == Some(digest) {
            self.validators = fetched.validators;
            return Ok(None);
        }
        let (options, api, from, runtime) =
            (options(self.config()), self.api.clone(), url.clone(), Handle::current());
        let text = fetched.text;
        let read = blocking(move || {
            let mut count = 0;
            let mut fetch = |name: &str| {
                count += 1;
                let target = from.join(name).map_err(|_| "it is no address".to_owned())?;
                if target.origin() != from.origin() {
                    return Err("documents on other hosts are not read".to_owned());
                }
                if count > MOST_REFERRED {
                    return Err(format!("a document refers to {MOST_REFERRED} others at most"));
                }
                let fetched = runtime.block_on(api.fetch_document(&target, &Validators::default()))?;
                fetched.map(|fetched| fetched.text).ok_or_else(|| "it has no content".to_owned())
            };
            document::read(&text, &options, &mut fetch).map_err(|error| error.to_string())
        })
        .await?;
        let loaded = Loaded::new(read?, Some(url), &self.api);
        // What cannot be used is fetched again the next time.
        (self.validators, self.digest) = (fetched.validators, Some(digest));
        Ok(Some(loaded))
    }

    /// Returns once a file that was read has changed, and stays as it is between two looks.
    pub(crate) async fn changed(&self, every: Duration) {
        let state = |files: Vec<PathBuf>| async move {
            let look = move || files.iter().map(|path| fingerprint(path)).collect::<Vec<_>>();
            blocking(look).await.unwrap_or_default()
        };
        let paths: Vec<PathBuf> = self.files.iter().map(|(path, _)| path.clone()).collect();
        let read: Vec<Fingerprint> = self.files.iter().map(|(_, fingerprint)| *fingerprint).collect();
        let mut before = read.clone();
        loop {
            tokio::time::sleep(every).await;
            let now = state(paths.clone()).await;
            if now != read && now == before {
                return;
            }
            before = now;
        }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|_| "reading it failed".to_owned())
}

fn options(config: &OpenapiConfig) -> DocumentOptions {
    let [include, exclude] = config.selectors();
    DocumentOptions { include, exclude, sent: config.sent() }
}

fn fingerprint(path: &Path) -> Fingerprint {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

fn read_file(path: &Path, most: usize) -> Result<String, String> {
    let unreadable = |error: io::Error| format!("{} cannot be read: {}", path.display(), why(&error));
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(format!("{} is no file", path.display()));
    }
    // It may grow meanwhile.
    let mut text = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(most).min(most));
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(most as u64 + 1).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() > most {
        return Err(format!("{} has more than {most} bytes; see `maxDocumentBytes`", path.display()));
    }
    String::from_utf8(text).map_err(|_| unreadable(io::ErrorKind::InvalidData.into()))
}

/// The reason for which a file cannot be read, without the code of the system.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        kind => kind.to_string(),
    }
}

/// A file that the document refers to. It has to be in the folder of the document, or below.
fn referred_file(folder: &Path, name: &str, most: usize) -> Result<(PathBuf, String), String> {
    if name.contains("://") {
        return Err("a file refers to other files only".to_owned());
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let path = folder.join(name);
    let canonical =
        |path: &Path| path.canonicalize().map_err(|error| format!("it cannot be read: {}", why(&error)));
    if !canonical(&path)?.starts_with(canonical(folder)?) {
        return Err("it is not in the folder of the document".to_owned());
    }
    let text = read_file(&path, most)?;
    Ok((path, text))
}

/// Findings of `check` about an app.
#[derive(Debug, Default)]
pub struct DocumentReport {
    /// Fields of the configuration that do not fit the document, or why it cannot be used.
    pub problems: Vec<InvalidField>,
    /// Parts of the document that are not used.
    pub findings: Vec<Finding>,
    /// Names of the tools.
    pub tools: Vec<String>,
}

/// Reads the document of an app, and compares the configuration with it.
pub async fn check(config: &OpenapiConfig) -> DocumentReport {
    let api = match HttpApi::new(config.clone()) {
        Ok(api) => Arc::new(api),
        Err(problem) => return DocumentReport { problems: vec![problem], ..DocumentReport::default() },
    };
    let loaded = match Loader::new(api).load().await {
        Ok(Some(loaded)) => loaded,
        Ok(None) => return DocumentReport::default(),
        Err(problem) => {
            return DocumentReport {
                problems: vec![InvalidField::new("openapi", problem)],
                ..DocumentReport::default()
            };
        }
    };
    let mut problems = loaded.misfits.clone();
    let missing = |(tool, why): &(Arc<str>, String)| InvalidField::new("baseUrl", format!("`{tool}`: {why}"));
    match loaded.problem() {
        Some(problem) => problems.push(InvalidField::new("baseUrl", problem)),
        None => problems.extend(loaded.without_server.iter().take(MOST_FINDINGS).map(missing)),
    }
    let tools = loaded.by_tool.keys().map(ToString::to_string).collect();
    DocumentReport { problems, findings: loaded.document.findings, tools }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_refers_to_files_in_its_own_folder_only() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("a.yaml"), "a").unwrap();
        fs::write(folder.path().join("secret.yaml"), "s").unwrap();
        assert_eq!(referred_file(&own, "a.yaml", 10).unwrap().1, "a");
        assert_eq!(referred_file(&own, "../own/a.yaml", 10).unwrap().1, "a");
        for refused in ["../secret.yaml", "/etc/hostname", "https://a.example/a.yaml", "missing.yaml", "."] {
            assert!(referred_file(&own, refused, 10_000).is_err(), "{refused}");
        }
        assert!(referred_file(&own, "a.yaml", 0).is_err());
    }
}
