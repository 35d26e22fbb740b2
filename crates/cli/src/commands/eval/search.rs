//! `gatewright eval search`.

use std::{
    fs::File,
    io::{BufReader, IsTerminal as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use gatewright_codecall::{EmbeddingConfig, Strategy};
use gatewright_embedding::{EmbeddingError, SemanticSearch, Status};
use gatewright_search::{
    Index, Query,
    eval::{self, Bm25, Searcher, TfIdfCosine},
};

use tokio::runtime::Handle;

use crate::{
    args::{EvalSearchArgs, EvalStrategy},
    exit::BadConfig,
    output,
    wire::embedding,
};

/// Runs the measurement, with progress on a terminal.
pub async fn run(args: EvalSearchArgs) -> anyhow::Result<ExitCode> {
    let EvalSearchArgs { corpus, queries, strategy, model, cache, worst, json } = args;
    let documents = read(&corpus, eval::read_corpus)?;
    let cases = read(&queries, eval::read_cases)?;
    if strategy != EvalStrategy::Embedding && model.is_some() {
        return Err(BadConfig("--model needs --strategy embedding".to_owned()).into());
    }
    let searcher: Box<dyn Searcher + Send> = match strategy {
        EvalStrategy::Tfidf => Box::new(Index::build(documents)),
        EvalStrategy::Embedding => Box::new(semantic(Index::build(documents), model, cache).await?),
        EvalStrategy::Bm25 => Box::new(Bm25::new(&documents)),
        EvalStrategy::Cosine => Box::new(TfIdfCosine::new(&documents)),
    };
    // Queries run one after another on a blocking thread, because the semantic search waits for the runtime.
    let report = tokio::task::spawn_blocking(move || {
        eval::evaluate(&*searcher, &cases, worst, |done, of| progress("queries", done, of))
    })
    .await?;
    if json {
        output::pretty_json(&report)?;
    } else {
        output::line(report.to_string().trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn progress(what: &str, done: usize, of: usize) {
    if std::io::stderr().is_terminal() && (done.is_multiple_of(25) || done == of) {
        output::progress(&format!("\r{done}/{of} {what}{}", if done == of { "\n" } else { "" }));
    }
}

/// The blended ranking of the server, for one corpus.
struct Semantic {
    search: SemanticSearch,
    runtime: Handle,
}

impl Searcher for Semantic {
    fn find(&self, text: &str, top_k: usize) -> Vec<(String, f32)> {
        let query = Query::new(text).top_k(top_k);
        let hits = self.runtime.block_on(self.search.search(&query)).result.hits;
        hits.into_iter().map(|hit| (hit.name, hit.score)).collect()
    }

    fn best(&self, text: &str) -> f32 {
        let query = Query::new(text).top_k(1).min_score(0.0);
        self.runtime.block_on(self.search.search(&query)).result.hits.first().map_or(0.0, |hit| hit.score)
    }
}

async fn semantic(index: Index, model: Option<String>, cache: Option<PathBuf>) -> anyhow::Result<Semantic> {
    let mut config = EmbeddingConfig { strategy: Strategy::Embedding, cache, ..EmbeddingConfig::default() };
    // A shell completes the name of a folder without `./` in front.
    config.model = model.map(|model| match Path::new(&model).is_dir() && Path::new(&model).is_relative() {
        true => format!("./{model}"),
        false => model,
    });
    let search = embedding::open(&config).await.map_err(|error| BadConfig(describe(&error)))?;
    let maker = search.clone();
    let building = maker.replace_now(index);
    tokio::pin!(building);
    loop {
        let pause = tokio::time::sleep(Duration::from_millis(200));
        tokio::select! {
            done = &mut building => break done?,
            () = pause => if let Status::Building { done, total } = search.status() {
                progress("vectors", done, total);
            },
        }
    }
    Ok(Semantic { search, runtime: Handle::current() })
}

/// An error with its cause, on one line.
fn describe(error: &EmbeddingError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn read<T>(
    path: &Path,
    parse: impl Fn(BufReader<File>) -> Result<Vec<T>, eval::ReadError>,
) -> anyhow::Result<Vec<T>> {
    let name = path.display();
    let file = File::open(path).map_err(|error| BadConfig(format!("{name} cannot be read: {error}")))?;
    let items = parse(BufReader::new(file)).map_err(|error| BadConfig(format!("{name}: {error}")))?;
    if items.is_empty() {
        return Err(BadConfig(format!("{name} is empty")).into());
    }
    Ok(items)
}
