//! Endpoints: a part of what a gateway offers, for every method, and never more than the caller has without one.

use std::{collections::BTreeMap, sync::Arc};

use gatewright_core::{
    AccessMode, Caller, Change, EndpointConfig, Gateway, METHODS, Principal, Registry, View,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::access::{Row, ask, client, gateway, granted, new_task, row};

fn endpoints(configs: Value) -> BTreeMap<String, EndpointConfig> {
    serde_json::from_value(configs).unwrap()
}

async fn with_endpoints(configs: Value) -> Arc<Gateway> {
    let gateway = gateway(Default::default()).await;
    gateway.registry().set_endpoints(&endpoints(configs));
    gateway
}

fn at(endpoint: &str) -> Principal {
    granted("ada", "*").at(Some(endpoint.into()))
}

#[tokio::test]
async fn every_method_reaches_at_an_endpoint_what_it_offers_and_at_another_or_a_removed_one_nothing() {
    let gateway = with_endpoints(json!({"vault": {"apps": ["vault"]}, "other": {"apps": ["shop"]}})).await;
    for method in METHODS {
        for (endpoint, has) in [("vault", true), ("other", false), ("removed", false)] {
            let who = at(endpoint);
            let task = new_task(&gateway, at("vault")).await;
            let (row, modern, params) = row(method, &task);
            let context = format!("{method} at {endpoint}");
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            let missing = gateway.missing_scopes(Caller::new(who.clone()), None, message.to_string()).await;
            assert_eq!(missing, [""; 0], "{context}");
            let client = client(&gateway, who, modern).await;
            if method == "subscriptions/listen" {
                // It ends with the server only. What it follows is what `resources/subscribe` finds.
                continue;
            }
            let answer = ask(&client, method, params).await;
            match row {
                Row::Free => drop(answer.unwrap_or_else(|error| panic!("{context}: {error}"))),
                Row::Listed => {
                    let answer = answer.unwrap();
                    let items = answer.as_object().unwrap().values().find_map(Value::as_array).unwrap();
                    assert_eq!(items.is_empty(), !has, "{context}: {answer}");
                }
                Row::Guarded if has => drop(answer.unwrap_or_else(|error| panic!("{context}: {error}"))),
                Row::Guarded if method == "tools/call" => {
                    let code = answer.unwrap_err().data.map(|data| data["code"].clone());
                    assert_eq!(code, Some(json!("TOOL_NOT_FOUND")), "{context}");
                }
                Row::Guarded => {
                    let error = answer.unwrap_err();
                    let data = error.data.as_ref().map(|data| &data["requiredScopes"]);
                    assert!(data.is_none_or(Value::is_null), "{context}: {error}");
                }
            }
        }
    }
}

#[tokio::test]
async fn tasks_and_states_of_one_endpoint_are_unknown_at_every_other() {
    let gateway = with_endpoints(json!({"a": {"apps": ["vault"]}, "b": {"apps": ["vault"]}})).await;
    let task = new_task(&gateway, at("a")).await;
    let own = client(&gateway, at("a"), true).await;
    let asked = ask(&own, "tools/call", json!({"name": "vault:ask"})).await.unwrap();
    let again = json!({"name": "vault:ask", "requestState": asked["requestState"], "inputResponses": {}});
    for elsewhere in [at("b"), granted("ada", "*")] {
        let client = client(&gateway, elsewhere, true).await;
        let error = ask(&client, "tasks/get", json!({"taskId": task})).await.unwrap_err();
        assert!(error.message.starts_with("unknown task"), "{error}");
        let error = ask(&client, "tools/call", again.clone()).await.unwrap_err();
        assert!(error.message.contains("was not given to you"), "{error}");
    }
    assert!(ask(&own, "tasks/get", json!({"taskId": task})).await.is_ok());
    assert!(ask(&own, "tools/call", again).await.is_ok());
}

#[tokio::test]
async fn a_task_is_gone_once_its_endpoint_excludes_its_tool() {
    let gateway = with_endpoints(json!({"a": {"apps": ["vault"]}})).await;
    let task = new_task(&gateway, at("a")).await;
    let excluding = endpoints(json!({"a": {"apps": ["vault"], "exclude": ["vault:slow"]}}));
    gateway.registry().set_endpoints(&excluding);
    let client = client(&gateway, at("a"), true).await;
    assert!(ask(&client, "tasks/get", json!({"taskId": task})).await.is_err());
}

#[tokio::test]
async fn an_endpoint_needs_its_scopes_besides_those_of_what_it_offers() {
    let gateway = with_endpoints(json!({"a": {"apps": ["vault"], "scopes": ["support"]}})).await;
    let who = |scopes: &str| granted("ada", scopes).at(Some("a".into()));
    for (scopes, may) in [("support", true), ("other", false), ("", false)] {
        let tools = gateway.registry().view(&Caller::new(who(scopes))).tools().len();
        assert_eq!(tools, if may { 3 } else { 0 }, "{scopes}");
        let missing = gateway.registry().endpoints().missing_scopes(&who(scopes));
        assert_eq!(missing, if may { Vec::new() } else { vec!["support".to_owned()] }, "{scopes}");
        let client = client(&gateway, who(scopes), true).await;
        let called = ask(&client, "tools/call", json!({"name": "vault:open"})).await.unwrap();
        assert_eq!(called["isError"] == true, !may, "{called}");
        let read = ask(&client, "resources/read", json!({"uri": "vault://gold"})).await;
        assert_eq!(read.is_ok(), may, "{scopes}");
    }
    // The scopes are those of the endpoint, and not of the main one.
    assert_eq!(gateway.registry().view(&Caller::new(granted("ada", ""))).tools().len(), 3);
}

#[tokio::test]
async fn a_client_is_told_the_words_of_its_endpoint_and_has_its_mode() {
    let texts = json!({"a": {"apps": ["vault"], "title": "Vault", "description": "Gold.", "instructions": "Be quick.",
        "mode": "direct"}, "b": {"apps": ["vault"]}});
    let gateway = with_endpoints(texts).await;
    for modern in [false, true] {
        for (endpoint, title, text) in [("a", Some("Vault"), Some("Be quick.")), ("b", None, None)] {
            let info = client(&gateway, at(endpoint), modern).await.peer_info().unwrap();
            let server = info.server_info.clone().unwrap();
            assert_eq!((server.title.as_deref(), info.instructions.as_deref()), (title, text));
            assert_eq!(server.description.as_deref(), title.map(|_| "Gold."));
        }
    }
    let mode = gateway.registry().endpoints().get("a").unwrap().config.mode;
    assert_eq!(mode, Some(AccessMode::Direct));
}

#[tokio::test]
async fn whoever_listens_hears_of_new_endpoints_and_a_removed_one_is_noticed() {
    let gateway = with_endpoints(json!({"a": {"apps": ["vault"]}})).await;
    let (registry, mut changes) = (gateway.registry().clone(), gateway.registry().changes());
    let removed = registry.endpoints().until_removed(Some("a".into()));
    registry.set_endpoints(&endpoints(json!({"b": {"apps": ["vault"]}})));
    removed.await;
    assert_eq!(changes.recv().await.unwrap().change, Change::Tools);
    assert!(registry.view(&Caller::new(at("a"))).tools().is_empty());
    assert_eq!(registry.view(&Caller::new(at("b"))).tools().len(), 3);
}

/// Everything that a view lists, and what it lets its caller use of what exists.
fn all(view: &View) -> Vec<String> {
    let mut all: Vec<String> = view.tools().iter().map(|tool| format!("tool {}", tool.name)).collect();
    all.extend(view.resources().iter().map(|one| format!("resource {}", one.key)));
    all.extend(view.templates().iter().map(|one| format!("template {}", one.key)));
    all.extend(view.prompts().iter().map(|one| format!("prompt {}", one.key)));
    all.extend(view.app_ids().map(|id| format!("app {id}")));
    for name in ["vault:open", "vault_slow", "safe:open", "safe:ask", "shop:open"] {
        all.extend(view.tool(name).ok().map(|tool| format!("use {}", tool.entry().name)));
    }
    for uri in ["vault://gold", "safe:vault://gold", "vault:vault://box/7", "vault://box/9", "vault://x"] {
        let found = view.resource(uri).into_iter().flatten();
        all.extend(found.map(|item| format!("read {} {}", item.app_id(), item.local())));
    }
    for name in ["reveal", "safe:reveal"] {
        all.extend(view.prompt(name).ok().map(|item| format!("get {} {}", item.app_id(), item.local())));
    }
    all
}

fn two_apps() -> Arc<Registry> {
    static MADE: std::sync::OnceLock<(tokio::runtime::Runtime, Arc<Registry>)> = std::sync::OnceLock::new();
    let make = || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let registry = runtime.block_on(crate::access::two_vaults());
        (runtime, registry)
    };
    MADE.get_or_init(make).1.clone()
}

fn entries(of: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(proptest::sample::select(of).prop_map(str::to_owned), 0..3)
}

proptest! {
    #[test]
    fn no_endpoint_gives_what_its_caller_has_not_without_it(
        apps in entries(&["vault", "safe", "*", "shop"]),
        tools in entries(&["vault:open", "safe:*", "*:a*", "vault:s*w", "shop:open"]),
        resources in entries(&["vault", "safe", "*"]),
        prompts in entries(&["vault", "safe", "*"]),
        exclude in entries(&["vault:*", "*:open", "safe:slow"]),
        scopes in entries(&["support", "vault:use"]),
        granted_scopes in proptest::sample::select(&["", "support", "vault:use", "vault:use support", "*"][..]),
    ) {
        let registry = two_apps();
        let config = EndpointConfig { apps, tools, resources, prompts, exclude, scopes, ..Default::default() };
        let name = format!("{config:?}");
        // Cases run one after another.
        registry.set_endpoints(&[(name.clone(), config)].into());
        let who = granted("ada", granted_scopes);
        let main = all(&registry.view(&Caller::new(who.clone())));
        for item in all(&registry.view(&Caller::new(who.at(Some(name.into()))))) {
            prop_assert!(main.contains(&item), "{item} is not at the main endpoint: {main:?}");
        }
    }
}
