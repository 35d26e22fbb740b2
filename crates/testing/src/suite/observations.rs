//! Requests, protocol violations, the server's log and HTTP calls, for the report of a failure. Every part is bounded.

use super::environment::{Environment, HttpMark};
use crate::{base::text::shorten, client::Mcp};

/// Lines of the server's log.
const LOG_LINES: usize = 20;
/// Requests, the newest ones.
const REQUESTS: usize = 20;
/// Violations and calls of one kind.
const LINES: usize = 10;

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
        let unmatched = http.unmatched_with_nearest().into_iter().skip(since.unmatched);
        for call in summarized(unmatched.collect()) {
            text.push_str(&format!("\nno HTTP mock wants: {call}"));
        }
        for problem in summarized(http.unreachable().into_iter().skip(since.unreachable).collect()) {
            text.push_str(&format!("\n{problem}"));
        }
    }
    text
}

/// Texts, shortened: repeated ones once with their number, and at most ten.
pub(super) fn summarized(texts: Vec<String>) -> Vec<String> {
    let mut counted: Vec<(String, usize)> = Vec::new();
    let mut more = 0;
    for text in texts {
        let text = shorten(&text, 600);
        match counted.iter().position(|(known, _)| *known == text) {
            Some(at) => counted[at].1 += 1,
            None if counted.len() < LINES => counted.push((text, 1)),
            None => more += 1,
        }
    }
    let mut lines: Vec<String> = counted
        .into_iter()
        .map(|(text, count)| if count > 1 { format!("{text} ({count} times)") } else { text })
        .collect();
    if more > 0 {
        lines.push(format!("… and {more} more"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_texts_are_counted_and_further_ones_left_out() {
        let mut texts = vec!["a".to_owned(); 500];
        texts.extend((0..30).map(|n| format!("b{n}")));
        let lines = summarized(texts);
        assert_eq!((lines.len(), lines[0].as_str()), (LINES + 1, "a (500 times)"));
        assert_eq!(lines[LINES], "… and 21 more");
    }
}
