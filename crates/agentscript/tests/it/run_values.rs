//! JSON forms of returned values.

use gatewright_agentscript::RunError;
use serde_json::json;

use super::support::{run, value};

#[tokio::test]
async fn values_that_are_not_json_have_a_fixed_form() {
    let outcome = run(
        "return {
           undef: undefined, fn: () => 1, sym: Symbol('s'), nan: NaN, inf: -Infinity, big: 12n, date: new Date(0), bad: [undefined, () => 1],
           textMap: new Map([['a', 1], ['b', new Set([1, 2])]]), map: new Map([[1, 'x']]), set: new Set(['a']), regexp: /a+/g,
           error: new RangeError('r'), bytes: new Uint8Array([1, 2]), weak: new WeakMap(), nothing: null, negativeZero: -0,
         }",
    )
    .await;
    assert_eq!(
        value(&outcome),
        json!({
            "nan": null, "inf": null, "big": "12", "date": "1970-01-01T00:00:00.000Z", "bad": [null, null],
            "textMap": { "a": 1, "b": [1, 2] }, "map": [[1, "x"]], "set": ["a"], "regexp": "/a+/g",
            "error": { "name": "RangeError", "message": "r" }, "bytes": [1, 2], "weak": {}, "nothing": null, "negativeZero": 0
        })
    );
}

#[tokio::test]
async fn a_script_without_a_value_returns_null() {
    for source in
        ["", "return", "return undefined", "return () => 1", "return Symbol('s')", "return new Date(NaN)"]
    {
        assert_eq!(value(&run(source).await), json!(null), "{source}");
    }
    assert_eq!(value(&run("return 3n").await), json!("3"));
}

#[tokio::test]
async fn a_cycle_or_a_to_json_in_the_result_is_a_runtime_error() {
    let outcome = run("const a = {}; a.a = a; return a").await;
    assert!(matches!(outcome.result, Err(RunError::RuntimeError { name, .. }) if name == "TypeError"));
    let outcome = run("return { x: { toJSON: () => ({ isAdmin: true }) } }").await;
    assert!(
        matches!(outcome.result, Err(RunError::RuntimeError { message, .. }) if message.contains("toJSON"))
    );
}

#[tokio::test]
async fn a_getter_of_a_value_that_leaves_runs_once() {
    let object = "{ get a() { return n++ }, get b() { return n++ } }";
    for (leave, n) in [("console.log(o)", 2), ("progress(o)", 2), ("console.log({ o }, [o])", 4)] {
        let outcome = run(&format!("let n = 0; const o = {object}; {leave}; return n")).await;
        assert_eq!(value(&outcome), json!(n), "{leave}");
    }
    let outcome = run(&format!("let n = 0; console.log({object}, [{object}])")).await;
    assert_eq!(outcome.logs, [r#"{"a":0,"b":1} [{"a":2,"b":3}]"#]);
    let outcome = run(
        "let n = 0; const o = { get a() { console.log({ o: { get b() { return n++ } } }); return new Date(0) } }; return [o, n, o]",
    );
    let outcome = outcome.await;
    let day = json!({ "a": "1970-01-01T00:00:00.000Z" });
    assert_eq!(value(&outcome), json!([day, 0, day]));
    assert_eq!(outcome.logs, [r#"{"o":{"b":0}}"#, r#"{"o":{"b":1}}"#]);
    let code = "class Failed extends Error { get code() { return n++ } } let n = 0; return new Failed('x')";
    assert_eq!(value(&run(code).await)["code"], json!(0));
}

#[tokio::test]
async fn a_cycle_or_a_to_json_behind_a_getter_is_a_runtime_error() {
    for (source, part) in [
        ("const o = { get self() { return o } }; return o", "circular reference"),
        ("const o = { get list() { return [{ o }] } }; return { o }", "circular reference"),
        ("return { get a() { return { toJSON: () => 1 } } }", "'toJSON' function"),
        (
            "const o = { get a() { return { toJSON() { console.log({ get b() { return 1 } }); return 1 } } } }; return o",
            "'toJSON' function",
        ),
    ] {
        let outcome = run(source).await;
        let Err(RunError::RuntimeError { name, message, .. }) = outcome.result else { panic!("{source}") };
        assert!(name == "TypeError" && message.contains(part), "{source}: {message}");
    }
}

#[tokio::test]
async fn a_result_nested_too_deep_is_a_runtime_error() {
    let outcome = run("let a = []; for (let i = 0; i < 150; i++) a = [a]; return a").await;
    assert!(
        matches!(outcome.result, Err(RunError::RuntimeError { name, .. }) if name == "ResultUnreadableError")
    );
}

#[tokio::test]
async fn text_that_is_not_well_formed_unicode_survives_as_text() {
    assert_eq!(value(&run("return ['a\\ud800b'.length, '\\u{1F600}']").await), json!([3, "\u{1F600}"]));
    let outcome = run("console.log('x\\ud800y'); return await callTool('echo', { s: '\\u{1F600}' })").await;
    assert_eq!(value(&outcome), json!({ "s": "\u{1F600}" }));
    assert_eq!(outcome.logs, ["x\u{FFFD}y"]);
}

#[tokio::test]
async fn maps_and_sets_in_the_input_of_a_tool_have_the_form_of_results() {
    let outcome = run(
        "return await callTool('echo', { a: new Map([['k', new Set([1])]]), b: new Map([[1, 2]]), c: new Set(['x']), d: new Date(0) })",
    )
    .await;
    assert_eq!(
        value(&outcome),
        json!({ "a": { "k": [1] }, "b": [[1, 2]], "c": ["x"], "d": "1970-01-01T00:00:00.000Z" })
    );
}

#[tokio::test]
async fn keys_that_would_become_one_are_an_error_and_others_are_replaced() {
    for source in [
        r#"return {"\ud800": 1, "\ud801": 2}"#,
        r#"return [{ a: new Map([["x\udc00", 1], ["x\ufffd", 2]]) }]"#,
        r#"return await callTool('echo', { a: [{"\ud800": 1, "\ud801": 2}] })"#,
    ] {
        let outcome = run(source).await;
        let Err(RunError::RuntimeError { name, message, .. }) = &outcome.result else {
            panic!("{source}: {outcome:?}");
        };
        assert_eq!(&**name, "TypeError");
        assert!(message.contains("two keys that differ only in halves of surrogate pairs"), "{message}");
    }
    let outcome = run(r#"return {"\ud800": "\ud801", "\\ud800": "\ud83d\ude00"}"#).await;
    assert_eq!(value(&outcome), json!({ "\u{fffd}": "\u{fffd}", "\\ud800": "\u{1f600}" }));
}

#[tokio::test]
async fn a_promise_in_a_result_or_an_input_is_an_error_that_says_where() {
    for (source, place) in [
        ("return [1, 2].map(async (n) => n)", "the result holds a promise as element 0"),
        ("return { a: { later: Promise.resolve(1) } }", "the result holds a promise as property later"),
        (
            "return await callTool('echo', { n: callTool('echo', {}) })",
            "the input holds a promise as property n",
        ),
        ("return await callTool('echo', callTool('echo', {}))", "the input is a promise"),
        ("return new Map([['k', new Set([Promise.resolve(1)])]])", "the result holds a promise as element 0"),
    ] {
        let outcome = run(source).await;
        let Err(RunError::RuntimeError { name, message, .. }) = &outcome.result else {
            panic!("{source}: {outcome:?}");
        };
        assert_eq!(&**name, "TypeError");
        assert!(message.contains(place) && message.contains("await Promise.all"), "{message}");
    }
    let outcome =
        run("console.log(Promise.resolve(1), { p: Promise.resolve(1) }); return Promise.resolve([2])").await;
    assert_eq!(value(&outcome), json!([2]));
    assert_eq!(outcome.logs, [r#"[Promise] {"p":"[Promise]"}"#]);
}
