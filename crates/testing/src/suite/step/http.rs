//! HTTP requests beside those of the client: metadata documents, challenges, checks of `Origin`.

use std::time::Duration;

use reqwest::{Client, Method, Response, redirect::Policy};
use serde_json::{Map, Value, json};

use super::{StepRunner, outcome::Outcome};
use crate::{
    base::net::root_cause,
    suite::format::{HttpRequest, HttpStep, Step},
};

/// Longest body that is read, in bytes.
const MOST_BYTES: usize = 4 << 20;

impl StepRunner<'_> {
    /// Sends a request. The outcome is `{status, headers, text, json}`.
    pub(super) async fn http(
        &self,
        step: &Step,
        http: &HttpStep,
        timeout: Duration,
    ) -> Result<Outcome, String> {
        let request = http.request();
        let url = self.url(&request)?;
        let has_body = request.json.is_some() || request.form.is_some() || request.text.is_some();
        let method = self.variables.text(request.method.as_deref().unwrap_or(if has_body {
            "POST"
        } else {
            "GET"
        }))?;
        let name = format!("{} {url}", method.to_uppercase());
        let method = Method::from_bytes(method.to_uppercase().as_bytes())
            .map_err(|_| format!("`{method}` is no HTTP method"))?;
        let redirects = if request.follow_redirects { Policy::limited(10) } else { Policy::none() };
        let mut client = Client::builder().no_proxy().redirect(redirects).timeout(timeout);
        if url.scheme() == "http" {
            // Reading the system's root certificates takes tens of milliseconds, and plain HTTP needs none.
            client = client.tls_certs_only([]);
        }
        let client = client.build().map_err(|error| root_cause(&error))?;
        let mut sent = client.request(method, url);
        if let Some(user) = &step.user {
            let caller = self.environment.caller(self.suite, Some(user), &self.variables)?;
            for (name, value) in self.environment.headers(&caller) {
                sent = sent.header(name, value);
            }
            if let Some(token) = caller.token {
                sent = sent.bearer_auth(token);
            }
        }
        if let Some(body) = &request.json {
            sent =
                sent.header("content-type", "application/json").body(self.variables.fill(body)?.to_string());
        } else if let Some(fields) = &request.form {
            let mut form = url::form_urlencoded::Serializer::new(String::new());
            for (name, value) in fields {
                form.append_pair(name, &self.variables.text(value)?);
            }
            sent = sent.header("content-type", "application/x-www-form-urlencoded").body(form.finish());
        } else if let Some(text) = &request.text {
            sent = sent.body(self.variables.text(text)?);
        }
        let mut headers = http::HeaderMap::new();
        for (name, value) in &request.headers {
            let (name, value) = (self.variables.text(name)?, self.variables.text(value)?);
            let name = http::HeaderName::try_from(name.as_str())
                .map_err(|_| format!("`{name}` is no name of a header"))?;
            let value = http::HeaderValue::try_from(value)
                .map_err(|_| format!("the value of the header `{name}` has characters it must not have"))?;
            headers.insert(name, value);
        }
        let failed = |error: reqwest::Error| match error.is_timeout() {
            true => {
                format!("{name} was not answered within {timeout:?}; raise `timeoutMs` when that is right")
            }
            false => format!("{name} failed: {}", root_cause(&error)),
        };
        // These replace the ones above.
        let response = sent.headers(headers).send().await.map_err(failed)?;
        let status = response.status();
        let outcome = outcome(response).await.map_err(failed)?;
        if step.expect.is_empty() && status.as_u16() >= 400 {
            return Err(format!(
                "{name} gave {status}: {}\nexpect the status when it is meant",
                outcome.subject()
            ));
        }
        Ok(outcome)
    }

    fn url(&self, request: &HttpRequest) -> Result<url::Url, String> {
        let text = match (&request.url, &request.path) {
            (Some(url), _) => self.variables.text(url)?,
            (None, path) => {
                let path = self.variables.text(path.as_deref().unwrap_or("/"))?;
                // A variable may be the address of another server: `${auth.issuer}/…`.
                if path.starts_with("http://") || path.starts_with("https://") {
                    return self.with_query(&path, request);
                }
                let base = self.environment.server.info().base_url;
                if base.is_empty() {
                    return Err("a server over stdio has no address; name a `url` instead of a `path`".into());
                }
                format!("{}/{}", base.trim_end_matches('/'), path.trim_start_matches('/'))
            }
        };
        self.with_query(&text, request)
    }

    fn with_query(&self, text: &str, request: &HttpRequest) -> Result<url::Url, String> {
        let mut url = url::Url::parse(text).map_err(|error| format!("`{text}` is no URL: {error}"))?;
        for (name, value) in &request.query {
            url.query_pairs_mut().append_pair(name, &self.variables.text(value)?);
        }
        Ok(url)
    }
}

/// Reads a response: of an event stream the first event, which may be the only one for long.
async fn outcome(mut response: Response) -> reqwest::Result<Outcome> {
    let status = response.status().as_u16();
    let mut headers = Map::new();
    for (name, value) in response.headers() {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        // A header that is sent twice has both values, as RFC 9110 §5.2 joins them.
        let value = match headers.get(name.as_str()).and_then(Value::as_str) {
            Some(first) => format!("{first}, {value}"),
            None => value,
        };
        headers.insert(name.to_string(), value.into());
    }
    let is_stream = headers
        .get("content-type")
        .and_then(Value::as_str)
        .is_some_and(|kind| kind.starts_with("text/event-stream"));
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        // An event ends with an empty line, which may lie across two chunks.
        let from = body.len().saturating_sub(3);
        body.extend_from_slice(&chunk);
        let ends = |end: &[u8]| body[from..].windows(end.len()).any(|part| part == end);
        let complete = is_stream && (ends(b"\n\n") || ends(b"\r\n\r\n"));
        if complete || body.len() >= MOST_BYTES {
            body.truncate(MOST_BYTES);
            break;
        }
    }
    let text = String::from_utf8_lossy(&body).into_owned();
    let data = text.lines().find_map(|line| line.strip_prefix("data:")).filter(|_| is_stream);
    let json: Value = serde_json::from_str(data.unwrap_or(&text)).unwrap_or_default();
    Ok(Outcome::json(json!({"status": status, "headers": headers, "text": text, "json": json})))
}
