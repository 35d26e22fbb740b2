//! AgentScript code for each intent.

use gatewright_core::UsageExample;
use serde_json::Value;

use super::intent::Intent;

/// Examples of one tool, plainest first.
pub(super) fn of(intent: Intent, name: &str, arguments: &Value) -> Vec<UsageExample> {
    let tool = quoted(name);
    let input = literal(arguments);
    let call = format!("callTool({tool}, {input})");
    let plain = |description: &str, variable: &str| {
        example(description, format!("const {variable} = await {call};\nreturn {variable};"))
    };
    let guarded = |description: &str| {
        example(
            description,
            format!(
                "const {{ success, data, error }} = await callTool({tool}, {input}, {{ throwOnError: false }});\n\
                 return success ? data : {{ failed: error.code, why: error.message }};"
            ),
        )
    };
    match intent {
        Intent::List => vec![
            plain("List what there is", "page"),
            example(
                "Return only what is needed of a list",
                format!(
                    "const page = await {call};\n\
                     const rows = Array.isArray(page) ? page : Object.values(page).find(Array.isArray) ?? [];\n\
                     return {{ count: rows.length, first: rows[0] ?? null }};"
                ),
            ),
        ],
        Intent::Search => vec![
            plain("Search, and return the matches", "matches"),
            guarded("Search without failing the plan when the search fails"),
        ],
        Intent::Get => vec![
            plain("Read one", "item"),
            guarded("Read one that may not exist"),
            example(
                "Read several at once",
                format!(
                    "const inputs = [{input}];\nreturn await __safe_parallel(inputs.map((input) => () => callTool({tool}, input)));"
                ),
            ),
        ],
        Intent::Create => vec![
            plain("Create one, and return it", "created"),
            guarded("Create one, and tell why when it is refused"),
        ],
        Intent::Update => vec![
            plain("Change one, and return its new state", "updated"),
            guarded("Change one that may not exist"),
        ],
        Intent::Delete => {
            vec![plain("Remove one", "removed"), guarded("Remove one that may be gone already")]
        }
    }
}

fn example(description: &str, code: String) -> UsageExample {
    UsageExample { description: description.to_owned(), code }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// JSON is JavaScript: a literal that reads well on one line, wrapped when long.
fn literal(value: &Value) -> String {
    const LONGEST: usize = 100;
    let line = value.to_string();
    if line.len() <= LONGEST { line } else { serde_json::to_string_pretty(value).unwrap_or(line) }
}
