//! Two segments to one, leaving out what was removed; no text is read again.

use std::{cmp::Ordering, sync::Arc};

use crate::{
    builder::push_document,
    index::Part,
    segment::{Dictionary, Segment},
    trigrams::Trigrams,
};

const GONE: u32 = u32::MAX;

/// The live documents of both parts as one segment.
pub(crate) fn merge(a: &Part, b: &Part) -> Segment {
    let mut segment = Segment::default();
    let (documents, new_a, new_b) = interleave(a, b);
    let (dictionary, mut terms_a, mut terms_b) = (Vec::new(), Vec::new(), Vec::new());
    let mut dictionary: Vec<&str> = dictionary;

    let (left, right) = (&a.segment, &b.segment);
    let (mut i, mut j) = (0, 0);
    while i < left.dictionary.len() || j < right.dictionary.len() {
        let order = match (i < left.dictionary.len(), j < right.dictionary.len()) {
            (true, true) => left.dictionary.term(i).cmp(right.dictionary.term(j)),
            (true, false) => Ordering::Less,
            _ => Ordering::Greater,
        };
        let start = segment.posting_documents.len();
        segment.starts.push(start as u32);
        let number = dictionary.len() as u32;
        let mut sources: [Option<(&Segment, usize, &[u32])>; 2] = [None, None];
        if order != Ordering::Greater {
            sources[0] = Some((left, i, &new_a));
        }
        if order != Ordering::Less {
            sources[1] = Some((right, j, &new_b));
        }
        append_postings(&mut segment, sources);
        let kept = segment.posting_documents.len() > start;
        if kept {
            dictionary.push(if order == Ordering::Greater {
                right.dictionary.term(j)
            } else {
                left.dictionary.term(i)
            });
        } else {
            segment.starts.pop();
        }
        if order != Ordering::Greater {
            terms_a.push(if kept { number } else { GONE });
            i += 1;
        }
        if order != Ordering::Less {
            terms_b.push(if kept { number } else { GONE });
            j += 1;
        }
    }
    segment.starts.push(segment.posting_documents.len() as u32);
    segment.dictionary = Dictionary::new(dictionary.into_iter());
    segment.trigrams = Trigrams::new(&segment.dictionary);

    for (from_b, document) in documents {
        let (source, terms) = if from_b { (right, &terms_b) } else { (left, &terms_a) };
        segment.forward_starts.push(segment.forward.len() as u32);
        segment.forward.extend(source.terms_of(document).iter().map(|term| terms[*term as usize]));
        segment.vectors.push(source.vectors.of(document));
        segment.name_terms.push(source.name_terms[document as usize]);
        let app = Arc::clone(&source.app_of(document).id);
        push_document(&mut segment, Arc::clone(&source.documents[document as usize]), app);
    }
    segment.forward_starts.push(segment.forward.len() as u32);
    segment.exact.sort_unstable();
    segment.read_app_names();
    segment
}

/// The live documents of both in order, as (from `b`?, number there), and the new number of each old one.
fn interleave(a: &Part, b: &Part) -> (Vec<(bool, u32)>, Vec<u32>, Vec<u32>) {
    let key = |part: &Part, document: u32| -> (Arc<str>, Arc<crate::segment::Stored>) {
        (
            Arc::clone(&part.segment.app_of(document).id),
            Arc::clone(&part.segment.documents[document as usize]),
        )
    };
    let mut live_a = a.live_documents().peekable();
    let mut live_b = b.live_documents().peekable();
    let mut order = Vec::with_capacity(a.live() + b.live());
    let mut new_a = vec![GONE; a.segment.documents.len()];
    let mut new_b = vec![GONE; b.segment.documents.len()];
    loop {
        let from_b = match (live_a.peek(), live_b.peek()) {
            (None, None) => break,
            (Some(_), None) => false,
            (None, Some(_)) => true,
            (Some(x), Some(y)) => {
                let ((app_a, doc_a), (app_b, doc_b)) = (key(a, *x), key(b, *y));
                (app_b, &doc_b.name) < (app_a, &doc_a.name)
            }
        };
        let number = order.len() as u32;
        if from_b {
            let document = live_b.next().expect("peeked");
            new_b[document as usize] = number;
            order.push((true, document));
        } else {
            let document = live_a.next().expect("peeked");
            new_a[document as usize] = number;
            order.push((false, document));
        }
    }
    (order, new_a, new_b)
}

fn append_postings(segment: &mut Segment, sources: [Option<(&Segment, usize, &[u32])>; 2]) {
    let mut columns = sources.map(|source| {
        source
            .into_iter()
            .flat_map(|(from, term, new)| {
                let postings = from.postings(term as u32);
                (0..postings.documents.len()).filter_map(move |at| {
                    let document = new[postings.documents[at] as usize];
                    (document != GONE).then(|| (document, postings.impacts[at], postings.masks[at]))
                })
            })
            .peekable()
    });
    let [left, right] = &mut columns;
    loop {
        let take_right = match (left.peek(), right.peek()) {
            (None, None) => break,
            (Some(_), None) => false,
            (None, Some(_)) => true,
            (Some(x), Some(y)) => y.0 < x.0,
        };
        let (document, impact, mask) = if take_right { right.next() } else { left.next() }.expect("peeked");
        segment.posting_documents.push(document);
        segment.posting_impacts.push(impact);
        segment.posting_masks.push(mask);
    }
}
