//! POSTs to a server over HTTP+SSE, each of which ends with the request it carries.
//!
//! The answer to a request comes on the event stream, so that a POST may be left open by the server for long after it. Such POSTs are few
//! at a time, and so are those of answers and cancellations. Their waiting is bounded in `outgoing`.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gatewright_core::ConnectionThread;
use http::HeaderMap;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{http_error::PostError, outgoing::cancelled};

/// Longest time for a server to accept a message.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(30);
/// The same for answers to its requests, for cancellations, and for requests that it answered already.
const SHORTLY: Duration = Duration::from_secs(10);
/// POSTs at a time of answers, of cancellations, and of requests that are answered already.
const AT_A_TIME: usize = 8;

/// Posts messages to one server.
#[derive(Debug)]
pub(crate) struct Posts {
    client: reqwest::Client,
    connections: ConnectionThread,
    endpoint: url::Url,
    headers: HeaderMap,
    answers: Arc<Semaphore>,
    cancellations: Arc<Semaphore>,
    open: Arc<OpenPosts>,
}

impl Posts {
    /// Posts to `endpoint` with these headers.
    pub(crate) fn new(
        (client, connections): (reqwest::Client, ConnectionThread),
        endpoint: url::Url,
        headers: HeaderMap,
    ) -> Self {
        let places = || Arc::new(Semaphore::new(AT_A_TIME));
        let open = Arc::new(OpenPosts { table: Mutex::default(), answered: places() });
        Self { client, connections, endpoint, headers, answers: places(), cancellations: places(), open }
    }

    /// Posts a message. A cancellation ends the POST of its request at once.
    pub(crate) fn send(
        &self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), PostError>> + Send + 'static {
        let cancels = cancelled(&message);
        if let Some(id) = cancels
            && let Some(post) = self.open.get(id)
        {
            post.cancelled.cancel();
        }
        let places = match &message {
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Some(self.answers.clone()),
            _ => cancels.map(|_| self.cancellations.clone()),
        };
        let open = match &message {
            JsonRpcMessage::Request(request) => Some(OpenPosts::open(&self.open, &request.id)),
            _ => None,
        };
        let within = if places.is_some() { SHORTLY } else { ACCEPTED_WITHIN };
        let request = self.client.post(self.endpoint.clone()).headers(self.headers.clone()).timeout(within);
        let connections = self.connections.clone();
        async move {
            let _place = match places {
                Some(places) => places.acquire_owned().await.ok(),
                None => None,
            };
            let posting = async move {
                let sending = request.json(&message).send();
                drop(message);
                let sent = connections.drive(sending).await;
                let status = sent.map_err(|error| PostError::Request(error.into()))?.status();
                if status.is_success() { Ok(()) } else { Err(PostError::Status(status)) }
            };
            match open {
                Some(open) => open.unless_over(posting).await,
                None => posting.await,
            }
        }
    }

    /// Notes that the server answered a request.
    pub(crate) fn received(&self, message: &ServerJsonRpcMessage) {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if let Some(post) = id.and_then(|id| self.open.get(id)) {
            post.answered.cancel();
        }
    }
}

/// The POSTs of requests that the server has not accepted yet.
#[derive(Debug)]
struct OpenPosts {
    table: Mutex<HashMap<RequestId, Ends>>,
    /// Places of requests that are answered already.
    answered: Arc<Semaphore>,
}

/// Two ways for a request to end.
#[derive(Debug, Clone, Default)]
struct Ends {
    cancelled: CancellationToken,
    answered: CancellationToken,
}

impl OpenPosts {
    fn open(posts: &Arc<Self>, id: &RequestId) -> OpenPost {
        let (id, ends) = (id.clone(), Ends::default());
        posts.lock().insert(id.clone(), ends.clone());
        OpenPost { posts: posts.clone(), id, ends }
    }

    fn get(&self, id: &RequestId) -> Option<Ends> {
        // `rmcp` takes the text "7" for the number 7 in answers.
        let number = match id {
            RequestId::String(text) => text.parse().ok().map(RequestId::Number),
            RequestId::Number(_) => None,
        };
        let table = self.lock();
        table.get(id).or_else(|| table.get(&number?)).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Ends>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The POST of one request; not open any more when dropped.
#[derive(Debug)]
struct OpenPost {
    posts: Arc<OpenPosts>,
    id: RequestId,
    ends: Ends,
}

impl OpenPost {
    /// Waits for the POST. Drops it when the request is cancelled; soon, or at once if there are many, when it is answered.
    async fn unless_over(
        &self,
        posting: impl Future<Output = Result<(), PostError>>,
    ) -> Result<(), PostError> {
        let mut posting = std::pin::pin!(posting);
        tokio::select! {
            biased;
            posted = &mut posting => return posted,
            () = self.ends.cancelled.cancelled() => return Ok(()),
            () = self.ends.answered.cancelled() => {}
        }
        // Most servers accept a message about when they answer it. To close the connection would cost the next call a new one.
        if let Ok(_place) = self.posts.answered.try_acquire() {
            let _ = tokio::time::timeout(SHORTLY, posting).await;
        }
        Ok(())
    }
}

impl Drop for OpenPost {
    fn drop(&mut self) {
        self.posts.lock().remove(&self.id);
    }
}
