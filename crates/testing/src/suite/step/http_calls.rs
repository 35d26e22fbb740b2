//! Waiting for HTTP calls of the server.

use std::time::Duration;

use serde_json::{Value, json};

use super::{StepRunner, outcome::Outcome};

impl StepRunner<'_> {
    pub(super) async fn http_calls(
        &self,
        url: &str,
        count: usize,
        timeout: Duration,
    ) -> Result<Outcome, String> {
        let http = self.environment.http.as_ref().ok_or("the suite has no `httpMocks`")?;
        let matching = || {
            let own = http.calls().into_iter().skip(self.since.calls);
            own.filter(|call| call.url.contains(url)).collect::<Vec<_>>()
        };
        let enough = async {
            while matching().len() < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let in_time = tokio::time::timeout(timeout, enough).await.is_ok();
        let calls = matching();
        if !in_time {
            let own = http.calls().into_iter().skip(self.since.calls).take(20);
            let all: Vec<String> = own.map(|call| call.to_string()).collect();
            return Err(format!(
                "{count} calls with `{url}` in the URL did not come within {timeout:?}, {} did; all calls: {all:?}",
                calls.len()
            ));
        }
        // Headers by name: easier to expect than pairs.
        let listed = calls.iter().map(|call| {
            let headers: serde_json::Map<String, Value> =
                call.headers.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
            json!({"url": call.url, "method": call.method, "headers": headers, "body": call.body, "json": call.json()})
        });
        Ok(Outcome::json(listed.collect()))
    }
}
