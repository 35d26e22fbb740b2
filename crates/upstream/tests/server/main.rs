//! A server over stdio, written by hand, that misbehaves on request. Used by the tests of this crate only.
//!
//! Flags: `--junk` prints lines that are not MCP; `--exit-at-once`; `--silent` answers nothing; `--tools N` lists N more
//! tools in pages of 100; `--bad-schema`; `--stay` outlives its input; `--discover` knows only the 2026-07-28 era;
//! `--pids FILE` starts a child of its own and writes both ids; `--parent FILE` runs the gateway's side of a `--pids`
//! server instead, until it is killed; `--tasks` lists tools that run as tasks; `--extra-members` adds members of other kinds of results
//! to each result; `--unannounced` announces no tasks; `--no-task-methods` knows no method for them; `--resources` lists a resource, and a
//! tool that announces its change; `--deaf-later FILE` answers no `resources/subscribe` any more once that made FILE.

mod tasks;

use std::{
    collections::HashMap,
    io::{BufRead as _, Write as _},
    time::Duration,
};

use gatewright_core::{App as _, AppHealth};
use gatewright_upstream::{UpstreamApp, UpstreamConfig};
use serde_json::{Value, json};
use tasks::Tasks;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    let value = |flag: &str| args.iter().skip_while(|arg| *arg != flag).nth(1).cloned();
    if let Some(file) = value("--parent") {
        return parent(&file);
    }
    if has("--exit-at-once") {
        eprintln!(
            "cannot open the database; key {}",
            std::env::vars().find(|v| v.0 == "KEY").unwrap_or_default().1
        );
        std::process::exit(3);
    }
    if let Some(file) = value("--pids") {
        let child = grandchild();
        let text = format!("{} {}", std::process::id(), child);
        std::fs::write(format!("{file}.part"), text).expect("the file can be written");
        std::fs::rename(format!("{file}.part"), file).expect("the file can be renamed");
    }
    if has("--junk") {
        println!("Server starting on stdio...\n\n[1, 2]\n{{\"almost\": json}}\n{{\"some\":\"object\"}}");
    }
    let mut server = Server {
        silent: has("--silent"),
        junk: has("--junk"),
        bad_schema: has("--bad-schema"),
        discover: has("--discover"),
        unannounced: has("--unannounced"),
        no_task_methods: has("--no-task-methods"),
        resources: has("--resources"),
        deaf_later: value("--deaf-later"),
        tasks: has("--tasks").then(Tasks::default),
        more: value("--tools").and_then(|count| count.parse().ok()).unwrap_or(0),
        ..Server::default()
    };
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = line.map_err(drop).and_then(|line| serde_json::from_str(&line).map_err(drop))
        else {
            break;
        };
        server.hear(&message);
    }
    while has("--stay") {
        std::thread::park();
    }
}

#[derive(Default)]
struct Server {
    silent: bool,
    junk: bool,
    bad_schema: bool,
    discover: bool,
    unannounced: bool,
    no_task_methods: bool,
    resources: bool,
    deaf_later: Option<String>,
    more: usize,
    tasks: Option<Tasks>,
    /// Open calls by the id of the question asked for them.
    asked: HashMap<String, Value>,
    /// Calls that ask more than one question, by their id.
    surveys: HashMap<String, Survey>,
    /// Questions asked so far.
    questions: usize,
    /// Answers to questions of calls that were over.
    strays: u64,
    cancelled: u64,
    changed: bool,
    level: Value,
    counted: u64,
}

/// A call that asks `at_once` questions as often as `rounds` says, each time until it has `enough` answers, and fails afterwards if it `fails`.
struct Survey {
    rounds: u64,
    at_once: u64,
    enough: u64,
    token: Value,
    answers: Vec<Value>,
    fails: bool,
}

/// Starts a process that nobody waits for, and gives its id. The gateway has to end it: that is what is tested.
fn grandchild() -> u32 {
    std::process::Command::new("sleep").arg("600").spawn().expect("sleep starts").id()
}

fn send(message: &Value) {
    let mut message = message.clone();
    if std::env::args().any(|arg| arg == "--extra-members")
        && let Some(result) = message.get_mut("result").and_then(Value::as_object_mut)
    {
        for member in ["tools", "messages", "prompts", "contents", "other"] {
            result.entry(member).or_insert_with(|| json!([]));
        }
    }
    let mut out = std::io::stdout().lock();
    // The other side may be gone.
    let _ = writeln!(out, "{message}");
    let _ = out.flush();
}

fn notify(method: &str, params: Value) {
    send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
}

fn text(text: impl std::fmt::Display) -> Value {
    json!({"content": [{"type": "text", "text": text.to_string()}]})
}

fn form(message: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({"mode": "form", "message": message, "requestedSchema": schema})
}

fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

impl Server {
    fn hear(&mut self, message: &Value) {
        let id = &message["id"];
        match message["method"].as_str() {
            _ if self.silent => {}
            Some("notifications/cancelled") => self.cancelled += 1,
            Some(method) if !id.is_null() => self.request(method, id, &message["params"]),
            Some(_) => {}
            None => {
                let answer = message.get("result").unwrap_or(&message["error"]);
                match id.as_str().and_then(|id| self.asked.remove(id)) {
                    Some(call) if self.surveys.contains_key(&call.to_string()) => {
                        self.surveyed(&call, answer)
                    }
                    Some(call) => send(&json!({"jsonrpc": "2.0", "id": call, "result": text(answer)})),
                    None => self.strays += 1,
                }
            }
        }
    }

    fn request(&mut self, method: &str, id: &Value, params: &Value) {
        let capabilities =
            json!({"tools": {"listChanged": true}, "logging": {}, "resources": {"subscribe": true}});
        let result = match method {
            "initialize" if !self.discover => json!({"protocolVersion": "2025-11-25",
                "capabilities": capabilities, "serverInfo": {"name": "test", "version": "1"}}),
            "server/discover" if self.discover => {
                let extensions = match self.tasks.is_some() && !self.unannounced {
                    true => json!({"io.modelcontextprotocol/tasks": {}}),
                    false => json!({}),
                };
                json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "extensions": extensions},
                "serverInfo": {"name": "test", "version": "1"}})
            }
            "resources/subscribe"
                if self.deaf_later.as_ref().is_some_and(|file| std::fs::File::create_new(file).is_err()) =>
            {
                return;
            }
            "ping" | "resources/subscribe" | "resources/unsubscribe" => json!({}),
            "logging/setLevel" => {
                self.level = params["level"].clone();
                json!({})
            }
            "tools/list" => self.tools(params),
            "resources/list" if self.resources => {
                json!({"resources": [{"uri": "file:///shared", "name": "shared"}]})
            }
            "resources/list" => json!({"resources": []}),
            "tools/call" => {
                let Some(tasks) = &mut self.tasks else { return self.call(id, params) };
                if matches!(params["name"].as_str(), Some("task" | "tasks")) {
                    return tasks.call(id, params, self.discover);
                }
                tasks.hurry();
                self.call(id, params);
                return;
            }
            "tasks/get" | "tasks/result" | "tasks/cancel" if !self.no_task_methods => {
                let Some(tasks) = &mut self.tasks else { return };
                if let Some(meta) = tasks.request(method, id, params, self.discover) {
                    self.elicit(id, meta);
                }
                return;
            }
            _ => {
                let error = json!({"code": -32601, "message": format!("unknown method {method}")});
                return send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        };
        send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn tools(&self, params: &Value) -> Value {
        let from: usize = params["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let mut tools = Vec::new();
        if from == 0 {
            let names = [
                "echo",
                "die",
                "hang",
                "big",
                "many",
                "wrong",
                "cancelled",
                "change",
                "env",
                "child",
                "steps",
                "elicit",
                "sample",
                "roots",
                "level",
                "count",
                "answer",
                "round",
                "always",
                "survey",
                "late",
                "strays",
            ];
            tools.extend(names.map(tool));
            if self.tasks.is_some() {
                tools.extend(tasks::listed());
            }
            if self.changed {
                tools.push(tool("new"));
            }
            if self.resources {
                tools.extend(["update", "flood"].map(tool));
            }
            if self.bad_schema {
                tools.extend([
                    json!({"name": "broken", "inputSchema": {"type": "no-such-type"}}),
                    json!({"name": "flag", "inputSchema": true}),
                    json!({"name": "text", "inputSchema": {"type": "string"}}),
                    json!({"name": "open", "inputSchema": {"properties": {"any": true}}}),
                    json!({"name": "list", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}}),
                    json!({"name": "hint", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "yes"}}),
                    json!({"name": "echo", "inputSchema": {"type": "object"}}),
                    json!({"name": "", "inputSchema": {"type": "object"}}),
                ]);
            }
        }
        let to = (from + 100).min(self.more);
        tools.extend((from..to).map(|number| tool(&format!("more-{number:05}"))));
        let mut page = json!({"tools": tools});
        if to < self.more {
            page["nextCursor"] = to.to_string().into();
        }
        if self.discover {
            page["resultType"] = "complete".into();
            page["ttlMs"] = 0.into();
            page["cacheScope"] = "private".into();
        }
        page
    }

    fn call(&mut self, id: &Value, params: &Value) {
        if self.junk {
            println!("DEBUG: a call came in");
        }
        let arguments = &params["arguments"];
        let mut result = match params["name"].as_str().unwrap_or_default() {
            "echo" => text(params),
            "die" => {
                eprintln!("out of luck");
                std::process::exit(1);
            }
            "hang" => {
                notify(
                    "notifications/progress",
                    json!({"progressToken": params["_meta"]["progressToken"], "progress": 1}),
                );
                return;
            }
            "big" => text("x".repeat(arguments["bytes"].as_u64().unwrap_or(0) as usize)),
            "many" => {
                let items = vec![json!({}); arguments["items"].as_u64().unwrap_or(0) as usize];
                json!({"content": [], "structuredContent": {"a": items}})
            }
            "wrong" => json!({"content": 7, "isError": "perhaps"}),
            "answer" => {
                // What the caller says, an error or a result.
                let mut answer = arguments.clone();
                answer["jsonrpc"] = "2.0".into();
                answer["id"] = id.clone();
                return send(&answer);
            }
            "cancelled" => text(self.cancelled),
            "level" => text(&self.level),
            "count" => {
                self.counted += 1;
                text(format!("{} {}", self.counted, std::process::id()))
            }
            "change" => {
                self.changed = true;
                notify("notifications/tools/list_changed", json!({}));
                text("changed")
            }
            "update" => {
                notify("notifications/resources/updated", json!({"uri": "file:///shared"}));
                text("updated")
            }
            "flood" => {
                for n in 0..5_000 {
                    notify("notifications/resources/updated", json!({"uri": format!("file:///other/{n}")}));
                    notify("notifications/resources/updated", json!({"uri": "file:///shared"}));
                }
                text("flooded")
            }
            "env" => {
                let mut names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
                names.sort();
                text(names.join(" "))
            }
            "child" => {
                let child = grandchild();
                text(format!("{} {}", std::process::id(), child))
            }
            "steps" => {
                for step in 1..=3 {
                    let token = &params["_meta"]["progressToken"];
                    notify(
                        "notifications/progress",
                        json!({"progressToken": token, "progress": step, "total": 3}),
                    );
                    notify("notifications/message", json!({"level": "info", "data": format!("step {step}")}));
                }
                notify("notifications/progress", json!({"progressToken": "nobody's", "progress": 9}));
                text("done")
            }
            "elicit" => return self.elicit(id, Value::Null),
            "sample" => {
                let messages = json!([{"role": "user", "content": {"type": "text", "text": "hi"}}]);
                return self.ask(id, "sampling/createMessage", json!({"messages": messages, "maxTokens": 9}));
            }
            "roots" => return self.ask(id, "roots/list", json!({})),
            // Asks with its answer, as servers of the newer era do.
            "round" => match params.get("inputResponses") {
                Some(answers) => text(json!({"answers": answers, "state": params["requestState"]})),
                None => json!({"resultType": "input_required", "requestState": "theirs",
                    "inputRequests": arguments["asks"]}),
            },
            "always" => json!({"resultType": "input_required", "inputRequests": arguments["asks"]}),
            "survey" => {
                let survey = Survey {
                    rounds: arguments["rounds"].as_u64().unwrap_or(1),
                    at_once: arguments["atOnce"].as_u64().unwrap_or(1),
                    enough: arguments["enough"].as_u64().or(arguments["atOnce"].as_u64()).unwrap_or(1),
                    token: params["_meta"]["progressToken"].clone(),
                    answers: Vec::new(),
                    fails: arguments["fails"] == true,
                };
                self.surveys.insert(id.to_string(), survey);
                return self.survey(id);
            }
            // A question of a call that is over when it is asked.
            "late" => {
                send(&json!({"jsonrpc": "2.0", "id": id, "result": text("done")}));
                self.questions += 1;
                return send(&json!({"jsonrpc": "2.0", "id": format!("late-{}", self.questions),
                    "method": "elicitation/create", "params": form("Too late?")}));
            }
            "strays" => text(self.strays),
            other => text(format!("{other} was called")),
        };
        if self.discover && result["resultType"].is_null() {
            result["resultType"] = "complete".into();
        }
        send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    /// Begins a round of questions.
    fn survey(&mut self, call: &Value) {
        let Some(survey) = self.surveys.get(&call.to_string()) else { return };
        let (at_once, rounds) = (survey.at_once, survey.rounds);
        notify(
            "notifications/progress",
            json!({"progressToken": survey.token, "progress": survey.answers.len()}),
        );
        for number in 0..at_once {
            self.ask(call, "elicitation/create", form(&format!("{rounds}/{number}?")));
        }
    }

    /// Takes an answer to a question of a survey.
    fn surveyed(&mut self, call: &Value, answer: &Value) {
        let Some(survey) = self.surveys.get_mut(&call.to_string()) else { return };
        survey.answers.push(answer.clone());
        if !(survey.answers.len() as u64).is_multiple_of(survey.enough) {
            return;
        }
        survey.rounds -= 1;
        if survey.rounds > 0 {
            return self.survey(call);
        }
        let Some(survey) = self.surveys.remove(&call.to_string()) else { return };
        let mut result = text(json!(survey.answers));
        result["isError"] = survey.fails.into();
        send(&json!({"jsonrpc": "2.0", "id": call, "result": result}));
    }

    fn elicit(&mut self, call: &Value, meta: Value) {
        let mut question = form("Who?");
        if !meta.is_null() {
            question["_meta"] = meta;
        }
        self.ask(call, "elicitation/create", question);
    }

    fn ask(&mut self, call: &Value, method: &str, params: Value) {
        self.questions += 1;
        let question = format!("question-{}", self.questions);
        self.asked.insert(question.clone(), call.clone());
        send(&json!({"jsonrpc": "2.0", "id": question, "method": method, "params": params}));
    }
}

/// Starts a server as the gateway does, says `up`, and waits to be killed.
fn parent(file: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime starts").block_on(async {
        let us = std::env::current_exe().expect("the program has a path");
        let mut config = UpstreamConfig::command(us.to_string_lossy());
        config.args = vec!["--stay".to_owned(), "--pids".to_owned(), file.to_owned()];
        let environment = std::env::vars().filter(|(name, _)| name == "PATH").collect();
        let app = UpstreamApp::start("child", config, environment);
        assert_eq!(app.wait_ready(Duration::from_secs(20)).await, AppHealth::Up);
        println!("up {}", app.catalog().tools.len());
        std::future::pending::<()>().await;
    });
}
