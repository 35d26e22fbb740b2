//! Facts about the tool calls of a script: what the text makes certain, and nothing else.

use gatewright_agentscript::{
    CallSite, Limits, Member, Mistake, Origin, Part, Partial, PlanFacts, ScriptPolicy, ScriptSource,
};
use serde_json::{Value, json};

use crate::cases;

fn facts(script: &str) -> PlanFacts {
    let limits = Limits { script_bytes: 1 << 20, memory_bytes: 1 << 30, ..Limits::default() };
    let script = ScriptSource::new(script).validate(&ScriptPolicy::default(), &limits);
    script.expect("it is a script").plan().clone()
}

/// The calls of a script: name, and whether an error of the call ends the run.
fn calls(script: &str) -> Vec<(String, bool)> {
    facts(script).calls.into_iter().map(|call| (call.name, call.ends_run)).collect()
}

fn ends_run(script: &str) -> bool {
    let calls = calls(script);
    assert!(!calls.is_empty(), "no call in {script}");
    calls.iter().all(|call| call.1)
}

/// The paths that a script reads from results, such as `0.items[].id`; tentative ones end in `?`.
fn reads(script: &str) -> Vec<String> {
    let facts = facts(script);
    let mut paths: Vec<String> = Vec::new();
    for read in &facts.uses {
        let of = match read.of {
            Origin::Call(index) => index.to_string(),
            Origin::Use(index) => paths[index as usize].trim_end_matches('?').to_owned(),
        };
        let part = match &read.part {
            Part::Property(name) => format!(".{name}"),
            Part::Item => "[]".to_owned(),
            Part::Computed => "[?]".to_owned(),
        };
        paths.push(format!("{of}{part}{}", if read.tentative { "?" } else { "" }));
    }
    paths
}

pub(crate) fn mistakes(script: &str) -> Vec<(Mistake, String, u32)> {
    facts(script).notes.into_iter().map(|note| (note.mistake, note.name, note.at)).collect()
}

/// A partial input as JSON: holes are `"?"`, and `"…"` when they may be undefined; an open object has `"...": true`.
fn shown(partial: &Partial) -> Value {
    match partial {
        Partial::Hole { optional } => json!(if *optional { "…" } else { "?" }),
        Partial::Scalar(value) => value.clone(),
        Partial::List(items) => items.iter().map(shown).collect(),
        Partial::Object { members, open } => {
            let member = |member: &Member| (member.name.clone(), shown(&member.value));
            let mut object: serde_json::Map<_, _> = members.iter().map(member).collect();
            if *open {
                object.insert("...".to_owned(), json!(true));
            }
            Value::Object(object)
        }
    }
}

fn input(script: &str) -> Value {
    let CallSite { input, .. } = facts(script).calls.swap_remove(0);
    shown(&input.expect("an input"))
}

#[test]
fn a_call_has_its_name_its_place_and_its_literal_input() {
    let script =
        "const r = await callTool('crm:users_list', { limit: 3, tags: ['a', -1.5], deep: { x: null } })";
    let facts = facts(script);
    assert_eq!(facts.calls[0].name, "crm:users_list");
    assert_eq!(facts.calls[0].at as usize, script.find("'crm").unwrap());
    let Some(Partial::Object { members, .. }) = &facts.calls[0].input else { panic!("an object") };
    assert_eq!(members[0].at as usize, script.find("limit").unwrap());
    assert_eq!(input(script), json!({"limit": 3, "tags": ["a", -1.5], "deep": {"x": null}}));
    assert_eq!(input("return callTool('a:b')"), json!({}));
    assert_eq!(input("const id = 7; return callTool('a:b', { id })"), json!({"id": 7}));
}

#[test]
fn what_is_not_literal_is_a_hole_and_a_spread_leaves_the_object_open() {
    assert_eq!(
        input("const x = codecallContext.x; return callTool('a:b', { a: x, b: `${x}`, c: [x] })"),
        json!({"a": "…", "b": "?", "c": ["…"]})
    );
    assert_eq!(
        input("const x = codecallContext.x; return callTool('a:b', { a: 1, ...x, b: 2 })"),
        json!({"a": "…", "...": true, "b": 2})
    );
    assert_eq!(
        input("return callTool('a:b', { [codecallContext.k]: 1, b: 2 })"),
        json!({"...": true, "b": 2})
    );
    assert_eq!(input("return callTool('a:b', { a: undefined, f: () => 1, b: 2 })"), json!({"b": 2}));
    assert_eq!(input("return callTool('a:b', { a: [1, ...codecallContext.x] })"), json!({"a": "?"}));
    assert_eq!(input("return callTool('a:b', ...codecallContext.x)"), json!("?"));
    assert_eq!(input("return callTool('a:b', codecallContext)"), json!("…"));
    assert_eq!(input("let a = 1; a = 2; return callTool('a:b', { a })"), json!({"a": "…"}));
    assert_eq!(input("return callTool('a:b', { a: 1, a: 'x' })"), json!({"a": "x"}));
}

#[test]
fn names_that_are_not_in_the_text_are_no_calls() {
    for script in [
        "return callTool(codecallContext.tool, {})",
        "let n = 'a:b'; n = 'a:c'; return callTool(n, {})",
        "return callTool('a:' + codecallContext.x, {})",
        "return callTool('', {})",
    ] {
        assert_eq!(calls(script), [], "{script}");
    }
    assert_eq!(calls("const n = 'a:b'; return callTool(n, {})")[0].0, "a:b");
    assert_eq!(calls("return callTool(`a:b`, {})")[0].0, "a:b");
    assert_eq!(calls("const call = callTool; return call('a:b', {})")[0].0, "a:b");
    assert_eq!(calls("return getTool('a:b').name")[0].0, "a:b");
    assert_eq!(facts("return getTool('a:b').name").calls[0].input, None);
}

#[test]
fn the_error_of_a_call_ends_the_run_unless_the_script_may_catch_it() {
    for script in [
        "return await callTool('a:b', {})",
        "return callTool('a:b', {})",
        "if (codecallContext.x) await callTool('a:b', {})",
        "const [r] = await Promise.all([callTool('a:b', {})]); return r",
        "const r = await __safe_parallel([() => callTool('a:b', {})]); return r",
        "async function main() { return await callTool('a:b', {}) } return await main()",
        "for (const id of [1, 2]) { await callTool('a:b', { id }) }",
        "return callTool('a:b', {}, { throwOnError: true })",
        // A `try` somewhere else cannot catch what a statement awaits outside of it.
        "try { await callTool(codecallContext.t, {}) } catch {} return await callTool('a:b', {})",
    ] {
        assert!(ends_run(script), "{script}");
    }
    for script in [
        "try { await callTool('a:b', {}) } catch {}",
        "try { return await callTool('a:b', {}) } finally { console.log('x') }",
        "return callTool('a:b', {}).catch(() => null)",
        "return callTool('a:b', {}).then((r) => r, () => null)",
        "return Promise.allSettled([callTool('a:b', {})])",
        "return Promise.any([callTool('a:b', {})])",
        "return callTool('a:b', {}, { throwOnError: false })",
        "return callTool('a:b', {}, codecallContext.options)",
        "return __safe_parallel([() => callTool('a:b', {})], { settle: true })",
        "const f = () => callTool('a:b', {}); try { await f() } catch {}",
        "const p = callTool('a:b', {}); try { await p } catch {}",
        "callTool('a:b', {}); return 1",
    ] {
        assert!(!ends_run(script), "{script}");
    }
}

#[test]
fn code_behind_a_return_is_not_looked_at_but_for_its_functions() {
    assert_eq!(calls("return 1; await callTool('a:b', {})"), []);
    assert_eq!(calls("return main(); async function main() { return callTool('a:b', {}) }").len(), 1);
}

#[test]
fn reads_are_followed_through_variables_destructuring_and_callbacks() {
    let script = "const r = await callTool('a:b', {}); ";
    for (rest, expected) in [
        ("return r.items", vec!["0.items"]),
        (
            "const { items: [first], next } = r; return [first.id, next]",
            vec!["0.items", "0.items[]", "0.next", "0.items[].id"],
        ),
        ("return r['items'][0].id", vec!["0.items", "0.items[]", "0.items[].id"]),
        ("return r.items.map((x) => x.id)", vec!["0.items", "0.items.map", "0.items[]", "0.items[].id"]),
        (
            "const ids = r.items.map(({ id }) => id); return ids",
            vec!["0.items", "0.items.map", "0.items[]", "0.items[].id"],
        ),
        ("for (const x of r.items) console.log(x.id)", vec!["0.items", "0.items[]", "0.items[].id"]),
        (
            "const o = r.items.map((x) => x.owner); return o[0].name",
            vec!["0.items", "0.items.map", "0.items[]", "0.items[].owner", "0.items[].owner.name"],
        ),
        (
            "const all = [...r.items]; return all.find((x) => x.ok).id",
            vec!["0.items", "0.items[]", "0.items[].ok", "0.items[].id"],
        ),
        (
            "return r.items.filter((x) => x.a).sort((x, y) => x.b - y.b).map((x) => x.c)",
            vec![
                "0.items",
                "0.items.filter",
                "0.items[]",
                "0.items[].a",
                "0.items.sort",
                "0.items[].b",
                "0.items.map",
                "0.items[].c",
            ],
        ),
        (
            "return r.items.reduce((sum, x) => sum + x.n, 0)",
            vec!["0.items", "0.items.reduce", "0.items[]", "0.items[].n"],
        ),
        ("return (r.items ?? []).length", vec!["0.items?", "0.items.length"]),
    ] {
        assert_eq!(reads(&format!("{script}{rest}")), expected, "{rest}");
    }
    assert_eq!(reads("return (await callTool('a:b', {})).x"), ["0.x"]);
    assert_eq!(
        reads(
            "const [a, b] = await Promise.all([callTool('a:b', {}), callTool('a:c', {})]); return [a.x, b.y]"
        ),
        ["0.x", "1.y"]
    );
    assert_eq!(
        reads(
            "const all = await __safe_parallel([1, 2].map((id) => () => callTool('a:b', { id }))); return all.map((r) => r.x)"
        ),
        ["0.x"]
    );
    assert_eq!(
        reads(
            "const all = await __safe_parallel([() => callTool('a:b', {}), async () => callTool('a:c', {})]); return all[1].y"
        ),
        ["1.y"]
    );
    assert_eq!(
        reads(
            "async function get(id) { return await callTool('a:b', { id }) } const r = await get(1); return r.x"
        ),
        ["0.x"]
    );
    assert_eq!(reads("return callTool('a:b', {}).then((r) => r.x)"), ["0.x"]);
    assert_eq!(
        reads("const s = await callTool('a:b', {}, { throwOnError: false }); return s.data.x"),
        ["0.data", "0.data.x"]
    );
}

#[test]
fn reads_that_are_not_certain_are_left_out() {
    let script = "const r = await callTool('a:b', {}); ";
    for rest in [
        "let x = r; x = codecallContext; return x.y",
        "const x = codecallContext.a ? r : codecallContext; return x.y",
        "const x = r ?? codecallContext; return x.y",
        "const x = codecallContext.f(r); return x.y",
        "r.extra = 1; return r.extra",
        "Object.assign(r, codecallContext); return r.y",
        "r[codecallContext.k] = 1; return r.y",
        "const fill = (o) => { o[codecallContext.k] = 1 }; fill(r); return r.y",
        "({ x: r.y } = codecallContext); return r.y",
        "const s = String(r); return s.y",
        "const x = JSON.parse(r); return x.y",
    ] {
        assert_eq!(reads(&format!("{script}{rest}")), Vec::<String>::new(), "{rest}");
    }
    assert_eq!(reads(&format!("{script}const all = [...r]; all[0] = {{ y: 1 }}; return all[0].y")), ["0[]"]);
    assert_eq!(
        reads("const p = callTool('a:b', {}).catch(() => ({})); return (await p).y"),
        Vec::<String>::new()
    );
    assert_eq!(
        reads("const r = await callTool('a:b', {}, codecallContext.o); return r.y"),
        Vec::<String>::new()
    );
}

#[test]
fn reads_whose_absence_the_script_provides_for_are_tentative() {
    let script = "const r = await callTool('a:b', {}); ";
    for rest in [
        "return r.x?.length",
        "return r.x ?? r.y",
        "return r.x || 'none'",
        "if (r.x) return 1",
        "return r.x ? 1 : 2",
        "return typeof r.x",
        "return r.x !== undefined",
        "return !r.x",
        "const { x = 1 } = r; return x",
        "return Array.isArray(r.x)",
        "const x = r.x; if (x) return 1",
    ] {
        assert_eq!(reads(&format!("{script}{rest}")).first().map(String::as_str), Some("0.x?"), "{rest}");
    }
    // Whoever tests the kind of a value provides for several.
    assert_eq!(reads(&format!("{script} return Array.isArray(r) ? r : r.x")), ["0.x?"]);
}

#[test]
fn a_script_without_calls_and_mistakes_has_no_facts() {
    assert_eq!(facts("return 1"), PlanFacts::default());
    assert_eq!(facts("return callTool(codecallContext.name, codecallContext.input)"), PlanFacts::default());
}

#[test]
fn the_facts_of_a_hostile_script_are_bounded() {
    let many = "await callTool('a:b', { a: 1 });\n".repeat(10_000);
    assert!((100..=200).contains(&facts(&many).calls.len()));
    let long = format!("return callTool('a:b', {{ a: [{}] }})", "1,".repeat(100_000));
    assert_eq!(input(&long), json!({"a": "?"}));
    let text = format!("return callTool('a:b', {{ a: '{}' }})", "x".repeat(500_000));
    assert_eq!(input(&text), json!({"a": "?"}));
    let deep = format!("return callTool('a:b', {}1{})", "[".repeat(150), "]".repeat(150));
    assert!(input(&deep).to_string().contains('?'));
    let proto = input("return callTool('a:b', { toString: 3, hasOwnProperty: 4 })");
    assert_eq!(proto, json!({"toString": 3, "hasOwnProperty": 4}));
    let chain = format!("const r = await callTool('a:b', {{}}); return r{}", ".x".repeat(900));
    assert!(facts(&chain).uses.len() <= 400);
    let doubling: String = (0..60).map(|n| format!("const a{} = [a{n}, a{n}]; ", n + 1)).collect();
    assert_eq!(
        calls(&format!("const a0 = [() => callTool('a:b', {{}})]; {doubling} return a60 ? a60 : a60")).len(),
        1
    );
}

#[test]
fn no_script_of_the_corpus_is_noted_without_a_mistake() {
    let mut noted = Vec::new();
    // These are about what is missing at the end.
    let about_ends = ["last_statement/", "last_branch/", "wrappers/"];
    let others = |case: &cases::Case| !about_ends.iter().any(|file| case.name.starts_with(file));
    for case in cases::all().into_iter().filter(others) {
        let policy = ScriptPolicy::new(case.preset);
        let limits = Limits::preset(case.preset);
        let Ok(script) = ScriptSource::new(&case.script).validate(&policy, &limits) else { continue };
        for note in &script.plan().notes {
            noted.push((format!("{}/{}", case.family, case.name), note.mistake));
        }
    }
    // These leave calls alone on purpose.
    let left_alone = [
        "async_floods/chains/calls without end",
        "async_floods/floods/calls without await",
        "async_floods/red_team/timeout then host",
        "async_floods/red_team/unawaited call chain",
        "async_floods/red_team/unawaited calls",
        "results/red_team/result getter calls tool",
        "tool_arguments/red_team/args getter reenters",
    ];
    let mut expected: Vec<_> =
        left_alone.into_iter().map(|name| (name.to_owned(), Mistake::NotAwaited)).collect();
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(noted, expected);
}

#[test]
fn a_script_names_every_tool_when_it_does_nothing_but_call_tools_by_name() {
    let names_every_tool = |script: &str| {
        let script = ScriptSource::new(script).validate(&ScriptPolicy::default(), &Limits::default());
        script.expect("it is a script").names_every_tool()
    };
    for script in [
        "return 1",
        "await callTool('a:b', {}); return await callTool('a:c', { x: 1 })",
        "const name = 'a:b'; for (const id of [1, 2]) await callTool(name, { id })",
        "const all = await Promise.all([1, 2].map((id) => callTool('a:b', { id }))); return all",
        "async function one(id: string) { return callTool('a:b', { id }) } return [await one('1'), await one('2')]",
    ] {
        assert!(names_every_tool(script), "{script}");
    }
    for script in [
        "await callTool(codecallContext.tool, {})",
        "await callTool('a:b', {}); await callTool('a:' + codecallContext.verb, {})",
        "const call = callTool; await call('a:b', {}); await call(codecallContext.tool, {})",
        "let name = 'a:b'; name = codecallContext.tool; await callTool(name, {})",
        "return await Promise.all(codecallContext.tools.map(callTool))",
        "const each = async (call) => call('a:b'); return await each(callTool)",
        "await callTool(...codecallContext.call)",
        "return 1; await callTool(codecallContext.tool, {})",
    ] {
        assert!(!names_every_tool(script), "{script}");
    }
    let many = format!("{} return 1", "await callTool('a:b', {});".repeat(201));
    assert!(!names_every_tool(&many), "more calls than facts are kept of");
}
