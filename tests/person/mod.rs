//! A client whose person answers forms, one after the other.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use gatewright_core::rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ProtocolVersion},
    service::{ClientLifecycleMode, RequestContext, RunningService},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A connection of a person.
pub type Client = RunningService<RoleClient, Person>;

/// The person, with the answers to come and the questions so far.
#[derive(Clone, Default)]
pub struct Person {
    is_mute: bool,
    says: Arc<Mutex<VecDeque<Value>>>,
    asked: Arc<Mutex<Vec<String>>>,
    meanwhile: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Person {
    pub fn saying(answers: impl IntoIterator<Item = Value>) -> Self {
        Self { says: Arc::new(Mutex::new(answers.into_iter().collect())), ..Self::default() }
    }

    /// One whose client cannot ask.
    pub fn mute() -> Self {
        Self { is_mute: true, ..Self::default() }
    }

    /// Does this before each answer.
    #[allow(dead_code, reason = "not all test crates do")]
    pub fn after(self, meanwhile: impl Fn() + Send + Sync + 'static) -> Self {
        Self { meanwhile: Some(Arc::new(meanwhile)), ..self }
    }

    /// Takes the questions so far.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        if !self.is_mute {
            info.capabilities = ClientCapabilities::builder().enable_elicitation().build();
        }
        info
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else { panic!("a form") };
        self.asked.lock().unwrap().push(message);
        self.meanwhile.iter().for_each(|meanwhile| meanwhile());
        let answer = self.says.lock().unwrap().pop_front();
        Ok(made(answer.expect("it was not to be asked again")))
    }
}

/// The lifecycle of a client of the newer or the older era.
pub fn lifecycle(modern: bool) -> ClientLifecycleMode {
    match modern {
        true => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] },
        false => ClientLifecycleMode::Initialize,
    }
}

/// The answer that approves.
pub fn yes() -> Value {
    json!({"action": "accept", "content": {"approve": true}})
}

/// An answer that does not.
pub fn no() -> Value {
    json!({"action": "decline"})
}

/// A value of the model that is written as JSON.
pub fn made<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}
