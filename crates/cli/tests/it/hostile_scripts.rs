//! Scripts of every hostile family, sent to the real binary over HTTP: none stalls it, none keeps the next from running.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use gatewright::rmcp::{
    RoleClient, ServiceExt as _, model::CallToolRequestParams, service::RunningService,
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};

use crate::{
    runs::{self, HELD, peak},
    served::Served,
};

const MIB: u64 = 1024 * 1024;
/// Longest body of a run, in bytes: its result and its console lines.
const LONGEST: usize = 3 * MIB as usize / 2;
const TIMEOUT: Duration = Duration::from_millis(600);

/// Families of the sandbox's corpus, with at most `each` scripts of each, evenly taken.
fn hostile(each: usize) -> BTreeMap<String, Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agentscript/tests/cases");
    let mut families: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for family in fs::read_dir(root).unwrap() {
        let family = family.unwrap().path();
        let name = family.file_name().unwrap().to_string_lossy().into_owned();
        if matches!(name.as_str(), "allowed" | "presets") {
            continue;
        }
        let scripts = families.entry(name).or_default();
        for file in fs::read_dir(&family).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            scripts.extend(text.split("//// ").skip(1).map(|case| {
                let lines = case.lines().skip(1);
                let about = |line: &&str| line.starts_with("// expect:") || line.starts_with("// preset:");
                lines.skip_while(about).collect::<Vec<_>>().join("\n")
            }));
        }
        scripts.sort();
        let step = (scripts.len() / each).max(1);
        let taken: Vec<String> = scripts.iter().step_by(step).take(each).cloned().collect();
        *scripts = taken;
    }
    families
}

async fn execute(client: &RunningService<RoleClient, ()>, script: &str) -> Value {
    let Value::Object(input) = json!({"script": script}) else { unreachable!("an object") };
    let params = CallToolRequestParams::new("codecall:execute").with_arguments(input);
    client.peer().call_tool(params).await.unwrap().structured_content.unwrap()
}

#[tokio::test]
async fn scripts_of_every_hostile_family_end_in_time_and_the_next_run_works() {
    let config = format!(
        "apps:\n  crm: {{ builtin: crm }}\ncodecall:\n  vm: {{ timeoutMs: {} }}\n",
        TIMEOUT.as_millis()
    );
    let server = Served::start(&config, &[]);
    let transport = StreamableHttpClientTransport::from_uri(format!("http://{}/mcp", server.address));
    let client = ().serve(transport).await.unwrap();
    let families = hostile(4);
    assert!(families.len() >= 15, "{:?}", families.keys());
    for (family, scripts) in families {
        for script in scripts {
            let started = Instant::now();
            let body = execute(&client, &script).await;
            let took = started.elapsed();
            assert!(took < TIMEOUT + Duration::from_secs(1), "{family} took {took:?}: {script}");
            let status = body["status"].as_str().unwrap_or_default();
            let known = ["ok", "syntax_error", "illegal_access", "runtime_error", "tool_error", "timeout"];
            assert!(known.contains(&status), "{family}: {body}");
            let text = body.to_string();
            assert!(text.len() < LONGEST, "{family}: {} bytes for {script}", text.len());
            assert!(!text.contains("/src/") && !text.contains("rquickjs"), "{family}: {text}");
            let next =
                execute(&client, "return (await callTool('crm:users_list', { limit: 1 })) !== null").await;
            assert_eq!(next["result"], true, "after {family}: {script}\n{next}");
        }
    }
}

#[tokio::test]
async fn every_script_that_wants_memory_leaves_the_server_its_own_whoever_runs_it_at_once() {
    const CALLERS: usize = 6;
    let config = format!(
        "http: {{ sessions: false }}\napps:\n  crm: {{ builtin: crm }}\ncodecall:\n  vm: {{ timeoutMs: {} }}\n  \
         worker: {{ queueTimeout: 60s }}\n",
        TIMEOUT.as_millis()
    );
    let server = Served::start(&config, &[]);
    runs::execute(&server, "return 1").await;
    let before = peak(&server);
    let families = hostile(usize::MAX);
    for family in ["memory", "results", "tool_arguments"] {
        assert!(families[family].len() >= 40, "{family}: {}", families[family].len());
        // Callers with a script each, at the same time.
        for scripts in families[family].chunks(CALLERS) {
            let callers = scripts.iter().map(|script| runs::execute(&server, script));
            for (script, (length, body)) in scripts.iter().zip(futures::future::join_all(callers).await) {
                assert!(body["status"].is_string(), "{family}: {body}: {script}");
                // The body twice, once as text with its quotes escaped.
                assert!(length < 2 * LONGEST + 4096, "{family}: {length} bytes: {script}");
            }
            let grown = peak(&server).saturating_sub(before);
            assert!(grown < CALLERS as u64 * HELD * MIB, "{family}: {} MiB more: {scripts:#?}", grown / MIB);
        }
    }
    let (_, next) =
        runs::execute(&server, "return (await callTool('crm:users_list', { limit: 1 })) !== null").await;
    assert_eq!(next["result"], true, "{next}");
}
