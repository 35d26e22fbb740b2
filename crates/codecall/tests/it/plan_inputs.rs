//! The check of plans against the calls themselves: what it refuses, the input schema refuses too.

use gatewright_core::rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ListToolsResult, PaginatedRequestParams,
        ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

use super::support::{Client, Served};

/// A tool with a strict input schema, which returns its input.
#[derive(Clone)]
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object", "required": ["id"], "additionalProperties": false, "properties": {
            "id": {"type": "string", "minLength": 1}, "limit": {"type": "integer", "maximum": 10},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
            "options": {"type": "object", "required": ["deep"], "additionalProperties": false,
                "properties": {"deep": {"type": "boolean"}}},
            "toJSON": {}, "1": {"type": "string"}, "16": {"type": "number"}}});
        let schema = schema.as_object().unwrap().clone();
        Ok(ListToolsResult::with_all_items(vec![Tool::new("echo", "Returns its input", schema)]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::structured(Value::Object(request.arguments.unwrap_or_default())).into())
    }
}

/// Members of plain literals.
const PLAIN: [&str; 40] = [
    "id: 'a'",
    "id: ''",
    "id: 5",
    "id: null",
    "id: `a`",
    "id: ('a')",
    "'id': 'a'",
    "\"id\": 'b'",
    "id",
    "id: undefined",
    "limit: 5",
    "limit: 11",
    "limit: -1",
    "limit: 1.5",
    "limit: -0",
    "limit: 1e400",
    "limit: 5.0",
    "limit: 9007199254740993",
    "limit: '9007199254740993'",
    "limit",
    "tags: []",
    "tags: ['a']",
    "tags: ['a', 1]",
    "tags: ['a', 'b', 'c']",
    "tags: [, 'a']",
    "tags: 'a'",
    "options: {}",
    "options: { deep: true }",
    "options: { deep: 1 }",
    "options: { deep: true, other: 1 }",
    "options: []",
    "1: 'x'",
    "1: 5",
    "0x10: 5",
    "16.0: 'a'",
    "other: 1",
    "id: 'a' as const",
    "limit: (5 satisfies number)",
    "id: id!",
    "toJSON: 5",
];

/// Members with parts that are known only at run time.
const OTHER: [&str; 40] = [
    "id: codecallContext.id",
    "limit: codecallContext.none",
    "other: codecallContext.none",
    "other: () => 1",
    "id() { return 1 }",
    "get id() { return 'a' }",
    "get id() { return 5 }",
    "set id(value) {}",
    "get other() { return undefined }",
    "toJSON() { return { id: 'a' } }",
    "toJSON: () => ({ id: 'a' })",
    "toJSON: undefined",
    "get toJSON() { return () => ({ id: 'a' }) }",
    "...codecallContext.all",
    "...{ id: 'a' }",
    "...{ toJSON() { return { id: 'a' } } }",
    "...null",
    "[codecallContext.key]: 'a'",
    "['id']: 'a'",
    "['to' + 'JSON']() { return { id: 'a' } }",
    "id: new Date(0)",
    "limit: new Date(0)",
    "tags: new Set(['a'])",
    "tags: new Uint8Array(2)",
    "options: new Map([['deep', true]])",
    "id: /a/",
    "id: new Error('a')",
    "limit: NaN",
    "id: void 0",
    "other: void 0",
    "id: (() => 'a')()",
    "id: `${codecallContext.id}`",
    "options: { get deep() { return true } }",
    "options: { toJSON() { return { deep: true } } }",
    "options: { toJSON: () => undefined }",
    "other: new Gone()",
    "id: new Gone('a')",
    "tags: [codecallContext.id, ...codecallContext.list]",
    "get options() { this.limit = 5; return { deep: true } }, limit: 99",
    "id: text, other: gone",
];

const BEFORE: &str = "const id = 'a', limit = 5;
    class Gone { constructor(as) { this.as = as } toJSON() { return this.as } }
    if (codecallContext.none) { var text = 5, gone = 1 }
    text ??= 'a';
";

/// The status of a script, and what refused it: the plan's check, the call, or nothing.
async fn refused(client: &Client, script: &str) -> (Value, Option<&'static str>) {
    let context = json!({"id": "a", "all": {"id": "a"}, "key": "id", "list": ["b"]});
    let body = client.body("codecall:execute", json!({"script": script, "context": context})).await;
    let refused = match body["error"]["message"].as_str() {
        Some(message) if message.contains("The plan was checked before it ran") => Some("check"),
        Some(_) => Some("call"),
        None => None,
    };
    (body, refused)
}

/// Tests for `input`: the check refuses it only if the call does, and for a plain literal exactly then.
async fn compare(client: &Client, input: &str, is_plain: bool) -> bool {
    let checked = refused(client, &format!("{BEFORE} return await callTool('app:echo', {input})")).await;
    // Without its name in the text nothing of the call is checked before.
    let unchecked = format!("{BEFORE} return await callTool(['app', 'echo'].join(':'), {input})");
    let (real, called) = refused(client, &unchecked).await;
    let by_check = checked.1 == Some("check");
    assert!(called != Some("check"), "{real}");
    assert!(!by_check || called.is_some(), "refused, and the call succeeds: {input}\n{}\n{real}", checked.0);
    assert!(!is_plain || by_check == called.is_some(), "{input}\n{}\n{real}", checked.0);
    by_check
}

#[tokio::test]
async fn the_check_of_plans_refuses_what_the_schema_refuses_of_the_input_that_is_sent() {
    let client = Served::over(json!({}), Echo).await.client("ada").await;
    let mut seed = 7_u32;
    let mut below = |most: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as usize % most
    };
    let (mut refusals, mut cases) = (0, 0);
    for round in 0..600 {
        let is_plain = round % 2 == 0;
        let mut members: Vec<&str> = (0..=below(4)).map(|_| PLAIN[below(PLAIN.len())]).collect();
        if !is_plain {
            let at = below(members.len() + 1);
            members.insert(at, OTHER[round / 2 % OTHER.len()]);
        }
        cases += 1;
        refusals += usize::from(compare(&client, &format!("{{ {} }}", members.join(", ")), is_plain).await);
    }
    assert!(refusals > 150 && refusals < cases - 100, "{refusals} of {cases}");
    for input in ["undefined", "null", "'a'", "5", "[]", "[{ id: 'a' }]", "true"] {
        compare(&client, input, true).await;
    }
    for input in
        ["new Date(0)", "() => 1", "codecallContext.all", "...[{ id: 'a' }]", "{ __proto__: null, id: 'a' }"]
    {
        compare(&client, input, false).await;
    }
}

#[tokio::test]
async fn values_that_change_before_the_call_are_not_taken_for_what_they_were() {
    let client = Served::over(json!({}), Echo).await.client("ada").await;
    for script in [
        "const list = [5, 'a']; list.reverse(); const [id] = list; return await callTool('app:echo', { id })",
        "const list = [5]; list[0] = 'a'; const id = list[0]; return await callTool('app:echo', { id })",
        "const id = 0 || []; return await callTool('app:echo', { id: 'a', tags: id })",
        "const undefined = 'a'; return await callTool('app:echo', { id: undefined })",
        "const get = (undefined) => callTool('app:echo', { id: undefined }); return await get('a')",
    ] {
        let (body, refused) = refused(&client, script).await;
        assert_eq!(refused, None, "{script}: {body}");
    }
}
