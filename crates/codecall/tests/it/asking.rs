//! Questions of tools, and clients whose users answer them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gatewright_core::rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
        InputRequiredResult,
    },
    service::RequestContext,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub fn made<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A question for a name, under the key `name`.
pub fn question(message: &str) -> Value {
    json!({"name": {"method": "elicitation/create", "params": {"mode": "form", "message": message,
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}}})
}

/// An answer that asks for a name.
pub fn asks(message: &str, state: &str) -> InputRequiredResult {
    made(json!({"resultType": "input_required", "requestState": state, "inputRequests": question(message)}))
}

/// A client whose user says who they are.
#[derive(Clone)]
pub struct User {
    pub name: &'static str,
    pub can_answer: bool,
    pub asked: Arc<AtomicUsize>,
    /// Time that the user thinks about a question.
    pub thinks: Duration,
}

impl User {
    pub fn named(name: &'static str) -> Self {
        Self { name, can_answer: true, asked: Arc::default(), thinks: Duration::ZERO }
    }

    /// A client without the capability to be asked.
    pub fn mute() -> Self {
        Self { can_answer: false, ..Self::named("") }
    }
}

impl ClientHandler for User {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        if self.can_answer {
            info.capabilities = ClientCapabilities::builder().enable_elicitation().build();
        }
        info
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(self.thinks).await;
        let mut answer = ElicitResult::new(ElicitationAction::Accept);
        answer.content = Some(made(json!({"name": self.name})));
        Ok(answer)
    }
}
