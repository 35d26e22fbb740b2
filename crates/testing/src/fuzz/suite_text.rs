//! Suites that repeat findings.

use std::{fmt::Write as _, time::Duration};

use serde_json::{Value, json};

use super::finding::{Finding, LIST, Promise};

/// A suite with a test for each finding, in YAML whose values are JSON. Each test fails as long as the server breaks the promise.
pub(super) fn of(section: Option<&Value>, seed: u64, findings: &[Finding], call_timeout: Duration) -> String {
    let mut text = format!(
        "# What `gatewright test fuzz --seed {seed}` found. Each test fails as long as the server does it.\n"
    );
    match section {
        Some(section) => drop(writeln!(text, "server: {section}")),
        None => text.push_str("server: {} # that of the suite\n"),
    }
    text.push_str("tests:\n");
    for (number, one) in findings.iter().enumerate() {
        let name = format!("{} {}: {}", number + 1, one.tool, name(one.promise));
        let _ = writeln!(text, "  # {}", one.problem.split_whitespace().collect::<Vec<_>>().join(" "));
        let _ = writeln!(text, "  - name: {}", json!(name));
        if one.promise == Promise::Answers {
            let _ = writeln!(text, "    timeoutMs: {}", call_timeout.as_millis());
        }
        text.push_str("    steps:\n");
        for step in steps(one) {
            let _ = writeln!(text, "      - {step}");
        }
    }
    text
}

const fn name(promise: Promise) -> &'static str {
    match promise {
        Promise::Alive => "the server goes on",
        Promise::Answers => "the call is answered",
        Promise::NoInternalError => "no internal error",
        Promise::Shape => "the answer has the right shape",
        Promise::NoTrace => "no stack trace",
        Promise::NoSecret => "no secret",
        Promise::RefusesInvalid => "invalid input is refused",
        Promise::RefusesUnknown => "unknown properties are refused",
        Promise::AcceptsValid => "valid input is accepted",
        Promise::ReadOnly => "nothing is changed",
    }
}

fn steps(finding: &Finding) -> Vec<Value> {
    if finding.tool == LIST {
        return vec![json!({"list": "tools"})];
    }
    let params = json!({"name": finding.tool, "arguments": finding.arguments});
    // A raw request may be answered by a result or by an error.
    let raw = |expect: Value| json!({"raw": {"method": "tools/call", "params": params}, "expect": expect});
    let call = |expect: Value| json!({"call": finding.tool, "with": finding.arguments, "expect": expect});
    match finding.promise {
        Promise::Alive => vec![raw(json!(["toBeValidJsonRpc"])), json!({"list": "tools"})],
        Promise::Answers | Promise::Shape => vec![raw(json!(["toBeValidJsonRpc"]))],
        Promise::NoInternalError => vec![raw(json!([{"not": {"toHaveErrorCode": -32603}}]))],
        Promise::NoTrace | Promise::NoSecret => {
            let leaked = finding.answer.lines().next().unwrap_or_default();
            vec![call(json!(["toBeError", {"not": {"toContainText": leaked}}]))]
        }
        Promise::RefusesInvalid | Promise::RefusesUnknown => vec![call(json!(["toBeError"]))],
        Promise::AcceptsValid => vec![call(json!(["toBeSuccessful"]))],
        Promise::ReadOnly => vec![raw(json!(["toBeValidJsonRpc"])), json!({"list": "tools"})],
    }
}
