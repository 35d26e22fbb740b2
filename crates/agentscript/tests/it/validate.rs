//! The validator: rules, syntax errors, types and places.

use std::thread;

use gatewright_agentscript::{
    IllegalKind, Limits, Location, Preset, Rejection, Script, ScriptPolicy, ScriptSource, VALIDATE_STACK,
};

use crate::cases::{self, Case, Expect};

pub(crate) fn policy(preset: Preset) -> ScriptPolicy {
    ScriptPolicy::new(preset).reserved_tool_prefixes(["codecall:", "codecall_"])
}

pub(crate) fn validate(text: &str) -> Result<Script, Rejection> {
    validate_as(text, Preset::Secure)
}

fn validate_as(text: &str, preset: Preset) -> Result<Script, Rejection> {
    let limits = Limits { script_bytes: 8 << 20, ..Limits::preset(preset) };
    ScriptSource::new(text).validate(&policy(preset), &limits)
}

/// Runs `work` on a stack of exactly `VALIDATE_STACK` bytes.
pub(crate) fn on_asked_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    thread::Builder::new().stack_size(VALIDATE_STACK).spawn(work).expect("a thread").join().expect("no panic")
}

pub(crate) fn kind(result: &Result<Script, Rejection>) -> String {
    match result {
        Ok(_) => "allowed".to_owned(),
        Err(Rejection::Illegal { message, .. }) if message.contains("more brackets") => {
            "IllegalSyntax brackets".to_owned()
        }
        Err(Rejection::Illegal { kind, .. }) => kind.to_string(),
        Err(Rejection::SyntaxError { location, .. }) => {
            format!("syntax {}:{}", location.line, location.column)
        }
        Err(other) => format!("{other:?}"),
    }
}

fn expected(case: &Case) -> Option<String> {
    match &case.expect {
        Expect::Illegal(kind) => Some(kind.clone()),
        Expect::Syntax(line, column) => Some(format!("syntax {line}:{column}")),
        Expect::Ok(_) | Expect::Runtime(_) | Expect::Stopped(_) | Expect::Limit | Expect::Memory => {
            Some("allowed".to_owned())
        }
        Expect::Safe => None,
    }
}

#[test]
fn every_script_of_the_corpus_is_refused_or_allowed_as_it_says() {
    let wrong = on_asked_stack(|| {
        let mut wrong = Vec::new();
        for case in cases::all() {
            let result = validate_as(&case.script, case.preset);
            let got = kind(&result);
            if expected(&case).is_some_and(|expected| expected != got) {
                wrong.push(format!(
                    "{}/{}: expected {:?}, got {got}: {:?}",
                    case.family,
                    case.name,
                    case.expect,
                    result.err()
                ));
            }
        }
        wrong
    });
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_corpus_has_four_hundred_hostile_and_a_hundred_ordinary_scripts() {
    let cases = cases::all();
    let ordinary = cases.iter().filter(|case| case.family.starts_with("allowed")).count();
    assert!(ordinary >= 100, "{ordinary} ordinary scripts");
    assert!(cases.len() - ordinary >= 400, "{} hostile scripts", cases.len() - ordinary);
}

#[test]
fn places_are_lines_and_characters_of_the_callers_text() {
    let place = |text: &str| match validate(text) {
        Err(Rejection::Illegal { location, .. } | Rejection::SyntaxError { location, .. }) => {
            (location.line, location.column)
        }
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(place("eval('1')"), (1, 1));
    assert_eq!(place("const é = 'ü😀'; eval(é)"), (1, 17));
    assert_eq!(place("const a = 1\r\n  process.exit()"), (2, 3));
    assert_eq!(
        place("const a: number = 1\nconst b = <string>a; const c: {\n  x: number } = eval(b)"),
        (3, 17)
    );
    assert_eq!(place("return 1 +\n  ;"), (2, 3));
    assert_eq!(place("for (const x of y) z(x); w = a => a;\nsetTimeout(f)"), (2, 1));
}

#[test]
fn places_at_run_time_are_those_of_the_callers_text() {
    let place = |text: &str, needle: &str| {
        let script = validate(text).expect(text);
        let before = &script.text()[..script.text().find(needle).expect("kept")];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        let number = |n: usize| u32::try_from(n).expect("short");
        let at = script.map_location(Location { line: number(line), column: number(column) });
        (at.line, at.column)
    };
    let loops = "for (const a of b) f(a); const g = x => h(x); last()";
    assert_eq!(place(loops, "f(a)"), (1, 20));
    assert_eq!(place(loops, "h(x)"), (1, 41));
    assert_eq!(place(loops, "last()"), (1, 47));
    let typed = "type A = {\n  b: string }\nlet ü: A = '😀';   f<A>(ü as A);\r\n  g(ü!)";
    assert_eq!(place(typed, "f(ü)"), (3, 19));
    assert_eq!(place(typed, "g(ü)"), (4, 3));
    assert_eq!(place(typed, "ü);\nreturn g"), (3, 24));
}

/// The text that runs, with one space for each gap.
fn printed(text: &str) -> String {
    match validate(text) {
        Ok(script) => script.text().split_whitespace().collect::<Vec<_>>().join(" "),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_loop_and_function_counts_its_turns() {
    let mut wrong = Vec::new();
    for (text, ticked) in [
        ("while (a) b()", "while (a) { __ag_tick(); b(); }"),
        ("while (a) { b() }", "while (a) { __ag_tick(); b(); }"),
        ("do b(); while (a)", "do { __ag_tick(); b(); } while (a);"),
        ("for (;;) for (;;) x;", "for (;;) { __ag_tick(); for (;;) { __ag_tick(); x; } }"),
        ("for (;;);", "for (;;) { __ag_tick(); ; }"),
        ("f(a => ({ b: a }))", "return f((a) => (__ag_tick(), { b: a }));"),
        ("f(a => b => a)", "return f((a) => (__ag_tick(), (b) => (__ag_tick(), a)));"),
        ("while (a) f = b => b", "while (a) { __ag_tick(); f = (b) => (__ag_tick(), b); }"),
        ("function f() {}", "function f() { __ag_tick(); }"),
        ("function f() { 'use strict'; a }", "function f() { __ag_tick(); a; }"),
        ("class A { m() { return 1 } }", "class A { m() { __ag_tick(); return 1; } }"),
        ("const o = { get a() { return 1 } }", "const o = { get a() { __ag_tick(); return 1; } };"),
        ("l: for (const a of b) continue l", "l: for (const a of b) { __ag_tick(); continue l; }"),
    ] {
        if printed(text) != ticked {
            wrong.push(format!("{text}\n    printed  {}\n    expected {ticked}", printed(text)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_tick_receives_the_variables_that_may_hold_a_growing_text() {
    let mut wrong = Vec::new();
    for (text, ticked) in [
        ("let s = 'a'; while (1) s += s", r#"let s = "a"; while (1) { __ag_tick(s); s += s; }"#),
        (
            "let s = 'a'; while (1) { s = s + 'b' }",
            r#"let s = "a"; while (1) { __ag_tick(s); s = s + "b"; }"#,
        ),
        ("for (let s = 'a';; s += s) {}", r#"for (let s = "a";; s += s) { __ag_tick(s); }"#),
        (
            "for (let s = 'a';; s = `${s}${s}`) x;",
            r#"for (let s = "a";; s = `${s}${s}`) { __ag_tick(s); x; }"#,
        ),
        ("const f = (s) => f(s + s)", "const f = (s) => (__ag_tick(s), f(s + s));"),
        ("while (1) o.s += o.s", "while (1) { __ag_tick(); __ag_made(o.s += o.s); }"),
        ("while (1) f(o.s + s + 'b')", r#"while (1) { __ag_tick(); f(__ag_made(o.s + s + "b")); }"#),
        (
            "while (1) f(`${o.s}`, t`${o.s}`)",
            "while (1) { __ag_tick(); f(__ag_made(`${o.s}`), t(__ag_parts`${0}`, o.s)); }",
        ),
        ("while (1) o.n += 1", "while (1) { __ag_tick(); o.n += 1; }"),
        ("while (1) f(a?.b.concat(c))", "while (1) { __ag_tick(); f(__ag_made(a?.b.concat(c))); }"),
        ("while (1) f(a?.b.concat(c).d().e)", "while (1) { __ag_tick(); f(a?.b.concat(c).d().e); }"),
        ("return a", "return a;"),
        ("if (a) return; return b", "if (a) return; return __ag_returns(1, b);"),
        (
            "while (a) return b, c\nreturn () => d",
            "while (a) { __ag_tick(); return __ag_returns(0, (b, c)); } return __ag_returns(1, () => (__ag_tick(), d));",
        ),
        ("f(() => { return a }); return b", "f(() => { __ag_tick(); return a; }); return b;"),
        ("while (1) f(a?.b.concat(c).d())", "while (1) { __ag_tick(); f(__ag_made(a?.b.concat(c).d())); }"),
        ("while (1) f(a().b.concat(c))", "while (1) { __ag_tick(); f(__ag_made(a().b.concat(c))); }"),
        ("const f = (s, t = s + s) => f(t)", "const f = (s, t = __ag_made(s + s)) => (__ag_tick(), f(t));"),
        (
            "function f(s) { return f(s.concat(s)) }",
            r#"function f(s) { __ag_tick(s); return f((s ?? __ag_nil("s", "concat", s)).concat(s)); }"#,
        ),
        ("for (let s = 1;; s += 1) { let s = 2 }", "for (let s = 1;; s += 1) { __ag_tick(); let s = 2; }"),
        ("while (1) { let s = 'a'; s += s }", r#"while (1) { __ag_tick(); let s = "a"; s += s; }"#),
        (
            "const f = (g = b => b + b) => g(1)",
            "const f = (g = (b) => (__ag_tick(b), __ag_made(b + b))) => (__ag_tick(), g(1));",
        ),
        (
            "for (let i = (b => b + 1)(0);;) x;",
            "for (let i = ((b) => (__ag_tick(b), b + 1))(0);;) { __ag_tick(); x; }",
        ),
        (
            "while (1) x(); let s = ''; s += s",
            r#"while (1) { __ag_tick(); x(); } let s = ""; __ag_made(s += s);"#,
        ),
    ] {
        if printed(text) != ticked {
            wrong.push(format!("{text}\n    printed  {}\n    expected {ticked}", printed(text)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn types_are_left_out_of_what_runs() {
    let mut wrong = Vec::new();
    for (typed, plain) in [
        ("let a: number = 1; return a", "let a = 1; return a;"),
        ("let a!: number; a = 1", "let a; a = 1;"),
        ("return f(a as any, b!)", "return f(a, b);"),
        ("return x satisfies Y", "return x;"),
        ("return <any>x", "return x;"),
        ("type A = { b: string }\nreturn 1", "; return 1;"),
        ("interface A { b: string }\nreturn 1", "; return 1;"),
        (
            "const f = (a?: string, b: number = 1): void => g(a)",
            "const f = (a, b = 1) => (__ag_tick(), g(a));",
        ),
        ("function f<T>(this: X, a: T): T { return a }", "function f(a) { __ag_tick(); return a; }"),
        (
            "class A<T> extends B<T> implements C { private readonly x: number = 1; y?: string }",
            "class A extends B { x = 1; y; }",
        ),
        (
            "abstract class A { declare a: B; abstract b(): void; c(): void; [d: string]: e; f!: g }",
            "class A { f; }",
        ),
        (
            "try { a() } catch (e: unknown) { b<T>(e) }",
            "try { return __ag_returns(0, await a()); } catch (e) { return __ag_returns(1, b(e)); }",
        ),
        ("a as B\n(c)", "a; return c;"),
        ("declare const x: number\nreturn 1", "; return 1;"),
        (
            "declare function f(): void\nfunction g(a: b): c\nfunction g(a) {}",
            "; ; function g(a) { __ag_tick(); }",
        ),
        ("const f = (a): {\n  b: number } => c", "const f = (a) => (__ag_tick(), c);"),
        ("(a as b) = c; (<d>e.f) += 1; g!++; [h as i] = j", "a = c; __ag_made(e.f += 1); g++; [h] = j;"),
        ("a?.b!.c; (a?.b)!.c; a?.b!; a!?.()", "a?.b.c; (a?.b).c; a?.b; return a?.();"),
        (
            "for (a as any of b) c; for (d! in e);",
            "for (a of b) { __ag_tick(); c; } for (d in e) { __ag_tick(); ; }",
        ),
        ("new A<B>(c); f<D>`e`; g<H>;", "new A(c); f(__ag_parts`e`); return g;"),
    ] {
        if printed(typed) != plain {
            wrong.push(format!("{typed}\n    printed  {}\n    expected {plain}", printed(typed)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_script_over_its_size_is_refused_before_anything_else() {
    let limits = Limits { script_bytes: 10, ..Limits::preset(Preset::Secure) };
    let result = ScriptSource::new("((((((((((((").validate(&policy(Preset::Secure), &limits);
    assert!(matches!(&result, Err(Rejection::Illegal { kind: IllegalKind::ScriptTooLarge, message, .. })
        if message.contains("12 bytes") && message.contains("at most 10")));
}

#[test]
fn locked_down_has_a_console_only_when_it_is_allowed() {
    let policy = ScriptPolicy::new(Preset::LockedDown);
    let console = |policy: &ScriptPolicy| {
        ScriptSource::new("console.log(1)").validate(policy, &Limits::preset(Preset::LockedDown))
    };
    assert_eq!(kind(&console(&policy)), "IllegalGlobalAccess");
    assert!(console(&policy.allow_console(true)).is_ok());
    assert!(validate("console.log(1)").is_ok());
}

#[test]
fn messages_say_what_to_do() {
    let message = |text: &str| validate(text).expect_err("refused").to_string();
    assert!(message("setTimeout(f, 1)").contains("use `await callTool(...)` directly"));
    assert!(message("eval('1')").contains("write the code in the script itself"));
    assert!(message("import x from 'y'").contains("modules are not available"));
    assert!(message("const callTool = 1").contains("rename yours"));
}

#[test]
fn messages_about_modules_say_what_to_write_instead() {
    for (text, advice) in [
        ("import fs from 'fs'", "remove the `import`"),
        ("import type { A } from 'a'; return 1 as A", "remove the `import`"),
        ("export const a = 1", "remove the `export`, and end the script with `return value`"),
        ("export async function main() {}", "remove the `export`"),
        ("export default class {}", "remove the `export`"),
        (
            "module.exports = async () => 1",
            "write what the function does as the script itself, and `return` the result",
        ),
        ("exports.run = () => 1", "write what the function does as the script itself"),
        ("await import('fs')", "call tools with `await callTool(name, input)`"),
        ("require('fs')", "call a tool with `await callTool(name, input)`"),
    ] {
        let refused = validate(text);
        let Err(Rejection::Illegal { kind: IllegalKind::IllegalModuleAccess, message, .. }) = &refused else {
            panic!("{text}: {refused:?}")
        };
        assert!(message.contains(advice), "{text}: {message}");
    }
}

#[test]
fn an_object_in_the_place_of_a_block_is_told_what_it_needs() {
    for text in [
        "try { const r = 1; { total: r, items: [] } } catch (e) {}",
        "if (a) return 1\n{ a: 1, b: 2 }",
        "{ \"a\": 1 }",
    ] {
        let refused = validate(text);
        let Err(Rejection::SyntaxError { message, .. }) = &refused else { panic!("{text}: {refused:?}") };
        assert!(
            message.contains("write `return` in front of it or put it in parentheses"),
            "{text}: {message}"
        );
    }
    let refused = validate("const a = 1 const b = 2");
    assert!(!format!("{refused:?}").contains("an object"), "{refused:?}");
}

#[test]
fn a_fence_hides_no_nesting_from_the_check_in_front_of_the_parser() {
    on_asked_stack(|| {
        let refused = |text: &str| validate(text).unwrap_err().to_string();
        let script = format!("return {}1{}\n", "[".repeat(20_000), "]".repeat(20_000));
        assert_eq!(refused(&format!("```js\n{script}```")), refused(&format!("     \n{script}")));
    });
}
