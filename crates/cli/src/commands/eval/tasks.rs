//! Recorded tasks: the calls that solve each, directly and as plans.

use std::{collections::BTreeSet, path::Path};

use anyhow::Context as _;
use gatewright_findings::parser_problem;
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::Value;

use crate::exit::BadConfig;

/// A file of tasks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskFile {
    tasks: Vec<Task>,
}

/// One conversation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub name: String,
    /// Apps whose tools a client without code mode would list. Default: the apps of the calls.
    #[serde(default)]
    apps: Vec<String>,
    /// Calls that bring the apps into the state where the task begins. Neither they nor their tools are counted.
    #[serde(default)]
    pub setup: Vec<Call>,
    /// Requests of the user, one after another.
    pub turns: Vec<Turn>,
}

/// One request of the user.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// The user's words. Code mode searches with them unless `plan.search` says otherwise.
    pub ask: String,
    /// The calls that answer it without code mode. A list within the list is sent at once, in one round trip.
    pub calls: Vec<Step>,
    /// The plan that answers it. Default: `codecall:invoke` for a single call, and else one script that makes the same calls and returns all their results.
    #[serde(default)]
    pub plan: Plan,
}

/// One round trip.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a call `{ tool, input }`, or a list of calls")]
pub enum Step {
    One(Call),
    Together(Vec<Call>),
}

/// One call of a tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Name in the colon form.
    pub tool: String,
    #[serde(default)]
    pub input: JsonObject,
}

/// Code mode's answer to a turn.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Queries of `codecall:search`. `[]` asks nothing.
    #[serde(default)]
    search: Option<Vec<String>>,
    /// Names for `codecall:describe`. Default: the tools of the calls. What an earlier turn described is not asked again.
    #[serde(default)]
    describe: Option<Vec<String>>,
    #[serde(default)]
    script: Option<String>,
    /// The script's `codecallContext`.
    #[serde(default)]
    pub context: JsonObject,
    /// The result that the script must return.
    #[serde(default)]
    pub expect: Option<Value>,
}

impl Step {
    pub fn calls(&self) -> &[Call] {
        match self {
            Self::One(call) => std::slice::from_ref(call),
            Self::Together(calls) => calls,
        }
    }
}

impl Task {
    fn calls(&self) -> impl Iterator<Item = &Call> {
        self.turns.iter().flat_map(Turn::all_calls)
    }

    /// Apps whose tools a client without code mode lists.
    pub fn apps(&self) -> BTreeSet<&str> {
        match self.apps.is_empty() {
            true => self.calls().filter_map(|call| Some(call.tool.split_once(':')?.0)).collect(),
            false => self.apps.iter().map(String::as_str).collect(),
        }
    }

    /// Returns `true` for a tool that only prepares the task.
    pub fn is_setup(&self, tool: &str) -> bool {
        self.setup.iter().any(|call| call.tool == tool) && !self.calls().any(|call| call.tool == tool)
    }
}

impl Turn {
    fn all_calls(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().flat_map(Step::calls)
    }

    pub fn queries(&self) -> Vec<&str> {
        match &self.plan.search {
            Some(queries) => queries.iter().map(String::as_str).collect(),
            None => vec![&self.ask],
        }
    }

    /// Tools that the plan's author must know.
    pub fn described(&self) -> BTreeSet<&str> {
        match &self.plan.describe {
            Some(names) => names.iter().map(String::as_str).collect(),
            None => self.all_calls().map(|call| call.tool.as_str()).collect(),
        }
    }

    /// The call of a turn that needs no script: it has one call, and no plan of its own.
    pub fn only_call(&self) -> Option<&Call> {
        match self.calls.as_slice() {
            [step] if self.plan.script.is_none() => match step.calls() {
                [only] => Some(only),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn script(&self) -> anyhow::Result<String> {
        match &self.plan.script {
            Some(script) => Ok(script.trim().to_owned()),
            None => same_calls(&self.calls),
        }
    }
}

/// A script that makes the calls in their order and returns their results.
fn same_calls(steps: &[Step]) -> anyhow::Result<String> {
    let call = |call: &Call| -> anyhow::Result<String> {
        let input = serde_json::to_string(&call.input)?;
        Ok(format!("callTool({}, {input})", serde_json::to_string(&call.tool)?))
    };
    let mut values = Vec::new();
    for step in steps {
        values.push(match step {
            Step::One(one) => format!("await {}", call(one)?),
            Step::Together(calls) => {
                let calls: Vec<_> = calls
                    .iter()
                    .map(|one| Ok(format!("() => {}", call(one)?)))
                    .collect::<anyhow::Result<_>>()?;
                format!("...await __safe_parallel([{}])", calls.join(", "))
            }
        });
    }
    Ok(match values.as_slice() {
        [one] if one.starts_with("await") => format!("return {one}"),
        values => format!("return [{}]", values.join(", ")),
    })
}

/// Reads a file of tasks, in YAML or JSON.
///
/// # Errors
/// A file that cannot be read, is no file of tasks, or holds none.
pub fn read(path: &Path) -> anyhow::Result<Vec<Task>> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| BadConfig(format!("{name} cannot be read: {error}")))?;
    let file: TaskFile = serde_saphyr::from_str(&text).map_err(|error| {
        let line = error.location().map_or_else(String::new, |at| format!(":{}", at.line()));
        BadConfig(format!("{name}{line}: {}", parser_problem(&error.without_snippet().to_string())))
    })?;
    if file.tasks.is_empty() {
        return Err(BadConfig(format!("{name} holds no task")).into());
    }
    for task in &file.tasks {
        for turn in &task.turns {
            turn.script().with_context(|| task.name.clone())?;
        }
    }
    Ok(file.tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(yaml: &str) -> Turn {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn a_turn_without_a_plan_becomes_one_script_with_the_same_calls() {
        let turn = turn(
            "ask: both\ncalls:\n  - { tool: 'a:x', input: { count: 1 } }\n  - [{ tool: 'a:y' }, { tool: 'b:z' }]\n",
        );
        assert_eq!(
            turn.script().unwrap(),
            r#"return [await callTool("a:x", {"count":1}), ...await __safe_parallel([() => callTool("a:y", {}), () => callTool("b:z", {})])]"#
        );
        assert_eq!(turn.described().into_iter().collect::<Vec<_>>(), ["a:x", "a:y", "b:z"]);
        assert_eq!(turn.queries(), ["both"]);
    }

    #[test]
    fn a_turn_with_one_call_and_no_script_needs_none() {
        for (calls, plan, is_only) in [
            ("{ tool: 'a:x' }", "{}", true),
            ("[{ tool: 'a:x' }]", "{}", true),
            ("{ tool: 'a:x' }", "{ script: return 1 }", false),
            ("[{ tool: 'a:x' }, { tool: 'a:y' }]", "{}", false),
        ] {
            let turn = turn(&format!("ask: one\ncalls: [{calls}]\nplan: {plan}\n"));
            assert_eq!(turn.only_call().is_some(), is_only, "{calls} {plan}");
        }
    }

    #[test]
    fn a_tool_that_only_prepares_the_task_is_no_tool_of_the_client() {
        let task: Task = serde_saphyr::from_str(
            "name: t\nsetup: [{ tool: 'a:load' }, { tool: 'a:x' }]\nturns: [{ ask: q, calls: [{ tool: 'a:x' }] }]",
        )
        .unwrap();
        assert!(task.is_setup("a:load") && !task.is_setup("a:x"));
        assert_eq!(task.apps().into_iter().collect::<Vec<_>>(), ["a"]);
    }
}
