//! Results whose members fit several methods.
//!
//! `rmcp` takes the kind of a result from its members, and servers may add members of their own (MCP, basic: the kind follows from the
//! request). A result that has members of two kinds is [set apart](set_apart) before it is parsed, and [read](Asked::settle) once its
//! request is known.

use std::{borrow::Cow, collections::HashMap, fmt};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, CustomResult, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage, ServerResult,
};
use serde::{
    Deserialize,
    de::{Deserializer, IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Value, json};

/// The one member of a result that is set apart.
const SET_APART: &str = "gatewright/result";

/// A kind of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    CallTool,
    ListTools,
    GetPrompt,
    ListPrompts,
    ReadResource,
    ListResources,
    ListTemplates,
    Complete,
    /// Results whose members mean nothing.
    Empty,
    /// Results that no request of the gateway has.
    Other,
}

/// The members by which `rmcp` knows results, with their kinds.
const MEMBERS: [(&str, Kind); 13] = [
    ("content", Kind::CallTool),
    ("structuredContent", Kind::CallTool),
    ("isError", Kind::CallTool),
    ("tools", Kind::ListTools),
    ("messages", Kind::GetPrompt),
    ("prompts", Kind::ListPrompts),
    ("contents", Kind::ReadResource),
    ("resources", Kind::ListResources),
    ("resourceTemplates", Kind::ListTemplates),
    ("completion", Kind::Complete),
    ("action", Kind::Other),
    ("skills", Kind::Other),
    ("skill", Kind::Other),
];

fn kind_of(member: &str) -> Option<Kind> {
    MEMBERS.iter().find(|(name, _)| *name == member).map(|(_, kind)| *kind)
}

/// The kinds of results that an answer has members of.
#[derive(Debug, Default)]
struct Kinds(Vec<Kind>);

impl<'de> Deserialize<'de> for Kinds {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Kinds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a result")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Kinds, A::Error> {
                let mut kinds = Kinds::default();
                while let Some(Key(member)) = members.next_key()? {
                    let kind = kind_of(&member).filter(|kind| !kinds.0.contains(kind));
                    kinds.0.extend(kind);
                    members.next_value::<IgnoredAny>()?;
                }
                Ok(kinds)
            }
        }

        from.deserialize_map(Members)
    }
}

#[derive(Deserialize)]
struct Key<'m>(#[serde(borrow)] Cow<'m, str>);

/// The same answer with its result in one member, if the result has members of several kinds.
pub(crate) fn set_apart(json: &[u8]) -> Option<Value> {
    #[derive(Deserialize)]
    struct Answer {
        result: Kinds,
    }
    let answer: Answer = serde_json::from_slice(json).ok()?;
    if answer.result.0.len() < 2 {
        return None;
    }
    let mut answer: Value = serde_json::from_slice(json).ok()?;
    let result = answer["result"].take();
    answer["result"] = json!({SET_APART: result});
    Some(answer)
}

/// The kinds of results that open requests have.
#[derive(Debug, Default)]
pub(crate) struct Asked(HashMap<RequestId, Kind>);

impl Asked {
    /// Notes a request that leaves, and forgets one that is cancelled.
    pub(crate) fn sent(&mut self, message: &ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                let kind = match &request.request {
                    ClientRequest::CallToolRequest(_) => Kind::CallTool,
                    ClientRequest::ListToolsRequest(_) => Kind::ListTools,
                    ClientRequest::GetPromptRequest(_) => Kind::GetPrompt,
                    ClientRequest::ListPromptsRequest(_) => Kind::ListPrompts,
                    ClientRequest::ReadResourceRequest(_) => Kind::ReadResource,
                    ClientRequest::ListResourcesRequest(_) => Kind::ListResources,
                    ClientRequest::ListResourceTemplatesRequest(_) => Kind::ListTemplates,
                    ClientRequest::CompleteRequest(_) => Kind::Complete,
                    ClientRequest::PingRequest(_)
                    | ClientRequest::SetLevelRequest(_)
                    | ClientRequest::SubscribeRequest(_)
                    | ClientRequest::UnsubscribeRequest(_) => Kind::Empty,
                    ClientRequest::CustomRequest(custom) if custom.method == "tasks/result" => Kind::CallTool,
                    _ => return,
                };
                self.0.insert(request.id.clone(), kind);
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(request) = &cancelled.params.request_id
                {
                    self.0.remove(request);
                }
            }
            _ => {}
        }
    }

    /// Forgets the request that is answered. A result that was set apart becomes that of its request, without the members of other
    /// kinds.
    pub(crate) fn settle(&mut self, message: &mut ServerJsonRpcMessage) {
        let response = match message {
            JsonRpcMessage::Response(response) => response,
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.0.remove(id);
                }
                return;
            }
            _ => return,
        };
        let kind = self.0.remove(&response.id);
        if kind == Some(Kind::Empty) {
            response.result = ServerResult::empty(());
            return;
        }
        let ServerResult::CustomResult(CustomResult(Value::Object(wrapper))) = &mut response.result else {
            return;
        };
        let Some(Value::Object(mut members)) = wrapper.shift_remove(SET_APART) else { return };
        if let Some(kind) = kind {
            members.retain(|member, _| kind_of(member).is_none_or(|other| other == kind));
        }
        let members = Value::Object(members);
        response.result = serde_json::from_value(members.clone())
            .unwrap_or_else(|_| ServerResult::CustomResult(CustomResult(members)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str) -> ClientJsonRpcMessage {
        let params = match method {
            "tools/call" | "prompts/get" => json!({"name": "a"}),
            "resources/read" => json!({"uri": "a:b"}),
            "completion/complete" => {
                json!({"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "a", "value": ""}})
            }
            _ => json!({}),
        };
        serde_json::from_value(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            .unwrap()
    }

    #[test]
    fn a_result_with_members_of_other_kinds_is_that_of_its_request() {
        let all = json!({
            "content": [], "tools": [], "messages": [], "prompts": [], "contents": [], "resources": [],
            "resourceTemplates": [], "completion": {"values": []}, "action": "accept", "other": 1,
        });
        for (method, member) in [
            ("tools/call", "content"),
            ("tools/list", "tools"),
            ("prompts/get", "messages"),
            ("prompts/list", "prompts"),
            ("resources/read", "contents"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
            ("completion/complete", "completion"),
            ("tasks/result", "content"),
        ] {
            let text = json!({"jsonrpc": "2.0", "id": 1, "result": all}).to_string();
            let mut message = serde_json::from_value(set_apart(text.as_bytes()).unwrap()).unwrap();
            let mut asked = Asked::default();
            asked.sent(&request(method));
            asked.settle(&mut message);
            let read = serde_json::to_value(&message).unwrap();
            let names: Vec<&String> =
                read["result"].as_object().unwrap().keys().filter(|key| kind_of(key).is_some()).collect();
            assert_eq!(names, [member], "{method}: {read}");
            let JsonRpcMessage::Response(response) = message else { panic!("{read}") };
            assert!(!matches!(response.result, ServerResult::CustomResult(_)), "{method}");
            assert!(asked.0.is_empty());
        }
    }

    #[test]
    fn other_messages_stay_as_they_are() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"tools":[]},"isError":false}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[],"nextCursor":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":[]}"#,
            r#"{"jsonrpc":"2.0","method":"n","params":{"tools":[],"prompts":[]}}"#,
            "{",
        ] {
            assert!(set_apart(text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn requests_that_are_answered_or_cancelled_are_forgotten() {
        let mut asked = Asked::default();
        asked.sent(&request("tools/call"));
        let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "a"}});
        asked.settle(&mut serde_json::from_value(error).unwrap());
        assert!(asked.0.is_empty());
        asked.sent(&request("tools/call"));
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        asked.sent(&serde_json::from_value(cancelled).unwrap());
        assert!(asked.0.is_empty());
    }
}
