//! The flow of a request that policies decided on: its approval, then the app, whose questions are asked or given to the caller.

use rmcp::{
    ErrorData, RoleServer,
    model::{InputRequiredResult, InputResponses},
    service::RequestContext,
};

use crate::{
    AppFuture, InvokeError, Invoker, Principal,
    access::{Decided, Requested},
    approvals::{Answered, Passage},
    questions::{Answers, Asking as _, CallKey, Conversation, OpenCallId, Response, Unanswered},
};

/// A request on its way.
pub(crate) struct RequestFlow<'a, O: Requested> {
    /// Public name of the object, which states are sealed for.
    pub(crate) sealed_for: &'a str,
    pub(crate) conversation: Conversation<'a>,
    /// The call may be held open under it.
    pub(crate) key: Option<CallKey>,
    pub(crate) brought: Brought,
    pub(crate) decided: Decided<O>,
}

/// The part of a request about the questions that were asked before.
#[derive(Debug)]
pub(crate) struct Brought {
    pub(crate) answers: Answers,
    /// The decision on its approval.
    pub(crate) answered: Option<Answered>,
}

impl Invoker {
    /// The part of a request for `object`, which states are sealed for, about questions that were asked before.
    ///
    /// # Errors
    /// A sentence, when its state was not given to this principal for this object.
    pub(crate) fn brought(
        &self,
        principal: &Principal,
        object: &str,
        mut responses: Option<InputResponses>,
        sealed: Option<String>,
    ) -> Result<Brought, String> {
        let Some(sealed) = sealed else {
            return Ok(Brought { answers: Answers { responses, ..Answers::default() }, answered: None });
        };
        if let Some(state) = self.approvals().sealer().open_approval(principal, object, &sealed) {
            let (answered, state) = Answered::of(state, &mut responses);
            return Ok(Brought {
                answers: Answers { responses, state, open_call: None },
                answered: Some(answered),
            });
        }
        let state = sealed.split_once('.').map_or(&*sealed, |(state, _home)| state);
        let answers = if let Some(id) = self.sealer().unseal_open_call(principal, object, state) {
            Answers { responses, open_call: OpenCallId::named(&id), state: None }
        } else if let Some(state) = self.sealer().open_state(principal, object, state) {
            Answers { responses, state: Some(state), open_call: None }
        } else {
            return Err(
                "`requestState` was not given to you for this request; repeat the request that got it, with its arguments"
                    .to_owned(),
            );
        };
        Ok(Brought { answers, answered: None })
    }

    /// Takes a request to its app. A question of the app, or for an approval, is the response where it is not asked at once.
    pub(crate) async fn take<O: Requested>(
        &self,
        flow: RequestFlow<'_, O>,
        context: RequestContext<RoleServer>,
    ) -> Result<O::Response, NotTaken> {
        let RequestFlow { sealed_for, conversation, key, brought, decided } = flow;
        let principal = conversation.principal;
        let is_open = brought.answers.open_call.is_some();
        let passage = self.passage(decided, sealed_for, brought.answered, is_open, &context).await?;
        let (request, granted) = match passage {
            Passage::Passes(request) => (request, None),
            Passage::Approved(request, granted) => (request, Some(granted)),
            Passage::Asks(asks) => return Ok(asks.into()),
        };
        // An app that is taken out of the registry ends when the last of these is gone.
        let _open = request.object().owner().open.token();
        let cancelled = context.ct.clone();
        let mut request = Some(request);
        let mut send = |answers: Answers, context, again| -> AppFuture<'static, _> {
            let request = if again { request.clone() } else { request.take() };
            Box::pin(async move {
                match request {
                    Some(request) => request.make(answers, context).await,
                    None => Err(ErrorData::internal_error("the request was made already", None)),
                }
            })
        };
        let response = tokio::select! {
            biased;
            response = conversation.respond(brought.answers, key, context, &mut send) => response?,
            () = cancelled.cancelled() => return Err(NotTaken::Cancelled),
        };
        let response: O::Response = match response {
            Response::App(response) => response,
            Response::OpenCall(asks, id) => {
                return Ok(self.questions_of_open_call(principal, sealed_for, asks, id).into());
            }
        };
        match response.question() {
            Ok(mut asks) => {
                match &granted {
                    Some(granted) => self.seal_granted(principal, sealed_for, granted, &mut asks),
                    None => self.seal_state(principal, sealed_for, &mut asks),
                }
                Ok(asks.into())
            }
            Err(response) => Ok(response),
        }
    }

    fn seal_state(&self, principal: &Principal, object: &str, asks: &mut InputRequiredResult) {
        if let Some(state) = &mut asks.request_state {
            *state = self.sealer().state(principal, object, state);
        }
    }
}

/// Why a request has no response.
pub(crate) enum NotTaken {
    /// It was not made.
    Stopped(InvokeError),
    /// Its app gave none.
    Unanswered(Unanswered),
    Cancelled,
}

impl From<InvokeError> for NotTaken {
    fn from(error: InvokeError) -> Self {
        Self::Stopped(error)
    }
}

impl From<Unanswered> for NotTaken {
    fn from(why: Unanswered) -> Self {
        Self::Unanswered(why)
    }
}
