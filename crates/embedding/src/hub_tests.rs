//! Downloads from a server that behaves like a model hub.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use super::*;
use crate::testing::{Answer, Request, serve};

const WEIGHTS: &[u8] = b"pretend these are weights";

/// Serves one model; its weights by way of a redirect that names their checksum.
async fn hub(weights: &'static [u8], sum: String) -> (String, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let answer = move |request: &Request| {
        count.fetch_add(1, Ordering::Relaxed);
        match request.path.as_str() {
            "/org/small/resolve/main/config.json" => Answer::new(200, "{}").header("etag", "\"abc\""),
            "/org/small/resolve/main/tokenizer.json" => Answer::new(200, "{\"model\":{}}"),
            "/org/small/resolve/main/model.safetensors" => Answer::new(302, "")
                .header("location", "/storage/1")
                .header("x-linked-etag", &format!("\"{sum}\"")),
            "/storage/1" => Answer::new(200, weights),
            "/org/cut/resolve/main/config.json" => Answer::new(200, "{").header("content-length", "100"),
            "/org/loop/resolve/main/config.json" => Answer::new(302, "").header("location", &request.path),
            _ => Answer::new(404, ""),
        }
    };
    (serve(answer).await, asked)
}

#[tokio::test]
async fn a_model_is_downloaded_once_and_checked_each_time() {
    let (url, asked) = hub(WEIGHTS, hex(&Sha256::digest(WEIGHTS))).await;
    let cache = tempfile::tempdir().unwrap();
    let hub = Hub::new(url, cache.path()).unwrap();
    let mut seen = Vec::new();
    let folder = hub.fetch("org/small", |progress| seen.push(progress)).await.unwrap();
    assert_eq!(fs::read(folder.join("model.safetensors")).unwrap(), WEIGHTS);
    let size = WEIGHTS.len() as u64;
    assert_eq!(
        seen.last(),
        Some(&Progress { file: "model.safetensors".into(), done: size, total: Some(size) })
    );

    let before = asked.load(Ordering::Relaxed);
    assert_eq!(hub.fetch("org/small", |_| {}).await.unwrap(), folder);
    assert_eq!(asked.load(Ordering::Relaxed), before, "nothing is asked again");

    fs::write(folder.join("model.safetensors"), "damaged").unwrap();
    hub.fetch("org/small", |_| {}).await.unwrap();
    assert_eq!(
        fs::read(folder.join("model.safetensors")).unwrap(),
        WEIGHTS,
        "a damaged file is fetched again"
    );
}

#[tokio::test]
async fn a_file_with_another_checksum_is_refused_and_not_kept() {
    let (url, _) = hub(b"something else", hex(&Sha256::digest(WEIGHTS))).await;
    let cache = tempfile::tempdir().unwrap();
    let error = Hub::new(url, cache.path()).unwrap().fetch("org/small", |_| {}).await.unwrap_err();
    assert!(error.to_string().contains("checksum"), "{error}");
    let folder = cache.path().join("org--small/main");
    let left: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("model")), "{left:?}");
}

#[tokio::test]
async fn missing_models_broken_downloads_and_bad_names_are_errors() {
    let (url, _) = hub(WEIGHTS, String::new()).await;
    let cache = tempfile::tempdir().unwrap();
    let hub = Hub::new(url, cache.path()).unwrap();
    for (model, says) in [
        ("org/none", "no config.json"),
        ("org/cut", "broke off"),
        ("org/loop", "too often"),
        ("nothing", "owner/name"),
        ("../../etc", "owner/name"),
        ("org/x@../..", "owner/name"),
    ] {
        let error = hub.fetch(model, |_| {}).await.unwrap_err();
        assert_eq!(error.code(), "embedding.download");
        assert!(error.to_string().contains(says), "{model}: {error}");
    }
}
