//! Apps are told of what is not followed any more, a few resources at a time.

#![expect(deprecated, reason = "sessions of the older era follow resources by requests")]

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use gatewright_core::{
    AppOptions, Gateway, GatewayConfig, Invoker, LocalApp, Principal, Registry, ToolNames, memory_transport,
    rmcp::{
        ErrorData, RoleServer, ServerHandler, ServiceExt as _,
        model::{ServerConfig, SubscribeRequestParams, UnsubscribeRequestParams},
        service::RequestContext,
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
}

impl ServerHandler for Slow {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::default();
        info.capabilities = made(json!({"resources": {"subscribe": true}}));
        info
    }

    lists! {
        list_resources -> ListResourcesResult {"resources": []}
        list_resource_templates -> ListResourceTemplatesResult {"resourceTemplates": [
            {"uriTemplate": "slow://{number}", "name": "slow"},
        ]}
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

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_app_is_told_of_all_that_a_session_followed_but_of_few_at_once_and_of_none_that_is_followed_again()
{
    let app = Slow {
        open: Arc::default(),
        most: Arc::default(),
        told: Arc::default(),
        follows: Arc::default(),
        go: Arc::new(Semaphore::new(0)),
    };
    let registry = Registry::new(ToolNames::default());
    registry.add("slow", Arc::new(LocalApp::start(app.clone()).await.unwrap()), AppOptions::default());
    let gateway = Gateway::new(GatewayConfig::new("test", "1"), Arc::new(Invoker::new(registry)), Vec::new());
    let connect = async || {
        let (client_end, server_end) = memory_transport();
        let session = gateway.session_of(Principal::local());
        tokio::spawn(async move { session.serve(server_end).await.unwrap().waiting().await });
        ().serve(client_end).await.unwrap()
    };
    let first = connect().await;
    for number in 0..FOLLOWED {
        first.peer().subscribe(SubscribeRequestParams::new(format!("slow://{number}"))).await.unwrap();
    }
    first.cancel().await.unwrap();
    until(|| app.open.load(Ordering::SeqCst) > 0).await;
    let again = connect().await;
    let told = || app.told.lock().unwrap().clone();
    let waits = (0..FOLLOWED).map(|number| format!("slow://{number}")).find(|uri| !told().contains(uri));
    let waits = waits.expect("some have not had their turn");
    again.peer().subscribe(SubscribeRequestParams::new(&*waits)).await.unwrap();
    // One that the app is being told of.
    let under_way = told().into_iter().next().unwrap();
    again.peer().subscribe(SubscribeRequestParams::new(&*under_way)).await.unwrap();
    app.go.add_permits(FOLLOWED);
    until(|| told().len() == FOLLOWED - 1 && app.open.load(Ordering::SeqCst) == 0).await;
    assert!(!told().contains(&waits));
    until(|| app.follows.lock().unwrap()[&under_way]).await;
    assert_eq!(app.follows.lock().unwrap().values().filter(|follows| **follows).count(), 2);
    let most = app.most.load(Ordering::SeqCst);
    assert!((1..=8).contains(&most), "{most} at once");
}
