//! Expectations of one HTTP mock, and the calls that it saw. Entries of cassettes are in `recording`.

use std::sync::Arc;

use super::{
    call::HttpCall,
    expectation::Expectation,
    near_miss::nearest,
    recording::{HttpEntry, learn, record, replay},
    response::{HttpResponse, http_response},
};
use crate::cassette::Cassette;

#[derive(Default)]
pub(super) struct Recorder {
    pub(super) expectations: Vec<Arc<Expectation>>,
    pub(super) passthrough: bool,
    pub(super) calls: Vec<HttpCall>,
    /// Calls that no mock matched, with the nearest one.
    pub(super) unmatched: Vec<(HttpCall, Option<String>)>,
    /// Number of scopes so far.
    pub(super) scopes: u64,
    /// Number of scopes that are open.
    pub(super) open_scopes: usize,
    /// True if calls to this machine itself come here, too.
    pub(super) localhost: bool,
    /// Calls that were passed through but reached no server, with the reason.
    pub(super) unreachable: Vec<String>,
    pub(super) cassette: Option<Cassette<HttpEntry>>,
    /// How to add a mock, for answers to unmatched calls, unless it is done in Rust.
    pub(super) advice: Option<&'static str>,
}

/// The servers on this machine whose calls come to the proxy.
pub(super) enum Local {
    All,
    Ports(Vec<u16>),
}

/// The response to a call, or its way to the network.
pub(super) enum Decision {
    Respond(HttpResponse),
    Forward { record: bool },
}

impl Recorder {
    /// Adds a mock: those of the latest scope come first, those of none last.
    pub(super) fn add(&mut self, one: Arc<Expectation>) {
        let at = self.expectations.iter().position(|other| other.scope < one.scope);
        self.expectations.insert(at.unwrap_or(self.expectations.len()), one);
    }

    /// The ports of this machine whose calls come here, if any do.
    pub(super) fn local(&self) -> Local {
        let named = self.expectations.iter().filter_map(|one| one.options.url.local_port());
        let ports: Vec<u16> = named.collect();
        if self.localhost { Local::All } else { Local::Ports(ports) }
    }

    /// True if a mock refuses the tunnel to a server.
    pub(super) fn refuses(&mut self, authority: &str) -> bool {
        let tunnel = HttpCall {
            url: format!("https://{authority}/").replace(":443/", "/"),
            method: "CONNECT".into(),
            headers: Vec::new(),
            body: None,
        };
        let Some(one) = self.expectations.iter().find(|one| one.refuses(&tunnel)).cloned() else {
            return false;
        };
        self.calls.push(tunnel.clone());
        one.answer(&tunnel).is_some()
    }

    /// Records a call and decides on it: mocks first, then the cassette, then the network.
    pub(super) fn decide(&mut self, call: &HttpCall) -> Decision {
        self.calls.push(call.clone());
        if let Some(cassette) = self.cassette.as_mut().filter(|cassette| cassette.is_recording()) {
            learn(cassette, call);
        }
        if call.is_websocket() {
            self.unmatched.push((call.clone(), None));
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
        if record || (self.passthrough && self.open_scopes == 0) {
            return Decision::Forward { record };
        }
        if call.is_local() && !matches!(self.local(), Local::Ports(ports) if ports.is_empty()) {
            return Decision::Forward { record: false };
        }
        let nearest = nearest(call, &self.expectations);
        let hint = nearest.as_ref().map(|nearest| format!("{nearest}\n")).unwrap_or_default();
        let hint = match &self.cassette {
            Some(_) => format!(
                "{hint}the cassette has no answer (left) to it; record it again with the mode `all`\n"
            ),
            None => hint,
        };
        let in_rust = "add one with `http_mock.any(...)`, or `allow_passthrough(true)`";
        let advice = self.advice.unwrap_or(in_rust);
        let text = http_response::text(format!("no HTTP mock wants this request: {call}\n{hint}{advice}"));
        self.unmatched.push((call.clone(), nearest));
        Decision::Respond(text.status(599).status_text("No HTTP Mock Matches"))
    }

    /// Records the response of the network in the cassette.
    pub(super) fn record(&mut self, call: &HttpCall, response: &HttpResponse) {
        if let Some(cassette) = &mut self.cassette {
            record(cassette, call, response);
        }
    }
}
