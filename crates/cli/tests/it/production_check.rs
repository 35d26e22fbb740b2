//! Each of the contract's "Production requirements", broken: `gatewright check --production` names it, its line and its fix.

use std::{process::Command, sync::OnceLock};

use serde_json::{Value, json};

use crate::{gate::password_hash, support::gatewright};

/// A configuration that is fit.
fn fit() -> Value {
    static KEY: OnceLock<String> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        let key = Command::new(gatewright()).args(["key", "generate"]).output().unwrap();
        String::from_utf8(key.stdout).unwrap()
    });
    json!({
        "http": {"host": "0.0.0.0", "publicUrl": "https://mcp.example.com"},
        "apps": {"crm": {"builtin": "crm"}},
        "logging": {"redact": ["access_token", "refresh_token", "client_secret"]},
        "auth": {
            "mode": "orchestrated",
            "type": "local",
            "tokenStorage": {"type": "redis", "config": {"host": "redis.internal", "tls": true}},
            "local": {
                "signKey": key,
                "keyRotationDays": 60,
                "maxKeys": 3,
                "users": [{"username": "ada", "passwordHash": password_hash()}],
            },
            "refresh": {"accessTokenTtl": 900, "rotateRefreshToken": true},
            "consent": {"enabled": true},
            "allowDefaultPublic": false,
            "dcrEnabled": false,
            "trustedProxies": ["10.0.0.0/8"],
            "limits": {"token": 600},
            "scopes": {"crm:read": "Read"},
            "clients": [{"clientId": "app", "redirectUris": ["http://127.0.0.1/callback"]}],
        },
    })
}

fn check(config: &Value) -> (i32, Value) {
    let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    std::fs::write(file.path(), serde_json::to_string_pretty(config).unwrap()).unwrap();
    let mut command = Command::new(gatewright());
    command.args(["check", "--production", "--json", "--config"]).arg(file.path());
    for name in ["JWT_SIGNING_KEY", "REDIS_HOST", "REDIS_PASSWORD"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    let body = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (output.status.code().unwrap(), body)
}

/// Puts `value` at a JSON pointer; null takes the field away.
fn set(config: &mut Value, pointer: &str, value: Value) {
    let (above, name) = pointer.rsplit_once('/').unwrap();
    let above = config.pointer_mut(above).unwrap_or_else(|| panic!("{pointer}")).as_object_mut().unwrap();
    match value {
        Value::Null => drop(above.shift_remove(name)),
        value => drop(above.insert(name.to_owned(), value)),
    }
}

#[test]
fn a_configuration_that_is_fit_breaks_nothing() {
    let (code, body) = check(&fit());
    assert_eq!((code, &body["ok"]), (0, &json!(true)), "{body:#}");
    // What is left out has a default that is fit, too.
    let mut short = fit();
    for pointer in [
        "/logging",
        "/auth/consent",
        "/auth/refresh",
        "/auth/limits",
        "/auth/allowDefaultPublic",
        "/auth/dcrEnabled",
    ] {
        set(&mut short, pointer, Value::Null);
    }
    let (code, body) = check(&short);
    assert_eq!((code, &body["ok"]), (0, &json!(true)), "{body:#}");
}

#[test]
fn every_production_requirement_that_is_broken_is_named_with_its_line_and_fix() {
    let elliptic =
        Command::new(gatewright()).args(["key", "generate", "--algorithm", "ES256"]).output().unwrap();
    assert!(elliptic.status.success(), "{elliptic:?}");
    let elliptic = String::from_utf8(elliptic.stdout).unwrap();
    let list = |names: &[&str]| json!(names);
    // The requirement as the contract words it; the field that breaks it; the field that is named, and a word of the fix.
    let cases: Vec<(&str, &str, Value, &str, &str)> = vec![
        ("HTTPS only", "/http/publicUrl", json!("http://127.0.0.1:3000"), "http.publicUrl", "https"),
        ("HTTPS only", "/auth/trustedProxies", Value::Null, "http.trustedProxies", "proxy"),
        (
            "persistent shared token storage",
            "/auth/tokenStorage",
            json!({"type": "memory"}),
            "auth.tokenStorage.type",
            "redis",
        ),
        (
            "persistent shared token storage",
            "/auth/tokenStorage",
            json!({"type": "sqlite"}),
            "auth.tokenStorage.type",
            "redis",
        ),
        (
            "redis with tls: true",
            "/auth/tokenStorage/config/tls",
            json!(false),
            "auth.tokenStorage.config.tls",
            "true",
        ),
        (
            "redis with tls: true",
            "/auth/tokenStorage/config",
            json!({"url": "redis://r:6379"}),
            "auth.tokenStorage.config.tls",
            "rediss",
        ),
        ("stable signing keys", "/auth/local/signKey", Value::Null, "auth.local.signKey", "JWT_SIGNING_KEY"),
        ("RS256 key pair", "/auth/local/signKey", json!(elliptic), "auth.local.signKey", "RS256"),
        (
            "rotation every 30-90 days",
            "/auth/local/keyRotationDays",
            json!(29),
            "auth.local.keyRotationDays",
            "30 to 90",
        ),
        (
            "rotation every 30-90 days",
            "/auth/local/keyRotationDays",
            json!(91),
            "auth.local.keyRotationDays",
            "30 to 90",
        ),
        ("maxKeys retaining old keys", "/auth/local/maxKeys", json!(0), "auth.local.maxKeys", "1 or more"),
        (
            "allowDefaultPublic: false",
            "/auth/allowDefaultPublic",
            json!(true),
            "auth.allowDefaultPublic",
            "false",
        ),
        ("dcrEnabled: false", "/auth/dcrEnabled", json!(true), "auth.dcrEnabled", "false"),
        (
            "do not use the demo login page",
            "/auth/local/login",
            json!("demo"),
            "auth.local.login",
            "password",
        ),
        ("token endpoint rate limiting", "/auth/limits/token", json!(1_000_000), "auth.limits.token", "6000"),
        (
            "log redaction",
            "/logging/redact",
            list(&["refresh_token", "client_secret"]),
            "logging.redact",
            "access_token",
        ),
        (
            "log redaction",
            "/logging/redact",
            list(&["access_token", "client_secret"]),
            "logging.redact",
            "refresh_token",
        ),
        (
            "log redaction",
            "/logging/redact",
            list(&["access_token", "refresh_token"]),
            "logging.redact",
            "client_secret",
        ),
        ("consent UI enabled", "/auth/consent/enabled", json!(false), "auth.consent.enabled", "true"),
        (
            "refresh tokens rotate",
            "/auth/refresh/rotateRefreshToken",
            json!(false),
            "auth.refresh.rotateRefreshToken",
            "true",
        ),
        (
            "15 min access tokens",
            "/auth/refresh/accessTokenTtl",
            json!(901),
            "auth.refresh.accessTokenTtl",
            "900",
        ),
        ("HTTPS only", "/http/allowedHosts", list(&["*"]), "http.allowedHosts", "name the hosts"),
        ("no absurd limits", "/http/bodyReadTimeout", json!("23h"), "http.bodyReadTimeout", "600s"),
        ("no absurd limits", "/http/maxBodyBytes", json!(67_108_864), "http.maxBodyBytes", "16777216"),
        ("no absurd limits", "/auth/limits/login", json!(0), "auth.limits.login", "1 or more"),
        ("no short secrets", "/auth/encryptionKey", json!("short"), "auth.encryptionKey", "32 random"),
        ("no short secrets", "/admin", json!({"token": "sixteen letters!"}), "admin.token", "32 random"),
        (
            "nothing private",
            "/auth/provider",
            json!({"allowPrivate": true}),
            "auth.provider.allowPrivate",
            "false",
        ),
        (
            "refresh 7-30 days",
            "/auth/refresh/refreshTokenTtl",
            json!(86_400),
            "auth.refresh.refreshTokenTtl",
            "604800",
        ),
        ("no trust in everybody", "/auth/trustedProxies", list(&["0.0.0.0/0"]), "auth.trustedProxies", "/8"),
        ("no trust in everybody", "/http/trustedProxies", list(&["::/0"]), "http.trustedProxies", "/8"),
        (
            "no trust in everybody",
            "/http/trustedProxies",
            list(&["0.0.0.0/1", "128.0.0.0/1"]),
            "http.trustedProxies",
            "/8",
        ),
        ("no page of any origin", "/http/allowedOrigins", list(&["null"]), "http.allowedOrigins", "origins"),
        (
            "sandbox",
            "/codecall",
            json!({"enabled": true, "worker": {"adapter": "in_process"}}),
            "codecall.worker.adapter",
            "worker_threads",
        ),
        (
            "clean errors",
            "/codecall",
            json!({"enabled": true, "sanitization": {"removeFilePaths": false}}),
            "codecall.sanitization.removeFilePaths",
            "true",
        ),
        (
            "no short secrets",
            "/auth/encryptionKey",
            json!("changeme-changeme-changeme-changeme"),
            "auth.encryptionKey",
            "32 random",
        ),
        (
            "no short secrets",
            "/http/cluster",
            json!({"key": "k".repeat(32), "redis": "rediss://redis.internal:6379/0"}),
            "http.cluster.key",
            "32 random",
        ),
        (
            "no private addresses",
            "/apps/crm",
            json!({"url": "https://crm.example/mcp", "scopes": ["crm:read"], "auth": {"type": "oauth", "allowPrivate": true}}),
            "apps.crm.auth.allowPrivate",
            "false",
        ),
        (
            "TLS for secrets",
            "/apps/crm",
            json!({"url": "http://user:pa55w0rd@crm.internal/mcp", "scopes": ["crm:read"]}),
            "apps.crm.url",
            "https",
        ),
        (
            "TLS for secrets",
            "/apps/crm",
            json!({"url": "http://crm.internal/mcp?api_key=k3y", "scopes": ["crm:read"]}),
            "apps.crm.url",
            "https",
        ),
        (
            "TLS to stores",
            "/http/cluster",
            json!({"key": "X8k2vQ7mN4pR9sT1wZ6bC3dF5gH0jL_y", "redis": "redis://redis.internal:6379/0"}),
            "http.cluster.redis",
            "rediss",
        ),
        (
            "TLS to stores",
            "/codecall",
            json!({"enabled": true, "embedding": {"strategy": "embedding", "store": {"type": "pgvector", "url": "postgres://u:p@db.internal/x"}}}),
            "codecall.embedding.store.url",
            "tunnel",
        ),
        (
            "TLS for secrets",
            "/apps/crm",
            json!({"url": "http://crm.internal/mcp", "headers": {"authorization": "Bearer t"}, "scopes": ["crm:read"]}),
            "apps.crm.url",
            "https",
        ),
        (
            "TLS for secrets",
            "/telemetry",
            json!({"otlp": {"endpoint": "http://otel.internal:4318", "headers": {"x-api-key": "k"}}}),
            "telemetry.otlp.endpoint",
            "https",
        ),
        (
            "no monotonous secrets",
            "/auth/encryptionKey",
            json!("abababababababababababababababababab"),
            "auth.encryptionKey",
            "32 random",
        ),
        (
            "administration apart",
            "/admin",
            json!({"host": "0.0.0.0", "token": "0123456789abcdef0123456789abcdef"}),
            "admin.host",
            "127.0.0.1",
        ),
        ("somebody issues tokens", "/auth/mode", json!("public"), "auth.mode", "orchestrated"),
    ];
    for (requirement, pointer, value, path, fix) in cases {
        let mut broken = fit();
        set(&mut broken, pointer, value.clone());
        let (code, body) = check(&broken);
        assert_eq!(code, 2, "{requirement} {value}: {body:#}");
        let findings = body["findings"].as_array().unwrap();
        let text = |finding: &Value| finding["problem"].as_str().unwrap().to_owned();
        let named =
            findings.iter().find(|finding| finding["path"] == path && text(finding).contains("fix: "));
        let found = named.unwrap_or_else(|| panic!("{requirement} {value}: no {path} in {body:#}"));
        let problem = text(found);
        let (_, advice) = problem.split_once("fix: ").unwrap();
        assert!(advice.contains(fix), "{requirement} {value}: {advice}");
        if !value.is_null() {
            assert!(found["line"].is_u64(), "{requirement} {value}: {found}");
        }
    }
}

#[test]
fn tokens_of_a_provider_need_no_store_and_no_key_and_still_no_open_doors() {
    let mut config = fit();
    config["auth"] = json!({"trustedProxies": ["10.0.0.0/8"], "mode": "transparent", "expectedAudience": "https://mcp.example.com/mcp", "provider": {"url": "https://idp.example.com"}});
    let (code, body) = check(&config);
    assert_eq!((code, &body["ok"]), (0, &json!(true)), "{body:#}");
    for (field, address) in [
        ("url", "http://idp.example.com"),
        ("jwksUri", "http://idp.example.com/jwks"),
        ("introspectionUri", "http://idp.example.com/i"),
    ] {
        let mut plain = config.clone();
        plain["auth"]["provider"][field] = json!(address);
        let (_, body) = check(&plain);
        assert_eq!(body["findings"][0]["path"], format!("auth.provider.{field}"), "{body:#}");
    }
    config["auth"]["allowDefaultPublic"] = json!(true);
    config["logging"]["redact"] = json!([]);
    let (_, body) = check(&config);
    let mut paths: Vec<&str> =
        body["findings"].as_array().unwrap().iter().filter_map(|found| found["path"].as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["auth.allowDefaultPublic", "logging.redact"]);
}

#[test]
fn a_listener_with_tls_of_its_own_needs_no_proxy() {
    let mut config = fit();
    set(&mut config, "/auth/trustedProxies", Value::Null);
    set(&mut config, "/http/tls", json!({"cert": "/etc/tls/cert.pem", "key": "/etc/tls/key.pem"}));
    let (code, body) = check(&config);
    assert_eq!((code, &body["ok"]), (0, &json!(true)), "{body:#}");
}
