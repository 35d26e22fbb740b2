//! Shapes of results: learned from answers, the same for scripts, `invoke` and direct calls.

use gatewright_core::rmcp::model::CallToolResult;
use gatewright_testing::ToolServer;
use serde_json::{Map, Value, json};

use super::support::{Client, Fixture, Served, structured, text};

#[tokio::test]
async fn a_shape_is_learned_from_direct_calls_invocations_and_scripts() {
    let answers =
        [text(r#"[{"id": 1, "title": "a"}]"#), text(r#"[{"id": 2, "title": "b", "due": null}]"#), text("[]")];
    let served = Served::new(json!({}), [Fixture::new("list", answers)]).await;
    let ada = served.client("ada").await;
    assert_eq!(ada.observed("list").await, None);
    ada.call("app:list", json!({"n": 0})).await;
    ada.invoke("list", 1).await;
    ada.run("return await callTool('app:list', {n: 2})").await;
    let (schema, answers) = ada.observed("list").await.unwrap();
    assert_eq!(answers, 3);
    assert_eq!((&schema["minItems"], &schema["maxItems"]), (&json!(0), &json!(1)));
    assert_eq!(schema["items"]["required"], json!(["id", "title"]));
    assert_eq!(schema["items"]["properties"]["due"], json!({"type": "null"}));
    let types = ada.body("codecall:describe", json!({"toolNames": ["app:list"], "detail": "types"})).await;
    assert!(types["types"].as_str().unwrap().contains("3 answers"), "{types}");
}

#[tokio::test]
async fn a_declared_schema_is_not_learned_over_and_failures_teach_nothing() {
    let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
    let failed = json!({"isError": true, "content": [{"type": "text", "text": "{\"id\": 1}"}]});
    let served = Served::new(
        json!({}),
        [
            Fixture::new("declared", [structured(json!({"id": 1}))]).declaring(schema),
            Fixture::new("vacuous", [structured(json!({"id": 1}))]).declaring(json!({"type": "object"})),
            Fixture::new("failing", [failed]),
        ],
    )
    .await;
    let ada = served.client("ada").await;
    for tool in ["declared", "vacuous", "failing"] {
        ada.invoke(tool, 0).await;
    }
    assert_eq!(ada.observed("declared").await, None);
    assert_eq!(ada.observed("failing").await, None);
    assert_eq!(ada.observed("vacuous").await.unwrap().0["required"], json!(["id"]));
}

#[tokio::test]
async fn nothing_of_one_callers_content_is_in_what_another_is_shown() {
    let secrets = json!({
        "nightfall": {"budget_of_orion": "S3CRET-VALUE"},
        "ada@example.com": "S3CRET-VALUE",
        "rows": [{"acme_corp": 1, "globex": 2}, {"acme_corp": 3, "globex": 4}],
    });
    let served =
        Served::new(json!({}), [Fixture::new("get", [structured(secrets), structured(json!({"rows": []}))])])
            .await;
    let (ada, bob) = (served.client("ada").await, served.client("bob").await);
    for _ in 0..40 {
        ada.invoke("get", 0).await;
    }
    let own = ada.observed("get").await.unwrap().0.to_string();
    assert!(own.contains("nightfall") && !own.contains("S3CRET") && !own.contains("example.com"), "{own}");
    bob.invoke("get", 1).await;
    let full = bob.body("codecall:describe", json!({"toolNames": ["app:get"]})).await.to_string();
    let types =
        bob.body("codecall:describe", json!({"toolNames": ["app:get"], "detail": "types"})).await.to_string();
    let in_script = bob.run("return getTool('app:get')").await.to_string();
    for shown in [full, types, in_script] {
        assert!(shown.contains("rows"), "{shown}");
        for secret in ["nightfall", "orion", "S3CRET", "example.com", "acme", "globex"] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
    }
}

#[tokio::test]
async fn hostile_answers_give_small_shapes() {
    let deep = (0..100).fold(json!(1), |inner, _| json!({ "a": [inner] }));
    let wide: Map<String, Value> = (0..5_000).map(|n| (format!("k{n}"), json!({"v": n}))).collect();
    let text_of = |value: &Value| text(value.to_string());
    let polluting = text(r#"{"__proto__": {"x": 1}, "constructor": {"prototype": 1}, "id": 1}"#);
    let answers = [
        text_of(&deep),
        text_of(&wide.into()),
        polluting,
        text("[".repeat(10_000)),
        text("x".repeat(1_000_000)),
    ];
    let served = Served::new(json!({}), [Fixture::new("get", answers)]).await;
    let ada = served.client("ada").await;
    for n in 0..5 {
        ada.call("app:get", json!({"n": n})).await;
    }
    let schema = ada.observed("get").await.unwrap().0.to_string();
    assert!(schema.len() < 4_000 && !schema.contains("__proto__"), "{schema}");
    let types = ada.body("codecall:describe", json!({"toolNames": ["app:get"], "detail": "types"})).await;
    assert!(types.to_string().len() < 4_000, "{types}");
}

#[tokio::test]
async fn nothing_is_learned_while_it_is_off_and_turning_it_off_forgets() {
    let fixture = Fixture::new("get", [structured(json!({"id": 1}))]);
    let off = Served::new(json!({"shapes": "off"}), [fixture.clone()]).await;
    let ada = off.client("ada").await;
    ada.invoke("get", 0).await;
    assert_eq!(ada.observed("get").await, None);
    let on = Served::new(json!({}), [fixture]).await;
    let ada = on.client("ada").await;
    ada.invoke("get", 0).await;
    assert!(ada.observed("get").await.is_some());
    let mut config = on.code_call.config();
    config.shapes = gatewright_codecall::ShapeLearning::Off;
    on.code_call.reconfigure(&config).unwrap();
    assert_eq!(ada.observed("get").await, None);
    config.shapes = gatewright_codecall::ShapeLearning::On;
    on.code_call.reconfigure(&config).unwrap();
    assert_eq!(ada.observed("get").await, None);
}

#[tokio::test]
async fn wrapped_results_are_the_value_inside_and_the_schema_says_so() {
    let list =
        json!({"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}});
    let wrapped =
        |inner: Value| json!({"type": "object", "properties": {"result": inner}, "required": ["result"]});
    let mut marked = wrapped(json!({"type": "string"}));
    marked["x-fastmcp-wrap-result"] = json!(true);
    let page = json!({"type": "object", "properties": {"result": {}, "next": {"type": "string"}}});
    let served = Served::new(
        json!({}),
        [
            Fixture::new(
                "list",
                [structured(json!({"result": [{"id": 7}]})), text(r#"{"result": [{"id": 7}]}"#)],
            )
            .declaring(wrapped(list)),
            Fixture::new("text", [structured(json!({"result": "[1, 2]"})), text("[1, 2]")]).declaring(marked),
            Fixture::new("page", [structured(json!({"result": 1}))]).declaring(page),
            Fixture::new("plain", [structured(json!({"result": {"a": 1}}))]),
        ],
    )
    .await;
    let ada = served.client("ada").await;
    let call = |tool: &str, n: usize| format!("return await callTool('app:{tool}', {{n: {n}}})");
    for (tool, n, value) in [
        ("list", 0, json!([{"id": 7}])),
        ("list", 1, json!([{"id": 7}])),
        ("text", 0, json!("[1, 2]")),
        ("text", 1, json!("[1, 2]")),
        ("page", 0, json!({"result": 1})),
        ("plain", 0, json!({"a": 1})),
    ] {
        assert_eq!(ada.run(&call(tool, n)).await, value, "{tool} {n}");
        assert_eq!(ada.invoke(tool, n).await["result"], value, "{tool} {n}");
    }
    let types = ada.run("return getTool('app:list').types").await;
    assert!(types.as_str().unwrap().contains("id") && !types.as_str().unwrap().contains("result"), "{types}");
    assert_eq!(ada.observed("plain").await.unwrap().0["required"], json!(["a"]));
}

#[tokio::test]
async fn digits_survive_as_text_in_scripts_and_invocations() {
    let rows = r#"{"id": 9007199254740993, "price": 1.10, "rate": 0.5, "whole": 5.0}"#;
    let served = Served::new(
        json!({}),
        [
            Fixture::new("text", [text(rows)]),
            Fixture::new("structured", [structured(json!({"id": u64::MAX}))]),
        ],
    )
    .await;
    let ada = served.client("ada").await;
    let kept = json!({"id": "9007199254740993", "price": "1.10", "rate": 0.5, "whole": 5});
    assert_eq!(ada.run("return await callTool('app:text', {})").await, kept);
    let invoked = ada.invoke("text", 0).await;
    assert_eq!((&invoked["result"]["id"], &invoked["result"]["price"]), (&kept["id"], &kept["price"]));
    assert_eq!(ada.run("return (await callTool('app:structured', {})).id").await, "18446744073709551615");
    // Beyond the answers there are, but accepted as an integer.
    let refused =
        ada.body("codecall:invoke", json!({"tool": "app:text", "input": {"n": "9007199254740993"}})).await;
    assert_ne!(refused["error"]["code"], "VALIDATION_ERROR", "{refused}");
    let (schema, _) = ada.observed("text").await.unwrap();
    assert_eq!(schema["properties"]["price"]["type"], "string");
    assert!(schema["properties"]["price"]["description"].as_str().unwrap().contains("digits"));
}

#[tokio::test]
async fn declared_types_are_those_that_scripts_get() {
    let declared = json!({"type": "object", "properties": {
        "id": {"type": "integer", "format": "int64"}, "count": {"type": "integer"}, "price": {"type": "number"},
        "share": {"type": "number", "minimum": 0, "maximum": 1}}});
    let bounded = json!({"type": "object", "properties": {
        "share": {"type": "number", "minimum": 0, "maximum": 1}, "page": {"type": "integer", "minimum": 1, "maximum": 100}}});
    let row = r#"{"id": 9007199254740993, "count": 9007199254740994, "price": 1.10, "share": 0.50}"#;
    let served = Served::new(
        json!({}),
        [
            Fixture::new("text", [text(row)]).declaring(declared.clone()),
            Fixture::new("structured", [structured(serde_json::from_str(row).unwrap())]).declaring(declared),
            Fixture::new("bounded", [structured(json!({"share": 0.5}))]).declaring(bounded),
            Fixture::new("observed", [structured(json!({"id": u64::MAX, "count": 1}))]),
        ],
    )
    .await;
    let ada = served.client("ada").await;
    ada.invoke("observed", 0).await;
    let value = json!({"id": "9007199254740993", "count": "9007199254740994", "price": 1.1, "share": 0.5});
    let note = "// Returned integers beyond 2^53 are strings.\n";
    for name in ["text", "structured"] {
        assert_eq!(ada.run(&format!("return await callTool('app:{name}', {{}})")).await, value, "{name}");
        assert_eq!(ada.invoke(name, 0).await["result"], value, "{name}");
        let input = json!({"toolNames": [format!("app:{name}")], "detail": "types"});
        let described = ada.body("codecall:describe", input).await["types"].as_str().unwrap().to_owned();
        let in_script = ada.run(&format!("return getTool('app:{name}').types")).await;
        for types in [described.as_str(), in_script.as_str().unwrap()] {
            assert!(types.contains(note), "{types}");
            assert!(types.contains("id?: number | string") && types.contains("price?: number"), "{types}");
            assert!(!types.contains("price?: number |"), "{types}");
        }
    }
    for (name, is_noted) in [("bounded", false), ("observed", true)] {
        let types = ada.run(&format!("return getTool('app:{name}').types")).await;
        assert_eq!(types.as_str().unwrap().contains(note), is_noted, "{types}");
    }
    let script =
        "const r = await callTool('app:text', {}); return r.count.padStart(3).length + r.price.toFixed(1)";
    let body = ada.body("codecall:execute", json!({"script": script})).await;
    assert_eq!((&body["result"], body.get("warnings")), (&json!("161.1"), None), "{body}");
}

#[tokio::test]
async fn a_tool_that_answers_with_text_keeps_doing_so() {
    let answers = ["one line", "another", "a third", r#"{"a": "file of JSON"}"#, "42"].map(text);
    let served = Served::new(json!({}), [Fixture::new("read", answers)]).await;
    let ada = served.client("ada").await;
    let script =
        "const all = []; for (let n = 0; n < 5; n++) all.push(await callTool('app:read', {n})); return all";
    assert_eq!(
        ada.run(script).await,
        json!(["one line", "another", "a third", r#"{"a": "file of JSON"}"#, "42"])
    );
    assert_eq!(ada.observed("read").await.unwrap().0, json!({"type": "string"}));
}

#[tokio::test]
async fn a_count_in_a_text_is_text_from_the_first_answer_on() {
    let served = Served::new(json!({}), [Fixture::new("run", ["9\n", "a", "9\n"].map(text))]).await;
    let ada = served.client("ada").await;
    for (n, answer) in ["9\n", "a", "9\n"].into_iter().enumerate() {
        assert_eq!(ada.run(&format!("return callTool('app:run', {{n: {n}}})")).await, answer);
        assert_eq!(ada.invoke("run", n).await["result"], answer);
        assert_eq!(ada.observed("run").await.unwrap().0, json!({"type": "string"}));
    }
}

#[tokio::test]
async fn types_name_the_format_of_texts_that_scripts_have_to_parse() {
    let python = "[{'name': 'customers'}]";
    let wrapped = |text: &str| structured(json!({"result": text}));
    let declared =
        json!({"type": "object", "required": ["result"], "properties": {"result": {"type": "string"}}});
    let served = Served::new(
        json!({}),
        [
            Fixture::new("tables", [text(python)]),
            Fixture::new("report", [text("name,city\nAda,London\n"), text("no rows today")]),
            Fixture::new("issues", [wrapped("{\"id\": 1}")]).declaring(declared),
        ],
    )
    .await;
    let ada = served.client("ada").await;
    for name in ["tables", "report", "issues"] {
        ada.invoke(name, 0).await;
    }
    let types = async |name: &str| {
        let input = json!({"toolNames": [format!("app:{name}")], "detail": "types"});
        ada.body("codecall:describe", input).await["types"].as_str().unwrap().to_owned()
    };
    for (name, note) in [
        ("tables", "Promise<string>; // Python literal; observed, 1 answer\n"),
        ("report", "Promise<string>; // CSV; observed, 1 answer\n"),
        ("issues", "Promise<string>; // JSON text"),
    ] {
        let types = types(name).await;
        assert!(types.contains(note), "{types}");
    }
    ada.invoke("report", 1).await;
    assert!(!types("report").await.contains("CSV"));
    let input = json!({"toolNames": ["app:issues"], "detail": "full"});
    assert_eq!(ada.body("codecall:describe", input).await["tools"][0]["observedText"], "JSON text");
    let found = ada.body("codecall:search", json!({"query": "tables"})).await;
    assert!(found["tools"][0]["result"].as_str().unwrap().contains("Python literal"), "{found}");
}

#[tokio::test]
async fn examples_have_the_types_of_inputs_that_were_accepted_and_no_values() {
    let tools = json!([
        {"name": "find", "inputSchema": {"type": "object", "required": ["filter"], "properties": {"filter": {"type": "object"}}}},
        {"name": "run", "inputSchema": {"type": "object"}},
    ]);
    let server = ToolServer::new(tools, |call, _| async move {
        let fails = call.arguments.is_some_and(|input| input.contains_key("wrong"));
        Ok(if fails {
            CallToolResult::error(Vec::new())
        } else {
            CallToolResult::structured(json!({"n": 1}))
        })
    });
    let served = Served::over(json!({}), server).await;
    let (ada, bob) = (served.client("ada").await, served.client("bob").await);
    let described = async |client: &Client, tool: &str| {
        let names = json!([format!("app:{tool}")]);
        let full = client.body("codecall:describe", json!({"toolNames": names})).await;
        let types = client.body("codecall:describe", json!({"toolNames": names, "detail": "types"})).await;
        (full["tools"][0]["usageExamples"].to_string(), types["types"].as_str().unwrap().to_owned())
    };
    assert!(described(&ada, "find").await.0.contains("{\\\"filter\\\":{}}"));
    let input = json!({"filter": {"email": "nightfall@acme.example", "limit": 7}});
    ada.body("codecall:invoke", json!({"tool": "app:find", "input": input})).await;
    ada.run("return await callTool('app:run', {title: 'S3CRET', when: ['S3CRET']})").await;
    ada.body("codecall:invoke", json!({"tool": "app:run", "input": {"wrong": "S3CRET"}})).await;
    let (full, types) = described(&ada, "find").await;
    for shown in [&full, &types] {
        assert!(shown.contains("ada@example.com") && shown.contains("limit"), "{shown}");
        assert!(!shown.contains("nightfall") && !shown.contains('7'), "{shown}");
    }
    assert_eq!(types.matches("// e.g. callTool(").count(), 1, "{types}");
    let (full, types) = described(&ada, "run").await;
    assert!(full.contains("title") && full.contains("when") && types.contains("// e.g. "), "{full} {types}");
    assert!(!full.contains("wrong") && !full.contains("S3CRET"), "{full}");
    // Names of one caller's input are not shown to another.
    for tool in ["find", "run"] {
        let (full, types) = described(&bob, tool).await;
        assert!(
            !full.contains("limit") && !types.contains("email") && !full.contains("title"),
            "{full} {types}"
        );
    }
}

#[tokio::test]
async fn a_first_plan_that_misreads_a_result_of_unknown_shape_is_told_so_with_its_answer() {
    let served = Served::new(
        json!({}),
        [
            Fixture::new(
                "list",
                [structured(json!({"items": [{"id": 1}]})), structured(json!({"items": []}))],
            ),
            Fixture::new("tables", [text("[{'name': 'customers'}]")]),
        ],
    )
    .await;
    let ada = served.client("ada").await;
    let run = async |script: &str| ada.body("codecall:execute", json!({"script": script})).await;
    let careful = run("const r = await callTool('app:list', {}); return r.rows ?? r.items").await;
    assert_eq!((&careful["status"], careful.get("warnings")), (&json!("ok"), None), "{careful}");
    let fresh =
        Served::new(json!({}), [Fixture::new("list", [structured(json!({"items": [{"id": 1}]}))])]).await;
    let bob = fresh.client("bob").await;
    let body = bob.body(
        "codecall:execute",
        json!({"script": "const r = await callTool('app:list', {});\nreturn r.rows"}),
    );
    let body = body.await;
    assert_eq!((&body["status"], &body["result"]), (&json!("ok"), &json!(null)), "{body}");
    assert_eq!(
        body["warnings"],
        json!([{"message": "`rows` was not in the one answer seen of the result of `app:list`; it has `items`",
            "location": {"line": 2, "column": 10}}])
    );
    let body =
        run("for (const table of await callTool('app:tables', {})) console.log(table.name); return 1").await;
    let message = body["warnings"][0]["message"].as_str().unwrap();
    assert!(message.contains("iterating over it gives characters; it is a Python literal"), "{body}");
    // Known by now: the check of the plan says it, once.
    let body = run("return (await callTool('app:tables', {})).map((table) => table.name)").await;
    assert_eq!(
        (&body["status"], body["warnings"].as_array().unwrap().len()),
        (&json!("runtime_error"), 1),
        "{body}"
    );
}

#[tokio::test]
async fn what_a_declared_schema_leaves_open_is_shown_as_it_was_observed() {
    let issue = json!({"type": "object", "required": ["number"], "properties": {
        "number": {"type": "integer"}, "user": {}, "labels": {"type": "array", "items": {}}, "never": {}}});
    let declared = json!({"type": "object", "required": ["result"],
        "properties": {"result": {"type": "array", "items": issue}}});
    let answer =
        json!({"result": [{"number": 1, "user": {"login": "ada"}, "labels": [{"name": "bug"}], "other": 1}]});
    let closed = json!({"type": "object", "properties": {"number": {"type": "integer"}}});
    let served = Served::new(
        json!({}),
        [
            Fixture::new("list", [structured(answer.clone()), structured(answer)]).declaring(declared),
            Fixture::new("closed", [structured(json!({"number": 1}))]).declaring(closed),
        ],
    )
    .await;
    let (ada, bob) = (served.client("ada").await, served.client("bob").await);
    let types = async |client: &Client, tool: &str| {
        let input = json!({"toolNames": [format!("app:{tool}")], "detail": "types"});
        client.body("codecall:describe", input).await["types"].as_str().unwrap().to_owned()
    };
    assert!(types(&ada, "list").await.contains("user?: unknown"));
    ada.invoke("list", 0).await;
    ada.invoke("closed", 0).await;
    let shown = types(&ada, "list").await;
    for part in
        ["login: string", "name: string", "never?: unknown", "number: number", "observed in part, 1 answer\n"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("other"), "what it does not declare is not shown: {shown}");
    let input = json!({"toolNames": ["app:list"], "detail": "full"});
    let full = ada.body("codecall:describe", input).await;
    let item = &full["tools"][0]["observedOutput"]["schema"]["items"];
    assert_eq!(item["required"], json!(["number"]), "{full}");
    assert_eq!(item["properties"]["user"]["properties"]["login"], json!({"type": "string"}), "{full}");
    // Names of one caller's answer are not shown to another.
    assert!(!types(&bob, "list").await.contains("login"));
    assert!(!types(&ada, "closed").await.contains("observed"));
    assert_eq!(ada.observed("closed").await, None);
    // What was observed is shown, and no rule that plans are refused by.
    let run = json!({"script": "const r = await callTool('app:list', {n: 1}); return r[0].user.logn", "dryRun": true});
    let run = ada.body("codecall:execute", run).await;
    assert_ne!(run["status"], "tool_error", "{run}");
}
