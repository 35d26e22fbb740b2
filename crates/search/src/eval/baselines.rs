//! Ordinary rankings to compare with. Nothing but measurements uses them.

use std::collections::HashMap;

use super::Searcher;
use crate::{Document, fields};

/// BM25 (k1 1.2, b 0.75) over all text of a document as one bag of lower-case words.
#[derive(Debug)]
pub struct Bm25(Bags);

/// Cosine of TF-IDF vectors (tf = count / length, idf = ln(N / df) + 1) over the same words, where name and
/// description are read as they are: the usual default of small tool indexes.
#[derive(Debug)]
pub struct TfIdfCosine(Bags);

#[derive(Debug, Default)]
struct Bags {
    names: Vec<String>,
    lengths: Vec<f32>,
    postings: HashMap<String, Vec<(u32, f32)>>,
    norms: Vec<f32>,
}

fn split(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1).map(str::to_lowercase)
}

impl Bags {
    fn new(documents: &[Document], schema: bool) -> Self {
        let mut bags = Self::default();
        for document in documents {
            let mut counts: HashMap<String, f32> = HashMap::new();
            let mut length = 0.0;
            fields::texts(document, &mut |field, text| {
                if schema || matches!(field, fields::Field::Name | fields::Field::Description) {
                    for word in split(text) {
                        *counts.entry(word).or_default() += 1.0;
                        length += 1.0;
                    }
                }
            });
            let number = bags.names.len() as u32;
            counts.into_iter().for_each(|(word, count)| {
                bags.postings.entry(word).or_default().push((number, count));
            });
            bags.names.push(document.name.clone());
            bags.lengths.push(length);
        }
        bags.norms = vec![0.0; bags.names.len()];
        for list in bags.postings.values() {
            let idf = (bags.names.len() as f32 / list.len() as f32).ln() + 1.0;
            for (document, count) in list {
                let at = *document as usize;
                bags.norms[at] += (count / bags.lengths[at] * idf).powi(2);
            }
        }
        bags.norms.iter_mut().for_each(|norm| *norm = norm.sqrt());
        bags
    }

    fn top(&self, sums: HashMap<u32, f32>, top_k: usize) -> Vec<(String, f32)> {
        let mut all: Vec<(u32, f32)> = sums.into_iter().collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all.into_iter().take(top_k).map(|(at, score)| (self.names[at as usize].clone(), score)).collect()
    }
}

impl Bm25 {
    /// Indexes the documents.
    #[must_use]
    pub fn new(documents: &[Document]) -> Self {
        Self(Bags::new(documents, true))
    }
}

impl TfIdfCosine {
    /// Indexes the documents.
    #[must_use]
    pub fn new(documents: &[Document]) -> Self {
        Self(Bags::new(documents, true))
    }
}

impl Searcher for Bm25 {
    fn find(&self, text: &str, top_k: usize) -> Vec<(String, f32)> {
        let bags = &self.0;
        let all = bags.names.len() as f32;
        let mean = bags.lengths.iter().sum::<f32>() / all.max(1.0);
        let mut sums: HashMap<u32, f32> = HashMap::new();
        for word in split(text) {
            let Some(list) = bags.postings.get(&word) else { continue };
            let some = list.len() as f32;
            let idf = ((all - some + 0.5) / (some + 0.5)).ln_1p();
            for (document, count) in list {
                let norm = 0.25 + 0.75 * bags.lengths[*document as usize] / mean;
                *sums.entry(*document).or_default() += idf * count * 2.2 / (count + 1.2 * norm);
            }
        }
        bags.top(sums, top_k)
    }
}

impl Searcher for TfIdfCosine {
    fn find(&self, text: &str, top_k: usize) -> Vec<(String, f32)> {
        let bags = &self.0;
        let mut words: HashMap<String, f32> = HashMap::new();
        split(text).for_each(|word| *words.entry(word).or_default() += 1.0);
        let mut sums: HashMap<u32, f32> = HashMap::new();
        let mut own = 0.0;
        for (word, count) in &words {
            let list = bags.postings.get(word);
            let some = list.map_or(1.0, |list| list.len() as f32);
            let idf = (bags.names.len() as f32 / some).ln() + 1.0;
            own += (count * idf).powi(2);
            for (document, times) in list.into_iter().flatten() {
                let at = *document as usize;
                *sums.entry(*document).or_default() += count * idf * (times / bags.lengths[at] * idf);
            }
        }
        let own = own.sqrt().max(f32::MIN_POSITIVE);
        sums.iter_mut().for_each(|(at, sum)| *sum /= own * bags.norms[*at as usize].max(f32::MIN_POSITIVE));
        bags.top(sums, top_k)
    }
}
