//! The gate of the MCP endpoints: Origin → authentication → load → body → scopes.
//!
//! Host is checked for the whole server, in `edge`.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::body::Body;
use futures::future::BoxFuture;
use gatewright_core::{
    AccessMode, AnswerRoom, Authenticator, Caller, CallerAddress, Claimant, EndpointName, Era, Gateway,
    KnownSince, Network, Portion, Principal, Scopes, Share, Shares, WorkTerms, off_thread,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header, request::Parts};
use http_body::Body as _;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    answer_memory::AnswerMemory,
    body::{self, BodyError},
    config::HttpConfig,
    host_and_origin::AllowedSources,
    message_limit, mode, refusal,
    request_memory::{self, Message, RequestMemory, Room},
    sessions::Owner,
    unsent::UnsentBudget,
};

/// Returns `true` for `subscriptions/listen` of the era without sessions: `rmcp` refuses a request of this era whose header does not name
/// its method.
pub(crate) fn listens(era: Era, headers: &HeaderMap) -> bool {
    era.is_stateless() && headers.get("mcp-method").is_some_and(|name| name == "subscriptions/listen")
}

/// Bytes that a stream takes.
const STREAM_BYTES: u64 = 64 << 10;

/// Admits requests to the endpoints of both transports: by origin, caller, load and scopes.
pub(crate) struct RequestGate {
    pub(crate) gateway: Arc<Gateway>,
    allowed: Arc<AllowedSources>,
    authenticator: Option<Arc<dyn Authenticator>>,
    calls: Arc<Shares>,
    streams: Arc<Shares>,
    pub(crate) unsent: Arc<UnsentBudget>,
    pub(crate) requests: RequestMemory,
    answers: AnswerMemory,
    proxies: Vec<Network>,
    pub(crate) most_bytes: usize,
    pub(crate) body_time: Duration,
    /// Cancelled when shutdown begins: streams that only wait end.
    pub(crate) stopping: CancellationToken,
    /// Reads on refused bodies while their answers are sent.
    pub(crate) lingering: TaskTracker,
}

impl RequestGate {
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        config: &HttpConfig,
        allowed: Arc<AllowedSources>,
        authenticator: Option<Arc<dyn Authenticator>>,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            gateway,
            allowed,
            authenticator,
            // A place is soon free again, and a client may well use many at a time.
            calls: Shares::new(config.max_concurrency, Portion::AsMuchAsFree),
            streams: Shares::of_places(config.max_streams, STREAM_BYTES, Portion::QuarterOfFree),
            unsent: UnsentBudget::new(config.max_unsent_mib),
            requests: RequestMemory::new(config.max_request_mib),
            answers: AnswerMemory::new(config.max_unsent_mib),
            proxies: config.trusted_proxies.iter().filter_map(|text| Network::parse(text)).collect(),
            most_bytes: config.max_body_bytes,
            body_time: config.body_read_timeout,
            stopping,
            lingering: TaskTracker::new(),
        }
    }

    /// Requests that are worked on, and streams that are open.
    pub(crate) fn open(&self) -> (usize, usize) {
        (self.calls.taken(), self.streams.taken())
    }

    /// Returns `true` if callers are not authenticated.
    pub(crate) fn is_open_to_all(&self) -> bool {
        self.authenticator.is_none()
    }

    /// Returns `true` if a request names only hosts that are allowed.
    pub(crate) fn allows_host(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        self.allowed.host(uri, headers).is_ok()
    }

    /// Checks where the request comes from, makes room for it, and puts its [`Principal`] on it, and the [`AccessMode`] that it asks for.
    pub(crate) async fn admit(
        &self,
        parts: &mut Parts,
        body: &mut Body,
        stream: bool,
    ) -> Result<(Share, Owner), Response<Body>> {
        self.allowed.origin(&parts.headers).map_err(|why| refusal::unwelcome(&why))?;
        if let Some(mode) = mode::asked(parts).map_err(refusal::bad_mode)? {
            parts.extensions.insert(mode);
        }
        parts.extensions.insert(KnownSince(Instant::now()));
        let principal = match &self.authenticator {
            None => Principal::local(),
            Some(authenticator) => match authenticator.authenticate(parts).await {
                Ok(principal) => principal,
                Err(refused) => {
                    let request = body::peek(body, &mut self.requests.begin(self.claimant(parts))).await;
                    return Err(refusal::by_authenticator(refused, &request));
                }
            },
        };
        let principal = principal.at(EndpointName::of(parts));
        let missing = self.gateway.registry().endpoints().missing_scopes(&principal);
        if let Some(authenticator) = self.authenticator.as_deref().filter(|_| !missing.is_empty()) {
            let request = body::peek(body, &mut self.requests.begin(self.claimant(parts))).await;
            return Err(insufficient_scope(authenticator, &principal, &missing, &request));
        }
        let owner = Owner::of(&principal);
        parts.extensions.insert(principal);
        self.note_claimant(parts);
        // Last: whoever is still to be told apart, which may take a question to a provider, keeps nobody's place.
        let permit = self.room(parts, stream)?;
        Ok((permit, owner))
    }

    /// The sender of a request that was admitted, as the parties whose shares it takes. Anonymous callers have no name of their own.
    pub(crate) fn claimant(&self, parts: &Parts) -> Claimant {
        if let Some(noted) = parts.extensions.get::<Arc<Claimant>>() {
            return Claimant::clone(noted);
        }
        let subject = parts.extensions.get::<Principal>().map(|principal| principal.subject.clone());
        let subject = subject.filter(|subject| *subject != Principal::local().subject);
        let address = parts.extensions.get::<CallerAddress>().map(|caller| caller.0);
        Claimant::new(subject, address, &self.proxies)
    }

    /// A caller that is known by its address alone.
    pub(crate) fn claimant_at(&self, address: IpAddr) -> Claimant {
        Claimant::new(None, Some(address), &self.proxies)
    }

    /// Puts the parties whose shares the request takes on it, and the room for answers to its calls.
    pub(crate) fn note_claimant(&self, parts: &mut Parts) {
        let claimant = Arc::new(self.claimant(parts));
        parts.extensions.insert(self.answer_room(claimant.clone()));
        parts.extensions.insert(claimant);
    }

    /// Room for the answers to the calls of one message of `claimant`.
    pub(crate) fn answer_room(&self, claimant: Arc<Claimant>) -> AnswerRoom {
        self.answers.of(claimant)
    }

    /// Makes room for a request.
    pub(crate) fn room(&self, parts: &Parts, stream: bool) -> Result<Share, Response<Body>> {
        let claimant = self.claimant(parts);
        if parts.method == Method::POST && self.unsent.is_used_up_by(&claimant) {
            return Err(refusal::unread_answers());
        }
        let room = if stream { &self.streams } else { &self.calls };
        room.take(claimant, 1).map_err(|why| match stream {
            true => refusal::no_room_for_stream(why),
            false => refusal::no_room_for_request(why),
        })
    }

    /// Makes room in memory for a request of `caller` to another route, whose body is read before anybody is known by it.
    pub(crate) fn room_beside(
        &self,
        caller: IpAddr,
        request: &Request<Body>,
    ) -> Result<Room, Response<Body>> {
        /// Longest body that other routes read.
        const LONGEST: u64 = 64 * 1024;
        let line = request.uri().path().len() + request.uri().query().map_or(0, str::len);
        let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
        let body = request.body().size_hint().upper().unwrap_or(LONGEST).min(LONGEST);
        let mut room = self.requests.begin(self.claimant_at(caller));
        room.grow(line + fields.sum::<usize>() + body as usize).map_err(refusal::no_memory_beside)?;
        Ok(room)
    }

    /// Makes room for `more` messages of a request that has `permit` for its first.
    pub(crate) fn more_room(&self, permit: &Share, more: usize) -> Result<Vec<Arc<Share>>, Response<Body>> {
        let place = || self.calls.take(permit.claimant().clone(), 1).map(Arc::new);
        (0..more).map(|_| place()).collect::<Result<_, _>>().map_err(refusal::no_room_for_request)
    }

    /// Terms of the work that the request of `parts` begins.
    pub(crate) async fn work_terms(&self, parts: &Parts) -> WorkTerms {
        match &self.authenticator {
            Some(authenticator) => authenticator.work_terms(parts).await,
            None => WorkTerms::default(),
        }
    }

    /// Done when a stream that `parts` opened must end: with its caller's token, or with its endpoint.
    pub(crate) fn until_ended(&self, parts: &Parts) -> BoxFuture<'static, ()> {
        let token: BoxFuture<'static, ()> = match &self.authenticator {
            Some(authenticator) => authenticator.until_ended(parts),
            None => Box::pin(std::future::pending()),
        };
        match EndpointName::of(parts) {
            None => token,
            name => {
                let removed = self.gateway.registry().endpoints().until_removed(name);
                Box::pin(async move {
                    tokio::select! {
                        () = token => {}
                        () = removed => {}
                    }
                })
            }
        }
    }

    /// Reads a message and refuses a request whose scopes its caller lacks, and one that [`listens`] and whose list is too long.
    pub(crate) async fn message(
        &self,
        parts: &Parts,
        mut body: Body,
        listens: bool,
    ) -> Result<Message, Response<Body>> {
        let is_plain =
            |coding: &HeaderValue| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity");
        if !parts.headers.get_all(header::CONTENT_ENCODING).iter().all(is_plain) {
            self.lingering.spawn(body::linger(body));
            return Err(refusal::encoded());
        }
        if body::is_declared_too_long(&body, self.most_bytes) {
            self.lingering.spawn(body::linger(body));
            return Err(refusal::unread(BodyError::TooLong, self.most_bytes));
        }
        let mut room = self.requests.begin(self.claimant(parts));
        let message = match body::read(&mut body, self.most_bytes, self.body_time, &mut room).await {
            Ok(message) => message,
            Err(why) => {
                if matches!(why, BodyError::NoRoom(_)) {
                    self.lingering.spawn(body::linger(body));
                }
                return Err(refusal::unread(why, self.most_bytes));
            }
        };
        let (read, most_bytes) = (message.clone(), self.most_bytes);
        let checked = off_thread(read.len(), move || {
            let values = message_limit::check(&read, most_bytes)?;
            if listens {
                message_limit::check_listen(&read)?;
            }
            Ok::<_, message_limit::OverLimit>(values)
        })
        .await;
        let values = match checked {
            Ok(values) => values,
            Err(over) => {
                return Err(off_thread(message.len(), move || refusal::over_limit(over, &message)).await);
            }
        };
        let kept = if listens { request_memory::of_listening(message.len()) } else { 0 };
        let message =
            Message::new(message, values.saturating_add(kept), room).map_err(refusal::no_room_in_memory)?;
        if let Some(authenticator) = &self.authenticator
            && let Some(principal) = parts.extensions.get::<Principal>()
            && principal.scopes != Scopes::All
        {
            let caller = Caller::new(principal.clone())
                .known_since(parts.extensions.get::<KnownSince>().copied())
                .in_mode(parts.extensions.get::<AccessMode>().copied())
                .claiming(parts.extensions.get::<Arc<Claimant>>().cloned());
            let address = parts.extensions.get::<CallerAddress>().map(|caller| caller.0);
            let missing = self.gateway.missing_scopes(caller, address, message.text().clone()).await;
            if !missing.is_empty() {
                return Err(insufficient_scope(&**authenticator, principal, &missing, message.text()));
            }
        }
        Ok(message)
    }
}

/// The answer to the request `message` of `principal`, who lacks scopes.
fn insufficient_scope(
    authenticator: &dyn Authenticator,
    principal: &Principal,
    missing: &[String],
    message: &[u8],
) -> Response<Body> {
    let endpoint = principal.endpoint.as_deref();
    tracing::info!(missing = missing.join(" "), endpoint, "a request was refused for its caller's scopes");
    refusal::by_authenticator(authenticator.insufficient_scope(principal, missing), message)
}
