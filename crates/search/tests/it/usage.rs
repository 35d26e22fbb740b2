//! Calls that followed searches, and what they change in later ones.

use std::time::{Duration, SystemTime};

use gatewright_search::{Change, Index, MOST_PAIRS, Query, Usage, UsedDocument, Visible};

use crate::support::{document, names, office};

fn day(day: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs((20_500 + day) * 24 * 3_600)
}

/// The calls of `tool` after so many searches for `text`.
fn calls(index: &Index, text: &str, tool: &str, times: usize, now: SystemTime) -> Usage {
    let mut usage = Usage::default();
    for _ in 0..times {
        usage.count(index.usage_terms(text), UsedDocument::of(tool), now);
    }
    usage
}

/// The office, found by words alone.
fn by_words() -> Index {
    Index::by_words().updated(office().into_iter().map(Change::Upsert))
}

fn used<'a>(text: &'a str, usage: &'a Usage) -> Query<'a> {
    Query::new(text).usage(usage, day(0))
}

#[test]
fn a_tool_that_was_called_after_searches_in_words_of_its_users_is_found_by_them() {
    let index = by_words();
    let text = "kundenliste anzeigen";
    assert!(names(&index, &Query::new(text)).is_empty());
    let usage = calls(&index, text, "crm:list_customers", 2, day(0));
    assert_eq!(names(&index, &used(text, &usage)), ["crm:list_customers"]);
    assert_eq!(names(&index, &used("kundenliste", &usage)), ["crm:list_customers"], "also by a part of them");
    assert!(names(&index, &used("etwas anderes", &usage)).is_empty());
    let later = index.updated([
        Change::Remove("i18n:translate".to_owned()),
        Change::Upsert(document("new:zebra", "Zebra")),
    ]);
    assert_eq!(names(&later, &used(text, &usage)), ["crm:list_customers"], "after an update too");
}

#[test]
fn of_two_near_ties_the_one_that_is_called_comes_first() {
    let index = Index::build(office());
    let text = "support ticket";
    let before = names(&index, &Query::new(text));
    let usage = calls(&index, text, &before[1], 2, day(0));
    let after = names(&index, &used(text, &usage));
    assert_eq!(after[..2], [before[1].clone(), before[0].clone()]);
}

#[test]
fn no_number_of_calls_lifts_a_tool_over_one_that_is_clearly_better_by_words() {
    let index = Index::build(office());
    for text in ["list customers", "weather forecast", "delete a file", "search the mailbox"] {
        let before = index.search(&Query::new(text)).hits;
        let usage = calls(&index, text, "bistro:reserve", 10_000, day(0));
        let after = index.search(&used(text, &usage)).hits;
        assert_eq!(after[0].name, before[0].name, "{text}");
        let lifted = after.iter().find(|hit| hit.name == "bistro:reserve").unwrap();
        assert!(lifted.score <= 0.3, "{text}: {}", lifted.score);
        assert!(after.is_sorted_by(|a, b| a.score >= b.score));
    }
    let usage = calls(&index, "crm:create_ticket", "bistro:reserve", 10_000, day(0));
    assert_eq!(names(&index, &used("crm:create_ticket", &usage))[0], "crm:create_ticket", "an exact name");
}

#[test]
fn calls_of_tools_that_a_caller_may_not_see_change_nothing_for_it() {
    let index = Index::build(office());
    let sees = |name: &str| !name.starts_with("crm:");
    for text in ["kundenliste anzeigen", "search customers", "list messages"] {
        let mut usage = calls(&index, text, "mail:search_messages", 2, day(0));
        let query = Query::new(text).visible(Visible::By(&sees));
        let expected = index.search(&query.usage(&usage, day(0)));
        usage.add(&calls(&index, text, "crm:list_customers", 100, day(0)), day(0));
        assert_eq!(index.search(&query.usage(&usage, day(0))), expected, "{text}");
    }
    let apps = ["mail".to_owned()];
    let usage = calls(&index, "kundenliste", "crm:list_customers", 9, day(0));
    assert!(names(&index, &used("kundenliste", &usage).app_ids(Some(&apps))).is_empty());
}

#[test]
fn a_count_halves_in_four_weeks_and_new_use_outweighs_old() {
    let index = Index::build(office());
    let text = "kundenliste";
    let mut usage = calls(&index, text, "crm:list_customers", 8, day(0));
    let share = |usage: &Usage, tool: &str, now| {
        let hits = index.explain(&Query::new(text).usage(usage, now).top_k(100).min_score(0.0));
        hits.iter().find(|hit| hit.hit.name == tool).map_or(0.0, |hit| hit.used)
    };
    let old = |usage: &Usage, now| share(usage, "crm:list_customers", now);
    let close = |a: f32, b: f32| assert!((a - b).abs() < 1e-4, "{a} {b}");
    close(old(&usage, day(0)), 8.0 / 11.0);
    close(old(&usage, day(28)), 4.0 / 7.0);
    close(old(&usage, day(280)), 8.0 / 1024.0 / (8.0 / 1024.0 + 3.0));
    usage.add(&calls(&index, text, "crm:create_ticket", 3, day(84)), day(84));
    close(old(&usage, day(84)), 1.0 / 7.0);
    close(share(&usage, "crm:create_ticket", day(84)), 3.0 / 7.0);
}

#[test]
fn the_table_is_bounded_and_its_least_used_pairs_leave() {
    let index = Index::build(office());
    let often = calls(&index, "kundenliste", "crm:list_customers", 5, day(0));
    let mut usage = often.clone();
    let terms = index.usage_terms("one two three four five six seven eight nine ten eleven twelve");
    for n in 0..MOST_PAIRS {
        usage.count(terms.iter().take(2).copied(), UsedDocument::of(&n.to_string()), day(1));
    }
    assert!((MOST_PAIRS * 9 / 10..=MOST_PAIRS).contains(&usage.len()), "{}", usage.len());
    assert_eq!(names(&index, &used("kundenliste", &usage)), ["crm:list_customers"]);
    usage.trim(1);
    assert_eq!(usage, often);
}

#[test]
fn counts_of_instances_add_up_whatever_their_order_and_are_the_same_as_text() {
    let index = Index::build(office());
    let one = calls(&index, "support ticket", "crm:close_ticket", 2, day(0));
    let two = calls(&index, "open a ticket", "crm:create_ticket", 4, day(3));
    let (mut a, mut b) = (one.clone(), two.clone());
    a.add(&two, day(3));
    b.add(&one, day(3));
    assert_eq!(a, b);
    let text = serde_json::to_string(&a).unwrap();
    assert_eq!(serde_json::from_str::<Usage>(&text).unwrap(), a);
    assert!(!text.contains("ticket"));
    let (mut first, rest) = a.clone().split(3, 16);
    first.add(&rest, day(3));
    assert_eq!(first, a);
}

#[test]
fn counts_that_no_instance_could_have_made_are_bounded() {
    let index = Index::build(office());
    let usage = calls(&index, "kundenliste", "crm:list_customers", 1, day(0));
    let text = serde_json::to_string(&usage).unwrap();
    let (start, end) = (text.rfind(':').unwrap() + 1, text.len() - 2);
    for count in ["-5.0", "1e300", "0.0"] {
        let record = format!("{}{count}{}", &text[..start], &text[end..]);
        let mut read = Usage::default();
        read.add(&serde_json::from_str(&record).unwrap(), day(0));
        let more = calls(&index, "kundenliste", "crm:create_ticket", 1_000, day(0));
        read.add(&more, day(0));
        let found = names(&index, &used("kundenliste", &read));
        assert!(found.contains(&"crm:create_ticket".to_owned()), "{count}: {found:?}");
    }
}

#[test]
fn terms_of_a_search_are_its_words_without_values_names_and_the_commonest() {
    let index = Index::build(office());
    let terms = |text: &str| index.usage_terms(text);
    assert_eq!(terms("email Zebulon the invoice 4711 at /srv/x.pdf"), terms("email the invoice"));
    assert_eq!(terms("invoices"), terms("invoice"));
    assert!(terms("").is_empty() && terms("12 34").is_empty());
    let long: Vec<String> = (0..60).map(|n| format!("word{}", char::from(b'a' + n % 26))).collect();
    assert_eq!(terms(&long.join(" ")).len(), 12);
}
