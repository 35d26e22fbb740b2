//! Invalid suite files: the place of each problem, and suggestions.

use gatewright_testing::suite::Suite;

/// The problems of a suite, as one text.
fn wrong(text: &str) -> String {
    Suite::parse("bad.yaml", text).unwrap_err().to_string()
}

#[test]
fn an_invalid_suite_is_reported_with_places_and_suggestions() {
    let rows = [
        ("tests: []", "bad.yaml:1: \"server\" is a required property"),
        (
            "server: { comand: x }\ntests: []",
            "bad.yaml:1: server.comand: unknown key; did you mean `command`?",
        ),
        (
            "server:\n  command: x\ntests:\n  - nam: t\n",
            "bad.yaml:4: tests.0.nam: unknown key; did you mean `name`?",
        ),
        ("server: {}\ntests: []", "server: it needs exactly one of `command` and `url`"),
        ("server: { command: x, url: 'http://a/mcp' }\ntests: []", "exactly one of `command` and `url`"),
        ("server: { url: example }\ntests: []", "server.url: `example` is no http or https URL"),
        ("server: [", "bad.yaml:1: "),
        (
            "server: { command: x }\nauth: { audiense: y }\ntests: []",
            "auth.audiense: unknown key; did you mean `audience`?",
        ),
        ("server: { command: x }\nauth: { issuer: 'http://a' }\ntests: []", "need its `key`"),
        (
            "server: { command: x }\ntests: [{ name: t, steps: [{ call: a, args: {} }] }]",
            "tests.0.steps.0.args: unknown key; did you mean `with`?",
        ),
        (
            "server: { command: x }\ntests: [{ name: t, steps: [{ call: a, expect: { structuredContent.b: 1 } }] }]",
            "unknown expectation; paths into the outcome stand under `at`: `at: { structuredContent.b: … }`",
        ),
        (
            "server: { command: x }\nauth: { faults: { jwks: slo:3 } }\ntests: []",
            "auth.faults.jwks: there is no fault `slo:3`; there are slow:MILLISECONDS",
        ),
        (
            "server: { command: x }\nauth: { faults: { jwk: garbage } }\ntests: []",
            "auth.faults.jwk: there is no endpoint `jwk`",
        ),
        (
            "server: { command: x }\nas: { sub: eve, broken: alg-nun }\ntests: []",
            "as.broken: `alg-nun`: unknown defect; did you mean `alg-none`?",
        ),
        (
            "server: { command: x }\nas: admim\ntests: []",
            "bad.yaml:2: as: `admim`: unknown user; did you mean `admin`?",
        ),
        (
            "server: { command: x }\nhttpMocks:\n  - { urlRegex: '(' }\ntests: []",
            "bad.yaml:3: httpMocks.0.urlRegex: this is no regular expression",
        ),
        (
            "server: { url: 'http://a/mcp' }\nhttpMocks: [{ url: x }]\ntests: []",
            "calls of a server that runs already cannot be mocked",
        ),
        (
            "server: { command: x, transport: stdo }\ntests: []",
            "server.transport: `stdo`: unknown value; did you mean `stdio`?",
        ),
        ("", "bad.yaml:1: "),
        ("- a\n- b", "bad.yaml:1: "),
        ("server: { command: x }\ntests: {}", "bad.yaml:2: tests: "),
        ("server: { command: x }\ntests: []\ntests: []", "bad.yaml:3: "),
        ("server:\n\tcommand: x", "bad.yaml:2: "),
        (
            "server: { command: x, logLevel: loud }\ntests: []",
            "bad.yaml:1: server.logLevel: `loud`: unknown value",
        ),
        ("server: { command: x, port: 70000 }\ntests: []", "bad.yaml:1: server.port"),
        (
            "server: { command: x }\ntests:\n  - { name: t, steps: [] }\n  - { name: t, steps: [] }",
            "bad.yaml:4: tests.1.name: there is a test `t` already",
        ),
        (
            "server: { command: x }\ntests:\n  - { name: a, record: f, steps: [] }\n  - { name: b, record: f, steps: [] }",
            "bad.yaml:4: tests.1.record: another test has this cassette",
        ),
        (
            "server: { command: x, perTest: true }\nrecordHttp: f\ntests: []",
            "bad.yaml:2: recordHttp: with `perTest`",
        ),
        ("server: { url: 'http://a/mcp' }\nrecordHttp: f\ntests: []", "start it with `command`"),
        (
            "server: { command: x }\nhttpMocks:\n  - { url: a, json: 1, text: b }\ntests: []",
            "bad.yaml:3: httpMocks.0: `json` and `text` exclude each other",
        ),
        ("server: { command: x }\nhttpMocks: [{ json: 1 }]\ntests: []", "it needs `url` or `urlRegex`"),
        (
            "server: { command: x }\ntests:\n  - name: t\n    steps: []\n    mocks:\n      - { tool: a, resource: b, response: c }",
            "bad.yaml:6: tests.0.mocks.0: it needs exactly one of `tool`, `resource` and `method`",
        ),
        (
            "server: { command: x }\ntests:\n  - name: t\n    steps: []\n    mocks:\n      - { tool: a }",
            "bad.yaml:6: tests.0.mocks.0: it needs exactly one of `response` and `error`",
        ),
        (
            "server: { command: x }\ntests: [{ name: t, steps: [], cases: [{ a: 1 }], variables: { a: 2 } }]",
            "bad.yaml:2: tests.0.variables.a: the cases have a variable of this name, too",
        ),
        (
            "server: { url: 'http://a/mcp' }\ntests: [{ name: t, steps: [], env: { A: b } }]",
            "tests.0.env: a server that runs already has its environment; start it with `command`",
        ),
        (
            "server: { command: x }\ntests: [{ name: t, steps: [], elicitation: { action: yes } }]",
            "bad.yaml:2: tests.0.elicitation.action",
        ),
    ];
    for (text, part) in rows {
        let told = wrong(text);
        assert!(told.contains(part), "{part}\n{told}");
        for line in told.lines() {
            let place = line.strip_prefix("bad.yaml:").and_then(|rest| rest.split_once(": "));
            assert!(place.is_some_and(|(line, _)| line.parse::<usize>().is_ok()), "no line: {told}");
        }
    }
    assert!(
        Suite::from_file("/no/such.yaml")
            .unwrap_err()
            .to_string()
            .contains("/no/such.yaml: it cannot be read")
    );
}

#[test]
fn an_invalid_step_is_reported_with_places_and_suggestions() {
    let of = |step: &str| {
        wrong(&format!("server: {{ command: x }}\ntests:\n  - name: t\n    steps:\n      - {step}\n"))
    };
    let rows = [
        (
            "{ list: tools, expect: [toContainTol: a] }",
            "bad.yaml:5: tests.0.steps.0.expect.0.toContainTol: `toContainTol`: unknown expectation; did you mean `toContainTool`?",
        ),
        ("{ list: tools, call: a }", "this one is `list` and `call`"),
        ("{ expect: [toBeError] }", "this one is none"),
        ("{ list: tool }", "tests.0.steps.0.list"),
        (
            "{ call: a, expect: [toBeError: soon] }",
            "`toBeError` takes a whole number, such as -32602, or nothing, not \"soon\"",
        ),
        ("{ get: a, expect: [toHaveMessages: many] }", "`toHaveMessages` takes a whole number of 0 or more"),
        ("{ list: tools, expect: [toContainTool] }", "`toContainTool` takes a text, not null"),
        ("{ call: a, expect: [toBeSuccessful: soon] }", "`toBeSuccessful` takes no argument"),
        (
            "{ call: a, expect: [7] }",
            "an expectation is a name, names with their arguments, or a list of these, not 7",
        ),
        ("{ list: tools, with: { a: 1 } }", "`with` belongs to `call`, `get`, `notify`, not to `list`"),
        ("{ call: a, count: 2 }", "`count` belongs to `wait`, `asked`, `httpCalls`"),
        (
            "{ call: a, save: { x: structuredContent.id } }",
            "is no JSON pointer; did you mean `/structuredContent/id`?",
        ),
        ("{ call: a, copies: 2 }", "`copies` belongs to the steps in `parallel`; use `repeat`"),
        ("{ parallel: [] }", "it needs at least one step"),
        ("{ parallel: [{ authenticate: admin }] }", "give the step a user with `as`"),
        ("{ parallel: [{ cal: a }] }", "parallel.0.cal: unknown key; did you mean `call`?"),
        ("{ call: a, as: admim }", "steps.0.as: `admim`: unknown user; did you mean `admin`?"),
        ("{ httpCalls: x }", "without `httpMocks` or `recordHttp`"),
        ("{ authenticate: nobody }", "`nobody`: unknown user"),
    ];
    for (step, part) in rows {
        assert!(of(step).contains(part) && of(step).starts_with("bad.yaml:5: "), "{part}\n{}", of(step));
    }
}

#[test]
fn all_problems_of_a_suite_are_reported_in_the_order_of_the_file() {
    let text = wrong("server: { comand: x }\ntests:\n  - name: t\n    stps: []\n    steps: []\n");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(
        lines[0].starts_with("bad.yaml:1: server.comand") && lines[1].starts_with("bad.yaml:4: tests.0.stps"),
        "{text}"
    );
}

#[test]
fn the_schema_has_every_key_and_every_expectation() {
    let schema = gatewright_testing::suite::schema();
    for key in
        ["server", "auth", "users", "setup", "beforeEach", "afterEach", "teardown", "tests", "httpMocks"]
    {
        assert!(schema["properties"][key]["description"].is_string(), "{key}: {schema:#}");
    }
    let names = schema["$defs"]["Expectations"]["anyOf"][0]["enum"].as_array().unwrap();
    assert!(names.len() >= 33 && names.contains(&"toBeRefused".into()), "{names:?}");
    assert!(schema["$defs"]["Step"]["properties"]["listen"]["description"].is_string());
}

#[test]
fn a_suite_that_cannot_work_is_reported_before_it_runs() {
    let wrong = |text: &str| {
        Suite::parse("x.yaml", &format!("server: {{ command: x }}\n{text}")).unwrap_err().to_string()
    };
    assert_eq!(wrong("tests: []"), "x.yaml:2: tests: a suite holds at least one test");
    let text = wrong("variables: { a: \"${b}\", b: \"${a}\" }\ntests: [{ name: t, steps: [] }]");
    assert!(
        text.starts_with("x.yaml:2: variables.a: the variable `a` leads back to itself: `a` → `b` → `a`"),
        "{text}"
    );
    let text =
        wrong("tests: [{ name: t, steps: [], variables: { own: \"${own}!\", a: \"${b}\", b: \"${a}\" } }]");
    assert!(
        text.starts_with(
            "x.yaml:2: tests.0.variables.a: the variable `a` leads back to itself: `a` → `b` → `a`"
        ),
        "{text}"
    );
    assert!(!text.contains("own"), "{text}");
    let text = wrong(
        "httpMocks: [{ url: x, status: 9999, headers: { \"a b\": c } }]\ntests: [{ name: t, steps: [] }]",
    );
    assert!(
        text.contains("9999 is no HTTP status") && text.contains("`a b` is no name of an HTTP header"),
        "{text}"
    );
    assert_eq!(wrong("tests: []\ntests: []"), "x.yaml:3: duplicate mapping key: tests");
}

#[test]
fn every_problem_is_reported_at_once_whatever_its_kind() {
    let text = wrong(
        "server: { comand: x, transport: stdo }\nas: admim\nhttpMocks: [{ urlRegex: '(' }]\nvariables: { a: \"${a}\" }\ntests:\n\
         \x20 - nam: t\n\
         \x20   steps:\n\
         \x20     - { cal: x }\n\
         \x20     - { call: y, expect: [toContainTol: a] }\n\
         \x20     - { call: y, as: nobody, timeoutMs: soon }\n\
         \x20 - { name: u, steps: [{ list: tool }, { call: a, count: 2 }], cases: 7 }\n",
    );
    for part in [
        "bad.yaml:1: server.comand: unknown key; did you mean `command`?",
        "bad.yaml:1: server.transport: `stdo`: unknown value; did you mean `stdio`?",
        "bad.yaml:2: as: `admim`: unknown user; did you mean `admin`?",
        "bad.yaml:3: httpMocks.0.urlRegex: this is no regular expression",
        "bad.yaml:4: variables.a: the variable `a` leads back to itself",
        "bad.yaml:6: tests.0.nam: unknown key; did you mean `name`?",
        "bad.yaml:8: tests.0.steps.0.cal: unknown key; did you mean `call`?",
        "bad.yaml:9: tests.0.steps.1.expect.0.toContainTol: `toContainTol`: unknown expectation; did you mean `toContainTool`?",
        "bad.yaml:10: tests.0.steps.2.as: `nobody`: unknown user",
        "bad.yaml:10: tests.0.steps.2.timeoutMs: ",
        "bad.yaml:11: tests.1.steps.0.list: `tool`: unknown value; did you mean `tools`?",
        "bad.yaml:11: tests.1.steps.1.count: `count` belongs to `wait`",
        "bad.yaml:11: tests.1.cases: ",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("this one is none") && !text.contains("exactly one of `command`"), "{text}");
}

#[test]
fn unknown_variables_are_found_before_anything_starts() {
    let suite = Suite::parse(
        "x.yaml",
        "server: { command: x, env: { A: \"${ctiy}\" } }\nvariables: { city: Oslo }\nsetup: [{ call: a, save: { shared: /x } }]\n\
         beforeEach: [{ call: a, with: { own: \"${own}\" }, save: { before: /x } }]\nafterEach: [{ call: \"${saved} ${never}\" }]\ntests:\n\
         \x20 - name: t\n    variables: { own: \"${shared}\" }\n    steps:\n\
         \x20     - { call: \"${before} ${own} ${random} ${env.HOME} $${literal}\", save: { saved: /x } }\n\
         \x20     - { call: \"${saved} ${option}\" }\n\
         \x20 - { name: \"${n}\", cases: [{ n: 1 }], steps: [{ call: \"${n} ${saved}\" }] }\n",
    )
    .unwrap();
    let mut options = gatewright_testing::suite::RunOptions::default();
    options.variables.insert("option".into(), 1.into());
    let text = suite.check(&options).unwrap_err().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines[0].starts_with("x.yaml:1: server.env.A: `${ctiy}`: unknown variable; did you mean `city`?"),
        "{text}"
    );
    assert!(lines[1].starts_with("x.yaml:5: afterEach.0.call: `${never}`: unknown variable"), "{text}");
    assert!(lines[2].starts_with("x.yaml:12: tests.1.steps.0.call: `${saved}`: unknown variable"), "{text}");
}

#[test]
fn only_true_and_false_are_booleans() {
    // YAML 1.2: `no`, `y` and `on` are text.
    let steps = "[{ call: a, with: { country: NO, answer: y, switch: on, yes: yes, is: true } }]";
    let text = format!(
        "server: {{ command: x }}\nvariables: {{ a: no }}\ntests: [{{ name: n, skip: off, steps: {steps} }}]"
    );
    assert!(Suite::parse("x.yaml", &text).is_ok());
    let told = wrong("server: { command: x, perTest: yes }\ntests: [{ name: t, steps: [] }]");
    assert!(told.starts_with("bad.yaml:1: server.perTest: must be `true` or `false`"), "{told}");
}

#[test]
fn the_examples_of_the_documentation_are_valid() {
    let pages = concat!(
        include_str!("../../../../docs/testing/suites.md"),
        include_str!("../../../../docs/testing/wire.md")
    );
    let pages = pages.replace("```yaml suite\n", "```yaml\n");
    let blocks: Vec<&str> =
        pages.split("```yaml\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0)).collect();
    assert!(blocks.len() >= 8, "{}", blocks.len());
    for block in blocks {
        let mut text = block.to_owned();
        if !text.lines().any(|line| line.starts_with("server:")) {
            let users = if text.contains("users:") { "" } else { "users: { ada: { sub: ada } }\n" };
            text.insert_str(0, &format!("server: {{ command: x }}\n{users}"));
        }
        if !text.lines().any(|line| line.starts_with("tests:")) {
            text.push_str("tests: [{ name: t, steps: [] }]\n");
        }
        let suite = Suite::parse("suites.md", &text).unwrap_or_else(|error| panic!("{error}\n{block}"));
        suite.check(&Default::default()).unwrap_or_else(|error| panic!("{error}\n{block}"));
    }
}
