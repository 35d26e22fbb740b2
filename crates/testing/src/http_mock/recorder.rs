//! Expectations of one HTTP mock, and the calls that it saw. Entries of cassettes are in `recording`.

use std::sync::Arc;

use super::{
    call::HttpCall,
    expectation::Expectation,
    recording::{HttpEntry, replay},
    response::{HttpResponse, http_response},
};
use crate::cassette::Cassette;

#[derive(Default)]
pub(super) struct Recorder {
    pub(super) expectations: Vec<Arc<Expectation>>,
    pub(super) passthrough: bool,
    pub(super) calls: Vec<HttpCall>,
    pub(super) unmatched: Vec<HttpCall>,
    /// Calls that were passed through but reached no server, with the reason.
    pub(super) unreachable: Vec<String>,
    pub(super) cassette: Option<Cassette<HttpEntry>>,
}

/// The response to a call, or its way to the network.
pub(super) enum Decision {
    Respond(HttpResponse),
    Forward { record: bool },
}

impl Recorder {
    /// Records a call and decides on it: mocks first, then the cassette, then the network.
    pub(super) fn decide(&mut self, call: &HttpCall) -> Decision {
        self.calls.push(call.clone());
        if call.is_websocket() {
            self.unmatched.push(call.clone());
            let text = format!("the HTTP mock does not speak WebSocket: {call}");
            return Decision::Respond(http_response::text(text).status(501));
        }
        if let Some(response) = self.expectations.iter().find_map(|expectation| expectation.answer(call)) {
            return Decision::Respond(response);
        }
        if let Some(response) = self.cassette.as_mut().and_then(|cassette| replay(cassette, call)) {
            return Decision::Respond(response);
        }
        let record = self.cassette.as_ref().is_some_and(Cassette::is_recording);
        if record || self.passthrough {
            return Decision::Forward { record };
        }
        self.unmatched.push(call.clone());
        let text = http_response::text(format!(
            "no HTTP mock wants this request: {call}\nadd one with `http_mock.any(...)`, or `allow_passthrough(true)`"
        ));
        Decision::Respond(text.status(599).status_text("No HTTP Mock Matches"))
    }

    /// Records the response of the network in the cassette.
    pub(super) fn record(&mut self, call: &HttpCall, response: &HttpResponse) {
        if let Some(cassette) = &mut self.cassette {
            cassette.record(HttpEntry::new(call, response));
        }
    }
}
