//! AgentScript code for each intent.

use gatewright_core::UsageExample;
use serde_json::Value;

use super::intent::Intent;

/// Examples of one tool, plainest first. `caption` says what a call does.
pub(super) fn of(intent: Intent, name: &str, caption: &str, arguments: &Value) -> Vec<UsageExample> {
    let tool = literal(&name.into());
    let input = literal(arguments);
    let plain = |variable: &str| {
        let code = format!("const {variable} = await callTool({tool}, {input});\nreturn {variable};");
        example(caption.to_owned(), code)
    };
    let guarded = || {
        let code = format!(
            "const {{ success, data, error }} = await callTool({tool}, {input}, {{ throwOnError: false }});\n\
             return success ? data : {{ failed: error.code, why: error.message }};"
        );
        example(format!("{caption}; go on when it fails"), code)
    };
    match intent {
        Intent::List => vec![
            plain("page"),
            example(
                format!("{caption}; return only what is needed"),
                format!(
                    "const page = await callTool({tool}, {input});\n\
                     const rows = Array.isArray(page) ? page : Object.values(page ?? {{}}).find(Array.isArray) ?? [];\n\
                     return {{ count: rows.length, first: rows[0] ?? null }};"
                ),
            ),
        ],
        Intent::Search => vec![plain("matches"), guarded()],
        Intent::Get => vec![
            plain("item"),
            guarded(),
            example(
                format!("{caption}; several at once"),
                format!(
                    "const inputs = [{input}];\nreturn await __safe_parallel(inputs.map((input) => () => callTool({tool}, input)));"
                ),
            ),
        ],
        Intent::Create => vec![plain("created"), guarded()],
        Intent::Update => vec![plain("updated"), guarded()],
        Intent::Delete => vec![plain("removed"), guarded()],
    }
}

fn example(description: String, code: String) -> UsageExample {
    UsageExample { description, code }
}

/// JSON is JavaScript: a literal that reads well on one line, wrapped when long. Characters that scripts may not hold, such as
/// invisible ones, are escaped.
fn literal(value: &Value) -> String {
    const LONGEST: usize = 100;
    let line = value.to_string();
    let text = if line.len() <= LONGEST { line } else { serde_json::to_string_pretty(value).unwrap_or(line) };
    if text.is_ascii() {
        return text;
    }
    let mut units = [0; 2];
    text.chars().fold(String::with_capacity(text.len()), |mut text, c| {
        match c.is_ascii() || c.is_alphanumeric() {
            true => text.push(c),
            false => {
                c.encode_utf16(&mut units).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}")))
            }
        }
        text
    })
}
