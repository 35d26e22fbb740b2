//! Measures the blended ranking: `measure MODEL CACHE SETS MAX_QUERIES [semantic=1.5,2 ...] [SET ...]`.
//!
//! Vectors of tools and of queries are kept in the folder CACHE, so that a second run measures only the ranking.
use std::{
    collections::HashMap,
    error::Error,
    fs::File,
    io::{BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use gatewright_embedding::{BertEmbedder, Embedder, EmbeddingError, ExactStore, Fusion, SemanticSearch};
use gatewright_search::{
    Index, Query,
    eval::{Case, Report, Searcher, evaluate, read_cases, read_corpus},
};

/// An encoder that remembers.
struct Remembering {
    inner: BertEmbedder,
    path: PathBuf,
    known: Mutex<HashMap<String, Vec<f32>>>,
}

impl Remembering {
    fn load(model: &Path, path: PathBuf) -> Result<Self, Box<dyn Error>> {
        let inner = BertEmbedder::load(model)?;
        let mut known = HashMap::new();
        if let Ok(file) = File::open(&path) {
            let mut text = String::new();
            BufReader::new(file).read_to_string(&mut text)?;
            for line in text.lines() {
                let (text, vector): (String, Vec<f32>) = serde_json::from_str(line)?;
                known.insert(text, vector);
            }
        }
        Ok(Self { inner, path, known: Mutex::new(known) })
    }
}

impl Embedder for Remembering {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn dimensions(&self) -> usize {
        self.inner.dimensions()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        if let [text] = texts {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(vector) = known.get(*text) {
                return Ok(vec![vector.clone()]);
            }
            let vectors = self.inner.embed(texts)?;
            known.insert((*text).to_owned(), vectors[0].clone());
            let line = serde_json::to_string(&(text, &vectors[0])).unwrap_or_default();
            let file = File::options().create(true).append(true).open(&self.path);
            if let Err(error) = file.and_then(|mut file| writeln!(file, "{line}")) {
                eprintln!("{error}");
            }
            return Ok(vectors);
        }
        self.inner.embed(texts)
    }
}

struct Blended<'r>(&'r tokio::runtime::Runtime, SemanticSearch);

impl Searcher for Blended<'_> {
    fn find(&self, text: &str, top_k: usize) -> Vec<(String, f32)> {
        let result = self.0.block_on(self.1.search(&Query::new(text).top_k(top_k))).result;
        result.hits.into_iter().map(|hit| (hit.name, hit.score)).collect()
    }

    fn best(&self, text: &str) -> f32 {
        let result = self.0.block_on(self.1.search(&Query::new(text).top_k(1).min_score(0.0))).result;
        result.hits.first().map_or(0.0, |hit| hit.score)
    }
}

fn show(label: &str, report: &Report) {
    let none = report.unanswerable.as_ref();
    println!(
        "{label:<24} R@1 {:.1} R@5 {:.1} nDCG@10 {:.1} AUC {:.3} left empty {:.3} lost {:.3}",
        report.recall_at_1 * 100.0,
        report.recall_at_5 * 100.0,
        report.ndcg_at_10 * 100.0,
        none.and_then(|none| none.area_under_roc).unwrap_or_default(),
        none.map_or(0.0, |none| none.left_empty),
        none.map_or(0.0, |none| none.lost),
    );
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next =
        || arguments.next().ok_or("usage: measure MODEL CACHE SETS MAX_QUERIES [semantic=N,N] [SET ...]");
    let (model, cache, folder, most) = (next()?, PathBuf::from(next()?), next()?, next()?.parse::<usize>()?);
    let mut weights = vec![Fusion::default().semantic];
    let mut wanted: Vec<String> = Vec::new();
    for argument in arguments {
        match argument.strip_prefix("semantic=") {
            Some(list) => weights = list.split(',').map(str::parse).collect::<Result<_, _>>()?,
            None => wanted.push(argument),
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    std::fs::create_dir_all(&cache)?;
    let embedder = Arc::new(Remembering::load(Path::new(&model), cache.join("queries.jsonl"))?);
    let start = Instant::now();
    for _ in 0..20 {
        embedder.inner.embed(&["find me a quiet table for two this evening"])?;
    }
    println!("one query is embedded in {:.2} ms", start.elapsed().as_secs_f64() * 50.0);
    let store = Arc::new(ExactStore::open(cache.join("tools.vectors"), embedder.dimensions())?);
    let clean = concat!(env!("CARGO_MANIFEST_DIR"), "/../search/data/unanswerable.jsonl");
    let clean = read_cases(BufReader::new(File::open(clean)?))?;
    let mut totals = vec![(0.0, 0.0, 0.0); weights.len()];
    for set in &wanted {
        let path = Path::new(&folder).join(set);
        let corpus = read_corpus(BufReader::new(File::open(path.join("corpus.jsonl"))?))?;
        let cases = read_cases(BufReader::new(File::open(path.join("queries.jsonl"))?))?;
        let step = cases.len() / most + 1;
        let cases: Vec<Case> = cases.into_iter().step_by(step).chain(clean.iter().cloned()).collect();
        let index = Index::build(corpus);
        show(&format!("{set} lexical"), &evaluate(&index, &cases, 0, |_, _| {}));
        for (semantic, total) in weights.iter().zip(&mut totals) {
            let fusion = Fusion { semantic: *semantic, ..Fusion::default() };
            let search = SemanticSearch::new(embedder.clone(), store.clone(), fusion);
            runtime.block_on(search.replace_now(index.clone()))?;
            let report = evaluate(&Blended(&runtime, search), &cases, 0, |_, _| {});
            show(&format!("{set} x{semantic}"), &report);
            let area = report.unanswerable.as_ref().and_then(|none| none.area_under_roc).unwrap_or_default();
            *total = (total.0 + report.recall_at_5, total.1 + report.ndcg_at_10, total.2 + area);
        }
    }
    for (semantic, total) in weights.iter().zip(&totals) {
        let mean = |sum: f64| sum / wanted.len().max(1) as f64;
        println!(
            "MEAN x{semantic}: R@5 {:.2} nDCG@10 {:.2} AUC {:.3}",
            mean(total.0) * 100.0,
            mean(total.1) * 100.0,
            mean(total.2)
        );
    }
    Ok(())
}
