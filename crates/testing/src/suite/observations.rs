//! Requests, protocol violations, the server's log and HTTP calls, for the report of a failure. Every part is bounded.

use super::{
    environment::{Environment, HttpMark},
    summary::summarized,
};
use crate::{base::text::shorten, client::Mcp};

/// Lines of the server's log.
const LOG_LINES: usize = 20;
/// Requests, the newest ones.
const REQUESTS: usize = 20;

/// What was observed of a client and its server. `since` leaves out HTTP calls from before the test.
pub(super) async fn observations(
    environment: &Environment,
    since: HttpMark,
    clients: impl Iterator<Item = &Mcp>,
) -> String {
    let mut text = String::new();
    let (mut requests, mut violations) = (Vec::new(), Vec::new());
    for mcp in clients {
        requests.extend(mcp.trace().all());
        violations.extend(mcp.logs().violations());
    }
    requests.sort_by_key(|one| one.timestamp);
    if !requests.is_empty() {
        text.push_str("\nrequests:");
    }
    let left_out = requests.len().saturating_sub(REQUESTS);
    if left_out > 0 {
        text.push_str(&format!("\n  ({left_out} earlier ones)"));
    }
    for one in &requests[left_out..] {
        text.push_str(&format!("\n  {}", one.to_string().replace('\n', "\n  ")));
    }
    for violation in summarized(violations) {
        text.push_str(&format!("\nwrong on the wire: {violation}"));
    }
    if let Some(status) = environment.server.unexpected_exit(&requests).await {
        text.push_str(&format!("\nthe server ended: {status}"));
    }
    let logs = environment.server.get_logs();
    if !logs.is_empty() {
        text.push_str("\nserver, its last lines:");
        for line in logs.iter().skip(logs.len().saturating_sub(LOG_LINES)) {
            text.push_str(&format!("\n  | {}", shorten(line, 400)));
        }
    }
    if let Some(http) = &environment.http {
        for line in environment.tell_unmatched(since.unmatched) {
            text.push_str(&format!("\n{line}"));
        }
        for problem in summarized(http.unreachable().into_iter().skip(since.unreachable).collect()) {
            text.push_str(&format!("\n{problem}"));
        }
    }
    text
}
