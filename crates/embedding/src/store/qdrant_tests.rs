//! The store against a server that speaks the documented part of Qdrant's API.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

use super::*;
use crate::testing::{Answer, Request, serve};

/// Collections by name: dimensions, and points by id.
type State = Arc<Mutex<BTreeMap<String, (u64, BTreeMap<String, Vec<f64>>)>>>;

fn answer(state: &State, request: &Request) -> Answer {
    if request.header("api-key") != Some("secret") {
        return Answer::json(401, &json!({"status": {"error": "Must provide an API key"}}));
    }
    let mut state = state.lock().unwrap();
    let path = request.path.split('?').next().unwrap();
    let mut parts = path.trim_start_matches("/collections/").splitn(2, '/');
    let (name, rest) = (parts.next().unwrap().to_owned(), parts.next().unwrap_or(""));
    let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    let ok = |result: Value| Answer::json(200, &json!({"result": result, "status": "ok", "time": 0.001}));
    if (request.method.as_str(), rest) == ("PUT", "") {
        state.insert(name, (body["vectors"]["size"].as_u64().unwrap(), BTreeMap::new()));
        return ok(json!(true));
    }
    let Some((size, points)) = state.get_mut(&name) else {
        return Answer::json(404, &json!({"status": {"error": "Not found"}}));
    };
    match (request.method.as_str(), rest) {
        ("GET", "") => ok(json!({"config": {"params": {"vectors": {"size": *size, "distance": "Cosine"}}}})),
        ("PUT", "points") => {
            for point in body["points"].as_array().unwrap() {
                let vector =
                    point["vector"].as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect();
                points.insert(point["id"].as_str().unwrap().to_owned(), vector);
            }
            ok(json!({"operation_id": 0, "status": "completed"}))
        }
        ("POST", "points") => {
            let ids = body["ids"].as_array().unwrap().iter().filter_map(Value::as_str);
            ok(ids.filter(|id| points.contains_key(*id)).map(|id| json!({"id": id})).collect())
        }
        ("POST", "points/query") => {
            let query: Vec<f64> =
                body["query"].as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect();
            let only = body["filter"]["must"][0]["has_id"].as_array();
            let mut found: Vec<(f64, &String)> = points
                .iter()
                .filter(|(id, _)| only.is_none_or(|only| only.iter().any(|other| other == *id)))
                .map(|(id, vector)| (vector.iter().zip(&query).map(|(a, b)| a * b).sum(), id))
                .collect();
            found.sort_by(|a, b| b.0.total_cmp(&a.0));
            found.truncate(body["limit"].as_u64().unwrap() as usize);
            let points: Vec<Value> =
                found.iter().map(|(score, id)| json!({"id": id, "version": 0, "score": score})).collect();
            ok(json!({"points": points}))
        }
        _ => Answer::json(400, &json!({"status": {"error": "unknown"}})),
    }
}

async fn server() -> String {
    let state = State::default();
    serve(move |request| answer(&state, request)).await
}

#[tokio::test]
async fn keeps_the_contract_of_a_store() {
    let url = server().await;
    let store = QdrantStore::open(&url, "tools", Some("secret"), 3).await.unwrap();
    super::super::contract::check(&store, false).await;
    let again = QdrantStore::open(&url, "tools", Some("secret"), 3).await.unwrap();
    assert!(
        again.missing(&[Key([2; 16])]).await.unwrap().is_empty(),
        "another instance sees the same vectors"
    );
}

#[tokio::test]
async fn a_collection_of_other_dimensions_is_refused() {
    let url = server().await;
    QdrantStore::open(&url, "tools", Some("secret"), 3).await.unwrap();
    let error = QdrantStore::open(&url, "tools", Some("secret"), 4).await.unwrap_err();
    assert!(matches!(error, EmbeddingError::Dimension { stored: 3, model: 4 }));
}

#[tokio::test]
async fn a_server_that_is_down_or_refuses_is_an_error_that_does_not_show_the_key() {
    let url = server().await;
    let error = QdrantStore::open(&url, "tools", Some("wrong-key"), 3).await.unwrap_err();
    assert_eq!(error.to_string(), "vector store is unavailable: Qdrant answers 401 Unauthorized");
    // Port 1 is not listened on.
    let error = QdrantStore::open("http://127.0.0.1:1", "tools", Some("k3y"), 3).await.unwrap_err();
    assert_eq!(error.code(), "embedding.store");
    assert!(!format!("{error:?}").contains("k3y"));
    assert!(QdrantStore::open(&url, "../x", None, 3).await.is_err());
}

#[tokio::test]
async fn a_redirect_is_an_error_and_takes_the_key_nowhere() {
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    let other = serve(move |_| {
        *count.lock().unwrap() += 1;
        Answer::json(200, &json!({"result": {"config": {"params": {"vectors": {"size": 3}}}}}))
    })
    .await;
    for status in [301, 302, 303, 307, 308] {
        let to = other.clone();
        let url = serve(move |_| Answer::new(status, "").header("location", &to)).await;
        // A scheme is the same in capitals, and `https` is not `http`: what one kind of address does, all do.
        for url in [url.clone(), url.replace("http:", "HTTP:")] {
            let error = QdrantStore::open(&url, "tools", Some("secret"), 3).await.unwrap_err();
            assert!(error.to_string().contains("not followed"), "{url}: {error}");
        }
    }
    assert_eq!(*asked.lock().unwrap(), 0, "the other server was asked");
}
