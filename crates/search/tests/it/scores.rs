//! Meaning of scores: the share of a request that a tool answers, and the strength of the evidence.

use std::{fs::File, io::BufReader, path::PathBuf};

use gatewright_search::{
    DEFAULT_MIN_BEST, Index, Query,
    eval::{Searcher as _, area_under_roc, read_cases, read_corpus},
};
use proptest::prelude::*;

use crate::support::office;

fn score(index: &Index, text: &str, name: &str) -> f32 {
    let hits = index.search(&Query::new(text).top_k(100).min_score(0.0)).hits;
    hits.iter().find(|hit| hit.name == name).map_or(0.0, |hit| hit.score)
}

#[test]
fn a_request_that_is_answered_less_scores_less() {
    let index = Index::build(office());
    let forecast = |text: &str| score(&index, text, "weather:get_forecast");
    let whole = forecast("weather forecast");
    assert!((0.3..0.7).contains(&whole), "{whole}");
    // A word that no tool has was asked for all the same; a name says where, not what.
    assert!(forecast("weather forecast in sacramento") < whole);
    assert_eq!(forecast("weather forecast in Sacramento"), whole);
    let delete = |text: &str| score(&index, text, "files:delete_file");
    assert!(delete("delete the purple elephant file") < delete("delete the purple file"));
}

#[test]
fn less_evidence_scores_less() {
    let index = Index::build(office());
    let forecast = |text: &str| score(&index, text, "weather:get_forecast");
    // One telling word may be there by chance.
    assert!(forecast("weather") < forecast("weather forecast"));
    // What was meant is likely, not sure.
    assert!(forecast("wether forcast") < 0.6 * forecast("weather forecast"));
    let delete = |text: &str| score(&index, text, "files:delete_file");
    assert!(delete("remove the purple file") < delete("delete the purple file"), "another word for the same");
    // One word of two, which other tools have as well.
    assert!(score(&index, "delete file", "files:read_file") < 0.5 * delete("delete the purple file"));
}

#[test]
fn each_part_of_a_request_is_answered_by_its_tool() {
    let index = Index::build(office());
    let text = "delete a file and list customers";
    let (delete, list) =
        (score(&index, text, "files:delete_file"), score(&index, text, "crm:list_customers"));
    assert!(delete > 0.3 && list > 0.3, "{delete} {list}");
    assert!(score(&index, text, "files:read_file") < 0.5 * delete);
}

proptest! {
    #[test]
    fn scores_are_above_0_and_up_to_1_and_fall_and_only_a_name_has_all_of_it(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "delete", "remove", "file", "files", "weather", "forcast", "and", "the", "Paris", "customer", "ticket", "12",
                "owner,", "send.", "message", "calendar", "\"free\"", "somebody", "zebra", "搜索", "table", "when", "contents",
            ]),
            0..14,
        ),
    ) {
        let index = Index::build(office());
        let text = words.join(" ");
        let explained = index.explain(&Query::new(&text).top_k(100).min_score(0.0));
        prop_assert!(explained.is_sorted_by(|a, b| a.hit.score >= b.hit.score), "{text}");
        for one in explained {
            prop_assert!(one.hit.score > 0.0 && one.hit.score <= 1.0, "{text}: {one:?}");
            prop_assert_eq!(one.hit.score == 1.0, one.exact_name, "{}: {:?}", text, one);
        }
    }
}

/// Of the sets that ship with the sources, as `docs/benchmarks/search.md` has them. They are harder than the development sets,
/// on which the area is 0.978 and 0.979.
#[test]
fn the_best_score_tells_requests_with_an_answer_from_those_without() {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data");
    let open = |name: &str| BufReader::new(File::open(data.join(name)).unwrap());
    for (set, texts, area, empty, lost) in [
        ("demo", "unanswerable.jsonl", 0.975, 0.84, 1),
        ("demo", "unanswerable_long.jsonl", 0.965, 0.69, 1),
        ("servers", "unanswerable.jsonl", 0.91, 0.72, 4),
        ("servers", "unanswerable_long.jsonl", 0.885, 0.57, 4),
    ] {
        let corpus = read_corpus(open(&format!("paraphrases/{set}/corpus.jsonl"))).unwrap();
        let index = Index::build(corpus);
        let best = |name: &str| -> Vec<f32> {
            read_cases(open(name)).unwrap().iter().map(|case| index.best(&case.query)).collect()
        };
        let (with, without) = (best(&format!("paraphrases/{set}/queries.jsonl")), best(texts));
        let measured = area_under_roc(&with, &without).unwrap();
        assert!(measured >= area, "{set}, {texts}: {measured}");
        let below = |scores: &[f32]| scores.iter().filter(|score| **score < DEFAULT_MIN_BEST).count();
        let share = below(&without) as f64 / without.len() as f64;
        assert!(share >= empty, "{set}, {texts}: {share} left empty");
        assert!(below(&with) <= lost, "{set}: {} lost", below(&with));
    }
}
