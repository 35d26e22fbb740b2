//! A running server takes a new configuration over, or says why not.

use std::{fs, path::Path, process::Command, sync::Arc};

use gatewright::rmcp::{
    ClientHandler, RoleClient, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
        ElicitResult, ElicitationAction, ElicitationCapability, ErrorData, Implementation, ProtocolVersion,
    },
    service::{NotificationContext, RequestContext, RunningService},
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    served::{LONG, Served},
    support::gatewright,
};

impl Served {
    async fn client(&self) -> Client {
        let ears = Ears { listed: Arc::default(), asked: Arc::default(), answer: Arc::default() };
        let (listed, asked, answer) = (ears.listed.clone(), ears.asked.clone(), ears.answer.clone());
        let transport = StreamableHttpClientTransport::from_uri(format!("http://{}/mcp", self.address));
        Client { running: ears.serve(transport).await.unwrap(), listed, asked, answer }
    }
}

/// Hears that lists changed, and answers a question when told to.
struct Ears {
    listed: Arc<Notify>,
    asked: Arc<Notify>,
    answer: Arc<Notify>,
}

impl ClientHandler for Ears {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        let mut config = ClientConfig::new(capabilities, Implementation::new("ears", "1"));
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.listed.notify_one();
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.asked.notify_one();
        self.answer.notified().await;
        Ok(ElicitResult::new(ElicitationAction::Accept)
            .with_content(json!({"username": "ada", "email": "a@b.c"})))
    }
}

struct Client {
    running: RunningService<RoleClient, Ears>,
    listed: Arc<Notify>,
    asked: Arc<Notify>,
    answer: Arc<Notify>,
}

impl Client {
    async fn tools(&self) -> Vec<String> {
        let tools = self.running.peer().list_all_tools().await.unwrap();
        tools.into_iter().map(|tool| tool.name.into_owned()).collect()
    }

    async fn call(&self, name: &str, input: Value) -> CallToolResult {
        let Value::Object(input) = input else { panic!("the input is an object") };
        let params = CallToolRequestParams::new(name.to_owned()).with_arguments(input);
        self.running.peer().call_tool(params).await.unwrap()
    }

    async fn hears(event: &Notify) {
        tokio::time::timeout(LONG, event.notified()).await.expect("it is heard in time");
    }
}

/// Every tool listed and called directly.
const DIRECT: &str = "codecall: { enabled: false }\n";

fn has(tools: &[String], app: &str) -> bool {
    tools.iter().any(|tool| tool.starts_with(&format!("{app}:")))
}

#[tokio::test(flavor = "multi_thread")]
async fn sighup_adds_and_removes_apps_and_an_open_session_hears_of_it() {
    let served = Served::start(&format!("{DIRECT}apps:\n  crm: {{ builtin: crm }}\n"), &["--no-watch"]);
    let client = served.client().await;
    let before = client.tools().await;
    assert!(has(&before, "crm") && !has(&before, "support"));
    assert_eq!(
        served.readiness().await["config"],
        json!({"generation": 1, "refused": false, "restartPending": false, "unknownNames": 0})
    );

    served.replace(&format!("{DIRECT}apps:\n  support: {{ builtin: support }}\n"));
    served.hang_up();
    let line = served.says("the configuration was reloaded after SIGHUP");
    assert!(line.contains("added [support]") && line.contains("removed [crm]"), "{line}");
    Client::hears(&client.listed).await;
    let after = client.tools().await;
    assert!(!has(&after, "crm") && has(&after, "support"), "{after:?}");
    let ready = served.readiness().await;
    assert_eq!(ready["config"]["generation"], 2);
    assert_eq!(ready["apps"].as_object().unwrap().keys().collect::<Vec<_>>(), ["support"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_does_not_answer_holds_back_nothing_else_of_a_reload_and_no_later_reload() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", silent.local_addr().unwrap());
    let config = |more: &str| format!("{DIRECT}apps:\n  crm: {{ builtin: crm{more} }}\n");
    let served = Served::start(&config(""), &[]);
    let client = served.client().await;
    let deletes = |tools: &[String]| tools.iter().any(|tool| tool == "crm:users_delete");
    assert!(deletes(&client.tools().await));

    let dead = format!("  dead: {{ url: '{url}' }}\n");
    served.replace(&(config(", tools: { users_delete: { disabled: true } }") + &dead));
    served.says("the apps [dead] take their places when they are up");
    let tools = client.tools().await;
    assert!(has(&tools, "crm") && !deletes(&tools), "{tools:?}");

    served.replace(&format!("{DIRECT}apps:\n  support: {{ builtin: support }}\n{dead}"));
    while has(&client.tools().await, "crm") {
        Client::hears(&client.listed).await;
    }
    assert_eq!(served.readiness().await["config"]["generation"], 1, "it still waits");
    served.replace(&config(""));
    let line = served.says("the configuration was reloaded after a changed file");
    assert!(line.contains("added [dead, support, crm]"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_server_of_an_app_is_not_offered_with_its_new_settings() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", silent.local_addr().unwrap());
    let disabled = "tools: { users_delete: { disabled: true } }";
    let served = Served::start(&format!("{DIRECT}apps:\n  crm: {{ builtin: crm, {disabled} }}\n"), &[]);
    let client = served.client().await;
    served.replace(&format!("{DIRECT}apps:\n  crm: {{ url: '{url}', {disabled} }}\n"));
    served.says("the apps [crm] take their places when they are up");
    let tools = client.tools().await;
    assert!(has(&tools, "crm") && !tools.iter().any(|tool| tool == "crm:users_delete"), "{tools:?}");
    served.replace(&format!("{DIRECT}apps:\n  crm: {{ url: '{url}' }}\n"));
    served.says("the apps [crm] take their places when they are up");
    assert!(!has(&client.tools().await, "crm"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_file_changes_nothing_and_every_finding_is_told() {
    let good = format!("{DIRECT}apps:\n  crm: {{ builtin: crm }}\n");
    let served = Served::start(&good, &[]);
    let client = served.client().await;
    served.replace("htp: { port: 1 }\napps:\n  support: { builtin: suport }\n");
    served.says("is invalid, nothing changes: 2 problems");
    assert!(served.says("line 1: htp").contains("did you mean `http`"));
    served.says("line 3: apps.support");
    assert!(has(&client.tools().await, "crm"));
    assert!(served.readiness().await["config"]["refused"].as_bool().unwrap());

    // A server that cannot be started at all is refused as well, whatever else the file says.
    served.replace("apps: {}\n");
    served.says("is invalid, nothing changes: the configuration names no app");
    served.replace(&good);
    served.says("nothing differs");
    assert_eq!(
        served.readiness().await["config"],
        json!({"generation": 1, "refused": false, "restartPending": false, "unknownNames": 0})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_changes_the_limits_of_scripts_and_what_needs_a_restart_is_named() {
    let served = Served::start("apps:\n  crm: { builtin: crm }\n", &[]);
    let client = served.client().await;
    let script = json!({"script": "for (let i = 0; i < 3; i++) await callTool('crm:users_list', {limit: 1}); return 1"});
    let run = async || client.call("codecall:execute", script.clone()).await.structured_content.unwrap();
    assert_eq!(run().await["status"], "ok");

    served.replace(
        "http: { port: 9, maxStreams: 5 }\npageSize: 7\ncodecall: { vm: { maxToolCalls: 2 } }\napps:\n  crm: { builtin: crm }\n",
    );
    let line = served.says("restart to apply");
    assert!(line.contains("restart to apply: http.maxStreams, http.port, pageSize"), "{line}");
    served.says("the configuration was reloaded after a changed file");
    let body = run().await;
    assert_ne!(body["status"], "ok", "{body}");
    let config = &served.readiness().await["config"];
    assert_eq!(
        *config,
        json!({"generation": 2, "refused": false, "restartPending": true, "unknownNames": 0})
    );
}

/// A configuration whose app `inner` is a server in another process, with an environment that tells versions apart.
fn with_upstream(inner: &Path, version: &str) -> String {
    let command = json!(gatewright());
    let arguments = json!(["serve", "--stdio", "--log-level", "error", "--config", inner]);
    format!(
        "{DIRECT}apps:\n  inner: {{ command: {command}, args: {arguments}, env: {{ VERSION: {version} }} }}\n"
    )
}

/// The processes whose command line names `file` and that serve over stdio.
fn processes(file: &Path) -> Vec<u32> {
    let listing =
        Command::new("pgrep").arg("-f").arg(format!("serve --stdio.*{}", file.display())).output().unwrap();
    let own = std::process::id();
    let text = String::from_utf8(listing.stdout).unwrap();
    text.lines().map(|line| line.parse().unwrap()).filter(|pid| *pid != own).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_runs_while_its_app_is_changed_or_removed_ends_as_if_nothing_had_happened() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner.yaml");
    fs::write(&inner, format!("{DIRECT}apps:\n  all: {{ builtin: everything, prefix: false }}\n")).unwrap();
    let served = Served::start(&with_upstream(&inner, "one"), &[]);
    let client = Arc::new(served.client().await);
    while !has(&client.tools().await, "inner") {
        Client::hears(&client.listed).await;
    }
    let steps = [
        (with_upstream(&inner, "two"), "changed [inner]"),
        (format!("{DIRECT}apps:\n  crm: {{ builtin: crm }}\n"), "removed [inner]"),
    ];
    for (config, told) in steps {
        let old = processes(&inner);
        assert_eq!(old.len(), 1, "one process serves `inner`: {old:?}");
        let calling = tokio::spawn({
            let client = client.clone();
            async move { client.call("inner:test_elicitation", json!({"message": "who?"})).await }
        });
        Client::hears(&client.asked).await;
        served.replace(&config);
        let line = served.says("the configuration was reloaded");
        assert!(line.contains(told), "{line}");
        assert!(processes(&inner).contains(&old[0]), "the old process lives as long as its call");
        // While the old process still works, the new one (or the other app) answers already.
        assert_eq!(has(&client.tools().await, "inner"), told.starts_with("changed"));
        client.answer.notify_one();
        let result = calling.await.unwrap();
        assert_ne!(result.is_error, Some(true), "{result:?}");
        assert!(result.content[0].as_text().unwrap().text.contains("ada"), "{result:?}");
        served.says("a removed app has shut down");
        assert!(!processes(&inner).contains(&old[0]), "the old process is gone");
    }
    assert!(processes(&inner).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn options_of_an_app_change_without_a_new_process() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner.yaml");
    fs::write(&inner, format!("{DIRECT}apps:\n  all: {{ builtin: everything, prefix: false }}\n")).unwrap();
    let config = with_upstream(&inner, "one");
    let served = Served::start(&config, &[]);
    let client = served.client().await;
    while !has(&client.tools().await, "inner") {
        Client::hears(&client.listed).await;
    }
    let before = processes(&inner);
    let hidden = config.replace(" } }", " }, tools: { greet: { disabled: true } } }");
    assert_ne!(hidden, config);
    served.replace(&hidden);
    served.says("changed [inner]");
    let tools = client.tools().await;
    assert!(has(&tools, "inner") && !tools.contains(&"inner:greet".to_owned()), "{tools:?}");
    assert_eq!(processes(&inner), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_half_written_is_refused_one_that_is_gone_is_told_and_the_whole_one_is_taken() {
    let config = |app: &str| format!("{DIRECT}apps:\n  {app}: {{ builtin: {app} }}\n");
    let served = Served::start(&config("crm"), &[]);
    let client = served.client().await;
    let whole = config("support");
    fs::write(served.file(), &whole[..whole.len() - 8]).unwrap();
    served.says("is invalid, nothing changes");
    assert!(served.readiness().await["config"]["refused"].as_bool().unwrap());
    fs::remove_file(served.file()).unwrap();
    served.says("is missing; its last content stays in force until it is back");
    // Asked to read what is not there, it says so and goes on as well.
    served.hang_up();
    served.says("is invalid, nothing changes: ");
    assert!(has(&client.tools().await, "crm"));
    fs::write(served.file(), &whole).unwrap();
    let line = served.says("the configuration was reloaded after a changed file");
    assert!(line.contains("added [support]") && line.contains("removed [crm]"), "{line}");
    let config = &served.readiness().await["config"];
    assert_eq!(
        *config,
        json!({"generation": 2, "refused": false, "restartPending": false, "unknownNames": 0})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_a_pipe_or_has_no_end_is_refused_and_the_server_goes_on_and_ends() {
    let mut served = Served::start(&format!("{DIRECT}apps:\n  crm: {{ builtin: crm }}\n"), &[]);
    let client = served.client().await;
    fs::remove_file(served.file()).unwrap();
    assert!(Command::new("mkfifo").arg(served.file()).status().unwrap().success());
    served.hang_up();
    served.says("gatewright.yaml cannot be read: it is not a regular file");
    assert!(has(&client.tools().await, "crm") && served.readiness().await["config"]["refused"] == true);
    fs::remove_file(served.file()).unwrap();
    std::os::unix::fs::symlink("/dev/zero", served.file()).unwrap();
    served.hang_up();
    served.says("gatewright.yaml cannot be read: it is not a regular file");
    assert!(has(&client.tools().await, "crm"));
    drop(client);
    served.terminate();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubernetes_config_map_is_followed_when_its_data_link_is_swapped() {
    let config = |app: &str| format!("{DIRECT}apps:\n  {app}: {{ builtin: {app} }}\n");
    let served = Served::start(&config("crm"), &[]);
    let folder = served.folder.path();
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, folder.join(name)).unwrap();
    for (version, app) in [("..v1", "crm"), ("..v2", "support")] {
        fs::create_dir(folder.join(version)).unwrap();
        fs::write(folder.join(version).join("gatewright.yaml"), config(app)).unwrap();
    }
    link("..v1", "..data");
    link("..data/gatewright.yaml", "linked");
    fs::rename(folder.join("linked"), served.file()).unwrap();
    served.says("nothing differs");
    link("..v2", "..data_tmp");
    fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
    fs::remove_dir_all(folder.join("..v1")).unwrap();
    let line = served.says("the configuration was reloaded after a changed file");
    assert!(line.contains("added [support]") && line.contains("removed [crm]"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_text_of_execute_follows_the_limits_and_an_open_session_hears_of_it() {
    let apps = "apps:\n  crm: { builtin: crm }\n";
    let served = Served::start(apps, &["--no-watch"]);
    let client = served.client().await;
    let limits = async || {
        let tools = client.running.peer().list_all_tools().await.unwrap();
        let execute = tools.into_iter().find(|tool| tool.name == "codecall:execute").unwrap();
        let text = execute.description.unwrap().into_owned();
        text[text.find("Limits: ").unwrap()..].to_owned()
    };
    assert_eq!(limits().await, "Limits: 3.5 s, 100 calls, 100000 loop turns, 1 MiB of result.");
    served.replace(&format!("{apps}codecall: {{ vm: {{ timeoutMs: 9000, maxToolCalls: 7 }} }}\n"));
    served.hang_up();
    Client::hears(&client.listed).await;
    assert_eq!(limits().await, "Limits: 9 s, 7 calls, 100000 loop turns, 1 MiB of result.");
}

/// A value for each section that differs from the default, and whether the section is taken over while serving.
#[tokio::test(flavor = "multi_thread")]
async fn every_section_of_the_configuration_is_taken_over_or_named_as_waiting_for_a_restart() {
    let apps = "apps:\n  crm: { builtin: crm }\n";
    let sections = [
        ("info", "name: other", Some("info.name")),
        ("http", "trustedProxies: [10.0.0.0/8]", Some("http.trustedProxies")),
        ("codecall", "worker: { workers: 3 }", Some("codecall.worker.workers")),
        ("codecall", "enabled: false", Some("codecall.enabled")),
        ("codecall", "embedding: { strategy: embedding }", Some("codecall.embedding.strategy")),
        ("codecall", "search: { meaning: off }", Some("codecall.search.meaning")),
        ("codecall", "mode: codecall_opt_in", None),
        ("codecall", "vm: { maxToolCalls: 7 }", None),
        ("codecall", "sanitization: { removeFilePaths: false }", None),
        ("codecall", "embedding: { similarityThreshold: 0.3 }", None),
        ("rateLimits", "", None),
        ("admin", "port: 0", Some("admin.port")),
        ("telemetry", "otlp: { endpoint: 'http://127.0.0.1:1' }", Some("telemetry.otlp.endpoint")),
        ("logging", "level: warn", None),
        ("logging", "redact: [pin]", None),
        ("audit", "file: /nonexistent/audit.jsonl", Some("audit.file")),
        ("executions", "retention: 1h", Some("executions.retention")),
        ("approvals", "destructive: ask", None),
        ("policies", "", None),
        ("endpoints", "support: { apps: [crm] }", None),
        ("auth", "trustedProxies: [10.0.0.0/8]", Some("auth.trustedProxies")),
        ("toolNames", "", Some("toolNames")),
        ("pageSize", "", Some("pageSize")),
    ];
    let rules = tempfile::NamedTempFile::with_suffix(".cedar").unwrap();
    fs::write(rules.path(), "permit (principal, action, resource);").unwrap();
    // None is forgotten here.
    let schema = Command::new(gatewright()).arg("schema").output().unwrap();
    let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
    for section in schema["properties"].as_object().unwrap().keys().filter(|name| *name != "apps") {
        assert!(sections.iter().any(|(name, ..)| name == section), "{section}");
    }
    let served = Served::start(apps, &["--no-watch"]);
    for (section, value, waits) in sections {
        let text = match section {
            "rateLimits" => "rateLimits: [{ tool: '*', limit: 5, window: 1s }]".to_owned(),
            "toolNames" => "toolNames: underscore".to_owned(),
            "pageSize" => "pageSize: 9".to_owned(),
            "policies" => format!("policies: ['{}']", rules.path().display()),
            _ => format!("{section}: {{ {value} }}"),
        };
        served.replace(&format!("{apps}{text}\n"));
        served.hang_up();
        // What is said is said at `warn` when the level is that.
        let deadline = std::time::Instant::now() + LONG;
        let config = loop {
            let config = served.readiness().await["config"].clone();
            let told = config["restartPending"] == waits.is_some();
            if told && config["generation"].as_u64().unwrap().is_multiple_of(2) {
                break config;
            }
            assert!(std::time::Instant::now() < deadline, "{text}: {config}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        };
        assert_eq!(config["refused"], false, "{text}");
        if let Some(key) = waits {
            let line = served.says("restart to apply");
            assert!(line.ends_with(&format!("restart to apply: {key}")) || line.contains(key), "{line}");
        }
        let generation = config["generation"].clone();
        served.replace(apps);
        served.hang_up();
        while served.readiness().await["config"]["generation"] == generation {
            assert!(std::time::Instant::now() < deadline, "{text}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_are_read_again_and_a_bad_file_of_them_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.cedar");
    fs::write(&rules, "permit (principal, action, resource);").unwrap();
    let config = format!("{DIRECT}apps:\n  crm: {{ builtin: crm }}\npolicies: ['{}']\n", rules.display());
    let served = Served::start(&config, &["--no-watch"]);
    let client = served.client().await;
    let refused = async || client.call("crm:users_list", json!({})).await.is_error == Some(true);
    assert!(!refused().await);

    fs::write(&rules, "permit (principal, action, resource in App::\"billing\");").unwrap();
    served.hang_up();
    let line = served.says("the configuration was reloaded after SIGHUP");
    assert!(line.contains("keys that differ [policies]"), "{line}");
    Client::hears(&client.listed).await;
    assert!(refused().await && client.tools().await.is_empty());

    fs::write(&rules, "permit (principal, action").unwrap();
    served.hang_up();
    served.says("rules.cedar: line 1: ");
    assert!(refused().await, "the last good policies stay in force");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_policy_file_is_noticed_without_a_signal_and_so_is_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let rule = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    rule("a.cedar", "permit (principal, action, resource);");
    let pattern = folder.path().join("*.cedar");
    let config = format!("{DIRECT}apps:\n  crm: {{ builtin: crm }}\npolicies: ['{}']\n", pattern.display());
    let served = Served::start(&config, &[]);
    let client = served.client().await;
    rule("b.cedar", "forbid (principal, action, resource == Tool::\"crm:users_delete\");");
    Client::hears(&client.listed).await;
    assert!(!client.tools().await.iter().any(|tool| tool == "crm:users_delete"));
    rule("b.cedar", "forbid (principal, action, resource in App::\"crm\");");
    Client::hears(&client.listed).await;
    assert!(client.tools().await.is_empty());
}
