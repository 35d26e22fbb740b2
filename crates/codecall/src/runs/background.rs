//! Tasks of runs without a client, and the connection that stands for one.

use std::{
    sync::{Arc, OnceLock, Weak},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gatewright_core::{
    Authenticator, Portion, Principal, Share, Shares, WorkTerms, memory_transport,
    rmcp::{
        ErrorData, RoleServer, ServerHandler, ServiceExt as _,
        model::NumberOrString,
        service::{RequestContext, RoleClient, RunningService},
    },
};
use gatewright_executions::{ExecutionError, ExecutionId, Head, Terms};
use tokio::sync::{OnceCell, broadcast};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Runs in the background.
pub(crate) struct Background {
    pub(super) tasks: TaskTracker,
    /// Runs make no new calls, and are left to other instances once those under way are answered.
    pub(crate) halt: CancellationToken,
    pub(super) stop: CancellationToken,
    /// Time after which a run that only waits for its calls gives its worker back.
    pub(crate) park_after: Duration,
    nobody: OnceCell<Nobody>,
    /// Executions that were cancelled here.
    pub(super) cancelled: broadcast::Sender<ExecutionId>,
    /// Knows what those who began runs may still do. It belongs to the server, which may be gone.
    pub(super) owners: OnceLock<Weak<dyn Authenticator>>,
    /// Address of the page where users answer questions.
    pub(super) page: OnceLock<String>,
    /// Room for the journals that runs go through again.
    journals: Arc<Shares>,
}

/// The connection of a client that is not there: it takes messages and answers none.
#[derive(Debug)]
struct Nobody {
    server: RunningService<RoleServer, Silent>,
    _client: RunningService<RoleClient, ()>,
}

#[derive(Debug, Clone, Copy)]
struct Silent;

impl ServerHandler for Silent {}

impl Default for Background {
    fn default() -> Self {
        Self {
            tasks: TaskTracker::new(),
            halt: CancellationToken::new(),
            stop: CancellationToken::new(),
            park_after: PARK,
            nobody: OnceCell::new(),
            cancelled: broadcast::Sender::new(MOST_CANCELLED),
            owners: OnceLock::new(),
            page: OnceLock::new(),
            journals: Shares::of_memory(MOST_JOURNALS, Portion::AsMuchAsFree),
        }
    }
}

/// Bytes of memory for the journals that runs in the background go through again, at most.
const MOST_JOURNALS: usize = 256 << 20;
/// Bytes of memory for each byte of a journal that is read: its text, its values, and what is sent to the worker.
const COPIES_OF_JOURNAL: usize = 3;

impl Background {
    /// Room for the journal of `head`, which its run goes through again; none if there is too little memory left now.
    pub(super) fn journal_room(&self, head: &Head) -> Option<JournalRoom> {
        // The largest one needs all of it.
        let bytes = JournalRoom::bytes(head).min(self.journals.most());
        self.journals.take(head.claimant(), bytes).ok().map(JournalRoom)
    }
}

/// Room for the journal that a run goes through again.
pub(super) struct JournalRoom(Share);

impl JournalRoom {
    fn bytes(head: &Head) -> usize {
        usize::try_from(head.bytes).unwrap_or(usize::MAX).saturating_mul(COPIES_OF_JOURNAL)
    }

    /// Gives back what `head`, with the bytes that were read, does not need.
    pub(super) fn shrink_to(&mut self, head: &Head) {
        self.0.shrink_to(Self::bytes(head));
    }
}

/// Executions that are cancelled at about the same time. Beyond them, each run looks whether it is one of them.
const MOST_CANCELLED: usize = 64;

/// Calls of most tools take less; a worker that goes through a journal again takes milliseconds.
const PARK: Duration = Duration::from_secs(5);

/// The owner of an execution that is to go on without a request.
pub(super) enum OwnerNow {
    /// With the scopes that it has now of those that it had, and its groups of now.
    May(Principal),
    /// Its access has ended.
    Ended,
    /// The token that showed what it may do has expired, and nobody else knows.
    Unknown,
}

impl Background {
    /// The terms of a run that the request of `context` begins or takes up, while it goes on without another one.
    pub(super) async fn terms(&self, context: &RequestContext<RoleServer>) -> Terms {
        let Some(owners) = self.owners.get().and_then(Weak::upgrade) else { return Terms::default() };
        let without_token = http::Request::new(()).into_parts().0;
        let parts = context.extensions.get::<http::request::Parts>().unwrap_or(&without_token);
        let WorkTerms { until, grant } = match parts.extensions.get::<WorkTerms>() {
            Some(terms) => terms.clone(),
            None => owners.work_terms(parts).await,
        };
        Terms { until_ms: until.map(ms), grant }
    }

    /// The owner of an execution as it is known now.
    ///
    /// # Errors
    /// The store that knows does not answer.
    pub(super) async fn owner_now(&self, head: &Head) -> Result<OwnerNow, ExecutionError> {
        let owner = &head.owner;
        let terms = &head.about.terms;
        if terms.until_ms.is_some_and(|until_ms| ms(SystemTime::now()) >= until_ms) {
            return Ok(OwnerNow::Unknown);
        }
        let Some(owners) = self.owners.get() else { return Ok(OwnerNow::May(owner.clone())) };
        let owners = owners.upgrade().ok_or(ExecutionError::Unavailable)?;
        let since = UNIX_EPOCH + Duration::from_millis(head.created_ms);
        Ok(owners
            .principal_now(owner, since, terms.grant.as_deref())
            .await?
            .map_or(OwnerNow::Ended, OwnerNow::May))
    }

    /// The context of a request that nobody waits for.
    ///
    /// # Errors
    /// The connection in this process cannot be made.
    pub(super) async fn context(
        &self,
        principal: &Arc<Principal>,
    ) -> Result<RequestContext<RoleServer>, ErrorData> {
        let nobody = self.nobody.get_or_try_init(connect).await?;
        let mut context = RequestContext::new(NumberOrString::Number(0), nobody.server.peer().clone());
        context.extensions.insert((**principal).clone());
        Ok(context)
    }
}

fn ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

async fn connect() -> Result<Nobody, ErrorData> {
    let (client_end, server_end) = memory_transport();
    let (server, client) = tokio::join!(Silent.serve(server_end), ().serve(client_end));
    let broken = |why: String| ErrorData::internal_error(why, None);
    Ok(Nobody {
        server: server.map_err(|error| broken(error.to_string()))?,
        _client: client.map_err(|error| broken(error.to_string()))?,
    })
}

#[cfg(test)]
mod tests {
    use gatewright_executions::{Executions, ExecutionsConfig, NewExecution, Reader};

    use super::*;

    #[tokio::test]
    async fn runs_that_go_on_take_room_for_their_journals_until_they_end() {
        let background =
            Background { journals: Shares::new(600, Portion::AsMuchAsFree), ..Default::default() };
        let executions = Executions::in_memory(ExecutionsConfig::default());
        let head = async |subject: &str, bytes| {
            let owner = Principal { subject: subject.into(), ..Principal::local() };
            let lease = executions.create(&owner, NewExecution::default(), b"start").await.unwrap();
            let mut head = executions.head(&lease.id().to_string(), Reader::Operator).await.unwrap();
            head.bytes = bytes;
            head
        };
        let ada = background.journal_room(&head("ada", 100).await).unwrap();
        assert!(background.journal_room(&head("ada", 10).await).is_none(), "half of it is ada's");
        let mut bob = background.journal_room(&head("bob", 90).await).unwrap();
        assert!(background.journal_room(&head("cyd", 30).await).is_none());
        bob.shrink_to(&head("bob", 60).await);
        assert!(background.journal_room(&head("cyd", 30).await).is_some(), "less was read than was listed");
        drop((ada, bob));
        assert!(background.journal_room(&head("ada", u64::MAX).await).is_some(), "the largest one alone");
    }
}
