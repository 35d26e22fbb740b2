//! Cost of one decision by 100 policies: of a class that was met, of one that depends on the arguments, and of a new one.

use std::{hint::black_box, sync::Arc, time::SystemTime};

use criterion::{Criterion, criterion_group, criterion_main};
use gatewright_core::{
    AppOptions, Caller, LocalApp, PermittedTool, PolicyEngine as _, PolicyRequest, Principal, Registry,
    Scopes, ToolNames,
    rmcp::{
        ErrorData, RoleServer, ServerHandler,
        model::{
            JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
        },
        service::RequestContext,
    },
};
use gatewright_policy::{CedarPolicies, PolicyFile};
use serde_json::json;

/// 100 policies: most about other tools, as in a file that has grown; `open` of them read the arguments of every call.
fn policies(open: usize) -> CedarPolicies {
    let mut text = "permit (principal, action, resource);\n".to_owned();
    for n in 1..100 {
        text.push_str(&match n {
            n if n <= open => format!(
                "forbid (principal, action == Action::\"call\", resource) when {{ context.arguments has amount && context.arguments.amount > {} }};\n",
                1_000_000 + n
            ),
            n => format!(
                "forbid (principal, action == Action::\"call\", resource == Tool::\"bank:tool_{n}\") unless {{ principal.scopes.contains(\"s{n}\") }};\n"
            ),
        });
    }
    CedarPolicies::read(vec![PolicyFile { name: "bench.cedar".to_owned(), text }])
        .expect("the policies are right")
}

/// Serves a list of tools.
#[derive(Clone)]
struct Tools(Vec<Tool>);

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.0.clone()))
    }
}

async fn tool(principal: &Principal) -> PermittedTool {
    let schema =
        json!({"type": "object", "properties": {"amount": {"type": "integer"}, "to": {"type": "string"}}});
    let tools = json!([{"name": "transfer", "inputSchema": schema}]);
    let server = Tools(serde_json::from_value(tools).expect("definitions of tools"));
    let registry = Registry::new(ToolNames::Colon);
    let app = LocalApp::start(server).await.expect("the app starts");
    registry.add("bank", Arc::new(app), AppOptions::default());
    registry.view(&Caller::new(principal.clone())).tool("bank:transfer").expect("the tool is there")
}

fn decide(c: &mut Criterion) {
    let principal = Principal {
        subject: "user:ada".into(),
        client_id: Some("desk".into()),
        scopes: Scopes::parse("bank:read bank:write crm:*"),
        ..Principal::local()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let tool = runtime.block_on(tool(&principal));
    let arguments: JsonObject = json!({"amount": 5_000, "to": "ann", "note": "x".repeat(200)})
        .as_object()
        .expect("an object")
        .clone();
    let request = PolicyRequest {
        principal: &principal,
        object: tool.policy_object(),
        arguments: Some(&arguments),
        script: true,
        calls: 3,
        time: SystemTime::now(),
    };
    let mut group = c.benchmark_group("100 policies");
    for (name, open) in
        [("none reads arguments", 0), ("3 read the arguments of every call", 3), ("all read them", 99)]
    {
        let policies = policies(open);
        group.bench_function(name, |b| b.iter(|| policies.decide(black_box(&request))));
    }
    let text = policies(3);
    group.bench_function("explain: every policy, nothing kept", |b| {
        b.iter(|| text.explain(black_box(&request)))
    });
    group.bench_function("a list asks for a tool", |b| {
        b.iter(|| text.may_permit(black_box(&principal), &tool.policy_object()));
    });
    group.finish();
}

criterion_group!(benches, decide);
criterion_main!(benches);
