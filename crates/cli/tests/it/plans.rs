//! Saved plans, served by the binary.

use std::{fs, path::Path, process::Command};

use gatewright::rmcp::{
    RoleClient, ServiceExt as _,
    model::{CallToolRequestParams, CallToolResult},
    service::RunningService,
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};

use crate::{served::Served, support::gatewright};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/plans");
const DEMO_APPS: &str =
    "apps:\n  crm: { builtin: crm }\n  billing: { builtin: billing }\n  support: { builtin: support }\n";

struct Client(RunningService<RoleClient, ()>);

impl Client {
    async fn of(served: &Served) -> Self {
        let transport = StreamableHttpClientTransport::from_uri(format!("http://{}/mcp", served.address));
        Self(().serve(transport).await.unwrap())
    }

    async fn call(&self, name: &str, input: Value) -> CallToolResult {
        let params =
            CallToolRequestParams::new(name.to_owned()).with_arguments(input.as_object().unwrap().clone());
        self.0.peer().call_tool(params).await.unwrap()
    }

    async fn body(&self, name: &str, input: Value) -> Value {
        self.call(name, input).await.structured_content.unwrap()
    }

    async fn run(&self, script: &str) -> Value {
        self.body("codecall:execute", json!({"script": script})).await
    }

    /// Calls `plans:{name}` from a script.
    async fn plan(&self, name: &str) -> Value {
        let body = self.run(&format!("return await callTool('plans:{name}', {{}})")).await;
        if body["status"] == "ok" { body["result"].clone() } else { body }
    }
}

fn plan(name: &str, script: &str) -> String {
    format!("/* plan\nname: {name}\ndescription: A plan called {name}.\n*/\n{script}\n")
}

/// A server of the demo's apps and of the plans in `files`, beside its configuration.
fn served(files: &[(&str, &str)], more: &str, arguments: &[&str]) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let plans = folder.keep();
    for (name, text) in files {
        fs::write(plans.join(name), text).unwrap();
    }
    let config = format!("{DEMO_APPS}  plans: {{ plans: {} }}\n{more}", plans.display());
    Served::start(&config, arguments)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_are_served_found_described_and_called() {
    let config = format!(
        "{DEMO_APPS}  plans: {{ plans: {EXAMPLES}, tools: {{ overdue_invoices: {{ visibleInListTools: true }} }} }}\n"
    );
    let served = Served::start(&config, &["--no-watch"]);
    let client = Client::of(&served).await;
    let found =
        client.body("codecall:search", json!({"query": "which customers have overdue invoices"})).await;
    let names: Vec<&str> =
        found["tools"].as_array().unwrap().iter().map(|hit| hit["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"plans:overdue_invoices"), "{names:?}");
    let names = json!({"toolNames": ["plans:overdue_invoices", "plans:open_payment_tickets"]});
    let hints = async |at: usize| {
        client.body("codecall:describe", names.clone()).await["tools"][at]["annotations"].clone()
    };
    // That it calls nothing in the open world follows from the other plan, and is found out in the background.
    while hints(1).await["openWorldHint"] != false {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        hints(0).await,
        json!({"openWorldHint": false, "readOnlyHint": true}),
        "all that it calls only reads"
    );
    assert_eq!(
        hints(1).await,
        json!({"destructiveHint": false, "openWorldHint": false, "readOnlyHint": false})
    );

    let listed = client.0.peer().list_all_tools().await.unwrap();
    assert!(listed.iter().any(|tool| tool.name == "plans:overdue_invoices"));
    let direct = client.call("plans:overdue_invoices", json!({"least": 1000})).await;
    let rows = direct.structured_content.unwrap()["result"].clone();
    let euros: Vec<f64> = rows.as_array().unwrap().iter().map(|row| row["euros"].as_f64().unwrap()).collect();
    assert!(
        !euros.is_empty() && euros.is_sorted_by(|a, b| a >= b) && euros.iter().all(|sum| *sum >= 1000.0),
        "{rows}"
    );
    let refused = client.call("plans:open_payment_tickets", json!({"least": 1})).await;
    assert!(refused.content[0].as_text().unwrap().text.contains("codecall:invoke"));
    let invoked = client
        .body("codecall:invoke", json!({"tool": "plans:overdue_invoices", "input": {"least": 1000}}))
        .await;
    assert_eq!(invoked["result"], rows);

    let script = "const first = await callTool('plans:open_payment_tickets', { least: 1000 });
                  const again = await callTool('plans:open_payment_tickets', { least: 1000 });
                  return { opened: first.opened.length, again: again.opened.length, skipped: again.skipped.length };";
    let body = client.run(script).await;
    let customers = rows.as_array().unwrap().len();
    assert_eq!(body["result"]["again"], 0, "{body}");
    assert_eq!(body["result"]["skipped"], json!(customers), "{body}");
    assert!(body["result"]["opened"].as_u64().unwrap() > 0, "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_new_and_removed_files_are_taken_over_and_bad_ones_keep_their_last_version() {
    let files = [("a.js", &*plan("a", "return 1")), ("b.js", &*plan("b", "return 1"))];
    let served = served(&files, "", &[]);
    let folder = fs::read_to_string(served.file()).unwrap();
    let folder = folder.split("plans: { plans: ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let (folder, client) = (Path::new(&folder), Client::of(&served).await);
    assert_eq!((client.plan("a").await, client.plan("b").await), (json!(1), json!(1)));

    // A file that changes is noticed without a signal.
    fs::write(folder.join("a.js"), plan("a", "return 2")).unwrap();
    assert!(served.says("saved plans: added []").contains("changed [a]"));
    served.says("apps added [], changed [plans]");
    assert_eq!(client.plan("a").await, json!(2));

    fs::write(folder.join("b.js"), plan("b", "return eval('2')")).unwrap();
    served.says("a saved plan is not used as it is in its file");
    served.says("nothing differs");
    assert_eq!(client.plan("b").await, json!(1));

    fs::remove_file(folder.join("a.js")).unwrap();
    fs::write(folder.join("c.ts"), plan("c", "const three: number = 3; return three")).unwrap();
    while client.plan("c").await != json!(3) {
        served.says("saved plans: added [");
        served.says("changed [plans]");
    }
    served.hang_up();
    served.says("nothing differs");
    assert_eq!(client.plan("a").await["error"]["code"], "TOOL_NOT_FOUND");
    assert_eq!(client.plan("b").await, json!(1));

    // The configuration stays what it is, and the app goes with it.
    served.replace(DEMO_APPS);
    // A file that was read before it was whole has lines of its own.
    while !served.says("the configuration was reloaded").contains("removed [plans]") {}
    assert_eq!(client.plan("c").await["error"]["code"], "TOOL_NOT_FOUND");
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_of_hostile_authors_end_and_the_server_goes_on() {
    let files = [
        ("loop.js", &*plan("loop", "for (;;) {}")),
        (
            "heap.js",
            &*plan(
                "heap",
                "const all = []; for (let i = 0; i < 90000; i++) all.push('x'.repeat(10000) + i); return 1",
            ),
        ),
        (
            "meta.js",
            &*plan(
                "meta",
                "const parts = JSON.parse('[\"codecall\", \"execute\"]'); return await callTool(parts.join(':'), { script: 'return 1' })",
            ),
        ),
        ("circle.js", &*plan("circle", "return await callTool('plans:' + 'other')")),
        ("other.js", &*plan("other", "return await callTool('plans:circle')")),
        (
            "calls.js",
            &*plan(
                "calls",
                "for (let i = 0; i < 9; i++) { try { await callTool('crm:users_list', { limit: 1 }) } catch (error) {} } return 1",
            ),
        ),
        ("fine.js", &*plan("fine", "return 1")),
        ("no-plan.js", "return 1"),
        ("late.d.ts", "declare const x: number;"),
    ];
    let limits =
        "codecall: { vm: { timeoutMs: 1500, maxToolCalls: 6 }, worker: { maxWorkers: 1, queue: 1 } }\n";
    let served = served(&files, limits, &["--no-watch"]);
    let client = Client::of(&served).await;
    for (name, told) in [
        ("loop", "IterationLimitError"),
        ("heap", "WORKER_MEMORY_EXCEEDED"),
        ("meta", "SELF_REFERENCE_BLOCKED"),
        ("circle", "SELF_REFERENCE_BLOCKED"),
        ("calls", "ToolCallLimitError"),
        ("no-plan", "TOOL_NOT_FOUND"),
    ] {
        for script in [
            format!("return await callTool('plans:{name}', {{}})"),
            format!(
                "const name = 'plans:{name}'; let told; try {{ await callTool(name, {{}}) }} catch (error) {{ told = error }} throw told"
            ),
        ] {
            let body = client.run(&script).await;
            assert!(body["status"] != "ok" && body.to_string().contains(told), "{name}: {body}");
        }
        let invoked =
            client.body("codecall:invoke", json!({"tool": format!("plans:{name}"), "input": {}})).await;
        assert!(invoked["status"] != "ok" && invoked.to_string().contains(told), "{name}: {invoked}");
        assert_eq!(client.plan("fine").await, json!(1), "after {name}");
    }
}

fn check(config: &Path) -> (bool, Value) {
    let output =
        Command::new(gatewright()).args(["check", "--json", "--config"]).arg(config).output().unwrap();
    (output.status.success(), serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}")))
}

#[test]
fn check_reports_each_bad_plan_with_its_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let (config, plans) = (folder.path().join("gatewright.yaml"), folder.path().join("plans"));
    fs::write(&config, "apps:\n  plans: { plans: ./plans }\n").unwrap();
    let (ok, body) = check(&config);
    assert!(
        !ok && body["findings"][0]["path"] == "apps.plans.plans" && body["findings"][0]["line"] == 2,
        "{body:#}"
    );

    fs::create_dir(&plans).unwrap();
    fs::write(plans.join("good.js"), plan("good", "callTool('crm:x', {});\nreturn 1")).unwrap();
    let (ok, body) = check(&config);
    assert!(ok && body["warnings"][0]["line"] == 5, "{body:#}");

    fs::write(plans.join("bad.js"), "/* plan\ndescripton: Lists orders.\n*/\nreturn eval('1')\n").unwrap();
    let (ok, body) = check(&config);
    assert!(!ok, "{body:#}");
    let found: Vec<(u64, &str)> = body["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| {
            assert!(finding["file"].as_str().unwrap().ends_with("plans/bad.js"), "{finding}");
            (finding["line"].as_u64().unwrap(), finding["problem"].as_str().unwrap())
        })
        .collect();
    assert!(
        found.iter().any(|(line, problem)| *line == 2 && problem.contains("did you mean `description`")),
        "{found:?}"
    );
    assert!(
        found.iter().any(|(line, problem)| *line == 4 && problem.starts_with("IllegalBuiltinAccess")),
        "{found:?}"
    );
    let output = Command::new(gatewright()).args(["check", "--config"]).arg(&config).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("plans/bad.js:2: descripton: unknown key"), "{out}");
    assert!(err.contains("plans/good.js:5: warning: this tool call is not awaited"), "{err}");
}

#[test]
fn plans_need_code_mode_and_are_no_other_app() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("gatewright.yaml");
    for (text, place, told) in [
        (
            "codecall: { enabled: false }\napps:\n  p: { plans: . }\n",
            "apps.p.plans",
            "code mode runs saved plans",
        ),
        ("apps:\n  p: { plans: ., builtin: crm }\n", "apps.p", "not both"),
        ("apps:\n  p: { plans: ., command: x }\n", "apps.p", "takes no command"),
        ("apps:\n  p: { plans: 7 }\n", "apps.p.plans", "the value is not of types"),
    ] {
        fs::write(&config, text).unwrap();
        let (ok, body) = check(&config);
        let finding = &body["findings"][0];
        assert!(!ok && finding["path"] == place, "{body:#}");
        assert!(finding["problem"].as_str().unwrap().contains(told), "{body:#}");
    }
}

#[test]
fn the_tools_commands_call_a_plan_of_a_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("gatewright.yaml");
    fs::write(&config, format!("{DEMO_APPS}  plans: {{ plans: {EXAMPLES} }}\n")).unwrap();
    let mut command = Command::new(gatewright());
    command.args(["tools", "--config"]).arg(&config).args([
        "call",
        "plans:overdue_invoices",
        "{\"least\": 1000}",
    ]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"customer\""), "{output:?}");
}

#[test]
fn the_tools_commands_begin_a_plan_in_the_background_of_a_server_and_get_its_result() {
    let page = include_str!("../../../../docs/PLANS.md");
    let script = page.split_once("`void.js`:\n\n```js\n").unwrap().1.split_once("```").unwrap().0;
    let served = Served::start("apps:\n  billing: { builtin: billing }\n", &["--no-watch"]);
    let file = served.folder.path().join("void.js");
    fs::write(&file, script).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(gatewright());
        let output = command.args(["tools", "run"]).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let body: Value = serde_json::from_str(&said).unwrap_or_default();
        (output.status.success(), body, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (file, url) = (file.to_str().unwrap(), format!("http://{}/mcp", served.address));
    let (is_well, begun, said) = run(&["--url", &url, "--detach", file]);
    assert!(is_well && begun["status"] == "running", "{begun} {said}");
    let id = begun["executionId"].as_str().unwrap();
    let ended = loop {
        let (is_well, body, said) = run(&["--url", &url, "--resume", id]);
        assert!(is_well, "{body} {said}");
        if body["status"] == "ok" {
            break body;
        }
    };
    assert!(ended["result"].as_str().is_some_and(|id| id.starts_with("inv_")), "{ended}");
    let (is_well, _, said) = run(&["--detach", file]);
    assert!(!is_well && said.contains("--detach needs --url"), "{said}");
    let (is_well, _, said) = run(&["--resume", id, file]);
    assert!(!is_well && said.contains("cannot be used with"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_of_the_documentation_returns_what_it_says() {
    let page = include_str!("../../../../docs/PLANS.md");
    let block = |kind: &str, part: &str| {
        let fence = format!("```{kind}\n");
        let mut blocks = page.split(fence.as_str()).skip(1).filter_map(|rest| rest.split("```").next());
        blocks.find(|block| block.contains(part)).unwrap()
    };
    let served = Served::start("apps:\n  crm: { builtin: crm }\n", &["--no-watch"]);
    let plans = served.folder.path().join("plans");
    fs::create_dir(&plans).unwrap();
    fs::write(plans.join("customer-brief.js"), block("js", "/* plan\n")).unwrap();
    // The configuration of the page, and a plan beside it.
    served.replace(block("yaml", "plans: ./plans"));
    served.hang_up();
    assert!(served.says("the configuration was reloaded").contains("plans"));
    let client = Client::of(&served).await;
    let (name, input) =
        page.split_once("tools call --config gatewright.yaml ").unwrap().1.split_once(" '").unwrap();
    let input: Value = serde_json::from_str(input.split_once('\'').unwrap().0).unwrap();
    let body = client.body("codecall:invoke", json!({"tool": name, "input": input})).await;
    let brief = &body["result"];
    assert!(
        brief["name"].is_string() && brief["tickets"].is_array() && brief["overdueEuros"].is_number(),
        "{body}"
    );
    let searched =
        client.body("codecall:search", json!({"query": "what to know about a customer before a call"})).await;
    assert_eq!(searched["tools"][0]["name"], name, "{searched}");
}
