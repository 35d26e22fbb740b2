//! The form that asks for an approval, and the answer to it.

use rmcp::model::{InputRequests, JsonObject};
use serde_json::{Value, json};

use super::{ApprovalDuration, ApprovalRecord, duration::call};

/// Name of the question.
pub(super) const KEY: &str = "approval";
/// Arguments that are shown.
const MOST_LINES: usize = 20;
/// Longest name of an argument, and longest value that is shown, in characters.
const LONGEST_NAME: usize = 60;
const LONGEST_VALUE: usize = 200;
/// Longest name of an object that is shown, in characters.
const LONGEST_OBJECT: usize = 200;
/// Longest reason that is shown, in characters.
const LONGEST_REASON: usize = 500;

/// The decision of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    Approved(ApprovalDuration),
    Denied,
}

/// The question for the approval that `record` describes.
pub(super) fn ask(record: &ApprovalRecord) -> InputRequests {
    let object = &record.object;
    let name = shown(object.name(), LONGEST_OBJECT);
    let mut message = format!("Approve {} `{name}`?\n{}", object.request(), record.reason);
    if let Some(place) = record.place() {
        message.push_str(&format!("\nIt is {place}."));
    }
    match record.arguments.is_empty() {
        true if object.takes_arguments() => message.push_str("\nIt has no arguments."),
        true => {}
        false => {
            message.push_str("\nArguments:");
            record.arguments.iter().for_each(|line| {
                message.push_str("\n  ");
                message.push_str(line);
            });
        }
    }
    let title = format!("Approve this {}", call(object));
    let mut properties = json!({"approve": {"type": "boolean", "title": title}});
    let durations: Vec<String> = record.durations().iter().map(|duration| duration.label(object)).collect();
    if durations.len() > 1 {
        properties["for"] = json!({"type": "string", "title": "Approve for", "enum": durations});
    }
    let request = json!({KEY: {"method": "elicitation/create", "params": {"mode": "form", "message": message,
        "requestedSchema": {"type": "object", "properties": properties, "required": ["approve"]}}}});
    serde_json::from_value(request).expect("the form is as MCP has it")
}

/// The decision that the answer to the form is. Anything but an explicit yes is a no.
pub(super) fn reply(response: &Value) -> Reply {
    let content = &response["content"];
    if response["action"] != "accept" || content["approve"] != true {
        return Reply::Denied;
    }
    let asked = content["for"].as_str().unwrap_or_default();
    Reply::Approved(ApprovalDuration::labelled(asked))
}

/// Arguments as people read them: one line each, of bounded length.
pub(super) fn lines(arguments: &JsonObject) -> Vec<String> {
    let mut lines: Vec<String> = arguments
        .iter()
        .take(MOST_LINES)
        .map(|(name, value)| format!("{}: {}", shown_name(name), value_line(value)))
        .collect();
    if arguments.len() > MOST_LINES {
        lines.push(format!("and {} more arguments, which are not shown", arguments.len() - MOST_LINES));
    }
    lines
}

/// A reason of bounded length, on one line.
pub(super) fn reason(reason: &str) -> String {
    shown(reason, LONGEST_REASON)
}

/// The name of an argument, in quotes unless it could not be anything else.
fn shown_name(name: &str) -> String {
    let is_plain =
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$'));
    let quoted = if is_plain { name.to_owned() } else { Value::from(name).to_string() };
    shown(&quoted, LONGEST_NAME)
}

fn value_line(value: &Value) -> String {
    shown(&value.to_string(), LONGEST_VALUE)
}

/// The beginning of a text, with characters that are not shown as they are written out. A text that was cut says so.
fn shown(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut chars = text.chars();
    for c in chars.by_ref().take(most) {
        match is_hidden(c) {
            true => line.extend(c.escape_unicode()),
            false => line.push(c),
        }
    }
    let more = chars.count();
    if more > 0 {
        line.push_str(&format!("… (shortened: {} characters)", most + more));
    }
    line
}

/// Returns `true` for characters that break a line, change its direction, are blank or invisible: those that may be ignored where they
/// cannot be shown (Unicode, `Default_Ignorable_Code_Point`) and all white space but the ordinary one among them.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_on_one_line_each_and_what_is_cut_says_so() {
        let long = "x".repeat(1_000);
        let arguments =
            json!({"to": "ann\nApprove: yes", "a\u{202e}b": {"n": 5}, "text": long, "none": null});
        let lines = lines(arguments.as_object().unwrap());
        assert_eq!(lines[0], r#"to: "ann\nApprove: yes""#);
        assert_eq!(lines[1], r#""a\u{202e}b": {"n":5}"#);
        assert!(lines[2].ends_with("x… (shortened: 1002 characters)"), "{}", lines[2]);
        assert_eq!(lines[3], "none: null");
        assert!(lines.iter().all(|line| line.chars().count() < 400 && !line.contains(is_hidden)));
        for (name, value, line) in [
            ("k: 1, amount", json!("x"), r#""k: 1, amount": "x""#),
            ("", json!(1), r#""": 1"#),
            ("größe", json!("a\u{2800}\u{a0}b c\u{fe0f}"), r#"größe: "a\u{2800}\u{a0}b c\u{fe0f}""#),
        ] {
            assert_eq!(super::lines(&JsonObject::from_iter([(name.to_owned(), value)])), [line]);
        }
        let many: JsonObject = (0..100).map(|n| (format!("a{n}"), json!(n))).collect();
        let lines = super::lines(&many);
        assert_eq!((lines.len(), &*lines[20]), (21, "and 80 more arguments, which are not shown"));
    }

    #[test]
    fn only_an_explicit_yes_approves() {
        let approved = json!({"action": "accept", "content": {"approve": true}});
        assert_eq!(reply(&approved), Reply::Approved(ApprovalDuration::Once));
        let hour = json!({"action": "accept", "content": {"approve": true, "for": "this tool for an hour"}});
        assert_eq!(reply(&hour), Reply::Approved(ApprovalDuration::Hour));
        for other in [
            json!({"action": "accept"}),
            json!({"action": "accept", "content": {"approve": false}}),
            json!({"action": "accept", "content": {"approve": "true"}}),
            json!({"action": "decline", "content": {"approve": true}}),
            json!({"action": "cancel"}),
            json!(null),
            json!(true),
        ] {
            assert_eq!(reply(&other), Reply::Denied, "{other}");
        }
    }
}
