//! Plans that wait for input of their users, who answer on a page where their clients cannot ask them.

use rmcp::model::{InputRequests, InputResponses};

use crate::AppFuture;

/// A plan that waits for input of its user.
#[derive(Debug, Clone)]
pub struct WaitingPlan {
    /// Id of its execution.
    pub id: String,
    /// The beginning of its script, or the title that its caller gave it.
    pub title: Option<String>,
    /// The client that began it.
    pub client: Option<String>,
    /// Time at which it is forgotten, in milliseconds since 1970-01-01 UTC.
    pub expires_ms: u64,
    /// It goes on by itself once it has its answers. Otherwise its client resumes it.
    pub detached: bool,
    /// Beginnings of what it asks.
    pub asks: Vec<String>,
}

/// A call of a plan that waits for input: its questions are answered together.
#[derive(Debug, Clone)]
pub struct PlanQuestion {
    /// Identifies the questions of this call, and no other ones.
    pub id: String,
    /// The tool or content that asks, as the script named it.
    pub name: String,
    /// Its questions: forms, and addresses of the web to open.
    pub requests: InputRequests,
}

/// Reason why questions of a plan cannot be read, or an answer was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotAnswer {
    /// No such question waits for this user. Questions of others get the same error as those that were never asked.
    #[error("this question does not wait for you any more: it was answered already, or its plan is over")]
    NotOpen,
    /// The plan has no room for the answer.
    #[error("the plan has no room for so long an answer")]
    TooLong,
    /// The store of plans does not answer, or another instance has the plan at the moment.
    #[error("the plan cannot be reached at the moment; try again soon")]
    Unavailable,
}

/// The plans of users that wait for their input.
pub trait PlanQuestions: Send + Sync + 'static {
    /// Returns the plans of `subject` that wait for its input, newest first, 50 at most.
    fn waiting<'a>(&'a self, subject: &'a str) -> AppFuture<'a, Result<Vec<WaitingPlan>, CannotAnswer>>;

    /// Returns the plan `id` of `subject`, unless it is over, with its open questions that a page can ask.
    fn questions<'a>(
        &'a self,
        subject: &'a str,
        id: &'a str,
    ) -> AppFuture<'a, Result<(WaitingPlan, Vec<PlanQuestion>), CannotAnswer>>;

    /// Answers `question` of the plan `id` of `subject`, once.
    fn answer<'a>(
        &'a self,
        subject: &'a str,
        id: &'a str,
        question: &'a str,
        responses: InputResponses,
    ) -> AppFuture<'a, Result<(), CannotAnswer>>;
}
