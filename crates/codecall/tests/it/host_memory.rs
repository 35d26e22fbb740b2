//! The memory that answers of tools take in this process, against `codecall.vm.hostMemoryMib`.
//!
//! Each test measures its own process: nextest gives it one. The engine is in the same process, so only content that stays outside of
//! scripts is measured.

use std::fs;

use gatewright_core::rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::json;

use super::support::{Client, Served};

const MIB: u64 = 1 << 20;
/// Limit of the runs.
const LIMIT: u64 = 64 * MIB;
/// Bytes of one answer.
const ANSWER: usize = 4 << 20;

/// A tool whose answer is an image of [`ANSWER`] bytes.
#[derive(Clone)]
struct Camera;

impl ServerHandler for Camera {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object"}).as_object().unwrap().clone();
        Ok(ListToolsResult::with_all_items(vec![Tool::new("image", "A tool", schema)]))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // As with a server in another process, the answer comes while the script does something else.
        tokio::task::yield_now().await;
        let block = ContentBlock::image("A".repeat(ANSWER), "image/png");
        Ok(CallToolResult::success(vec![block]).into())
    }
}

/// A field of this process's status, in bytes.
fn status(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

async fn client() -> Client {
    let vm = json!({"hostMemoryMib": LIMIT / MIB, "preset": "experimental", "timeoutMs": 30_000});
    Served::over(json!({"vm": vm}), Camera).await.client("ada").await
}

/// Runs `script`, and writes the reply as a server does. Returns its body, and the memory that all of this took at most.
async fn measured(script: &str) -> (serde_json::Value, u64) {
    let client = client().await;
    client.run("return 1").await;
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS:");
    let answer = client.call("codecall:execute", json!({"script": script})).await;
    let written = serde_json::to_vec(&answer).unwrap();
    let peak = status("VmHWM:").saturating_sub(before);
    println!("{} MiB at most, a reply of {} MiB", peak / MIB, written.len() as u64 / MIB);
    (answer.structured_content.unwrap(), peak)
}

/// Bytes above the limit for answers that are on their way, and for what runs beside the script.
const SLACK: u64 = LIMIT / 4;

#[tokio::test]
async fn images_that_are_kept_and_returned_stay_within_the_limit() {
    let script = "const shots = []; let error = null;
        while (error === null) try { shots.push(...await callTool('app:image', {})) } catch (e) { error = e.message }
        return { shots, error }";
    let (body, peak) = measured(script).await;
    assert_eq!(body["status"], "ok", "{body}");
    assert!(body["result"]["error"].as_str().unwrap().contains("hostMemoryMib"), "{body}");
    assert!(peak < LIMIT + SLACK, "{} MiB", peak / MIB);
}

#[tokio::test]
async fn images_that_come_together_stay_within_the_limit() {
    let script =
        "const all = await __safe_parallel(Array.from({ length: 60 }, () => () => callTool('app:image', {})),
            { settle: true, maxConcurrency: 20 });
         return all.filter((one) => one.status === 'fulfilled').length";
    let (body, peak) = measured(script).await;
    // One less than the limit has room for: each takes some bytes beside its data.
    assert_eq!(body["result"], LIMIT / ANSWER as u64 - 1, "{body}");
    assert!(peak < LIMIT + SLACK, "{} MiB, {body}", peak / MIB);
}
