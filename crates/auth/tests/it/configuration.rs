//! Validation of configurations, and the production requirements.

use gatewright_auth::{AuthConfig, Deployment};
use serde_json::{Value, json};

fn read(value: Value) -> AuthConfig {
    serde_json::from_value(value).unwrap()
}

fn production() -> Value {
    json!({
        "mode": "orchestrated", "type": "local", "sessionMode": "stateful",
        "tokenStorage": {"type": "redis", "config": {"host": "redis.internal", "port": 6379, "password": "p", "tls": true, "keyPrefix": "gw:"}},
        "local": {"signKey": crate::support::rsa_jwk(), "keyRotationDays": 60, "maxKeys": 3},
        "refresh": {"enabled": true, "skewSeconds": 60, "accessTokenTtl": 900, "refreshTokenTtl": 604_800, "rotateRefreshToken": true},
        "consent": {"enabled": true},
        "allowDefaultPublic": false,
        "dcrEnabled": false,
    })
}

#[test]
fn names_of_users_have_no_line_breaks() {
    let users = |name: &str| json!({"mode": "orchestrated", "local": {"users": [{"username": name, "passwordHash": "x"}]}});
    let deployment = Deployment::new("https://mcp.acme.com", "/mcp", "acme");
    let is_told = |name: &str| {
        let problems = read(users(name)).validate(&deployment);
        problems.iter().any(|problem| problem.path == "auth.local.users[0].username")
    };
    assert!(is_told("ann\nbob") && is_told("ann\u{1b}[2J") && !is_told("Ann Ö. Bob"));
}

#[test]
fn the_production_example_is_fit_and_each_step_away_from_it_is_found() {
    let deployment = Deployment::new("https://mcp.acme.com", "/mcp", "acme");
    let config = read(production());
    assert_eq!(config.validate(&deployment), []);
    assert_eq!(config.check_production(&deployment), []);
    for (change, path) in [
        (json!({"mode": "public"}), "auth.mode"),
        (json!({"allowDefaultPublic": true}), "auth.allowDefaultPublic"),
        (json!({"dcrEnabled": true}), "auth.dcrEnabled"),
        (json!({"tokenStorage": {"type": "memory"}}), "auth.tokenStorage.type"),
        (json!({"tokenStorage": {"config": {"tls": false}}}), "auth.tokenStorage.config.tls"),
        (json!({"local": {"signKey": null}}), "auth.local.signKey"),
        (json!({"local": {"keyRotationDays": 10}}), "auth.local.keyRotationDays"),
        (json!({"local": {"maxKeys": 0}}), "auth.local.maxKeys"),
        (json!({"local": {"login": "demo"}}), "auth.local.login"),
        (json!({"consent": {"enabled": false}}), "auth.consent.enabled"),
        (json!({"limits": {"token": 1_000_000}}), "auth.limits.token"),
        (json!({"refresh": {"rotateRefreshToken": false}}), "auth.refresh.rotateRefreshToken"),
        (json!({"refresh": {"accessTokenTtl": 3600}}), "auth.refresh.accessTokenTtl"),
        (json!({"refresh": {"refreshTokenTtl": 518_400}}), "auth.refresh.refreshTokenTtl"),
        (json!({"refresh": {"absoluteTtl": 31_536_000}}), "auth.refresh.absoluteTtl"),
        (json!({"cimd": {"allowPrivate": true}}), "auth.cimd.allowPrivate"),
        (json!({"provider": {"allowPrivate": true}}), "auth.provider.allowPrivate"),
        (json!({"limits": {"login": 0}}), "auth.limits.login"),
        (json!({"limits": {"wrongPasswords": 10_000}}), "auth.limits.wrongPasswords"),
        (json!({"session": {"absoluteTtl": 31_536_000}}), "auth.session.absoluteTtl"),
        (json!({"encryptionKey": "too short"}), "auth.encryptionKey"),
        (json!({"encryptionKey": "changeme-changeme-changeme-changeme"}), "auth.encryptionKey"),
        (json!({"encryptionKey": "abcdefghijklmnopqrstuvwxyz012345"}), "auth.encryptionKey"),
        (json!({"dcr": {"initialAccessToken": "short"}}), "auth.dcr.initialAccessToken"),
        (
            json!({"apiKeys": [{"name": "ci", "hash": format!("sha256:{}", "0a".repeat(32)), "scopes": []}]}),
            "auth.apiKeys[0].expires",
        ),
        (json!({"limits": {"unknownKeys": 0}}), "auth.limits.unknownKeys"),
        (
            json!({"clients": [{"clientId": "c", "clientSecret": "short", "grantTypes": ["client_credentials"]}]}),
            "auth.clients[0].clientSecret",
        ),
    ] {
        let mut value = production();
        crate::support::site::merge(&mut value, change.clone());
        let found = read(value).check_production(&deployment);
        assert_eq!(found.iter().map(|finding| finding.path.as_str()).collect::<Vec<_>>(), [path], "{change}");
        assert!(!found[0].fix.is_empty());
    }
    let plain = config.check_production(&Deployment::new("http://mcp.acme.com", "/mcp", "acme"));
    assert_eq!(plain[0].path, "http.publicUrl");
    let open = Deployment { redact: vec!["access_token".into()], ..deployment };
    assert_eq!(config.check_production(&open)[0].path, "logging.redact");
}

#[test]
fn what_is_meant_for_one_machine_is_refused_where_others_reach_the_address_listened_on() {
    let local = || Deployment::new("http://localhost:3000", "/mcp", "x");
    let reached = |address: &str| local().listening_on(address.parse().unwrap());
    for (config, path) in [
        (json!({"mode": "public"}), "auth.mode"),
        (json!({"mode": "orchestrated", "local": {"login": "demo"}}), "auth.local.login"),
        (json!({"mode": "orchestrated", "cimd": {"allowPrivate": true}}), "auth.cimd.allowPrivate"),
    ] {
        for deployment in [local(), reached("127.0.0.1"), reached("::1")] {
            assert_eq!(read(config.clone()).validate(&deployment), [], "{config}");
        }
        for deployment in [reached("0.0.0.0"), reached("::"), reached("192.0.2.1")] {
            let problems = read(config.clone()).validate(&deployment);
            assert_eq!(
                problems.iter().map(|problem| problem.path.as_str()).collect::<Vec<_>>(),
                [path],
                "{config}"
            );
        }
    }
}

#[test]
fn e08_and_e09_a_bad_signing_key_keeps_the_server_from_starting_and_says_where() {
    let deployment = Deployment::new("https://mcp.acme.com", "/mcp", "acme");
    let weak = json!({"kty": "RSA", "n": "g".repeat(171), "e": "AQAB", "d": "AAAA"});
    for key in [
        json!("no json"),
        json!({}),
        json!(crate::support::rsa_jwk().public()),
        weak,
        json!({"kty": "oct", "k": "AAAA", "d": "x"}),
    ] {
        let mut value = production();
        value["local"]["signKey"] = key.clone();
        let problems = read(value).validate(&deployment);
        assert_eq!(problems.len(), 1, "{key}");
        assert_eq!(problems[0].path, "auth.local.signKey");
    }
    let mut config = read(json!({"mode": "orchestrated"}));
    config.fill_from(|name| {
        (name == "JWT_SIGNING_KEY").then(|| serde_json::to_string(&crate::support::rsa_jwk()).unwrap())
    });
    assert_eq!(config.validate(&deployment), []);
}

#[test]
fn documented_bounds_are_those_that_are_checked() {
    let deployment = Deployment::new("https://mcp.acme.com", "/mcp", "acme");
    let paths = |at: &[&str], value: Value| {
        let mut config = production();
        let mut field = &mut config;
        for key in at {
            field = &mut field[*key];
        }
        *field = value;
        read(config).validate(&deployment).into_iter().map(|problem| problem.path).collect::<Vec<_>>()
    };
    for good in [1, 86_400] {
        assert_eq!(paths(&["refresh", "accessTokenTtl"], json!(good)), [""; 0]);
    }
    for bad in [0, 86_401] {
        assert_eq!(paths(&["refresh", "accessTokenTtl"], json!(bad)), ["auth.refresh.accessTokenTtl"]);
    }
    for bad in [0, 2_592_001] {
        assert_eq!(paths(&["refresh", "refreshTokenTtl"], json!(bad)), ["auth.refresh.absoluteTtl"]);
    }
    assert_eq!(paths(&["local", "keyRotationDays"], json!(0)), ["auth.local.keyRotationDays"]);
    for good in ["ES256", "EdDSA", "RS256"] {
        assert_eq!(paths(&["local", "algorithm"], json!(good)), [""; 0]);
    }
    for bad in ["RS512", "PS256", "ES384"] {
        assert_eq!(paths(&["local", "algorithm"], json!(bad)), ["auth.local.algorithm"]);
    }
}

#[test]
fn variables_fill_what_the_file_leaves_out_and_no_more() {
    let variables = |name: &str| {
        let value = match name {
            "REDIS_HOST" => "from-env",
            "REDIS_PORT" => "7000",
            "REDIS_PASSWORD" => "p",
            "IDP_PROVIDER_URL" => "https://idp.example",
            "IDP_CLIENT_ID" => "id",
            "IDP_CLIENT_SECRET" => "",
            "IDP_EXPECTED_AUDIENCE" => "aud",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let mut config = read(json!({"tokenStorage": {"type": "redis", "config": {"host": "from-file"}}}));
    config.fill_from(variables);
    let storage = &config.token_storage.config;
    assert_eq!((storage.host.as_deref(), storage.port), (Some("from-file"), Some(7000)));
    assert!(
        storage.password.is_some() && config.provider.client_secret.is_none(),
        "an empty variable counts as none"
    );
    assert_eq!(config.provider.url.as_deref(), Some("https://idp.example"));
    assert_eq!(config.expected_audience.as_deref(), Some("aud"));
}

#[test]
fn unknown_and_unfit_fields_are_named() {
    assert!(serde_json::from_value::<AuthConfig>(json!({"tokenstorage": {}})).is_err());
    assert!(serde_json::from_value::<AuthConfig>(json!({"refresh": {"ttl": 1}})).is_err());
    let deployment = Deployment::new("https://mcp.acme.com", "/mcp", "acme");
    for (value, path) in [
        (json!({}), "auth.mode"),
        (json!({"mode": "transparent", "provider": {"url": "https://idp"}}), "auth.expectedAudience"),
        (
            json!({"mode": "orchestrated", "type": "remote", "provider": {"url": "https://idp"}}),
            "auth.provider.clientId",
        ),
        (json!({"mode": "orchestrated", "tokenStorage": {"type": "redis"}}), "auth.tokenStorage.config.host"),
        (
            json!({"mode": "orchestrated", "tokenStorage": {"type": "sqlite"}}),
            "auth.tokenStorage.config.path",
        ),
        (json!({"mode": "orchestrated", "trustedProxies": ["10.0.0.0/33"]}), "auth.trustedProxies[0]"),
        (json!({"mode": "orchestrated", "refresh": {"absoluteTtl": 1}}), "auth.refresh.absoluteTtl"),
        (
            json!({"mode": "orchestrated", "local": {"users": [{"username": "a", "passwordHash": "plain"}]}}),
            "auth.local.users[0].passwordHash",
        ),
        (
            json!({"mode": "orchestrated", "clients": [{"clientId": "a", "tokenEndpointAuthMethod": "client_secret_basic"}]}),
            "auth.clients[0]",
        ),
    ] {
        let problems = read(value.clone()).validate(&deployment);
        assert_eq!(problems.iter().map(|p| p.path.as_str()).collect::<Vec<_>>(), [path], "{value}");
    }
}

#[test]
fn a_scope_that_nobody_can_be_granted_is_named() {
    let deployment = Deployment::new("https://mcp.acme.com", "/mcp", "acme");
    let hash = crate::support::site::password_hash();
    let config = |scopes: Value, named: &str| {
        read(json!({"mode": "orchestrated", "scopes": scopes, "defaultScopes": [named],
            "local": {"users": [{"username": "a", "passwordHash": hash, "scopes": ["openid", named]}]},
            "clients": [{"clientId": "c", "scopes": [named]}]}))
    };
    let paths = |config: AuthConfig| {
        config.validate(&deployment).into_iter().map(|problem| problem.path).collect::<Vec<_>>()
    };
    let named = ["auth.defaultScopes[0]", "auth.local.users[0].scopes[1]", "auth.clients[0].scopes[0]"];
    assert_eq!(paths(config(json!({"read": "Read"}), "write")), named);
    assert_eq!(paths(config(json!({}), "read")), named, "without `scopes` there is one");
    assert!(paths(config(json!({"read": "Read"}), "read")).is_empty());
    assert!(paths(config(json!({}), "mcp")).is_empty());
}

#[test]
fn secrets_are_not_printed() {
    let printed = format!("{:?}", read(production()));
    assert!(!printed.contains(&crate::support::rsa_jwk().d.unwrap()) && !printed.contains("\"p\""));
}

#[test]
fn a_client_introspects_tokens_for_the_endpoint_and_no_other_resource() {
    let deployment = Deployment::new("https://mcp.acme.com", "/mcp", "acme");
    let problems = |resource: &str| {
        let client =
            json!({"clientId": "rs", "clientSecret": "s", "grantTypes": [], "introspects": resource});
        let mut value = production();
        crate::support::site::merge(&mut value, json!({"clients": [client]}));
        read(value).validate(&deployment)
    };
    assert_eq!(problems("https://mcp.acme.com/mcp"), []);
    for bad in
        ["", "*", "mcp", "https://mcp.acme.com", "https://mcp.acme.com/mcp/", "https://MCP.acme.com/mcp"]
    {
        let found = problems(bad);
        assert_eq!(
            found.iter().map(|problem| &*problem.path).collect::<Vec<_>>(),
            ["auth.clients[0].introspects"],
            "{bad}"
        );
        assert!(found[0].message.contains("`https://mcp.acme.com/mcp`"), "{}", found[0]);
    }
}

#[test]
fn two_clients_with_one_id_are_refused() {
    let deployment = Deployment::new("https://mcp.acme.com", "/mcp", "acme");
    let client = |uri: &str| json!({"clientId": "c", "redirectUris": [uri]});
    let mut value = production();
    value["clients"] = json!([client("https://a.example/cb"), client("https://b.example/cb")]);
    let problems = read(value).validate(&deployment);
    let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(paths, ["auth.clients[1].clientId"]);
}
