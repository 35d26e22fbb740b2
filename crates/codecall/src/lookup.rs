//! Lookup of the tools that a script names: one to call, those of a whole plan, and one to describe.

use std::sync::Arc;

use gatewright_agentscript::{PlanFacts, ToolFailure, excerpt};
use gatewright_core::{InvokeError, PermittedTool, ToolEntry, codes, off_thread};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    describe,
    host::ScriptHost,
    meta_tools,
    plan_check::{self, Named, Tools},
    sent::SentTexts,
};

impl ScriptHost {
    /// The tool that a script calls `name`, if its caller and the limits of the run let it.
    pub(crate) async fn tool(&self, name: &str) -> Result<PermittedTool, ToolFailure> {
        let shown = excerpt::name(name);
        if meta_tools::is_meta_tool(name) {
            return Err(ToolFailure {
                code: codes::SELF_REFERENCE_BLOCKED.to_owned(),
                message: format!("a script cannot call `{shown}`; call the tools of apps"),
                ends_run: true,
                ..ToolFailure::default()
            });
        }
        if *shown != *name {
            // No tool has a name of this length, and nothing looks at all of it.
            return Err(self.failure(codes::TOOL_NOT_FOUND, &format!("tool `{shown}` does not exist")));
        }
        if self.allowed.as_ref().is_some_and(|allowed| !allowed.contains(name)) {
            let view = self.invoker.registry().view(&self.caller);
            let plain = view.tool(name).ok().map(|tool| tool.name.clone());
            let allowed =
                |plain: &Arc<str>| self.allowed.as_ref().is_some_and(|names| names.contains(&**plain));
            if !plain.as_ref().is_some_and(allowed) {
                return Err(self.denied(name));
            }
        }
        let reaches = |tool: &ToolEntry| self.mode.in_code(tool);
        let tool = match self.invoker.find_among(name, &self.caller, reaches).await {
            Ok(tool) => tool,
            Err(error) => {
                return Err(self.tool_failure(name, error.into(), SentTexts::default(), None).await);
            }
        };
        if !self.mode.in_code(&tool) {
            let why = format!("tool `{name}` is not enabled in code mode");
            return Err(self.failure(codes::ACCESS_DENIED, &why));
        }
        Ok(tool)
    }

    /// Looks up the tools that a plan names, some of them where there are many.
    pub(crate) async fn named_tools(&self, facts: &PlanFacts) -> Tools {
        let read = plan_check::read_calls(facts);
        let (mut tools, mut unknown) = (Tools::new(), 0);
        for (at, call) in (0..).zip(&facts.calls) {
            let is_read = read.contains(&at);
            let is_full = tools.len() == plan_check::MOST_TOOLS || unknown == plan_check::MOST_UNKNOWN;
            match tools.get_mut(&call.name) {
                Some(Named::Tool { entry, shape }) if is_read && shape.is_none() => {
                    *shape = self.shapes.result_shape(entry, &self.caller)
                }
                Some(_) => {}
                None if is_full => break,
                None => {
                    let named = match self.tool(&call.name).await {
                        // Findings would describe it: the call itself is refused.
                        Ok(tool) if !tool.may_be_called() => continue,
                        Ok(tool) => {
                            let shape =
                                is_read.then(|| self.shapes.result_shape(&tool, &self.caller)).flatten();
                            Named::Tool { entry: tool.entry().clone(), shape }
                        }
                        Err(failure) if plan_check::is_unknown(&failure) => {
                            unknown += 1;
                            Named::Unknown(failure)
                        }
                        Err(_) => Named::Undecided,
                    };
                    tools.insert(call.name.clone(), named);
                }
            }
        }
        tools
    }

    pub(crate) fn denied(&self, name: &str) -> ToolFailure {
        self.failure(
            codes::ACCESS_DENIED,
            &format!("tool `{name}` is not in allowedTools; add it to call it"),
        )
    }

    /// The description of the tool `name`, as `getTool` returns it.
    pub(crate) async fn describe_tool(&self, name: &str) -> Result<Box<RawValue>, ToolFailure> {
        let name = excerpt::name(name);
        let tool = match self.invoker.find(&name, &self.caller).await {
            Err(error @ InvokeError::Unavailable { .. }) => {
                return Err(self.failure(error.code(), &error.to_string()));
            }
            found => found.ok().filter(|tool| self.mode.in_code(tool) && tool.may_be_called()),
        };
        let tool = tool
            .ok_or_else(|| self.failure(codes::TOOL_NOT_FOUND, &format!("tool `{name}` does not exist")))?;
        // It is no call of a tool, so nothing but the room of the run bounds it: one is described at a time.
        let _turn = self.room.turn(u64::MAX).await;
        let (shapes, caller) = (self.shapes.clone(), self.caller.clone());
        let described = off_thread(usize::MAX, move || {
            to_raw_value(&describe::metadata(&tool, shapes.shown_shape(&tool, &caller).as_ref()))
        });
        let failed = |message: &str| self.failure(codes::TOOL_EXECUTION_ERROR, message);
        let described = described.await.map_err(|error| failed(&error.to_string()))?;
        let _taken = self.room.take(described.get().len() as u64).map_err(|full| failed(&full.message))?;
        Ok(described)
    }
}
