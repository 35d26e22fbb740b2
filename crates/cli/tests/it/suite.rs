//! `gatewright test`: suites run by the binary, here against the binary's own demo.

use std::{path::PathBuf, process::Stdio};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
};

use crate::support::gatewright;

/// A directory with suites. Its server is the demo.
struct Suites {
    dir: tempfile::TempDir,
}

struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Suites {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text.replace("DEMO", &demo())).unwrap();
        }
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(gatewright());
        command
            .arg("test")
            .args(args)
            .current_dir(self.dir.path())
            .env("GREETING", "hello")
            .kill_on_drop(true);
        command
    }

    async fn run(&self, args: &[&str]) -> Ran {
        let output = self.command(args).output().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }
}

fn demo() -> String {
    format!(
        "server: {{ command: \"{}\", args: [demo, --port, \"{{port}}\"], readyPath: /healthz }}",
        gatewright().display()
    )
}

const GOOD: &str = r#"
name: the demo
DEMO
variables: { app: crm }
tests:
  - name: lists the meta-tools
    tags: [quick]
    steps:
      - { list: tools, expect: [toContainTool: "codecall:search", not: { toContainTool: "crm:users_list" }] }
  - name: finds, reads and runs
    steps:
      - call: codecall:search
        with: { query: list users }
        expect: [toBeSuccessful, toMatchJson: {}]
        save: { tool: /structuredContent/tools/0/name }
      - { call: codecall:describe, with: { toolNames: ["${tool}"] }, expect: [toHaveTextContent: "${app}:users_list"] }
      - call: codecall:execute
        with: { script: "return (await callTool('${tool}', { limit: 1 })).items.length" }
        expect: [toMatchJson: { status: ok, result: 1 }]
      - { call: codecall:invoke, with: { tool: "crm:nope", input: {} }, expect: [toBeError, toMatchJson: { error: { code: TOOL_NOT_FOUND } }] }
"#;

const BAD: &str = "name: bad\nDEMO\ntests:\n  - name: wants what is not there\n    steps:\n      - { list: tools, expect: [toContainTool: \"codecall:serch\"] }\n";

#[tokio::test]
async fn a_suite_that_holds_passes_with_exit_code_0() {
    let suites = Suites::new(&[("demo.suite.yaml", GOOD)]);
    let ran = suites.run(&["demo.suite.yaml"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.starts_with("the demo  demo.suite.yaml\n  ✓ "), "{}", ran.out);
    assert!(ran.out.contains("\n  ✓ lists the meta-tools ("), "{}", ran.out);
    assert!(ran.out.ends_with("\n2 passed\n"), "{}", ran.out);
}

#[tokio::test]
async fn a_suite_that_does_not_hold_fails_with_exit_code_1_and_a_report() {
    let suites = Suites::new(&[("a/bad.suite.yaml", BAD), ("a/node_modules/x/suite.yaml", "broken: [")]);
    let ran = suites.run(&["a", "--junit", "junit.xml", "--tap", "out.tap"]).await;
    assert_eq!(ran.code, 1, "{}", ran.err);
    for part in [
        "✗ wants what is not there",
        "a/bad.suite.yaml:6: step 1 (list): toContainTool",
        "expected: a tool `codecall:serch`",
        "hint: did you mean `codecall:search`?",
        "requests:",
        "tools/list",
        "0 passed, 1 failed",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let junit = std::fs::read_to_string(suites.path("junit.xml")).unwrap();
    assert!(
        junit.contains("failures=\"1\" errors=\"0\"") && junit.contains(">a/bad.suite.yaml:6: step 1"),
        "{junit}"
    );
    let tap = std::fs::read_to_string(suites.path("out.tap")).unwrap();
    assert!(tap.starts_with("TAP version 14\n1..1\nnot ok 1 - bad > wants what is not there"), "{tap}");
}

#[tokio::test]
async fn every_format_is_printed() {
    let suites = Suites::new(&[("good.suite.yaml", GOOD)]);
    let ran = suites.run(&["good.suite.yaml", "--json", "--tag", "quick"]).await;
    let body: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&body["passed"], &body["suites"][0]["leftOut"]), (&true.into(), &1.into()), "{body:#}");
    assert_eq!(body["suites"][0]["tests"][0]["outcome"], "passed");
    let tap = suites.run(&["good.suite.yaml", "--format", "tap"]).await.out;
    assert!(tap.starts_with("TAP version 14\nok 1 - the demo > ") && tap.ends_with("\n1..2\n"), "{tap}");
    let bad = Suites::new(&[("bad.suite.yaml", BAD)]);
    let github = bad.run(&["bad.suite.yaml", "--format", "github"]).await.out;
    assert!(
        github.contains("\n::error file=bad.suite.yaml,line=6,title=bad > wants what is not there::"),
        "{github}"
    );
    let junit = suites.run(&["good.suite.yaml", "--format", "junit", "--filter", "finds"]).await.out;
    assert!(junit.starts_with("<?xml") && junit.contains("tests=\"1\" failures=\"0\""), "{junit}");
    let list = suites.run(&[".", "--list"]).await;
    assert_eq!(
        list.out,
        "./good.suite.yaml:6: lists the meta-tools\n./good.suite.yaml:10: finds, reads and runs\n"
    );
}

#[tokio::test]
async fn wrong_suites_and_options_exit_with_2_and_say_what_to_do() {
    let suites = Suites::new(&[
        ("wrong.yaml", "server: { comand: x }\ntests:\n  - name: t\n    steps:\n      - { cal: a }\n"),
        ("also.yaml", "DEMO\ntests: [{ name: t, as: admn, steps: [] }]\n"),
        ("only.yaml", "DEMO\ntests: [{ name: t, only: true, steps: [] }]\n"),
        ("empty/readme.md", ""),
    ]);
    let ran = suites.run(&["wrong.yaml", "also.yaml"]).await;
    assert_eq!(ran.code, 2);
    for part in [
        "wrong.yaml:1: server.comand: unknown key; did you mean `command`?",
        "wrong.yaml:5: tests.0.steps.0.cal: unknown key; did you mean `call`?",
        "also.yaml:2: tests.0.as: `admn`: unknown user; did you mean `admin`?",
    ] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    let rows: &[(&[&str], &str)] = &[
        (&[], "<FILE>"),
        (&["no.yaml"], "no.yaml: it cannot be read"),
        (&["empty"], "empty holds no suite; their names end in suite.yaml"),
        (&["only.yaml", "--filter", "zzz"], "no test was chosen: look at --filter"),
        (&["only.yaml", "--forbid-only"], "only.yaml: a test says `only`; take it out"),
        (&["only.yaml", "--jobs", "0"], "1..=1000"),
        (&["only.yaml", "--server", "x", "--url", "http://a/mcp"], "cannot be used with"),
        (&["only.yaml", "--var", "x"], "a name, `=` and a value"),
    ];
    for (args, part) in rows {
        let ran = suites.run(args).await;
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(part), "{args:?}: {}", ran.err);
        assert!(ran.out.is_empty(), "{args:?}: {}", ran.out);
    }
}

#[tokio::test]
async fn variables_and_the_environment_reach_the_steps() {
    let text = "DEMO\nvariables: { tool: nothing }\ntests:\n  - name: t\n    steps:\n      - call: codecall:execute\n        with: { script: \"return '${env.GREETING} ${who} ${n.0}'\" }\n        expect: [toMatchJson: { result: \"hello Ada 7\" }]\n";
    let suites = Suites::new(&[("v.yaml", text)]);
    let ran = suites.run(&["v.yaml", "--var", "who=Ada", "--var", "n=[7]"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let ran = suites.run(&["v.yaml"]).await;
    assert!(
        ran.code == 2
            && ran.err.contains("v.yaml:7: tests.0.steps.0.with.script: `${who}`: unknown variable"),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn a_server_that_does_not_start_is_told_with_what_it_said() {
    let suites = Suites::new(&[("s.yaml", "server: { command: x }\ntests: [{ name: t, steps: [] }]\n")]);
    let ran = suites
        .run(&["s.yaml", "--server", &format!("{} serve --config /no/such.yaml", gatewright().display())])
        .await;
    assert_eq!(ran.code, 1);
    for part in ["command: ", "ended: exit status: 2", "| error: /no/such.yaml cannot be read", "try: "] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
}

#[tokio::test]
async fn watching_runs_again_when_a_suite_changes_and_ends_with_sigterm() {
    let suites = Suites::new(&[("w.suite.yaml", BAD)]);
    let mut child = suites.command(&["w.suite.yaml", "--watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until = async |part: &str| loop {
        let line = lines.next_line().await.unwrap().unwrap_or_else(|| panic!("no line with {part:?}"));
        if line.contains(part) {
            return;
        }
    };
    until("0 passed, 1 failed").await;
    until("waiting for changes").await;
    let fixed = std::fs::read_to_string(suites.path("w.suite.yaml")).unwrap().replace("serch", "search");
    std::fs::write(suites.path("w.suite.yaml"), fixed).unwrap();
    until("1 passed").await;
    until("waiting for changes").await;
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").arg(pid).status().await.unwrap().success());
    assert!(child.wait().await.unwrap().success());
}

#[tokio::test]
async fn watching_two_suites_runs_only_the_one_that_changed_and_both_when_their_server_did() {
    let suite = |name: &str| {
        format!(
            "server: {{ command: server.mjs, transport: stdio, args: [--stdio], startupTimeoutMs: 60000 }}\n\
             tests: [{{ name: {name}, steps: [{{ call: count }}] }}]\n"
        )
    };
    let bank = concat!(env!("CARGO_MANIFEST_DIR"), "/../testing/tests/servers/bank.mjs");
    let server = std::fs::read_to_string(bank).unwrap();
    let (first, second) = (suite("of the first"), suite("of the second"));
    let files = [("a.suite.yaml", &*first), ("b.suite.yaml", &*second), ("server.mjs", &*server)];
    let suites = Suites::new(&files);
    let mut child = suites.command(&[".", "--watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The suites of a run, by their tests.
    let mut ran = async || {
        let mut seen = [false; 2];
        loop {
            let line = lines.next_line().await.unwrap().expect("the watch goes on");
            seen[0] |= line.contains("of the first");
            seen[1] |= line.contains("of the second");
            if line.contains("waiting for changes") {
                return seen;
            }
        }
    };
    assert_eq!(ran().await, [true, true]);
    let change = |name: &str, text: &str| {
        // At once, so that no run sees half a file; names with a dot are not watched.
        std::fs::write(suites.path(".new"), text).unwrap();
        std::fs::rename(suites.path(".new"), suites.path(name)).unwrap();
    };
    change("b.suite.yaml", &format!("{second}# changed\n"));
    assert_eq!(ran().await, [false, true]);
    change("a.suite.yaml", &format!("{first}# changed\n"));
    assert_eq!(ran().await, [true, false]);
    change("server.mjs", &format!("{server}// changed\n"));
    assert_eq!(ran().await, [true, true]);
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").arg(pid).status().await.unwrap().success());
    assert!(child.wait().await.unwrap().success());
}

#[tokio::test]
async fn a_run_that_is_ended_ends_its_server() {
    let text = "DEMO\ntests:\n  - name: t\n    steps: [{ wait: never, timeoutMs: 600000 }]\n";
    let suites = Suites::new(&[("slow.yaml", text)]);
    // The server runs in the suite's directory, as does the run itself, whose command line names no demo.
    let runs = || {
        std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).any(|process| {
            let (cwd, line) = (process.path().join("cwd"), process.path().join("cmdline"));
            std::fs::read_link(cwd).is_ok_and(|cwd| cwd == suites.dir.path())
                && std::fs::read(line)
                    .is_ok_and(|line| line.split(|byte| *byte == 0).any(|word| word == b"demo"))
        })
    };
    let mut child = suites.command(&["slow.yaml"]).stdout(Stdio::null()).spawn().unwrap();
    let wait = async |wanted: bool| {
        while runs() != wanted {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), wait(true)).await.unwrap();
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().await.unwrap().success());
    assert_eq!(child.wait().await.unwrap().code(), Some(1));
    tokio::time::timeout(std::time::Duration::from_secs(10), wait(false)).await.unwrap();
}

#[tokio::test]
async fn the_schema_of_suites_is_printed() {
    let output = Command::new(gatewright()).args(["schema", "--suite"]).output().await.unwrap();
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(schema["title"], "Gatewright test suite");
}

#[tokio::test]
async fn an_interrupted_run_writes_its_reports() {
    let text = "DEMO\nserial: true\ntests:\n  - { name: first, steps: [{ list: tools }] }\n  - name: endless\n    steps: [{ wait: never, timeoutMs: 600000 }]\n  - { name: last, steps: [] }\n";
    let suites = Suites::new(&[("slow.yaml", text)]);
    let mut child = suites
        .command(&["slow.yaml", "--junit", "j.xml", "--format", "tap"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut printed = Vec::new();
    // The first test is reported before the run ends.
    while let Some(line) = lines.next_line().await.unwrap() {
        if line == "ok 1 - slow.yaml > first" {
            let pid = child.id().unwrap().to_string();
            assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
        }
        printed.push(line);
    }
    assert_eq!(child.wait().await.unwrap().code(), Some(1));
    assert_eq!(&printed[printed.len() - 2..], ["1..3", "Bail out! the run was interrupted"]);
    let junit = std::fs::read_to_string(suites.path("j.xml")).unwrap();
    // The second test may not have begun yet.
    assert!(junit.contains("tests=\"3\"") && junit.contains("name=\"last\""), "{junit}");
    assert!(junit.contains("the run was interrupted"), "{junit}");
}

#[tokio::test]
async fn the_tests_that_failed_last_run_again_alone() {
    let suites = Suites::new(&[(
        "s.yaml",
        "DEMO\nserial: true\ntests:\n  - { name: good, steps: [] }\n  - { name: bad, steps: [{ call: nope }] }\n  - { name: after, steps: [] }\n",
    )]);
    let cache = suites.path("cache");
    let run = async |args: &[&str]| {
        let output = suites.command(args).env("XDG_CACHE_HOME", &cache).output().await.unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = run(&["s.yaml", "--fail-fast"]).await;
    assert!(code == 1 && text.ends_with("1 passed, 1 failed, 1 skipped\n"), "{text}");
    assert!(text.contains("- after (skipped: not run: an earlier test failed)"), "{text}");
    let (code, text) = run(&["s.yaml", "--last-failed"]).await;
    assert!(code == 1 && text.ends_with("0 passed, 1 failed, 2 left out\n"), "{text}");
    let fixed =
        std::fs::read_to_string(suites.path("s.yaml")).unwrap().replace("{ call: nope }", "{ list: tools }");
    std::fs::write(suites.path("s.yaml"), fixed).unwrap();
    assert_eq!(run(&["s.yaml", "--last-failed"]).await.0, 0);
    let (_, text) = run(&["s.yaml", "--last-failed"]).await;
    assert!(text.ends_with("3 passed\n"), "{text}");
}

#[tokio::test]
async fn children_keep_the_paths_of_python_and_node_beside_http_mocks() {
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/../testing/tests/servers/bank.mjs");
    let text = format!(
        "server: {{ command: {server}, transport: stdio, args: [--stdio] }}\nhttpMocks: [{{ url: x }}]\ntests:\n  - name: t\n    steps:\n\
         \x20     - {{ call: env, with: {{ name: PYTHONPATH }}, expect: [toHaveTextContent: \":/somewhere/python\"] }}\n\
         \x20     - {{ call: env, with: {{ name: NODE_OPTIONS }}, expect: [toHaveTextContent: \" --no-deprecation\", toHaveTextContent: \"--require\"] }}\n"
    );
    let suites = Suites::new(&[("s.yaml", &text)]);
    let output = suites
        .command(&["s.yaml"])
        .env("PYTHONPATH", "/somewhere/python")
        .env("NODE_OPTIONS", "--no-deprecation")
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
