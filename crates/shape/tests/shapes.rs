//! Shapes of ordinary and of hostile values.

use gatewright_shape::{DEEPEST, ENOUGH_WITNESSES, MOST_FIELDS, MOST_NODES, Shape, Witness};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const ADA: u64 = 1;
const BOB: u64 = 2;

fn learned<'v>(values: impl IntoIterator<Item = (&'v Value, u64)>) -> Shape {
    let mut shape = Shape::default();
    for (value, witness) in values {
        shape.learn(value, Witness::new(witness), usize::MAX);
    }
    shape
}

fn of(values: &[Value]) -> Value {
    learned(values.iter().map(|value| (value, ADA))).schema(Witness::new(ADA)).into()
}

#[test]
fn records_have_fields_with_types_and_those_that_are_sometimes_absent_are_optional() {
    let schema = of(&[
        json!([{"id": 1, "title": "a", "tags": [], "due": null}, {"id": 2.5, "title": "b", "tags": ["x", "y"]}]),
        json!([{"id": 3, "title": null, "tags": ["z"], "open": true}]),
    ]);
    let item = &schema["items"];
    assert_eq!(
        (&schema["type"], &schema["minItems"], &schema["maxItems"]),
        (&json!("array"), &json!(1), &json!(10))
    );
    assert_eq!(item["required"], json!(["id", "title", "tags"]));
    assert_eq!(
        item["properties"],
        json!({
            "id": {"type": "number"},
            "title": {"type": ["string", "null"]},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 0, "maxItems": 10},
            "due": {"type": "null"},
            "open": {"type": "boolean"}
        })
    );
    assert!(item.get("additionalProperties").is_none());
}

#[test]
fn names_that_are_ids_dates_or_addresses_make_a_map() {
    for name in ["42", "2026-11-22", "ada@example.com", "user_10042", "0f3a9c1d"] {
        let mut members = Map::new();
        members.insert(name.to_owned(), json!({"score": 1}));
        let schema = of(&[members.into()]);
        assert_eq!(
            schema,
            json!({"type": "object", "additionalProperties":
                {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}})
        );
    }
}

#[test]
fn names_with_records_of_one_kind_below_them_make_a_map() {
    let person = |age| json!({"age": age, "city": "x"});
    let schema = of(&[json!({"alice": person(1), "bob": person(2), "carol": person(3)})]);
    assert!(schema.get("properties").is_none(), "{schema}");
    assert_eq!(schema["additionalProperties"]["required"], json!(["age", "city"]));
}

#[test]
fn ids_beside_other_names_make_a_map_of_records_at_once() {
    let schema = of(&[json!({"alice": {"n": 1}, "4711": {"n": 2}, "ada@example.com": {"n": 3}})]);
    assert!(schema.get("properties").is_none(), "{schema}");
    assert_eq!(schema["additionalProperties"]["properties"]["n"]["type"], "integer");
    let schema = of(&[json!({"total": 2, "4711": {"n": 2}})]);
    assert_eq!(schema["properties"]["total"]["type"], "integer", "{schema}");
}

#[test]
fn three_names_that_differ_in_their_number_are_data() {
    let schema =
        of(&[json!({"total": 3, "item_1": "a", "item_2": "b", "item_3": "c", "line1": "x", "line2": "y"})]);
    let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["total", "line1", "line2"]);
    assert_eq!(schema["additionalProperties"]["type"], "string");
}

#[test]
fn two_records_that_take_turns_make_a_map() {
    let schema = of(&[json!({"ada": {"id": 1, "age": 2}}), json!({"bob": {"id": 1, "age": 2}})]);
    assert!(schema.get("properties").is_none(), "{schema}");
    let schema = of(&[json!({"ok": {"id": 1}}), json!({"error": {"code": 1, "message": "m"}})]);
    assert!(schema["properties"].get("error").is_some(), "{schema}");
}

#[test]
fn names_that_differ_from_answer_to_answer_make_a_map() {
    let votes = |name: &str| Value::Object([(name.to_owned(), json!(1))].into_iter().collect());
    let schema = of(&["alice", "bob", "carol", "dave"].map(votes));
    assert_eq!(schema, json!({"type": "object", "additionalProperties": {"type": "integer"}}));
}

#[test]
fn many_different_names_make_a_map_for_good() {
    let many: Map<String, Value> =
        (0..=MOST_FIELDS).map(|n| (format!("key_{}", letters(n)), json!(n))).collect();
    let schema = of(&[Value::Object(many), json!({"total": 1})]);
    assert_eq!(schema, json!({"type": "object", "additionalProperties": {"type": "integer"}}));
}

#[test]
fn a_few_fields_among_many_rare_names_stay_fields() {
    let answers: Vec<Value> =
        (0..20).map(|n| json!({"total": n, format!("person_{}", letters(n)): {"age": n}})).collect();
    let schema = of(&answers);
    assert_eq!(schema["properties"], json!({"total": {"type": "integer"}}));
    assert_eq!(schema["additionalProperties"]["properties"]["age"]["type"], "integer");
}

fn letters(n: usize) -> String {
    n.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

#[test]
fn a_name_is_shown_to_those_who_saw_it_and_to_others_when_enough_have() {
    let secret = json!({"id": 1, "project_nightfall": {"budget": 5}});
    let plain = json!({"id": 2});
    let mut shape = learned([(&secret, ADA), (&plain, BOB), (&plain, 3)]);
    let shown = |shape: &Shape, to| Value::from(shape.schema(Witness::new(to))).to_string();
    assert!(shown(&shape, ADA).contains("project_nightfall"));
    for other in [BOB, 3, 4] {
        let shown = shown(&shape, other);
        assert!(
            shown.contains("\"id\"") && !shown.contains("nightfall") && !shown.contains("budget"),
            "{shown}"
        );
    }
    for again in 0..100 {
        shape.learn(&secret, Witness::new(ADA), usize::MAX);
        assert!(!shown(&shape, BOB).contains("nightfall"), "{again}");
    }
    for witness in 10..10 + ENOUGH_WITNESSES as u64 {
        shape.learn(&secret, Witness::new(witness), usize::MAX);
    }
    assert!(shown(&shape, BOB).contains("project_nightfall"));
}

#[test]
fn names_that_change_what_objects_are_are_not_kept() {
    let text = r#"{"__proto__": {"polluted": true}, "constructor": 1, "prototype": 2, "ok": 3}"#;
    let schema = of(&[serde_json::from_str(text).unwrap()]);
    assert_eq!(schema["required"], json!(["ok"]));
    let names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["ok"]);
}

#[test]
fn deep_values_are_looked_at_to_a_depth() {
    let deep = (0..100).fold(json!("bottom"), |inner, _| json!({ "a": inner }));
    let text = of(&[deep]).to_string();
    assert_eq!(text.matches("\"a\":").count(), DEEPEST, "{text}");
}

#[test]
fn huge_values_give_a_small_shape() {
    let row = |n: usize| -> Value {
        (0..200)
            .map(|at| (format!("col_{}_{}", letters(n), letters(at)), json!({"x": [at]})))
            .collect::<Map<_, _>>()
            .into()
    };
    let huge: Vec<Value> = (0..500).map(row).collect();
    let many = json!({"rows": huge, "long": "x".repeat(1_000_000)});
    let wide: Value = (0..20)
        .map(|n| {
            (letters(n + 100), (0..100).map(|at| (letters(at + 100), json!(1))).collect::<Map<_, _>>().into())
        })
        .collect::<Map<_, _>>()
        .into();
    let shape = learned([(&many, ADA), (&wide, ADA)]);
    let size = serde_json::to_vec(&shape).unwrap().len();
    assert!(size < 100 * MOST_NODES, "{size}");
}

#[test]
fn an_answer_is_looked_at_only_as_far_as_its_work_goes() {
    let mut shape = Shape::default();
    shape.learn(&json!({"a": 1, "b": 2, "c": 3}), Witness::new(ADA), 2);
    assert_eq!(Value::from(shape.schema(Witness::new(ADA))), json!({"type": "object"}));
    shape.learn(&json!({"a": 1, "b": 2, "c": 3}), Witness::new(ADA), 4);
    let schema = shape.schema(Witness::new(ADA));
    assert_eq!(schema["required"], json!(["a", "b", "c"]), "no name counts as absent");
}

#[test]
fn text_of_numbers_that_lose_their_digits_is_said_to_be_so() {
    let schema =
        of(&[json!({"id": "9007199254740993", "name": "x"}), json!({"id": u64::MAX, "name": "1.1"})]);
    assert_eq!(schema["properties"]["id"]["type"], "string");
    assert!(schema["properties"]["id"]["description"].as_str().unwrap().contains("digits"));
    assert_eq!(schema["properties"]["name"], json!({"type": "string"}));
}

#[test]
fn merged_shapes_know_what_both_saw() {
    let (ours, theirs) = (json!({"a": 1, "b": []}), json!({"b": [{"c": null}], "a": "x"}));
    let mut merged = learned([(&ours, ADA)]);
    merged.merge(learned([(&theirs, BOB)]));
    let together = learned([(&ours, ADA), (&theirs, BOB)]);
    assert_eq!(merged, together);
    let text = serde_json::to_string(&merged).unwrap();
    assert_eq!(serde_json::from_str::<Shape>(&text).unwrap(), merged);
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "VALUE[a-z]{0,5}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map("[a-f]|[0-9]{1,6}|.{0,8}", inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_shape_has_a_value_in_it_and_merging_is_like_learning(values in prop::collection::vec((value(), 1_u64..4), 0..6)) {
        let whole = learned(values.iter().map(|(value, by)| (value, *by)));
        let text = serde_json::to_string(&whole).unwrap();
        prop_assert!(!text.contains("VALUE"), "{}", text);
        let mut merged = Shape::default();
        for (value, by) in &values {
            merged.merge(learned([(value, *by)]));
        }
        for viewer in 1..5 {
            let viewer = Witness::new(viewer);
            prop_assert_eq!(merged.schema(viewer), whole.schema(viewer));
        }
    }
}
