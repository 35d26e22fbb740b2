//! Compares the graph with comparing all: `vectors MODEL SETS SIZE ...`. Vectors are those of the tools of a folder of
//! sets, copied with noise until there are SIZE of them; queries are 50 of each set's.
use std::{
    error::Error,
    fs::File,
    io::BufReader,
    path::Path,
    time::{Duration, Instant},
};

use gatewright_embedding::{BertEmbedder, Embedder, Key, LargeStore, MemoryStore, VectorStore};
use gatewright_search::eval::{Latency, read_cases, read_corpus};

/// How often each query is run; the best time counts.
const RUNS: usize = 3;
/// As many as a search asks for.
const LIMIT: usize = 100;

/// Resident memory of this process, in MiB.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
        line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
    };
    of("RssAnon:")
}

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

/// Every `number`-th copy is a little further from what it is made of.
fn copy(of: &[f32], number: usize, random: &mut Random) -> Vec<f32> {
    let noise = 0.02 + 0.005 * (number % 8) as f32;
    let some: Vec<f32> = of.iter().map(|value| value + noise * random.next()).collect();
    let length = some.iter().map(|value| value * value).sum::<f32>().sqrt();
    some.iter().map(|value| value / length).collect()
}

type Answer = Vec<(Key, f32)>;
type Answers = Vec<Answer>;

async fn ask(
    store: &dyn VectorStore,
    queries: &[Vec<f32>],
    among: Option<&[Key]>,
) -> Result<(Latency, Answers), Box<dyn Error>> {
    let (mut times, mut answers) = (Vec::new(), Vec::new());
    for query in queries {
        let mut best = Duration::MAX;
        let mut answer = Vec::new();
        for _ in 0..RUNS {
            let start = Instant::now();
            answer = store.nearest(query, LIMIT, among).await?;
            best = best.min(start.elapsed());
        }
        times.push(best);
        answers.push(answer);
    }
    Ok((Latency::of(times), answers))
}

/// Share of the first `k` of `wanted` that are among the first `k` of `found`.
fn recall(found: &Answers, wanted: &Answers, k: usize) -> f64 {
    let one = |(found, wanted): (&Answer, &Answer)| {
        let wanted = &wanted[..k.min(wanted.len())];
        let same = found.iter().take(k).filter(|(key, _)| wanted.iter().any(|(other, _)| other == key));
        same.count() as f64 / wanted.len().max(1) as f64
    };
    found.iter().zip(wanted).map(one).sum::<f64>() / found.len().max(1) as f64
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
        let exact = MemoryStore::new(model.dimensions());
        exact.put(all.clone()).await?;
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("tools.vectors");
        let store = LargeStore::open(&path, model.dimensions(), 0)?;
        let start = Instant::now();
        store.put(all).await?;
        store.settled().await;
        println!("{size} vectors: graph built in {:.1} s", start.elapsed().as_secs_f64());
        drop(store);
        let before = resident();
        let start = Instant::now();
        let store = LargeStore::open(&path, model.dimensions(), 0)?;
        let file = std::fs::metadata(folder.path().join("tools.vectors.usearch"))?.len();
        println!(
            "  restart {:.0} ms, {:.0} MiB of memory besides the file of {:.0} MiB, {} in the graph",
            start.elapsed().as_secs_f64() * 1000.0,
            resident() - before,
            file as f64 / 1024.0 / 1024.0,
            store.in_graph()
        );
        let every = |step: usize| -> Vec<Key> { (0..size).step_by(step).map(key).collect() };
        let most: Vec<Key> = (0..size * 6 / 10).map(key).collect();
        for (label, among) in [
            ("all".to_owned(), None),
            ("50 of them".to_owned(), Some((0..50).map(key).collect())),
            ("a tenth".to_owned(), Some(every(10))),
            ("six tenths".to_owned(), Some(most)),
        ] {
            let (slow, wanted) = ask(&exact, &queries, among.as_deref()).await?;
            let (fast, found) = ask(&store, &queries, among.as_deref()).await?;
            println!(
                "  {label:<10} compared p50 {:.3} p99 {:.3} ms; graph p50 {:.3} p99 {:.3} ms, Recall@10 {:.4} Recall@100 {:.4}",
                slow.p50_ms,
                slow.p99_ms,
                fast.p50_ms,
                fast.p99_ms,
                recall(&found, &wanted, 10),
                recall(&found, &wanted, 100),
            );
        }
    }
    Ok(())
}
