//! Checks of the step `http`.

use super::Findings;
use crate::suite::format::HttpStep;

impl Findings<'_> {
    pub(super) fn http_step(&mut self, place: &str, step: &HttpStep) {
        let request = step.request();
        if request.url.is_some() == request.path.is_some() {
            self.add(place, "it needs exactly one of `path`, at the server under test, and `url`");
        }
        let bodies = [request.json.is_some(), request.form.is_some(), request.text.is_some()];
        if bodies.into_iter().filter(|one| *one).count() > 1 {
            self.add(place, "`json`, `form` and `text` exclude each other; leave all but one out");
        }
        let mut headers = request.headers;
        // Names of headers may have variables, unlike those of clients.
        headers.retain(|name, _| !name.contains("${"));
        self.header_names(place, "headers", &headers);
    }
}
