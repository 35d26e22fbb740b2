//! `gatewright key`, `gatewright user` and `gatewright check --production`.

use std::{os::unix::fs::PermissionsExt as _, process::Command};

use serde_json::{Value, json};

use crate::{
    gate::{Gate, Site, config, feed, password_hash},
    support::gatewright,
};

fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(gatewright()).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_password_becomes_an_argon2id_hash_and_comes_from_standard_input_only() {
    let hash = password_hash();
    assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
    assert_ne!(
        hash,
        String::from_utf8(feed(&["user", "hash"], "correct horse battery staple\n").stdout).unwrap().trim()
    );
    assert_eq!(feed(&["user", "hash"], "short\n").status.code(), Some(2));
    assert_eq!(feed(&["user", "hash"], "").status.code(), Some(2));
    let (code, out, err) = run(&["user", "hash", "a password on the command line"]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
}

#[test]
fn an_enrolment_link_needs_a_store_that_the_running_server_shares() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gatewright.json");
    let local = json!({"passkeys": {"enabled": true}, "users": [{"username": "grace"}]});
    let enrol = |storage: Value| {
        let mut all = config(json!({"local": local, "tokenStorage": storage}));
        all["http"]["publicUrl"] = json!("http://localhost:3000");
        std::fs::write(&file, all.to_string()).unwrap();
        run(&["user", "enrol", "grace", "--config", file.to_str().unwrap()])
    };
    let (code, out, err) = enrol(json!({"type": "memory"}));
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(
        err.contains("`auth.tokenStorage.type: memory`") && err.contains("use `redis` or `sqlite`"),
        "{err}"
    );
    let (code, out, err) =
        enrol(json!({"type": "sqlite", "config": {"path": folder.path().join("auth.db")}}));
    let link = out
        .trim()
        .strip_prefix("http://localhost:3000/oauth/enrol#")
        .unwrap_or_else(|| panic!("{code} {err}"));
    assert!(link.len() == 43 && !err.contains(link), "once, on standard output: {err}");
}

#[tokio::test]
async fn a_generated_key_of_each_kind_signs_the_tokens_of_a_server() {
    for algorithm in ["RS256", "es256", "EdDSA"] {
        let (code, key, _) = run(&["key", "generate", "--algorithm", algorithm]);
        assert_eq!(code, 0);
        let key = key.trim().to_owned();
        let kid = serde_json::from_str::<Value>(&key).unwrap()["kid"].as_str().unwrap().to_owned();
        let text = config(json!({})).to_string();
        let site = Site::launch("json", &text, &[("JWT_SIGNING_KEY", key.clone())], &[]);
        let gate = site.gate();
        let published = gate.get("/.well-known/jwks.json").await;
        assert_eq!(published.json()["keys"][0]["kid"], kid);
        let private = serde_json::from_str::<Value>(&key).unwrap()["d"].as_str().unwrap().to_owned();
        assert!(!published.body.contains(&private));
        let token = gate.machine_token("robot", "crm:read").await;
        assert!(gate.tools(Some(&token)).await.contains(&"crm:users_list".to_owned()), "{algorithm}");
    }
}

#[test]
fn a_key_file_is_its_owners_only_and_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.json");
    let (code, kid, _) = run(&["key", "generate", "--out", path.to_str().unwrap()]);
    assert_eq!(code, 0);
    let text = std::fs::read_to_string(&path).unwrap();
    let key: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&key["alg"], &key["kid"]), (&json!("RS256"), &json!(kid.trim())));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let (code, _, err) = run(&["key", "generate", "--out", path.to_str().unwrap()]);
    assert!(code == 1 && err.contains("never replaced"), "{err}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn a_rotation_reaches_the_tokens_and_the_old_ones_go_on_working() {
    let folder = tempfile::tempdir().unwrap();
    let (store, file) = (folder.path().join("tokens.db"), folder.path().join("gatewright.json"));
    let mut all = config(json!({"tokenStorage": {"type": "sqlite", "config": {"path": store}}}));
    // Tokens name the public address: it stays the same across restarts.
    const PUBLIC: &str = "http://127.0.0.1:3999";
    all["http"]["publicUrl"] = PUBLIC.into();
    let text = all.to_string();
    std::fs::write(&file, &text).unwrap();
    let file = file.to_str().unwrap();
    let listed = |arguments: &[&str]| -> Value {
        let (code, out, err) = run(&[&["key", "list", "--json", "--config", file], arguments].concat());
        assert_eq!(code, 0, "{err}");
        serde_json::from_str(&out).unwrap()
    };
    let signing = |keys: &Value| {
        let found = keys.as_array().unwrap().iter().find(|key| key["signing"] == true).unwrap();
        found["kid"].as_str().unwrap().to_owned()
    };
    let old_token = {
        let site = Site::launch("json", &text, &[], &[]);
        Gate::new(PUBLIC, vec![site.base.clone()]).machine_token("robot", "crm:read").await
    };
    let before = signing(&listed(&[]));
    let (code, shown, err) = run(&["key", "rotate", "--config", file]);
    assert_eq!(code, 0, "{err}");
    assert!(shown.contains(&before) && shown.contains("retired") && shown.contains("signs"), "{shown}");
    let after = signing(&listed(&[]));
    assert_ne!(before, after);
    let site = Site::launch("json", &text, &[], &[]);
    let gate = Gate::new(PUBLIC, vec![site.base.clone()]);
    assert_eq!(gate.mcp(Some(&old_token), "tools/list", json!({})).await.status, 200);
    let kids = gate.get("/.well-known/jwks.json").await.body;
    assert!(kids.contains(&before) && kids.contains(&after), "{kids}");
}

#[test]
fn keys_that_a_command_cannot_reach_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let told = |auth: Value| {
        let file = folder.path().join("gatewright.json");
        let all = json!({"apps": {"crm": {"builtin": "crm"}}, "auth": auth});
        std::fs::write(&file, all.to_string()).unwrap();
        let (code, _, err) = run(&["key", "rotate", "--config", file.to_str().unwrap()]);
        assert_eq!(code, 2, "{err}");
        err
    };
    assert!(told(json!({})).contains("auth.mode"));
    assert!(told(json!({"mode": "orchestrated"})).contains("memory"));
    let (_, key, _) = run(&["key", "generate", "--algorithm", "ES256"]);
    let key: Value = serde_json::from_str(&key).unwrap();
    let pinned = told(json!({"mode": "orchestrated", "local": {"signKey": key}}));
    assert!(
        pinned.contains("gatewright key generate") && !pinned.contains(key["d"].as_str().unwrap()),
        "{pinned}"
    );
}

fn production(text: &str) -> (i32, Vec<(String, u64, String)>) {
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let (code, out, err) =
        run(&["check", "--production", "--json", "--config", file.path().to_str().unwrap()]);
    let body: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}"));
    let found = body["findings"].as_array().unwrap().iter();
    let found = found.map(|f| {
        let text = |name: &str| f[name].as_str().unwrap().to_owned();
        (text("path"), f["line"].as_u64().unwrap_or_default(), text("problem"))
    });
    (code, found.collect())
}

#[test]
fn each_production_requirement_that_is_broken_is_told_with_its_line_and_its_fix() {
    let text = "apps: { crm: { builtin: crm } }\nauth:\n  mode: orchestrated\n  allowDefaultPublic: true\n  dcrEnabled: true\n  \
                consent: { enabled: false }\n  tokenStorage: { type: memory }\n  local:\n    login: demo\n    keyRotationDays: 365\n    \
                maxKeys: 0\n  limits: { token: 1000000 }\n  refresh: { rotateRefreshToken: false, accessTokenTtl: 3600 }\n";
    let (code, found) = production(text);
    assert_eq!(code, 2);
    for (path, line) in [
        ("http.publicUrl", 0),
        ("auth.allowDefaultPublic", 4),
        ("auth.dcrEnabled", 5),
        ("auth.consent.enabled", 6),
        ("auth.tokenStorage.type", 7),
        ("auth.local.signKey", 0),
        ("auth.local.login", 9),
        ("auth.local.keyRotationDays", 10),
        ("auth.local.maxKeys", 11),
        ("auth.limits.token", 12),
        ("auth.refresh.rotateRefreshToken", 13),
        ("auth.refresh.accessTokenTtl", 13),
    ] {
        let (_, at, problem) =
            found.iter().find(|(found, ..)| found == path).unwrap_or_else(|| panic!("{path}: {found:?}"));
        assert!(problem.contains("; fix: "), "{path}: {problem}");
        assert!(line == 0 || *at == line, "{path}: line {at}, not {line}");
    }
    let off = production("apps: { crm: { builtin: crm } }\n");
    assert!(off.0 == 2 && off.1.iter().any(|(path, ..)| path == "auth.mode"), "{off:?}");
}
