//! Errors that say which expression was at fault and what its value is.

use gatewright_agentscript::RunError;
use serde_json::json;

use super::support::{run, value};

async fn message(source: &str) -> String {
    match run(source).await.result {
        Err(RunError::RuntimeError { name, message, location }) => {
            assert_eq!(name, "TypeError", "{source}: {message}");
            assert!(location.is_some(), "{source}: {message}");
            message
        }
        other => panic!("{source}: {other:?}"),
    }
}

#[tokio::test]
async fn a_call_of_what_is_no_function_says_what_the_object_is() {
    for (source, expected) in [
        (
            r#"const r = await callTool('echo', '[{"id":1}]'); return r.map((x) => x.id)"#,
            r#"r.map is not a function: r is a string '[{"id":1}]'; if it is JSON, use JSON.parse(r)"#,
        ),
        (
            "const r = await callTool('echo', { total: 2, items: [1, 2] }); return r.filter(Boolean)",
            "r.filter is not a function: r is an object with the keys total, items; r.items is an array",
        ),
        (
            "const page = { data: { count: 3 } }; return page.data.map((x) => x)",
            "page.data.map is not a function: page.data is an object with the keys count",
        ),
        (
            "return (await callTool('echo', { a: 1 })).forEach((x) => x)",
            "(await callTool('echo', …)).forEach is not a function: (await callTool('echo', …)) is an object with the keys a",
        ),
        (
            "const p = callTool('echo', []); return p.map((x) => x)",
            "p.map is not a function: p is a promise: await it",
        ),
        (
            "const price = '9.5'; return price.toFixed(2)",
            "price.toFixed is not a function: price is a string '9.5'",
        ),
        ("const o = { a: 1 };\nreturn o.missing(1)", "o.missing is not a function"),
        ("const f = 5;\nreturn 1 + f(1)", "f is not a function"),
        ("const n = 5; return n.split(',')", "n.split is not a function: n is the number 5"),
        ("const r = null; return r.map((x) => x)", "cannot read property 'map' of null: r is null"),
        (
            "const r = { list: undefined }; return r.list.map((x) => x)",
            "cannot read property 'map' of undefined: r.list is undefined; r is an object with the keys list",
        ),
    ] {
        assert_eq!(message(source).await, expected, "{source}");
    }
    let long = message("const r = 'é\\n'.repeat(5000); return r.map((x) => x)").await;
    assert!(long.len() < 300 && long.ends_with("…' of 10000 characters"), "{long}");
}

#[tokio::test]
async fn a_read_of_nothing_says_which_part_is_missing_and_what_there_is() {
    for (source, expected) in [
        (
            "const bytes = new Uint8Array(1e6); return bytes.foo.bar",
            "cannot read property 'bar' of undefined: bytes.foo is undefined; bytes is a typed array of 1000000 elements",
        ),
        (
            "const text = new String('x'.repeat(1e6)); return text.foo.bar",
            "cannot read property 'bar' of undefined: text.foo is undefined; text is a String object",
        ),
        (
            "const users = [{ id: 1, name: 'a' }]; return users.map((u) => u.address.city)",
            "cannot read property 'city' of undefined: u.address is undefined; u is an object with the keys id, name",
        ),
        (
            "const r = await callTool('echo', { items: [] }); return r.items[0].id",
            "cannot read property 'id' of undefined: r.items[0] is undefined; r.items is an array of 0 elements",
        ),
        (
            "const r = await callTool('echo', null); return r.items.length",
            "cannot read property 'items' of null: r is null",
        ),
        (
            "const users = [{ id: 1 }]; return users.find((u) => u.id === 2).name",
            "cannot read property 'name' of null or undefined: users.find(…) is null or undefined",
        ),
        (
            "const { items } = await callTool('echo', null); return items",
            "cannot read property 'items' of null or undefined: (await callTool('echo', …)) is null or undefined",
        ),
        (
            "const r = { a: null }; const { b } = r.a; return b",
            "cannot read property 'b' of null: r.a is null; r is an object with the keys a",
        ),
        ("let r = {}; r.a.b = 1", "cannot set property 'b' of undefined"),
    ] {
        assert_eq!(message(source).await, expected, "{source}");
    }
}

#[tokio::test]
async fn what_cannot_be_iterated_is_named_with_its_value() {
    for (source, expected) in [
        (
            "const r = { items: [1] }; for (const x of r) { }",
            "r is not iterable: it is an object with the keys items; r.items is an array",
        ),
        ("const r = { n: 1 }; return [...r.n]", "r.n is not iterable: it is the number 1"),
        ("const r = undefined; return Math.max(...r)", "r is not iterable: it is undefined"),
        (
            "const r = { a: {} }; const [x] = r.a; return x",
            "r.a is not iterable: it is an object without keys",
        ),
    ] {
        assert_eq!(message(source).await, expected, "{source}");
    }
}

#[tokio::test]
async fn errors_that_a_script_catches_and_failures_of_parallel_operations_say_it_too() {
    let outcome = run("const r = { rows: 'x' }; const out = [];
         try { r.rows.map((x) => x) } catch (e) { out.push(e.message) }
         try { await __safe_parallel([async () => r.all.length]) } catch (e) { out.push(e.message) }
         return out")
    .await;
    assert_eq!(
        value(&outcome),
        json!([
            "r.rows.map is not a function: r.rows is a string 'x'",
            "1 of 1 parallel operations failed\n[0]: cannot read property 'length' of undefined: r.all is undefined; r is an object with the keys rows",
        ])
    );
}

#[tokio::test]
async fn a_failure_that_names_a_member_of_the_input_says_which_expression_was_undefined() {
    let source = "const user = { id: 7, name: 'Ada', get secret() { throw new Error('read') } }, page = { of: { n: 1 } }, none = undefined;
         const failures = [], note = (error) => failures.push(error.message);
         await callTool('lacks', { id: user.ID, other: user?.name, at: String(page.of.n) + 1 }).catch(note);
         await callTool('lacks', { id: page.of.next }).catch(note);
         await callTool('lacks', { id: none }).catch(note);
         await callTool('lacks', { 'id': user['key'] }).catch(note);
         await callTool('lacks', { other: user.ID }).catch(note);
         await callTool('lacks', { id: user.id }).catch(note);
         failures.push((await callTool('lacks', { id: user.ID }, { throwOnError: false })).error.message);
         return failures";
    let user = "user is an object with the keys id, name, secret";
    let said = |more: &str| format!("id is required{more}");
    assert_eq!(
        value(&run(source).await),
        json!([
            said(&format!("; user.ID is undefined; {user}")),
            said("; page.of.next is undefined; page.of is an object with the keys n"),
            said("; none is undefined"),
            said(&format!("; user[\"key\"] is undefined; {user}")),
            said(""),
            said(""),
            said(&format!("; user.ID is undefined; {user}")),
        ])
    );
    // What was noted for one call says nothing about another, and the input is as it was.
    let source =
        "const user = { a: null }; const seen = await callTool('echo', { id: user.ID, a: user.a, user });
         try { await callTool('lacks', {}) } catch (error) { return [seen, error.message] }";
    assert_eq!(value(&run(source).await), json!([{ "a": null, "user": { "a": null } }, "id is required"]));
}

#[tokio::test]
async fn json_is_only_suggested_where_a_text_is_json() {
    let broken = message("const r = await callTool('echo', '[draft] see {a}'); return r.map((x) => x)").await;
    assert_eq!(broken, "r.map is not a function: r is a string '[draft] see {a}'");
}

#[tokio::test]
async fn names_that_scripts_expect_say_what_to_write() {
    for (source, advice) in [
        ("return await tools.call('a')", "callTool('app:tool', input)"),
        ("return await codecall.invoke('a')", "callTool('app:tool', input)"),
        ("return await invoke('a', {})", "callTool('app:tool', input)"),
        ("return context.id", "codecallContext"),
        ("return await search('users')", "codecall:search"),
    ] {
        match run(source).await.result {
            Err(RunError::RuntimeError { name, message, .. }) => {
                assert!(name == "ReferenceError" && message.contains(advice), "{source}: {message}");
            }
            other => panic!("{source}: {other:?}"),
        }
    }
    for (source, advice) in [
        ("return await fetch('https://a.example')", "scripts have no network; call a tool"),
        ("return process.env.HOME", "codecallContext"),
        ("return require('fs')", "callTool(name, input)"),
    ] {
        match run(source).await.result {
            Err(RunError::IllegalAccess { message, .. }) => assert!(message.contains(advice), "{message}"),
            other => panic!("{source}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn guards_change_nothing_that_works() {
    for (source, expected) in [
        (
            "const o = { a: { b: { c: 1 } } }; delete o.a.b.c; return [o.a?.b.c ?? 2, typeof o.a.b.x, o.x?.y.z]",
            json!([2, "undefined", null]),
        ),
        (
            "class A { static B = class { m() { return this.n.v } n = { v: 4 } } } const o = { A }; return new o.A.B().m()",
            json!(4),
        ),
        ("const o = { t: { tag: (s, ...v) => s.join('|') + v[0] } }; return o.t.tag`a${1}b`", json!("a|b1")),
        (
            "let n = 0; const f = () => { n++; return { find: () => ({ v: n }) } }; return [f().find().v, n]",
            json!([1, 1]),
        ),
        ("const o = { map() { return this.k.v }, k: { v: 3 } }; return o.map()", json!(3)),
        (
            "const s = 'ab'; return [...s, ...new Set([1]), Math.max(...[1, 2]), s.length / 2 / 1, s[0].length]",
            json!(["a", "b", 1, 2, 1, 1]),
        ),
        (
            "const m = new Map([['a', { b: 1 }]]); for (const [k, v] of m) return [k, v.b, m.get('a').b]",
            json!(["a", 1, 1]),
        ),
        (
            "function f() { return arguments.length } return [f.name, f(1, 2), [[1], [2]].map(([x]) => x)]",
            json!(["f", 2, [1, 2]]),
        ),
        ("const o = { a: { n: 1 } }; o.a.n += 2; o.a.n++; [o.a.n] = [o.a.n * 2]; return o.a.n", json!(8)),
        (
            "async function* g() { yield 1 } const out = []; for await (const x of g()) out.push(x); return out",
            json!([1]),
        ),
        ("const a = { b: [() => 5] }; return a.b[0]()", json!(5)),
    ] {
        let outcome = run(source).await;
        assert_eq!(value(&outcome), expected, "{source}");
    }
}

#[tokio::test]
async fn an_explanation_runs_no_getter() {
    for (source, expected) in [
        (
            "let n = 0; const o = { get d() { n++; return undefined } }; try { o.d.x } catch {} return n",
            json!(1),
        ),
        ("let n = 0; const o = { get d() { n++; return {} } }; try { o.d.y.z } catch {} return n", json!(1)),
        (
            "const q = [1, 2, 3]; const o = { get next() { return q.shift() } }; try { o.next.a.b } catch {} return q",
            json!([2, 3]),
        ),
        (
            "let n = 0; const o = { get boom() { n++; throw new Error('user') } };
             try { o.map((x) => x) } catch (e) { return [n, e.name] }",
            json!([0, "TypeError"]),
        ),
        (
            "let n = 0; const o = { get boom() { n++; return [1] } };
             try { for (const x of o) n += x } catch (e) { return [n, e.name] }",
            json!([0, "TypeError"]),
        ),
        (
            "let n = 0; class A { get map() { n++; return () => 7 } } const a = new A(); return [a.map((x) => x), n]",
            json!([7, 1]),
        ),
        (
            "let i = 0; const p = { get d() { if (i++) throw new RangeError('second'); return undefined } };
             try { p.d.x } catch (e) { return e.name }",
            json!("TypeError"),
        ),
    ] {
        assert_eq!(value(&run(source).await), expected, "{source}");
    }
}
