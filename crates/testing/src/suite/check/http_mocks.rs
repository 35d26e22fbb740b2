//! Checks of `httpMocks`.

use std::collections::BTreeMap;

use gatewright_findings::escape;

use super::Findings;
use crate::suite::format::HttpMockEntry;

impl Findings<'_> {
    pub(super) fn http_mock(&mut self, place: &str, mock: &HttpMockEntry) {
        match (&mock.url, &mock.url_regex) {
            (Some(_), Some(_)) => self.add(place, "`url` and `urlRegex` exclude each other; leave one out"),
            (None, None) => self.add(place, "it needs `url` or `urlRegex`"),
            (None, Some(regex)) => {
                if let Err(error) = regex::Regex::new(regex) {
                    self.add(
                        &format!("{place}/urlRegex"),
                        format!("this is no regular expression: {}", last_line(&error.to_string())),
                    );
                }
            }
            (Some(_), None) => {}
        }
        if mock.required && self.file.server.per_test && place.starts_with("/httpMocks") {
            self.add(
                &format!("{place}/required"),
                "with `perTest` each test has HTTP mocks of its own; use a step `httpCalls`",
            );
        }
        self.header_names(place, "requestHeaders", &mock.request_headers);
        if !mock.responses.is_empty() && mock.has_own_response() {
            self.add(
                place,
                "`responses` takes the place of `status`, `headers`, `json`, `text`, `delayMs` and `failure`",
            );
        }
        for (at, response) in mock.all_responses().iter().enumerate() {
            let place = match mock.responses.is_empty() {
                true => place.to_owned(),
                false => format!("{place}/responses/{at}"),
            };
            if let Some(status) = response.status.filter(|status| !(100..1000).contains(status)) {
                self.add(
                    &format!("{place}/status"),
                    format!("{status} is no HTTP status; they are 100 to 999"),
                );
            }
            self.header_names(&place, "headers", &response.headers);
            if response.json.is_some() && response.text.is_some() {
                self.add(&place, "`json` and `text` exclude each other; leave one out");
            }
        }
    }

    pub(super) fn header_names(&mut self, place: &str, key: &str, headers: &BTreeMap<String, String>) {
        for name in headers.keys().filter(|name| http::HeaderName::try_from(name.as_str()).is_err()) {
            let place = format!("{place}/{key}/{}", escape(name));
            self.add(&place, format!("`{name}` is no name of an HTTP header"));
        }
    }
}

/// The last line of an error that spans several lines and quotes its source.
fn last_line(text: &str) -> &str {
    let line = text.lines().last().unwrap_or_default();
    line.trim_start_matches("error: ")
}
