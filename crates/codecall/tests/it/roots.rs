//! Paths below the roots of a client in errors.
#![expect(deprecated, reason = "sessions have roots, which SEP-2577 marks as deprecated")]

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use gatewright_core::{
    OwnPaths,
    rmcp::{
        ClientHandler, ErrorData, RoleClient,
        model::{ClientConfig, ListRootsResult, RootsCapabilities},
        service::RequestContext,
    },
};
use serde_json::json;

use super::{
    inputs::files,
    support::{Client, Served},
};

const KEPT: &str = "access denied: /srv/x not in /opt/gateway/data";
const MASKED: &str = "access denied: /srv/x not in [path]";

/// A client with these roots; none if it does not answer.
#[derive(Clone, Default)]
struct Rooted {
    roots: Arc<Mutex<Option<Vec<&'static str>>>>,
    asked: Arc<AtomicUsize>,
}

impl Rooted {
    fn new(roots: Option<Vec<&'static str>>) -> Self {
        Self { roots: Arc::new(Mutex::new(roots)), ..Self::default() }
    }
}

impl ClientHandler for Rooted {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.capabilities.roots = Some(RootsCapabilities::default());
        info
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let Some(roots) = self.roots.lock().unwrap().clone() else { return std::future::pending().await };
        let roots: Vec<_> = roots.into_iter().map(|uri| json!({"uri": uri})).collect();
        Ok(serde_json::from_value(json!({"roots": roots})).unwrap())
    }
}

async fn message(client: &Client<Rooted>) -> String {
    let invoked =
        client.body("codecall:invoke", json!({"tool": "app:open", "input": {"path": "/srv/x"}})).await;
    let script =
        "try { await callTool('app:open', {path: '/srv/x'}) } catch (error) { return error.message }";
    assert_eq!(client.run(script).await, invoked["error"]["message"]);
    let thrown = json!({"script": "return await callTool('app:open', {path: '/srv/x'})"});
    let thrown = client.body("codecall:execute", thrown).await;
    assert_eq!(thrown["error"]["message"], invoked["error"]["message"]);
    invoked["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn errors_keep_paths_below_the_roots_of_their_client_which_is_asked_once_until_they_change() {
    let served = Served::over(json!({}), files()).await;
    let rooted = Rooted::new(Some(vec!["file:///opt/gateway"]));
    let (ada, bob) = (served.client_with("ada", rooted.clone()).await, served.client("bob").await);
    assert_eq!(rooted.asked.load(Ordering::SeqCst), 0, "nobody is asked before it matters");
    assert_eq!(message(&ada).await, KEPT);
    assert_eq!(rooted.asked.load(Ordering::SeqCst), 1);
    let other = bob.body("codecall:invoke", json!({"tool": "app:open", "input": {"path": "/srv/x"}})).await;
    assert_eq!(other["error"]["message"], MASKED, "roots are those of one session");
    *rooted.roots.lock().unwrap() = Some(vec!["file:///opt/other"]);
    ada.0.peer().notify_roots_list_changed().await.unwrap();
    assert_eq!(message(&ada).await, MASKED);
    assert_eq!(rooted.asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn roots_that_are_too_wide_and_paths_of_the_gateway_open_nothing() {
    let served = Served::over(json!({}), files()).await;
    served.code_call.hide_paths(OwnPaths {
        home: Some("/opt/gateway/home".to_owned()),
        others: vec!["/opt/gateway/data".to_owned()],
    });
    for root in ["file:///", "file:///opt", "file:///opt/gateway", "file:///opt/gateway/data"] {
        let client = served.client_with("ada", Rooted::new(Some(vec![root]))).await;
        assert_eq!(message(&client).await, MASKED, "{root}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_name_its_roots_is_not_waited_for_twice() {
    let served = Served::over(json!({}), files()).await;
    let rooted = Rooted::new(None);
    let ada = served.client_with("ada", rooted.clone()).await;
    for _ in 0..2 {
        let input = json!({"tool": "app:open", "input": {"path": "/srv/x"}});
        let invoked = ada.body("codecall:invoke", input).await;
        assert_eq!(invoked["error"]["message"], MASKED);
    }
    assert_eq!(rooted.asked.load(Ordering::SeqCst), 1);
}
