//! Tests of [`super`].

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::InputSchema;

fn schema(value: Value) -> InputSchema {
    let Value::Object(object) = value else { panic!("an object") };
    InputSchema::new(Arc::new(object))
}

fn fits(pattern: &str, text: &str) -> bool {
    let schema = schema(json!({"pattern": pattern}));
    assert!(schema.left_out().is_empty(), "{pattern}");
    assert_eq!(schema.defect(), None, "{pattern}");
    schema.check(&json!(text)).is_ok()
}

/// The least time of three, so that a busy machine does not count.
fn least_time(mut run: impl FnMut()) -> Duration {
    let mut time = || {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    time().min(time()).min(time())
}

#[test]
fn expressions_match_as_ecma_262_says() {
    for (pattern, fit, unfit) in [
        ("^[a-z]{2,3}$", vec!["ab", "abc"], vec!["a", "abcd", "aB", "ab\n"]),
        ("b+", vec!["abbb", "b"], vec!["", "a"]),
        (r"^\d{4}-\d\d$", vec!["2026-01"], vec!["2026-1", "٢٠٢٦-٠١"]),
        (r"^\w+\s\W$", vec!["a_1\u{3000}é"], vec!["a b", "é !"]),
        (r"\bcat\b", vec!["a cat.", "écat"], vec!["cats", "concat"]),
        ("^(?:foo|ba[rz])?$", vec!["", "foo", "baz"], vec!["bar1", "ba"]),
        (r"^\p{Lu}\p{L}{0,254}$", vec!["Zoë", "Ж"], vec!["zoë", "", "A1"]),
        (r"^[\p{L}\p{N}_.-]{1,200}$", vec!["naïve-1.0", "字"], vec!["a b", ""]),
        ("(?i)^straße$", vec!["STRAßE"], vec!["strase"]),
        ("^(a|b*)*c$", vec!["c", "abbac"], vec!["abd"]),
        ("^$|^x", vec!["", "xy"], vec!["y"]),
        ("^[[a]]$", vec!["a]", "[]"], vec!["a"]),
        (r"^(?<year>\d+)$", vec!["12"], vec!["x"]),
        ("", vec!["", "x"], vec![]),
        ("^.$", vec!["a", "\u{85}", "😀"], vec!["\n", "\r", "\u{2028}", "\u{2029}"]),
        (r"^a\..[.]\(?s.$", vec!["a.b.sc", "a.b.(sc"], vec!["axb.sc", "a.\r.sc", "a.b.s\r", "a.bxsc"]),
        ("^a.(?s:.)$", vec!["ab\r", "ab\n"], vec!["a\rb"]),
        (r"^\0$", vec!["\0"], vec!["0", "", "\\0"]),
        (r"^[\0-\x1f\b]\b.$", vec!["\u{1}a", "\u{8}a"], vec!["ba", "\u{8}-"]),
        ("^[^]$", vec!["a", "\n", "😀"], vec!["", "ab"]),
        ("^(?:[]|a]?)$", vec!["a", "a]"], vec!["", "]", "|"]),
        (
            r"^\uD83D\uDE00[\uD83D\uDE00-\uD83D\uDE02]\u0041?$",
            vec!["😀😁", "😀😂A"],
            vec!["😀", "😀😃", "😁😁"],
        ),
    ] {
        for text in fit {
            assert!(fits(pattern, text), "{pattern} {text:?}");
        }
        for text in unfit {
            assert!(!fits(pattern, text), "{pattern} {text:?}");
        }
    }
    assert!(fits(r"^\p{L}{1,255}$", &"é".repeat(255)));
    assert!(!fits(r"^\p{L}{1,255}$", &"é".repeat(256)));
}

#[test]
fn expressions_that_need_backtracking_are_left_out_and_the_rest_is_checked() {
    for pattern in [
        "^(?!(?:x(?=)|xx(?=))*y)x*$",
        r"(?<y>a)\k<y>",
        r"^(a)\1$",
        "^(?=.*[0-9]).{8,}$",
        "(?<=a)b",
        r"^\uD83D$",
    ] {
        let schema = schema(json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "pattern": pattern, "maxLength": 100}, "b": {"pattern": "^x$"}}}));
        assert_eq!(schema.defect(), None, "{pattern}");
        assert_eq!(schema.left_out().len(), 1);
        assert_eq!((&*schema.left_out()[0].pattern, schema.left_out()[0].reason), (pattern, UNSUPPORTED));
        assert_eq!(schema.check(&json!({"a": "x".repeat(40)})), Ok(()));
        for wrong in [json!({"a": 5}), json!({}), json!({"a": "x".repeat(101)}), json!({"a": "", "b": "y"})] {
            assert!(schema.check(&wrong).is_err(), "{pattern} {wrong}");
        }
    }
    assert!(schema(json!({"pattern": "["})).defect().unwrap().contains("invalid regular expression: \"[\""));
}

#[test]
fn what_is_left_out_refuses_nothing_that_the_whole_schema_accepts() {
    let hard = "^(?!y)x";
    for (given, accepted) in [
        (json!({"not": {"pattern": hard}}), json!("y")),
        (json!({"not": {"$ref": "#/$defs/hard"}}), json!("y")),
        (json!({"oneOf": [{"pattern": hard}, {"maxLength": 3}]}), json!("y")),
        (
            json!({"oneOf": [{"$ref": "#/$defs/hard"}, {"maxLength": 3}], "allOf": [{"minLength": 1}]}),
            json!("y"),
        ),
        (json!({"if": {"pattern": hard}, "then": {"maxLength": 0}, "else": {"minLength": 1}}), json!("y")),
        (json!({"contains": {"pattern": hard}, "maxContains": 1}), json!(["y", "y", "x"])),
        (json!({"patternProperties": {hard: {}}, "additionalProperties": false}), json!({"x1": 1})),
        (json!({"patternProperties": {hard: {}}, "unevaluatedProperties": false}), json!({"x1": 1})),
        (
            json!({"allOf": [{"patternProperties": {hard: {}}}], "unevaluatedProperties": false}),
            json!({"x1": 1}),
        ),
        (
            json!({"anyOf": [{"if": {"required": ["a"], "properties": {"a": {"pattern": hard}}}}], "unevaluatedProperties": false}),
            json!({"a": "xa"}),
        ),
        (json!({"not": {"patternProperties": {hard: {"type": "string"}}}}), json!({"x1": 1})),
        (json!({"not": {"not": {"not": {"pattern": hard}}}}), json!("y")),
        (
            json!({"dependentSchemas": {"a": {"not": {"required": ["b"], "properties": {"b": {"pattern": hard}}}}}}),
            json!({"a": 1, "b": "y"}),
        ),
        (json!({"propertyNames": {"not": {"pattern": hard}}}), json!({"y": 1})),
        (
            json!({"properties": {"a": {"oneOf": [{"pattern": hard}, {"type": "string"}]}, "b": {"$ref": "#/properties/a/oneOf/1"}}}),
            json!({"a": "y"}),
        ),
    ] {
        let mut whole = given.clone();
        whole["$defs"] = json!({"hard": {"pattern": hard}});
        let backtracking = jsonschema::validator_for(&whole).unwrap();
        assert!(backtracking.is_valid(&accepted), "{given}");
        let schema = schema(whole);
        assert_eq!(schema.left_out()[0].pattern, hard);
        assert_eq!(schema.check(&accepted), Ok(()), "{given}");
    }
}

/// A schema of keywords that make others stricter or looser, some of whose expressions are left out.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"pattern": "^(?!b)"})),
        Just(json!({"pattern": "a"})),
        Just(json!({"type": "object"})),
        Just(json!({"required": ["a"]})),
        Just(json!({"$ref": "#/$defs/d"})),
        Just(json!({"patternProperties": {"^(?=a)": true}, "additionalProperties": false})),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        let inner = || inner.clone();
        prop_oneof![
            inner().prop_map(|it| json!({"not": it})),
            (inner(), inner(), inner()).prop_map(|(a, b, c)| json!({"if": a, "then": b, "else": c})),
            (inner(), inner()).prop_map(|(a, b)| json!({"oneOf": [a, b]})),
            (inner(), inner()).prop_map(|(a, b)| json!({"anyOf": [a, b], "unevaluatedProperties": false})),
            (inner(), inner()).prop_map(|(a, b)| json!({"properties": {"a": a, "b": b}})),
            inner().prop_map(|it| json!({"contains": it, "maxContains": 1})),
            inner().prop_map(
                |it| json!({"patternProperties": {"^(?!b)": it, "b": false}, "unevaluatedProperties": false})
            ),
            inner().prop_map(|it| json!({"propertyNames": it})),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_schema_of_which_parts_are_left_out_accepts_what_the_whole_one_does(schema in any_schema(), definition in any_schema()) {
        let mut whole = schema.clone();
        whole["$defs"] = json!({"d": definition});
        prop_assume!(!definition.to_string().contains("$ref"));
        let backtracking = jsonschema::validator_for(&whole).unwrap();
        let Value::Object(object) = whole else { unreachable!() };
        let ours = InputSchema::new(Arc::new(object));
        for value in [json!("a"), json!("b"), json!(["a", "b"]), json!(["b", "b"]), json!({"a": "a"}), json!({"a": "b", "b": "a"}), json!({"b": {"a": 1}}), json!({"c": 1})] {
            if backtracking.is_valid(&value) {
                prop_assert_eq!(ours.check(&value), Ok(()));
            } else if ours.left_out().is_empty() {
                prop_assert!(ours.check(&value).is_err());
            }
        }
    }

    #[test]
    fn a_program_finds_what_the_regex_crate_finds(
        pattern in "(\\^|)([ab]|\\[\\^b\\]|\\.|\\(a\\|b\\)|\\(\\?:ab\\|\\)|é|\\\\p\\{L\\})((\\*|\\+|\\?|\\{1,3\\}|\\{2\\}|\\{0,2\\})|)([ab1]|\\$|\\\\b|\\(b\\*a\\)\\*)(\\||)[ab]{0,2}(\\$|)",
        texts in proptest::collection::vec("[abé1 ]{0,6}", 8),
    ) {
        // Letters of words are those of ASCII for us.
        let theirs = regex::Regex::new(&pattern.replace(r"\b", r"(?-u:\b)")).unwrap();
        let program = Program::new(&pattern).unwrap();
        let mut fuel = u64::MAX;
        for text in texts {
            prop_assert_eq!(program.is_match(&text, &mut fuel), Some(theirs.is_match(&text)), "{} {:?}", pattern, text);
        }
    }
}

#[test]
fn a_search_takes_time_that_grows_with_the_text_and_no_longer_than_a_limit() {
    // The first needed exponential time, the second has thousands of instructions that are tried at each character.
    let exponential = schema(json!({"pattern": "^(?:x|xx)*y"}));
    let fits = json!("x".repeat(200_000));
    assert!(exponential.check(&fits).is_err());
    let wide = schema(json!({"pattern": "(?:[ab]{1,2000}){4}c"}));
    assert!(wide.left_out().is_empty());
    assert!(wide.check(&json!("ab".repeat(20))).unwrap_err().contains("does not match"));
    let problem = wide.check(&json!("ab".repeat(200_000))).unwrap_err();
    assert!(problem.contains("takes too long") && problem.contains("schemaValidation"), "{problem}");
    let negated = schema(json!({"not": {"pattern": "(?:[ab]{1,2000}){4}c"}}));
    assert!(negated.check(&json!("ab".repeat(200_000))).unwrap_err().contains("takes too long"));
    let time = least_time(|| drop(negated.check(&json!("ab".repeat(200_000)))));
    assert!(time < Duration::from_secs(20), "{time:?}");
}

#[test]
fn long_texts_of_ordinary_expressions_are_checked() {
    let base64 =
        schema(json!({"pattern": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"}));
    let mut text = "QUJD".repeat(500_000);
    assert_eq!(base64.check(&json!(text)), Ok(()));
    text.push('!');
    assert_eq!(
        base64.check(&json!(text)).unwrap_err(),
        "input: value does not match \"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$\""
    );
}

#[test]
fn expressions_that_are_too_large_are_left_out_before_they_are_compiled() {
    let many = format!("^(?:{})$", vec!["a"; 6_000].join("|"));
    for pattern in ["(?:(?:a{1000}){1000}){1000}", &many, &r"\d".repeat(900)] {
        let schema = schema(json!({"type": "string", "pattern": pattern}));
        let left_out: Vec<_> = schema.left_out().iter().map(|it| it.reason).collect();
        assert_eq!(left_out, [TOO_LARGE], "{}", &pattern[..20]);
        assert_eq!(schema.check(&json!("x")), Ok(()));
        assert!(schema.check(&json!(5)).is_err());
    }
    let properties: JsonObject =
        (0..20_000).map(|n| (format!("p{n}"), json!({"pattern": format!(r"^[a-z]{{{n}}}$")}))).collect();
    let schema = schema(json!({"properties": properties}));
    assert!(schema.left_out().iter().any(|it| it.reason == TOO_MANY));
    assert!(schema.left_out().iter().all(|it| it.pattern != "^[a-z]{1}$"));
    assert_eq!(schema.check(&json!({"p3": "abc", "p19999": "x"})), Ok(()));
    assert!(schema.check(&json!({"p3": "ab"})).is_err());
}

#[test]
fn programs_of_hundreds_of_tools_are_small() {
    let program = program(r"^[\p{L}\p{N}_.-]{1,200}$").unwrap();
    assert!(program.bytes() < 20_000, "{}", program.bytes());
}

#[test]
fn a_hundred_tools_with_repeated_classes_of_letters_take_little_memory() {
    let tools: Vec<_> = (1..=100)
        .map(|n| {
            schema(json!({"properties": {"a": {"pattern": format!(r"^[\p{{L}}\p{{N}}_.-]{{{n},200}}$")}}}))
        })
        .collect();
    for (n, tool) in tools.iter().enumerate() {
        assert_eq!(tool.check(&json!({"a": "é".repeat(n + 1)})), Ok(()));
        assert!(tool.check(&json!({"a": "é".repeat(n)})).is_err());
        assert!(tool.check(&json!({"a": "é".repeat(201)})).is_err());
    }
    assert!(cache::bytes() <= 16 << 20);
}

#[test]
fn names_whose_expression_the_validator_cannot_read_are_left_out() {
    for name in [r"^\0$", r"^[\b]$", "^[^]\\d$", r"^\uD83D\uDE00$"] {
        let schema = schema(json!({"patternProperties": {name: {"type": "string"}}}));
        let reasons: Vec<_> = schema.left_out().iter().map(|it| it.reason).collect();
        assert_eq!((schema.defect(), &*reasons), (None, &[UNSUPPORTED][..]), "{name}");
        assert_eq!(schema.check(&json!({"\0": 1})), Ok(()), "{name}");
    }
}

#[test]
fn a_large_class_that_is_repeated_costs_about_as_much_as_a_small_one() {
    let reading = |class: &str| {
        let mut most = 40;
        least_time(|| {
            // Another expression each time, since read ones are kept.
            most += 1;
            drop(schema(json!({"pattern": format!("^(?:(?:(?:{class}{{1,{most}}}){{1,50}}){{1,50}})$")})));
        })
    };
    let (small, large) = (reading("[a-z]"), reading(r"\p{L}"));
    assert!(large < 20 * small + Duration::from_millis(500), "{small:?} {large:?}");
}

#[test]
fn long_expressions_of_dots_are_read_in_a_moment() {
    let time = least_time(|| drop(schema(json!({"pattern": ".".repeat(LONGEST)}))));
    assert!(time < Duration::from_secs(5), "{time:?}");
}

#[test]
fn names_are_matched_by_small_automata_and_large_ones_are_left_out() {
    let small = schema(
        json!({"patternProperties": {"^x-": {"type": "string"}, "^[0-9]{1,5}$": {"type": "integer"}}, "additionalProperties": false}),
    );
    assert!(small.left_out().is_empty());
    assert_eq!(small.check(&json!({"x-a": "b", "12": 1})), Ok(()));
    assert!(small.check(&json!({"x-a": 1})).is_err() && small.check(&json!({"y": 1})).is_err());
    let large = schema(
        json!({"patternProperties": {r"^[\p{L}\p{N}]{1,200}$": {"type": "string"}, "^a$": {"type": "string"}}, "additionalProperties": false}),
    );
    assert_eq!((large.left_out().len(), large.left_out()[0].reason), (1, TOO_LARGE));
    assert_eq!(large.check(&json!({"b": 1})), Ok(()));
    assert!(large.check(&json!({"a": 1})).is_err());
}

/// A schema with 2,000 names of `patternProperties`, written by `name`, and a value that is counted before it is checked.
fn many_names(name: impl Fn(usize) -> String) -> (Value, Value) {
    let names: JsonObject = (0..2_000).map(|n| (name(n), json!({"type": "string"}))).collect();
    let members: JsonObject = (0..10).map(|n| (format!("k{n}"), json!(n))).collect();
    (json!({"patternProperties": names}), Value::Object(members))
}

#[test]
fn names_that_are_compared_with_texts_are_not_compiled() {
    let (given, value) = many_names(|n| format!("^compared{n}"));
    let Value::Object(given) = given else { unreachable!() };
    assert_eq!(InputSchema::new(given.into()).check(&value), Ok(()));
    assert!(cache::get("^compared7").is_none());
}

#[test]
fn names_that_no_look_at_the_schema_met_are_read_up_to_a_limit() {
    let (given, value) = many_names(|n| format!("unseen[a-z]{n}"));
    let schema = json!({"$ref": "#/default", "default": given});
    let Value::Object(schema) = schema else { unreachable!() };
    let problem = InputSchema::new(schema.into()).check(&value).unwrap_err();
    assert!(problem.contains("schemaValidation"), "{problem}");
    assert!(cache::get("unseen[a-z]1999").is_none());
}
