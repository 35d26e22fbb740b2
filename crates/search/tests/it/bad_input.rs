use std::sync::Arc;

use gatewright_search::{Document, Index, Query};
use serde_json::json;

use crate::support::{first, names, office};

#[test]
fn queries_that_ask_nothing_find_nothing() {
    let index = Index::build(office());
    for text in ["", "   ", "\n\t", "the of and", "?!.,;", "\u{0}\u{1}\u{2}", "\u{fffd}\u{fffd}", "🙂"] {
        assert!(names(&index, &Query::new(text)).is_empty(), "{text:?}");
    }
}

#[test]
fn a_very_long_query_is_answered_by_its_beginning() {
    let index = Index::build(office());
    let long = format!("weather forecast {}", "blah blah, and then delete x. ".repeat(4000));
    assert!(long.len() > 100_000);
    assert!(names(&index, &Query::new(&long)).contains(&"weather:get_forecast".to_owned()));
    let one_word = "x".repeat(100_000);
    assert!(names(&index, &Query::new(&one_word)).is_empty());
    let accents = "é".repeat(50_000);
    assert!(names(&index, &Query::new(&accents)).is_empty());
    let pairs = "使用必应".repeat(20_000);
    assert_eq!(first(&index, &pairs).as_deref(), Some("i18n:translate"));
}

#[test]
fn a_single_character_finds_the_tool_of_that_name() {
    let bare = |name: &str| Document {
        name: name.to_owned(),
        app_id: String::new(),
        description: String::new(),
        input_schema: Arc::default(),
    };
    let index = Index::build([bare("x"), bare("y"), bare("a")]);
    assert_eq!(first(&index, "x").as_deref(), Some("x"));
    assert_eq!(first(&index, "A").as_deref(), Some("a"));
}

#[test]
fn odd_schemas_and_empty_texts_are_indexed_all_the_same() {
    let deep = (0..500).fold(json!({"description": "bottom"}), |inner, _| json!({"items": inner}));
    let odd = [json!(null), json!(3), json!([]), json!({"properties": 7}), json!({"enum": "x"}), deep];
    let index = Index::build(odd.into_iter().enumerate().map(|(number, schema)| -> Document {
        serde_json::from_value(json!({"name": format!("odd{number}"), "inputSchema": schema})).unwrap()
    }));
    assert_eq!(index.len(), 6);
    assert_eq!(first(&index, "odd3").as_deref(), Some("odd3"));
    assert_eq!(Index::default().search(&Query::new("x")).total_indexed, 0);
}
