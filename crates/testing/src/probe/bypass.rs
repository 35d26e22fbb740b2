//! Ways around the token: other requests than the first, headers, spellings of the path, sessions of others.

use serde_json::{Value, json};

use super::{
    auth::Checks,
    http::{Received, Sent, initialize},
};
use crate::fuzz::Severity::{self, Error, Warning};

/// Headers by which servers behind a proxy know the caller. Nobody but the proxy may send them.
const HEADERS: [(&str, &str); 8] = [
    ("x-forwarded-for", "127.0.0.1"),
    ("x-real-ip", "127.0.0.1"),
    ("x-forwarded-user", "admin"),
    ("x-remote-user", "admin"),
    ("x-user", "admin"),
    ("x-user-id", "1"),
    ("x-internal", "true"),
    ("x-debug", "true"),
];

fn request(method: &str) -> Value {
    let params = if method == "tools/call" { json!({"name": "gatewright_unknown"}) } else { json!({}) };
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn is_served(answer: &Received) -> bool {
    (200..300).contains(&answer.status)
}

impl Checks<'_> {
    /// Requests without a token that are not refused, after the first one was. `good`: a token that the server accepts.
    pub(super) async fn bypasses(&self, good: Option<&str>) {
        for method in ["tools/list", "tools/call"] {
            let sent = Sent::post(self.url, &request(method));
            self.not_served(Error, &format!("`{method}` without a token"), sent).await;
        }
        for (name, value) in HEADERS {
            let sent = Sent::post(self.url, &initialize()).header(name, value);
            self.not_served(Error, &format!("a client without a token that sends `{name}: {value}`"), sent)
                .await;
        }
        let other = match self.url.strip_suffix('/') {
            Some(without) => without.to_owned(),
            None => format!("{}/", self.url),
        };
        self.not_served(Error, "a client without a token at this path", Sent::post(&other, &initialize()))
            .await;
        if let Some(session) = self.session(good).await {
            let sent = Sent::post(self.url, &request("tools/list")).header("mcp-session-id", session);
            self.not_served(Error, "a session without its token", sent).await;
        }
    }

    /// The session of one user, with the token of another.
    pub(super) async fn session_of_other(&self, owner: &str, other: &str) {
        let Some(session) = self.session(Some(owner)).await else { return };
        let sent = Sent::post(self.url, &request("tools/list"))
            .header("mcp-session-id", session)
            .header("authorization", format!("Bearer {other}"));
        self.not_served(Warning, "a session with the token of another user", sent).await;
    }

    async fn session(&self, token: Option<&str>) -> Option<String> {
        let sent = Sent::post(self.url, &initialize()).header("authorization", format!("Bearer {}", token?));
        sent.send().await.ok()?.header("mcp-session-id").map(str::to_owned)
    }

    async fn not_served(&self, severity: Severity, what: &str, sent: Sent) {
        // Without an answer nothing was served.
        let served = sent.send().await.ok().filter(is_served);
        self.keep(served.map(|answer| self.finding(severity, format!("{what} is served"), &sent, &answer)));
    }
}
