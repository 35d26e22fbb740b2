use gatewright_search::{Index, Query, Relation};

use crate::support::{document, first, names, office, schema};

#[test]
fn a_name_in_any_spelling_is_first_with_a_score_of_one() {
    let index = Index::build(office());
    for text in ["mail:sendMessage", "mail_send_message", "MAIL SEND MESSAGE", "sendMessage", "send-message"]
    {
        let hit = index.search(&Query::new(text)).hits.remove(0);
        assert_eq!((hit.name.as_str(), hit.score), ("mail:sendMessage", 1.0), "{text}");
    }
}

#[test]
fn everyday_phrasings_find_their_tool() {
    let index = Index::build(office());
    for (text, wanted) in [
        ("will it rain in Paris tomorrow?", "weather:get_forecast"),
        ("remove the file old.txt", "files:delete_file"),
        ("write an email to Ada", "mail:sendMessage"),
        ("open a new ticket for this customer", "crm:create_ticket"),
        ("show me all customers", "crm:list_customers"),
        ("put an appointment in my calendar", "calendar:create_event"),
    ] {
        assert_eq!(first(&index, text).as_deref(), Some(wanted), "{text}");
    }
}

#[test]
fn a_misspelt_word_finds_what_was_meant() {
    let index = Index::build(office());
    assert_eq!(first(&index, "wether forcast").as_deref(), Some("weather:get_forecast"));
}

#[test]
fn accents_and_scripts_without_spaces_are_found() {
    let index = Index::build(office());
    assert_eq!(first(&index, "RESERVER creperie").as_deref(), Some("bistro:reserve"));
    assert_eq!(first(&index, "搜索结果").as_deref(), Some("i18n:translate"));
}

#[test]
fn a_request_for_two_things_returns_a_tool_for_each() {
    let index = Index::build(office());
    let mut found = names(&index, &Query::new("create a ticket and notify the owner").top_k(2));
    found.sort();
    assert_eq!(found, ["crm:create_ticket", "crm:notify_owner"]);
}

#[test]
fn words_written_together_and_apart_find_each_other() {
    let index = Index::build([document("a:list_webhooks", ""), document("a:web_search", "Search the web")]);
    assert_eq!(first(&index, "web hooks").as_deref(), Some("a:list_webhooks"));
}

#[test]
fn nothing_is_returned_for_what_no_tool_answers() {
    let index = Index::build(office());
    assert!(names(&index, &Query::new("knit a purple pullover")).is_empty());
}

#[test]
fn scores_are_shares_and_fall_from_hit_to_hit() {
    let index = Index::build(office());
    let hits = index.search(&Query::new("ticket for a customer").top_k(10)).hits;
    assert!(hits.len() > 1);
    assert!(hits.iter().all(|hit| hit.score > 0.0 && hit.score <= 1.0));
    assert!(hits.is_sorted_by(|a, b| a.score >= b.score));
}

#[test]
fn tools_with_the_same_text_come_in_order_of_their_names() {
    let index = Index::build(["z:ping", "a:ping", "m:ping"].map(|name| document(name, "Ping a host")));
    assert_eq!(names(&index, &Query::new("is the host alive, ping it")), ["a:ping", "m:ping", "z:ping"]);
}

#[test]
fn an_explanation_names_words_fields_and_what_is_missing() {
    let index = Index::build(office());
    let explained = index.explain(&Query::new("remove purple file").top_k(1)).remove(0);
    assert_eq!(explained.hit.name, "files:delete_file");
    assert_eq!(explained.missing, ["purple"]);
    let remove = &explained.terms[0];
    assert_eq!((remove.query.as_str(), remove.found.as_str()), ("remove", "delete"));
    assert_eq!((remove.stem.as_str(), remove.relation), ("delet", Relation::Synonym));
    assert_eq!(remove.fields, ["name", "description"]);
    assert!(explained.terms.iter().all(|term| term.share > 0.0));
}

#[test]
fn parameters_and_enum_values_are_searched() {
    let mut tool = document("a:run", "Runs");
    tool.input_schema = schema(serde_json::json!({"properties": {
        "paperSize": {"type": "string", "description": "sheet", "enum": ["letter", "tabloid"]}}}));
    let index = Index::build([tool, document("a:walk", "Walks"), document("a:swim", "Swims")]);
    for text in ["paper size", "tabloid", "sheet"] {
        assert_eq!(first(&index, text).as_deref(), Some("a:run"), "{text}");
    }
}
