//! Searches over apps that come and go.

use futures::FutureExt as _;
use serde_json::{Value, json};

use super::*;
use crate::testing::{add, add_waiting_for_sign_in, anybody, code_mode};

async fn search(code_mode: &CodeCall, input: Value) -> Value {
    code_mode.search(serde_json::from_value(input).unwrap(), &anybody()).await.unwrap()
}

async fn describe(code_mode: &CodeCall, names: &[&str]) -> Value {
    code_mode.describe(serde_json::from_value(json!({"toolNames": names})).unwrap(), &anybody()).await
}

fn tools(names: impl IntoIterator<Item = String>) -> Value {
    let tool = |name: String| json!({"name": name, "description": format!("Does {name}. And more."), "inputSchema": {"type": "object"}});
    names.into_iter().map(tool).collect()
}

fn named(names: &[&str]) -> Value {
    tools(names.iter().map(|name| (*name).to_owned()))
}

#[tokio::test(start_paused = true)]
async fn a_search_at_once_waits_for_apps_that_make_their_first_connection() {
    let code_mode = code_mode();
    let app = add(&code_mode, "crm");
    let up = async {
        tokio::task::yield_now().await;
        app.up(named(&["users_list", "users_get"]), None);
    };
    let (found, ()) = tokio::join!(search(&code_mode, json!({"query": "users list"})), up);
    assert_eq!(found["totalIndexed"], 2, "{found}");
    assert_eq!(found["tools"][0]["name"], "crm:users_list");
    assert!(found.get("unavailable").is_none());
}

#[tokio::test(start_paused = true)]
async fn apps_that_are_starting_or_down_are_named_and_their_tools_are_not_said_to_be_missing() {
    let code_mode = code_mode();
    let (_starting, down, up) = (add(&code_mode, "slow"), add(&code_mode, "gone"), add(&code_mode, "crm"));
    down.0.down("connection refused");
    up.up(named(&["users_list"]), None);
    let found = search(&code_mode, json!({"query": "users"})).await;
    assert_eq!(found["tools"][0]["name"], "crm:users_list");
    let codes: Vec<_> =
        found["unavailable"].as_array().unwrap().iter().map(|app| (&app["appId"], &app["code"])).collect();
    assert_eq!(
        codes,
        [(&json!("slow"), &json!("UPSTREAM_STARTING")), (&json!("gone"), &json!("UPSTREAM_DOWN"))]
    );
    assert_eq!(found["unavailable"][1].get("message"), None, "there are results");
    let only = search(&code_mode, json!({"query": "users", "filter": {"appIds": ["gone"]}})).await;
    assert_eq!(only["unavailable"].as_array().unwrap().len(), 1, "{only}");
    assert!(only["unavailable"][0]["message"].as_str().unwrap().contains("connection refused"));

    let described =
        describe(&code_mode, &["slow:x", "gone_y", "crm:nope", "nobody:z", "codecall:search"]).await;
    assert_eq!(described["notFound"], json!(["crm:nope", "nobody:z", "codecall:search"]));
    assert_eq!(described["unavailable"][0]["code"], "UPSTREAM_STARTING");
    assert_eq!(described["unavailable"][1]["name"], "gone_y");
    for (name, code) in
        [("slow:x", "UPSTREAM_STARTING"), ("gone:y", "UPSTREAM_DOWN"), ("crm:nope", "TOOL_NOT_FOUND")]
    {
        let error = code_mode.invoker.find(name, &anybody()).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert_eq!(error.to_string().contains("does not exist"), code == "TOOL_NOT_FOUND");
    }
}

#[tokio::test(start_paused = true)]
async fn five_results_of_ordinary_tools_take_less_than_2000_bytes() {
    let code_mode = code_mode();
    add(&code_mode, "t").up(serde_json::from_str(include_str!("../examples/fixtures.json")).unwrap(), None);
    add(&code_mode, "github")
        .up(serde_json::from_str(include_str!("../declare/fixtures.json")).unwrap(), None);
    for query in
        ["list issues of a repository", "search code, read a file", "create an event, send a payment"]
    {
        let found = search(&code_mode, json!({"query": query, "topK": 5})).await;
        assert!(found["tools"].as_array().unwrap().len() >= 4, "{found}");
        let size = found.to_string().len();
        assert!(size < 2_000, "{size} bytes: {found}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_search_that_finds_nothing_says_how_to_go_on() {
    let code_mode = code_mode();
    add(&code_mode, "crm").up(named(&["users_list"]), None);
    let found = search(&code_mode, json!({"query": "zeppelin"})).await;
    assert_eq!(
        (&found["tools"], found["hint"].as_str().unwrap().contains("without query")),
        (&json!([]), true)
    );
    assert!(search(&code_mode, json!({"query": "users"})).await.get("hint").is_none());
}

#[tokio::test(start_paused = true)]
async fn an_app_that_waits_for_a_sign_in_is_named_in_searches_descriptions_and_errors_with_the_tool_to_call()
{
    let code_mode = code_mode();
    add_waiting_for_sign_in(&code_mode, "notes");
    add(&code_mode, "crm").up(named(&["users_list"]), None);
    let waits = |one: &Value| {
        assert_eq!(one["code"], "AUTHORIZATION_REQUIRED", "{one}");
        let message = one["message"].as_str().unwrap();
        assert!(message.ends_with("app `notes` waits for your sign-in; call `notes:authorize`"), "{one}");
    };
    for input in [json!({"query": "users"}), json!({}), json!({"filter": {"appIds": ["notes"]}})] {
        let found = search(&code_mode, input).await;
        assert_eq!(found["unavailable"].as_array().unwrap().len(), 1, "{found}");
        assert_eq!(found["unavailable"][0]["appId"], "notes");
        waits(&found["unavailable"][0]);
    }
    let described = describe(&code_mode, &["notes:read", "notes:authorize"]).await;
    assert_eq!(described["tools"][0]["name"], "notes:authorize");
    assert_eq!(
        (&described["unavailable"][0]["name"], described.get("notFound")),
        (&json!("notes:read"), None)
    );
    waits(&described["unavailable"][0]);
    let error = code_mode.invoker.find("notes:read", &anybody()).await.unwrap_err();
    waits(&json!({"code": error.code(), "message": error.to_string()}));
}

#[tokio::test(start_paused = true)]
async fn without_a_query_apps_are_listed_with_one_line_each() {
    let code_mode = code_mode();
    let (crm, notes) = (add(&code_mode, "crm"), add(&code_mode, "notes"));
    crm.up(named(&["users_list", "users_get"]), Some("Customers of the shop. They are many."));
    notes.up(named(&["read", "write"]), None);
    for input in [json!({}), json!({"query": " "}), json!({"filter": {}})] {
        let listed = search(&code_mode, input).await;
        assert_eq!(
            listed["apps"],
            json!([
                {"appId": "crm", "description": "Customers of the shop", "tools": 2},
                {"appId": "notes", "description": "read, write", "tools": 2}
            ])
        );
        assert_eq!((&listed["tools"], &listed["totalIndexed"]), (&json!([]), &json!(4)));
    }
}

#[tokio::test(start_paused = true)]
async fn the_tools_of_an_app_are_listed_by_name_page_by_page_each_once() {
    let code_mode = code_mode();
    let (many, other) = (add(&code_mode, "many"), add(&code_mode, "other"));
    many.up(tools((0..60).map(|n| format!("tool_{n:02}"))), None);
    other.up(named(&["x"]), None);
    let mut seen = Vec::new();
    let mut input = json!({"filter": {"appIds": ["many"]}});
    loop {
        let page = search(&code_mode, input.clone()).await;
        let tools = page["tools"].as_array().unwrap();
        assert!(tools.len() <= 25 && page["totalIndexed"] == 61);
        seen.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        match page.get("nextCursor") {
            Some(next) => input["cursor"] = next.clone(),
            None => break,
        }
    }
    assert_eq!(seen, (0..60).map(|n| format!("many:tool_{n:02}")).collect::<Vec<_>>());
    let first = search(&code_mode, json!({"filter": {"appIds": ["many"]}, "topK": 11})).await;
    input["topK"] = json!(3);
    input["cursor"] = first["nextCursor"].clone();
    let page = search(&code_mode, input).await;
    assert_eq!(
        (page["tools"][0]["name"].as_str(), page["tools"].as_array().unwrap().len()),
        (Some("many:tool_11"), 3)
    );
    let refused =
        async |input| code_mode.search(serde_json::from_value(input).unwrap(), &anybody()).await.unwrap_err();
    assert!(refused(json!({"query": "tool", "cursor": "a"})).await.contains("cursor"));
    for cursor in [json!("many:tool_10"), json!(""), json!("zzz"), first["nextCursor"].clone()] {
        let why = refused(json!({"cursor": cursor})).await;
        assert!(why.contains("list of apps") && why.contains("leave `cursor` out"), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_app_is_said_to_be_so_with_the_nearest() {
    let code_mode = code_mode();
    add(&code_mode, "github").up(named(&["get_me"]), None);
    for input in [
        json!({"filter": {"appIds": ["githb", "zzz"]}}),
        json!({"query": "me", "filter": {"appIds": ["githb", "zzz"]}}),
    ] {
        let found = search(&code_mode, input).await;
        assert_eq!(found["unknownApps"], json!([{"appId": "githb", "nearest": "github"}, {"appId": "zzz"}]));
        assert_eq!(found["tools"], json!([]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_search_finds_what_an_app_has_just_added() {
    let code_mode = code_mode();
    let app = add(&code_mode, "crm");
    app.up(named(&["users_list"]), None);
    search(&code_mode, json!({"query": "users"})).await;
    for n in 0..5 {
        let name = format!("thing{n}_show");
        app.up(named(&["users_list", &name]), None);
        while code_mode.invoker.registry().operator_snapshot().tool(&format!("crm:{name}")).is_none() {
            tokio::task::yield_now().await;
        }
        let found = search(&code_mode, json!({"query": name})).await;
        assert_eq!(found["tools"][0]["name"], format!("crm:{name}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_hit_is_one_short_line_with_its_parameters_and_a_mark_if_it_destroys() {
    let code_mode = code_mode();
    let properties: serde_json::Map<_, _> =
        (0..200).map(|n| (format!("parameter_{n}"), json!({"type": "string"}))).collect();
    add(&code_mode, "a").up(
        json!([
            {"name": "users_remove", "description": format!("Removes users {}", "for good ".repeat(100)),
             "inputSchema": {"type": "object", "properties": {"note": {}, "id": {}}, "required": ["id"]}},
            {"name": "users_wipe", "description": "Wipes users. All.", "annotations": {"destructiveHint": true},
             "inputSchema": {"type": "object"}},
            {"name": "users_remove_view", "description": "Users", "annotations": {"readOnlyHint": true},
             "inputSchema": {"type": "object", "properties": properties}},
        ]),
        None,
    );
    let found = search(&code_mode, json!({"query": "users"})).await;
    let hit = |name: &str| {
        found["tools"].as_array().unwrap().iter().find(|hit| hit["name"] == name).unwrap().clone()
    };
    let remove = hit("a:users_remove");
    assert_eq!(
        (&remove["input"], &remove["destructive"]),
        (&json!("{ id: unknown; note?: unknown }"), &json!(true))
    );
    assert!(remove["description"].as_str().unwrap().chars().count() <= 160);
    assert_eq!(
        (&hit("a:users_wipe")["destructive"], &hit("a:users_wipe")["description"]),
        (&json!(true), &json!("Wipes users"))
    );
    let view = hit("a:users_remove_view");
    assert!(view.get("destructive").is_none());
    assert!(
        view["parameters"].as_str().unwrap().len() < 200
            && view["parameters"].as_str().unwrap().ends_with(", …")
    );
}

#[tokio::test(start_paused = true)]
async fn hits_with_short_types_are_declared_so_that_they_need_not_be_described() {
    let code_mode = code_mode();
    let many: serde_json::Map<_, _> = (0..13).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    let tree = json!({"type": "object", "required": ["tree"], "properties": {"tree": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}});
    add(&code_mode, "a").up(
        json!([
            {"name": "users_get", "description": "Gets users",
             "inputSchema": {"type": "object", "required": ["id"], "properties": {
                "id": {"type": "string", "description": "Id of users"},
                "day": {"type": "string", "format": "date"}, "limit": {"type": "integer", "default": 10}}},
             "outputSchema": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
            {"name": "users_many", "description": "Gets users", "inputSchema": {"type": "object", "properties": many}},
            {"name": "users_tree", "description": "Gets users", "inputSchema": tree},
            {"name": "users_none", "description": "Gets users", "inputSchema": {"type": "object", "properties": {}}},
        ]),
        None,
    );
    let found = search(&code_mode, json!({"query": "gets users", "topK": 5})).await;
    let hit = |name: &str| {
        found["tools"].as_array().unwrap().iter().find(|hit| hit["name"] == name).unwrap().clone()
    };
    let get = hit("a:users_get");
    assert_eq!(get["input"], "{\n id: string;\n day?: string; // date\n limit?: number; // default 10\n}");
    assert_eq!((&get["result"], get.get("parameters")), (&json!("{ name: string }"), None));
    assert_eq!(hit("a:users_none")["input"], "{}");
    for (name, parameters) in [("a:users_many", "p0?, p1?"), ("a:users_tree", "tree")] {
        let hit = hit(name);
        assert!(
            hit.get("input").is_none() && hit["parameters"].as_str().unwrap().starts_with(parameters),
            "{hit}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn hits_far_behind_the_best_are_left_out_unless_the_caller_says_how_many() {
    let code_mode = code_mode();
    add(&code_mode, "a").up(
        json!([
            {"name": "convert_time", "description": "Convert a time between time zones", "inputSchema": {"type": "object"}},
            {"name": "get_info", "description": "Returns metadata with times of a file on disk and its owner between calls", "inputSchema": {"type": "object"}},
        ]),
        None,
    );
    let names = |found: &Value| found["tools"].as_array().unwrap().len();
    let query = "convert a time between time zones";
    assert_eq!(names(&search(&code_mode, json!({"query": query})).await), 1);
    assert_eq!(names(&search(&code_mode, json!({"query": query, "topK": 5})).await), 2);
}

#[tokio::test(start_paused = true)]
async fn sentences_that_all_tools_of_an_app_share_are_left_out() {
    let code_mode = code_mode();
    let tool = |name: &str, about: &str| {
        json!({"name": name, "inputSchema": {"type": "object"},
            "description": format!("This tool belongs to the car, which has doors. Tool description: {about}")})
    };
    add(&code_mode, "car").up(
        json!([
            tool("engine_start", "Starts it. Loudly."),
            tool("engine_stop", "Stops it."),
            tool("doors_lock", "Locks them.")
        ]),
        None,
    );
    let found = search(&code_mode, json!({"query": "start the engine"})).await;
    assert_eq!(found["tools"][0]["description"], "Starts it");
    let input = json!({"toolNames": ["car:doors_lock"], "detail": "types"});
    let types = code_mode.describe(serde_json::from_value(input).unwrap(), &anybody()).await;
    assert!(types["types"].as_str().unwrap().contains("/** Locks them. */"), "{types}");
    let full = describe(&code_mode, &["car:doors_lock"]).await;
    assert!(
        full["tools"][0]["description"].as_str().unwrap().starts_with("This tool belongs"),
        "the contract's field"
    );
}

#[tokio::test(start_paused = true)]
async fn a_misspelt_name_is_described_as_not_found_with_the_nearest() {
    let code_mode = code_mode();
    add(&code_mode, "crm").up(named(&["users_list", "users_get"]), None);
    let described =
        describe(&code_mode, &["crm:user_list", "users_get", "zzz", "codecall:serch", &"x".repeat(10_000)])
            .await;
    assert_eq!(
        described["nearest"],
        json!({"crm:user_list": "crm:users_list", "users_get": "crm:users_get"})
    );
    assert_eq!(described["notFound"].as_array().unwrap().len(), 5);
    let many: Vec<String> = (0..50).map(|n| format!("crm:users_list{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(describe(&code_mode, &many).await["nearest"].as_object().unwrap().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_call_at_once_waits_for_the_first_connection_of_its_app() {
    let code_mode = code_mode();
    let app = add(&code_mode, "crm");
    let up = async {
        tokio::task::yield_now().await;
        app.up(named(&["users_list"]), None);
    };
    let caller = anybody();
    let (found, ()) = tokio::join!(code_mode.invoker.find("crm:users_list", &caller), up);
    assert_eq!(&*found.unwrap().name, "crm:users_list");
}

#[test]
fn schemas_and_lists_are_looked_at_beside_the_threads_that_serve_requests() {
    let work = crate::testing::OneThread::new();
    let code_mode = work.block_on(async {
        let code_mode = code_mode();
        add(&code_mode, "crm").up(named(&["users_list"]), None);
        code_mode
    });
    let input = |input: Value| serde_json::from_value(input).unwrap();
    for search in [json!({"query": "users list"}), json!({})] {
        assert_eq!(work.block_on(self::search(&code_mode, search.clone()))["totalIndexed"], 1);
        work.while_it_is_busy(async || {
            assert!(code_mode.search(input(search), &anybody()).now_or_never().is_none());
        });
    }
    let names = json!({"toolNames": ["crm:users_list"]});
    work.while_it_is_busy(async || {
        let names = serde_json::from_value(names).unwrap();
        assert!(code_mode.describe(names, &anybody()).now_or_never().is_none());
    });
}

#[tokio::test]
async fn the_output_schema_of_a_tool_is_read_once() {
    let code_mode = code_mode();
    let output = json!({"type": "object", "required": ["result"],
        "properties": {"result": {"type": "array", "items": {"type": "string"}}}});
    let tool = json!({"name": "list", "inputSchema": {"type": "object"}, "outputSchema": output});
    add(&code_mode, "crm").up(json!([tool]), None);
    code_mode.invoker.registry().first_connections().await;
    let view = code_mode.invoker.registry().ready_view(&anybody()).await;
    let tool = view.shows("crm:list").unwrap();
    let read = || code_mode.shapes.result_shape(tool, &anybody()).unwrap().schema;
    let first = read();
    assert_eq!(first["type"], "array");
    assert!(Arc::ptr_eq(&first, &read()));
}
