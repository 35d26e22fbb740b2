//! Tools that run as tasks, and every way in which they go wrong.
//!
//! A task moves with the requests for its status: `polls` of them say `working`, and the next one what `end` names.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::{notify, send, text};

const RELATED: &str = "io.modelcontextprotocol/related-task";
const EXTENSION: &str = "io.modelcontextprotocol/tasks";

#[derive(Default)]
pub(crate) struct Tasks {
    arguments: HashMap<String, Value>,
    polls: HashMap<String, u64>,
    cancelled: Vec<String>,
    /// Calls whose answer waits for another request.
    slow: Vec<Value>,
    last: u64,
}

/// `tools/list` entries of task tools.
pub(crate) fn listed() -> [Value; 4] {
    let tool = |name: &str, support: Value| json!({"name": name, "inputSchema": {"type": "object"}, "execution": {"taskSupport": support}});
    [
        tool("task", "required".into()),
        tool("either", "optional".into()),
        tool("odd", json!({"required": "required"})),
        tool("tasks", "forbidden".into()),
    ]
}

fn answer(id: &Value, result: Value) {
    send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn error(id: &Value, code: i64, message: &str) {
    send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
}

impl Tasks {
    /// Answers a call of `task` or `tasks`.
    pub(crate) fn call(&mut self, id: &Value, params: &Value, stateless: bool) {
        let arguments = &params["arguments"];
        if params["name"] == "tasks" {
            let mut report = text(json!({"cancelled": self.cancelled, "polls": self.polls}));
            if stateless {
                report["resultType"] = "complete".into();
            }
            return answer(id, report);
        }
        let declared =
            &params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"][EXTENSION];
        if params["task"].is_null() && declared.is_null() {
            let mut refused = text("Tool task requires task augmentation");
            refused["isError"] = true.into();
            return answer(id, refused);
        }
        self.last += 1;
        let task = match arguments["id"].as_str() {
            Some(id) => id.to_owned(),
            None => format!("task-{}", self.last),
        };
        if let Some(bytes) = arguments["idBytes"].as_u64() {
            let mut created = self.task(&"x".repeat(bytes as usize), "working");
            created["statusMessage"] = "y".repeat(bytes as usize).into();
            return answer(id, json!({"task": created}));
        }
        if arguments["at once"] == true {
            return answer(id, text("done at once"));
        }
        if let Some(instead) = arguments.get("instead") {
            return answer(id, instead.clone());
        }
        let mut kept = arguments.clone();
        kept["ttl"] = params["task"]["ttl"].clone();
        kept["token"] = params["_meta"]["progressToken"].clone();
        self.arguments.insert(task.clone(), kept);
        let mut created = match stateless {
            false => json!({"task": self.task(&task, "working")}),
            true => self.task(&task, "working"),
        };
        if stateless {
            created["resultType"] = "task".into();
        }
        match arguments["slow"] == true {
            true => self.slow.push(json!({"jsonrpc": "2.0", "id": id, "result": created})),
            false => answer(id, created),
        }
        for number in 0..arguments["flood"].as_u64().unwrap_or(0) {
            let of = if number % 2 == 0 { task.clone() } else { format!("nobody's {number}") };
            notify("notifications/tasks/status", self.task(&of, "working"));
        }
        if arguments["announced"] == true {
            notify("notifications/tasks/status", self.task(&task, "completed"));
        }
    }

    /// Sends the answers that wait for another request.
    pub(crate) fn hurry(&mut self) {
        self.slow.drain(..).for_each(|answer| send(&answer));
    }

    fn task(&self, id: &str, status: &str) -> Value {
        let mut task = json!({"taskId": id, "status": status, "ttl": null, "ttlMs": null,
            "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"});
        let arguments = self.arguments.get(id);
        if let Some(interval) = arguments.and_then(|arguments| arguments.get("interval")) {
            task["pollInterval"] = interval.clone();
            task["pollIntervalMs"] = interval.clone();
        }
        if let Some(message) = arguments.and_then(|arguments| arguments.get("message")) {
            task["statusMessage"] = message.clone();
        }
        task
    }

    /// Answers `tasks/get`, `tasks/result` or `tasks/cancel`. Returns the question that the result waits for.
    pub(crate) fn request(
        &mut self,
        method: &str,
        id: &Value,
        params: &Value,
        stateless: bool,
    ) -> Option<Value> {
        let task = params["taskId"].as_str().unwrap_or_default().to_owned();
        let declared =
            &params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"][EXTENSION];
        if stateless && declared.is_null() {
            error(id, -32021, "the client did not declare tasks");
            return None;
        }
        let Some(arguments) = self.arguments.get(&task).cloned() else {
            error(id, -32602, &format!("Task not found: {task}"));
            return None;
        };
        let end = arguments["end"].as_str().unwrap_or("completed");
        match method {
            "tasks/get" => {
                let polls = self.polls.entry(task.clone()).or_default();
                *polls += 1;
                notify(
                    "notifications/progress",
                    json!({"progressToken": arguments["token"], "progress": *polls}),
                );
                let over = *polls > arguments["polls"].as_u64().unwrap_or(0);
                match (over, end) {
                    (true, "forgotten") => error(id, -32602, "Task not found"),
                    (true, "broken") => error(id, -32603, "the store of tasks broke"),
                    (true, "silence") => {}
                    (true, "another") => {
                        let mut other = self.task("another", "completed");
                        if stateless {
                            other["resultType"] = "complete".into();
                            other["result"] = text("done by another task");
                        }
                        answer(id, other);
                    }
                    (true, status) => {
                        let status = if status == "lost result" { "failed" } else { status };
                        let mut task = self.task(&task, status);
                        if stateless {
                            task["resultType"] = "complete".into();
                            match status {
                                "completed" => task["result"] = text("done by a task"),
                                "failed" => {
                                    task["error"] = json!({"code": -32000, "message": "out of paper"})
                                }
                                "input_required" => task["inputRequests"] = json!({}),
                                _ => {}
                            }
                        }
                        answer(id, task);
                    }
                    (false, _) => answer(id, self.task(&task, "working")),
                }
            }
            "tasks/cancel" => {
                self.cancelled.push(task.clone());
                answer(id, self.task(&task, "cancelled"));
            }
            _ if end == "input_required" => return Some(json!({RELATED: {"taskId": task}})),
            _ if end == "lost result" => error(id, -32603, "no result is stored"),
            _ => {
                let mut result = text(json!({"done": task, "ttl": arguments["ttl"]}));
                result["_meta"] = json!({RELATED: {"taskId": task}, "kept": 1});
                answer(id, result);
            }
        }
        None
    }
}
