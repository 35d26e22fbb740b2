use gatewright_search::{Change, Index, Query, Visible};

use crate::support::{document, names, office};

#[test]
fn only_the_apps_asked_for_are_searched_but_all_visible_ones_are_counted() {
    let index = Index::build(office());
    let apps = ["calendar".to_owned(), "nowhere".to_owned()];
    let result = index.search(&Query::new("create").app_ids(Some(&apps)));
    assert_eq!(result.hits.len(), 1);
    assert_eq!(result.hits[0].name, "calendar:create_event");
    assert_eq!(result.total_indexed, office().len());
    assert!(names(&index, &Query::new("create").app_ids(Some(&[]))).is_empty());
}

#[test]
fn what_a_caller_may_not_see_is_neither_found_nor_counted_even_by_its_exact_name() {
    let index = Index::build(office());
    let sees = |name: &str| !name.starts_with("crm:");
    let set = index.visible_set(sees);
    for visible in [Visible::By(&sees), Visible::Set(&set)] {
        let result =
            index.search(&Query::new("crm:create_ticket").top_k(100).min_score(0.0).visible(visible));
        assert!(result.hits.iter().all(|hit| hit.app_id != "crm"), "{visible:?}");
        assert_eq!(result.total_indexed, office().len() - 4);
    }
}

#[test]
fn a_visible_set_shows_nothing_that_came_after_it() {
    let index = Index::build(office());
    let set = index.visible_set(|_| true);
    let later = index.updated([Change::Upsert(document("new:zebra", "Zebra"))]);
    assert!(names(&later, &Query::new("zebra").visible(Visible::Set(&set))).is_empty());
}

#[test]
fn top_k_is_kept_between_one_and_a_hundred() {
    let index = Index::build((0..150).map(|n| document(&format!("a:tool_{n}"), "Same words here")));
    assert_eq!(names(&index, &Query::new("same words").top_k(0)).len(), 1);
    assert_eq!(names(&index, &Query::new("same words").top_k(1000)).len(), 100);
}

#[test]
fn a_visibility_check_may_itself_search_or_panic_and_later_answers_are_unharmed() {
    let index = Index::build(office());
    let wanted = index.search(&Query::new("create ticket"));
    let nested = |name: &str| !index.search(&Query::new(name)).hits.is_empty();
    assert_eq!(index.search(&Query::new("create ticket").visible(Visible::By(&nested))), wanted);
    let panics = |_: &str| -> bool { panic!("on purpose") };
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        index.search(&Query::new("create ticket").visible(Visible::By(&panics)))
    }));
    assert!(caught.is_err());
    assert_eq!(index.search(&Query::new("create ticket")), wanted);
}

#[test]
fn a_visible_tool_is_found_by_meaning_behind_thousands_of_nearer_ones_that_are_not() {
    let hidden =
        (0..3_000).map(|n| document(&format!("hidden:list_puppies_{n}"), "List the puppies of a kennel"));
    let index = Index::build(
        hidden.chain([document("pets:list_dogs", "List dogs"), document("stock:quote", "Price of a share")]),
    );
    let sees = |name: &str| !name.starts_with("hidden:");
    let query = Query::new("puppy").visible(Visible::By(&sees));
    assert_eq!(names(&index, &query).first().map(String::as_str), Some("pets:list_dogs"));
}
