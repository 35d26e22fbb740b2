//! Apps are told of what is not followed any more, a few resources at a time, and those that take the place of others of what is.

#![expect(deprecated, reason = "sessions of the older era follow resources by requests")]

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use gatewright_core::{
    App, AppOptions, Gateway, GatewayConfig, Invoker, LocalApp, Principal, Registry, ToolNames,
    memory_transport,
    rmcp::{
        ErrorData, RoleClient, RoleServer, ServerHandler, ServiceExt as _,
        model::{
            ListResourceTemplatesResult, PaginatedRequestParams, ProtocolVersion, ServerConfig,
            SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
        },
        service::{
            ClientLifecycleMode, ClientServiceExt as _, Peer, RequestContext, RunningService, Subscription,
        },
    },
};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::{person::made, support::lists};

const FOLLOWED: usize = 300;

/// Counts the requests to stop following that it is working on, and ends them when it is let.
#[derive(Clone)]
struct Slow {
    open: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    told: Arc<Mutex<HashSet<String>>>,
    /// Each resource, and `true` if it is followed.
    follows: Arc<Mutex<HashMap<String, bool>>>,
    go: Arc<Semaphore>,
    /// It lists no resources.
    hides: Arc<AtomicBool>,
    /// Those who asked for its resources.
    peers: Arc<Mutex<Vec<Peer<RoleServer>>>>,
}

impl ServerHandler for Slow {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::default();
        info.capabilities = made(json!({"resources": {"subscribe": true, "listChanged": true}}));
        info
    }

    lists! {
        list_resources -> ListResourcesResult {"resources": []}
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.peers.lock().unwrap().push(context.peer);
        let template = json!({"uriTemplate": "slow://{number}", "name": "slow"});
        let listed = if self.hides.load(Ordering::SeqCst) { json!([]) } else { json!([template]) };
        Ok(made(json!({"resourceTemplates": listed})))
    }

    async fn subscribe(
        &self,
        params: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.follows.lock().unwrap().insert(params.uri, true);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        params: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.told.lock().unwrap().insert(params.uri.clone());
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(open, Ordering::SeqCst);
        self.go.acquire().await.unwrap().forget();
        self.follows.lock().unwrap().insert(params.uri, false);
        self.open.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

impl Slow {
    fn new() -> Self {
        Self {
            open: Arc::default(),
            most: Arc::default(),
            told: Arc::default(),
            follows: Arc::default(),
            go: Arc::new(Semaphore::new(0)),
            hides: Arc::default(),
            peers: Arc::default(),
        }
    }

    /// A gateway before it.
    async fn gateway(&self) -> Gateway {
        let registry = Registry::new(ToolNames::default());
        let app = Arc::new(LocalApp::start(self.clone()).await.unwrap());
        registry.add("slow", app, AppOptions::default());
        Gateway::new(GatewayConfig::new("test", "1"), Arc::new(Invoker::new(registry)), Vec::new())
    }

    /// It, as the registry lists it.
    async fn listed(&self) -> (String, Arc<dyn App>, AppOptions) {
        let app: Arc<dyn App> = Arc::new(LocalApp::start(self.clone()).await.unwrap());
        ("slow".to_owned(), app, AppOptions::default())
    }

    /// Says that its lists have changed.
    async fn announce(&self) {
        let peer = self.peers.lock().unwrap().last().unwrap().clone();
        peer.notify_resource_list_changed().await.unwrap();
    }

    /// The resources that it was told about.
    fn told(&self) -> HashSet<String> {
        self.told.lock().unwrap().clone()
    }
}

async fn connect(gateway: &Gateway) -> RunningService<RoleClient, ()> {
    let (client_end, server_end) = memory_transport();
    let session = gateway.session_of(Principal::local());
    tokio::spawn(async move { session.serve(server_end).await.unwrap().waiting().await });
    ().serve(client_end).await.unwrap()
}

/// Follows so many resources in a session that ends.
async fn follow_and_leave(gateway: &Gateway, resources: usize) {
    let session = connect(gateway).await;
    for number in 0..resources {
        session.peer().subscribe(SubscribeRequestParams::new(format!("slow://{number}"))).await.unwrap();
    }
    session.cancel().await.unwrap();
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_app_is_told_of_all_that_a_session_followed_but_of_few_at_once_and_of_none_that_is_followed_again()
{
    let app = Slow::new();
    let gateway = app.gateway().await;
    follow_and_leave(&gateway, FOLLOWED).await;
    until(|| app.open.load(Ordering::SeqCst) > 0).await;
    let again = connect(&gateway).await;
    let waits = (0..FOLLOWED).map(|number| format!("slow://{number}")).find(|uri| !app.told().contains(uri));
    let waits = waits.expect("some have not had their turn");
    again.peer().subscribe(SubscribeRequestParams::new(&*waits)).await.unwrap();
    // One that the app is being told of.
    let under_way = app.told().into_iter().next().unwrap();
    again.peer().subscribe(SubscribeRequestParams::new(&*under_way)).await.unwrap();
    app.go.add_permits(FOLLOWED);
    until(|| app.told().len() == FOLLOWED - 1 && app.open.load(Ordering::SeqCst) == 0).await;
    assert!(!app.told().contains(&waits));
    until(|| app.follows.lock().unwrap()[&under_way]).await;
    assert_eq!(app.follows.lock().unwrap().values().filter(|follows| **follows).count(), 2);
    let most = app.most.load(Ordering::SeqCst);
    assert!((1..=8).contains(&most), "{most} at once");
}

#[tokio::test(start_paused = true)]
async fn an_app_that_does_not_answer_the_end_of_subscriptions_is_told_of_the_rest_after_five_seconds() {
    let app = Slow::new();
    let gateway = app.gateway().await;
    follow_and_leave(&gateway, 20).await;
    until(|| app.told().len() == 8).await;
    tokio::time::advance(Duration::from_secs(5)).await;
    until(|| app.told().len() == 20).await;
    assert_eq!(app.open.load(Ordering::SeqCst), 20, "it answered none");
}

#[tokio::test]
async fn what_is_followed_is_followed_at_the_app_that_takes_the_place_of_another_one() {
    let (first, second, third) = (Slow::new(), Slow::new(), Slow::new());
    let gateway = first.gateway().await;
    let session = connect(&gateway).await;
    session.peer().subscribe(SubscribeRequestParams::new("slow://1")).await.unwrap();
    let is_followed = |app: &Slow| app.follows.lock().unwrap().get("slow://1") == Some(&true);
    assert!(is_followed(&first));
    gateway.registry().set(vec![second.listed().await]);
    until(|| is_followed(&second)).await;
    // It is away for a while.
    gateway.registry().set(Vec::new());
    gateway.registry().set(vec![third.listed().await]);
    until(|| is_followed(&third)).await;
    // Another app has what one had that was taken out.
    let fourth = Slow::new();
    let (_, app, options) = fourth.listed().await;
    gateway.registry().set(vec![("other".to_owned(), app, options)]);
    until(|| is_followed(&fourth)).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_follows_what_it_asked_for_once_an_app_offers_it() {
    let app = Slow::new();
    let gateway = app.gateway().await;
    let listed = app.listed().await;
    gateway.registry().set(Vec::new());
    let (client_end, server_end) = memory_transport();
    let session = gateway.session_of(Principal::local());
    tokio::spawn(async move { session.serve(server_end).await.unwrap().waiting().await });
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
    let client = ().serve_with_lifecycle(client_end, lifecycle).await.unwrap();
    let wanted: SubscriptionFilter =
        made(json!({"resourceSubscriptions": ["slow://1", "other://1"], "resourcesListChanged": true}));
    let mut stream = client.peer().listen(wanted).await.unwrap();
    gateway.registry().set(vec![listed]);
    stream.next().await.unwrap().expect("the lists have changed");
    while app.follows.lock().unwrap().get("slow://1") != Some(&true) {
        tokio::time::advance(Duration::from_millis(100)).await;
    }
}

/// Listeners of both eras that follow `slow://1`.
async fn listeners(gateway: &Gateway) -> (RunningService<RoleClient, ()>, Subscription) {
    let older = connect(gateway).await;
    older.peer().subscribe(SubscribeRequestParams::new("slow://1")).await.unwrap();
    let (client_end, server_end) = memory_transport();
    let session = gateway.session_of(Principal::local());
    tokio::spawn(async move { session.serve(server_end).await.unwrap().waiting().await });
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
    let newer = ().serve_with_lifecycle(client_end, lifecycle).await.unwrap();
    let wanted: SubscriptionFilter = made(json!({"resourceSubscriptions": ["slow://1"]}));
    (older, newer.peer().listen(wanted).await.unwrap())
}

#[tokio::test]
async fn what_is_followed_is_followed_at_the_app_that_is_read_now() {
    let [first, second] = [Slow::new(), Slow::new()];
    for app in [&first, &second] {
        app.go.add_permits(100);
    }
    let is_followed = |app: &Slow| app.follows.lock().unwrap().get("slow://1") == Some(&true);
    let gateway = second.gateway().await;
    let _listeners = listeners(&gateway).await;
    until(|| is_followed(&second)).await;
    let at_second = gateway.registry().operator_snapshot();
    let of_second = at_second.app("slow").unwrap().app.clone();
    let (_, of_first, _) = first.listed().await;
    let listed = |id: &str, app: &Arc<dyn App>| (id.to_owned(), app.clone(), AppOptions::default());
    // One that comes before it is added by a reload, and taken out.
    gateway.registry().set(vec![listed("first", &of_first), listed("slow", &of_second)]);
    until(|| is_followed(&first) && !is_followed(&second)).await;
    gateway.registry().set(vec![listed("slow", &of_second)]);
    until(|| is_followed(&second)).await;
    // What is there all the time does not offer it, and offers it.
    first.hides.store(true, Ordering::SeqCst);
    let (_, of_first, _) = first.listed().await;
    gateway.registry().set(vec![listed("first", &of_first), listed("slow", &of_second)]);
    first.hides.store(false, Ordering::SeqCst);
    first.announce().await;
    until(|| is_followed(&first) && !is_followed(&second)).await;
    first.hides.store(true, Ordering::SeqCst);
    first.announce().await;
    until(|| is_followed(&second)).await;
}
