//! Lists and long names in scripts: they take room before they are written, and are cut before anything looks at them.

use gatewright_core::rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResponse, ClientRequest, ListResourcesResult,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, ServerResult,
    },
    service::{PeerRequestOptions, RequestContext},
};
use serde_json::{Value, json};

use super::{
    asking::made,
    support::Served,
    waiting::{Asking, body, execute},
};

/// Many resources with long descriptions.
#[derive(Clone)]
struct Shelf {
    resources: usize,
}

impl ServerHandler for Shelf {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_resources().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(made(json!({"tools": []})))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Err(ErrorData::invalid_params(request.name, None))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let about = "about it ".repeat(1_000);
        let one =
            |n: usize| json!({"uri": format!("book://{n}"), "name": format!("b{n}"), "description": about});
        Ok(made(json!({"resources": (0..self.resources).map(one).collect::<Value>()})))
    }
}

/// The error that a script catches when it lists so many resources of 9 KB each.
async fn refused(resources: usize, vm: Value) -> String {
    let served = Served::over(json!({"vm": vm}), Shelf { resources }).await;
    let ada = served.client("ada").await;
    let script = "try { return (await listResources()).length } catch (error) { return error.message }";
    let result = ada.run(script).await;
    result.as_str().map_or_else(|| panic!("{result}"), str::to_owned)
}

#[tokio::test]
async fn a_list_of_resources_takes_its_room_before_it_is_written() {
    let served = Served::over(json!({}), Shelf { resources: 20 }).await;
    assert_eq!(served.client("ada").await.run("return (await listResources()).length").await, 20);
    let told = refused(300, json!({"hostMemoryMib": 1})).await;
    assert!(told.contains("hostMemoryMib"), "{told}");
}

#[tokio::test]
async fn a_list_of_resources_beyond_a_message_is_refused_and_the_script_goes_on() {
    let told = refused(1_000, json!({})).await;
    assert!(told.contains("more than 8388608 bytes"), "{told}");
}

#[tokio::test]
async fn names_of_tools_that_are_too_long_are_cut_before_anything_looks_at_them() {
    let served = Served::over(json!({}), Asking::default()).await;
    let ada = served.client("ada").await;
    let script = "const name = 'app:' + 'x'.repeat(1_000_000); const told = [];
        try { await getTool(name) } catch (error) { told.push(error.message) }
        try { await callTool(name, {}) } catch (error) { told.push(error.message) }
        return told";
    let told = ada.run(script).await;
    for message in told.as_array().unwrap() {
        let message = message.as_str().unwrap();
        assert!(message.len() < 400 && message.ends_with("does not exist"), "{message}");
    }
    assert_eq!(told.as_array().unwrap().len(), 2);
    let names = json!(["x".repeat(1_000_000), "app_".repeat(100_000)]);
    let described = ada.body("codecall:describe", json!({"toolNames": names})).await;
    assert!(described.to_string().len() < 1_000, "{}", described.to_string().len());
}

#[tokio::test]
async fn metadata_that_every_call_of_a_script_would_send_on_is_short() {
    let app = Asking::default();
    let served = Served::over(json!({}), app.clone()).await;
    let ada = served.client("ada").await;
    let call = async |bytes: usize| {
        let params = execute("return (await callTool('app:effect', {})).count");
        let meta = made(json!({"example.com/note": "x".repeat(bytes)}));
        let options = PeerRequestOptions::no_options().with_meta(meta);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = ada.0.peer().send_cancellable_request(request, options).await.unwrap();
        match sent.await_response().await.unwrap() {
            ServerResult::CallToolResult(result) => body(result),
            other => panic!("{other:?}"),
        }
    };
    let refused = call(17_000).await;
    assert_eq!(refused["error"]["code"], "VALIDATION_ERROR", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("`_meta`"), "{refused}");
    assert_eq!(call(10_000).await["result"], 1, "nothing was run before");
}
