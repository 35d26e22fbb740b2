//! Annotations of a plan, as far as the tools that it calls decide on them.

use gatewright_core::{Registry, rmcp::model::ToolAnnotations};

use super::plan::Plan;

/// The annotations of `plan`: what its header says, else those of the least safe tool that it can call. A plan that calls tools by names
/// that are known only at run time, or tools that are not there, can do anything.
pub(super) fn annotations(plan: &Plan, registry: Option<&Registry>) -> ToolAnnotations {
    let snapshot = registry.map(Registry::operator_snapshot);
    let of_tool = |name: &String| {
        let tool = snapshot.as_ref()?.tool(name)?;
        Some(tool.tool.annotations.clone().unwrap_or_default())
    };
    let tools: Option<Vec<ToolAnnotations>> =
        plan.names_every_tool.then(|| plan.calls.iter().map(of_tool).collect()).flatten();
    let all =
        |fits: &dyn Fn(&ToolAnnotations) -> bool| tools.as_ref().is_some_and(|tools| tools.iter().all(fits));
    let only_reads = |tool: &ToolAnnotations| tool.read_only_hint == Some(true);
    let mut safety = ToolAnnotations::new().read_only(all(&only_reads));
    if safety.read_only_hint == Some(false) {
        let destroys = !all(&|tool| only_reads(tool) || tool.destructive_hint == Some(false));
        safety.destructive_hint = Some(destroys);
    }
    if all(&|tool| tool.open_world_hint == Some(false)) {
        safety.open_world_hint = Some(false);
    }
    plan.annotations.or(safety)
}
