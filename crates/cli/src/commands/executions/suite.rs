//! A test suite of a run: the script, its calls as answers of mocked servers, and the expected result.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::Context as _;
use gatewright_agentscript::HostFunction;
use gatewright_codecall::{RecordedCall, RecordedRun, Verdict, WorkerConfig};
use gatewright_core::read_json;
use serde_json::{Map, Value, json};

use crate::exit::BadConfig;

/// Answers of mocked tools, by app and tool.
type Mocks = BTreeMap<String, BTreeMap<String, Vec<Value>>>;

/// The text of the suite.
///
/// # Errors
/// The run cannot be a test, or a replay shows that the test would not pass.
pub async fn of(run: &RecordedRun, workers: &WorkerConfig) -> anyhow::Result<String> {
    let refused = |why: &str| BadConfig(format!("this execution cannot become a suite: {why}"));
    if !run.has_ended() {
        return Err(refused("it has not ended").into());
    }
    if run.is_rehearsal() {
        return Err(refused("it is a rehearsal, whose answers are partly invented").into());
    }
    let mocks = mocks(&run.calls()).map_err(|why| refused(&why))?;
    let replayed = run.replay(workers).await.context("no worker for scripts can be started")?;
    match replayed.verdict {
        Verdict::Identical => {}
        Verdict::IdenticalCalls(why) | Verdict::Differs(why) => return Err(refused(&why).into()),
        _ => return Err(refused("its replay has an unknown outcome").into()),
    }
    if !run.is_the_same_at_another_time(workers).await.context("no worker for scripts can be started")? {
        let why =
            "its calls or its result depend on the time or on random numbers; pass such values in `context`";
        return Err(refused(why).into());
    }
    Ok(written(run, &mocks, &replayed.body))
}

/// The answers to the calls.
fn mocks(calls: &[RecordedCall<'_>]) -> Result<Mocks, String> {
    let mut mocks = Mocks::new();
    for call in calls {
        if call.function == HostFunction::CallPages {
            return Err(format!(
                "it collects the pages of `{}`, and only single calls can be mocked",
                call.name
            ));
        }
        if call.function != HostFunction::CallTool {
            return Err(format!("it calls `{}`, and only calls of tools can be mocked", call.name));
        }
        if call.has_blocks {
            return Err(format!("an answer of `{}` has images or resources", call.name));
        }
        let Some(answer) = call.answer else {
            return Err(format!("a call of `{}` has no answer", call.name));
        };
        let Some((app, tool)) = call.name.split_once(':') else {
            return Err(format!("it calls `{}` without the name of its app; use `app:tool`", call.name));
        };
        let input: Value = read_json(call.input.get()).unwrap_or_default();
        let mut mock = Map::from_iter([("with".to_owned(), input)]);
        match answer {
            Ok(value) => {
                let value = read_json(value.get()).unwrap_or_default();
                mock.insert("value".to_owned(), answered(value));
            }
            Err(failure) => {
                let mut error = json!({"code": failure.code, "message": failure.message});
                if let Some(seconds) = failure.retry_after_seconds {
                    error["retryAfterSeconds"] = seconds.into();
                }
                mock.insert("error".to_owned(), error);
            }
        }
        mock.extend([("times".to_owned(), 1.into()), ("required".to_owned(), true.into())]);
        mocks
            .entry(app.to_owned())
            .or_default()
            .entry(tool.to_owned())
            .or_default()
            .push(literal(Value::Object(mock)));
    }
    Ok(mocks)
}

/// A value as a tool answers with it: an object with `result` alone would be taken for that member.
fn answered(value: Value) -> Value {
    match &value {
        Value::Object(members) if members.len() == 1 && members.contains_key("result") => {
            json!({"result": value})
        }
        _ => value,
    }
}

/// Texts without variables: `${` in them is no name.
fn literal(value: Value) -> Value {
    match value {
        Value::String(text) => text.replace("${", "$${").into(),
        Value::Array(items) => items.into_iter().map(literal).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (name, literal(value))).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}

fn written(run: &RecordedRun, mocks: &Mocks, body: &Value) -> String {
    let head = run.head();
    let title = head.about.title.as_deref().filter(|title| !title.trim().is_empty()).unwrap_or("the script");
    let apps: Map<String, Value> =
        mocks.keys().map(|app| (app.clone(), json!({"url": format!("${{upstreams.{app}}}")}))).collect();
    let mut vm = run.vm();
    // Time is no part of the test.
    vm["timeoutMs"] = 30_000.into();
    let config = json!({"apps": apps, "codecall": {"vm": vm, "result": {"maxBytes": "off"}}});
    let mut text = format!(
        "# Made of {} by `gatewright executions export`. Run it with `gatewright test`.\n\
         name: {}\n\
         server:\n  command: gatewright\n  args: [serve, --config, \"{{config}}\", --port, \"{{port}}\"]\n  readyPath: /readyz\n  config: {config}\n",
        head.id,
        literal(json!(title)),
    );
    if !mocks.is_empty() {
        text.push_str("upstreams:\n");
    }
    for (app, tools) in mocks {
        let _ = writeln!(text, "  {}:\n    tools:", json!(app));
        for (tool, answers) in tools {
            let _ = writeln!(text, "      {}:\n        answers:", json!(tool));
            for answer in answers {
                let _ = writeln!(text, "          - {answer}");
            }
        }
    }
    let _ = write!(
        text,
        "tests:\n  - name: {}\n    steps:\n      - call: codecall:execute\n        with:\n",
        json!("gives the recorded result")
    );
    if let Some(context) = run.context() {
        let _ = writeln!(text, "          context: {}", literal(context));
    }
    if let Some(allowed) = run.allowed_tools() {
        let _ = writeln!(text, "          allowedTools: {}", literal(json!(allowed)));
    }
    let _ = writeln!(text, "          script: {}", block(&run.script().replace("${", "$${"), 12));
    let _ = writeln!(text, "        expect: {}", literal(expected(body)));
    text
}

/// Expectations of the reply `body`.
fn expected(body: &Value) -> Value {
    let mut structured = Map::new();
    for name in ["status", "result", "logs"] {
        if let Some(value) = body.get(name) {
            structured.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(code) = body.pointer("/error/code") {
        structured.insert("error".to_owned(), json!({"code": code}));
    }
    let matches = json!({"toMatchJson": structured});
    if body["status"] == "ok" { json!(["toBeSuccessful", matches]) } else { json!(["toBeError", matches]) }
}

/// A text as a literal block of YAML where that keeps it as it is, else in quotes.
fn block(text: &str, indent: usize) -> String {
    let is_plain = |one: char| {
        one == '\n'
            || one == '\t'
            || !(one.is_control() || one == '\u{feff}' || one == '\u{2028}' || one == '\u{2029}')
    };
    if text.starts_with([' ', '\n', '\t']) || text.is_empty() || !text.chars().all(is_plain) {
        return json!(text).to_string();
    }
    let lines = text.trim_end_matches('\n');
    let end = match text.len() - lines.len() {
        0 => "|-",
        1 => "|",
        _ => "|+",
    };
    let mut block = end.to_owned();
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        block.push('\n');
        if !line.is_empty() {
            block.extend(std::iter::repeat_n(' ', indent));
            block.push_str(line);
        }
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_is_read_back_from_the_suite_as_it_is() {
        for script in [
            "return 1",
            "return 1\n",
            "a\n\n\n",
            "  indented\nb",
            "\nx",
            "",
            "a\n   b\n\n\tc: 'd' # e",
            "x\r\ny",
            "'\u{2028}'",
            "\u{7}",
            "`${a} $${b}`",
            "- a\n- b",
            "a   \nb",
        ] {
            let text = format!("  a: 1\n  script: {}\n  b: 2\n", block(script, 6));
            let read: Value = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((&read["script"], &read["b"]), (&json!(script), &json!(2)), "{text}");
        }
    }
}
