//! Revocations at one instance take effect at the others at once (checklist F22).
//!
//! The clock of these instances does not reach the next look by time (`RECHECK`), so that only what was announced can have done it.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use gatewright_auth::{
    ManualClock, ResourceServer,
    store::{FamilyId, MemoryStore, RedisEndpoint, RedisLayout, RedisStore, SqliteStore, Store},
};
use gatewright_core::{Authenticator as _, Principal, WorkTerms};
use http::{Request, StatusCode, request::Parts};
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::support::{
    log::Log,
    redis_server::RedisServer,
    redis_sets::{Cluster, Watched, says},
    site::Site,
};

fn call(tokens: &Value) -> Parts {
    let bearer = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
    Request::post("/mcp").header("authorization", bearer).body(()).unwrap().into_parts().0
}

async fn status(guard: &ResourceServer, call: &Parts) -> u16 {
    guard.authenticate(call).await.map_or_else(|refused| refused.status().as_u16(), |_| 200)
}

/// Asks until the answer is `wanted`, for at most 40 seconds of the machine's time.
async fn becomes(guard: &ResourceServer, call: &Parts, wanted: u16, what: &str) {
    let began = Instant::now();
    loop {
        let found = status(guard, call).await;
        if found == wanted {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(40), "{what}: still {found}");
        tokio::task::yield_now().await;
    }
}

async fn holds(what: &str, mut held: impl FnMut() -> bool) {
    let began = Instant::now();
    while !held() {
        assert!(began.elapsed() < Duration::from_secs(40), "{what}");
        tokio::task::yield_now().await;
    }
}

/// Returns whether an instance subscribes to revocations at the server on `port`.
async fn listened_to(port: u16) {
    holds("the other instance listens", || says(port, &["PUBSUB", "CHANNELS"], "endings")).await;
}

/// Work that goes on without a request, and the request that began it.
struct Work {
    call: Parts,
    owner: Principal,
    terms: WorkTerms,
    since: SystemTime,
}

impl Work {
    async fn owner_now(&self, guard: &ResourceServer) -> Option<Principal> {
        guard.principal_now(&self.owner, self.since, self.terms.grant.as_deref()).await.unwrap()
    }
}

/// Two instances with one clock.
struct Two {
    here: Site,
    there: Site,
    clock: Arc<ManualClock>,
}

impl Two {
    async fn on(here: Arc<dyn Store>, there: Arc<dyn Store>, clock: Arc<ManualClock>) -> Self {
        let here = Site::on(json!({}), clock.clone(), here).await;
        let there = Site::on(json!({}), clock.clone(), there).await;
        Self { here, there, clock }
    }

    async fn on_redis(endpoint: &RedisEndpoint) -> Self {
        let store = || async { Arc::new(RedisStore::connect(endpoint).await.unwrap()) };
        Self::on(store().await, store().await, Arc::new(ManualClock::from_system())).await
    }

    /// Tokens that `guard`, of the other instance, has seen and remembers.
    async fn known_tokens(&self, guard: &ResourceServer) -> Value {
        // What is cut off at a moment was granted before it.
        self.clock.advance(Duration::from_millis(2));
        let tokens = self.here.tokens().await;
        assert_eq!(status(guard, &call(&tokens)).await, 200);
        tokens
    }

    async fn revoke(&self, tokens: &Value) {
        let token = tokens["refresh_token"].as_str().unwrap();
        let answer = self.here.post("/oauth/revoke", &[("token", token), ("client_id", "app")]).await;
        assert_eq!(answer.status, StatusCode::OK);
    }

    /// Begins work that goes on without its token.
    async fn begin(&self, guard: &ResourceServer, tokens: &Value) -> Work {
        let call = call(tokens);
        let owner = guard.authenticate(&call).await.unwrap();
        let terms = guard.work_terms(&call).await;
        let since = UNIX_EPOCH + Duration::from_secs(self.here.now_s());
        let work = Work { call, owner, terms, since };
        assert_eq!(work.owner_now(guard).await, Some(work.owner.clone()));
        work
    }

    /// Sees the token and the work refused.
    async fn ends(&self, guard: &ResourceServer, work: &Work, what: &str) {
        becomes(guard, &work.call, 401, what).await;
        assert_eq!(work.owner_now(guard).await, None, "{what}");
    }

    /// Ends things in every way there is, and sees each refused at the other instance, where work ends that its tokens began.
    async fn all_endings_are_heard(&self) {
        let guard = self.there.resource_server();
        let tokens = self.known_tokens(&guard).await;
        let work = self.begin(&guard, &tokens).await;
        self.revoke(&tokens).await;
        self.ends(&guard, &work, "revoked").await;

        self.clock.advance(Duration::from_millis(2));
        let code = self.here.code(&[]).await;
        let tokens = self.here.redeem(&code).await.json();
        let work = self.begin(&guard, &tokens).await;
        assert_eq!(self.here.redeem(&code).await.error(), "invalid_grant");
        self.ends(&guard, &work, "the code was used twice").await;

        let tokens = self.known_tokens(&guard).await;
        let work = self.begin(&guard, &tokens).await;
        let first = tokens["refresh_token"].as_str().unwrap();
        let second = self.here.refresh(first, &[]).await.json();
        self.here.refresh(second["refresh_token"].as_str().unwrap(), &[]).await;
        assert_eq!(self.here.refresh(first, &[]).await.error(), "invalid_grant");
        self.ends(&guard, &work, "a refresh token was used twice").await;

        let server = &self.here.server;
        let tokens = self.known_tokens(&guard).await;
        let work = self.begin(&guard, &tokens).await;
        server.revoke_user("user:alice").await.unwrap();
        self.ends(&guard, &work, "the user was cut off").await;
        let tokens = self.known_tokens(&guard).await;
        let work = self.begin(&guard, &tokens).await;
        server.revoke_client("app").await.unwrap();
        self.ends(&guard, &work, "the client was cut off").await;
        let tokens = self.known_tokens(&guard).await;
        let work = self.begin(&guard, &tokens).await;
        server.withdraw_consent("user:alice", "app").await.unwrap();
        self.ends(&guard, &work, "the consent was withdrawn").await;

        self.clock.advance(Duration::from_millis(2));
        let browser = self.here.browser();
        let tokens = self.here.redeem(&browser.code(&[]).await).await.json();
        let work = self.begin(&guard, &tokens).await;
        let page = browser.get("/oauth/logout").await;
        let csrf = page.field("csrf");
        browser.post("/oauth/logout", &[("csrf", &csrf)]).await;
        self.ends(&guard, &work, "the user logged out").await;
    }
}

#[tokio::test]
async fn f22_every_ending_is_refused_at_the_other_instance_on_one_redis_without_waiting() {
    let server = RedisServer::start();
    Two::on_redis(&server.endpoint("gw:")).await.all_endings_are_heard().await;
}

#[tokio::test]
async fn a_revocation_ends_what_an_instance_with_a_fast_clock_granted_just_before() {
    let server = RedisServer::start();
    let store = || async { Arc::new(RedisStore::connect(&server.endpoint("gw:")).await.unwrap()) };
    let ahead = Arc::new(ManualClock::from_system());
    ahead.advance(Duration::from_secs(25));
    let fast = Site::on(json!({}), ahead, store().await).await;
    let here = Site::on(json!({}), Arc::new(ManualClock::from_system()), store().await).await;
    let guard = fast.resource_server();
    let browser = fast.browser();
    let tokens = fast.redeem(&browser.code(&[]).await).await.json();
    assert_eq!(status(&guard, &call(&tokens)).await, 200);
    here.server.revoke_user("user:alice").await.unwrap();
    becomes(&guard, &call(&tokens), 401, "the user was cut off elsewhere").await;
    let refreshed = fast.refresh(tokens["refresh_token"].as_str().unwrap(), &[]).await;
    assert_eq!(refreshed.error(), "invalid_grant");
}

#[tokio::test]
async fn f22_every_ending_is_refused_in_the_other_process_on_one_file_without_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::from_system());
    let path = folder.path().join("auth.db");
    let open = || Arc::new(SqliteStore::open(&path, "gw:", clock.clone()).unwrap());
    Two::on(open(), open(), clock.clone()).await.all_endings_are_heard().await;
}

#[tokio::test]
async fn f22_every_ending_is_refused_by_all_who_share_the_memory_without_waiting() {
    let clock = Arc::new(ManualClock::from_system());
    let store = Arc::new(MemoryStore::new(clock.clone()));
    Two::on(store.clone(), store, clock).await.all_endings_are_heard().await;
}

#[tokio::test]
async fn work_goes_on_when_another_grant_ends_and_after_the_time_of_its_own() {
    let clock = Arc::new(ManualClock::from_system());
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let two = Two::on(store.clone(), store, clock).await;
    let guard = two.there.resource_server();
    let (first, second) = (two.known_tokens(&guard).await, two.known_tokens(&guard).await);
    let (first, work) = (first, two.begin(&guard, &second).await);
    two.revoke(&first).await;
    assert_eq!(work.owner_now(&guard).await, Some(work.owner.clone()));
    // Nothing is known of the grant by then: as with work that named none, the user's and the client's own ends count.
    two.clock.advance(Duration::from_secs(400 * 86_400));
    assert_eq!(work.owner_now(&guard).await, Some(work.owner.clone()));
    two.here.server.revoke_user("user:alice").await.unwrap();
    assert_eq!(work.owner_now(&guard).await, None);
}

#[tokio::test]
async fn f22_a_token_is_asked_about_once_while_nothing_ends() {
    let server = RedisServer::start();
    let two = Two::on_redis(&server.endpoint("gw:")).await;
    let guard = two.there.resource_server();
    let tokens = two.known_tokens(&guard).await;
    listened_to(server.port).await;
    let reads = || {
        let text: String = server.command(&["INFO", "commandstats"]);
        let line = text.lines().find_map(|line| line.strip_prefix("cmdstat_mget:calls=")).unwrap().to_owned();
        line.split(',').next().unwrap().parse::<u64>().unwrap()
    };
    let before = reads();
    for _ in 0..100 {
        assert_eq!(status(&guard, &call(&tokens)).await, 200);
    }
    // One look is two reads; the subscription, which may be noticed only now, asks for one more.
    assert!(reads() <= before + 2, "the store is not asked again");
}

#[tokio::test]
async fn f22_what_ended_while_nobody_listened_is_refused_once_the_subscription_is_made_again() {
    let server = RedisServer::start();
    let two = Two::on_redis(&server.endpoint("gw:")).await;
    let guard = two.there.resource_server();
    let tokens = two.known_tokens(&guard).await;
    listened_to(server.port).await;
    // Ended behind everybody's back: nobody is told.
    let family = FamilyId::of_token(tokens["refresh_token"].as_str().unwrap()).unwrap();
    two.here.store.end_family(&family).await.unwrap();
    let killed: u64 = server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    assert_eq!(killed, 1);
    becomes(&guard, &call(&tokens), 401, "the new subscription counts as an ending").await;
    // And it is a good one.
    let tokens = two.known_tokens(&guard).await;
    two.revoke(&tokens).await;
    becomes(&guard, &call(&tokens), 401, "revoked").await;
}

#[tokio::test]
async fn f22_messages_of_another_prefix_are_not_ours() {
    let server = RedisServer::start();
    let two = Two::on_redis(&server.endpoint("gw:")).await;
    two.there.store.revision();
    listened_to(server.port).await;
    let channels: Vec<String> = server.command(&["PUBSUB", "CHANNELS"]);
    assert_eq!(channels, ["gw:endings"]);
}

#[tokio::test]
async fn f22_sentinels_are_asked_where_to_listen() {
    let servers = Watched::start();
    let two = Two::on_redis(&servers.endpoint()).await;
    let guard = two.there.resource_server();
    let tokens = two.known_tokens(&guard).await;
    listened_to(servers.master.port).await;
    two.revoke(&tokens).await;
    becomes(&guard, &call(&tokens), 401, "revoked").await;
    // A lost subscription leads by way of the sentinels again, whoever is the master then.
    let tokens = two.known_tokens(&guard).await;
    let family = FamilyId::of_token(tokens["refresh_token"].as_str().unwrap()).unwrap();
    two.here.store.end_family(&family).await.unwrap();
    let killed: u64 = servers.master.command(&["CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes"]);
    assert!(killed > 0);
    becomes(&guard, &call(&tokens), 401, "the new subscription counts as an ending").await;
}

#[tokio::test]
async fn f22_a_cluster_passes_endings_on_and_another_node_is_listened_to_when_one_is_lost() {
    let mut cluster = Cluster::start();
    // The node that is listened to first holds none of the records, and the others go on without it, so that nothing but the
    // subscription is lost.
    for node in &cluster.nodes {
        let _: () = node.command(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    }
    let mut endpoint = cluster.endpoint();
    let first = (cluster.owner + 1) % 3;
    if let RedisLayout::Cluster { nodes } = &mut endpoint.layout {
        nodes.rotate_left(first);
    }
    let two = Two::on_redis(&endpoint).await;
    let guard = two.there.resource_server();
    let tokens = two.known_tokens(&guard).await;
    listened_to(cluster.nodes[first].port).await;
    two.revoke(&tokens).await;
    becomes(&guard, &call(&tokens), 401, "revoked").await;
    let tokens = two.known_tokens(&guard).await;
    let family = FamilyId::of_token(tokens["refresh_token"].as_str().unwrap()).unwrap();
    two.here.store.end_family(&family).await.unwrap();
    cluster.nodes[first].stop();
    listened_to(cluster.nodes[(first + 1) % 3].port).await;
    becomes(&guard, &call(&tokens), 401, "the new subscription counts as an ending").await;
}

#[tokio::test]
async fn f22_without_permission_for_the_channel_tokens_are_looked_at_again_by_time_and_the_log_says_what_to_grant()
 {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let users = ["--user", "gw", "on", ">pass", "~gw:*", "resetchannels", "+@all", "--user", "default", "on"];
    let server = RedisServer::with(&users);
    let endpoint = RedisEndpoint {
        username: Some("gw".to_owned()),
        password: Some(SecretString::from("pass")),
        ..server.endpoint("gw:")
    };
    let two = Two::on_redis(&endpoint).await;
    let guard = two.there.resource_server();
    let tokens = two.known_tokens(&guard).await;
    holds("a warning", || log.text().matches("may not subscribe to the channel `gw:endings`").count() == 1)
        .await;
    for tokens in [two.known_tokens(&guard).await, tokens] {
        two.revoke(&tokens).await;
        assert_eq!(status(&guard, &call(&tokens)).await, 200, "nobody could tell");
    }
    let tokens = two.known_tokens(&guard).await;
    two.revoke(&tokens).await;
    two.clock.advance(gatewright_auth::RECHECK);
    assert_eq!(status(&guard, &call(&tokens)).await, 401);
    assert_eq!(log.text().matches("may not publish on the channel `gw:endings`").count(), 1, "said once");
    assert_eq!(
        log.text().matches("ACL SETUSER gw &gw:endings +subscribe +publish").count(),
        2,
        "once by each instance"
    );
}
