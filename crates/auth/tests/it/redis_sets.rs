//! A master behind sentinels, and a cluster: what is under way outlives a fail-over (checklist K06, K07).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gatewright_auth::{
    AuthConfig, Deployment, ManualClock,
    store::{Key, RedisStore, Store},
};
use serde_json::{Value, json};

use crate::support::{
    redis_sets::{Cluster, Watched, replicated, says, until},
    site::{ISSUER, Site, config, merge},
};

const MINUTE: Duration = Duration::from_secs(60);

async fn site_on(store: RedisStore) -> Site {
    Site::on(json!({}), Arc::new(ManualClock::from_system()), Arc::new(store)).await
}

/// Redeems `code` as a client does: a 503 says when to come again, and is the only answer besides the tokens.
async fn redeem_patiently(site: &Site, code: &str) -> Value {
    let began = Instant::now();
    loop {
        let answer = site.redeem(code).await;
        if answer.status == 200 {
            return answer.json();
        }
        assert_eq!((answer.status.as_u16(), answer.error().as_str()), (503, "temporarily_unavailable"));
        assert!(!answer.header("retry-after").is_empty() && !answer.text.contains("access_token"));
        assert!(began.elapsed() < Duration::from_secs(40), "the new master is found");
        tokio::task::yield_now().await;
    }
}

async fn goes_on(site: &Site, tokens: &Value) {
    let (access, refresh) =
        (tokens["access_token"].as_str().unwrap(), tokens["refresh_token"].as_str().unwrap());
    assert_eq!(site.introspect(access).await["active"], true);
    assert_eq!(site.refresh(refresh, &[]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn k07_a_sign_in_outlives_its_master_when_sentinels_name_another() {
    let mut servers = Watched::start();
    let site = site_on(RedisStore::connect(&servers.endpoint()).await.unwrap()).await;
    let code = site.code(&[]).await;
    replicated(&servers.master);
    servers.master.stop();
    let tokens = redeem_patiently(&site, &code).await;
    goes_on(&site, &tokens).await;
    assert_eq!(site.redeem(&code).await.error(), "invalid_grant", "still once only");
}

#[tokio::test(flavor = "multi_thread")]
async fn k07_a_master_that_was_made_a_replica_is_left() {
    let servers = Watched::start();
    let site = site_on(RedisStore::connect(&servers.endpoint()).await.unwrap()).await;
    let code = site.code(&[]).await;
    replicated(&servers.master);
    servers.fail_over();
    // Until the old master is told, it takes what is then lost with it.
    until("the master becomes a replica", || {
        says(servers.master.port, &["INFO", "replication"], "role:slave")
    });
    let tokens = redeem_patiently(&site, &code).await;
    goes_on(&site, &tokens).await;
    let family: Vec<String> = servers.replica.command(&["KEYS", "gw:family:*"]);
    assert_eq!(family.len(), 1, "what was written is at the new master");
}

#[tokio::test(flavor = "multi_thread")]
async fn k07_no_sentinel_and_no_such_master_are_errors_at_once() {
    let servers = Watched::start();
    let mut other = servers.endpoint();
    other.layout = gatewright_auth::store::RedisLayout::Sentinel {
        master: "other".into(),
        sentinels: vec![("127.0.0.1".into(), servers.master.port)],
        username: None,
        password: None,
    };
    let began = Instant::now();
    assert!(RedisStore::connect(&other).await.is_err());
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn k06_and_k07_a_cluster_of_three_serves_and_outlives_the_loss_of_a_node() {
    let mut cluster = Cluster::start();
    let store = RedisStore::connect(&cluster.endpoint()).await.unwrap();
    let records: &dyn Store = &store;
    for n in 0..10 {
        records.put(&Key::named("x", &[&n.to_string()]), b"v", MINUTE).await.unwrap();
    }
    let site = site_on(store.clone()).await;
    goes_on(&site, &site.tokens().await).await;
    let code = site.code(&[]).await;
    let owner = cluster.owner;
    let held: u64 = cluster.nodes[owner].command(&["DBSIZE"]);
    assert!(held > 10, "one node holds everything: {held}");
    replicated(&cluster.nodes[owner]);
    cluster.nodes[owner].stop();
    let tokens = redeem_patiently(&site, &code).await;
    goes_on(&site, &tokens).await;
}

#[test]
fn k06_what_says_where_redis_is_must_be_one_thing_and_a_cluster_needs_a_hash_tag() {
    let problems = |over: Value| {
        let mut value = config();
        merge(&mut value, json!({"tokenStorage": {"type": "redis", "config": over}}));
        let config: AuthConfig = serde_json::from_value(value).unwrap();
        let all = config.validate(&Deployment::new(ISSUER, "/mcp", "Notes"));
        all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    for good in [
        json!({"host": "a"}),
        json!({"url": "rediss+sentinel://a,b/main", "keyPrefix": "x:"}),
        json!({"sentinel": {"master": "main", "nodes": ["a", "b:1"]}, "password": "p"}),
        json!({"cluster": ["a:1"]}),
        json!({"cluster": ["a:1", "b"], "keyPrefix": "{x}y:"}),
    ] {
        assert_eq!(problems(good.clone()), "", "{good}");
    }
    for (bad, path) in [
        (json!({}), "config.host"),
        (json!({"url": "redis://:hush-hush@a,b"}), "config.url"),
        (json!({"url": "redis://a", "cluster": ["b"]}), "config.cluster"),
        (json!({"sentinel": {"nodes": ["a"]}}), "config.sentinel.master"),
        (json!({"sentinel": {"master": "m"}}), "config.sentinel.nodes"),
        (json!({"sentinel": {"master": "m", "nodes": ["x@a"]}}), "config.sentinel.nodes"),
        (json!({"cluster": ["a"], "keyPrefix": "gw:"}), "config.keyPrefix"),
        (json!({"cluster": ["a"], "database": 2}), "config.database"),
    ] {
        let said = problems(bad.clone());
        assert!(said.contains(path) && !said.contains("hush-hush"), "{bad}: {said}");
    }
}
