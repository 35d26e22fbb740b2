//! Declarations of fixtures, read back by the parser of scripts.

use std::sync::Arc;

use gatewright_agentscript::{Limits, Preset, ScriptPolicy, ScriptSource, VALIDATE_STACK};
use serde_json::{Value, json};

use super::*;
use crate::examples::testing::{entries, fixtures};

/// Why the declarations are no TypeScript.
fn refused(types: &str) -> Option<String> {
    let script = format!("{types}\nreturn 1;");
    let check = move || {
        let (policy, limits) = (ScriptPolicy::new(Preset::LockedDown), Limits::preset(Preset::LockedDown));
        ScriptSource::new(&script).validate(&policy, &limits).err().map(|why| format!("{why:?}"))
    };
    std::thread::Builder::new().stack_size(VALIDATE_STACK).spawn(check).unwrap().join().unwrap()
}

fn declared(tools: &[Arc<ToolEntry>]) -> String {
    let shapes: Vec<_> = tools.iter().map(|tool| crate::shapes::declared::declared(tool)).collect();
    let tools = tools.iter().zip(&shapes).map(|(tool, shape)| Declared {
        tool,
        result: shape.as_ref(),
        example: None,
    });
    declarations(&tools.collect::<Vec<_>>())
}

async fn of(tools: Value) -> String {
    let types = declared(&entries(tools).await);
    assert_eq!(refused(&types), None, "{types}");
    types
}

async fn of_input(schema: Value) -> String {
    of(json!([{"name": "one", "inputSchema": schema}])).await
}

#[tokio::test]
async fn a_tool_becomes_a_method_with_comments_for_what_its_names_do_not_say() {
    let types = of(json!([{
        "name": "list_issues", "description": "List issues of a repository. Newest first.",
        "inputSchema": {"type": "object", "required": ["owner"], "properties": {
            "perPage": {"type": "integer", "minimum": 1, "maximum": 100, "default": 30, "description": "Per page"},
            "owner": {"type": "string", "description": "The user or organization */ that owns it"},
            "state": {"enum": ["open", "closed"]},
            "since": {"type": "string", "format": "date-time"},
            "odd-name": {"type": ["string", "null"]},
            "tags": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        }},
        "outputSchema": {"type": "object", "required": ["total"], "properties": {
            "total": {"type": "integer"},
            "issues": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}},
        }}
    }]))
    .await;
    assert_eq!(
        types,
        "// Returned integers beyond 2^53 are strings.\n\
         interface Tools {\n\
         /** List issues of a repository. Newest first. */\n\
         't:list_issues'(input: {\n \
         owner: string; // The user or organization * / that owns it\n \
         perPage?: number; // 1-100, default 30\n \
         state?: 'open' | 'closed';\n \
         since?: string; // date-time\n \
         'odd-name'?: string | null;\n \
         tags?: (string | number)[];\n\
         }): Promise<{ total: number; issues?: { id?: number }[] }>;\n}"
    );
}

#[tokio::test]
async fn every_fixture_is_declared_in_typescript() {
    let tools = fixtures().await;
    let types = declared(&tools);
    assert_eq!(refused(&types), None, "{types}");
    for tool in &tools {
        assert_eq!(refused(&declared(std::slice::from_ref(tool))), None);
        assert!(types.contains(&format!("'{}'(input: ", tool.tool.name)), "{types}");
        for name in tool.input_schema().get("properties").and_then(Value::as_object).into_iter().flatten() {
            assert!(types.contains(name.0.as_str()), "{}: {}", tool.name, name.0);
        }
    }
}

#[tokio::test]
async fn a_type_that_several_tools_use_is_printed_once_under_a_name() {
    let issue = json!({"type": "object", "title": "Issue", "required": ["id"], "properties": {
        "id": {"type": "integer"}, "title": {"type": "string"}}});
    let tool = |name: &str, output: Value| json!({"name": name, "inputSchema": {"type": "object"}, "outputSchema": output});
    let list = json!({"type": "object", "properties": {"issues": {"type": "array", "items": issue}, "n": {"type": "integer"}}});
    let types = of(json!([tool("get", issue.clone()), tool("list", list)])).await;
    assert_eq!(types.matches("id: number").count(), 1, "{types}");
    assert!(types.starts_with("type Issue = { id: number; title?: string };\n"), "{types}");
    assert!(types.contains("Promise<Issue>;") && types.contains("issues?: Issue[]"), "{types}");
}

#[tokio::test]
async fn a_type_of_an_input_and_of_its_result_is_printed_once() {
    let entities = json!({"type": "object", "required": ["entities"], "properties": {"entities": {"type": "array",
        "items": {"type": "object", "properties": {"name": {"type": "string"}, "kind": {"type": "string"}}}}}});
    let types = of(json!([{"name": "create", "inputSchema": entities, "outputSchema": entities}])).await;
    assert_eq!(types.matches("kind?: string").count(), 1, "{types}");
    assert_eq!(types.matches("entities: Entities[]").count(), 2, "{types}");
}

#[tokio::test]
async fn a_tool_that_its_author_has_given_up_is_marked_where_its_first_sentence_does_not_say_so() {
    let tool = |name: &str, about: &str| json!({"name": name, "description": about, "inputSchema": {"type": "object"}});
    let long = format!("Read a file as text. {} DEPRECATED: use read_text.", "And more of it. ".repeat(20));
    let types =
        of(json!([tool("a", &long), tool("b", "Deprecated. Reads."), tool("c", "Undeprecated")])).await;
    assert!(
        types.contains("/** [deprecated] Read a file as text") && types.contains("/** Deprecated. Reads. */"),
        "{types}"
    );
    assert!(types.contains("/** Undeprecated */"), "{types}");
}

#[tokio::test]
async fn a_type_that_contains_itself_is_named_and_ends() {
    let types =
        of_input(json!({"type": "object", "properties": {"tree": {"$ref": "#/$defs/node"}}, "$defs": {
        "node": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "next": {"$ref": "#/$defs/node"}}}}}))
        .await;
    assert!(types.contains("type Node = { name: string; next?: Node };"), "{types}");
    assert!(types.contains("tree?: Node"), "{types}");
}

#[tokio::test]
async fn parts_of_a_type_are_joined_and_rules_over_properties_are_said() {
    let types = of_input(
        json!({"type": "object", "properties": {"email": {"type": "string"}, "phone": {"type": "string"}},
        "anyOf": [{"required": ["email"]}, {"required": ["phone"]}]}),
    )
    .await;
    assert!(types.contains("// needs email | phone"), "{types}");
    let types = of_input(json!({"$defs": {"base": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}},
        "type": "object", "allOf": [{"$ref": "#/$defs/base"}], "properties": {"force": {"type": "boolean"}}}))
    .await;
    assert!(types.contains("{ id: number; force?: boolean }"), "{types}");
    for (schema, expected) in [
        (json!({"type": "object"}), "input: Record<string, unknown>"),
        (json!({"type": "object", "properties": {}, "additionalProperties": false}), "input: {}"),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            "input: Record<string, number>",
        ),
    ] {
        assert!(of_input(schema).await.contains(expected));
    }
}

#[tokio::test]
async fn many_values_are_shown_as_examples_of_their_type() {
    let values: Vec<String> = (0..5_000).map(|n| format!("v{n}")).collect();
    let types =
        of_input(json!({"type": "object", "properties": {"one": {"type": "string", "enum": values}}})).await;
    assert!(types.contains("'v0' | 'v1'") && types.contains("| string") && types.len() < 300, "{types}");
}

#[tokio::test]
async fn hostile_schemas_give_bounded_declarations_of_valid_syntax() {
    let deep = (0..100)
        .fold(json!({"type": "string"}), |inner, _| json!({"type": "object", "properties": {"a": inner}}));
    let wide: serde_json::Map<_, _> = (0..3_000)
        .map(|n| (format!("p{n}"), json!({"type": "string", "description": "x ".repeat(5_000)})))
        .collect();
    let level = |next: usize| {
        let all: serde_json::Map<_, _> =
            (0..40).map(|n| (format!("p{n}"), json!({"$ref": format!("#/$defs/l{next}")}))).collect();
        json!({"type": "object", "properties": all})
    };
    let defs: serde_json::Map<_, _> = (0..5).map(|n| (format!("l{n}"), level((n + 1) % 5))).collect();
    for schema in [
        json!({"type": "object", "properties": {"a": deep}}),
        json!({"type": "object", "properties": wide}),
        json!({"type": "object", "$defs": defs, "properties": {"a": {"$ref": "#/$defs/l0"}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}}),
        json!({"type": "object", "properties": {"*/ return 1; /*": {"description": "*/ }\u{2028}\n}", "const": "'\\\n\u{2029}"}}}),
        json!({"type": "object", "properties": {"a": {"type": 7, "items": 8}, "b": {"anyOf": []}, "c": {"enum": []}, "d": {"allOf": [3]}}}),
        json!({"type": "object", "properties": "x", "required": 5}),
    ] {
        let types = of_input(schema).await;
        assert!(types.len() < 20_000, "{} bytes", types.len());
    }
}

#[tokio::test]
async fn names_that_are_looked_at_are_counted_whether_or_not_they_are_shown() {
    let mut required: Vec<String> = (0..1_000).map(|n| format!("other{n}")).collect();
    required.push("id".to_owned());
    let of = async |uses: usize| {
        let uses = (0..uses).map(|n| (format!("p{n}"), json!({"$ref": "#/$defs/one"})));
        let properties: serde_json::Map<_, _> = uses.collect();
        let one = json!({"type": "object", "required": required, "properties": {"id": {"type": "integer"}}});
        of_input(json!({"type": "object", "properties": properties, "$defs": {"one": one}})).await
    };
    assert!(!of(15).await.contains("// 1 more"));
    assert!(of(30).await.contains("// 1 more"));
}

#[tokio::test]
async fn a_bounded_number_of_types_gets_a_name_of_its_own() {
    let tools = |property: fn(usize) -> Value| {
        let tool = |n: usize| {
            json!({"name": format!("t{n}"), "inputSchema": {
                "type": "object", "properties": {"a": {"$ref": "#/$defs/thing"}, "b": {"$ref": "#/$defs/thing"}},
                "$defs": {"thing": {"type": "object", "properties": {format!("p{n}"): {}, "next": property(n)}}}}})
        };
        entries((0..300).map(tool).collect())
    };
    for tools in [tools(|_| json!({})).await, tools(|_| json!({"$ref": "#/$defs/thing"})).await] {
        let types = declared(&tools);
        let mut names: Vec<&str> =
            types.lines().filter_map(|line| line.strip_prefix("type ")?.split(' ').next()).collect();
        assert_eq!(names.len(), 200);
        assert!(names.contains(&"Thing") && names.contains(&"Thing200"), "{names:?}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 200);
    }
}

#[tokio::test]
async fn a_type_that_contains_itself_has_one_name_in_all_tools() {
    let tool = |name: &str| {
        json!({"name": name, "inputSchema": {"type": "object", "properties": {"tree": {"$ref": "#/$defs/node"}}, "$defs": {
            "node": {"type": "object", "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/node"}}}}}})
    };
    let types = of(json!([tool("a"), tool("b")])).await;
    assert_eq!(types.matches("type Node").count(), 1, "{types}");
    assert_eq!(types.matches("tree?: Node }").count(), 2, "{types}");
}

#[tokio::test]
async fn five_tools_like_those_of_github_take_less_than_2500_bytes() {
    let tools = entries(serde_json::from_str(include_str!("fixtures.json")).unwrap()).await;
    assert_eq!(tools.len(), 5);
    let types = declared(&tools);
    assert_eq!(refused(&types), None, "{types}");
    let size = json!({"types": types}).to_string().len();
    assert!(size < 2_500, "{size} bytes:\n{types}");
    for tool in &tools {
        for (name, _) in tool.input_schema()["properties"].as_object().unwrap() {
            assert!(types.contains(&format!("{name}: ")) || types.contains(&format!("{name}?: ")), "{name}");
        }
    }
}

/// A tool whose results are like the repositories and issues of the GitHub API: most members are addresses.
fn with_large_result(name: &str, item: &str) -> Value {
    let text = || json!({"type": "string"});
    let links = |of: &[&str]| of.iter().map(|one| (format!("{one}_url"), text())).collect::<Vec<_>>();
    let object = |own: &[&str], links: Vec<(String, Value)>| {
        let own = own.iter().map(|one| ((*one).to_owned(), text()));
        let mut properties: serde_json::Map<String, Value> = links.into_iter().chain(own).collect();
        properties.insert("node_id".to_owned(), text());
        let required: Vec<&String> = properties.keys().collect();
        json!({"type": "object", "required": required, "properties": properties.clone()})
    };
    let actions = [
        "archive",
        "assignees",
        "blobs",
        "branches",
        "comments",
        "compare",
        "contents",
        "events",
        "forks",
        "git",
        "hooks",
    ];
    let user = object(&["login", "id", "type", "name", "email"], links(&actions));
    let mut thing = object(
        &[
            "id",
            "full_name",
            "title",
            "state",
            "private",
            "description",
            "fork",
            "language",
            "size",
            "created_at",
            "updated_at",
        ],
        [links(&actions), links(&["html", "issues", "keys", "labels", "languages", "merges", "pulls"])]
            .concat(),
    );
    thing["properties"]["owner"] = json!({"$ref": "#/$defs/user"});
    thing["properties"]["creator"] = json!({"$ref": "#/$defs/user"});
    thing["properties"][format!("{item}_number")] = json!({"type": "integer"});
    let input = json!({"type": "object", "required": ["owner", "repo"], "properties": {
        "owner": {"type": "string", "description": "The account owner of the repository. The name is not case sensitive."},
        "repo": {"type": "string", "description": "The name of the repository without the .git extension."},
        "per_page": {"type": "integer", "default": 30, "description": "The number of results per page (max 100)."},
        "page": {"type": "integer", "default": 1, "description": "The page number of the results to fetch."},
    }});
    let list = json!({"type": "array", "items": {"$ref": format!("#/$defs/{item}")}});
    let output = json!({
        "type": "object", "required": ["result"], "properties": {"result": list}, "$defs": {"user": user, item: thing},
    });
    json!({"name": name, "description": format!("Lists what {name} names for a repository. Newest first."), "inputSchema": input, "outputSchema": output})
}

#[tokio::test]
async fn five_tools_with_results_like_those_of_github_take_less_than_2500_bytes() {
    let tools = [
        ("repos_list-forks", "repository"),
        ("repos_list", "repository"),
        ("issues_list", "issue"),
        ("issues_list-for-repo", "issue"),
        ("pulls_list", "pull"),
    ];
    let types = of(tools.iter().map(|(name, item)| with_large_result(name, item)).collect()).await;
    let size = json!({"types": types}).to_string().len();
    assert!(size < 2_500, "{size} bytes:\n{types}");
    for name in ["full_name", "title", "state"] {
        assert!(types.contains(&format!("{name}: string")), "{name}:\n{types}");
    }
    assert!(!types.contains("hooks_url") && !types.contains("node_id"), "links give way first:\n{types}");
    assert!(types.contains("// also "), "what is not shown has a name:\n{types}");
    for name in [" owner: string", " repo: string", " per_page?: ", " page?: "] {
        assert_eq!(types.matches(name).count(), tools.len(), "{name}:\n{types}");
    }
}

/// Prints sizes of declarations for a file of tools: `{name, description, inputSchema}`, one to a line, in the file that the
/// variable `TOOLS` names; those whose names contain `ONLY` are printed whole.
#[tokio::test]
#[ignore = "measures a file of tools"]
async fn how_large_the_declarations_of_a_file_are() {
    #[expect(clippy::disallowed_methods, reason = "a measurement that is started by hand")]
    let (file, only) = (std::env::var("TOOLS").unwrap(), std::env::var("ONLY").unwrap_or_default());
    let lines = std::fs::read_to_string(file).unwrap();
    let tools = lines.lines().enumerate().map(|(at, line)| {
        let mut tool: Value = serde_json::from_str(line).unwrap();
        let name = tool["name"].as_str().unwrap().rsplit(':').next().unwrap();
        tool["name"] = format!("{name}.{at}").into();
        tool
    });
    let tools = entries(tools.collect()).await;
    let (mut sizes, mut schemas, mut bad) = (Vec::new(), 0, 0);
    for five in tools.chunks(5) {
        let types = declared(five);
        let size = json!({"types": types}).to_string().len();
        sizes.push(size);
        schemas +=
            five.iter().map(|tool| serde_json::to_string(tool.input_schema()).unwrap().len()).sum::<usize>();
        if refused(&types).is_some() {
            bad += 1;
            println!("{:?}\n{types}", refused(&types));
        }
        if !only.is_empty() && five.iter().any(|tool| tool.name.contains(&only)) {
            println!("{types}\n-- {size} bytes");
        }
    }
    sizes.sort_unstable();
    let at = |share: usize| sizes[(sizes.len() - 1) * share / 100];
    println!(
        "answers of five tools: p50 {} p90 {} p99 {} max {} bytes; {} of schemas, {bad} bad",
        at(50),
        at(90),
        at(99),
        at(100),
        schemas
    );
}
