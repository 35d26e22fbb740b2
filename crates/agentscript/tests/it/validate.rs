//! The validator alone: rules, syntax errors, types, places, and text that tries to break the parser.

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

/// Runs `work` on the stack the validator asks for, and not a page more.
fn on_asked_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    thread::Builder::new().stack_size(VALIDATE_STACK).spawn(work).expect("a thread").join().expect("no panic")
}

fn kind(result: &Result<Script, Rejection>) -> String {
    match result {
        Ok(_) => "allowed".to_owned(),
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
fn nesting_that_would_exhaust_the_stack_is_refused_and_never_parsed() {
    let results = on_asked_stack(|| {
        let deep: Vec<(&str, String)> = [
            ("parentheses", "(", "1", ")"),
            ("arrays", "[", "1", "]"),
            ("objects", "({a:", "1", "})"),
            ("not", "!", "1", ""),
            ("minus", "- ", "1", ""),
            ("typeof", "typeof ", "1", ""),
            ("typeof lines", "typeof\n", "1", ""),
            ("void lines", "void\n", "1", ""),
            ("await", "await ", "1", ""),
            ("new", "new ", "x", ""),
            ("conditional", "a?b:", "1", ""),
            ("conditional in the middle", "a?", "1", ":2"),
            ("templates", "`${", "1", "}`"),
            ("if", "if(1)", ";", ""),
            ("if lines", "if(1)\n", ";", ""),
            ("else if", "if(1);else ", ";", ""),
            ("else if blocks", "if(1){}else ", ";", ""),
            ("else if lines", "if(1)x\nelse ", ";", ""),
            ("while", "while(1)", ";", ""),
            ("for", "for(;;)", ";", ""),
            ("do", "do ", ";", " while(1);"),
            ("labels by line", "a\n:", "1", ""),
            ("blocks", "{", "", "}"),
            ("members", "", "a", ".b"),
            ("optional members", "", "a", "?.b"),
            ("indices", "", "a", "[0]"),
            ("calls", "", "a", "()"),
            ("tags", "", "a", "``"),
            ("non-null", "", "a", "!"),
            ("plus", "1+", "1", ""),
            ("plus lines", "1+\n", "1", ""),
            ("power", "1**", "1", ""),
            ("and", "1&&", "1", ""),
            ("assign", "a=", "1", ""),
            ("arrows", "a=>", "1", ""),
            ("arrows with parameters", "(a)=>", "1", ""),
            ("async arrows", "async a=>", "1", ""),
            ("default values", "(a=", "1", ")=>1"),
            ("functions", "function f(){", "", "}"),
            ("classes", "class A{m(){", "", "}}"),
            ("class fields", "(class{a=", "1", "})"),
            ("heritage", "class A extends ", "B", "{}"),
            ("destructuring", "var {a:", "x", "}=1"),
            ("switch", "switch(1){case 1:", "", "}"),
            ("try", "try{", "", "}catch{}"),
            ("types", "let x: Array<", "number", ">"),
            ("types with commas", "let x: A<B,", "number", ">"),
            ("array types", "let x: number", "", "[]"),
            ("as", "", "a", " as any"),
            ("satisfies", "", "a", " satisfies any"),
            ("assertions", "<any>", "a", ""),
            ("keyof", "let x: keyof ", "a", ""),
            ("conditional types", "type A = a extends b ? c : ", "d", ""),
            ("function types", "let x: ()=>", "void", ""),
            ("brackets in strings", "')';(", "1", ")"),
            ("brackets behind a slash", "a/')'/1;(", "1", ")"),
            ("brackets behind a regular expression", "/[)/]'/;(", "1", ")"),
            ("commas between ifs", "if(1)a,(()=>{", "", "})()"),
        ]
        .into_iter()
        .map(|(name, open, middle, close)| (name, open.repeat(60_000) + middle + &close.repeat(60_000)))
        .collect();
        deep.into_iter().map(|(name, text)| (name, kind(&validate(&text)))).collect::<Vec<_>>()
    });
    for (name, result) in results {
        assert!(result == "IllegalSyntax" || result.starts_with("syntax"), "{name}: {result}");
    }
}

#[test]
fn nesting_just_below_the_bound_fits_the_stack_that_is_asked_for() {
    on_asked_stack(|| {
        let near = |open: &str, middle: &str, close: &str, each: usize| {
            let times = 1_190 / each;
            open.repeat(times) + middle + &close.repeat(times)
        };
        for text in [
            near("(", "1", ")", 1),
            near("[", "1", "]", 1),
            near("({a:", "1", "})", 2),
            near("!", "1", "", 1),
            near("a?b:", "1", "", 1),
            near("if(1)", ";", "", 2),
            near("1+", "1", "", 1),
            near("(()=>{", "", "})", 4),
            near("(class{m(){", "", "}})", 3),
            near("function f(){", "", "}", 1),
            near("`${", "1", "}`", 1),
            near("", "a", ".b", 1),
            near("{", "", "}", 1),
            near("(a=>", "1", ")", 2),
            near("for(;;)", ";", "", 3),
            near("let x: Array<", "number", ">", 1),
        ] {
            let _ = validate(&text);
        }
    });
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
        format!("return '{}'", "([{".repeat(20_000)),
        format!("/* {} */ return 1", "([{".repeat(20_000)),
    ];
    for text in texts {
        let result = on_asked_stack(move || validate(&text).map(|_| ()));
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
fn places_at_run_time_leave_the_ticks_out() {
    let script = validate("for (const a of b) f(a); const g = x => h(x); last()").expect("allowed");
    let column = |needle: &str| u32::try_from(script.text().find(needle).expect("kept")).expect("short") + 1;
    let map = |needle: &str| script.map_location(Location { line: 1, column: column(needle) }).column;
    assert_eq!((map("f(a)"), map("h(x)"), map("last()")), (20, 41, 47));
}

#[test]
fn every_loop_and_function_counts_its_turns() {
    for (text, ticked) in [
        ("while (a) b()", "while (a) {__ag_tick();b()}"),
        ("while (a) { b() }", "while (a) {__ag_tick(); b() }"),
        ("do b(); while (a)", "do {__ag_tick();b();} while (a)"),
        ("for (;;) for (;;) x;", "for (;;) {__ag_tick();for (;;) {__ag_tick();x;}}"),
        ("f(a => ({ b: a }))", "f(a => (__ag_tick(),({ b: a })))"),
        ("f(a => b => a)", "f(a => (__ag_tick(),b => (__ag_tick(),a)))"),
        ("while (a) f = b => b", "while (a) {__ag_tick();f = b => (__ag_tick(),b)}"),
        ("function f() {}", "function f() {__ag_tick();}"),
        ("class A { m() { return 1 } }", "class A { m() {__ag_tick(); return 1 } }"),
        ("const o = { get a() { return 1 } }", "const o = { get a() {__ag_tick(); return 1 } }"),
        ("l: for (const a of b) continue l", "l: for (const a of b) {__ag_tick();continue l}"),
    ] {
        assert_eq!(validate(text).expect(text).text(), ticked);
    }
}

#[test]
fn a_tick_receives_the_variables_that_may_hold_a_growing_text() {
    for (text, ticked) in [
        ("let s = 'a'; while (1) s += s", "let s = 'a'; while (1) {__ag_tick(s);s += s}"),
        ("let s = 'a'; while (1) { s = s + 'b' }", "let s = 'a'; while (1) {__ag_tick(s); s = s + 'b' }"),
        ("for (let s = 'a';; s += s) {}", "for (let s = 'a';; s += s) {__ag_tick(s);}"),
        ("for (let s = 'a';; s = `${s}${s}`) x;", "for (let s = 'a';; s = `${s}${s}`) {__ag_tick(s);x;}"),
        ("const f = (s) => f(s + s)", "const f = (s) => (__ag_tick(s),f(s + s))"),
        ("while (1) o.s += o.s", "while (1) {__ag_tick(); __ag_made(o.s += o.s)}"),
        ("while (1) f(o.s + s + 'b')", "while (1) {__ag_tick();f( __ag_made(o.s + s + 'b'))}"),
        ("while (1) f(`${o.s}`, t`${o.s}`)", "while (1) {__ag_tick();f( __ag_made(`${o.s}`), t`${o.s}`)}"),
        ("while (1) o.n += 1", "while (1) {__ag_tick();o.n += 1}"),
        ("while (1) f(a?.b.concat(c))", "while (1) {__ag_tick();f( __ag_made(a?.b.concat(c)))}"),
        ("while (1) f(a?.b.concat(c).d().e)", "while (1) {__ag_tick();f(a?.b.concat(c).d().e)}"),
        ("return a", "return a"),
        ("if (a) return; return b", "if (a) return; return  __ag_returns(1,(b))"),
        (
            "while (a) return b, c\nreturn () => d",
            "while (a) {__ag_tick();return  __ag_returns(0,(b, c))}\nreturn  __ag_returns(1,(() => (__ag_tick(),d)))",
        ),
        ("f(() => { return a }); return b", "f(() => {__ag_tick(); return a }); return b"),
        ("while (1) f(a?.b.concat(c).d())", "while (1) {__ag_tick();f( __ag_made(a?.b.concat(c).d()))}"),
        ("while (1) f(a.b.concat(c))", "while (1) {__ag_tick();f( __ag_made(a.b.concat(c)))}"),
        ("const f = (s, t = s + s) => f(t)", "const f = (s, t =  __ag_made(s + s)) => (__ag_tick(),f(t))"),
        ("function f(s) { return f(s.concat(s)) }", "function f(s) {__ag_tick(s); return f(s.concat(s)) }"),
        // Names that mean something else, or nothing yet, where the tick goes.
        ("for (let s = 1;; s += 1) { let s = 2 }", "for (let s = 1;; s += 1) {__ag_tick(); let s = 2 }"),
        ("while (1) { let s = 'a'; s += s }", "while (1) {__ag_tick(); let s = 'a'; s += s }"),
        (
            "const f = (g = b => b + b) => g(1)",
            "const f = (g = b => (__ag_tick(b), __ag_made(b + b))) => (__ag_tick(),g(1))",
        ),
        (
            "for (let i = (b => b + 1)(0);;) x;",
            "for (let i = (b => (__ag_tick(b),b + 1))(0);;) {__ag_tick();x;}",
        ),
        ("while (1) x(); let s = ''; s += s", "while (1) {__ag_tick();x();} let s = '';  __ag_made(s += s)"),
    ] {
        assert_eq!(validate(text).expect(text).text(), ticked);
    }
}

#[test]
fn types_are_blanked_and_every_line_and_column_stays() {
    for (typed, plain) in [
        ("let a: number = 1; return a", "let a         = 1; return a"),
        ("let a!: number; a = 1", "let a         ; a = 1"),
        ("return f(a as any, b!)", "return f(a       , b )"),
        ("return x satisfies Y", "return x;           "),
        ("return <any>x", "return      x"),
        ("type A = { b: string }\nreturn 1", ";                     \nreturn 1"),
        ("interface A { b: string }\nreturn 1", ";                        \nreturn 1"),
        (
            "const f = (a?: string, b: number = 1): void => g(a)",
            "const f = (a         , b         = 1)       => (__ag_tick(),g(a))",
        ),
        (
            "function f<T>(this: X, a: T): T { return a }",
            "function f   (         a   )    {__ag_tick(); return a }",
        ),
        (
            "class A<T> extends B<T> implements C { private readonly x: number = 1; y?: string }",
            "class A    extends B                 { ;                x         = 1; y ;        }",
        ),
        ("try { a() } catch (e: unknown) { b<T>(e) }", "try { a() } catch (e         ) { b   (e) }"),
        ("a as B\n(c)", "a;    \n(c)"),
        ("declare const x: number\nreturn 1", ";                      \nreturn 1"),
        ("const f = (a): {\n  b: number } => c", "const f = (a    \n            ) => (__ag_tick(),c)"),
    ] {
        let got = validate(typed);
        assert_eq!(got.as_ref().map(Script::text), Ok(plain), "{typed}");
    }
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
