//! Addresses that a user has to open before an app works on a request (MCP 2025-11-25: error -32042), as questions.
//!
//! The app refused the request, so it is made again once the user has agreed to open them.

use rmcp::{
    ErrorData,
    model::{
        ElicitRequest, ElicitRequestParams, ErrorCode, InputRequest, InputRequests, InputRequiredResult,
    },
};
use serde_json::Value;

use super::{CannotAsk, Unasked, is_web_address, outline};

/// "URL elicitation required" (MCP 2025-11-25, elicitation).
const URL_ELICITATION_REQUIRED: ErrorCode = ErrorCode(-32042);
/// Addresses of an error that are named.
const MOST: usize = 3;
/// Longest address, and longest text beside it, in bytes.
const LONGEST: usize = 2_048;
/// Longest id of a question, in bytes.
const LONGEST_ID: usize = 256;
/// Beginning of the state of a request that waits until its user has agreed. An outline of the question follows.
const STATE: &str = "gatewright: addresses to open\n";

/// The addresses that an error asks the user to open, each with what the app says about it.
pub(crate) fn addresses(error: &ErrorData) -> Vec<(&str, &Value)> {
    if error.code != URL_ELICITATION_REQUIRED {
        return Vec::new();
    }
    let asked = error.data.as_ref().and_then(|data| data.get("elicitations")?.as_array());
    let asked = asked.into_iter().flatten().filter_map(|one| Some((one.get("url")?.as_str()?, one)));
    asked.filter(|(url, _)| url.len() <= LONGEST && is_web_address(url)).take(MOST).collect()
}

/// The question that an error is; none if it asks for nothing.
pub(super) fn question(error: &ErrorData) -> Option<InputRequiredResult> {
    let question = |(at, (url, about)): (usize, (&str, &Value))| {
        let text = |name: &str| about[name].as_str().unwrap_or_default();
        let (message, id) = (text("message"), text("elicitationId"));
        let params = ElicitRequestParams::UrlElicitationParams {
            meta: None,
            message: message[..message.floor_char_boundary(LONGEST)].to_owned(),
            url: url.to_owned(),
            elicitation_id: if id.len() <= LONGEST_ID { id.to_owned() } else { String::new() },
        };
        (format!("address_{}", at + 1), InputRequest::Elicitation(ElicitRequest::new(params)))
    };
    let requests: InputRequests = addresses(error).into_iter().enumerate().map(question).collect();
    let state = format!("{STATE}{}", outline(&requests));
    (!requests.is_empty()).then(|| InputRequiredResult::new(Some(requests), Some(state)))
}

/// Returns `true` if `state` is that of a request whose user was asked to open addresses.
///
/// # Errors
/// The user did not agree.
pub(super) fn are_opened<'r>(
    state: Option<&str>,
    responses: impl IntoIterator<Item = &'r Value>,
) -> Result<bool, Unasked> {
    let Some(asks) = state.and_then(|state| state.strip_prefix(STATE)) else { return Ok(false) };
    match responses.into_iter().all(|response| response["action"] == "accept") {
        true => Ok(true),
        false => Err(Unasked::new(asks, CannotAsk::Declined)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asking(elicitations: Value) -> ErrorData {
        let data = json!({"elicitations": elicitations});
        ErrorData::new(URL_ELICITATION_REQUIRED, "sign in", Some(data))
    }

    #[test]
    fn only_few_short_addresses_of_pages_are_asked_for() {
        let bad = ["javascript:alert(1)".to_owned(), format!("https://a.example/{}", "a".repeat(LONGEST))];
        let urls = bad.into_iter().chain((0..9).map(|n| format!("https://b.example/{n}")));
        let long = "é".repeat(LONGEST);
        let one = |url| json!({"url": url, "message": long, "elicitationId": long});
        let asks = question(&asking(urls.map(one).collect())).unwrap();
        let requests = asks.input_requests.unwrap();
        assert_eq!(requests.len(), MOST);
        let first = json!(requests["address_1"]);
        assert_eq!(first["params"]["url"], "https://b.example/0");
        assert_eq!(first["params"]["message"].as_str().unwrap().len(), LONGEST);
        assert_ne!(first["params"]["elicitationId"], json!(long));
        for nothing in [asking(json!([])), asking(json!("x")), ErrorData::internal_error("x", None)] {
            assert!(question(&nothing).is_none());
        }
    }

    #[test]
    fn a_request_is_made_again_if_the_user_agreed_to_everything() {
        let state = question(&asking(json!([{"url": "https://a.example"}]))).unwrap().request_state;
        let (yes, no) = (json!({"action": "accept"}), json!({"action": "decline"}));
        assert_eq!(are_opened(state.as_deref(), [&yes, &yes]), Ok(true));
        let declined = are_opened(state.as_deref(), [&yes, &no]).unwrap_err();
        assert!(declined.to_string().contains("https://a.example"), "{declined}");
        assert_eq!(are_opened(Some("an app's own"), [&no]), Ok(false));
    }
}
