//! The way of a request that needs an approval: somebody gave one, its caller is asked, or others are.

use std::time::Duration;

use rmcp::{
    RoleServer,
    model::{InputRequiredResult, InputResponses},
    service::RequestContext,
};

use super::{
    Answered, ApprovalDuration, ApprovalEventKind, ApprovalExpired, ApprovalRecord, ApprovalRequest,
    ApprovalState, NotRequested, Rehearsed, ScriptStep, SealedState,
    question::{self, KEY, Reply},
    record::{RequestFacts, millis, now_ms},
};
use crate::{
    Approved, Era, Forbidden, InvokeError, Invoker, Principal, RecordsError, RequestObject, ScriptRun,
    access::{Decided, DecidedRequest, NeededApproval, PendingRequest, Requested},
    bulk::{bulk_of, off_thread},
    questions::{AskedAtOnce, CannotAsk, ask_client, can_answer},
};

/// Time for which an approved request may wait for answers to what its app asks.
const LONGEST_CONVERSATION: Duration = Duration::from_secs(24 * 3_600);

/// The outcome for a request that policies do not forbid.
pub(crate) enum Passage<O: Requested> {
    /// It needs no approval.
    Passes(DecidedRequest<O>),
    /// It is approved.
    Approved(DecidedRequest<O>, Granted),
    /// The caller is asked by the result.
    Asks(InputRequiredResult),
}

/// An approval under which a request is made.
#[derive(Debug)]
pub(crate) struct Granted {
    digest: crate::RequestDigest,
    approvers: Option<String>,
}

/// A decision that was found for a request.
enum Found {
    Approved,
    Denied {
        by: Option<String>,
    },
    /// The state was used before.
    Used,
}

impl Invoker {
    /// Returns `true` if `state` waits for an approval of a request of `principal` for `object`, by its public name.
    pub fn awaits_approval(&self, principal: &Principal, object: &RequestObject, state: &str) -> bool {
        let state: Option<SealedState> =
            self.approvals().sealer().open_approval(principal, &object.to_string(), state);
        state.is_some_and(|state| !state.granted)
    }

    /// Wraps the state of an approved request whose app asks, so that no approval is asked for again.
    pub(crate) fn seal_granted(
        &self,
        principal: &Principal,
        sealed_for: &str,
        granted: &Granted,
        asks: &mut InputRequiredResult,
    ) {
        let state = SealedState::granted(
            granted.digest,
            granted.approvers.as_deref(),
            asks.request_state.take(),
            millis(LONGEST_CONVERSATION),
        );
        asks.request_state = Some(self.approvals().sealer().approval(principal, sealed_for, &state));
    }

    /// Lets a request pass that needs no approval or has one, or asks for it with a state that is `sealed_for` the public name of its
    /// object. `is_open`: its app asks while it is held open, and the request was decided on when it began.
    pub(crate) async fn passage<O: Requested>(
        &self,
        decided: Decided<O>,
        sealed_for: &str,
        answered: Option<Answered>,
        is_open: bool,
        context: &RequestContext<RoleServer>,
    ) -> Result<Passage<O>, InvokeError> {
        let rehearsed = context.extensions.get::<Rehearsed>();
        let is_unmade = rehearsed.is_some_and(|rehearsed| !rehearsed.is_made());
        let call = match decided {
            // The policies changed meanwhile; the no stands.
            Decided::Passes(call) if answered.as_ref().is_some_and(Answered::is_refused) => {
                let object = call.object().request_object();
                return Err(InvokeError::ApprovalDenied { object, by: None });
            }
            Decided::Passes(_) if is_unmade => return Ok(Passage::Asks(nothing())),
            Decided::Passes(call) => return Ok(Passage::Passes(call)),
            Decided::Asks(call) => call,
        };
        // In a box: most requests need no approval, and their futures would be as large as those that do.
        Box::pin(self.approval(call, sealed_for, answered, is_open, context)).await
    }

    /// Lets a request pass whose approval was given, or asks for it.
    async fn approval<O: Requested>(
        &self,
        call: PendingRequest<O>,
        sealed_for: &str,
        answered: Option<Answered>,
        is_open: bool,
        context: &RequestContext<RoleServer>,
    ) -> Result<Passage<O>, InvokeError> {
        let rehearsed = context.extensions.get::<Rehearsed>();
        if let Some(rehearsed) = rehearsed {
            let is_unmade = !rehearsed.is_made();
            let stands = self.stands(&call, context).await.map_err(|error| unasked(&call, error.into()))?;
            if stands {
                rehearsed.note_standing();
            }
            return Ok(if stands && !is_unmade { passes(call) } else { Passage::Asks(nothing()) });
        }
        if is_open {
            return Ok(passes(call));
        }
        match self.found(&call, answered, context).await.map_err(|error| unasked(&call, error.into()))? {
            Some(Found::Approved) => Ok(passes(call)),
            Some(Found::Denied { by }) => Err(denied(&call, by)),
            Some(Found::Used) => Err(InvokeError::InputExpired { name: call.object().to_string() }),
            None if context.extensions.get::<ApprovalExpired>().is_some() => Err(denied(&call, None)),
            None => self.ask_for(call, sealed_for, context).await,
        }
    }

    /// Returns `true` if an approval that was given for longer than a request covers this one.
    async fn stands<O: Requested>(
        &self,
        call: &PendingRequest<O>,
        context: &RequestContext<RoleServer>,
    ) -> Result<bool, RecordsError> {
        let needed = call.needed();
        if !may_stand(call) {
            return Ok(false);
        }
        let (object, approvers) = (call.object().to_string(), needed.approvers.as_deref());
        let about = (&*object, &*needed.policy);
        self.approvals().stands(call.caller().principal(), about, approvers, run_of(context)).await
    }

    /// A decision that was made before: in the answer of the caller, for longer than a call, or by somebody else.
    async fn found<O: Requested>(
        &self,
        call: &PendingRequest<O>,
        answered: Option<Answered>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Found>, RecordsError> {
        let (needed, principal) = (call.needed(), call.caller().principal());
        let store = self.approvals();
        let approvers = needed.approvers.as_deref();
        let id = store.id(principal, needed.digest);
        if let Some(Answered { state, reply }) = answered
            && state.fits(needed.digest)
            && state.approvers.as_deref() == approvers
        {
            match reply {
                _ if state.until_ms <= now_ms() => {
                    self.approvals().tell(&facts(call).event(ApprovalEventKind::Expired, None, None));
                    if state.granted {
                        return Ok(Some(Found::Used));
                    }
                }
                None if state.granted => {
                    let is_first = store.claim(principal, &state).await?;
                    return Ok(Some(if is_first { Found::Approved } else { Found::Used }));
                }
                // Used before: the caller is asked again.
                Some(reply) if store.claim(principal, &state).await? => {
                    store.withdraw(&id).await;
                    return self.replied(call, reply, context).await.map(Some);
                }
                _ => {}
            }
        }
        if self.stands(call, context).await? {
            return Ok(Some(Found::Approved));
        }
        match store.take(&id, approvers).await? {
            Some(Ok(duration)) => {
                let duration = if may_stand(call) { duration } else { ApprovalDuration::Once };
                let object = call.object().to_string();
                let about = (&*object, &*needed.policy);
                store.stand(principal, duration, about, approvers, run_of(context)).await?;
                Ok(Some(Found::Approved))
            }
            Some(Err(by)) => Ok(Some(Found::Denied { by })),
            None => Ok(None),
        }
    }

    /// Records the decision of the caller, and returns the outcome.
    async fn replied<O: Requested>(
        &self,
        call: &PendingRequest<O>,
        reply: Reply,
        context: &RequestContext<RoleServer>,
    ) -> Result<Found, RecordsError> {
        let (needed, principal) = (call.needed(), call.caller().principal());
        let by = Some(&*principal.subject);
        match reply {
            Reply::Denied => {
                self.approvals().tell(&facts(call).event(ApprovalEventKind::Denied, by, None));
                Ok(Found::Denied { by: None })
            }
            Reply::Approved(duration) => {
                let offered = ApprovalDuration::offered(may_stand(call), run_of(context).is_some());
                let duration = if offered.contains(&duration) { duration } else { ApprovalDuration::Once };
                self.approvals().tell(&facts(call).event(ApprovalEventKind::Approved, by, Some(duration)));
                let object = call.object().to_string();
                let about = (&*object, &*needed.policy);
                self.approvals().stand(principal, duration, about, None, run_of(context)).await?;
                Ok(Found::Approved)
            }
        }
    }

    /// Asks the caller, if the caller may approve and can be asked; else lets the approval wait.
    async fn ask_for<O: Requested>(
        &self,
        call: PendingRequest<O>,
        sealed_for: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<Passage<O>, InvokeError> {
        let record = self.record(&call, context).await;
        let (life, most) = (call.terms().expires_in, call.terms().max_per_principal);
        let questions = question::ask(&record);
        let state = || {
            let state = SealedState::asking(call.needed().digest, millis(life));
            self.approvals().sealer().approval(call.caller().principal(), sealed_for, &state)
        };
        let asks = || InputRequiredResult::new(Some(questions.clone()), Some(state()));
        let has = context.client_capabilities().unwrap_or_default();
        let is_own = record.approvers.is_none();
        if is_own && can_answer(&questions, &has).is_ok() {
            self.approvals().tell(&facts(&call).event(ApprovalEventKind::Asked, None, None));
            let at_once = context.extensions.get::<AskedAtOnce>().is_some();
            if !at_once || Era::of(context).is_stateless() {
                return Ok(Passage::Asks(asks()));
            }
            let configuration = self.registry().configuration();
            match ask_client(context, questions.clone(), life).await {
                // What was decided may be decided otherwise now.
                Ok(_) if self.registry().configuration() != configuration => {
                    let name = call.object().to_string();
                    return Err(InvokeError::Forbidden { name, why: Forbidden::Changed });
                }
                Ok(responses) => return self.decided(call, responses, context).await,
                Err(CannotAsk::Gone) if context.ct.is_cancelled() => {
                    return Err(InvokeError::Cancelled { name: call.object().to_string() });
                }
                // It waits for somebody at the page then.
                Err(_) => {}
            }
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let waits = self
            .approvals()
            .request(record, &call.caller().claimant(), most)
            .await
            .map_err(|why| unasked(&call, why))?;
        let request = ApprovalRequest {
            id: waits.id,
            page: self.approvals().page(),
            asks: is_own.then(|| Box::new(asks())),
            approvers: waits.approvers,
            expires_ms: waits.expires_ms,
        };
        Err(required(&call, Ok(Box::new(request))))
    }

    /// The outcome for a request whose client was asked on its stream.
    async fn decided<O: Requested>(
        &self,
        call: PendingRequest<O>,
        mut responses: InputResponses,
        context: &RequestContext<RoleServer>,
    ) -> Result<Passage<O>, InvokeError> {
        let reply = responses.remove(KEY).map_or(Reply::Denied, |reply| question::reply(&reply));
        match self.replied(&call, reply, context).await {
            Ok(Found::Approved) => Ok(passes(call)),
            Ok(_) => Err(denied(&call, None)),
            Err(error) => Err(unasked(&call, error.into())),
        }
    }

    /// The approval of `call`, as people read it.
    async fn record<O: Requested>(
        &self,
        call: &PendingRequest<O>,
        context: &RequestContext<RoleServer>,
    ) -> ApprovalRecord {
        let (needed, principal) = (call.needed(), call.caller().principal());
        let arguments = call.arguments();
        let created_ms = now_ms();
        ApprovalRecord {
            id: self.approvals().id(principal, needed.digest),
            nonce: getrandom::u64().unwrap_or(created_ms),
            subject: principal.subject.to_string(),
            client: principal.client_id.as_deref().map(str::to_owned),
            object: call.object(),
            digest: needed.digest.to_string(),
            arguments: off_thread(bulk_of(&arguments), move || question::lines(&arguments)).await,
            reason: question::reason(&needed.reason),
            policy: needed.policy.to_string(),
            run: run_of(context).map(str::to_owned),
            step: context.extensions.get::<ScriptStep>().map(|step| step.0.saturating_add(1)),
            may_stand: may_stand(call),
            approvers: needed.approvers.as_deref().map(str::to_owned),
            created_ms,
            expires_ms: created_ms.saturating_add(millis(call.terms().expires_in)),
            state: ApprovalState::Waiting,
            duration: ApprovalDuration::Once,
            by: None,
        }
    }
}

/// Returns `true` if an approval of the request may stand for later ones. None does for callers that are known by their addresses alone:
/// it would stand for all of them.
fn may_stand<O: Requested>(call: &PendingRequest<O>) -> bool {
    let claimant = call.caller().claimant();
    call.needed().may_stand && (claimant.is_named() || claimant.parties().next().is_none())
}

fn run_of(context: &RequestContext<RoleServer>) -> Option<&str> {
    context.extensions.get::<ScriptRun>().and_then(ScriptRun::id)
}

/// The request under an approval of exactly this one.
fn passes<O: Requested>(call: PendingRequest<O>) -> Passage<O> {
    let NeededApproval { digest, approvers, .. } = call.needed();
    let granted = Granted { digest: *digest, approvers: approvers.as_deref().map(str::to_owned) };
    let approved = Approved(granted.digest);
    Passage::Approved(call.approved(approved).expect("it is its own digest"), granted)
}

/// The answer to a request that is only tried, and is not made.
fn nothing() -> InputRequiredResult {
    InputRequiredResult::new(None, None)
}

fn facts<O: Requested>(call: &PendingRequest<O>) -> RequestFacts<'_> {
    let principal = call.caller().principal();
    RequestFacts {
        subject: &principal.subject,
        client: principal.client_id.as_deref(),
        object: call.object(),
        policy: &call.needed().policy,
        digest: call.needed().digest,
    }
}

fn denied<O: Requested>(call: &PendingRequest<O>, by: Option<String>) -> InvokeError {
    InvokeError::ApprovalDenied { object: call.object(), by }
}

fn required<O: Requested>(
    call: &PendingRequest<O>,
    request: Result<Box<ApprovalRequest>, NotRequested>,
) -> InvokeError {
    let NeededApproval { policy, reason, may_stand, digest, .. } = call.needed();
    InvokeError::ApprovalRequired {
        object: call.object(),
        policy: policy.clone(),
        reason: reason.clone(),
        may_stand: *may_stand,
        digest: *digest,
        request,
    }
}

fn unasked<O: Requested>(call: &PendingRequest<O>, why: NotRequested) -> InvokeError {
    required(call, Err(why))
}
