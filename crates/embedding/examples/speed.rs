//! Times a semantic search, model included, over SIZE tools made from those of a folder of sets:
//! `speed MODEL SETS SIZE`. Vectors of the tools are made up: they have no part in how long it takes.
use std::{
    error::Error,
    fs::File,
    io::BufReader,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use gatewright_embedding::{
    BertEmbedder, Embedder, EmbeddingError, ExactStore, Fusion, SemanticSearch, VectorStore as _,
};
use gatewright_search::{
    Document, Index, Query,
    eval::{Latency, read_cases, read_corpus},
};

/// Runs of each query.
const RUNS: usize = 5;
/// Queries of each set.
const QUERIES: usize = 100;

/// The real model for single texts, that is queries; made-up vectors for many, that is tools.
struct QueriesOnly(BertEmbedder);

impl Embedder for QueriesOnly {
    fn id(&self) -> &str {
        self.0.id()
    }

    fn dimensions(&self) -> usize {
        self.0.dimensions()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        if let [_] = texts {
            return self.0.embed(texts);
        }
        let made = |text: &&str| {
            let mut state = text.bytes().fold(0x1234_5678_9ABC_DEF1_u64, |state, byte| {
                (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
            });
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 40) as f32 / (1 << 23) as f32 - 1.0
            };
            let some: Vec<f32> = (0..self.dimensions()).map(|_| next()).collect();
            let length = some.iter().map(|value| value * value).sum::<f32>().sqrt();
            some.iter().map(|value| value / length).collect()
        };
        Ok(texts.iter().map(made).collect())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("usage: speed MODEL SETS SIZE");
    let (model, folder, size) = (next()?, next()?, next()?.parse::<usize>()?);
    let start = Instant::now();
    let model = Arc::new(QueriesOnly(BertEmbedder::load(Path::new(&model))?));
    println!("model loaded in {:.0} ms", start.elapsed().as_secs_f64() * 1000.0);
    let (mut corpus, mut queries): (Vec<Document>, Vec<(String, Vec<String>)>) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(Path::new(&folder))? {
        let path = entry?.path();
        corpus.extend(read_corpus(BufReader::new(File::open(path.join("corpus.jsonl"))?))?);
        let cases = read_cases(BufReader::new(File::open(path.join("queries.jsonl"))?))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        queries.push((name, cases.into_iter().take(QUERIES).map(|case| case.query).collect()));
    }
    let index = Index::build((0..size).map(|number| {
        let mut document = corpus[number % corpus.len()].clone();
        let copy = number / corpus.len();
        if copy > 0 {
            document.app_id = format!("{}-{copy}", document.app_id);
            document.name = format!("{}:{}_{copy}", document.app_id, document.name);
            document.description.push_str(&format!(" variant{}", number % 5000));
        }
        document
    }));
    let store = Arc::new(ExactStore::in_memory(model.dimensions()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let search = SemanticSearch::new(model.clone(), store.clone(), Fusion::default());
    runtime.block_on(search.replace_now(index.clone()))?;
    // The best of some runs of each query: what it takes when nothing else uses the processor.
    let time = |texts: &[String], run: &dyn Fn(&str)| {
        let best = |text: &String| {
            let once = || {
                let start = Instant::now();
                run(text);
                start.elapsed()
            };
            (0..RUNS).map(|_| once()).min().unwrap_or(Duration::ZERO)
        };
        Latency::of(texts.iter().map(best).collect())
    };
    for (name, texts) in &queries {
        let words =
            texts.iter().map(|text| text.split_whitespace().count()).sum::<usize>() / texts.len().max(1);
        let encoded = time(texts, &|text| drop(model.embed(&[text])));
        let vector = model.embed(&["any query"])?.remove(0);
        let near = time(texts, &|_| drop(runtime.block_on(store.nearest(&vector, 100, None))));
        let words_only = time(texts, &|text| drop(index.rank(&Query::new(text).top_k(100).min_score(0.0))));
        let whole = time(texts, &|text| drop(runtime.block_on(search.search(&Query::new(text)))));
        println!(
            "{name:<8} {words:>3} words a query: model p50 {:.2} p99 {:.2} ms; vectors compared {:.2}; words {:.2}; whole search p50 {:.2} p99 {:.2} ms",
            encoded.p50_ms, encoded.p99_ms, near.p50_ms, words_only.p50_ms, whole.p50_ms, whole.p99_ms
        );
    }
    Ok(())
}
