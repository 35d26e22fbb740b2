//! Text that tries to exhaust the validator: nesting, names, length and time.

use gatewright_agentscript::{IllegalKind, Limits, Preset, Rejection, Script, ScriptSource};

use crate::validate::{kind, on_asked_stack, policy, validate};

fn validate_in(text: &str, memory_bytes: u64) -> Result<Script, Rejection> {
    let limits = Limits { script_bytes: 8 << 20, memory_bytes, ..Limits::preset(Preset::Secure) };
    ScriptSource::new(text).validate(&policy(Preset::Secure), &limits)
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
