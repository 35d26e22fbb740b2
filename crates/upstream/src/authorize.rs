//! Asks a user to let the gateway act for them at a server: as a URL elicitation where the client takes them, else as a tool error
//! that holds the address.

use std::sync::Arc;

use gatewright_core::{Authorize, CallContext, Catalog};
use rmcp::{
    ErrorData,
    model::{
        CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ElicitRequestParams, ErrorCode,
        InputRequest, InputRequiredResult, JsonObject, Tool,
    },
};
use serde_json::json;

/// The tool that lets a user authorize before any other tool is known.
pub(crate) const AUTHORIZE: &str = "authorize";
/// URLElicitationRequiredError (MCP 2025-11-25, elicitation).
pub(crate) const URL_ELICITATION_REQUIRED: i32 = -32042;
/// Our key among the questions of an `input_required` result.
pub(crate) const QUESTION: &str = "gatewright_authorize";

/// The catalog for a user without a token.
pub(crate) fn catalog(id: &str) -> Catalog {
    let words = format!(
        "Lets this gateway act for you at `{id}`. Answers with an address to open in a browser when you have not allowed it yet."
    );
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let schema: JsonObject = serde_json::from_value(schema).unwrap_or_default();
    let mut catalog = Catalog::default();
    catalog.tools.push(Tool::new(AUTHORIZE, words, Arc::new(schema)));
    catalog.capabilities.tools.get_or_insert_default();
    catalog
}

fn message(id: &str) -> String {
    format!("Allow this gateway to act for you at `{id}`")
}

fn question(id: &str, authorize: &Authorize) -> ElicitRequestParams {
    ElicitRequestParams::UrlElicitationParams {
        meta: None,
        message: message(id),
        url: authorize.url.clone(),
        elicitation_id: authorize.id.clone(),
    }
}

/// The question as an error, for what is not a tool call.
pub(crate) fn elicitation_error(id: &str, authorize: &Authorize) -> ErrorData {
    let data = json!({"elicitations": [{
        "mode": "url", "elicitationId": authorize.id, "url": authorize.url, "message": message(id),
    }]});
    let text = format!("{}: open {} in a browser, then try again", message(id), authorize.url);
    ErrorData::new(ErrorCode(URL_ELICITATION_REQUIRED), text, Some(data))
}

/// Asks in the best way the client takes.
pub(crate) fn ask(
    id: &str,
    authorize: &Authorize,
    context: &CallContext,
) -> Result<CallToolResponse, ErrorData> {
    let takes_urls = context
        .request()
        .client_capabilities()
        .and_then(|capabilities| capabilities.elicitation)
        .is_some_and(|elicitation| elicitation.url.is_some());
    if !takes_urls {
        let text = format!("{}: open {} in a browser, then call the tool again.", message(id), authorize.url);
        let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
        // Structured content would have to fit the output schema of the tool.
        result.meta =
            serde_json::from_value(json!({"code": "AUTHORIZATION_REQUIRED", "url": authorize.url})).ok();
        return Ok(CallToolResponse::Complete(result));
    }
    if context.era().is_stateless() {
        let request = InputRequest::Elicitation(ElicitRequest::new(question(id, authorize)));
        let requests = [(QUESTION.to_owned(), request)].into_iter().collect();
        return Ok(CallToolResponse::InputRequired(InputRequiredResult::from_input_requests(requests)));
    }
    Err(elicitation_error(id, authorize))
}
