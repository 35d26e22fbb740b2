//! Measures the blended ranking: `measure MODEL_FOLDER VECTOR_FILE SETS_FOLDER MAX_QUERIES [SET ...]`.
use std::{error::Error, fs::File, io::BufReader, path::Path, sync::Arc, time::Instant};

use gatewright_embedding::{BertEmbedder, Embedder as _, FileStore, Fusion, SemanticSearch};
use gatewright_search::{
    Index, Query,
    eval::{evaluate, read_cases, read_corpus},
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("usage: measure MODEL VECTORS SETS MAX_QUERIES [SET ...]");
    let (model, vectors, folder, most) = (next()?, next()?, next()?, next()?.parse::<usize>()?);
    let wanted: Vec<String> = arguments.collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let embedder = Arc::new(BertEmbedder::load(Path::new(&model))?);
    let store = Arc::new(FileStore::open(&vectors, embedder.dimensions())?);
    let start = Instant::now();
    for _ in 0..20 {
        embedder.embed(&["find me a quiet table for two this evening"])?;
    }
    println!("one query is embedded in {:.2} ms", start.elapsed().as_secs_f64() * 50.0);
    for set in wanted {
        let path = Path::new(&folder).join(&set);
        let corpus = read_corpus(BufReader::new(File::open(path.join("corpus.jsonl"))?))?;
        let cases = read_cases(BufReader::new(File::open(path.join("queries.jsonl"))?))?;
        let step = cases.len() / most + 1;
        let cases: Vec<_> = cases.into_iter().step_by(step).collect();
        let index = Index::build(corpus);
        let start = Instant::now();
        let lexical = evaluate(&index, &cases, 0, |_, _| {});
        for semantic in [1.0, 1.5, 2.0, 3.0] {
            let fusion = Fusion { semantic, ..Fusion::default() };
            let search = SemanticSearch::new(embedder.clone(), store.clone(), fusion);
            runtime.block_on(search.replace_now(index.clone()))?;
            let find = |text: &str, top_k: usize| {
                let result = runtime.block_on(search.search(&Query::new(text).top_k(top_k))).result;
                result.hits.into_iter().map(|hit| (hit.name, hit.score)).collect::<Vec<_>>()
            };
            let blended = evaluate(&find, &cases, 0, |_, _| {});
            println!(
                "{set} x{semantic} ({} queries): lexical R@5 {:.1} nDCG@10 {:.1}; blended R@1 {:.1} R@5 {:.1} nDCG@10 {:.1}, p50 {:.2} p99 {:.2} ms ({:.0} s)",
                cases.len(),
                lexical.recall_at_5 * 100.0,
                lexical.ndcg_at_10 * 100.0,
                blended.recall_at_1 * 100.0,
                blended.recall_at_5 * 100.0,
                blended.ndcg_at_10 * 100.0,
                blended.latency.p50_ms,
                blended.latency.p99_ms,
                start.elapsed().as_secs_f64()
            );
        }
    }
    Ok(())
}
