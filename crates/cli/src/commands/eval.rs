//! `gatewright eval search`.

use std::{
    fs::File,
    io::{BufReader, IsTerminal as _},
    path::Path,
    process::ExitCode,
};

use gatewright_search::{
    Index,
    eval::{self, Bm25, Searcher, TfIdfCosine},
};

use crate::{
    args::{EvalArgs, EvalCommand, EvalStrategy},
    exit::BadConfig,
};

/// Measures, with progress on a terminal.
pub fn run(args: EvalArgs) -> anyhow::Result<ExitCode> {
    let EvalCommand::Search { corpus, queries, strategy, worst, json } = args.command;
    let documents = read(&corpus, eval::read_corpus)?;
    let cases = read(&queries, eval::read_cases)?;
    let searcher: Box<dyn Searcher> = match strategy {
        EvalStrategy::Tfidf => Box::new(Index::build(documents)),
        EvalStrategy::Bm25 => Box::new(Bm25::new(&documents)),
        EvalStrategy::Cosine => Box::new(TfIdfCosine::new(&documents)),
    };
    let shown = std::io::stderr().is_terminal();
    let report = eval::evaluate(&*searcher, &cases, worst, |done, of| {
        if shown && (done % 25 == 0 || done == of) {
            eprint!("\r{done}/{of} queries{}", if done == of { "\n" } else { "" });
        }
    });
    if json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(ExitCode::SUCCESS)
}

fn read<T>(
    path: &Path,
    parse: impl Fn(BufReader<File>) -> Result<Vec<T>, eval::ReadError>,
) -> anyhow::Result<Vec<T>> {
    let shown = path.display();
    let file = File::open(path).map_err(|error| BadConfig(format!("{shown} cannot be read: {error}")))?;
    let items = parse(BufReader::new(file)).map_err(|error| BadConfig(format!("{shown}: {error}")))?;
    if items.is_empty() {
        return Err(BadConfig(format!("{shown} holds no line")).into());
    }
    Ok(items)
}
