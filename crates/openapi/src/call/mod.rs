//! Calls of operations: an HTTP request for a tool's arguments, and the tool's result for the response.
//!
//! Documents and tools are elsewhere. `encode`, `form`, `target`, `body` and `multipart` write requests, within the limits of `bounded`;
//! `credentials` and `token` authorize them; `http` sends them; `answer`, `stream` and `failure` make results. `collect` follows `pages`.

mod answer;
mod body;
mod bounded;
mod bytes;
mod collect;
mod connector;
mod credentials;
mod encode;
mod failure;
mod fetch;
mod fields;
mod form;
mod health;
mod http;
#[cfg(test)]
mod http2_tests;
mod items;
mod link;
mod media;
mod multipart;
mod names;
mod page_arguments;
mod page_signs;
mod pages;
mod redactor;
mod response;
mod stream;
mod target;
mod token;
mod traffic;

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use ::http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, LOCATION},
};
use gatewright_core::{
    AnswerRoom, BearerToken, HOP_BY_HOP, HttpTrail, InvalidField, Paginate, Paging, Secret,
};
use rmcp::model::{CallToolResult, JsonObject};
use tokio::sync::{Semaphore, SemaphorePermit};
use url::Url;

pub use self::stream::Reporter;
use self::{
    answer::Memory,
    bounded::{BoundedText, Limit},
    credentials::{Issuers, NeededToken},
    failure::CallError,
    health::LastCalls,
    http::{HttpClient, Outgoing, Retries},
    names::{FieldWriter, TakenNames},
    pages::PageParameters,
    redactor::Redactor,
    response::Response,
    stream::Sequence,
    target::Places,
    token::Tokens,
};
pub(crate) use self::{
    credentials::{Schemes, fits, token_endpoint},
    fetch::Validators,
};
use crate::{ApiUser, Location, Operation, SecurityScheme, config::OpenapiConfig};

/// Media types that answers are asked for where the document names none.
const ANY: &str = "application/json, */*;q=0.8";
/// Media types of `Accept`, at most.
const MOST_ACCEPTED: usize = 20;
/// Bytes of one of them.
const LONGEST_ACCEPTED: usize = 200;

/// Parts of a document that calls need beside the operation.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Security schemes, by name.
    pub schemes: BTreeMap<Arc<str>, SecurityScheme>,
    /// The document's own URL, if it has one.
    pub document: Option<Url>,
    /// An operation of the document asks for credentials.
    pub is_secured: bool,
}

impl Surroundings {
    /// Those of a document with these operations.
    pub fn new<'o>(
        schemes: BTreeMap<Arc<str>, SecurityScheme>,
        document: Option<Url>,
        mut operations: impl Iterator<Item = &'o Operation>,
    ) -> Self {
        Self { schemes, document, is_secured: operations.any(|operation| !operation.security.is_empty()) }
    }
}

/// A call of an operation.
pub struct OperationCall<'c> {
    /// The operation.
    pub operation: &'c Operation,
    /// Parts of the document that belong to it.
    pub surroundings: &'c Surroundings,
    /// Arguments of the tool.
    pub arguments: &'c JsonObject,
    /// The user for whom the API is called, where users sign in.
    pub user: Option<ApiUser>,
    /// Has the items of all pages collected.
    pub paginate: Option<Paginate>,
    /// Memory for the answer.
    pub room: Option<AnswerRoom>,
    /// Hears of items of an answer as they arrive.
    pub reporter: Reporter<'c>,
    /// Notes the requests, if the call is traced.
    pub trail: Option<HttpTrail>,
}

/// Outcome of a call.
#[derive(Debug)]
pub enum Called {
    /// The result of the tool.
    Done(CallToolResult),
    /// The user has to sign in first, for these scopes.
    SignIn(Vec<String>),
}

/// The result of a call that cannot be made for its user.
pub(crate) fn user_refused(why: String) -> CallToolResult {
    CallError::NoUserToken(why).into_result()
}

/// A request, before it has a token.
struct Prepared {
    request: Outgoing,
    /// The server.
    base: Url,
    token: Option<NeededToken>,
    /// Fields of the query that are credentials.
    query: Vec<(String, String)>,
}

/// Source of the token of a request.
#[derive(Debug, Clone, Copy)]
struct TokenSource<'c> {
    needed: Option<&'c NeededToken>,
    user: Option<&'c ApiUser>,
}

/// Sends the calls of one app. Connections, tokens and limits are shared by all of them.
#[derive(Debug)]
pub struct HttpApi {
    config: OpenapiConfig,
    base: Option<Url>,
    headers: HeaderMap,
    http: HttpClient,
    tokens: Tokens,
    redactor: Redactor,
    places: Semaphore,
    pub(crate) last_calls: LastCalls,
}

impl HttpApi {
    /// An API with the settings of `config`.
    ///
    /// # Errors
    /// A field of the configuration cannot be used, or no HTTP client can be made.
    pub fn new(config: OpenapiConfig) -> Result<Self, InvalidField> {
        if let Some(problem) = config.problems().into_iter().next() {
            return Err(problem);
        }
        let certificate = config.certificate()?;
        let http = HttpClient::new(config.allow_private, config.connect_timeout, certificate.as_ref())
            .map_err(|problem| InvalidField::new("", format!("the HTTP client cannot be made: {problem}")))?;
        let redactor = Redactor::new(&config.secrets(), &config.parts_of_secrets());
        Ok(Self {
            base: config.base()?,
            headers: config.request_headers()?,
            places: Semaphore::new(config.max_concurrency),
            http,
            tokens: Tokens::default(),
            last_calls: LastCalls::default(),
            redactor,
            config,
        })
    }

    /// The settings.
    pub fn config(&self) -> &OpenapiConfig {
        &self.config
    }

    /// Calls an operation. Every failure is a result that says so. Dropped, it gives up the request.
    pub async fn call(&self, mut call: OperationCall<'_>) -> Called {
        let mut memory = Memory::new(call.room.take());
        // A part of the time is left to hand on what came of an answer without an end.
        let until = Instant::now() + self.config.timeout.mul_f64(0.9);
        let called = match call.paginate.take() {
            Some(paginate) => self.collect(&call, &paginate, &mut memory, until).await,
            None => self.call_once(&call, &mut memory, until).await,
        };
        match &called {
            Ok(_) | Err(CallError::TooLarge(_) | CallError::BadAnswer(_)) => self.last_calls.reached(),
            Err(CallError::Unreachable(_)) => self.last_calls.missed(),
            Err(_) => {}
        }
        match called {
            Ok(result) => Called::Done(result),
            Err(CallError::SignIn(scopes)) => Called::SignIn(scopes),
            Err(error) => Called::Done(error.into_result()),
        }
    }

    async fn call_once(
        &self,
        call: &OperationCall<'_>,
        memory: &mut Memory,
        until: Instant,
    ) -> Result<CallToolResult, CallError> {
        let prepared = self.prepare(call, call.arguments)?;
        let (_place, response) = self.send(call, prepared, until).await?;
        self.result(call.operation, response, memory, until, call.reporter).await
    }

    /// The request of a call with these arguments.
    ///
    /// # Errors
    /// It cannot be written, or there is nowhere to send it.
    fn prepare(&self, call: &OperationCall<'_>, arguments: &JsonObject) -> Result<Prepared, CallError> {
        let OperationCall { operation, surroundings, .. } = call;
        let places = Places {
            base: self.base.clone(),
            document: surroundings.document.clone(),
            variables: self.config.server_variables.clone(),
        };
        let base = places.base(operation)?;
        let auth = self.config.auth.as_ref();
        let issuers = Issuers { server: &base, base: self.base.as_ref() };
        let applied =
            credentials::apply(auth, &surroundings.schemes, surroundings.is_secured, operation, issuers)?;
        let taken = |location| TakenNames::of_request(location, operation, &surroundings.schemes, &applied);
        let url = target::url(&base, operation, arguments, &applied.query, &taken(Location::Query))?;
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, accepted(operation));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let mut cookies = self.parameters(operation, arguments, &mut headers, &taken(Location::Cookie))?;
        let body = body::encode(operation, arguments)?;
        if let Some(body) = &body {
            let kind = HeaderValue::try_from(&body.content_type)
                .map_err(|_| CallError::argument("body", "has a media type that cannot be sent"))?;
            headers.insert(CONTENT_TYPE, kind);
        }
        headers.extend(applied.headers);
        for cookie in &applied.cookies {
            cookies.push(if cookies.len() == 0 { "" } else { "; " })?;
            cookies.push(cookie)?;
        }
        if cookies.len() > 0 {
            let mut value = HeaderValue::try_from(cookies.into_bytes())
                .map_err(|_| CallError::argument("cookie", "has characters that cannot be sent"))?;
            value.set_sensitive(true);
            headers.insert(COOKIE, value);
        }
        let body = body.map(|body| body.bytes);
        let shows_certificate = applied.certificate;
        let method = operation.method.clone();
        let trail = call.trail.clone();
        let request = Outgoing { method, url, headers, body, shows_certificate, trail };
        Ok(Prepared { request, base, token: applied.token, query: applied.query })
    }

    /// Sends a request, and returns a place among those at one time with the response.
    ///
    /// # Errors
    /// There is no answer, or no token for the request.
    async fn send(
        &self,
        call: &OperationCall<'_>,
        prepared: Prepared,
        until: Instant,
    ) -> Result<(SemaphorePermit<'_>, Response), CallError> {
        let Prepared { mut request, token, .. } = prepared;
        let place = self.places.acquire().await;
        let place = place.map_err(|_| CallError::Unreachable("the app has stopped".to_owned()))?;
        let tokens = TokenSource { needed: token.as_ref(), user: call.user.as_ref() };
        let response = self.authorized(&mut request, tokens, call.operation, until).await?;
        Ok((place, response))
    }

    /// Writes header parameters, and returns the header `Cookie`.
    fn parameters(
        &self,
        operation: &Operation,
        arguments: &JsonObject,
        headers: &mut HeaderMap,
        taken: &TakenNames,
    ) -> Result<BoundedText, CallError> {
        let mut cookies = BoundedText::new(Limit::HEADER);
        let mut fields = FieldWriter::new(&mut cookies, "; ", taken);
        let mut length = 0;
        for parameter in &operation.parameters {
            let is_here = matches!(parameter.location, Location::Header | Location::Cookie);
            let Some(value) = arguments.get(&*parameter.argument).filter(|value| is_here && !value.is_null())
            else {
                if is_here && parameter.required {
                    return Err(CallError::argument(&parameter.argument, "is required"));
                }
                continue;
            };
            let wrong = |problem: &str| CallError::argument(&parameter.argument, problem);
            if parameter.location == Location::Cookie {
                form::cookie(parameter, value, &mut fields).map_err(|problem| wrong(&problem))?;
                continue;
            }
            let name =
                HeaderName::try_from(&*parameter.name).map_err(|_| wrong("has a name that no header has"))?;
            if is_reserved(&name) || self.headers.contains_key(&name) {
                continue;
            }
            let mut text = BoundedText::new(Limit::header_beside(length));
            encode::header(parameter, value, &mut text).map_err(|full| wrong(&full.to_string()))?;
            length += name.as_str().len() + text.len();
            let value = HeaderValue::try_from(text.into_bytes())
                .map_err(|_| wrong("has characters that no header has, such as line breaks"))?;
            headers.insert(name, value);
        }
        Ok(cookies)
    }

    /// Sends the request with a token where it needs one, and once more with another one if the API refuses it.
    async fn authorized(
        &self,
        request: &mut Outgoing,
        tokens: TokenSource<'_>,
        operation: &Operation,
        until: Instant,
    ) -> Result<Response, CallError> {
        let retries = Retries { most: self.config.max_retries, is_idempotent: operation.idempotent, until };
        if tokens.needed.is_none() {
            return self.http.send(request, retries).await;
        }
        let mut refused: Option<Secret> = None;
        loop {
            let token = self.token(tokens, refused.as_ref()).await?;
            let value = HeaderValue::try_from(format!("Bearer {}", token.expose()));
            let mut value =
                value.map_err(|_| CallError::NoToken("it has characters that cannot be sent".to_owned()))?;
            value.set_sensitive(true);
            request.headers.insert(AUTHORIZATION, value);
            let response = self.http.send(request, retries).await?;
            if response.status() != StatusCode::UNAUTHORIZED || refused.is_some() {
                return Ok(response);
            }
            refused = Some(token);
        }
    }

    /// A token for a request. `refused` is one that the API did not accept.
    async fn token(&self, tokens: TokenSource<'_>, refused: Option<&Secret>) -> Result<Secret, CallError> {
        let scopes = match tokens.needed {
            Some(NeededToken::User(scopes)) => scopes,
            Some(NeededToken::Gateway(wanted)) => {
                return self.tokens.get(&self.http, wanted, refused, &self.redactor).await;
            }
            None => return Err(CallError::NoToken("none is needed".to_owned())),
        };
        let Some(ApiUser { app, principal, credentials }) = tokens.user else {
            return Err(CallError::NoCredentials("a token of the user, whom nobody signs in".to_owned()));
        };
        let found = match refused {
            Some(token) => {
                let token = BearerToken::new(token.expose());
                credentials.refused(app, principal, &token).await
            }
            None => credentials.bearer(app, principal, scopes).await,
        };
        let token = found.map_err(CallError::NoUserToken)?;
        let token = Secret::new(token.ok_or_else(|| CallError::SignIn(scopes.clone()))?.expose());
        self.redactor.learn(&token);
        Ok(token)
    }

    async fn result(
        &self,
        operation: &Operation,
        response: Response,
        memory: &mut Memory,
        until: Instant,
        reporter: Reporter<'_>,
    ) -> Result<CallToolResult, CallError> {
        let (status, mut headers) = (response.status(), response.headers().clone());
        for name in [CONTENT_TYPE, LOCATION] {
            if headers.get(&name).is_some_and(|value| self.redactor.is_in(value.as_bytes())) {
                headers.remove(name);
            }
        }
        let most = self.config.max_response_bytes;
        if !status.is_success() {
            // An error that is too long to be read is an error all the same.
            let body = response.read(answer::MOST_OF_ERROR, memory).await.unwrap_or_default();
            return Ok(answer::refused(status, &headers, &body, &self.redactor));
        }
        if let Some(sequence) = Sequence::of(&answer::media_type(&headers)) {
            return stream::read(response, sequence, most, until, reporter, &self.redactor, memory).await;
        }
        let body = response.read(most, memory).await?;
        let kind = answer::media_type(&headers);
        let is_data = kind.is_empty() || media::is_json(&kind) || media::is_text(&kind);
        let body = if is_data { self.redactor.data(body) } else { body };
        if self.redactor.is_in(&body) {
            return Err(CallError::BadAnswer(
                "it repeats a credential of the gateway where that cannot be taken out, and is not passed on; what was asked may have been done"
                    .to_owned(),
            ));
        }
        answer::success(operation, status, &headers, body, most, memory).await
    }

    /// The server of the operation.
    ///
    /// # Errors
    /// The reason why it has none.
    pub(crate) fn server(&self, operation: &Operation, document: Option<&Url>) -> Result<Url, String> {
        let places = Places {
            base: self.base.clone(),
            document: document.cloned(),
            variables: self.config.server_variables.clone(),
        };
        places.base(operation).map_err(|error| match error {
            CallError::NoServer(why) => why,
            other => other.to_string(),
        })
    }
}

/// Pages of the results of an operation.
pub(crate) fn paging(operation: &Operation) -> Paging {
    match pages::is_possible(operation) {
        false => Paging::Unavailable,
        true if operation.links || PageParameters::of(operation).are_of_pages() => Paging::Described,
        true => Paging::Possible,
    }
}

/// Returns `true` for a header that the gateway sets itself, or that is about the connection.
fn is_reserved(name: &HeaderName) -> bool {
    [ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, CONTENT_LENGTH, COOKIE, HOST].contains(name)
        || HOP_BY_HOP.contains(&name.as_str())
}

/// The value of `Accept`: the types of the document's responses.
fn accepted(operation: &Operation) -> HeaderValue {
    let mut kinds: Vec<&str> = Vec::new();
    for media in operation.responses.iter().flat_map(|success| success.media.iter()) {
        let is_short = media.media_type.len() <= LONGEST_ACCEPTED;
        if is_short && kinds.len() < MOST_ACCEPTED && !kinds.contains(&&*media.media_type) {
            kinds.push(&media.media_type);
        }
    }
    // A problem is welcome beside the types of success.
    let all = match kinds.is_empty() {
        true => ANY.to_owned(),
        false => format!("{}, */*;q=0.1", kinds.join(", ")),
    };
    HeaderValue::try_from(all).unwrap_or(HeaderValue::from_static(ANY))
}
