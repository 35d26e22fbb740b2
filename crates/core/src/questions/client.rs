//! Asks a client of the era with sessions: with requests, on the stream of the request that it waits for.

use std::time::Duration;

use futures::future::try_join_all;
use rmcp::{
    RoleServer, ServiceError,
    model::{
        CancelledNotification, CancelledNotificationParam, ClientResult, InputRequest, InputRequests,
        InputResponses, RequestId,
    },
    service::{Peer, PeerRequestOptions, RequestContext},
};
use tokio_util::sync::CancellationToken;

use super::{
    CannotAsk, Questions,
    kind::{can_answer, request_of, response_of},
};
use crate::Era;

/// Asks the client of `context` all of `requests` at once, and waits up to `longest` for its answers. Nothing is asked unless the client
/// declared the capability for each of them. Dropped, it takes the open questions back.
///
/// To be awaited on the task of the request: elsewhere the questions do not travel on its stream.
///
/// # Errors
/// The client cannot be asked one of the questions, or did not answer all of them.
pub async fn ask_client(
    context: &RequestContext<RoleServer>,
    requests: InputRequests,
    longest: Duration,
) -> Result<InputResponses, CannotAsk> {
    if Era::of(context).is_stateless() {
        return Err(CannotAsk::Stateless);
    }
    can_answer(&requests, &context.client_capabilities().unwrap_or_default())?;
    let questions = context.extensions.get::<Questions>();
    if let Some(questions) = questions {
        questions.count(requests.len())?;
        questions.keep(&requests)?;
    }
    // The deadline of the call that asks stands still meanwhile.
    let _thinking = questions.map(Questions::begin);
    let never = CancellationToken::new();
    let asked = requests.into_iter().map(async |(key, question)| {
        let answer = ask_one(context, question.clone(), &never).await?;
        response_of(&question, answer).map(|response| (key, response)).ok_or(CannotAsk::BadAnswer)
    });
    tokio::select! {
        answered = tokio::time::timeout(longest, try_join_all(asked)) => match answered {
            Ok(answers) => answers.map(InputResponses::from_iter),
            Err(_) => Err(CannotAsk::TimedOut(longest)),
        },
        () = context.ct.cancelled() => Err(CannotAsk::Gone),
    }
}

/// Asks one question of a client that is known to take it. On `over`, it is taken back.
pub(crate) async fn ask_one(
    context: &RequestContext<RoleServer>,
    question: InputRequest,
    over: &CancellationToken,
) -> Result<ClientResult, CannotAsk> {
    if over.is_cancelled() {
        return Err(CannotAsk::CallOver);
    }
    let request = request_of(question).ok_or(CannotAsk::Capability("unknown"))?;
    let options = PeerRequestOptions::no_options();
    let mut handle =
        context.peer.send_cancellable_request(request, options).await.map_err(|_| CannotAsk::Gone)?;
    let mut open = OpenQuestion { peer: context.peer.clone(), id: Some(handle.id.clone()) };
    let answer = tokio::select! {
        biased;
        answer = &mut handle.rx => answer,
        () = over.cancelled() => {
            open.take_back().await;
            return Err(CannotAsk::CallOver);
        }
    };
    open.id = None;
    match answer {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(ServiceError::McpError(error))) => Err(CannotAsk::Refused(error)),
        Ok(Err(ServiceError::UnexpectedResponse)) => Err(CannotAsk::BadAnswer),
        Ok(Err(_)) | Err(_) => Err(CannotAsk::Gone),
    }
}

/// Takes the question back when dropped.
struct OpenQuestion {
    peer: Peer<RoleServer>,
    id: Option<RequestId>,
}

impl OpenQuestion {
    /// Tells the client that the answer is not needed any more.
    fn take_back(&mut self) -> impl Future<Output = ()> + Send + use<> {
        let peer = self.peer.clone();
        let id = self.id.take();
        async move {
            let Some(id) = id else { return };
            let reason = "the answer is not needed any more".to_owned();
            let notification =
                CancelledNotification::new(CancelledNotificationParam::new(Some(id), Some(reason)));
            let _ = peer.send_notification(notification.into()).await;
        }
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        if self.id.is_some()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // Ends with the connection at the latest.
            runtime.spawn(self.take_back());
        }
    }
}
