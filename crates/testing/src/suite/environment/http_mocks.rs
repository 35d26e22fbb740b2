//! Responses to HTTP calls of the server, as the suite writes them.

use std::time::Duration;

use crate::{
    http_mock::{HttpMockOptions, HttpResponse, UrlMatcher, http_response},
    matchers::text,
    suite::{
        format::{HttpMockEntry, HttpMockResponse},
        variables::Variables,
    },
};

impl HttpMockResponse {
    fn response(&self, variables: &Variables) -> Result<HttpResponse, String> {
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
        response.failure = self.failure;
        Ok(response)
    }
}

impl HttpMockEntry {
    /// The mock, with its variables filled in.
    pub(in crate::suite) fn options(&self, variables: &Variables) -> Result<HttpMockOptions, String> {
        let responses = self.all_responses();
        let responses = responses.iter().map(|one| one.response(variables)).collect::<Result<Vec<_>, _>>()?;
        let url: UrlMatcher = match (&self.url, &self.url_regex) {
            (_, Some(regex)) => regex::Regex::new(regex).map_err(|error| error.to_string())?.into(),
            (url, None) => variables.text(url.as_deref().unwrap_or_default())?.into(),
        };
        let mut options = HttpMockOptions::sequence(url, responses);
        if let Some(method) = &self.method {
            options = options.method(method);
        }
        for (name, value) in &self.request_headers {
            options = options.header(name, variables.text(value)?);
        }
        for (name, value) in &self.query {
            options = options.query(name, variables.text(value)?);
        }
        for (name, value) in &self.request_form {
            options = options.body_form(name, variables.text(value)?);
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
