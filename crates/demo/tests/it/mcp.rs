use gatewright_demo::{App, Dataset, Everything, apps};
use rmcp::model::{
    ArgumentInfo, CallToolRequestParams, CompleteRequestParams, GetPromptRequestParams,
    PaginatedRequestParams, ReadResourceRequestParams, Reference,
};
use rmcp::service::{RoleClient, RunningService};
use rmcp::{ServerHandler, ServiceExt};
use serde_json::{Value, json};

async fn connect(handler: impl ServerHandler) -> RunningService<RoleClient, ()> {
    let (near, far) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        if let Ok(server) = handler.serve(far).await {
            let _ = server.waiting().await;
        }
    });
    ().serve(near).await.unwrap()
}

fn app(name: &str) -> App {
    apps(&Dataset::seeded()).into_iter().find(|(known, _)| *known == name).unwrap().1
}

fn as_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

#[tokio::test]
async fn a_client_lists_and_calls_the_tools_of_each_app() {
    for (name, app) in apps(&Dataset::seeded()) {
        let expected: Vec<String> = app.tools().iter().map(|tool| tool.name.to_string()).collect();
        let client = connect(app).await;
        let tools = client.list_all_tools().await.unwrap();
        let names: Vec<String> = tools.iter().map(|tool| tool.name.to_string()).collect();
        assert_eq!(names, expected, "{name}");
        assert!(names.is_sorted());
        let list = names.iter().find(|name| name.ends_with("_list")).unwrap().clone();
        let result = as_json(&client.call_tool(CallToolRequestParams::new(list)).await.unwrap());
        assert_eq!(result["isError"], false);
        assert!(result["structuredContent"]["items"].as_array().is_some_and(|rows| !rows.is_empty()));
    }
}

#[tokio::test]
async fn an_unknown_tool_and_an_unknown_cursor_are_invalid_params() {
    let client = connect(app("crm")).await;
    let error = client.call_tool(CallToolRequestParams::new("nothing")).await.unwrap_err();
    assert!(error.to_string().contains("-32602"), "{error}");
    let page = PaginatedRequestParams::default().with_cursor(Some("x".into()));
    assert!(client.list_tools(Some(page)).await.unwrap_err().to_string().contains("-32602"));
}

#[tokio::test]
async fn every_listed_resource_can_be_read_and_an_unknown_one_is_not_found() {
    for (_, app) in apps(&Dataset::seeded()) {
        let client = connect(app).await;
        let resources = client.list_all_resources().await.unwrap();
        assert!(!resources.is_empty());
        for resource in resources {
            let read = client.read_resource(ReadResourceRequestParams::new(&resource.uri)).await.unwrap();
            let read = as_json(&read);
            assert_eq!(read["contents"][0]["mimeType"], json!(resource.mime_type), "{}", resource.uri);
            assert!(!read["contents"][0]["text"].as_str().unwrap().is_empty());
        }
        assert!(!client.list_all_resource_templates().await.unwrap().is_empty());
        let gone =
            client.read_resource(ReadResourceRequestParams::new("crm://users/nobody")).await.unwrap_err();
        assert!(gone.to_string().contains("not found"), "{gone}");
    }
}

#[tokio::test]
async fn a_template_reads_the_row_with_the_id() {
    let client = connect(app("crm")).await;
    let read = client.read_resource(ReadResourceRequestParams::new("crm://users/usr_0001")).await.unwrap();
    let text = as_json(&read)["contents"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["name"], "Ada Lindqvist");
}

#[tokio::test]
async fn prompts_tell_of_the_row_and_refuse_what_is_missing_or_unknown() {
    let get = |arguments: Value| {
        GetPromptRequestParams::new("draft_reply").with_arguments(arguments.as_object().cloned().unwrap())
    };
    let client = connect(app("support")).await;
    let prompt = client.get_prompt(get(json!({ "ticket_id": "tkt_0003", "tone": "formal" }))).await.unwrap();
    let text = as_json(&prompt)["messages"][0]["content"]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("formal") && text.contains("Scanner does not pair"), "{text}");
    for (arguments, says) in [
        (json!({}), "ticket_id"),
        (json!({ "ticket_id": "tkt_9999" }), "tkt_9999"),
        (json!({ "ticket_id": "tkt_0003", "tone": "rude" }), "apologetic, friendly, formal"),
    ] {
        let error = client.get_prompt(get(arguments)).await.unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("-32602"), "{error}");
    }
}

#[tokio::test]
async fn completion_offers_the_values_that_begin_as_typed() {
    let client = connect(app("support")).await;
    let ask = |reference, name: &str, value: &str| {
        CompleteRequestParams::new(reference, ArgumentInfo::new(name, value))
    };
    let tones = client.complete(ask(Reference::for_prompt("draft_reply"), "tone", "f")).await.unwrap();
    assert_eq!(tones.completion.values, ["friendly", "formal"]);
    let ids = client
        .complete(ask(Reference::for_resource("support://tickets/{id}"), "id", "tkt_001"))
        .await
        .unwrap();
    assert_eq!(ids.completion.values.len(), 7);
    let none = client.complete(ask(Reference::for_prompt("draft_reply"), "other", "")).await.unwrap();
    assert!(none.completion.values.is_empty());
}

#[tokio::test]
async fn the_conformance_fixture_lists_its_tools_in_order_and_answers() {
    let client = connect(Everything::new()).await;
    let names: Vec<String> =
        client.list_all_tools().await.unwrap().iter().map(|tool| tool.name.to_string()).collect();
    assert!(names.is_sorted() && names.len() >= 35, "{names:?}");
    let answer = client.call_tool(CallToolRequestParams::new("test_simple_text")).await.unwrap();
    assert_eq!(as_json(&answer)["content"][0]["text"], "This is a simple text response for testing.");
}
