//! Questions of runs on a page: users answer there where their clients cannot ask them.

use std::{collections::BTreeMap, sync::Weak};

use data_encoding::HEXLOWER;
use gatewright_core::{
    AppFuture, Caller, CannotAnswer, PlanQuestion, PlanQuestions, Principal, WaitingPlan, is_web_address,
    rmcp::model::{ElicitRequestParams, InputRequest, InputResponses},
};
use gatewright_executions::{ExecutionError, ExecutionId, Head, Reader, State, WaitKind, WaitingFor};

use super::{
    Past,
    background::OwnerNow,
    flow::Run,
    questions::{MOST_ASKED, Waiting},
};
use crate::CodeCall;

/// Longest address that the page shows, in bytes. Part of one is of no use.
const LONGEST_URL: usize = 2_048;
/// Plans in a list.
const MOST_PLANS: usize = 50;

impl CodeCall {
    /// Names the page where users answer questions of plans. Only the first address is kept.
    pub fn answered_at(&self, page: impl Into<String>) {
        let _ = self.background.page.set(page.into());
    }

    /// Address at which `owner` answers questions of the execution `id`; none if the page does not ask what waits. Programs and keys have no login.
    pub(super) fn page_for(&self, id: ExecutionId, waiting: &[Waiting], owner: &Principal) -> Option<String> {
        let page = self.background.page.get()?;
        let has_login = owner.client_id.as_ref().is_some_and(|client| *client != owner.subject);
        (has_login && waiting.iter().any(can_be_asked)).then(|| format!("{page}?plan={id}"))
    }

    /// Adds the answers to a question to the journal of its run. One in the background goes on, any other one waits for its client.
    async fn answer_on_page(
        &self,
        subject: &str,
        id: &str,
        question: &str,
        responses: InputResponses,
    ) -> Result<(), ExecutionError> {
        let find = |waiting: Vec<Waiting>| {
            let found =
                waiting.into_iter().find(|waiting| can_be_asked(waiting) && name(waiting) == question);
            found.ok_or(ExecutionError::Ended)
        };
        let execution = self.executions.open(id, Reader::Subject(subject)).await?;
        if execution.head.state != State::Waiting {
            return Err(ExecutionError::Ended);
        }
        let (head, past) = (execution.head, Past::open(execution.chunks).await);
        let waiting = find(past.ok_or(ExecutionError::Unreadable)?.1.waiting())?;
        let owner = match head.about.detached {
            true => Some(self.background.owner_now(&head).await?),
            false => None,
        };
        let answers = || BTreeMap::from([(waiting.index, responses.clone())]);
        if let Some(OwnerNow::May(owner)) = &owner
            && let Some(answered) =
                self.answer_at_home(&head, &waiting, &Caller::new(owner.clone()), &responses).await
        {
            return answered;
        }
        let (lease, execution) = self.executions.acquire(id, Reader::Subject(subject)).await?;
        let mut run = Run::resume(self, lease, execution).await.ok_or(ExecutionError::Unreadable)?;
        if find(run.past.waiting()).is_err() {
            run.put_back().await?;
            return Err(ExecutionError::Ended);
        }
        run.answer(answers());
        if let Err(error) = run.journal.settle().await {
            let _ = run.put_back().await;
            return Err(error);
        }
        match (owner, self.this.get().and_then(Weak::upgrade)) {
            (Some(owner), Some(this)) => this.go_on_as(run, owner).await.map(drop),
            _ => run.leave_answered().await,
        }
    }

    async fn plan_with_questions(
        &self,
        subject: &str,
        id: &str,
    ) -> Result<(WaitingPlan, Vec<PlanQuestion>), ExecutionError> {
        let execution = self.executions.open(id, Reader::Subject(subject)).await?;
        let (head, past) = (execution.head, Past::open(execution.chunks).await);
        let waiting = match head.state {
            State::Ended => return Err(ExecutionError::Ended),
            State::Running => Vec::new(),
            State::Waiting => past.ok_or(ExecutionError::Unreadable)?.1.waiting(),
        };
        let question = |waiting: Waiting| PlanQuestion {
            id: name(&waiting),
            name: waiting.name,
            requests: waiting.requests,
        };
        let questions = waiting.into_iter().filter(can_be_asked).take(MOST_ASKED).map(question).collect();
        Ok((waiting_plan(head), questions))
    }
}

impl PlanQuestions for CodeCall {
    fn waiting<'a>(&'a self, subject: &'a str) -> AppFuture<'a, Result<Vec<WaitingPlan>, CannotAnswer>> {
        Box::pin(async move {
            let reader = Reader::Subject(subject);
            let listed = self
                .executions
                .list(reader, Some(State::Waiting), MOST_PLANS)
                .await
                .map_err(to_cannot_answer)?;
            let heads = listed.into_iter().map(|listed| listed.head);
            let asks = |head: &Head| head.waiting_for.iter().any(is_of_user);
            Ok(heads.filter(asks).map(waiting_plan).collect())
        })
    }

    fn questions<'a>(
        &'a self,
        subject: &'a str,
        id: &'a str,
    ) -> AppFuture<'a, Result<(WaitingPlan, Vec<PlanQuestion>), CannotAnswer>> {
        Box::pin(async move { self.plan_with_questions(subject, id).await.map_err(to_cannot_answer) })
    }

    fn answer<'a>(
        &'a self,
        subject: &'a str,
        id: &'a str,
        question: &'a str,
        responses: InputResponses,
    ) -> AppFuture<'a, Result<(), CannotAnswer>> {
        Box::pin(async move {
            self.answer_on_page(subject, id, question, responses).await.map_err(to_cannot_answer)
        })
    }
}

/// Returns `true` for what a user answers. A run whose owner's token has expired waits for no call.
fn is_of_user(one: &WaitingFor) -> bool {
    one.tool.is_some() && matches!(one.kind, WaitKind::Elicitation | WaitKind::SignIn)
}

/// Returns `true` for a call that asks nothing but what a page can ask. Approvals have a page of their own, and texts of a model need a client.
fn can_be_asked(waiting: &Waiting) -> bool {
    let is_for_people = |request: &InputRequest| match request {
        InputRequest::Elicitation(elicit) => match &elicit.params {
            ElicitRequestParams::FormElicitationParams { .. } => true,
            ElicitRequestParams::UrlElicitationParams { url, .. } => {
                url.len() <= LONGEST_URL && is_web_address(url)
            }
            _ => false,
        },
        _ => false,
    };
    waiting.approvals.is_empty()
        && !waiting.requests.is_empty()
        && waiting.requests.values().all(is_for_people)
}

/// A name of exactly what a call asks. A form for an earlier question answers no later one.
fn name(waiting: &Waiting) -> String {
    let text = serde_json::to_vec(waiting).unwrap_or_default();
    HEXLOWER.encode(&aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &text).as_ref()[..16])
}

fn waiting_plan(head: Head) -> WaitingPlan {
    let waits_for_owner = head.waiting_for.iter().any(|one| one.tool.is_none());
    let of_user = head.waiting_for.into_iter().filter(is_of_user);
    WaitingPlan {
        id: head.id.to_string(),
        title: head.about.title,
        client: head.owner.client_id.as_deref().map(str::to_owned),
        expires_ms: head.expires_ms,
        detached: head.about.detached && !waits_for_owner,
        asks: of_user.map(|one| one.text).collect(),
    }
}

fn to_cannot_answer(error: ExecutionError) -> CannotAnswer {
    match error {
        ExecutionError::TooLarge | ExecutionError::TooMany | ExecutionError::Full => CannotAnswer::TooLong,
        ExecutionError::Busy | ExecutionError::Unavailable => CannotAnswer::Unavailable,
        _ => CannotAnswer::NotOpen,
    }
}
