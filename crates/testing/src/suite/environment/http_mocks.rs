//! Responses to HTTP calls of the server, as the suite writes them.

use std::time::Duration;

use crate::{
    http_mock::{HttpMockOptions, http_response},
    matchers::text,
    suite::{format::HttpMockEntry, variables::Variables},
};

impl HttpMockEntry {
    /// The mock, with its variables filled in.
    pub(in crate::suite) fn options(&self, variables: &Variables) -> Result<HttpMockOptions, String> {
        let mut response = match (&self.json, &self.text) {
            (Some(json), _) => http_response::json(variables.fill(json)?),
            (None, Some(text)) => http_response::text(variables.text(text)?),
            (None, None) => http_response::text(""),
        };
        response = response.status(self.status.unwrap_or(200));
        response = response.delay(Duration::from_millis(self.delay_ms.unwrap_or(0)));
        for (name, value) in &self.headers {
            response = response.header(name, variables.text(value)?);
        }
        let mut options = match (&self.url, &self.url_regex) {
            (_, Some(regex)) => {
                let regex = regex::Regex::new(regex).map_err(|error| error.to_string())?;
                HttpMockOptions::new(regex, response)
            }
            (url, None) => {
                HttpMockOptions::new(variables.text(url.as_deref().unwrap_or_default())?, response)
            }
        };
        if let Some(method) = &self.method {
            options = options.method(method);
        }
        for (name, value) in &self.request_headers {
            options = options.header(name, variables.text(value)?);
        }
        if let Some(json) = &self.request_json {
            options = options.body_json(variables.fill(json)?);
        }
        if let Some(part) = &self.request_text {
            options = options.body_text(text(&variables.fill(&part.as_str().into())?));
        }
        if let Some(times) = self.times {
            options = options.times(times);
        }
        Ok(options)
    }
}
