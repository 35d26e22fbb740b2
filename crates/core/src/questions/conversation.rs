//! A request to an app, with the questions that come up answered.
//!
//! A client of the era with sessions is asked with requests on the stream of its request, and the app's request is sent again with the
//! answers. One of the era without sessions gets the questions as a result: those of an app of that era as they are, and those of an
//! older server while its call is held open.

use std::{pin::pin, time::Duration};

use futures::future::{Either, select};
use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolResponse, ContentBlock, GetPromptResponse, InputRequiredResult, InputResponses,
        ReadResourceResponse, ServerResult,
    },
    service::RequestContext,
};
use tokio::time::{Instant, timeout_at};

use super::{
    AnsweredLater, AnswersByRetry, AskedAtOnce, CannotAsk, MOST_QUESTION_BYTES, MOST_QUESTIONS, MOST_ROUNDS,
    Questions, Unasked, addresses, ask_client, can_answer,
    kind::{answers_any, leads_to_web},
    open_calls::{CallKey, NotOpen, OpenCall, OpenCalls},
    open_questions::{News, OpenCallId, OpenQuestions, Outcome, json_len},
    outline,
    room::QuestionRoom,
};
use crate::{AppFuture, CallerAddress, Claimant, Era, Principal, codes};

/// First wait before a request is sent again that an app answered with nothing but a state; it doubles up to eight times this.
const SOONEST: Duration = Duration::from_millis(50);

/// The part of a request about questions that were asked before.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) responses: Option<InputResponses>,
    /// The app's own state.
    pub(crate) state: Option<String>,
    /// The call that is held open for the answers.
    pub(crate) open_call: Option<OpenCallId>,
}

/// A response that may be a question.
pub(crate) trait Asking: From<InputRequiredResult> + Into<ServerResult> + Send + 'static {
    /// The question that it is, or itself.
    fn question(self) -> Result<InputRequiredResult, Self>;

    /// The response that a result is.
    fn of(result: ServerResult) -> Option<Self>;

    /// Says in a failure what could not be asked before.
    fn note(&mut self, _asked: &Unasked) {}
}

impl Asking for CallToolResponse {
    fn question(self) -> Result<InputRequiredResult, Self> {
        match self {
            Self::InputRequired(asks) => Ok(asks),
            other => Err(other),
        }
    }

    fn of(result: ServerResult) -> Option<Self> {
        match result {
            ServerResult::CallToolResult(result) => Some(Self::Complete(result)),
            ServerResult::InputRequiredResult(asks) => Some(Self::InputRequired(asks)),
            ServerResult::CreateTaskResult(task) => Some(Self::Task(task)),
            _ => None,
        }
    }

    fn note(&mut self, asked: &Unasked) {
        let Self::Complete(result) = self else { return };
        if result.is_error != Some(true) {
            return;
        }
        result.content.push(ContentBlock::text(asked.to_string()));
        let meta = result.meta.get_or_insert_default();
        meta.entry("code").or_insert_with(|| codes::INPUT_REQUIRED.into());
    }
}

impl Asking for ReadResourceResponse {
    fn question(self) -> Result<InputRequiredResult, Self> {
        match self {
            Self::InputRequired(asks) => Ok(asks),
            other => Err(other),
        }
    }

    fn of(result: ServerResult) -> Option<Self> {
        match result {
            ServerResult::ReadResourceResult(result) => Some(Self::Complete(result)),
            ServerResult::InputRequiredResult(asks) => Some(Self::InputRequired(asks)),
            _ => None,
        }
    }
}

impl Asking for GetPromptResponse {
    fn question(self) -> Result<InputRequiredResult, Self> {
        match self {
            Self::InputRequired(asks) => Ok(asks),
            other => Err(other),
        }
    }

    fn of(result: ServerResult) -> Option<Self> {
        match result {
            ServerResult::GetPromptResult(result) => Some(Self::Complete(result)),
            ServerResult::InputRequiredResult(asks) => Some(Self::InputRequired(asks)),
            _ => None,
        }
    }
}

/// Why a request has no response.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The app failed.
    App(ErrorData),
    /// The app did not answer in time.
    TimedOut,
    /// A question could not be asked.
    Question(Box<Unasked>),
    /// The call that the request names does not wait for answers.
    Over,
    /// The request does not fit the call that it names.
    Unfit(String),
}

/// A response, as its caller gets it.
pub(crate) enum Response<T> {
    /// The app's.
    App(T),
    /// Questions of a call that is held under this id.
    OpenCall(InputRequiredResult, OpenCallId),
}

/// Sends the request to the app, with answers to its questions. `true`: it may be sent once more.
type Sending<'s, T> = dyn FnMut(Answers, RequestContext<RoleServer>, bool) -> AppFuture<'static, Result<T, ErrorData>>
    + Send
    + 's;

/// One request to an app.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conversation<'a> {
    pub(crate) open_calls: &'a OpenCalls,
    pub(crate) principal: &'a Principal,
    /// Returns `true` if the app is a server elsewhere, which may ask while it works.
    pub(crate) is_remote: bool,
    /// Time that the app has.
    pub(crate) timeout: Duration,
    /// Time that the caller has for each answer.
    pub(crate) longest: Duration,
}

impl Conversation<'_> {
    /// Returns `true` if the call may be held open for answers that its caller gives in another request.
    pub(crate) fn may_hold(&self, context: &RequestContext<RoleServer>) -> bool {
        let by_retry = || {
            context.extensions.get::<AnswersByRetry>().is_some()
                && Era::of(context).is_stateless()
                && context.client_capabilities().is_some_and(|has| answers_any(&has))
        };
        self.is_remote && (context.extensions.get::<AnsweredLater>().is_some() || by_retry())
    }

    /// Sends a request, and has the app's questions answered or given to the caller. With a `key`, the call may be held open.
    pub(crate) async fn respond<T: Asking>(
        &self,
        answers: Answers,
        key: Option<CallKey>,
        context: RequestContext<RoleServer>,
        send: &mut Sending<'_, T>,
    ) -> Result<Response<T>, Unanswered> {
        let has = context.client_capabilities().unwrap_or_default();
        let is_stateless = Era::of(&context).is_stateless();
        let at_once = context.extensions.get::<AskedAtOnce>().is_some();
        let waits = context.extensions.get::<AnsweredLater>().is_some();
        let are_opened = addresses::are_opened(
            answers.state.as_deref(),
            answers.responses.iter().flat_map(InputResponses::values),
        );
        // The app asked for addresses by an error, and knows nothing of the answers.
        let answers = match are_opened.map_err(|why| Unanswered::Question(Box::new(why)))? {
            true => Answers::default(),
            false => answers,
        };
        // What takes more than one exchange is in a box: the futures of most requests would be as large otherwise.
        let sent = match (answers.open_call, key) {
            (Some(id), Some(key)) => {
                Box::pin(self.resume(id, &key, &answers.responses.unwrap_or_default(), &context)).await
            }
            (Some(_), None) => return Err(Unanswered::Over),
            (None, Some(key)) => Box::pin(self.begin(answers, key, context, send)).await,
            (None, None) if at_once && !is_stateless && answers_any(&has) => {
                return Box::pin(self.by_requests(answers, context, send)).await.map(Response::App);
            }
            (None, None) => self.once(answers, context, send).await.map(Response::App),
        };
        let may_wait = |asks: &InputRequiredResult| {
            let can_ask = |requests| can_answer(requests, &has).is_ok();
            waits || (at_once && is_stateless && asks.input_requests.as_ref().is_some_and(can_ask))
        };
        let response = match sent {
            Err(Unanswered::App(error)) => match addresses::question(&error).filter(may_wait) {
                Some(asks) => Response::App(asks.into()),
                None => return Err(Unanswered::App(error)),
            },
            sent => sent?,
        };
        let Response::App(response) = response else { return Ok(response) };
        let asks = match response.question() {
            Ok(asks) => asks,
            Err(response) => return Ok(Response::App(response)),
        };
        let requests = asks.input_requests.as_ref();
        if let Some(requests) = requests.filter(|requests| requests.len() > MOST_QUESTIONS) {
            return Err(unasked(outline(requests), CannotAsk::TooMany));
        }
        // A run of a script keeps them. The state of a saved plan within it is its journal.
        let is_long = |bytes: usize| bytes > MOST_QUESTION_BYTES;
        if waits
            && self.is_remote
            && (requests.is_some_and(|requests| is_long(json_len(requests)))
                || asks.request_state.as_ref().is_some_and(|state| is_long(state.len())))
        {
            let asks = requests.map(outline).unwrap_or_default();
            return Err(unasked(asks, CannotAsk::TooLong));
        }
        if let Some(requests) = requests
            && let Err(why) = requests.values().try_for_each(leads_to_web)
        {
            return Err(unasked(outline(requests), why));
        }
        if !at_once {
            return Ok(Response::App(asks.into()));
        }
        let can_ask = match is_stateless {
            true => requests.map_or(Ok(()), |requests| can_answer(requests, &has)),
            false => Err(CannotAsk::Capability(
                requests.and_then(|all| can_answer(all, &has).err()).map_or("elicitation", capability),
            )),
        };
        match can_ask {
            Ok(()) => Ok(Response::App(asks.into())),
            Err(why) => {
                let asks = requests.map(outline).unwrap_or_default();
                Err(unasked(asks, why))
            }
        }
    }

    /// Room for the questions of a request.
    fn question_room(&self, context: &RequestContext<RoleServer>) -> QuestionRoom {
        let of_run = || context.extensions.get::<AnsweredLater>()?.address;
        let address = CallerAddress::of(context).map(|at| at.0).or_else(of_run);
        self.open_calls.question_room(Claimant::of(self.principal, address))
    }

    /// Sends a request whose caller cannot be asked anything here.
    async fn once<T: Asking>(
        &self,
        answers: Answers,
        mut context: RequestContext<RoleServer>,
        send: &mut Sending<'_, T>,
    ) -> Result<T, Unanswered> {
        if !self.is_remote {
            let sent = tokio::time::timeout(self.timeout, send(answers, context, false));
            return sent.await.map_err(|_| Unanswered::TimedOut)?.map_err(Unanswered::App);
        }
        let questions = Questions::new(self.longest, self.question_room(&context), None);
        context.extensions.insert(questions.clone());
        let sent = questions.within(self.timeout, send(answers, context, false)).await;
        ended(sent.ok_or(Unanswered::TimedOut)?, &questions)
    }

    /// Sends a request, and asks its caller with requests as often as the app asks.
    async fn by_requests<T: Asking>(
        &self,
        mut answers: Answers,
        mut context: RequestContext<RoleServer>,
        send: &mut Sending<'_, T>,
    ) -> Result<T, Unanswered> {
        let questions = Questions::new(self.longest, self.question_room(&context), None);
        context.extensions.insert(questions.clone());
        let talk = async {
            let mut asks = String::new();
            let mut wait = SOONEST;
            for round in 0..=MOST_ROUNDS {
                let sent = send(std::mem::take(&mut answers), context.clone(), true).await;
                let question = match ended::<T>(sent, &questions)?.question() {
                    Ok(question) => question,
                    Err(response) => return Ok(response),
                };
                let requests = question.input_requests.unwrap_or_default();
                answers.state = question.request_state;
                if requests.is_empty() {
                    tokio::time::sleep(wait).await;
                    wait = (2 * wait).min(8 * SOONEST);
                    continue;
                }
                asks = outline(&requests);
                if round == MOST_ROUNDS {
                    break;
                }
                let _thinking = questions.begin();
                let asked = ask_client(&context, requests, self.longest).await;
                answers.responses = Some(asked.map_err(|why| unasked(asks.clone(), why))?);
            }
            Err(unasked(asks, CannotAsk::Rounds))
        };
        questions.within(self.timeout, talk).await.unwrap_or(Err(Unanswered::TimedOut))
    }

    /// Sends a request whose call is held open if it asks.
    async fn begin<T: Asking>(
        &self,
        answers: Answers,
        key: CallKey,
        mut context: RequestContext<RoleServer>,
        send: &mut Sending<'_, T>,
    ) -> Result<Response<T>, Unanswered> {
        let room = self.question_room(&context);
        let asked = OpenQuestions::new(room.clone());
        asked.attend(&context);
        let questions = Questions::new(self.longest, room, Some(asked.clone()));
        context.extensions.insert(questions.clone());
        context.extensions.insert(asked.progress());
        let sent = send(answers, context, false);
        let mut work: AppFuture<'static, Outcome> = Box::pin(async move { sent.await.map(Into::into) });
        let first = questions.within(self.timeout, async {
            loop {
                match select(&mut work, pin!(asked.news())).await {
                    Either::Left((outcome, _)) => return Err(Box::new(outcome)),
                    Either::Right((News::Over(outcome), _)) => return Err(outcome),
                    Either::Right((News::Asks, _)) => match self.open_calls.room(&asked) {
                        Some(room) => return Ok(room),
                        None => asked.refuse_all(),
                    },
                }
            }
        });
        match first.await {
            None => Err(Unanswered::TimedOut),
            Some(Err(outcome)) => over(*outcome, &questions),
            Some(Ok(room)) => {
                let call = self.open_calls.begin(key, asked, questions, room, work);
                match self.hold(call) {
                    Ok(asks) => Ok(asks),
                    Err(asks_nothing) => self.wait(*asks_nothing, Instant::now() + self.timeout).await,
                }
            }
        }
    }

    /// Answers questions of the call `id`.
    async fn resume<T: Asking>(
        &self,
        id: OpenCallId,
        key: &CallKey,
        responses: &InputResponses,
        context: &RequestContext<RoleServer>,
    ) -> Result<Response<T>, Unanswered> {
        let call = self.open_calls.take(id, key, responses).map_err(|why| match why {
            NotOpen::Over => Unanswered::Over,
            NotOpen::Changed => Unanswered::Unfit(
                "the arguments are not those of the call that waits for the answers: repeat those; the call goes on waiting"
                    .to_owned(),
            ),
            NotOpen::BadResponse(key) => Unanswered::Unfit(format!(
                "the value of `inputResponses.{key}` is no answer to what was asked; the call still waits for one"
            )),
        })?;
        call.asked.attend(context);
        self.wait(call, Instant::now() + self.timeout).await
    }

    /// Waits until a call is over or asks. One that asks is held.
    async fn wait<T: Asking>(&self, mut call: OpenCall, until: Instant) -> Result<Response<T>, Unanswered> {
        loop {
            match timeout_at(until, call.asked.news()).await {
                Err(_) => return Err(Unanswered::TimedOut),
                Ok(News::Over(outcome)) => return over(*outcome, &call.questions),
                Ok(News::Asks) if call.has_asked_enough() => {
                    let asks = outline(&call.asked.requests());
                    return Err(unasked(asks, CannotAsk::Rounds));
                }
                Ok(News::Asks) => match self.hold(call) {
                    Ok(asks) => return Ok(asks),
                    Err(asks_nothing) => call = *asks_nothing,
                },
            }
        }
    }

    /// Holds a call that asks. Gives it back if it asks nothing any more.
    fn hold<T>(&self, call: OpenCall) -> Result<Response<T>, Box<OpenCall>> {
        let (id, requests) = self.open_calls.hold(call, self.longest)?;
        Ok(Response::OpenCall(InputRequiredResult::from_input_requests(requests), id))
    }
}

/// The response at the end of a call. A failure says what could not be asked before.
fn ended<T: Asking>(sent: Result<T, ErrorData>, questions: &Questions) -> Result<T, Unanswered> {
    match (sent, questions.unasked()) {
        (Ok(mut response), Some(unasked)) => {
            response.note(&unasked);
            Ok(response)
        }
        (Ok(response), None) => Ok(response),
        (Err(error), Some(unasked)) => {
            Err(Unanswered::Question(Box::new(Unasked { said: Some(error.message.into_owned()), ..unasked })))
        }
        (Err(error), None) => Err(Unanswered::App(error)),
    }
}

fn over<T: Asking>(outcome: Outcome, questions: &Questions) -> Result<Response<T>, Unanswered> {
    let bad = || ErrorData::internal_error("the app answered with a result of another kind", None);
    let sent = outcome.and_then(|result| T::of(result).ok_or_else(bad));
    ended(sent, questions).map(Response::App)
}

fn unasked(asks: String, why: CannotAsk) -> Unanswered {
    Unanswered::Question(Box::new(Unasked::new(asks, why)))
}

fn capability(why: CannotAsk) -> &'static str {
    match why {
        CannotAsk::Capability(capability) => capability,
        _ => "elicitation",
    }
}
