//! The decision on a page of a result after the first, as on the call that would return it.

use rmcp::{
    RoleServer,
    model::{CallToolRequestParams, JsonObject},
    service::RequestContext,
};
use serde_json::Value;

use crate::{
    InvokeError, Invoker, PermittedTool,
    access::{Decided, decide},
    invoker::check_arguments,
};

impl Invoker {
    /// Decides on a page after the first of a call of `tool`, as on the call with `arguments` that would return it, and counts it. Texts in place of
    /// the numbers that the input schema declares, as addresses have them, are read. Returns `false` if the policies do not permit it, if it needs an
    /// approval of its own, if it changes a hidden parameter, or if the arguments do not fit the input schema.
    ///
    /// # Errors
    /// `RATE_LIMIT` with the time to wait.
    pub async fn pass_page(
        &self,
        tool: &PermittedTool,
        mut arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<bool, InvokeError> {
        let is_read = read_texts(&mut arguments, tool.schema.source());
        if !is_read || tool.arguments.differ_in(&arguments) {
            return Ok(false);
        }
        // They are filled in again.
        tool.arguments.hide(&mut arguments);
        let Ok((arguments, _)) = check_arguments(tool, arguments, false).await else { return Ok(false) };
        let params = CallToolRequestParams::new(tool.name.to_string()).with_arguments(arguments);
        if !matches!(decide(tool, params, context).await, Ok(Decided::Passes(_))) {
            return Ok(false);
        }
        self.count(&tool.name, tool.caller().principal(), context).await?;
        Ok(true)
    }
}

/// Reads texts where the schema declares a number or a boolean. Returns `false` for a text that is none: servers may take `03` for 3.
fn read_texts(arguments: &mut JsonObject, schema: &JsonObject) -> bool {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return true };
    for (name, value) in arguments {
        let declared = properties.get(name).and_then(|one| one.get("type"));
        let declared = match declared {
            // A type that may be null beside it.
            Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).find(|one| *one != "null"),
            declared => declared.and_then(Value::as_str),
        };
        let Value::String(text) = &*value else { continue };
        let read = match (declared, text.as_str()) {
            (Some("integer" | "number"), text) => text.parse().ok().map(Value::Number),
            (Some("boolean"), "true") => Some(true.into()),
            (Some("boolean"), "false") => Some(false.into()),
            (Some("boolean"), _) => None,
            _ => continue,
        };
        let Some(read) = read else { return false };
        *value = read;
    }
    true
}
