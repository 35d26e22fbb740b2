//! The validator: rules, syntax errors, types, places, and text that tries to break the parser.

use std::thread;

use gatewright_agentscript::{
    IllegalKind, Limits, Location, Preset, Rejection, Script, ScriptPolicy, ScriptSource, VALIDATE_STACK,
};

use crate::cases::{self, Case, Expect};

fn policy(preset: Preset) -> ScriptPolicy {
    ScriptPolicy::new(preset).reserved_tool_prefixes(["codecall:", "codecall_"])
}

fn validate(text: &str) -> Result<Script, Rejection> {
    validate_as(text, Preset::Secure)
}

fn validate_as(text: &str, preset: Preset) -> Result<Script, Rejection> {
    let limits = Limits { script_bytes: 8 << 20, ..Limits::preset(preset) };
    ScriptSource::new(text).validate(&policy(preset), &limits)
}

fn validate_in(text: &str, memory_bytes: u64) -> Result<Script, Rejection> {
    let limits = Limits { script_bytes: 8 << 20, memory_bytes, ..Limits::preset(Preset::Secure) };
    ScriptSource::new(text).validate(&policy(Preset::Secure), &limits)
}

/// Runs `work` on a stack of exactly `VALIDATE_STACK` bytes.
fn on_asked_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    thread::Builder::new().stack_size(VALIDATE_STACK).spawn(work).expect("a thread").join().expect("no panic")
}

fn kind(result: &Result<Script, Rejection>) -> String {
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

/// Shapes that nest: a name, the text in front, the start of a level, the middle, the end of a level.
pub(crate) const SHAPES: &[[&str; 5]] = &[
    ["parentheses", "", "(", "1", ")"],
    ["arrays", "", "[", "1", "]"],
    ["objects", "", "({a:", "1", "})"],
    ["not", "", "!", "1", ""],
    ["minus", "", "- ", "1", ""],
    ["typeof", "", "typeof ", "1", ""],
    ["typeof lines", "", "typeof\n", "1", ""],
    ["void lines", "", "void\n", "1", ""],
    ["await", "", "await ", "1", ""],
    ["new", "", "new ", "x", ""],
    ["conditional", "", "a?b:", "1", ""],
    ["conditional in the middle", "", "a?", "1", ":2"],
    ["templates", "", "`${", "1", "}`"],
    ["if", "", "if(1)", ";", ""],
    ["if lines", "", "if(1)\n", ";", ""],
    ["else if", "", "if(1);else ", ";", ""],
    ["else if blocks", "", "if(1){}else ", ";", ""],
    ["else if lines", "", "if(1)x\nelse ", ";", ""],
    ["while", "", "while(1)", ";", ""],
    ["for", "", "for(;;)", ";", ""],
    ["do", "", "do ", ";", " while(1);"],
    ["labels by line", "", "a\n:", "1", ""],
    ["blocks", "", "{", "", "}"],
    ["members", "", "", "a", ".b"],
    ["optional members", "", "", "a", "?.b"],
    ["indices", "", "", "a", "[0]"],
    ["calls", "", "", "a", "()"],
    ["tags", "", "", "a", "``"],
    ["non-null", "", "", "a", "!"],
    ["plus", "", "1+", "1", ""],
    ["plus lines", "", "1+\n", "1", ""],
    ["power", "", "1**", "1", ""],
    ["and", "", "1&&", "1", ""],
    ["assign", "", "a=", "1", ""],
    ["arrows", "", "a=>", "1", ""],
    ["arrows with parameters", "", "(a)=>", "1", ""],
    ["async arrows", "", "async a=>", "1", ""],
    ["default values", "", "(a=", "1", ")=>1"],
    ["functions", "", "function f(){", "", "}"],
    ["classes", "", "class A{m(){", "", "}}"],
    ["class fields", "", "(class{a=", "1", "})"],
    ["heritage", "", "class A extends ", "B", "{}"],
    ["destructuring", "var ", "{a:", "x", "}"],
    ["switch", "", "switch(1){case 1:", "", "}"],
    ["try", "", "try{", "", "}catch{}"],
    ["types", "let x: ", "Array<", "number", ">"],
    ["types with commas", "let x: ", "A<B,", "number", ">"],
    ["array types", "let x: number", "", "", "[]"],
    ["as", "", "", "a", " as any"],
    ["satisfies", "", "", "a", " satisfies any"],
    ["assertions", "", "<any>", "a", ""],
    ["keyof", "let x: ", "keyof ", "a", ""],
    ["conditional types", "type A = ", "a extends b ? c : ", "d", ""],
    ["function types", "let x: ", "()=>", "void", ""],
    ["brackets in strings", "')';", "(", "1", ")"],
    ["brackets behind a slash", "a/')'/1;", "(", "1", ")"],
    ["brackets behind a regular expression", "/[)/]'/;", "(", "1", ")"],
    ["commas between ifs", "", "if(1)a,(()=>{", "", "})()"],
    ["tuple types", "let x: ", "[", "a", "]"],
    ["types in parentheses", "let x: ", "(", "a", ")"],
    ["object types", "let x: ", "{a:", "b", "}"],
    ["readonly types", "let x: ", "readonly ", "a", ""],
    ["infer", "type A = a extends ", "infer ", "b", "? c : d"],
    ["constructor types", "let x: ", "new()=>", "a", ""],
    ["template types", "let x: ", "`${", "a", "}`"],
    ["type queries", "let x: ", "typeof a<", "b", ">"],
    ["mapped types", "let x: ", "{[k in ", "b", "]:c}"],
    ["type parameters", "type A", "<T extends A", "", ">"],
    ["generic arrows", "let x = ", "<T>(a)=>", "a", ""],
    ["array patterns", "var ", "[", "x", "]"],
    ["array targets", "", "[", "x", "]=1"],
    ["object targets", "(", "{a:", "x", "}=1)"],
    ["computed keys", "(", "{[", "x", "]:1})"],
    ["parameters", "function f(", "{a:", "x", "}){}"],
    ["conditional parentheses", "", "a?(", "b", ")"],
    ["conditional arrows", "", "a?(b)=>", "b", ":c"],
    ["async calls", "", "async(", "b", ")"],
    ["parentheses and commas", "", "(a,", "b", ")"],
    ["deletes", "", "delete ", "a", ""],
    ["yields", "function* f(){", "yield ", "a", "}"],
    ["increments", "", "++", "a", ""],
    ["spread", "", "[...", "a", "]"],
    ["imports", "", "import(", "a", ")"],
    ["new without arguments", "", "new (", "a", ")"],
    ["static blocks", "", "class A{static{", "", "}}"],
    ["getters", "(", "{get a(){return ", "1", "}}"],
    ["escaped words", "", "typ\\u0065of ", "a", ""],
    ["regular expressions", "/", "(", "a", ")/"],
    ["left brackets of objects", "(", "{...", "a", "})"],
    ["type assertions of arrows", "", "<a>(b)=>", "c", ""],
    ["nullish", "", "a??(", "b", ")"],
    ["classes that extend", "(", "class extends ", "b", "{})"],
    ["type arguments in calls", "", "f<a>(", "b", ")"],
    ["labels", "", "a:", "b", ""],
    ["labels apart", "", "a : ", "b", ""],
];

fn shape([_, before, open, middle, close]: &[&str; 5], times: usize) -> String {
    [*before, &open.repeat(times), middle, &close.repeat(times)].concat()
}

#[test]
fn nesting_of_any_shape_is_refused_and_exhausts_no_stack() {
    on_asked_stack(|| {
        for it in SHAPES {
            // The first that is parsed at all is the worst for the stack.
            let mut times = 60_000;
            let result = loop {
                match kind(&validate_in(&shape(it, times), 1 << 30)) {
                    result if result == "IllegalSyntax brackets" => times = times * 9 / 10,
                    result => break result,
                }
            };
            let refused = result.starts_with("IllegalSyntax") || result.starts_with("syntax");
            let in_types = it[1].starts_with("let x: ") || it[1].starts_with("type ");
            assert!(refused || in_types || result == "IllegalModuleAccess", "{}: {result}", it[0]);
        }
    });
}

#[test]
fn nesting_just_below_the_bound_is_walked_and_printed() {
    on_asked_stack(|| {
        for it in SHAPES {
            for times in [100, 390, 590, 1_190] {
                let _ = validate(&shape(it, times));
            }
        }
    });
}

#[test]
fn a_script_that_nests_too_deep_is_told_where() {
    let result =
        on_asked_stack(|| validate(&("const a =\n  ".to_owned() + &"[".repeat(2_000) + &"]".repeat(2_000))));
    let Err(Rejection::Illegal { kind: IllegalKind::IllegalSyntax, message, location }) = result else {
        panic!("{result:?}");
    };
    assert!(message.contains("nests deeper than 1200 levels"), "{message}");
    assert_eq!((location.line, location.column), (2, 1_202));
}

#[test]
fn brackets_within_each_other_are_counted_as_they_are_printed() {
    for (before, open, close, most) in [
        ("return ", "[", "]", 200),
        ("return ", "{a:", "}", 200),
        ("return '((((((((((' + ", "`([{${", "}`", 99),
        ("return /[([{]/.test() + ", "f(", ")", 200),
    ] {
        let nested = |times: usize| format!("{before}{}1{}", open.repeat(times), close.repeat(times));
        let fits = |times| validate(&nested(times)).is_ok();
        let deepest = (1..=201).rev().find(|times| fits(*times));
        assert!(deepest.is_some_and(|found| (most - 2..=most).contains(&found)), "{open}: {deepest:?}");
    }
}

#[test]
fn a_script_that_nests_too_many_brackets_is_told_where() {
    let text = "const a =\n  ".to_owned() + &"[".repeat(201) + &"]".repeat(201);
    let Err(Rejection::Illegal { kind: IllegalKind::IllegalSyntax, message, location }) = validate(&text)
    else {
        panic!("it is refused");
    };
    assert!(message.contains("nests brackets deeper than 200 levels"), "{message}");
    assert_eq!((location.line, location.column), (2, 203));
}

#[test]
fn a_script_declares_four_thousand_names_and_no_more() {
    let names = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("a{n}")).collect();
        format!("const [{}] = []", names.join(","))
    };
    assert!(validate(&names(4_000)).is_ok());
    let Err(Rejection::Illegal { kind: IllegalKind::IllegalSyntax, message, .. }) = validate(&names(4_001))
    else {
        panic!("it is refused");
    };
    assert!(message.contains("more than 4000 names"), "{message}");
}

#[test]
fn long_flat_scripts_are_not_taken_for_deep_ones() {
    let texts = [
        "const v = 1\n".to_owned(),
        (0..3_000).map(|n| format!("const v{n} = f({n})\n")).collect::<String>(),
        (0..3_000).map(|n| format!("if (x > {n}) {{ y.z.push({n} + 1) }}\n")).collect::<String>(),
        (0..3_000).map(|n| format!("if (a < {n}) b = {n}; else c = {n};\n")).collect::<String>(),
        format!(
            "return [{}]",
            (0..5_000).map(|n| format!("{{ id: {n}, name: 'n' + {n}, ok: !x }},\n")).collect::<String>()
        ),
        format!("return {{{}}}", (0..5_000).map(|n| format!("\"k{n}\": {n},\n")).collect::<String>()),
        format!(
            "switch (x) {{{}}}",
            (0..2_000).map(|n| format!("case {n}: y = {n}; break\n")).collect::<String>()
        ),
        (0..2_000).map(|n| format!("await callTool('t', {{ n: {n} }})\n")).collect::<String>(),
        format!("return '{}'", "([{".repeat(6_000)),
        format!("/* {} */ return 1", "([{".repeat(6_000)),
    ];
    for text in texts {
        let result = on_asked_stack(move || validate_in(&text, 128 << 20).map(|_| ()));
        assert_eq!(result, Ok(()));
    }
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
    assert_eq!(place(typed, "ü);\ng"), (3, 24));
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
        ("f(a => ({ b: a }))", "f((a) => (__ag_tick(), { b: a }));"),
        ("f(a => b => a)", "f((a) => (__ag_tick(), (b) => (__ag_tick(), a)));"),
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
        ("try { a() } catch (e: unknown) { b<T>(e) }", "try { a(); } catch (e) { b(e); }"),
        ("a as B\n(c)", "a; c;"),
        ("declare const x: number\nreturn 1", "; return 1;"),
        (
            "declare function f(): void\nfunction g(a: b): c\nfunction g(a) {}",
            "; ; function g(a) { __ag_tick(); }",
        ),
        ("const f = (a): {\n  b: number } => c", "const f = (a) => (__ag_tick(), c);"),
        ("(a as b) = c; (<d>e.f) += 1; g!++; [h as i] = j", "a = c; __ag_made(e.f += 1); g++; [h] = j;"),
        ("a?.b!.c; (a?.b)!.c; a?.b!; a!?.()", "a?.b.c; (a?.b).c; a?.b; a?.();"),
        (
            "for (a as any of b) c; for (d! in e);",
            "for (a of b) { __ag_tick(); c; } for (d in e) { __ag_tick(); ; }",
        ),
        ("new A<B>(c); f<D>`e`; g<H>;", "new A(c); f(__ag_parts`e`); g;"),
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
fn text_made_to_be_slow_to_judge_is_judged_in_time() {
    let part = "'".to_owned() + &"x".repeat(250) + "'";
    let texts = [
        format!("const s = {part}, a = [{}]; {}", "s,".repeat(250), "o[a];".repeat(10_000)),
        format!("const a = {part}; {}", "o[a ? a || a : a ?? a];".repeat(3_000)),
        format!("o[{}'y']", "'x'+".repeat(500)).repeat(30),
        "class A implements B {}\n".repeat(2_500),
        format!("return o{}", "['a'][`b`]".repeat(100)),
        "o[[[[[['x']]]]]];".repeat(3_000),
    ];
    let slowest = on_asked_stack(move || {
        let times = texts.map(|text| {
            let start = std::time::Instant::now();
            let _ = validate(&text);
            start.elapsed()
        });
        times.into_iter().max()
    });
    assert!(slowest.is_some_and(|slowest| slowest.as_secs() < 5), "{slowest:?}");
}

#[test]
fn messages_say_what_to_do() {
    let message = |text: &str| validate(text).expect_err("refused").to_string();
    assert!(message("setTimeout(f, 1)").contains("use `await callTool(...)` directly"));
    assert!(message("eval('1')").contains("write the code in the script itself"));
    assert!(message("import x from 'y'").contains("modules are not available"));
    assert!(message("const callTool = 1").contains("rename yours"));
}
