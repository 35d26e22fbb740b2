//! The host's memory for one run is counted against one limit.

use gatewright_agentscript::{Limits, Outcome, Preset, RunError, excerpt};

use super::support::{limited, run, value};

fn name_of(outcome: &Outcome) -> &str {
    match &outcome.result {
        Err(RunError::RuntimeError { name, .. }) => name,
        other => panic!("expected a run-time error, got {other:?}"),
    }
}

/// Runs `source` with `host_bytes` and every other limit wide open.
async fn held_to(source: &str, host_bytes: u64) -> Outcome {
    limited(source, |limits| {
        *limits = Limits { host_bytes, ..Limits::preset(Preset::Experimental) };
    })
    .await
}

#[tokio::test]
async fn records_keep_cut_names() {
    let outcome =
        run("for (let i = 0; i < 50; i++) { try { await callTool('x'.repeat(1000000) + i, {}) } catch { } } return 1").await;
    assert_eq!(outcome.calls.len(), 50);
    assert!(
        outcome.calls.iter().all(|call| call.name.len() <= excerpt::NAME_BYTES && call.name.ends_with('…'))
    );
}

#[tokio::test]
async fn inputs_of_open_calls_end_the_run_when_they_are_too_much_together() {
    let source = "const text = 'x'.repeat(1000000);
        for (let i = 0; i < 60; i++) callTool('never', { text }).catch(() => 0);
        await callTool('never', {})";
    assert_eq!(name_of(&held_to(source, 8 << 20).await), "HostLimitError");
}

#[tokio::test]
async fn inputs_that_were_answered_take_no_room_any_more() {
    let source = "const text = 'x'.repeat(200000);
        for (let i = 0; i < 20; i++) await callTool('yield', { text });
        return 'done'";
    assert_eq!(value(&held_to(source, 1 << 20).await), "done");
}

#[tokio::test]
async fn many_small_values_count_with_what_they_take_once_they_are_read() {
    let list = "const list = []; for (let i = 0; i < 60000; i++) list.push(0);";
    for end in ["await callTool('echo', { list })", "return list"] {
        assert_eq!(name_of(&held_to(&format!("{list} {end}"), 4 << 20).await), "HostLimitError", "{end}");
    }
}

#[tokio::test]
async fn answers_records_and_console_lines_count_too() {
    for (source, bytes) in [
        ("await callTool('big', { bytes: 5000000 })", 4 << 20),
        ("for (let i = 0; i < 900; i++) await callTool('echo', {})", 128 << 10),
        ("for (let i = 0; i < 900; i++) console.log('x'.repeat(200))", 128 << 10),
    ] {
        assert_eq!(name_of(&held_to(source, bytes).await), "HostLimitError", "{source}");
    }
}

#[tokio::test]
async fn a_timeout_names_ten_open_calls_and_counts_the_rest() {
    let outcome = limited(
        "for (let i = 0; i < 30; i++) callTool('never', {}).catch(() => 0); await callTool('never', {})",
        |limits| limits.timeout = std::time::Duration::from_millis(100),
    )
    .await;
    let Err(RunError::Timeout { message }) = &outcome.result else { panic!("{:?}", outcome.result) };
    assert!(message.ends_with("and 21 more") && message.matches("never").count() == 10, "{message}");
}
