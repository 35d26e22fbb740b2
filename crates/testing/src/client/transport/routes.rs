//! The clients of a shared connection: which of them gets a message of the server.
//!
//! A response goes to the client that sent the request, and so do progress and what a subscription brings. A request of the server
//! goes to the client with the newest open request. Everything else goes to all clients.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use tokio::sync::oneshot;

use super::message::{Incoming, MessageSender};

/// The first id on the connection, apart from ids that tests write themselves.
const FIRST_ID: u64 = 1_000_000;

/// Key of the id of a subscription, which is that of its request.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

#[derive(Default)]
pub(super) struct Routes {
    clients: BTreeMap<u64, MessageSender>,
    requests: HashMap<String, Sent>,
    /// Progress tokens on the connection, with the client and its own token.
    tokens: HashMap<u64, (u64, Value)>,
    /// Number of ids, tokens and clients given out.
    given: u64,
    was_initialized: bool,
    closed: Option<String>,
}

/// A request of a client.
struct Sent {
    client: u64,
    /// The id as the client knows it.
    id: Value,
    /// True until the response.
    is_open: bool,
    /// Order among all requests.
    number: u64,
    watcher: Option<oneshot::Sender<Value>>,
}

impl Routes {
    /// The routes of a connection on which `given` numbers were given out before, and the server was told that the client is
    /// initialized or not.
    pub(super) fn continued(given: u64, was_initialized: bool) -> Self {
        Self { given, was_initialized, ..Self::default() }
    }

    /// The arguments of [`Routes::continued`].
    pub(super) fn so_far(&self) -> (u64, bool) {
        (self.given, self.was_initialized)
    }

    pub(super) fn join(&mut self, sender: MessageSender) -> u64 {
        let number = self.next();
        self.clients.insert(number, sender);
        number
    }

    /// Forgets a client. Returns the ids of its requests without a response.
    pub(super) fn leave(&mut self, client: u64) -> Vec<Value> {
        if self.clients.remove(&client).is_none() {
            return Vec::new();
        }
        self.tokens.retain(|_, (of, _)| *of != client);
        let mut open = Vec::new();
        self.requests.retain(|id, sent| {
            if sent.client == client && sent.is_open {
                open.extend(serde_json::from_str::<Value>(id));
            }
            sent.client != client
        });
        open
    }

    /// The reason if the connection has ended.
    pub(super) fn closed(&self) -> Option<String> {
        self.closed.clone()
    }

    pub(super) fn close(&mut self, reason: &str) {
        if self.closed.is_none() {
            self.closed = Some(reason.to_owned());
            self.to_all(|| Incoming::Closed(reason.to_owned()));
        }
        self.requests.clear();
    }

    /// True the first time: a server is told once that the client is initialized.
    pub(super) fn is_first_notice(&mut self) -> bool {
        !std::mem::replace(&mut self.was_initialized, true)
    }

    /// The message with the ids of the connection.
    pub(super) fn send(&mut self, client: u64, message: Value) -> Value {
        self.replace(client, message, None)
    }

    /// As [`Routes::send`], with the response for the caller, too.
    pub(super) fn send_watched(&mut self, client: u64, message: Value) -> (Value, oneshot::Receiver<Value>) {
        let (watcher, response) = oneshot::channel();
        (self.replace(client, message, Some(watcher)), response)
    }

    /// Notes the id of a message that is sent unchanged.
    pub(super) fn send_as_it_is(&mut self, client: u64, message: &Value) {
        if let (Some(id), true) = (message.get("id"), message.get("method").is_some()) {
            self.note(client, id.clone(), id.to_string(), None);
        }
    }

    fn replace(&mut self, client: u64, mut message: Value, watcher: Option<oneshot::Sender<Value>>) -> Value {
        if let Some(token) = message.pointer_mut("/params/_meta/progressToken") {
            let number = FIRST_ID + self.next();
            self.tokens.insert(number, (client, std::mem::replace(token, number.into())));
        }
        if message["method"] == "notifications/cancelled"
            && let Some(id) = message.pointer_mut("/params/requestId")
            && let Some(known) =
                self.requests.iter().find(|(_, sent)| sent.client == client && sent.id == *id && sent.is_open)
        {
            *id = serde_json::from_str(known.0).unwrap_or_default();
        }
        if let Some(id) = message.get_mut("id") {
            let number = FIRST_ID + self.next();
            let own = std::mem::replace(id, number.into());
            self.note(client, own, number.to_string(), watcher);
        }
        message
    }

    fn note(
        &mut self,
        client: u64,
        id: Value,
        on_connection: String,
        watcher: Option<oneshot::Sender<Value>>,
    ) {
        let number = self.next();
        self.requests.insert(on_connection, Sent { client, id, is_open: true, number, watcher });
    }

    fn next(&mut self) -> u64 {
        self.given += 1;
        self.given
    }

    /// Passes a message of the server on.
    pub(super) fn receive(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Message(message) => self.message(message),
            Incoming::NoResponse(id, reason) => {
                if let Some(sent) = self.requests.get_mut(&id.to_string()) {
                    sent.is_open = false;
                    let (client, id) = (sent.client, sent.id.clone());
                    self.deliver(client, Incoming::NoResponse(id, reason));
                }
            }
            Incoming::Closed(reason) => self.close(&reason),
            Incoming::NotJson(text) => self.to_all(|| Incoming::NotJson(text.clone())),
            Incoming::Violation(violation) => self.to_all(|| Incoming::Violation(violation.clone())),
        }
    }

    fn message(&mut self, message: Value) {
        match (message.get("method").is_some(), message.get("id").is_some()) {
            (true, true) => self.question(message),
            (true, false) => self.notification(message),
            (false, _) => self.response(message),
        }
    }

    /// A request of the server.
    fn question(&mut self, message: Value) {
        let open = self.requests.values().filter(|sent| sent.is_open);
        let newest = open.max_by_key(|sent| sent.number).map(|sent| sent.client);
        if let Some(client) = newest.or_else(|| self.newest_client()) {
            self.deliver(client, Incoming::Message(message));
        }
    }

    fn notification(&mut self, mut message: Value) {
        let token = message.pointer("/params/progressToken").and_then(Value::as_u64);
        if let Some((client, own)) = token.and_then(|token| self.tokens.get(&token)) {
            let client = *client;
            message["params"]["progressToken"] = own.clone();
            return self.deliver(client, Incoming::Message(message));
        }
        let subscription = message["params"]["_meta"].get(SUBSCRIPTION).map(|id| match id {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        if let Some(sent) = subscription.and_then(|id| self.requests.get(&id)) {
            let client = sent.client;
            message["params"]["_meta"][SUBSCRIPTION] = sent.id.clone();
            return self.deliver(client, Incoming::Message(message));
        }
        self.to_all(|| Incoming::Message(message.clone()));
    }

    fn response(&mut self, mut message: Value) {
        let id = message.get("id").cloned().unwrap_or_default();
        if let Some(sent) = self.requests.get_mut(&id.to_string()) {
            sent.is_open = false;
            if let Some(watcher) = sent.watcher.take() {
                let _ = watcher.send(message.clone());
            }
            let (client, own) = (sent.client, sent.id.clone());
            message["id"] = own;
            return self.deliver(client, Incoming::Message(message));
        }
        // The client of such an id has left, perhaps with its process.
        if id.as_u64().is_some_and(|id| (FIRST_ID..=FIRST_ID + self.given).contains(&id)) {
            return;
        }
        let mut waiting: Vec<u64> =
            self.requests.values().filter(|sent| sent.is_open).map(|sent| sent.client).collect();
        waiting.sort_unstable();
        waiting.dedup();
        if waiting.is_empty() {
            waiting.extend(self.newest_client());
        }
        for client in waiting {
            self.deliver(client, Incoming::Message(message.clone()));
        }
    }

    fn newest_client(&self) -> Option<u64> {
        self.clients.keys().next_back().copied()
    }

    pub(super) fn deliver(&self, client: u64, incoming: Incoming) {
        if let Some(sender) = self.clients.get(&client) {
            // A client that no longer reads is about to leave.
            let _ = sender.send(incoming);
        }
    }

    fn to_all(&self, message: impl Fn() -> Incoming) {
        for sender in self.clients.values() {
            let _ = sender.send(message());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    fn joined(routes: &mut Routes) -> (u64, UnboundedReceiver<Incoming>) {
        let (sender, receiver) = unbounded_channel();
        (routes.join(sender), receiver)
    }

    fn received(receiver: &mut UnboundedReceiver<Incoming>) -> Vec<Value> {
        let mut all = Vec::new();
        while let Ok(Incoming::Message(message)) = receiver.try_recv() {
            all.push(message);
        }
        all
    }

    #[test]
    fn responses_progress_and_questions_reach_the_client_they_belong_to() {
        let mut routes = Routes::default();
        let ((a, mut to_a), (b, mut to_b)) = (joined(&mut routes), joined(&mut routes));
        let call = json!({"id": 1, "method": "tools/call", "params": {"_meta": {"progressToken": "mine"}}});
        let (of_a, of_b) = (routes.send(a, call.clone()), routes.send(b, call));
        assert_ne!(of_a["id"], of_b["id"]);
        let token = of_a["params"]["_meta"]["progressToken"].clone();
        let progress =
            json!({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}});
        routes.receive(Incoming::Message(progress));
        routes.receive(Incoming::Message(json!({"id": of_a["id"], "result": "a"})));
        routes.receive(Incoming::Message(json!({"id": 0, "method": "elicitation/create"})));
        routes.receive(Incoming::Message(json!({"method": "notifications/message"})));
        let to_a = received(&mut to_a);
        assert_eq!(to_a[0]["params"]["progressToken"], "mine");
        assert_eq!(to_a[1], json!({"id": 1, "result": "a"}));
        assert_eq!((to_a.len(), to_a[2]["method"].as_str()), (3, Some("notifications/message")));
        let to_b = received(&mut to_b);
        assert_eq!(to_b[0]["method"], "elicitation/create", "only b waits for a response");
        assert_eq!(to_b.len(), 2);
    }

    #[test]
    fn a_second_response_reaches_its_client_and_one_of_a_client_that_left_nobody() {
        let mut routes = Routes::default();
        let ((a, mut to_a), (_b, mut to_b)) = (joined(&mut routes), joined(&mut routes));
        let sent = routes.send(a, json!({"id": 7, "method": "ping"}));
        let answer = json!({"id": sent["id"], "result": {}});
        routes.receive(Incoming::Message(answer.clone()));
        routes.receive(Incoming::Message(answer.clone()));
        assert_eq!(received(&mut to_a).len(), 2);
        let open = routes.send(a, json!({"id": 8, "method": "ping"}));
        assert_eq!(routes.leave(a), [open["id"].clone()]);
        routes.receive(Incoming::Message(answer));
        assert!(received(&mut to_b).is_empty());
    }

    #[test]
    fn cancellations_name_the_id_of_the_connection_and_raw_ids_stay() {
        let mut routes = Routes::default();
        let (a, mut to_a) = joined(&mut routes);
        let sent = routes.send(a, json!({"id": 3, "method": "tools/call"}));
        let cancel = json!({"method": "notifications/cancelled", "params": {"requestId": 3}});
        assert_eq!(routes.send(a, cancel)["params"]["requestId"], sent["id"]);
        routes.send_as_it_is(a, &json!({"id": "raw", "method": "ping"}));
        routes.receive(Incoming::Message(json!({"id": "raw", "result": {}})));
        routes.receive(Incoming::Message(json!({"id": null, "error": {}})));
        assert_eq!(received(&mut to_a).len(), 2);
    }
}
