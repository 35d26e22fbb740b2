//! Runs in the background that go on without their client: woken by an approval, with what their owner may do by then.

use std::{
    sync::{Arc, Mutex, atomic::Ordering},
    time::{Duration, SystemTime},
};

use gatewright_agentscript::PoolConfig;
use gatewright_codecall::{CodeCallConfig, Mode};
use gatewright_core::{
    App, AppOptions, Approval, ApprovalDuration, ApprovalStore, Approvals, Approver, AuthRefusal,
    Authenticator, Decision, Forbidden, Groups, LocalApp, MemoryRecords, Policies, PolicyEngine,
    PolicyObject, PolicyRequest, Principal, RecordsError, Scopes, SealKey, ToolOverride, WorkTerms,
};
use gatewright_executions::{Execution, Executions, ExecutionsConfig, Reader, State, WaitKind};
use serde_json::{Value, json};

use super::{
    approvals_in_plans::{PLANS, free},
    support::{Client, Served},
    waiting::{Asking, saved},
};

const CAUGHT: &str = "
    try { return (await callTool('app:effect', { n: 1 })).count } catch (error) { return error.code }
";

/// The records that instances share.
struct Shared {
    executions: Executions,
    approvals: Arc<MemoryRecords>,
    key: SealKey,
    app: Asking,
}

impl Shared {
    fn new() -> Self {
        let config = ExecutionsConfig { lease: Duration::from_secs(3), ..ExecutionsConfig::default() };
        let (executions, key) = (Executions::in_memory(config), SealKey::random());
        Self { executions, approvals: Arc::default(), key, app: Asking::default() }
    }

    /// The approvals, as one instance sees them.
    fn store(&self) -> Arc<ApprovalStore> {
        Arc::new(ApprovalStore::new(self.approvals.clone(), self.key.clone()))
    }

    /// An instance whose calls need an approval under `terms`, for owners as `owners` knows them. The tool `effect` needs the scope `write`.
    async fn instance(&self, terms: Option<Approvals>, owners: Option<&Arc<dyn Authenticator>>) -> Served {
        let config = CodeCallConfig { mode: Mode::MetadataDriven, ..CodeCallConfig::default() };
        let local = Arc::new(LocalApp::start(self.app.clone()).await.unwrap());
        let write = ToolOverride { scopes: vec!["write".to_owned()], ..ToolOverride::default() };
        let options = AppOptions { tools: [("effect".to_owned(), write)].into(), ..AppOptions::default() };
        let (plans, _folder) = saved(&PLANS, &config);
        let apps: Vec<(_, Arc<dyn App>, _)> = vec![("app", local, options), ("plans", plans.clone(), free())];
        let kept = (Some(self.executions.clone()), owners);
        let store = self.store();
        let served = Served::of_owners(PoolConfig::default(), config, apps, kept, |invoker| {
            invoker.approvals_in(store).seal_key(&self.key)
        });
        served.code_call.run_plans_of(&plans);
        let asked = |terms| Approvals { writes: Some(Approval::Ask), ..terms };
        let policies = Policies { engine: None, approvals: terms.map(asked).unwrap_or_default() };
        served.gateway.registry().set_policies(Some(policies));
        served
    }

    /// The execution once it is in `state`. Nobody who could take it on looks at it.
    async fn until(&self, id: &str, state: State) -> Execution {
        loop {
            let execution = self.executions.open(id, Reader::Operator).await.unwrap();
            if execution.head.state == state {
                return execution;
            }
            tokio::task::yield_now().await;
        }
    }
}

async fn detach(client: &Client, script: &str) -> String {
    let begun = client.body("codecall:execute", json!({"script": script, "detach": true})).await;
    assert_eq!(begun["status"], "running", "{begun}");
    begun["executionId"].as_str().unwrap().to_owned()
}

async fn result(served: &Served, id: &str) -> Value {
    served.client("ada").await.body("codecall:execute", json!({"resume": id})).await
}

async fn waiting(store: &ApprovalStore) -> String {
    store.list(Approver::Operator("ops")).await.unwrap().pop().expect("one waits").id
}

#[tokio::test]
async fn a_run_in_the_background_goes_on_when_its_approval_is_decided_on_and_nobody_looks() {
    for (decision, expected) in [(Some(ApprovalDuration::Once), json!(1)), (None, json!("APPROVAL_DENIED"))] {
        let shared = Shared::new();
        let served = shared.instance(Some(Approvals::default()), None).await;
        let id = detach(&served.client("ada").await, CAUGHT).await;
        shared.until(&id, State::Waiting).await;
        let store = served.gateway.invoker().approvals();
        store.decide(&waiting(store).await, decision, Approver::Operator("ops")).await.unwrap();
        shared.until(&id, State::Ended).await;
        assert_eq!(result(&served, &id).await["result"], expected);
        assert_eq!(shared.app.effects.load(Ordering::SeqCst), usize::from(decision.is_some()));
    }
}

#[tokio::test]
async fn one_of_several_instances_goes_on_once_when_another_process_decides() {
    let shared = Shared::new();
    let first = shared.instance(Some(Approvals::default()), None).await;
    let _second = shared.instance(Some(Approvals::default()), None).await;
    let script = "const all = [];
        for (const n of [1, 2]) all.push((await callTool('app:effect', { n })).count);
        return all";
    let id = detach(&first.client("ada").await, script).await;
    let store = shared.store();
    for decision in 1..=2 {
        shared.until(&id, State::Waiting).await;
        // Decided where no scripts run, as by another process.
        let approval = waiting(&store).await;
        store.decide(&approval, Some(ApprovalDuration::Once), Approver::Operator("ops")).await.unwrap();
        while shared.executions.head(&id, Reader::Operator).await.unwrap().resumed < decision {
            tokio::task::yield_now().await;
        }
    }
    let ended = shared.until(&id, State::Ended).await;
    assert_eq!(ended.head.resumed, 2, "each decision takes it on once");
    assert_eq!(result(&first, &id).await["result"], json!([1, 2]));
    while !store.settled().await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_run_goes_on_when_an_approval_within_a_saved_plan_that_it_calls_is_decided_on_anywhere() {
    let user = || Approver::User { subject: "ada", holds: &|_| true };
    for (plan, by_user, elsewhere, approved) in [
        ("pay", true, false, true),
        ("pay", false, true, false),
        ("around", true, true, true),
        ("around", false, false, false),
    ] {
        let shared = Shared::new();
        let first = shared.instance(Some(Approvals::default()), None).await;
        let second = shared.instance(Some(Approvals::default()), None).await;
        let script = format!(
            "const before = (await callTool('app:effect', {{ n: 2 }})).count;
             let got; try {{ got = await callTool('plans:{plan}', {{}}) }} catch (error) {{ got = error.code }}
             return [before, got, (await callTool('app:effect', {{ n: 3 }})).count];"
        );
        let id = detach(&first.client("ada").await, &script).await;
        let store = if elsewhere { shared.store() } else { second.gateway.invoker().approvals().clone() };
        for (step, decision) in [true, approved, true].into_iter().enumerate() {
            shared.until(&id, State::Waiting).await;
            let approver = if by_user { user() } else { Approver::Operator("ops") };
            store
                .decide(&waiting(&store).await, decision.then_some(ApprovalDuration::Once), approver)
                .await
                .unwrap();
            while shared.executions.head(&id, Reader::Operator).await.unwrap().resumed <= step as u32 {
                tokio::task::yield_now().await;
            }
        }
        shared.until(&id, State::Ended).await;
        let counted = json!({"count": 2});
        let expected = match (approved, plan) {
            (false, _) => json!([1, "APPROVAL_DENIED", 2]),
            (true, "pay") => json!([1, counted, 3]),
            (true, _) => json!([1, {"inner": counted}, 3]),
        };
        assert_eq!(result(&second, &id).await["result"], expected);
        assert_eq!(
            shared.app.effects.load(Ordering::SeqCst),
            2 + usize::from(approved),
            "nothing is done twice"
        );
    }
}

#[tokio::test]
async fn an_approval_within_a_saved_plan_wakes_its_run_even_if_another_call_went_on_when_it_was_given() {
    let shared = Shared::new();
    let served = shared.instance(Some(Approvals::default()), None).await;
    let free = ToolOverride { approval: Some(Approval::Never), ..ToolOverride::default() };
    let options = AppOptions { tools: [("hold".to_owned(), free)].into(), ..AppOptions::default() };
    let local = Arc::new(LocalApp::start(shared.app.clone()).await.unwrap());
    served.gateway.registry().add("app", local, options);
    let script = "
        const [held, paid] = await Promise.all([callTool('app:hold', {}), callTool('plans:around', {})]);
        return [held, paid.inner.count];
    ";
    let id = detach(&served.client("ada").await, script).await;
    shared.app.held.notified().await;
    let store = served.gateway.invoker().approvals();
    while store.list(Approver::Operator("ops")).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    store
        .decide(&waiting(store).await, Some(ApprovalDuration::Once), Approver::Operator("ops"))
        .await
        .unwrap();
    shared.app.go.notify_one();
    shared.until(&id, State::Ended).await;
    assert_eq!(result(&served, &id).await["result"], json!(["held", 1]));
}

#[tokio::test]
async fn runs_that_make_the_same_call_are_all_woken_and_one_approval_counts_once() {
    let shared = Shared::new();
    let served = shared.instance(Some(Approvals::default()), None).await;
    let ada = served.client("ada").await;
    let ids = [detach(&ada, CAUGHT).await, detach(&ada, CAUGHT).await];
    for id in &ids {
        shared.until(id, State::Waiting).await;
    }
    let store = served.gateway.invoker().approvals();
    let mut effects = 0;
    for decision in [Some(ApprovalDuration::Once), None] {
        store.decide(&waiting(store).await, decision, Approver::Operator("ops")).await.unwrap();
        effects += 1;
        let ended = async || {
            let mut ended = 0;
            for id in &ids {
                let head = shared.executions.head(id, Reader::Operator).await.unwrap();
                ended += usize::from(head.state == State::Ended);
            }
            ended
        };
        while ended().await < effects
            || (effects == 1 && store.list(Approver::Operator("ops")).await.unwrap().is_empty())
        {
            tokio::task::yield_now().await;
        }
        // The other one asks again, and waits.
        for id in &ids {
            while shared.executions.head(id, Reader::Operator).await.unwrap().state == State::Running {
                tokio::task::yield_now().await;
            }
        }
    }
    let mut results =
        [result(&served, &ids[0]).await["result"].clone(), result(&served, &ids[1]).await["result"].clone()];
    results.sort_by_key(|result| result.is_string());
    assert_eq!(results, [json!(1), json!("APPROVAL_DENIED")]);
}

#[tokio::test]
async fn an_approval_that_nobody_gives_in_time_is_denied_to_a_run_in_the_background() {
    let shared = Shared::new();
    let terms = Approvals { expires_in: Duration::from_millis(300), ..Approvals::default() };
    let served = shared.instance(Some(terms), None).await;
    let id = detach(&served.client("ada").await, CAUGHT).await;
    shared.until(&id, State::Ended).await;
    assert_eq!(result(&served, &id).await["result"], "APPROVAL_DENIED");
    assert_eq!(shared.app.effects.load(Ordering::SeqCst), 0);
    let store = served.gateway.invoker().approvals();
    assert!(store.list(Approver::Operator("ops")).await.unwrap().is_empty(), "it is not asked for again");
}

/// Knows what an owner may do now, and how long those may be trusted of whom nothing but a token is known.
struct Owners {
    now: Mutex<Result<Option<Scopes>, RecordsError>>,
    groups: Mutex<Groups>,
    until: Mutex<Option<SystemTime>>,
}

impl Owners {
    fn new(now: Result<Option<Scopes>, RecordsError>) -> Arc<Self> {
        Arc::new(Self { now: Mutex::new(now), groups: Mutex::default(), until: Mutex::default() })
    }

    /// Its owner shows tokens that end at `until` from now on.
    fn shows(&self, until: SystemTime) {
        *self.until.lock().unwrap() = Some(until);
    }
}

impl Authenticator for Owners {
    fn authenticate<'a>(
        &'a self,
        _: &'a http::request::Parts,
    ) -> futures::future::BoxFuture<'a, Result<Principal, AuthRefusal>> {
        unreachable!("nobody comes over HTTP")
    }

    fn principal_now<'a>(
        &'a self,
        principal: &'a Principal,
        since: SystemTime,
        _grant: Option<&'a str>,
    ) -> futures::future::BoxFuture<'a, Result<Option<Principal>, RecordsError>> {
        assert_eq!(&*principal.subject, "ada");
        assert!(since <= SystemTime::now());
        let groups = self.groups.lock().unwrap().clone();
        let known = |scopes| Principal { scopes, groups, ..principal.clone() };
        Box::pin(std::future::ready(self.now.lock().unwrap().clone().map(|scopes| scopes.map(known))))
    }

    fn work_terms<'a>(&'a self, _: &'a http::request::Parts) -> futures::future::BoxFuture<'a, WorkTerms> {
        let until = *self.until.lock().unwrap();
        Box::pin(std::future::ready(WorkTerms { until, grant: None }))
    }

    fn insufficient_scope(&self, _: &Principal, _: &[String]) -> AuthRefusal {
        unreachable!("nobody comes over HTTP")
    }
}

/// Its instance ends during the first call.
const HELD: &str = "
    await callTool('app:hold', {}).catch(() => 0);
    try { return (await callTool('app:effect', { n: 1 })).count } catch (error) { return error.code }
";

#[tokio::test]
async fn a_run_that_is_taken_over_goes_on_with_what_its_owner_may_do_by_then_or_ends() {
    let cases = [
        (Some(Scopes::parse("read write")), Some(json!(1))),
        (Some(Scopes::parse("read")), Some(json!("ACCESS_DENIED"))),
        (None, None),
    ];
    for (scopes, expected) in cases {
        let shared = Shared::new();
        let first = shared.instance(None, None).await;
        let id = detach(&first.client("ada").await, HELD).await;
        shared.app.held.notified().await;
        // It stops in the middle of a call, and its store of tokens does not answer at first.
        first.code_call.close().await;
        let owners = Owners::new(Err(RecordsError::Unavailable));
        let known: Arc<dyn Authenticator> = owners.clone();
        let second = shared.instance(None, Some(&known)).await;
        assert_eq!(shared.executions.head(&id, Reader::Operator).await.unwrap().state, State::Running);
        *owners.now.lock().unwrap() = Ok(scopes);
        let ended = shared.until(&id, State::Ended).await;
        let told = result(&second, &id).await;
        match expected {
            Some(expected) => assert_eq!(told["result"], expected, "{told}"),
            None => {
                assert_eq!(told["error"]["code"], "EXECUTION_ACCESS_ENDED", "{told}");
                assert_eq!(ended.head.ending.unwrap().code.as_deref(), Some("EXECUTION_ACCESS_ENDED"));
                assert_eq!(shared.app.effects.load(Ordering::SeqCst), 0);
            }
        }
    }
}

#[tokio::test]
async fn a_run_under_way_ends_with_the_access_of_its_owner() {
    let shared = Shared::new();
    let owners = Owners::new(Ok(Some(Scopes::parse("read write"))));
    let known: Arc<dyn Authenticator> = owners.clone();
    let served = shared.instance(None, Some(&known)).await;
    let id = detach(&served.client("ada").await, HELD).await;
    shared.app.held.notified().await;
    *owners.now.lock().unwrap() = Ok(None);
    let ended = shared.until(&id, State::Ended).await;
    assert_eq!(ended.head.ending.unwrap().code.as_deref(), Some("EXECUTION_ACCESS_ENDED"));
    assert_eq!(result(&served, &id).await["error"]["code"], "EXECUTION_ACCESS_ENDED");
    assert_eq!(shared.app.effects.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_run_whose_approval_is_given_goes_on_with_what_its_owner_may_do_by_then() {
    let shared = Shared::new();
    let owners: Arc<dyn Authenticator> = Owners::new(Ok(Some(Scopes::parse("read"))));
    let served = shared.instance(Some(Approvals::default()), Some(&owners)).await;
    let id = detach(&served.client("ada").await, CAUGHT).await;
    shared.until(&id, State::Waiting).await;
    let store = served.gateway.invoker().approvals();
    store
        .decide(&waiting(store).await, Some(ApprovalDuration::Once), Approver::Operator("ops"))
        .await
        .unwrap();
    shared.until(&id, State::Ended).await;
    assert_eq!(result(&served, &id).await["result"], "ACCESS_DENIED");
    assert_eq!(shared.app.effects.load(Ordering::SeqCst), 0);
}

/// Permits `effect` to the group `ops` only.
#[derive(Debug)]
struct OfGroup;

impl PolicyEngine for OfGroup {
    fn decide(&self, request: &PolicyRequest<'_>) -> Decision {
        match request.object {
            PolicyObject::Tool(tool) if tool.name == "app:effect" => {
                match request.principal.groups.names().any(|group| group == "ops") {
                    true => Decision::Permit,
                    false => Decision::Forbid(Forbidden::Policy("ops".into())),
                }
            }
            _ => Decision::Permit,
        }
    }

    fn may_permit(&self, _: &Principal, _: &PolicyObject<'_>) -> bool {
        true
    }
}

fn in_groups(names: &[&str]) -> Principal {
    Principal { groups: Groups::new(names.iter().copied()).unwrap(), ..principal_of("*") }
}

#[tokio::test]
async fn policies_decide_by_the_groups_that_an_owner_is_in_when_its_run_goes_on() {
    for (before, after, expected) in [
        (in_groups(&["ops"]), in_groups(&["dev", "ops"]), json!(1)),
        (in_groups(&["ops"]), in_groups(&["dev"]), json!("ACCESS_DENIED")),
        (in_groups(&[]), in_groups(&["ops"]), json!(1)),
    ] {
        let shared = Shared::new();
        let first = shared.instance(None, None).await;
        let id = detach(&Client(first.connect(before.clone(), ()).await), HELD).await;
        shared.app.held.notified().await;
        first.code_call.close().await;
        assert_eq!(shared.executions.head(&id, Reader::Operator).await.unwrap().owner, before);
        let owners = Owners::new(Err(RecordsError::Unavailable));
        *owners.groups.lock().unwrap() = after.groups.clone();
        let known: Arc<dyn Authenticator> = owners.clone();
        let second = shared.instance(None, Some(&known)).await;
        let policies = Policies { engine: Some(Arc::new(OfGroup)), approvals: Approvals::default() };
        second.gateway.registry().set_policies(Some(policies));
        *owners.now.lock().unwrap() = Ok(Some(before.scopes));
        shared.until(&id, State::Ended).await;
        let told =
            Client(second.connect(after, ()).await).body("codecall:execute", json!({"resume": id})).await;
        assert_eq!(told["result"], expected, "{told}");
    }
}

#[tokio::test]
async fn policies_decide_by_the_groups_of_the_request_that_resumes_a_run() {
    for (groups, expected) in [(&["ops"][..], json!(1)), (&["dev"], json!("ACCESS_DENIED"))] {
        let shared = Shared::new();
        let served = shared.instance(Some(Approvals::default()), None).await;
        let approvals = Approvals { writes: Some(Approval::Ask), ..Approvals::default() };
        let policies = Policies { engine: Some(Arc::new(OfGroup)), approvals };
        served.gateway.registry().set_policies(Some(policies));
        let client = Client(served.connect(in_groups(&["ops"]), ()).await);
        let begun = client.body("codecall:execute", json!({"script": CAUGHT})).await;
        assert_eq!(begun["error"]["code"], "APPROVAL_REQUIRED", "{begun}");
        let store = served.gateway.invoker().approvals();
        let by = Approver::Operator("ops");
        store.decide(&waiting(store).await, Some(ApprovalDuration::Once), by).await.unwrap();
        let later = Client(served.connect(in_groups(groups), ()).await);
        let told = later.body("codecall:execute", json!({"resume": begun["executionId"]})).await;
        assert_eq!(told["result"], expected, "{told}");
    }
}

#[tokio::test]
async fn a_run_whose_token_has_expired_and_whose_instance_is_gone_waits_for_its_owner() {
    let hour = Duration::from_secs(3_600);
    for has_expired in [false, true] {
        let (shared, owners) = (Shared::new(), Owners::new(Ok(Some(Scopes::All))));
        let known: Arc<dyn Authenticator> = owners.clone();
        let now = SystemTime::now();
        owners.shows(if has_expired { now } else { now + hour });
        let first = shared.instance(None, Some(&known)).await;
        let id = detach(&first.client("ada").await, HELD).await;
        shared.app.held.notified().await;
        first.code_call.close().await;
        let second = shared.instance(None, Some(&known)).await;
        if has_expired {
            let left = shared.until(&id, State::Waiting).await.head;
            assert_eq!(left.waiting_for[0].kind, WaitKind::SignIn);
            assert_eq!(shared.app.effects.load(Ordering::SeqCst), 0, "it made no call meanwhile");
            owners.shows(now + hour);
            let client = second.connect(principal_of("write *"), ()).await;
            let told = Client(client).body("codecall:execute", json!({"resume": id})).await;
            assert_eq!(told["status"], "running", "{told}");
        }
        let ended = shared.until(&id, State::Ended).await.head;
        assert_eq!(result(&second, &id).await["result"], 1);
        let scopes = if has_expired { Scopes::parse("write *") } else { Scopes::All };
        assert_eq!(ended.owner.scopes, scopes, "those of the latest token");
    }
}

fn principal_of(scopes: &str) -> Principal {
    Principal { subject: "ada".into(), client_id: None, scopes: Scopes::parse(scopes), ..Principal::local() }
}

#[tokio::test]
async fn an_approval_that_is_given_after_the_token_has_expired_leaves_the_run_to_its_owner() {
    let (shared, owners) = (Shared::new(), Owners::new(Ok(Some(Scopes::All))));
    let known: Arc<dyn Authenticator> = owners.clone();
    owners.shows(SystemTime::now());
    let served = shared.instance(Some(Approvals::default()), Some(&known)).await;
    let id = detach(&served.client("ada").await, CAUGHT).await;
    shared.until(&id, State::Waiting).await;
    let store = served.gateway.invoker().approvals();
    store
        .decide(&waiting(store).await, Some(ApprovalDuration::Once), Approver::Operator("ops"))
        .await
        .unwrap();
    while !store.settled().await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let head = shared.executions.head(&id, Reader::Operator).await.unwrap();
    assert_eq!((head.state, head.resumed), (State::Waiting, 0));
    owners.shows(SystemTime::now() + Duration::from_secs(3_600));
    assert_eq!(result(&served, &id).await["status"], "running");
    shared.until(&id, State::Ended).await;
    assert_eq!(result(&served, &id).await["result"], 1, "the approval still holds");
}
