use std::collections::BTreeMap;

use gatewright_search::{Change, Document, Index, Query};
use proptest::{collection::vec, prelude::*, sample::select};

use crate::support::{document, first, office};

const WORDS: [&str; 8] = ["ticket", "file", "read", "delete", "weather", "calendar", "customer", "message"];

fn any_document() -> impl Strategy<Value = Document> {
    (select(&["a", "b", "c"][..]), 0..12_u8, vec(select(&WORDS[..]), 0..5)).prop_map(
        |(app, number, words)| {
            document(&format!("{app}:{}_{number}", WORDS[usize::from(number) % 8]), &words.join(" "))
        },
    )
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => any_document().prop_map(Change::Upsert),
        2 => any_document().prop_map(|document| Change::Remove(document.name)),
        1 => (select(&["a", "b", "c"][..]), vec(any_document(), 0..4)).prop_map(|(app, documents)| {
            let documents = documents.into_iter().filter(|document| document.app_id == app).collect();
            Change::ReplaceApp { app_id: app.to_owned(), documents }
        }),
    ]
}

/// Computes the documents left after the changes, plainly.
fn left(changes: &[Change]) -> BTreeMap<String, Document> {
    let mut all = BTreeMap::new();
    for change in changes {
        match change.clone() {
            Change::Upsert(document) => {
                all.insert(document.name.clone(), document);
            }
            Change::Remove(name) => {
                all.remove(&name);
            }
            Change::ReplaceApp { app_id, documents } => {
                all.retain(|_, document: &mut Document| document.app_id != app_id);
                all.extend(documents.into_iter().map(|document| (document.name.clone(), document)));
            }
        }
    }
    all
}

proptest! {
    #[test]
    fn updating_step_by_step_is_the_same_as_building_anew(
        changes in vec(any_change(), 0..40), text in vec(select(&WORDS[..]), 1..4)
    ) {
        let text = text.join(" ");
        let query = Query::new(&text).top_k(100).min_score(0.0);
        let stepwise = changes.iter().fold(Index::default(), |index, change| index.updated([change.clone()]));
        let at_once = Index::default().updated(changes.clone());
        let anew = Index::build(left(&changes).into_values());
        prop_assert_eq!(stepwise.len(), anew.len());
        prop_assert_eq!(stepwise.search(&query), anew.search(&query));
        prop_assert_eq!(at_once.search(&query), anew.search(&query));
    }
}

#[test]
fn a_reader_keeps_the_snapshot_it_has() {
    let before = Index::build(office());
    let after = before.updated([Change::ReplaceApp { app_id: "crm".to_owned(), documents: Vec::new() }]);
    assert_eq!(first(&before, "create_ticket").as_deref(), Some("crm:create_ticket"));
    assert_ne!(first(&after, "create_ticket").as_deref(), Some("crm:create_ticket"));
    assert_eq!(after.len(), before.len() - 4);
}

#[test]
fn of_two_documents_with_one_name_the_later_counts() {
    let index = Index::build([document("a:x", "apples"), document("a:x", "oranges")]);
    assert_eq!(index.len(), 1);
    assert_eq!(first(&index, "oranges").as_deref(), Some("a:x"));
    assert_eq!(first(&index, "apples"), None);
}

#[test]
fn a_tool_that_moves_to_another_app_is_there_once() {
    let mut moved = document("a:x", "apples");
    let index = Index::build([moved.clone()]);
    moved.app_id = "b".to_owned();
    let index = index.updated([Change::Upsert(moved)]);
    let hits = index.search(&Query::new("apples")).hits;
    assert_eq!(hits.len(), 1);
    assert_eq!(hits[0].app_id, "b");
}
