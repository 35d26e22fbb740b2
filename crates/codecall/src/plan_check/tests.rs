//! Verdicts on plans, with their places.

use std::sync::Arc;

use gatewright_agentscript::{
    CallSite, Limits, Origin, Part, Partial, PlanFacts, PlanVerdict, PlanWarning, ResultUse, ScriptPolicy,
    ScriptSource, ToolFailure, VALIDATE_STACK,
};
use gatewright_core::{ToolEntry, rmcp::model::JsonObject};
use serde_json::{Value, json};

use super::{Named, READ_REFUSED, Tools, judge, work};
use crate::{
    examples::testing::{entries, fixtures},
    shapes::{ResultShape, TextKind, declared::declared},
};

fn facts(script: &str) -> PlanFacts {
    let script = script.to_owned();
    let collect = move || {
        let limits = Limits { script_bytes: 1 << 20, ..Limits::default() };
        let script = ScriptSource::new(&script).validate(&ScriptPolicy::default(), &limits);
        script.expect("it is a script").plan().clone()
    };
    std::thread::Builder::new().stack_size(VALIDATE_STACK).spawn(collect).unwrap().join().unwrap()
}

/// The tools of the tests, under the names `a:NAME`.
async fn tools() -> Vec<Arc<ToolEntry>> {
    let user = json!({"type": "object", "properties": {
        "id": {"type": "string"}, "email": {"type": ["string", "null"]},
        "address": {"anyOf": [{"$ref": "#/$defs/address"}, {"type": "null"}]}}});
    entries(json!([
        {"name": "list", "annotations": {"readOnlyHint": true},
         "inputSchema": {"type": "object", "properties": {"limit": {"type": "integer", "maximum": 100}, "state": {"enum": ["open", "closed"]}}},
         "outputSchema": {"type": "object", "required": ["items"], "properties": {
             "items": {"type": "array", "items": {"$ref": "#/$defs/user"}}, "nextCursor": {"type": "string"},
             "extra": {"type": "object", "additionalProperties": true}, "byId": {"type": "object", "additionalProperties": {"$ref": "#/$defs/user"}}},
             "$defs": {"user": user, "address": {"type": "object", "properties": {"city": {"type": "string"}}}}}},
        {"name": "chart", "inputSchema": {"type": "object", "required": ["path", "chart_type"], "additionalProperties": false, "properties": {
            "path": {"type": "string"}, "chart_type": {"enum": ["bar", "line"]}, "title": {"type": "string"},
            "options": {"type": "object", "additionalProperties": false, "properties": {"legend": {"type": "boolean"}}},
            "page": {"type": "integer"}}}},
        {"name": "paged", "inputSchema": {"type": "object", "required": ["page"], "properties": {"page": {"type": "integer", "default": 1}}}},
        {"name": "either", "inputSchema": {"type": "object", "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
            "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}},
        {"name": "free", "inputSchema": {"type": "object"}},
        {"name": "labels", "inputSchema": {"type": "object", "properties": {"limit": {"type": "integer"}}, "additionalProperties": {"type": ["string", "integer"]}}},
    ]))
    .await
}

async fn verdict(script: &str) -> PlanVerdict {
    judged(script, false).await
}

async fn judged(script: &str, is_rehearsal: bool) -> PlanVerdict {
    let entries = tools().await;
    let facts = facts(script);
    judge(&facts, &named(&entries, &facts), is_rehearsal)
}

fn named(entries: &[Arc<ToolEntry>], facts: &PlanFacts) -> Tools {
    let of = |call: &CallSite| {
        let named = match entries.iter().find(|entry| call.name.ends_with(&format!(":{}", entry.local_name)))
        {
            Some(entry) => Named::Tool { entry: entry.clone(), shape: declared(entry) },
            None => Named::Unknown(ToolFailure {
                code: "TOOL_NOT_FOUND".to_owned(),
                message: format!("tool `{}` does not exist", call.name),
                ..ToolFailure::default()
            }),
        };
        (call.name.clone(), named)
    };
    facts.calls.iter().map(of).collect()
}

/// The refusal of a plan: the text at its place, and its message.
async fn refusal(script: &str) -> Option<(String, String)> {
    let refusal = verdict(script).await.refusal?;
    assert!(refusal.message.ends_with("no tool was called"), "{}", refusal.message);
    let (message, _) = refusal.message.split_once(" The plan was checked before it ran").unwrap();
    let message = message.trim_end_matches('.').to_owned();
    let place = script[refusal.at as usize..].split([',', ' ', ')', ':']).next().unwrap().to_owned();
    Some((place, message))
}

/// The warnings about a plan, each with the text at its place.
async fn warnings(script: &str) -> Vec<(String, String)> {
    let verdict = verdict(script).await;
    assert_eq!(verdict.refusal, None, "{script}");
    let shown = |PlanWarning { at, message }: PlanWarning| {
        let place =
            script[at as usize..].split(|c: char| !c.is_alphanumeric() && c != '_' && c != '\'').next();
        (place.unwrap().to_owned(), message)
    };
    verdict.warnings.into_iter().map(shown).collect()
}

#[tokio::test]
async fn a_misspelt_parameter_is_refused_with_its_place_and_the_nearest_name() {
    let script =
        "const b = await callTool('a:free', {}); await callTool('a:chart', { path: 'x', chart_tpye: 'bar' })";
    assert_eq!(
        refusal(script).await.unwrap(),
        (
            "chart_tpye".to_owned(),
            "invalid input for `a:chart`: there is no `chart_tpye`, did you mean `chart_type`?; `chart_type` is missing".to_owned()
        )
    );
    let nested = "await callTool('a:chart', { path: 'x', chart_type: 'bar', options: { legnd: true } })";
    let (place, message) = refusal(nested).await.unwrap();
    assert_eq!(place, "legnd");
    assert!(message.ends_with("there is no `options.legnd`, did you mean `legend`?"), "{message}");
}

#[tokio::test]
async fn missing_parameters_wrong_types_and_unknown_values_are_refused() {
    for (script, place, message) in [
        ("await callTool('a:chart', { path: 'x' })", "'a", "`chart_type` is missing"),
        ("await callTool('a:chart')", "'a", "`path` is missing; `chart_type` is missing"),
        ("await callTool('a:list', { limit: '5' })", "limit", "`limit`: \"5\" is not of type \"integer\""),
        (
            "await callTool('a:list', { limit: 500 })",
            "limit",
            "`limit`: 500 is greater than the maximum of 100",
        ),
        (
            "await callTool('a:list', { state: 'opened' })",
            "state",
            "`state`: \"opened\" is not one of \"open\" or \"closed\"",
        ),
        ("await callTool('a:list', [1])", "'a", "the input must be an object"),
        (
            "await callTool('a:either', {})",
            "'a",
            "{} is not valid under any of the schemas listed in the 'anyOf' keyword",
        ),
        (
            "await callTool('a:chart', { path: codecallContext.p, chart_type: 'pie' })",
            "chart_type",
            "`chart_type`: \"pie\" is not one of \"bar\" or \"line\"",
        ),
        (
            "if (codecallContext.x) { for (const p of ['a']) await callTool('a:chart', { path: p }) }",
            "'a",
            "`chart_type` is missing",
        ),
    ] {
        let (at, said) = refusal(script).await.unwrap_or_else(|| panic!("accepted: {script}"));
        assert_eq!(at, place, "{script}");
        assert!(said.ends_with(message), "{script}: {said}");
    }
}

#[tokio::test]
async fn inputs_that_may_be_right_are_accepted() {
    for script in [
        "await callTool('a:chart', codecallContext.input)",
        "await callTool('a:chart', { ...codecallContext.input })",
        "await callTool('a:chart', { path: codecallContext.p, chart_type: codecallContext.t })",
        "await callTool('a:chart', { path: 'x', chart_type: 'bar', page: undefined })",
        "return await callTool('a:list', { limit: codecallContext.limit, [codecallContext.k]: 1 })",
        "return await callTool('a:list', { limit: `${codecallContext.x}`, state: [codecallContext.y] })",
        "await callTool('a:either', { id: codecallContext.id })",
        "await callTool('a:either', { ...codecallContext.x })",
        "await callTool('a:paged', {})",
        "await callTool('a:paged', { page: '9007199254740993' })",
        "await callTool('a:free', { anything: 1 })",
        "const tool = getTool('a:chart'); return tool.inputSchema",
        "await callTool('a:chart', { path: 'x', chart_type: 'bar', cursor: Symbol('x'), at: Symbol.iterator })",
    ] {
        let verdict = verdict(script).await;
        assert_eq!((verdict.refusal, verdict.warnings), (None, Vec::new()), "{script}");
    }
}

#[tokio::test]
async fn what_the_script_may_catch_or_leave_out_is_a_warning() {
    for script in [
        "try { await callTool('a:chart', { path: 'x' }) } catch {}",
        "return await callTool('a:chart', { path: 'x' }, { throwOnError: false })",
        "return callTool('a:chart', { path: 'x' }).catch(() => null)",
        // Without a value, the unknown parameter does not reach the tool.
        "return await callTool('a:chart', { path: 'x', chart_type: 'bar', cursor: codecallContext.cursor })",
    ] {
        let found = warnings(script).await;
        assert_eq!(found.len(), 1, "{script}: {found:?}");
        assert!(found[0].1.starts_with("invalid input for `a:chart`: "), "{found:?}");
    }
}

#[tokio::test]
async fn unknown_tools_are_refused_unless_the_script_asks_for_them_where_they_may_be_missing() {
    let (place, message) =
        refusal("await callTool('a:free', {});\nawait callTool('a:nope', {})").await.unwrap();
    assert_eq!((place.as_str(), message.as_str()), ("'a", "tool `a:nope` does not exist"));
    assert!(refusal("return getTool('a:nope')").await.is_some());
    let (_, message) = refusal("await callTool('a:no\\u0007pe', {})").await.unwrap();
    assert_eq!(message, "tool `a:no\u{fffd}pe` does not exist");
    let asked = "let has = true; try { getTool('a:nope') } catch { has = false }\nif (has) await callTool('a:nope', {})";
    assert_eq!(warnings(asked).await, [("'a".to_owned(), "tool `a:nope` does not exist".to_owned())]);
}

#[tokio::test]
async fn further_problems_of_a_refused_plan_are_warnings() {
    let verdict =
        verdict("await callTool('a:nope', {}); await callTool('a:chart', { path: 1, chart_type: 'bar' })")
            .await;
    assert_eq!(verdict.refusal.unwrap().code, "TOOL_NOT_FOUND");
    assert_eq!(verdict.warnings.len(), 1);
}

#[tokio::test]
async fn reads_of_what_a_result_does_not_have_are_warned_of_with_what_it_has() {
    let list = "const r = await callTool('a:list', {}); ";
    for (rest, place, message) in [
        ("return r.itmes", "itmes", "the result of `a:list` has no `itmes`; did you mean `items`?"),
        (
            "return r.users",
            "users",
            "the result of `a:list` has no `users`; it has `items`, `nextCursor`, `extra`, `byId`",
        ),
        (
            "return r.map((x) => x.id)",
            "map",
            "the result of `a:list` has no `map`; did you mean `items.map`?",
        ),
        (
            "for (const x of r) console.log(x.id)",
            "r",
            "the result of `a:list` is an object, not an array; did you mean its `items`?",
        ),
        (
            "return r.items.map((x) => x.emial)",
            "emial",
            "`items[]` of the result of `a:list` has no `emial`; did you mean `email`?",
        ),
        (
            "const [{ emial }] = r.items; return emial",
            "emial",
            "`items[]` of the result of `a:list` has no `emial`; did you mean `email`?",
        ),
        (
            "return r.items[0].address.town",
            "town",
            "`items[].address` of the result of `a:list` has no `town`; it has `city`",
        ),
        ("return r.items.id", "id", "`items` of the result of `a:list` is an array and has no `id`"),
        (
            "return r.nextCursor.value",
            "value",
            "`nextCursor` of the result of `a:list` is a string and has no `value`; parse it with `JSON.parse` if it is JSON, or take it apart with \
             `split` or `matchAll`",
        ),
        (
            "return r.byId.x.emial",
            "emial",
            "`byId.x` of the result of `a:list` has no `emial`; did you mean `email`?",
        ),
        (
            "return (r.itmes ?? []).length",
            "itmes",
            "the result of `a:list` has no `itmes`; did you mean `items`?",
        ),
    ] {
        let found = warnings(&format!("{list}{rest}")).await;
        assert_eq!(found, [(place.to_owned(), message.to_owned())], "{rest}");
    }
    let settled = "const s = await callTool('a:list', {}, { throwOnError: false }); ";
    assert_eq!(
        warnings(&format!("{settled}return [s.success, s.error, s.data.items[0].id, s.items]")).await,
        [("items".to_owned(), "the result of `a:list` has no `items`; with `throwOnError: false` the tool's result is in `data`".to_owned())]
    );
    assert_eq!(
        warnings(&format!("{settled}return s.data.itmes")).await[0].1,
        "the result of `a:list` has no `itmes`; did you mean `items`?"
    );
}

#[tokio::test]
async fn reads_that_may_be_right_are_not_warned_of() {
    let list = "const r = await callTool('a:list', {}); ";
    for rest in [
        "return r.items.map((x) => [x.id, x.email.length, x.address.city])",
        "return r.extra.anything.at.all",
        "return r.byId.u1.email",
        "return r.items.length + r.nextCursor.length",
        "return r.items.filter((x) => x.email).sort().slice(1).at(0).id",
        "return r.items.toString() + r.hasOwnProperty('x')",
        "return r.users ?? r.items",
        "return r.item ?? r.items",
        "return r.error?.message",
        "if (r.isError) return 1; return r.items",
        "return Array.isArray(r) ? r.map((x) => x.id) : r.items",
        "return codecallContext.k in r ? r.other : 1",
        "r.total = 1; return r.total",
        "r.items.forEach((x) => { x.label = x.id }); return r.items.map((x) => x.label)",
        "return JSON.stringify(r)",
        "const f = await callTool('a:free', {}); return f.whatever.it.is",
        "for (const key of Object.keys(r)) console.log(r[key])",
        "return r.items.flat().map((x) => x.id)",
        "return r.items.flatMap((x) => x.address).map((a) => a.city)",
        "return r.items.with(0, { n: 1 })[0].n",
        "r.items.push({ n: 1 }); return r.items.find((x) => x.n).n",
        "const l = r.items.map((x) => x); l.unshift({ n: 1 }); return l[0].n",
        "const l = [...r.items]; l[0] = { n: 1 }; return l.map((x) => x.n)",
        "return [...r.nextCursor].map((c) => c.charCodeAt(0)) + r.nextCursor[0] + r.nextCursor.at(-1)",
        "return r.byId[7].email",
    ] {
        assert_eq!(warnings(&format!("{list}{rest}")).await, [], "{rest}");
    }
}

#[tokio::test]
async fn a_rehearsal_is_refused_for_a_read_of_what_a_declared_result_does_not_have() {
    let list = "const r = await callTool('a:list', {}); ";
    for (rest, start) in [
        ("return r.itmes", "the result of `a:list` has no `itmes`; did you mean `items`? A dry run"),
        ("return r.items.map((x) => x.phone)", "`items[]` of the result of `a:list` has no `phone`; it has"),
        (
            "return r.nextCursor.map((x) => x)",
            "`nextCursor` of the result of `a:list` is a string and has no `map`; ",
        ),
        ("try { return r.itmes.length } catch { return 0 }", "the result of `a:list` has no `itmes`"),
    ] {
        let script = format!("{list}{rest}");
        let refusal = judged(&script, true).await.refusal.unwrap_or_else(|| panic!("accepted: {rest}"));
        assert_eq!((&*refusal.tool_name, &*refusal.code), ("a:list", "VALIDATION_ERROR"));
        assert!(refusal.message.starts_with(start), "{}", refusal.message);
        let run = verdict(&script).await;
        assert_eq!((run.refusal, run.warnings.len()), (None, 1), "a run is warned: {rest}");
    }
    for rest in
        ["return r.itmes ?? []", "return r.itmes?.length", "for (const c of r.nextCursor) console.log(c)"]
    {
        let verdict = judged(&format!("{list}{rest}"), true).await;
        assert_eq!((verdict.refusal, verdict.warnings.len()), (None, 1), "it may be meant: {rest}");
    }
    let both = format!("{list}await callTool('a:chart', {{ path: r.itmes }}); return r.users");
    let verdict = judged(&both, true).await;
    assert!(verdict.refusal.unwrap().message.contains("`chart_type` is missing"), "a call comes first");
    assert_eq!(verdict.warnings.len(), 2);
}

#[tokio::test]
async fn a_text_that_is_treated_as_an_array_or_an_object_is_warned_of_with_the_way_to_read_it() {
    const PARSE: &str =
        "parse it with `JSON.parse` if it is JSON, or take it apart with `split` or `matchAll`";
    const WALKED: &str = "iterating over it gives characters";
    let entries = tools().await;
    let schema: Arc<JsonObject> = Arc::new(serde_json::from_value(json!({"type": "string"})).unwrap());
    let found = |rest: &str, observed, text| {
        let entry = entries.iter().find(|entry| &*entry.local_name == "free").unwrap().clone();
        let shape = Some(ResultShape { schema: schema.clone(), observed, text });
        let tools = Tools::from([("a:free".to_owned(), Named::Tool { entry, shape })]);
        let facts = facts(&format!("const r = await callTool('a:free', {{}}); {rest}"));
        let verdict = judge(&facts, &tools, true);
        let refused = verdict.refusal.map(|refusal| refusal.message);
        let warnings = verdict.warnings.into_iter().map(|warning| warning.message);
        refused.into_iter().chain(warnings).collect::<Vec<_>>()
    };
    for (rest, observed, text, rest_of_message) in [
        (
            "for (const x of r) console.log(x.id)",
            Some(1),
            Some(TextKind::Json),
            format!("was a string in the one answer seen and {WALKED}; parse it with `JSON.parse`"),
        ),
        (
            "return r.map((x) => x.id)",
            Some(2),
            Some(TextKind::Python),
            "was a string in 2 answers seen and has no `map`; it is a Python literal: find values in it with `matchAll`".to_owned(),
        ),
        (
            "const [first] = r; return first.id",
            Some(4),
            Some(TextKind::Csv),
            format!("was a string in 4 answers seen and {WALKED}; it is CSV: split it into lines with `split`"),
        ),
        ("return r.id", Some(3), None, format!("was a string in 3 answers seen and has no `id`; {PARSE}")),
        ("for (const x of r) console.log(x)", None, None, format!("is a string and {WALKED}; {PARSE}")),
        (
            "return r.filter(Boolean)",
            None,
            None,
            format!("is a string and has no `filter`; {PARSE}. {READ_REFUSED}"),
        ),
    ] {
        let message = format!("the result of `a:free` {rest_of_message}");
        assert_eq!(found(rest, observed, text), [message], "{rest}");
    }
    assert!(found("return r.id", Some(2), None).is_empty(), "two answers say little of others");
    for rest in [
        "return r.split('x').map((line) => line.trim())",
        "return JSON.parse(r).id",
        "return r.length + r[0] + r.at(-1)",
    ] {
        assert!(found(rest, None, Some(TextKind::Json)).is_empty(), "{rest}");
    }
}

#[tokio::test]
async fn parameters_that_a_schema_allows_and_does_not_name_are_warned_of() {
    assert_eq!(
        warnings("return await callTool('a:list', { query: 5 })").await[0].1,
        "the input of `a:list` has no parameter `query`; it has `limit`, `state`"
    );
    let near = warnings("return await callTool('a:labels', { limti: 5, anything: 'x' })").await;
    assert_eq!(near.len(), 1, "{near:?}");
    assert!(near[0].1.ends_with("did you mean `limit`?"), "{near:?}");
    assert_eq!(warnings("return await callTool('a:labels', { limit: 5, limits: 'x' })").await, []);
}

#[tokio::test]
async fn a_misspelt_parameter_that_a_schema_does_not_forbid_stops_the_plan_unless_it_is_caught() {
    let (place, message) = refusal("return await callTool('a:paged', { pgae: 2 })").await.unwrap();
    assert_eq!(place, "pgae");
    assert_eq!(message, "the input of `a:paged` has no parameter `pgae`; did you mean `page`?");
    let (_, message) = refusal("return await callTool('a:list', { limti: 5 })").await.unwrap();
    assert_eq!(message, "the input of `a:list` has no parameter `limti`; did you mean `limit`?");
    let caught = "try { await callTool('a:paged', { pgae: 2 }) } catch {}";
    assert_eq!(refusal(caught).await, None);
    assert_eq!(warnings(caught).await[0].0, "pgae");
}

#[tokio::test]
async fn observed_shapes_are_spoken_of_as_observed() {
    let entries = tools().await;
    let script = "const r = await callTool('a:free', {}); return [r.itmes, r.other]";
    let schema = json!({"type": "object", "properties": {"items": {"type": "array", "items": {}}}});
    let Value::Object(schema) = schema else { unreachable!() };
    let schema: Arc<JsonObject> = Arc::new(schema);
    let judged = |answers| {
        let entry = entries.iter().find(|entry| &*entry.local_name == "free").unwrap().clone();
        let shape = Some(ResultShape { schema: schema.clone(), observed: Some(answers), text: None });
        let tools = Tools::from([("a:free".to_owned(), Named::Tool { entry, shape })]);
        // No rehearsal is refused for what was only observed.
        let verdict = judge(&facts(script), &tools, true);
        assert_eq!(verdict.refusal, None);
        let warnings = verdict.warnings;
        warnings.into_iter().map(|warning| warning.message).collect::<Vec<_>>()
    };
    assert_eq!(
        judged(7),
        [
            "`itmes` was in none of 7 answers seen of the result of `a:free`; did you mean `items`?",
            "`other` was in none of 7 answers seen of the result of `a:free`; it has `items`"
        ]
    );
    assert_eq!(
        judged(1),
        ["`itmes` was not in the one answer seen of the result of `a:free`; did you mean `items`?"]
    );
}

#[tokio::test]
async fn generated_examples_are_neither_refused_nor_warned_of() {
    let entries = fixtures().await;
    let mut checked = 0;
    for entry in &entries {
        for example in crate::examples::of(entry, None) {
            let facts = facts(&example.code);
            let tools = facts.calls.iter().map(|call| {
                let entry =
                    entries.iter().find(|entry| *entry.name == *call.name).expect("it is there").clone();
                let shape = declared(&entry);
                (call.name.clone(), Named::Tool { entry, shape })
            });
            let verdict = judge(&facts, &tools.collect(), true);
            assert_eq!(verdict, PlanVerdict::default(), "{}", example.code);
            assert_eq!(facts.notes, [], "{}", example.code);
            checked += facts.calls.len();
        }
    }
    assert!(checked > 20, "{checked} calls");
}

#[tokio::test]
async fn facts_that_a_worker_invents_are_survived() {
    let entries = tools().await;
    let read = |of, name: &str| ResultUse {
        of,
        part: Part::Property(name.to_owned()),
        at: u32::MAX,
        tentative: false,
        iterated: false,
    };
    let name = "a:list".to_owned();
    let call = CallSite {
        at: 9,
        name,
        input: Some(Partial::Hole { optional: true }),
        settled: false,
        paginated: false,
        ends_run: true,
    };
    let facts = PlanFacts {
        calls: vec![call],
        uses: vec![
            read(Origin::Use(0), "a"),
            read(Origin::Use(2), "b"),
            read(Origin::Use(1), "c"),
            read(Origin::Call(7), "d"),
            read(Origin::Use(u32::MAX), "e"),
            read(Origin::Call(0), &"\u{1b}`x".repeat(10_000)),
        ],
        notes: Vec::new(),
    };
    let verdict = judge(&facts, &named(&entries, &facts), false);
    assert_eq!(verdict.warnings.len(), 1);
    let message = &verdict.warnings[0].message;
    assert!(message.len() < 1_000 && !message.contains('\u{1b}'), "{message}");
}

#[tokio::test]
async fn names_of_servers_are_shown_without_what_could_mislead() {
    let entries = entries(json!([{"name": "odd", "inputSchema": {"type": "object"}, "outputSchema": {
        "type": "object", "properties": {"na\u{1b}[2Jme\u{202e}`": {"type": "string"}}}}]))
    .await;
    let facts = facts("const r = await callTool('a:odd', {}); return r.name");
    let verdict = judge(&facts, &named(&entries, &facts), false);
    let message = &verdict.warnings[0].message;
    assert!(!message.contains(['\u{1b}', '\u{202e}']) && message.matches('`').count() == 6, "{message}");
}

#[tokio::test]
async fn schemas_beyond_the_room_of_a_plan_are_left_to_the_calls_and_are_not_compiled() {
    let names: serde_json::Map<String, Value> =
        (0..110).map(|at| (format!("^b{}", ".*".repeat(at)), json!({}))).collect();
    let tool = |at: usize| {
        json!({"name": format!("t{at}"), "inputSchema": {
            "type": "object", "properties": {"id": {"type": "integer"}}, "patternProperties": names.clone()}})
    };
    let entries = entries(Value::Array((0..20).map(tool).collect())).await;
    let calls = |range: std::ops::Range<usize>| {
        range.map(|at| format!("await callTool('a:t{at}', {{ id: 'x' }});")).collect::<String>()
    };
    let script = facts(&format!("try {{ {} }} catch {{}}", calls(0..20)));
    let tools = named(&entries, &script);
    assert!(work(&script, &tools) > 20 * 100 * 1_000, "it is done on a thread for long work");
    let verdict = judge(&script, &tools, false);
    assert_eq!(verdict.warnings.len(), 4, "{:?}", verdict.warnings);
    // Calls of one tool take its room once.
    let script = facts(&format!("try {{ {} }} catch {{}}", calls(0..1).repeat(8)));
    assert_eq!(judge(&script, &named(&entries, &script), false).warnings.len(), 8);
}
