//! Runs a file of hostile and ordinary scripts (one JSON object a line) through the pool and prints a table by category.
//!
//! `cargo run --release --example attack_table -- FILE [--failures]`
//!
//! A line has `script`, `attack`, `accept` (outcomes that are fine), `value` (JSON text, for ordinary scripts), `config` (limits,
//! globals) and `tool_calls` (what the host answered, in order). The exit code is 1 when an attack landed outside its `accept`
//! or an ordinary script returned another value.

use std::{
    collections::BTreeMap,
    process::ExitCode,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use gatewright_agentscript::{
    Host, HostFuture, Limits, Outcome, PoolConfig, Preset, RunError, RunRequest, RunResult, ScriptPolicy,
    ToolAnswer, ToolCall, ToolFailure, WorkerPool,
};
use serde_json::{Value, value::RawValue};
use tokio_util::sync::CancellationToken;

/// Answers in the recorded order.
struct Recorded(Mutex<std::vec::IntoIter<Value>>);

impl Host for Recorded {
    fn call_tool(&self, _: ToolCall) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
        let next = self.0.lock().ok().and_then(|mut answers| answers.next());
        Box::pin(async move {
            let failure = |code: &str, message: String| ToolFailure {
                code: code.to_owned(),
                message,
                ..ToolFailure::default()
            };
            // The recorded host was not asked: its policy had refused the call.
            let Some(next) = next else {
                return Err(failure("ACCESS_DENIED", "the tool is not allowed".to_owned()));
            };
            match next["r"].as_str().map(str::to_owned).map(RawValue::from_string) {
                Some(Ok(answer)) => Ok(answer.into()),
                // The record holds the beginning of an answer that was too long for it: make it too long here.
                Some(Err(_)) if next["r"].as_str().is_some_and(|text| text.starts_with("\"a")) => {
                    let text = "a".repeat(usize::try_from(Limits::default().message_bytes).unwrap_or(0));
                    RawValue::from_string(format!("\"{text}\""))
                        .map(ToolAnswer::Value)
                        .map_err(|_| failure("TOOL_EXECUTION_ERROR", text))
                }
                _ => Err(failure("TOOL_EXECUTION_ERROR", next.to_string())),
            }
        })
    }

    fn get_tool(&self, _: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
        Box::pin(async {
            Err(ToolFailure {
                code: "TOOL_NOT_FOUND".to_owned(),
                message: "no such tool".to_owned(),
                ..ToolFailure::default()
            })
        })
    }
}

/// The body of `async function __ag_main() { … }`, the form some scripts are recorded in.
fn unwrapped(script: &str) -> &str {
    let trimmed = script.trim();
    trimmed
        .strip_prefix("async function __ag_main()")
        .and_then(|rest| rest.trim_start().strip_prefix('{'))
        .and_then(|rest| rest.strip_suffix('}'))
        .unwrap_or(script)
}

fn request(row: &Value) -> RunRequest {
    let config = &row["config"];
    // The levels of the other sandbox, and the preset that means the same here. Without a level only its narrowest validator looked
    // at the script.
    let preset = match config["level"].as_str() {
        Some("PERMISSIVE") => Preset::Experimental,
        Some("STANDARD") => Preset::Balanced,
        Some("SECURE") => Preset::Secure,
        _ => Preset::LockedDown,
    };
    let mut limits = Limits::preset(match preset {
        Preset::LockedDown => Preset::LockedDown,
        _ => Preset::Secure,
    });
    limits.timeout = Duration::from_secs(5);
    let number = |name: &str| config[name].as_u64().filter(|n| *n > 0);
    if let Some(timeout) = number("timeout") {
        limits.timeout = limits.timeout.min(Duration::from_millis(timeout));
    }
    limits.max_iterations = number("maxIterations").unwrap_or(10_000);
    limits.max_tool_calls = number("maxToolCalls").and_then(|n| u32::try_from(n).ok()).unwrap_or(100);
    limits.memory_bytes =
        number("memoryLimit").unwrap_or(limits.memory_bytes).clamp(4 * 1024 * 1024, limits.memory_bytes);
    if let Some(lines) = number("maxConsoleCalls").and_then(|n| u32::try_from(n).ok()) {
        limits.log_lines = limits.log_lines.min(lines);
    }
    limits.log_bytes =
        number("maxConsoleOutputBytes").map_or(limits.log_bytes, |bytes| bytes.min(limits.log_bytes));
    let mut source = String::new();
    let mut context = None;
    if let Some(globals) = config["globalValues"].as_str().filter(|text| *text != "{}")
        && let Ok(Value::Object(values)) = serde_json::from_str::<Value>(globals)
    {
        for name in values.keys() {
            source.push_str(&format!("const {name} = codecallContext.{name}; "));
        }
        context = RawValue::from_string(globals.to_owned()).ok();
    }
    source.push_str(unwrapped(row["script"].as_str().unwrap_or_default()));
    RunRequest { limits, context, policy: ScriptPolicy::new(preset), ..RunRequest::new(source) }
}

fn class(result: &RunResult) -> &'static str {
    match result {
        Ok(_) => "allowed",
        Err(RunError::SyntaxError { .. }) | Err(RunError::IllegalAccess { .. }) => "blocked",
        Err(RunError::Timeout { .. }) | Err(RunError::Worker(_)) => "limited",
        Err(RunError::RuntimeError { name, message, .. }) => {
            let limit =
                name.ends_with("LimitError") || name.starts_with("Result") || message.contains("stack");
            if limit { "limited" } else { "error" }
        }
        _ => "error",
    }
}

/// Describes the fault of this outcome, if it has one.
fn complaint(row: &Value, outcome: &Outcome) -> Option<String> {
    let got = match class(&outcome.result) {
        "error" | "limited" if row["config"].is_null() => "allowed",
        class => class,
    };
    let accepted = row["accept"].as_array().is_some_and(|accept| accept.iter().any(|a| a == got));
    let attack = row["attack"] == true;
    if !accepted {
        // An ordinary script that the other sandbox's narrower language refused may run here.
        let narrower = !attack && row["expected"] == "blocked" && got == "allowed";
        return (!narrower).then(|| format!("{got}, accepted {}: {:?}", row["accept"], outcome.result));
    }
    if let (Ok(value), Some(expected)) = (&outcome.result, row["value"].as_str())
        && !attack
    {
        let got: Value = serde_json::from_str(value.get()).unwrap_or_default();
        let expected: Value = serde_json::from_str(expected).unwrap_or_default();
        return (got != expected).then(|| format!("returned {got}, expected {expected}"));
    }
    None
}

#[derive(Default)]
struct Line {
    attacks: usize,
    ordinary: usize,
    by_class: BTreeMap<&'static str, usize>,
    wrong: usize,
    slowest: Duration,
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(path) = args.next() else {
        eprintln!("usage: attack_table FILE [--failures]");
        return ExitCode::from(2);
    };
    let show = args.next().is_some();
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("the file cannot be read");
        return ExitCode::from(2);
    };
    if std::env::args().nth(1).as_deref() == Some("worker") {
        return ExitCode::from(2);
    }
    let program = std::env::current_exe().ok().and_then(|exe| {
        let name = format!("agentscript-worker{}", std::env::consts::EXE_SUFFIX);
        Some(exe.parent()?.parent()?.join(name))
    });
    let Some(program) = program.filter(|program| program.exists()) else {
        eprintln!("build the worker program first: cargo build --bin agentscript-worker");
        return ExitCode::from(2);
    };
    let command = gatewright_agentscript::WorkerCommand { program, args: Vec::new() };
    let pool = match WorkerPool::new(PoolConfig::default().command(command)) {
        Ok(pool) => pool,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let mut table: BTreeMap<String, Line> = BTreeMap::new();
    for row in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let answers = row["tool_calls"].as_array().cloned().unwrap_or_default();
        let host = Arc::new(Recorded(Mutex::new(answers.into_iter())));
        let started = Instant::now();
        let outcome = pool.run(request(&row), host, CancellationToken::new()).await;
        let line = table.entry(row["category"].as_str().unwrap_or("?").to_owned()).or_default();
        *(if row["attack"] == true { &mut line.attacks } else { &mut line.ordinary }) += 1;
        *line.by_class.entry(class(&outcome.result)).or_default() += 1;
        let took = started.elapsed();
        line.slowest = line.slowest.max(took);
        if let Some(complaint) = complaint(&row, &outcome) {
            line.wrong += 1;
            if show {
                println!(
                    "{} {} {} ms: {complaint}\n{}\n",
                    row["id"],
                    row["category"],
                    took.as_millis(),
                    row["script"].as_str().unwrap_or("")
                );
            }
        }
    }
    pool.shutdown().await;
    println!("{:<24} attacks ordinary blocked limited error allowed wrong slowest", "category");
    let mut wrong = 0;
    for (category, line) in &table {
        let count = |class: &str| line.by_class.get(class).copied().unwrap_or(0);
        println!(
            "{category:<24} {:>7} {:>8} {:>7} {:>7} {:>5} {:>7} {:>5} {:>4} ms",
            line.attacks,
            line.ordinary,
            count("blocked"),
            count("limited"),
            count("error"),
            count("allowed"),
            line.wrong,
            line.slowest.as_millis()
        );
        wrong += line.wrong;
    }
    let total: usize = table.values().map(|line| line.attacks + line.ordinary).sum();
    println!("{total} scripts, {wrong} outside what is accepted");
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
