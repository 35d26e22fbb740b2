//! Notes on mistakes that the text of a script shows.

use gatewright_agentscript::Mistake;

use crate::plan_facts::mistakes;

#[test]
fn forgotten_awaits_and_returns_are_noted_with_their_place() {
    let first = |script: &str| mistakes(script).into_iter().next().map(|(mistake, name, _)| (mistake, name));
    for (script, mistake, name) in [
        ("callTool('a:b', {}); return 1", Mistake::NotAwaited, ""),
        ("callTool(codecallContext.t, {}).then((r) => console.log(r)); return 1", Mistake::NotAwaited, ""),
        (
            "async function main() { return await callTool('a:b', {}) }\nmain(); return 1",
            Mistake::NotAwaited,
            "main",
        ),
        ("[1].forEach(async (id) => { await callTool('a:b', { id }) }); return 1", Mistake::ForEachAsync, ""),
        ("const r = callTool('a:b', {}); return r.items", Mistake::ReadFromPromise, "items"),
        ("const { items } = callTool('a:b', {}); return items", Mistake::ReadFromPromise, "items"),
        ("(async () => { await callTool('a:b', {}) })(); return 1", Mistake::NotAwaited, ""),
        ("readResource('a://b'); return 1", Mistake::NotAwaited, ""),
        ("getPrompt('a'); return 1", Mistake::NotAwaited, ""),
        ("const r = readResource('a://b'); return r.contents", Mistake::ReadFromPromise, "contents"),
        ("async (n) => { return await callTool('a:b', { n }) }", Mistake::FunctionNotCalled, ""),
        ("(async function (n) { return await callTool('a:b', { n }) })", Mistake::FunctionNotCalled, ""),
        ("async function main() { return await callTool('a:b', {}) }", Mistake::FunctionNotCalled, "main"),
        ("const main = async () => { return await callTool('a:b', {}) }", Mistake::FunctionNotCalled, "main"),
    ] {
        assert_eq!(first(script), Some((mistake, name.to_owned())), "{script}");
    }
    assert_eq!(mistakes("return 1;\ncallTool('a:b', {})"), []);
}

#[test]
fn a_value_that_a_script_does_not_return_is_noted() {
    for (script, name) in [
        ("const users = await callTool('a:b', {})", "users"),
        ("const { items } = await callTool('a:b', {});", "items"),
        ("const r = await callTool('a:b', {}); const names = r.items.map((user) => user.name);", "names"),
        ("let o = {}; o.x = await callTool('a:b', {})", "o"),
        ("const o = {}; o.x ??= []; o.x.push(await callTool('a:b', {}))", "o"),
        ("let r; r = await callTool('a:b', {});", "r"),
        ("const out = []; out.push(await callTool('a:b', {}))", "out"),
        ("const out = []; for (const id of [1, 2]) out.push(await callTool('a:b', { id }))", "out"),
        (
            "const out = {}; for (const id of [1, 2]) { const r = await callTool('a:b', { id }); out[id] = r }",
            "out",
        ),
        (
            "const out = []; for (const id in [1]) { if (id) { out.push(await callTool('a:b', { id })) } }",
            "out",
        ),
        ("let n = 0; for (const id of [1, 2]) { await callTool('a:b', { id }); n++ }", "n"),
        (
            "const r = await callTool('a:b', {}); const out = []; r.items.forEach((it) => out.push(it.id))",
            "out",
        ),
        ("const r = await callTool('a:b', {}); let n = 0; r.items.forEach((it) => { n += it.size })", "n"),
        (
            "const seen = new Set(); for (const id of [1]) { await callTool('a:b', { id }); seen.add(id) }",
            "seen",
        ),
        ("try { const r = await callTool('a:b', {}) } catch (e) { console.log(e) }", "r"),
        ("try { const r = await callTool('a:b', {}) } catch (e) { ({ error: e.message }) }", "r"),
        ("const r = await callTool('a:b', {}); { total: r.total; }", ""),
        ("const r = await callTool('a:b', {}); if (r) { total: r.total }", ""),
        ("async function main() { const r = await callTool('a:b', {}); r.items }\nmain()", ""),
        ("async () => { const r = await callTool('a:b', {}); r }", "r"),
        ("const r = await callTool('a:b', {}); if (!r) return 'none'; r", "r"),
        ("const r = await callTool('a:b', {}); if (!r) return 'none'; ({ r })", ""),
        (
            "const r = await callTool('a:b', {}); if (!r) return 'none'; const names = r.map((it) => it.name)",
            "names",
        ),
        ("async function main() { const r = await callTool('a:b', {}) }\nreturn await main()", "r"),
        ("(async () => { const out = []; out.push(await callTool('a:b', {})) })()", "out"),
    ] {
        let found: Vec<_> = mistakes(script).into_iter().map(|(mistake, name, _)| (mistake, name)).collect();
        assert_eq!(found, [(Mistake::NotReturned, name.to_owned())], "{script}");
    }
    assert_eq!(mistakes("let users; users = await callTool('a:b', {})")[0].2, 11);
}

#[test]
fn ordinary_statements_are_no_mistakes() {
    for script in [
        "const out = []; out.push(1); return out",
        "console.log('x')",
        "await callTool('a:b', {})",
        "callTool('a:b', {})",
        "(async () => { await callTool('a:b', {}) })()",
        "async function main() { await callTool('a:b', {}) }\nmain();",
        "const p = callTool('a:b', {}); const q = callTool('a:c', {}); return [await p, await q]",
        "const jobs = [1, 2].map((id) => callTool('a:b', { id })); return await Promise.all(jobs)",
        "const f = async () => { await callTool('a:b', {}) }; await f()",
        "let n = 0; n += 1",
        "[1].forEach((x) => console.log(x))",
        "await Promise.all([1].map(async (id) => { await callTool('a:b', { id }) })); return 1",
        "const f = async () => 1; f(); return 2",
        "let last; for (const id of [1, 2]) last = callTool('a:b', { id }); return await last",
        "const all = {}; for (const id of [1, 2]) all[id] = callTool('a:b', { id }); return await all[1]",
        "let p, n; n = 1, p = callTool('a:b', {}); return await p",
        "let p; p ??= callTool('a:b', {}); return await p",
        "const p = callTool('a:b', {}); p.then((r) => r.x); return await p",
        // Their value is the result.
        "async function main() { return await callTool('a:b', {}) }\nmain();",
        "async function main() { return await callTool('a:b', {}) }\nawait main();",
        "await (async () => { return await callTool('a:b', {}) })()",
        "async () => { return await callTool('a:b', {}) }",
        "const r = await callTool('a:b', {}); r.items",
        "const n = 1; ({ n })",
        "const r = await callTool('a:b', {}); { total: r.total }",
        "try { const r = await callTool('a:b', {}); ({ r }) } catch (e) { e.message }",
        "const r = await callTool('a:b', {}); if (r.ok) { r.items } else { r.error }",
        "const r = await callTool('a:b', {}); if (r.ok) { return r.items } else { return r.error }",
        "try { return await callTool('a:b', {}) } catch (e) { console.log(e) }",
        "const tried = []; for (const id of [1]) { const r = await callTool('a:b', { id }); if (r) return r; tried.push(id) }",
        // They are there for their effect.
        "for (const id of [1, 2]) await callTool('a:b', { id })",
        "for (const id of [1, 2]) { const r = await callTool('a:b', { id }); console.log(r) }",
        "let last; for (const id of [1, 2]) { await callTool('a:b', { id, last }); last = id }",
        "const seen = new Set(); for (const id of [1]) { if (seen.has(id)) continue; await callTool('a:b', { id }); seen.add(id) }",
        "const r = await callTool('a:b', {}); for (const it of r.items) it.done = true",
        "let cursor; do { const r = await callTool('a:b', { cursor }); cursor = r.next } while (cursor)",
        "async function main() { for (const id of [1]) await callTool('a:b', { id }) }\nmain()",
    ] {
        assert_eq!(mistakes(script), [], "{script}");
    }
}
