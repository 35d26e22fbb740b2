//! Embeds the lines of a file: `embed_texts MODEL TEXTS VECTORS`. Writes the vectors as 32-bit fractions, one after the other,
//! for `scripts/train_meaning.py`.
use std::{error::Error, fs, io::Write as _, path::Path};

use gatewright_embedding::{BertEmbedder, Embedder as _};

/// Texts between two writes.
const BATCH: usize = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("usage: embed_texts MODEL TEXTS VECTORS");
    let model = BertEmbedder::load(Path::new(&next()?))?;
    let text = fs::read_to_string(next()?)?;
    let mut out = fs::File::create(next()?)?;
    let lines: Vec<&str> = text.lines().collect();
    let threads = std::thread::available_parallelism()?.get();
    for batch in lines.chunks(BATCH) {
        let vectors = std::thread::scope(|scope| {
            let parts: Vec<_> = batch
                .chunks(batch.len().div_ceil(threads))
                .map(|part| scope.spawn(|| model.embed(part)))
                .collect();
            parts
                .into_iter()
                .map(|part| part.join().map_err(|_| "the model failed")?.map_err(|_| "the model failed"))
                .collect::<Result<Vec<_>, &str>>()
        })?;
        let bytes: Vec<u8> = vectors.concat().concat().iter().flat_map(|value| value.to_le_bytes()).collect();
        out.write_all(&bytes)?;
    }
    Ok(())
}
