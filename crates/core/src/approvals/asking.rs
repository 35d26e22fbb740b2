//! The way of a call that needs an approval: somebody gave one, its caller is asked, or others are.

use std::time::Duration;

use rmcp::{
    RoleServer,
    model::{InputRequiredResult, InputResponses},
    service::RequestContext,
};

use super::{
    Answered, ApprovalEventKind, ApprovalRecord, ApprovalRequest, ApprovalState, NotRequested, Rehearsed,
    ScriptStep, SealedState, Standing,
    question::{self, KEY, Reply},
    record::{CallFacts, millis, now_ms},
};
use crate::{
    Approved, Era, InvokeError, Invoker, PermittedTool, RecordsError, ScriptRun,
    access::{Decided, DecidedCall, NeededApproval, PendingCall},
    bulk::{bulk_of, off_thread},
    questions::{AskedAtOnce, CannotAsk, ask_client, can_answer},
};

/// Time for which an approved call may wait for answers to what its app asks.
const LONGEST_CONVERSATION: Duration = Duration::from_secs(24 * 3_600);

/// The outcome for a call that policies do not forbid.
pub(crate) enum Passage {
    /// It needs no approval.
    Passes(DecidedCall),
    /// It is approved.
    Approved(DecidedCall, Granted),
    /// The caller is asked by the result.
    Asks(InputRequiredResult),
}

/// An approval under which a call is made.
#[derive(Debug)]
pub(crate) struct Granted {
    digest: crate::RequestDigest,
    approvers: Option<String>,
}

/// A decision that was found for a call.
enum Found {
    Approved,
    Denied {
        by: Option<String>,
    },
    /// The state was used before.
    Used,
}

impl Invoker {
    /// Returns `true` if `state` waits for an approval of a call of `tool` by the caller.
    pub fn awaits_approval(&self, tool: &PermittedTool, state: &str) -> bool {
        let principal = tool.caller().principal();
        let state: Option<SealedState> = self.sealer().open_approval(principal, &tool.name, state);
        state.is_some_and(|state| !state.granted)
    }

    /// Wraps the state of an approved call whose app asks, so that no approval is asked for again.
    pub(crate) fn seal_granted(
        &self,
        tool: &PermittedTool,
        granted: &Granted,
        asks: &mut InputRequiredResult,
    ) {
        let state = SealedState::granted(
            granted.digest,
            granted.approvers.as_deref(),
            asks.request_state.take(),
            millis(LONGEST_CONVERSATION),
        );
        asks.request_state = Some(self.sealer().approval(tool.caller().principal(), &tool.name, &state));
    }

    /// Lets a call pass that needs no approval or has one, or asks for it. `is_held`: its app asks while it is held open, and the call was
    /// decided on when it began.
    pub(crate) async fn passage(
        &self,
        decided: Decided,
        answered: Option<Answered>,
        is_held: bool,
        context: &RequestContext<RoleServer>,
    ) -> Result<Passage, InvokeError> {
        let call = match decided {
            // The policies changed meanwhile; the no stands.
            Decided::Passes(call) if answered.as_ref().is_some_and(Answered::is_refused) => {
                return Err(InvokeError::ApprovalDenied { name: call.name().to_owned(), by: None });
            }
            Decided::Passes(call) => return Ok(Passage::Passes(call)),
            Decided::Asks(call) => call,
        };
        if is_held {
            return Ok(passes(call));
        }
        match self.found(&call, answered, context).await.map_err(|error| unasked(&call, error.into()))? {
            Some(Found::Approved) => Ok(passes(call)),
            Some(Found::Denied { by }) => Err(denied(&call, by)),
            Some(Found::Used) => Err(InvokeError::InputExpired { name: call.tool().name.to_string() }),
            None => self.ask_for(call, context).await,
        }
    }

    /// A decision that was made before: in the answer of the caller, for longer than a call, or by somebody else.
    async fn found(
        &self,
        call: &PendingCall,
        answered: Option<Answered>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Found>, RecordsError> {
        let (needed, principal) = (call.needed(), call.tool().caller().principal());
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
        let about = (&*call.tool().name, &*needed.policy);
        if needed.standing && store.stands(principal, about, approvers, run_of(context)).await? {
            return Ok(Some(Found::Approved));
        }
        match store.take(&id, approvers).await? {
            Some(Ok(standing)) => {
                let standing = if needed.standing { standing } else { Standing::Once };
                store.stand(principal, standing, about, approvers, run_of(context)).await?;
                Ok(Some(Found::Approved))
            }
            Some(Err(by)) => Ok(Some(Found::Denied { by })),
            None => Ok(None),
        }
    }

    /// Records the decision of the caller, and returns the outcome.
    async fn replied(
        &self,
        call: &PendingCall,
        reply: Reply,
        context: &RequestContext<RoleServer>,
    ) -> Result<Found, RecordsError> {
        let (needed, tool) = (call.needed(), call.tool());
        let principal = tool.caller().principal();
        let by = Some(&*principal.subject);
        match reply {
            Reply::Denied => {
                self.approvals().tell(&facts(call).event(ApprovalEventKind::Denied, by, None));
                Ok(Found::Denied { by: None })
            }
            Reply::Approved(standing) => {
                let offered = super::record::standings(needed.standing, run_of(context).is_some());
                let standing = if offered.contains(&standing) { standing } else { Standing::Once };
                self.approvals().tell(&facts(call).event(ApprovalEventKind::Approved, by, Some(standing)));
                let about = (&*tool.name, &*needed.policy);
                self.approvals().stand(principal, standing, about, None, run_of(context)).await?;
                Ok(Found::Approved)
            }
        }
    }

    /// Asks the caller, if the caller may approve and can be asked; else lets the approval wait.
    async fn ask_for(
        &self,
        call: PendingCall,
        context: &RequestContext<RoleServer>,
    ) -> Result<Passage, InvokeError> {
        let record = self.record(&call, context).await;
        let life = call.tool().approvals().expires_in;
        let questions = question::ask(&record);
        let state = || {
            let state = SealedState::asking(call.needed().digest, millis(life));
            self.sealer().approval(call.tool().caller().principal(), &call.tool().name, &state)
        };
        let asks = || InputRequiredResult::new(Some(questions.clone()), Some(state()));
        if context.extensions.get::<Rehearsed>().is_some() {
            return Ok(Passage::Asks(asks()));
        }
        let has = context.client_capabilities().unwrap_or_default();
        let is_own = record.approvers.is_none();
        if is_own && can_answer(&questions, &has).is_ok() {
            self.approvals().tell(&facts(&call).event(ApprovalEventKind::Asked, None, None));
            let at_once = context.extensions.get::<AskedAtOnce>().is_some();
            if !at_once || Era::of(context).is_stateless() {
                return Ok(Passage::Asks(asks()));
            }
            match ask_client(context, questions.clone(), life).await {
                Ok(responses) => return self.decided(call, responses, context).await,
                Err(CannotAsk::Gone) if context.ct.is_cancelled() => {
                    return Err(InvokeError::Cancelled { name: call.tool().name.to_string() });
                }
                // It waits for somebody at the page then.
                Err(_) => {}
            }
        }
        let most = usize::try_from(call.tool().approvals().max_per_principal).unwrap_or(usize::MAX);
        let waits = self.approvals().request(record, most).await.map_err(|why| unasked(&call, why))?;
        let request = ApprovalRequest {
            id: waits.id,
            page: self.approvals().page(),
            asks: is_own.then(|| Box::new(asks())),
            approvers: waits.approvers,
        };
        Err(required(&call, Ok(Box::new(request))))
    }

    /// The outcome for a call whose client was asked on the stream of its request.
    async fn decided(
        &self,
        call: PendingCall,
        mut responses: InputResponses,
        context: &RequestContext<RoleServer>,
    ) -> Result<Passage, InvokeError> {
        let reply = responses.remove(KEY).map_or(Reply::Denied, |reply| question::reply(&reply));
        match self.replied(&call, reply, context).await {
            Ok(Found::Approved) => Ok(passes(call)),
            Ok(_) => Err(denied(&call, None)),
            Err(error) => Err(unasked(&call, error.into())),
        }
    }

    /// The approval of `call`, as people read it.
    async fn record(&self, call: &PendingCall, context: &RequestContext<RoleServer>) -> ApprovalRecord {
        let (needed, tool) = (call.needed(), call.tool());
        let principal = tool.caller().principal();
        let arguments = call.arguments();
        let created_ms = now_ms();
        ApprovalRecord {
            id: self.approvals().id(principal, needed.digest),
            subject: principal.subject.to_string(),
            client: principal.client_id.as_deref().map(str::to_owned),
            tool: tool.name.to_string(),
            digest: needed.digest.to_string(),
            arguments: off_thread(bulk_of(&arguments), move || question::lines(&arguments)).await,
            reason: question::reason(&needed.reason),
            policy: needed.policy.to_string(),
            run: run_of(context).map(str::to_owned),
            step: context.extensions.get::<ScriptStep>().map(|step| step.0.saturating_add(1)),
            may_stand: needed.standing,
            approvers: needed.approvers.as_deref().map(str::to_owned),
            created_ms,
            expires_ms: created_ms.saturating_add(millis(tool.approvals().expires_in)),
            state: ApprovalState::Waiting,
            standing: Standing::Once,
            by: None,
        }
    }
}

fn run_of(context: &RequestContext<RoleServer>) -> Option<&str> {
    context.extensions.get::<ScriptRun>().and_then(ScriptRun::id)
}

/// The call under an approval of exactly this call.
fn passes(call: PendingCall) -> Passage {
    let NeededApproval { digest, approvers, .. } = call.needed();
    let granted = Granted { digest: *digest, approvers: approvers.as_deref().map(str::to_owned) };
    let approved = Approved(granted.digest);
    Passage::Approved(call.approved(approved).expect("it is its own digest"), granted)
}

fn facts(call: &PendingCall) -> CallFacts<'_> {
    let principal = call.tool().caller().principal();
    CallFacts {
        subject: &principal.subject,
        client: principal.client_id.as_deref(),
        tool: &call.tool().name,
        policy: &call.needed().policy,
        digest: call.needed().digest,
    }
}

fn denied(call: &PendingCall, by: Option<String>) -> InvokeError {
    InvokeError::ApprovalDenied { name: call.tool().name.to_string(), by }
}

fn required(call: &PendingCall, request: Result<Box<ApprovalRequest>, NotRequested>) -> InvokeError {
    let NeededApproval { policy, reason, standing, digest, .. } = call.needed();
    InvokeError::ApprovalRequired {
        name: call.tool().name.to_string(),
        policy: policy.clone(),
        reason: reason.clone(),
        standing: *standing,
        digest: *digest,
        request,
    }
}

fn unasked(call: &PendingCall, why: NotRequested) -> InvokeError {
    required(call, Err(why))
}
