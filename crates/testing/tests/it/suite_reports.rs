//! Reports of suites: failures, misbehaving servers, formats.

use std::{sync::Mutex, time::Duration};

use gatewright_findings::must_be_escaped;
use gatewright_testing::suite::{
    Live, LiveFormat, RunOptions, Suite, SuiteReport, TestOutcome, TestReport, junit, readable, run_all, tap,
};

use crate::support::{script, suite_of_everything as everything};

#[tokio::test]
async fn a_failure_names_step_expectation_and_requests() {
    let suite =
        everything("tests: [{ name: \"a <b>\", steps: [{ list: tools, expect: [toContainTool: ecko] }] }]");
    let report = suite.run(&RunOptions::default()).await;
    assert!(!report.passed());
    let TestOutcome::Failed(why) = &report.tests[0].outcome else { panic!("{report:?}") };
    for part in [
        "suite.yaml:3: step 1 (list): toContainTool\nexpected: a tool `ecko`",
        "did you mean `echo`?",
        "requests:\n  tools/list",
        "| listening on",
    ] {
        assert!(why.contains(part), "{part:?} is not in\n{why}");
    }
    let text = tap(std::slice::from_ref(&report));
    assert!(
        text.starts_with(
            "TAP version 14\n1..1\nnot ok 1 - everything > a <b>\n  ---\n  message: |\n    suite.yaml:3: step 1"
        ),
        "{text}"
    );
    let xml = junit(&[report]);
    assert!(
        xml.contains("<testsuite name=\"everything\" tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\""),
        "{xml}"
    );
    assert!(
        xml.contains("name=\"a &lt;b&gt;\"")
            && xml.contains("<failure type=\"expectation\" message=\"suite.yaml:3: step 1"),
        "{xml}"
    );
}

#[test]
fn text_of_a_server_directs_no_terminal_whatever_the_format() {
    let hostile = "x\u{1b}]0;pwn\u{7}\u{9b}31m\u{202e}\r";
    let suite =
        Suite::parse("x", "server: { url: 'http://127.0.0.1:9/mcp' }\ntests: [{ name: a, steps: [] }]")
            .unwrap();
    let outcomes = [
        TestOutcome::Passed,
        TestOutcome::Failed(hostile.to_owned()),
        TestOutcome::Skipped(hostile.to_owned()),
    ];
    for outcome in outcomes {
        let test = TestReport {
            name: hostile.to_owned(),
            line: None,
            outcome,
            failure: None,
            duration: Duration::ZERO,
            notes: vec![hostile.to_owned()],
        };
        let report = SuiteReport {
            name: hostile.to_owned(),
            file: "suite.yaml".to_owned(),
            tests: vec![test.clone()],
            left_out: 0,
            interrupted: false,
        };
        let live = |format| Live::new(format, std::slice::from_ref(&suite)).test(&suite, &test);
        let reports = std::slice::from_ref(&report);
        let texts = [
            tap(reports),
            readable(reports, false),
            live(LiveFormat::Tap),
            live(LiveFormat::Github),
            live(LiveFormat::Readable { colours: false }),
        ];
        for text in texts {
            assert!(
                text.contains("pwn") && !text.contains(|c: char| c != '\n' && must_be_escaped(c)),
                "{text:?}"
            );
        }
        let coloured = readable(reports, true);
        assert!(
            coloured.contains("pwn") && !coloured.contains("\u{1b}]") && !coloured.contains('\u{9b}'),
            "{coloured:?}"
        );
    }
}

#[tokio::test]
async fn a_server_that_does_not_start_fails_every_test_with_its_last_lines() {
    let text = format!(
        "server: {{ command: {}, env: {{ BREAK: exit }} }}\ntests: [{{ name: a, steps: [] }}, {{ name: b, steps: [] }}]",
        script("tiny.mjs")
    );
    let report = Suite::parse("x", &text).unwrap().run(&RunOptions::default()).await;
    for test in report.tests {
        assert!(matches!(test.outcome, TestOutcome::Failed(why) if why.contains("no database: giving up")));
    }
}

#[tokio::test]
async fn a_test_that_takes_too_long_is_stopped() {
    let suite =
        everything("tests: [{ name: slow, timeoutMs: 100, steps: [{ wait: never, timeoutMs: 60000 }] }]");
    let report = suite.run(&RunOptions::default()).await;
    assert!(
        matches!(&report.tests[0].outcome, TestOutcome::Failed(why) if why.contains("longer than 100ms")),
        "{report:?}"
    );
}

fn why(report: &SuiteReport) -> &str {
    match &report.tests[0].outcome {
        TestOutcome::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

/// A suite for the small server over standard input and output.
fn tiny(broken: &str, rest: &str) -> Suite {
    let text = format!(
        "server: {{ command: {}, args: [--stdio], transport: stdio, env: {{ BREAK: \"{broken}\" }}, startupTimeoutMs: 60000 }}\n{rest}",
        script("tiny.mjs")
    );
    Suite::parse("suite.yaml", &text).unwrap()
}

#[tokio::test]
async fn a_timeout_names_the_step_and_its_request() {
    for (broken, says) in [
        ("silence", "no answer: the test waited no longer"),
        ("words", "where only messages belong (log to standard error instead): let me see"),
        ("other-id", "wrong on the wire: an answer nobody waits for: {\"jsonrpc\":\"2.0\",\"id\":\"other\""),
    ] {
        // The server may start slowly on a busy machine.
        for seconds in [1, 4, 16, 64] {
            let suite = tiny(
                broken,
                &format!("tests: [{{ name: t, timeoutMs: {seconds}000, steps: [{{ list: tools }}] }}]"),
            );
            let report = suite.run(&RunOptions::default()).await;
            let why = why(&report);
            if why.starts_with("while it connected: ") && seconds < 64 {
                continue;
            }
            let head = format!("suite.yaml:2: step 1 (list): the test took longer than {seconds}s");
            assert!(why.starts_with(&head) && why.contains("tools/list {}") && why.contains(says), "{why}");
            break;
        }
    }
}

#[tokio::test]
async fn a_stdio_server_that_does_not_respond_in_time_is_reported_with_its_command() {
    let text = format!(
        "server: {{ command: {}, args: [--stdio], transport: stdio, env: {{ BREAK: mute }}, startupTimeoutMs: 300 }}\n\
         tests: [{{ name: t, steps: [{{ list: tools }}] }}]",
        script("tiny.mjs")
    );
    let report = Suite::parse("suite.yaml", &text).unwrap().run(&RunOptions::default()).await;
    let why = why(&report);
    for part in [
        "`initialize` was not answered within 300ms",
        "command: node ",
        "try: it must answer on its standard output",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
}

#[tokio::test]
async fn responses_that_are_not_json_rpc_fail_the_test() {
    for (broken, says) in [
        ("bare", "it has no `\"jsonrpc\": \"2.0\"`"),
        ("both", "it has both `result` and `error`"),
        ("revision", "which this client does not speak"),
    ] {
        let suite = tiny(broken, "tests: [{ name: t, steps: [{ list: tools }] }]");
        let report = suite.run(&RunOptions::default()).await;
        assert!(why(&report).contains(says), "{broken}: {}", why(&report));
    }
}

#[tokio::test]
async fn protocol_violations_are_noted_in_a_test_that_passes() {
    let suite = tiny("twice", "tests: [{ name: t, steps: [{ list: tools }, { raw: { method: ping } }] }]");
    let report = suite.run(&RunOptions::default()).await;
    report.assert_passed();
    assert!(report.tests[0].notes[0].starts_with("an answer nobody waits for"), "{report:?}");
    let (text, lines) = (readable(std::slice::from_ref(&report), false), tap(&[report]));
    assert!(text.contains("\n      ! an answer nobody waits for"), "{text}");
    assert!(lines.contains("\n# an answer nobody waits for"), "{lines}");
}

#[tokio::test]
async fn a_server_that_dies_during_a_test_is_reported_with_its_exit_status() {
    let text = format!(
        "server: {{ command: {}, env: {{ BREAK: die }} }}\ntests: [{{ name: t, steps: [{{ list: tools }}] }}]",
        script("tiny.mjs")
    );
    let report = Suite::parse("suite.yaml", &text).unwrap().run(&RunOptions::default()).await;
    assert!(why(&report).contains("the server ended: signal: 9 (SIGKILL)"), "{}", why(&report));
}

#[tokio::test]
async fn a_missing_script_is_reported_with_a_suggestion() {
    let near = script("tiny.mjs").replace("tiny.mjs", "tinny.mjs");
    let text = format!("server: {{ command: {near} }}\ntests: [{{ name: t, steps: [{{ list: tools }}] }}]");
    let report = Suite::parse("suite.yaml", &text).unwrap().run(&RunOptions::default()).await;
    let why = why(&report);
    assert!(
        why.contains(&format!("there is no file {near}")) && why.contains("did you mean `tiny.mjs`"),
        "{why}"
    );
}

#[tokio::test]
async fn a_rejection_is_reported_before_other_expectations() {
    let text = format!(
        "server: {{ command: {}, env: {{ BREAK: auth }} }}\n\
         tests: [{{ name: t, steps: [{{ list: tools, expect: [toContainTool: env] }}] }}]",
        script("tiny.mjs")
    );
    let report = Suite::parse("suite.yaml", &text).unwrap().run(&RunOptions::default()).await;
    let why = why(&report);
    let says = "step 1 (list): the server refused the request: HTTP 401";
    assert!(why.contains(says) && why.contains("expect it with `toBeRefused`"), "{why}");
}

#[tokio::test]
async fn a_suite_sees_a_rejection_and_its_json_rpc_error() {
    let text = format!(
        "server: {{ command: {}, env: {{ BREAK: refuse }} }}\n\
         tests:\n  - name: t\n    steps:\n\
         \x20     - {{ list: tools, expect: [toHaveErrorCode: -32001, toBeRefused: 401] }}\n\
         \x20     - {{ raw: {{ method: ping }}, expect: [toHaveErrorCode: -32001, toBeRefused: 403] }}\n",
        script("tiny.mjs")
    );
    let report = Suite::parse("suite.yaml", &text).unwrap().run(&RunOptions::default()).await;
    assert!(report.passed(), "{}", readable(&[report], false));
}

#[tokio::test]
async fn an_error_that_a_suite_mocks_keeps_its_code_and_data() {
    let suite = everything(
        "tests:\n  - name: t\n    mocks: [{ tool: echo, error: { code: -32042, message: m, data: { url: \"https://a.example\" } } }]\n    \
         steps: [{ raw: { method: tools/call, params: { name: echo } }, expect: [toHaveErrorCode: -32042, toMatchJson: { error: { data: { url: \"https://a.example\" } } }] }]",
    );
    let report = suite.run(&RunOptions::default()).await;
    assert!(report.passed(), "{}", readable(&[report], false));
}

#[tokio::test]
async fn all_report_formats_agree() {
    let suite = everything(
        "tests:\n  - { name: good, steps: [] }\n  - { name: bad, steps: [{ call: nope }] }\n  - { name: later, skip: why, steps: [] }",
    );
    let report = suite.run(&RunOptions::default()).await;
    let text = readable(std::slice::from_ref(&report), false);
    assert!(
        text.contains("✓ good") && text.contains("✗ bad") && text.contains("- later (skipped: why)"),
        "{text}"
    );
    assert!(text.ends_with("1 passed, 1 failed, 1 skipped\n"), "{text}");
    let machine = gatewright_testing::suite::json(std::slice::from_ref(&report));
    assert_eq!(machine["passed"], false);
    assert_eq!(machine["suites"][0]["tests"][1]["line"], 5);
    assert_eq!(machine["suites"][0]["tests"][1]["outcome"], "failed");
    assert_eq!(machine["totals"]["failed"], 1);
    assert_eq!(machine["suites"][0]["tests"][1]["failure"]["step"], "step 1 (call)");
    let xml = junit(std::slice::from_ref(&report));
    assert!(xml.contains("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""), "{xml}");
    assert!(xml.contains("<testsuites name=\"gatewright test\" tests=\"3\" failures=\"1\""), "{xml}");
    assert!(xml.contains("name=\"bad\"") && xml.contains("file=\"suite.yaml\" line=\"5\""), "{xml}");
    assert!(tap(&[report]).contains("ok 3 - everything > later # SKIP why"));
}

#[tokio::test]
async fn a_timeout_with_per_test_reports_the_http_calls_of_its_own_server() {
    // The server may start slowly on a busy machine.
    for seconds in [1, 4, 16, 64] {
        let text = format!(
            "server: {{ command: {}, perTest: true, env: {{ BREAK: calls }} }}\n\
             httpMocks: [{{ url: \"https://api.example.com\", json: {{}} }}]\n\
             tests: [{{ name: t, timeoutMs: {seconds}000, steps: [{{ call: env }}, {{ wait: never, timeoutMs: 600000 }}] }}]",
            script("tiny.mjs")
        );
        let report = Suite::parse("suite.yaml", &text).unwrap().run(&RunOptions::default()).await;
        let why = why(&report);
        if !why.starts_with("suite.yaml:3: step 2 (wait): ") && seconds < 64 {
            continue;
        }
        assert!(why.contains(&format!("the test took longer than {seconds}s")), "{why}");
        assert!(why.contains("\nno HTTP mock wants: GET https://nobody.example/called"), "{why}");
        break;
    }
}

#[tokio::test]
async fn a_live_report_has_each_test_when_it_ends() {
    let suites = [everything(
        "serial: true\ntests:\n  - { name: good, steps: [] }\n  - { name: \"bad: 50%, or not\", steps: [{ list: tools, expect: [toContainTool: ecko] }] }",
    )];
    for (format, parts) in [
        (
            LiveFormat::Readable { colours: false },
            ["everything  suite.yaml\n", "  ✓ good (", "  ✗ bad: 50%, or not (", "\n1 passed, 1 failed\n"],
        ),
        (
            LiveFormat::Tap,
            ["TAP version 14\n", "ok 1 - everything > good\n", "not ok 2 - everything > bad", "1..2\n"],
        ),
        (
            LiveFormat::Github,
            [
                "everything  suite.yaml\n",
                "  ✓ good (",
                "::error file=suite.yaml,line=6,title=everything > bad%3A 50%25%2C or not::suite.yaml:6: step 1 (list): toContainTool%0Aexpected: a tool `ecko`%0A",
                "\n1 passed, 1 failed\n",
            ],
        ),
    ] {
        let live = Live::new(format, &suites);
        let text = Mutex::new(live.head(&suites));
        let add = |more: &str| text.lock().unwrap().push_str(more);
        let reports =
            run_all(&suites, &RunOptions::default(), &|suite, test| add(&live.test(suite, test))).await;
        add(&live.end(&reports));
        let text = text.into_inner().unwrap();
        let mut rest = text.as_str();
        for part in parts {
            let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} is not in\n{text}"));
            rest = &rest[at + part.len()..];
        }
    }
}

#[tokio::test]
async fn repeated_notes_are_counted() {
    let suite = tiny("words", "tests: [{ name: t, steps: [{ list: tools, timeoutMs: 50, repeat: 1 }] }]");
    let report = suite.run(&RunOptions::default()).await;
    assert!(
        why(&report).contains("wrong on the wire: the server sent text that is no JSON: let me see"),
        "{}",
        why(&report)
    );
    let steps = "{ list: tools }, ".repeat(40);
    let suite =
        tiny("twice", &format!("tests: [{{ name: t, steps: [{steps} {{ raw: {{ method: ping }} }}] }}]"));
    let report = suite.run(&RunOptions::default()).await;
    report.assert_passed();
    let notes = &report.tests[0].notes;
    assert!(notes.len() == 11 && notes[10].starts_with("… and "), "{notes:?}");
}

#[tokio::test]
async fn a_server_that_does_not_start_is_told_once_in_a_live_report() {
    let suites = [Suite::parse(
        "x.yaml",
        &format!(
            "server: {{ command: {}, env: {{ BREAK: exit }} }}\ntests: [{{ name: a, steps: [] }}, {{ name: b, steps: [] }}]",
            script("tiny.mjs")
        ),
    )
    .unwrap()];
    let live = Live::new(LiveFormat::Readable { colours: false }, &suites);
    let text = Mutex::new(String::new());
    run_all(&suites, &RunOptions::default(), &|suite, test| {
        text.lock().unwrap().push_str(&live.test(suite, test))
    })
    .await;
    let text = text.into_inner().unwrap();
    assert_eq!(text.matches("no database: giving up").count(), 1, "{text}");
    assert!(text.contains("      as `a`\n"), "{text}");
}
