//! Asks a user to let the gateway act for them at a server: as a URL elicitation where the client takes them, else as a tool error
//! that holds the address.

use rmcp::{
    ErrorData,
    model::{
        CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ElicitRequestParams, ErrorCode,
        InputRequest, InputRequiredResult,
    },
};
use serde_json::json;

use crate::{AnsweredLater, Authorize, CallContext, codes};

/// URLElicitationRequiredError (MCP 2025-11-25, elicitation).
pub const URL_ELICITATION_REQUIRED: i32 = -32042;
/// The gateway's key among the questions of an `input_required` result.
pub const SIGN_IN_QUESTION: &str = "gatewright_authorize";

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

/// The question as an error, for a request that is not a tool call.
pub fn sign_in_error(id: &str, authorize: &Authorize) -> ErrorData {
    let data = json!({"elicitations": [{
        "mode": "url", "elicitationId": authorize.id, "url": authorize.url, "message": message(id),
    }]});
    let text = format!("{}: open {} in a browser, then try again", message(id), authorize.url);
    ErrorData::new(ErrorCode(URL_ELICITATION_REQUIRED), text, Some(data))
}

/// Asks the user to sign in at the app `id`: with a URL elicitation if the client takes them, or if it is a run of a script that waits, whoever
/// opens the address; else with a tool error that has the address.
///
/// # Errors
/// URLElicitationRequiredError, which is the question for clients of 2025-11-25 and for runs that wait.
pub fn ask_to_sign_in(
    id: &str,
    authorize: &Authorize,
    context: &CallContext,
) -> Result<CallToolResponse, ErrorData> {
    let takes_urls = context
        .request()
        .client_capabilities()
        .and_then(|capabilities| capabilities.elicitation)
        .is_some_and(|elicitation| elicitation.url.is_some());
    let waits = context.request().extensions.get::<AnsweredLater>().is_some();
    if !takes_urls && !waits {
        let text = format!("{}: open {} in a browser, then call the tool again.", message(id), authorize.url);
        let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
        // Structured content would have to fit the output schema of the tool.
        result.meta =
            serde_json::from_value(json!({"code": codes::AUTHORIZATION_REQUIRED, "url": authorize.url})).ok();
        return Ok(CallToolResponse::Complete(result));
    }
    if takes_urls && context.era().is_stateless() {
        let request = InputRequest::Elicitation(ElicitRequest::new(question(id, authorize)));
        let requests = [(SIGN_IN_QUESTION.to_owned(), request)].into_iter().collect();
        return Ok(CallToolResponse::InputRequired(InputRequiredResult::from_input_requests(requests)));
    }
    Err(sign_in_error(id, authorize))
}
