//! Saved plans: tools that are scripts.

use std::{collections::BTreeMap, fs, sync::Arc};

use gatewright_codecall::{CodeCallConfig, SavedPlans};
use gatewright_core::{
    App, AppOptions, LocalApp, Principal, Scopes, ToolOverride,
    rmcp::model::{CallToolResult, Tool},
};
use serde_json::{Value, json};

use super::support::{Client, Fixture, Served, server, structured, text};

/// A gateway with the app `app` and the app `plans`, whose files are in a folder.
struct Planned {
    served: Served,
    plans: Arc<SavedPlans>,
    config: CodeCallConfig,
    folder: tempfile::TempDir,
}

/// A plan of this name, with more fields of its header.
fn plan(name: &str, fields: &str, script: &str) -> String {
    format!(
        "/* plan\nname: {name}\ndescription: A plan of the tests called {name}.\n{fields}\n*/\n{script}\n"
    )
}

fn fixtures() -> Vec<Fixture> {
    let rows = structured(json!({"rows": [{"id": 1, "due": 30}, {"id": 2, "due": 12}]}));
    let fails = json!({"isError": true, "content": [{"type": "text", "text": "no such order"}],
        "structuredContent": {"code": "NOT_FOUND"}});
    vec![
        Fixture::new("orders", [rows, text("x".repeat(700_000)), fails]),
        Fixture::new("secret", [structured(json!({"key": 7}))]),
    ]
}

impl Planned {
    async fn new(config: Value, files: &[(&str, String)]) -> Self {
        let mut config = config;
        config["mode"] = "metadata_driven".into();
        let config: CodeCallConfig = serde_json::from_value(config).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let (plans, findings) = SavedPlans::open("plans", folder.path().to_owned().into(), &config).unwrap();
        assert!(findings.is_empty(), "{findings:#?}");
        let guarded = ToolOverride { scopes: vec!["secret".to_owned()], ..ToolOverride::default() };
        let options =
            AppOptions { tools: BTreeMap::from([("secret".to_owned(), guarded)]), ..AppOptions::default() };
        let app: Arc<dyn App> = Arc::new(LocalApp::start(server(fixtures())).await.unwrap());
        let apps =
            vec![("plans", plans.clone() as Arc<dyn App>, AppOptions::default()), ("app", app, options)];
        let served = Served::of_apps(config.clone(), apps, None);
        served.code_call.run_plans_of(&plans);
        Self { served, plans, config, folder }
    }

    async fn client(&self) -> Client {
        self.served.client("ada").await
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.folder.path().join(file), text).unwrap();
    }

    fn tool(&self, name: &str) -> Tool {
        let catalog = self.plans.catalog();
        catalog.tools.iter().find(|tool| tool.name == name).unwrap_or_else(|| panic!("no {name}")).clone()
    }

    fn names(&self) -> Vec<String> {
        self.plans.catalog().tools.iter().map(|tool| tool.name.to_string()).collect()
    }
}

fn code(result: &CallToolResult) -> &str {
    assert_eq!(result.is_error, Some(true), "{result:?}");
    assert_eq!(result.structured_content, None);
    result.meta.as_ref().and_then(|meta| meta.0["code"].as_str()).unwrap()
}

fn message(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

const DUE: &str = "input:\n  properties: { least: { type: number, description: Smallest amount that counts } }\n  required: [least]\n\
                   output:\n  type: object\n  properties: { total: { type: number } }\n  required: [total]";
const SUM: &str = "const { least } = codecallContext;\nconst { rows } = await callTool('app:orders', {});\n\
                   const due: number[] = rows.map((row) => row.due).filter((due) => due >= least);\n\
                   return { total: due.reduce((sum, due) => sum + due, 0) };";

#[tokio::test]
async fn a_plan_is_found_described_and_called_in_every_way() {
    let planned = Planned::new(json!({}), &[("due.ts", plan("amount_due", DUE, SUM))]).await;
    let client = planned.client().await;
    let found = client.body("codecall:search", json!({"query": "plan of the tests amount due"})).await;
    assert!(found.to_string().contains("plans:amount_due"), "{found}");
    let types =
        client.body("codecall:describe", json!({"toolNames": ["plans:amount_due"], "detail": "types"})).await;
    let types = types["types"].as_str().unwrap();
    assert!(types.contains("least: number") && types.contains("total: number"), "{types}");
    let listed = client.0.peer().list_all_tools().await.unwrap();
    assert!(listed.iter().any(|tool| tool.name == "plans:amount_due"));

    let direct = client.call("plans:amount_due", json!({"least": 20})).await;
    assert_eq!(direct.structured_content, Some(json!({"total": 30})));
    assert_eq!(message(&direct), r#"{"total":30}"#);
    let invoked =
        client.body("codecall:invoke", json!({"tool": "plans:amount_due", "input": {"least": 10}})).await;
    assert_eq!(invoked, json!({"status": "ok", "result": {"total": 42}}));
    let both = client
        .run("return await Promise.all([0, 20].map((least) => callTool('plans:amount_due', { least })))")
        .await;
    assert_eq!(both, json!([{"total": 42}, {"total": 30}]));
    let bad = client.call("plans:amount_due", json!({"least": "many"})).await;
    assert_eq!(code(&bad), "VALIDATION_ERROR");
}

#[tokio::test]
async fn an_object_is_structured_and_anything_else_is_a_result_beside_its_json() {
    let script = "return JSON.parse(codecallContext.json)";
    let input = "input: { properties: { json: { type: string } }, required: [json] }";
    let numbers = format!("{input}\noutput: {{ type: array, items: {{ type: number }} }}");
    let files = [("any.js", plan("any", input, script)), ("numbers.js", plan("numbers", &numbers, script))];
    let planned = Planned::new(json!({}), &files).await;
    let client = planned.client().await;
    let objects = [r#"{"a":{"b":1}}"#, r#"{"result":5}"#, r#"{"result":{"result":1}}"#];
    for json in ["[1,2]", "7", "null", r#""42""#, r#""a text""#].into_iter().chain(objects) {
        let value: Value = serde_json::from_str(json).unwrap();
        let direct = client.call("plans:any", json!({"json": json})).await;
        let stays = value.is_object() && value.get("result").is_none();
        let structured = if stays { value.clone() } else { json!({"result": value}) };
        assert_eq!(direct.structured_content, Some(structured));
        assert_eq!(message(&direct), json);
        let script = format!("return await callTool('plans:any', {{ json: {json:?} }})");
        assert_eq!(client.run(&script).await, value, "{json}");
        let input = json!({"tool": "plans:any", "input": {"json": json}});
        assert_eq!(client.body("codecall:invoke", input).await["result"], value, "{json}");
    }
    let schema = planned.tool("numbers").output_schema.unwrap();
    assert_eq!(schema["properties"]["result"]["type"], "array");
    let direct = client.call("plans:numbers", json!({"json": "[1,2]"})).await;
    assert_eq!(direct.structured_content, Some(json!({"result": [1, 2]})));
    assert_eq!(client.run("return (await callTool('plans:numbers', { json: '[1,2]' })).length").await, 2);
    let misfit = client.call("plans:numbers", json!({"json": "[1,\"two\"]"})).await;
    assert_eq!(code(&misfit), "INVALID_OUTPUT");
    assert!(message(&misfit).contains("/result/1"), "{}", message(&misfit));
}

#[tokio::test]
async fn a_plan_has_the_rights_of_its_caller_and_no_others() {
    let input = "input: { properties: { tool: { type: string } } }";
    let files = [
        ("read.js", plan("read_secret", "", "return await callTool('app:secret', {})")),
        ("any.js", plan("any", input, "return await callTool(codecallContext.tool, {})")),
    ];
    let planned = Planned::new(json!({}), &files).await;
    let of = async |scopes: &str| {
        let principal = Principal {
            subject: "ada".into(),
            client_id: None,
            scopes: Scopes::parse(scopes),
            ..Principal::local()
        };
        Client(planned.served.connect(principal, ()).await)
    };
    let allowed = of("secret").await.call("plans:read_secret", json!({})).await;
    assert_eq!(allowed.structured_content, Some(json!({"key": 7})));
    let client = of("").await;
    let denied = client.call("plans:read_secret", json!({})).await;
    assert_eq!(code(&denied), "ACCESS_DENIED");
    assert_eq!(denied.meta.unwrap().0["requiredScopes"], json!(["secret"]));
    let caught = "try { await callTool('plans:read_secret') } catch (error) { return error.code }";
    assert_eq!(client.run(caught).await, "ACCESS_DENIED");
    for tool in ["codecall:search", "codecall_execute"] {
        let result = client.call("plans:any", json!({"tool": tool})).await;
        assert_eq!(code(&result), "SELF_REFERENCE_BLOCKED");
    }
}

#[tokio::test]
async fn an_error_of_a_plan_has_the_code_of_its_cause_and_a_place() {
    let files = [
        ("a.js", plan("missing", "", "return await callTool('app:orders', { n: 2 })")),
        ("b.js", plan("throws", "", "const rows = null;\nreturn rows.length")),
        (
            "c.js",
            plan("unknown", "", "const name = 'app:' + codecallContext.x;\nreturn await callTool(name)"),
        ),
        ("d.js", plan("slow", "", "let n = 0; while (n >= 0) n = (n + 1) % 1000; return n")),
    ];
    let planned =
        Planned::new(json!({"vm": {"timeoutMs": 400, "maxIterations": 4_000_000_000_u64}}), &files).await;
    let client = planned.client().await;
    for (name, expected, said) in [
        ("missing", "NOT_FOUND", "plan `plans:missing`, line 6: app:orders: no such order"),
        ("throws", "EXECUTION_ERROR", "plan `plans:throws`, line 7: TypeError: "),
        ("unknown", "TOOL_NOT_FOUND", "line 7: app:undefined: tool `app:undefined` does not exist"),
        ("slow", "TIMEOUT", "time limit"),
    ] {
        let result = client.call(&format!("plans:{name}"), json!({})).await;
        assert_eq!(code(&result), expected);
        assert!(message(&result).contains(said), "{}", message(&result));
    }
    let caught = "try { await callTool('plans:missing') } catch (error) { return [error.code, error.toolName ?? 'plans:missing'] }";
    assert_eq!(client.run(caught).await, json!(["NOT_FOUND", "plans:missing"]));
    // The limit of the script ends the plan that it waits for.
    let body =
        client.body("codecall:execute", json!({"script": "return await callTool('plans:slow')"})).await;
    assert!(body["status"] == "timeout" || body["error"]["code"] == "TIMEOUT", "{body}");
    assert_eq!(client.run("return 1").await, 1, "and the workers are there for others");
}

#[tokio::test]
async fn calls_of_a_script_and_of_its_plans_count_together() {
    let three = "for (let i = 0; i < 3; i++) await callTool('app:orders', {});\nreturn 3";
    let many = "const open = [];\nfor (let i = 0; i < 9; i++) open.push(callTool('app:orders', {}));\nreturn (await Promise.all(open)).length";
    let files = [("three.js", plan("three", "", three)), ("many.js", plan("many", "", many))];
    let planned = Planned::new(json!({"vm": {"maxToolCalls": 8}}), &files).await;
    let client = planned.client().await;
    let run = async |script: &str| client.body("codecall:execute", json!({"script": script})).await;
    let body = run("return await callTool('plans:three') + await callTool('plans:three')").await;
    assert_eq!(body["result"], 6, "two calls of plans and three of each: {body}");
    for script in [
        "await callTool('plans:three'); await callTool('plans:three'); await callTool('app:orders'); return 1",
        "try { await callTool('plans:three'); await callTool('plans:three'); await callTool('plans:three'); } catch (error) { } \
         try { await callTool('app:orders') } catch (error) { } return 1",
        "const all = [1, 2, 3].map(() => callTool('plans:three')); await Promise.allSettled(all); await callTool('app:orders'); return 1",
    ] {
        let body = run(script).await;
        assert_eq!(body["error"]["name"], "ToolCallLimitError", "{script}: {body}");
        assert!(body["error"]["message"].as_str().unwrap().contains("codecall.vm.maxToolCalls"), "{body}");
    }
    let direct = client.call("plans:many", json!({})).await;
    assert!(message(&direct).contains("ToolCallLimitError"), "{}", message(&direct));
    let counted =
        run("let n = 0; try { await callTool('plans:many') } catch (error) { n = 1 } return n").await;
    assert_eq!(counted["result"], 1, "{counted}");
}

#[tokio::test]
async fn memory_of_a_script_and_of_its_plans_counts_together() {
    let files = [(
        "big.js",
        plan(
            "big",
            "input: { properties: { pad: { type: string } } }",
            "return (await callTool('app:orders', { n: 1 })).length",
        ),
    )];
    let planned = Planned::new(json!({"vm": {"hostMemoryMib": 1}}), &files).await;
    let client = planned.client().await;
    assert_eq!(message(&client.call("plans:big", json!({})).await), "700000");
    assert_eq!(client.run("return await callTool('plans:big', { pad: 'x' })").await, 700_000);
    let script = "return await callTool('plans:big', { pad: 'x'.repeat(400000) })";
    let body = client.body("codecall:execute", json!({"script": script})).await;
    assert!(body["error"].to_string().contains("HostLimitError"), "{body}");
    // What ended has given its memory back.
    let twice = "await callTool('plans:big', {}); return await callTool('plans:big', {})";
    assert_eq!(client.run(twice).await, 700_000);
}

#[tokio::test]
async fn plans_call_plans_to_a_depth_and_never_themselves_though_there_is_one_worker() {
    let calls =
        |name: &str, other: &str| plan(name, "", &format!("return 1 + await callTool('plans:{other}')"));
    let files = [
        ("a.js", calls("a", "b")),
        ("b.js", calls("b", "c")),
        ("c.js", plan("c", "", "return 1")),
        ("deep.js", calls("deep", "a")),
        ("ping.js", calls("ping", "pong")),
        (
            "pong.js",
            plan("pong", "", "try { return await callTool('plans:ping') } catch (error) { return 'caught' }"),
        ),
        (
            "own.js",
            plan(
                "own",
                "input: { properties: { name: { type: string } } }",
                "const name = 'plans:' + codecallContext.name;\nreturn await callTool(name, { name: 'own' })",
            ),
        ),
    ];
    let planned = Planned::new(json!({}), &files).await;
    let client = planned.client().await;
    assert_eq!(client.run("return 1 + await callTool('plans:a')").await, 4);
    assert_eq!(message(&client.call("plans:a", json!({})).await), "3");
    let deep = client.call("plans:deep", json!({})).await;
    assert_eq!(code(&deep), "PLAN_TOO_DEEP");
    let caught = client.run("try { await callTool('plans:deep') } catch (error) { return error.code }").await;
    assert_eq!(caught, "PLAN_TOO_DEEP");
    let circle = client.call("plans:ping", json!({})).await;
    assert_eq!(code(&circle), "SELF_REFERENCE_BLOCKED");
    assert!(message(&circle).contains("cannot be called from within itself"), "{}", message(&circle));
    let own = client.call("plans:own", json!({"name": "own"})).await;
    assert_eq!(code(&own), "SELF_REFERENCE_BLOCKED");
    let many = "return (await Promise.all([1, 2, 3, 4, 5, 6].map(() => callTool('plans:a')))).length";
    assert_eq!(client.run(many).await, 6, "plans wait for each other's worker");
}

#[tokio::test]
async fn a_rehearsal_runs_plans_as_rehearsals_and_lists_their_calls_beside_its_own() {
    let script =
        "const { rows } = await callTool('app:orders', {}); return rows === undefined ? 'assumed' : 'real'";
    let files = [
        ("a.js", plan("says_safe", "annotations: { readOnlyHint: true }", script)),
        ("b.js", plan("has_effects", "", "return await callTool('plans:says_safe')")),
    ];
    let planned = Planned::new(json!({}), &files).await;
    let client = planned.client().await;
    let of = |called: &str| format!("return await callTool('plans:{called}')");
    for (called, within) in [("says_safe", 1), ("has_effects", 2)] {
        let script = of(called);
        for dry_run in [json!(true), json!("offline")] {
            let input = json!({"script": script, "dryRun": dry_run});
            let tried = client.body("codecall:execute", input).await;
            assert_eq!(tried["result"], "assumed", "{tried}");
            let report = &tried["dryRun"];
            assert_eq!((&report["certain"], &report["assumed"]), (&json!(false), &json!(1)), "{tried}");
            let calls = report["calls"].as_array().unwrap();
            assert_eq!(calls.len(), within + 1, "{tried}");
            assert_eq!(calls[0], json!({"name": format!("plans:{called}"), "made": true}));
            let last = &calls[within];
            assert_eq!(
                (&last["name"], &last["made"], &last["plan"]),
                (&json!("app:orders"), &json!(false), &json!("plans:says_safe"))
            );
        }
    }
    for called in ["says_safe", "has_effects"] {
        assert_eq!(client.run(&of(called)).await, "real");
    }
}

#[tokio::test]
async fn annotations_follow_from_the_tools_that_a_plan_names() {
    let annotated = "annotations: { readOnlyHint: true, idempotentHint: true }";
    let files = [
        ("none.js", plan("none", "", "return 1")),
        ("orders.js", plan("orders", "", "return await callTool('app:orders', {})")),
        ("other.js", plan("other", "", "return await callTool('plans:none', {})")),
        ("computed.js", plan("computed", "input: {}", "return await callTool(codecallContext.tool, {})")),
        ("said.js", plan("said", annotated, "return await callTool('app:orders', {})")),
    ];
    let planned = Planned::new(json!({}), &files).await;
    // A change of the lists is followed in the background.
    while planned.tool("other").annotations.unwrap().read_only_hint != Some(true) {
        tokio::task::yield_now().await;
    }
    let hints = |name: &str| {
        let hints = planned.tool(name).annotations.unwrap();
        (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint)
    };
    assert_eq!(hints("none"), (Some(true), None, None));
    assert_eq!(hints("orders"), (Some(false), Some(true), None));
    assert_eq!(hints("computed"), (Some(false), Some(true), None));
    assert_eq!(hints("said"), (Some(true), None, Some(true)));
}

#[tokio::test]
async fn reading_again_takes_over_what_is_good_and_keeps_the_last_good_version_of_the_rest() {
    let files = [("a.js", plan("a", "", "return 1")), ("b.js", plan("b", "", "return 1"))];
    let planned = Planned::new(json!({}), &files).await;
    let client = planned.client().await;
    let again = || planned.plans.reload(&planned.config).unwrap();
    assert!(!again().any());

    planned.write("a.js", &plan("a", "", "return 2"));
    planned.write("b.js", "/* plan\nname: b\n*/\nreturn (");
    planned.write("c.js", &plan("c", "", "return 3"));
    let changes = again();
    assert_eq!(
        (changes.added, changes.changed, changes.removed.len()),
        (vec!["c".to_owned()], vec!["a".to_owned()], 0)
    );
    let found: Vec<String> = changes.findings.iter().map(ToString::to_string).collect();
    assert!(found.len() == 2 && found.iter().all(|one| one.contains("b.js: line ")), "{found:#?}");
    assert_eq!(
        client
            .run("return [await callTool('plans:a'), await callTool('plans:b'), await callTool('plans:c')]")
            .await,
        json!([2, 1, 3])
    );

    fs::remove_file(planned.folder.path().join("a.js")).unwrap();
    planned.write("d.js", &plan("c", "", "return 4"));
    let changes = again();
    assert_eq!(changes.removed, ["a"]);
    assert!(changes.findings.iter().any(|one| one.to_string().contains("`c` is the name of another plan")));
    assert_eq!(planned.names(), ["b", "c"]);
    assert_eq!(client.run("return await callTool('plans:c')").await, 3);

    fs::remove_dir_all(planned.folder.path()).unwrap();
    assert!(planned.plans.reload(&planned.config).is_err());
    assert_eq!(planned.names(), ["b", "c"], "a folder that is gone takes no plan away");
}

#[test]
fn every_problem_of_a_file_is_found_with_its_line_and_good_files_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let long = format!("/* plan\ndescription: Long.\n*/\nreturn '{}'", "x".repeat(70_000));
    for (file, text) in [
        ("bad-input.js", plan("a", "input: { type: array }", "return 1")),
        ("bad-name.js", plan("a/b", "", "return 1")),
        ("bad-output.js", plan("c", "output: { type: nothing }", "return 1")),
        ("bad-schema.js", plan("d", "input:\n  properties:\n    id: { type: strin }", "return 1")),
        ("blank.js", "/* plan\nname: e\ndescription: '  '\n*/\nreturn 1".to_owned()),
        ("good name.js", plan("good", "", "return await callTool('app:x', {})")),
        ("hard.js", plan("hard", "input:\n  properties:\n    id: { pattern: '^(?!a)' }", "return 1")),
        ("illegal.js", plan("f", "", "return eval('1')")),
        ("late.js", plan("late", "", "callTool('app:x', {});\nreturn 1")),
        ("long.js", long),
        ("meta.js", plan("g", "", "return await callTool('codecall:execute', {})")),
        ("no header.js", "return 1".to_owned()),
        ("own.js", plan("own", "", "return await callTool('plans:own', {})")),
        ("plan b.js", "/* plan\ndescription: Has no name.\n*/\nreturn 1".to_owned()),
        ("syntax.js", plan("h", "", "return (")),
    ] {
        fs::write(folder.path().join(file), text).unwrap();
    }
    fs::write(folder.path().join("binary.js"), [0xff, 0xfe, 0]).unwrap();
    let report =
        SavedPlans::check("plans", &folder.path().to_owned().into(), &CodeCallConfig::default()).unwrap();
    let prefix = format!("{}/", folder.path().display());
    let found: Vec<String> =
        report.findings.iter().map(|finding| finding.to_string().replace(&prefix, "")).collect();
    for expected in [
        "bad-input.js: line 4: input.type: must be `object`",
        "bad-name.js: line 2: name: tool name `a/b` must be 1 to 64 letters",
        "bad-output.js: line 4: output: is not a JSON Schema",
        "bad-schema.js: line 4: input: is not a JSON Schema",
        "binary.js: line 1: it cannot be read",
        "blank.js: line 3: description: must say what the plan does",
        "hard.js: line 4: input: has a regular expression, \"^(?!a)\", that is not checked",
        "illegal.js: line 6: IllegalBuiltinAccess",
        "long.js: line 1: ScriptTooLarge",
        "meta.js: line 6: SelfReferenceBlocked",
        "no header.js: line 1: a plan begins with its header",
        "own.js: line 6: the plan calls itself",
        "plan b.js: line 2: name: tool name `plan b` must be",
        "syntax.js: line ",
    ] {
        assert_eq!(found.iter().filter(|one| one.starts_with(expected)).count(), 1, "{expected}: {found:#?}");
    }
    assert_eq!(found.len(), 14, "{found:#?}");
    assert_eq!(report.plans, ["good", "late"]);
    assert_eq!(report.warnings.len(), 1);
    let warning = report.warnings[0].to_string();
    assert!(warning.contains("late.js: line 6: this tool call is not awaited"), "{warning}");
}

#[tokio::test]
async fn after_a_search_the_call_of_a_plan_counts_and_not_those_that_it_makes() {
    let files = [("read.js", plan("read_orders", "", "return await callTool('app:orders', {n: 0})"))];
    let planned = Planned::new(json!({"search": {"usage": "on", "meaning": "off"}}), &files).await;
    let client = planned.client().await;
    let search = json!({"query": "kundenkonto"});
    let found = client.body("codecall:search", search.clone()).await;
    assert_eq!(found["tools"], json!([]));
    assert_eq!(client.run("return (await callTool('plans:read_orders', {})).rows.length").await, 2);
    let found = client.body("codecall:search", search).await;
    let names: Vec<_> = found["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["plans:read_orders"]);
}
