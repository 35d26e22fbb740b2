//! The fixture's resources and prompts.

use rmcp::ErrorData;
use rmcp::model::{
    ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Prompt, PromptArgument,
    PromptMessage, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    ResourceUpdatedNotificationParam, Role,
};
use serde_json::{Value, json};

use super::ask::{asking, filled, form};
use super::tools::PNG;

pub(super) fn resources() -> Vec<Resource> {
    let resource = |uri: &str, name: &str, description: &str, mime_type: &str| {
        Resource::new(uri, name).with_description(description).with_mime_type(mime_type)
    };
    vec![
        resource("test://static-binary", "static-binary", "One red pixel", "image/png"),
        resource("test://static-text", "static-text", "A text that never changes", "text/plain"),
        resource("test://watched-resource", "watched-resource", "A text to subscribe to", "text/plain"),
    ]
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("test://template/{id}/data", "template")
            .with_description("Data for any id")
            .with_mime_type("application/json"),
    ]
}

pub(super) fn updated(uri: &str) -> ResourceUpdatedNotificationParam {
    ResourceUpdatedNotificationParam::new(uri)
}

pub(super) fn read(uri: &str) -> Result<ReadResourceResponse, ErrorData> {
    let contents = match uri {
        "test://static-text" => {
            ResourceContents::text("This is the content of the static text resource.", uri)
        }
        "test://static-binary" => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
        "test://watched-resource" => ResourceContents::text("Watched resource content", uri),
        _ => {
            let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
            let Some(id) = id.filter(|id| !id.is_empty() && !id.contains('/')) else {
                let data = json!({ "uri": uri });
                return Err(ErrorData::resource_not_found("Resource not found", Some(data)));
            };
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            ResourceContents::text(data.to_string(), uri).with_mime_type("application/json")
        }
    };
    Ok(ReadResourceResult::new(vec![contents]).into())
}

pub(super) fn prompts() -> Vec<Prompt> {
    let prompt = |name: &str, description: &str, arguments: &[(&str, &str)]| {
        let arguments: Vec<PromptArgument> = arguments
            .iter()
            .map(|(name, what)| PromptArgument::new(*name).with_description(*what).with_required(true))
            .collect();
        Prompt::new(name, Some(description), (!arguments.is_empty()).then_some(arguments))
    };
    vec![
        prompt("test_input_required_result_prompt", "A prompt that asks for its context first", &[]),
        prompt(
            "test_prompt_with_arguments",
            "A prompt with two arguments",
            &[("arg1", "First test argument"), ("arg2", "Second test argument")],
        ),
        prompt(
            "test_prompt_with_embedded_resource",
            "A prompt with a resource in it",
            &[("resourceUri", "URI of the resource to embed")],
        ),
        prompt("test_prompt_with_image", "A prompt with an image in it", &[]),
        prompt("test_simple_prompt", "A prompt of one sentence", &[]),
    ]
}

pub(super) fn prompt(request: GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let argument = |name: &str| {
        let value = request.arguments.as_ref().and_then(|all| all.get(name)).and_then(Value::as_str);
        value.ok_or_else(|| ErrorData::invalid_params(format!("The argument '{name}' is required"), None))
    };
    let says = |text: String| PromptMessage::new_text(Role::User, text);
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![says("This is a simple prompt for testing.".into())],
        "test_prompt_with_arguments" => vec![says(format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            argument("arg1")?,
            argument("arg2")?
        ))],
        "test_prompt_with_embedded_resource" => {
            let contents =
                ResourceContents::text("Embedded resource content for testing.", argument("resourceUri")?);
            vec![
                PromptMessage::new(Role::User, ContentBlock::resource(contents)),
                says("Please process the embedded resource above.".into()),
            ]
        }
        "test_prompt_with_image" => vec![
            PromptMessage::new(Role::User, ContentBlock::image(PNG, "image/png")),
            says("Please analyze the image above.".into()),
        ],
        "test_input_required_result_prompt" => {
            let answers = request.input_responses.as_ref();
            match filled(answers, "user_context", "context").and_then(Value::as_str) {
                Some(context) => vec![says(format!("Use this context: {context}"))],
                None => {
                    let question = form("What context should the prompt use?", "context", "string");
                    return asking(json!({ "user_context": question }), None).map(Into::into);
                }
            }
        }
        unknown => return Err(ErrorData::invalid_params(format!("Unknown prompt: {unknown}"), None)),
    };
    Ok(GetPromptResult::new(messages).into())
}
