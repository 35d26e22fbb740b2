//! Times comparing a query with every vector: `vectors MODEL SETS SIZE ...`. Vectors are those of the tools of a folder of
//! sets, copied with noise until there are SIZE of them; queries are 50 of each set's.
use std::{
    error::Error,
    fs::File,
    io::BufReader,
    path::Path,
    time::{Duration, Instant},
};

use gatewright_embedding::{BertEmbedder, Embedder, ExactStore, Key, VectorStore};
use gatewright_search::eval::{Latency, read_cases, read_corpus};

/// Runs of each query; the best time counts.
const RUNS: usize = 3;
/// As many as a search asks for.
const LIMIT: usize = 100;

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

fn key(number: usize) -> Key {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&(number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    key[8..].copy_from_slice(&(number as u64).to_be_bytes());
    Key(key)
}

/// Returns the `number`-th copy of a vector; later ones differ more.
fn copy(of: &[f32], number: usize, random: &mut Random) -> Vec<f32> {
    let noise = 0.02 + 0.005 * (number % 8) as f32;
    let some: Vec<f32> = of.iter().map(|value| value + noise * random.next()).collect();
    let length = some.iter().map(|value| value * value).sum::<f32>().sqrt();
    some.iter().map(|value| value / length).collect()
}

async fn time(
    store: &ExactStore,
    queries: &[Vec<f32>],
    among: Option<&[Key]>,
) -> Result<Latency, Box<dyn Error>> {
    let mut times = Vec::new();
    for query in queries {
        let mut best = Duration::MAX;
        for _ in 0..RUNS {
            let start = Instant::now();
            store.nearest(query, LIMIT, among).await?;
            best = best.min(start.elapsed());
        }
        times.push(best);
    }
    Ok(Latency::of(times))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("usage: vectors MODEL SETS SIZE ...");
    let (model, folder) = (next()?, next()?);
    let sizes: Vec<usize> = arguments.map(|size| size.parse()).collect::<Result<_, _>>()?;
    let model = BertEmbedder::load(Path::new(&model))?;
    let (mut base, mut queries) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(Path::new(&folder))? {
        let path = entry?.path();
        for tool in read_corpus(BufReader::new(File::open(path.join("corpus.jsonl"))?))? {
            let text: String = format!("{}: {}", tool.name, tool.description).chars().take(200).collect();
            base.extend(model.embed(&[&text])?);
        }
        for case in read_cases(BufReader::new(File::open(path.join("queries.jsonl"))?))?.iter().take(50) {
            queries.extend(model.embed(&[&case.query])?);
        }
    }
    println!("{} tools, {} queries, {LIMIT} nearest", base.len(), queries.len());
    for size in sizes {
        let mut random = Random(0x1234_5678_9ABC_DEF1);
        let all: Vec<(Key, Vec<f32>)> = (0..size)
            .map(|number| {
                let of = &base[number % base.len()];
                let copies = number / base.len();
                (key(number), if copies == 0 { of.clone() } else { copy(of, copies, &mut random) })
            })
            .collect();
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("tools.vectors");
        let start = Instant::now();
        ExactStore::open(&path, model.dimensions())?.put(all).await?;
        let (written, start) = (start.elapsed(), Instant::now());
        let store = ExactStore::open(&path, model.dimensions())?;
        let (opened, bytes) = (start.elapsed(), std::fs::metadata(&path)?.len());
        println!(
            "{size} vectors: file of {} MiB written in {written:.0?}, read in {opened:.0?}",
            bytes >> 20
        );
        let every = |step: usize| -> Vec<Key> { (0..size).step_by(step).map(key).collect() };
        for (label, among) in [
            ("all", None),
            ("50 of them", Some((0..50).map(key).collect())),
            ("a tenth", Some(every(10))),
            ("six tenths", Some((0..size * 6 / 10).map(key).collect())),
        ] {
            let took = time(&store, &queries, among.as_deref()).await?;
            println!("  {label:<10} p50 {:.3} p99 {:.3} ms", took.p50_ms, took.p99_ms);
        }
    }
    Ok(())
}
