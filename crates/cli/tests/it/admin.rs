//! The admin listener of the real binary: metrics, and the console with what was called.

use gatewright::rmcp::{
    ServiceExt as _, model::CallToolRequestParams, transport::StreamableHttpClientTransport,
};
use serde_json::json;

use crate::served::Served;

const CONFIG: &str = "apps:\n  crm: { builtin: crm }\nadmin: { port: 0 }\n";

pub struct Admin {
    pub server: Served,
    base: String,
}

pub fn start(config: &str) -> Admin {
    // The admin listener is told after the server's own.
    let server = Served::start(config, &[]);
    let line = server.says("for operators on http://");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
    Admin { base: format!("http://{address}"), server }
}

impl Admin {
    pub async fn get(&self, path: &str) -> (u16, String) {
        let answer = reqwest::get(format!("{}{path}", self.base)).await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    async fn run(&self, script: &str) -> serde_json::Value {
        let url = format!("http://{}/mcp", self.server.address);
        let client = ().serve(StreamableHttpClientTransport::from_uri(url)).await.unwrap();
        let input = json!({"script": script}).as_object().unwrap().clone();
        let params = CallToolRequestParams::new("codecall:execute").with_arguments(input);
        client.peer().call_tool(params).await.unwrap().structured_content.unwrap()
    }
}

#[tokio::test]
async fn metrics_count_executions_and_the_calls_inside_them() {
    let admin = start(CONFIG);
    let body = admin
        .run("for (let i = 0; i < 3; i++) await callTool('crm:users_list', {limit: 1}); return 1;")
        .await;
    assert_eq!(body["status"], "ok");
    admin.run("return await callTool('crm:no_such_tool', {});").await;
    let (status, text) = admin.get("/metrics").await;
    assert_eq!(status, 200);
    let line = |front: &str| {
        text.lines()
            .find(|line| line.starts_with(front))
            .unwrap_or_else(|| panic!("{front}: {text}"))
            .to_owned()
    };
    let count = |front: &str| line(front).rsplit(' ').next().unwrap().parse::<f64>().unwrap();
    let execute = "mcp_server_operation_duration_seconds_count{error_type=\"\",gen_ai_prompt_name=\"\",gen_ai_tool_name=\"codecall:execute\",mcp_method_name=\"tools/call\"}";
    assert!((count(execute) - 1.0).abs() < f64::EPSILON);
    let failed = execute.replace("error_type=\"\"", "error_type=\"tool_error\"");
    assert!((count(&failed) - 1.0).abs() < f64::EPSILON);
    let inner =
        "gatewright_tool_call_duration_seconds_count{error_type=\"\",gen_ai_tool_name=\"crm:users_list\"}";
    assert!((count(inner) - 3.0).abs() < f64::EPSILON);
    assert!((count("gatewright_app_up{app=\"crm\"}") - 1.0).abs() < f64::EPSILON);
    assert!(count("gatewright_workers_idle") >= 1.0);
}

#[tokio::test]
async fn the_console_lists_what_clients_ran() {
    let admin = start(CONFIG);
    admin.run("await callTool('crm:users_list', {limit: 1}); return 1;").await;
    let (status, page) = admin.get("/console/calls").await;
    assert_eq!(status, 200);
    assert!(page.contains("codecall:execute"), "{page}");
    let (_, execution) = admin.get("/console/calls/1").await;
    assert!(execution.contains("crm:users_list"), "{execution}");
    assert_eq!(admin.get("/").await.0, 200, "it leads to the console");
}

#[tokio::test]
async fn the_public_port_shows_neither_metrics_nor_console_and_the_admin_port_serves_no_mcp() {
    let admin = start(CONFIG);
    for path in ["/metrics", "/console"] {
        let answer = reqwest::get(format!("http://{}{path}", admin.server.address)).await.unwrap();
        assert_eq!(answer.status().as_u16(), 404, "{path}");
    }
    assert_eq!(admin.get("/mcp").await.0, 404);
    let plain = start("apps:\n  crm: { builtin: crm }\nadmin: { port: 0, console: false }\n");
    assert_eq!(plain.get("/console").await.0, 404);
}

#[tokio::test]
async fn with_authentication_its_counts_are_among_the_metrics() {
    let admin = start(&format!("{CONFIG}auth: {{ mode: orchestrated }}\n"));
    let answer =
        reqwest::Client::new().post(format!("http://{}/mcp", admin.server.address)).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 401);
    let (_, text) = admin.get("/metrics").await;
    for name in ["auth_failures", "refreshed", "jwks", "store_errors", "issue_seconds"] {
        assert!(text.lines().any(|line| !line.starts_with('#') && line.contains(name)), "{name}: {text}");
    }
}
