//! The expectations of a suite: the matchers under the contract's names, and what their arguments are.

use serde_json::{Value, json};

use crate::{ClientError, Mismatch, RpcResponse, Subject, matchers};

/// What an expectation takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Argument {
    Nothing,
    Text,
    OptionalText,
    Code,
    OptionalCode,
    Count,
    Json,
}

impl Argument {
    /// What is wrong with a value as this argument. A text with variables may become anything.
    pub(super) fn check(self, value: &Value, filled: bool) -> Result<(), &'static str> {
        if !filled && value.as_str().is_some_and(|text| text.contains("${")) {
            return Ok(());
        }
        let plain = value.is_string() || value.is_number() || value.is_boolean();
        match self {
            Self::Nothing if !value.is_null() => Err("takes no argument"),
            Self::Text if !plain => Err("takes a text"),
            Self::OptionalText if !plain && !value.is_null() => Err("takes a text, or nothing"),
            Self::Code if !value.is_i64() => Err("takes a whole number, such as -32602"),
            Self::OptionalCode if !value.is_i64() && !value.is_null() => {
                Err("takes a whole number, such as -32602, or nothing")
            }
            Self::Count if !value.is_u64() => Err("takes a whole number of 0 or more"),
            _ => Ok(()),
        }
    }

    pub(super) fn schema(self, about: &str) -> Value {
        match self {
            Self::Nothing => json!({"type": "null", "description": about}),
            Self::Text => json!({"type": ["string", "number", "boolean"], "description": about}),
            Self::OptionalText => {
                json!({"type": ["string", "number", "boolean", "null"], "description": about})
            }
            Self::Code => json!({"type": ["integer", "string"], "description": about}),
            Self::OptionalCode => json!({"type": ["integer", "string", "null"], "description": about}),
            Self::Count => json!({"type": ["integer", "string"], "minimum": 0, "description": about}),
            Self::Json => json!({"description": about}),
        }
    }
}

type Check = fn(&Subject<'_>, &Value) -> Result<(), Mismatch>;

/// One expectation.
pub(super) struct Known {
    /// The contract's name.
    pub(super) name: &'static str,
    pub(super) argument: Argument,
    pub(super) about: &'static str,
    pub(super) check: Check,
}

impl Known {
    /// Whether it expects a failure, `negated` or not.
    pub(super) fn is_about_failure(&self, negated: bool) -> bool {
        match self.name {
            "toBeError" | "toHaveError" | "toHaveErrorCode" | "toBeRefused" => !negated,
            "toBeSuccessful" => negated,
            _ => false,
        }
    }
}

macro_rules! expectations {
    ($($name:literal $argument:ident $about:literal => $check:expr;)+) => {
        &[$(Known { name: $name, argument: Argument::$argument, about: $about, check: $check }),+]
    };
}

/// Every expectation.
pub(super) const EXPECTATIONS: &[Known] = expectations! {
    "toContainTool" Text "The list holds a tool of this name." => |s, v| matchers::contains_tool(s, &text(v));
    "toContainResource" Text "The list holds a resource of this URI." => |s, v| matchers::contains_resource(s, &text(v));
    "toContainResourceTemplate" Text "The list holds this resource template." =>
        |s, v| matchers::contains_resource_template(s, &text(v));
    "toContainPrompt" Text "The list holds a prompt of this name." => |s, v| matchers::contains_prompt(s, &text(v));
    "toBeSuccessful" Nothing "The call succeeded." => |s, _| matchers::is_successful(s);
    "toBeError" OptionalCode "The call failed, with this JSON-RPC code when one is given." =>
        |s, v| matchers::is_error(s, v.as_i64());
    "toHaveTextContent" OptionalText "A text holds this; with no argument, there is a text." =>
        |s, v| matchers::has_text_content(s, (!v.is_null()).then(|| text(v)).as_deref());
    "toHaveImageContent" Nothing "There is an image." => |s, _| matchers::has_image_content(s);
    "toHaveResourceContent" Nothing "There is an embedded resource or a link to one." =>
        |s, _| matchers::has_resource_content(s);
    "toHaveMimeType" Text "A content has this media type." => |s, v| matchers::has_mime_type(s, &text(v));
    "toHaveMessages" Count "The prompt has this many messages." =>
        |s, v| matchers::has_messages(s, v.as_u64().and_then(|n| n.try_into().ok()).unwrap_or(usize::MAX));
    "toHaveRole" Text "A message has this role." => |s, v| matchers::has_role(s, &text(v));
    "toContainText" Text "A message, result or resource holds this text." =>
        |s, v| matchers::contains_text(s, &text(v));
    "toBeValidJsonRpc" Nothing "The answer is a JSON-RPC 2.0 answer." => |s, _| matchers::is_valid_json_rpc(s);
    "toHaveResult" Nothing "The answer has a result." => |s, _| matchers::has_result(s);
    "toHaveError" Nothing "The answer has an error." => |s, _| matchers::has_error(s);
    "toHaveErrorCode" Code "The answer has an error with this code." =>
        |s, v| matchers::has_error_code(s, v.as_i64().unwrap_or(i64::MAX));
    "toMatchJson" Json "The JSON holds all of this: objects may have more keys, arrays have the same length." =>
        |s, v| matchers::matches_json(s, v);
    "toBeRefused" OptionalCode "The server refused the client, with this HTTP status (401 or 403) when one is given." =>
        |s, v| is_refused(s, v.as_i64());
};

pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What a step gave when the server refused: the JSON-RPC error that came with it, if one did, and the refusal itself.
pub(super) fn refusal(status: u16, error: &ClientError) -> RpcResponse {
    let mut raw = json!({});
    if let Some(error) = error.rpc_error() {
        raw = RpcResponse::failure(&error).raw;
    }
    raw["refused"] = json!({"status": status, "error": error.to_string()});
    RpcResponse { raw }
}

fn is_refused(subject: &Subject<'_>, status: Option<i64>) -> Result<(), Mismatch> {
    let seen = match subject {
        Subject::RpcResponse(response) => response.raw["refused"]["status"].as_i64(),
        _ => None,
    };
    let expected = match status {
        Some(status) => format!("HTTP {status}"),
        None => "HTTP 401 or 403".to_owned(),
    };
    match seen {
        Some(seen) if status.is_none_or(|status| status == seen) => Ok(()),
        _ => Err(Mismatch::new(expected, subject.to_string())),
    }
}

/// An expectation as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Written {
    pub(super) name: String,
    pub(super) argument: Value,
    pub(super) negated: bool,
}

/// Reads an expectation: `name`, `name: argument`, or `not:` with one of these.
pub(super) fn read(value: &Value) -> Result<Written, String> {
    match value {
        Value::String(name) => Ok(Written { name: name.clone(), argument: Value::Null, negated: false }),
        Value::Object(one) if one.len() == 1 => {
            let (name, argument) = one.iter().next().ok_or("an expectation is empty")?;
            if name == "not" {
                let inner = read(argument)?;
                return Ok(Written { negated: !inner.negated, ..inner });
            }
            Ok(Written { name: name.clone(), argument: argument.clone(), negated: false })
        }
        other => Err(format!("an expectation is a name or a name with an argument, not {other}")),
    }
}

/// Names are the same with and without underscores, in any case: `to_be_error`, `toBeError`.
pub(super) fn find(name: &str) -> Option<&'static Known> {
    let plain = |name: &str| name.replace('_', "").to_lowercase();
    let wanted = plain(name);
    EXPECTATIONS.iter().find(|one| plain(one.name) == wanted)
}
