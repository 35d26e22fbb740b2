//! Kinds of questions: the capability that a client needs for each, and the types that stand for them on the wire.

use rmcp::model::{
    ClientCapabilities, ClientResult, ElicitRequestParams, InputRequest, InputRequests, ServerRequest,
};
use serde_json::Value;

use super::CannotAsk;

/// Questions that an outline names; more are counted.
const MOST_OUTLINED: usize = 5;
/// Longest text of a question in an outline, in characters.
const LONGEST_TEXT: usize = 300;
/// Longest address in an outline, in bytes. Part of one is of no use.
const LONGEST_URL: usize = 2_000;

/// Checks that a client with the capabilities `has` can answer all of `requests`.
///
/// # Errors
/// The first capability that is missing, or an address that is not one of the web.
pub fn can_answer(requests: &InputRequests, has: &ClientCapabilities) -> Result<(), CannotAsk> {
    requests.values().try_for_each(|request| may_ask(request, has))
}

/// The same for one question.
fn may_ask(request: &InputRequest, has: &ClientCapabilities) -> Result<(), CannotAsk> {
    leads_to_web(request)?;
    missing(request, has).map_or(Ok(()), |capability| Err(CannotAsk::Capability(capability)))
}

/// Checks that a question sends the user to no address but one of the web.
pub(crate) fn leads_to_web(request: &InputRequest) -> Result<(), CannotAsk> {
    match request {
        InputRequest::Elicitation(elicit) => match &elicit.params {
            ElicitRequestParams::UrlElicitationParams { url, .. } if !is_web_address(url) => {
                Err(CannotAsk::Address)
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Returns `true` for an address of https or http: with any other a client may run a script (`javascript:`), read a file or start a program.
pub fn is_web_address(url: &str) -> bool {
    let is_of = |scheme: &str| url.get(..scheme.len()).is_some_and(|own| own.eq_ignore_ascii_case(scheme));
    (is_of("https://") || is_of("http://")) && !url.contains(|c: char| c.is_control() || c == ' ')
}

/// The capability that `request` needs and `has` lacks.
pub(crate) fn missing(request: &InputRequest, has: &ClientCapabilities) -> Option<&'static str> {
    match request {
        InputRequest::Elicitation(elicit) => {
            let Some(has) = &has.elicitation else { return Some("elicitation") };
            match &elicit.params {
                ElicitRequestParams::UrlElicitationParams { .. } => {
                    has.url.is_none().then_some("elicitation.url")
                }
                // The capability without members is that for forms.
                _ => (has.form.is_none() && has.url.is_some()).then_some("elicitation.form"),
            }
        }
        InputRequest::CreateMessage(sampling) => match &has.sampling {
            None => Some("sampling"),
            Some(has) => (sampling.params.tools.is_some() && has.tools.is_none()).then_some("sampling.tools"),
        },
        InputRequest::ListRoots(_) => has.roots.is_none().then_some("roots"),
        // Unknown to whoever wrote this.
        _ => Some("unknown"),
    }
}

/// Returns `true` if a client with these capabilities can answer questions of some kind.
pub(crate) fn answers_any(has: &ClientCapabilities) -> bool {
    has.elicitation.is_some() || has.sampling.is_some() || has.roots.is_some()
}

/// The capabilities of `has` that are about questions, without extensions and experiments.
pub fn question_capabilities(has: ClientCapabilities) -> ClientCapabilities {
    let mut only = ClientCapabilities::default();
    (only.elicitation, only.sampling, only.roots) = (has.elicitation, has.sampling, has.roots);
    only
}

/// Declares every kind of question in `capabilities`: a run waits until somebody can answer.
pub fn declare_questions(capabilities: &mut ClientCapabilities) {
    let elicitation = capabilities.elicitation.get_or_insert_default();
    elicitation.form.get_or_insert_default();
    elicitation.url.get_or_insert_default();
    capabilities.sampling.get_or_insert_default();
    capabilities.roots.get_or_insert_default();
}

/// The question that a request of a server is; none for other requests.
pub(crate) fn question_of(request: ServerRequest) -> Option<InputRequest> {
    match request {
        ServerRequest::CreateMessageRequest(request) => Some(InputRequest::CreateMessage(request)),
        ServerRequest::ElicitRequest(request) => Some(InputRequest::Elicitation(request)),
        ServerRequest::ListRootsRequest(request) => Some(InputRequest::ListRoots(request)),
        _ => None,
    }
}

/// The request that asks a client of the era with sessions.
pub(crate) fn request_of(question: InputRequest) -> Option<ServerRequest> {
    Some(match question {
        InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
        InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
        InputRequest::Elicitation(mut request) => {
            // MCP 2025-11-25 requires the id that 2026-07-28 does not have any more.
            if let ElicitRequestParams::UrlElicitationParams { elicitation_id, .. } = &mut request.params
                && elicitation_id.is_empty()
            {
                *elicitation_id = random_id();
            }
            ServerRequest::ElicitRequest(request)
        }
        _ => return None,
    })
}

fn random_id() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system's random numbers");
    data_encoding::HEXLOWER.encode(&bytes)
}

/// The answer to `question` as a value of `inputResponses`.
pub(crate) fn response_of(question: &InputRequest, answer: ClientResult) -> Option<Value> {
    match (question, answer) {
        (InputRequest::CreateMessage(_), ClientResult::CreateMessageResult(result)) => {
            serde_json::to_value(result).ok()
        }
        (InputRequest::Elicitation(_), ClientResult::ElicitResult(result)) => {
            serde_json::to_value(result).ok()
        }
        (InputRequest::ListRoots(_), ClientResult::ListRootsResult(result)) => {
            serde_json::to_value(result).ok()
        }
        _ => None,
    }
}

/// The answer to `question` that a value of `inputResponses` is.
pub(crate) fn answer_of(question: &InputRequest, response: &Value) -> Option<ClientResult> {
    use serde::Deserialize as _;
    match question {
        InputRequest::CreateMessage(_) => Box::<rmcp::model::CreateMessageResult>::deserialize(response)
            .ok()
            .map(ClientResult::CreateMessageResult),
        InputRequest::Elicitation(_) => {
            rmcp::model::ElicitResult::deserialize(response).ok().map(ClientResult::ElicitResult)
        }
        InputRequest::ListRoots(_) => {
            rmcp::model::ListRootsResult::deserialize(response).ok().map(ClientResult::ListRootsResult)
        }
        _ => None,
    }
}

/// One short printable line about `requests`, for people who cannot be asked otherwise.
pub fn outline(requests: &InputRequests) -> String {
    let texts: Vec<String> = requests.values().take(MOST_OUTLINED).map(outline_of).collect();
    let mut line = texts.join("; ");
    if requests.len() > MOST_OUTLINED {
        line.push_str(&format!("; and {} more", requests.len() - MOST_OUTLINED));
    }
    line
}

/// The same about one question.
pub(crate) fn outline_of(request: &InputRequest) -> String {
    match request {
        InputRequest::Elicitation(elicit) => match &elicit.params {
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                let is_shown = url.len() <= LONGEST_URL && is_web_address(url);
                let address = if is_shown { url } else { "an address that is not shown" };
                format!("to open {address} (\"{}\")", one_line(message))
            }
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let fields = requested_schema.properties.keys().take(MOST_OUTLINED);
                let fields: Vec<String> = fields.map(|field| one_line(field)).collect();
                format!("\"{}\" ({})", one_line(message), fields.join(", "))
            }
            _ => "a question of an unknown kind".to_owned(),
        },
        InputRequest::CreateMessage(_) => "a text of your model".to_owned(),
        InputRequest::ListRoots(_) => "your roots".to_owned(),
        _ => "a question of an unknown kind".to_owned(),
    }
}

/// The beginning of a stranger's text without characters that are not shown as they are: controls, and those that change its direction.
fn one_line(text: &str) -> String {
    let is_odd = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let mut chars = text.trim().chars();
    let mut line: String =
        chars.by_ref().take(LONGEST_TEXT).map(|c| if is_odd(c) { ' ' } else { c }).collect();
    if chars.next().is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn requests(of: Value) -> InputRequests {
        serde_json::from_value(of).unwrap()
    }

    fn form(message: &str) -> Value {
        json!({"method": "elicitation/create", "params": {"mode": "form", "message": message,
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}})
    }

    fn url(url: &str) -> Value {
        json!({"method": "elicitation/create", "params": {"mode": "url", "message": "Sign in", "url": url}})
    }

    fn sampling(more: Value) -> Value {
        let mut params = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 9});
        params.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        json!({"method": "sampling/createMessage", "params": params})
    }

    #[test]
    fn each_kind_of_question_needs_its_capability() {
        let roots = json!({"method": "roots/list", "params": {}});
        let tools = sampling(json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}));
        for (request, has, lacks) in [
            (form("?"), json!({}), Some("elicitation")),
            (form("?"), json!({"elicitation": {}}), None),
            (form("?"), json!({"elicitation": {"form": {}, "url": {}}}), None),
            (form("?"), json!({"elicitation": {"url": {}}}), Some("elicitation.form")),
            (url("https://a.example"), json!({"elicitation": {}}), Some("elicitation.url")),
            (url("https://a.example"), json!({"elicitation": {"url": {}}}), None),
            (sampling(json!({})), json!({"elicitation": {}}), Some("sampling")),
            (sampling(json!({})), json!({"sampling": {}}), None),
            (tools.clone(), json!({"sampling": {}}), Some("sampling.tools")),
            (tools, json!({"sampling": {"tools": {}}}), None),
            (roots.clone(), json!({}), Some("roots")),
            (roots, json!({"roots": {}}), None),
        ] {
            let has: ClientCapabilities = serde_json::from_value(has).unwrap();
            let checked = can_answer(&requests(json!({"a": request})), &has);
            let found = match checked {
                Ok(()) => None,
                Err(CannotAsk::Capability(found)) => Some(found),
                Err(other) => panic!("{other}"),
            };
            assert_eq!(found, lacks, "{request} {has:?}");
        }
    }

    #[test]
    fn users_are_sent_to_web_addresses_only() {
        let has: ClientCapabilities = serde_json::from_value(json!({"elicitation": {"url": {}}})).unwrap();
        for (address, may) in [
            ("https://a.example/login?x=1", true),
            ("http://127.0.0.1:8080/", true),
            ("HTTPS://A.EXAMPLE", true),
            ("javascript:alert(1)", false),
            ("data:text/html,<script>", false),
            ("file:///etc/passwd", false),
            ("vbscript:x", false),
            ("ms-msdt:/id", false),
            ("app.example://login", false),
            (" https://a.example", false),
            ("https:a.example", false),
            ("https://a.example/\u{0}\n", false),
            ("", false),
        ] {
            let checked = can_answer(&requests(json!({"a": url(address)})), &has);
            assert_eq!(checked, if may { Ok(()) } else { Err(CannotAsk::Address) }, "{address}");
            assert_eq!(
                outline(&requests(json!({"a": url(address)}))).contains("not shown"),
                !may,
                "{address}"
            );
        }
    }

    #[test]
    fn an_outline_is_short_and_of_one_line_and_an_address_is_whole_or_not_there() {
        let long = "https://a.example/".to_owned() + &"x".repeat(3_000);
        let mut many: serde_json::Map<String, Value> =
            (0..9).map(|n| (format!("q{n}"), form(&"w\n\u{202e}".repeat(5_000)))).collect();
        many.insert("a".to_owned(), url("https://a.example/login?x=1"));
        many.insert("b".to_owned(), url(&long));
        let line = outline(&requests(Value::Object(many)));
        assert!(line.contains("https://a.example/login?x=1 (\"Sign in\")"), "{line}");
        assert!(!line.contains("xxx") && line.ends_with("and 6 more"), "{line}");
        assert!(line.chars().count() < 5 * 400 && !line.contains(['\n', '\u{202e}']), "{line}");
    }

    #[test]
    fn the_question_for_an_address_gets_the_id_that_older_clients_need() {
        let question = requests(json!({"a": url("https://a.example")})).remove("a").unwrap();
        let sent = serde_json::to_value(request_of(question).unwrap()).unwrap();
        assert_eq!(sent["params"]["elicitationId"].as_str().unwrap().len(), 32, "{sent}");
    }
}
