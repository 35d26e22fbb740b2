//! `gatewright token revoke`, `user sign-out`, `client`, `consent`, `api-key` and `key retire`, against the store of a running server.

use std::{os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    gate::{Gate, Person, Site, config, feed, parameter},
    support::gatewright,
};

/// A running server whose tokens are in a file, and the configuration that commands are given.
struct Place {
    site: Site,
    folder: tempfile::TempDir,
}

impl Place {
    fn start() -> Self {
        Self::with(json!({}))
    }

    /// With these fields in the section `auth`, besides its own.
    fn with(auth: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let storage = json!({"type": "sqlite", "config": {"path": folder.path().join("auth.db")}});
        let mut own = json!({"dcrEnabled": true, "tokenStorage": storage});
        own.as_object_mut().unwrap().extend(auth.as_object().unwrap().clone());
        let mut all = config(own);
        all["audit"] = json!({"file": folder.path().join("audit.jsonl")});
        let site = Site::start(&all);
        all["http"]["publicUrl"] = json!(site.base);
        std::fs::write(folder.path().join("gatewright.json"), all.to_string()).unwrap();
        Self { site, folder }
    }

    fn file(&self) -> String {
        self.folder.path().join("gatewright.json").display().to_string()
    }

    /// Runs a command with `--json`; its exit code and what it printed.
    fn run(&self, arguments: &[&str]) -> (i32, Value) {
        self.run_with(arguments, "")
    }

    fn run_with(&self, arguments: &[&str], input: &str) -> (i32, Value) {
        let file = self.file();
        let output = feed(&[arguments, &["--json", "--config", &file]].concat(), input);
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let printed = match text.trim() {
            "" => json!(String::from_utf8(output.stderr).unwrap()),
            text => serde_json::from_str(text).unwrap_or_else(|_| panic!("{text}")),
        };
        (output.status.code().unwrap(), printed)
    }
}

async fn is_good(gate: &Gate, token: &Value) -> bool {
    gate.mcp(token.as_str(), "tools/list", json!({})).await.status == 200
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode()
        & 0o777
}

#[tokio::test]
async fn the_store_and_the_audit_are_files_that_only_their_owner_reads() {
    let place = Place::start();
    place.site.gate().log_in("crm:read").await;
    for name in ["auth.db", "auth.db-wal", "auth.db-shm", "audit.jsonl"] {
        assert_eq!(mode(&place.folder.path().join(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_token_is_revoked_by_itself_and_from_standard_input_only() {
    let place = Place::start();
    let gate = place.site.gate();
    let (first, second) = (gate.log_in("crm:read").await, gate.log_in("crm:read").await);
    let token = first["access_token"].as_str().unwrap();
    let (code, printed) = place.run_with(&["token", "revoke"], token);
    assert_eq!((code, &printed), (0, &json!({"revoked": true, "subject": "user:ada", "client": "app"})));
    assert!(!is_good(&gate, &first["access_token"]).await && is_good(&gate, &second["access_token"]).await);
    let (code, printed) = place.run_with(&["token", "revoke"], token);
    assert_eq!((code, printed), (1, json!({"revoked": false})));
    let refresh = second["refresh_token"].as_str().unwrap();
    assert_eq!(place.run_with(&["token", "revoke"], refresh).0, 0);
    assert!(!is_good(&gate, &second["access_token"]).await);
    assert_eq!(place.run(&["token", "revoke"]).0, 2, "no token");
    assert_eq!(place.run(&["token", "revoke", "a-token-as-argument"]).0, 2);
}

#[tokio::test]
async fn a_user_is_signed_out_everywhere() {
    let place = Place::start();
    let gate = place.site.gate();
    let tokens = gate.log_in("crm:read").await;
    let (code, told) = place.run(&["user", "sign-out", "nobody"]);
    assert!(code == 2 && told.as_str().unwrap().contains("nobody"), "{told}");
    assert!(is_good(&gate, &tokens["access_token"]).await);
    assert_eq!(place.run(&["user", "sign-out", "ada"]), (0, json!({"signedOut": "user:ada"})));
    assert!(!is_good(&gate, &tokens["access_token"]).await);
}

#[tokio::test]
async fn clients_are_listed_and_those_that_registered_are_removed() {
    let place = Place::start();
    let gate = place.site.gate();
    let body = json!({"client_name": "Newcomer", "redirect_uris": ["https://c.example/cb"], "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"]});
    let headers = [("content-type", "application/json")];
    let registered = gate.send(Method::POST, "/oauth/register", &headers, body.to_string()).await.json();
    let id = registered["client_id"].as_str().unwrap();
    let redirect = "https://c.example/cb";
    let mut person = Person::default();
    let callback = person.authorize(&gate, &gate.ask(id, redirect, "crm:read")).await;
    let tokens = gate.redeem(id, redirect, &parameter(&callback, "code")).await.json();
    let others = gate.log_in("crm:read").await;
    assert!(is_good(&gate, &tokens["access_token"]).await);
    let ids = || {
        let (code, listed) = place.run(&["client", "list"]);
        assert_eq!(code, 0, "{listed}");
        let all = listed.as_array().unwrap().clone();
        all.iter().map(|client| (client["id"].clone(), client["origin"].clone())).collect::<Vec<_>>()
    };
    let configured = ["app", "other", "robot"].map(|id| (json!(id), json!("configured")));
    assert_eq!(ids(), [configured.as_slice(), &[(json!(id), json!("registered"))]].concat());
    assert_eq!(place.run(&["client", "remove", id]), (0, json!({"removed": id})));
    assert!(!is_good(&gate, &tokens["access_token"]).await, "its tokens ended with it");
    let refresh = [
        ("grant_type", "refresh_token"),
        ("client_id", id),
        ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
    ];
    assert_ne!(gate.token(&refresh).await.status, 200);
    assert!(is_good(&gate, &others["access_token"]).await, "those of other clients did not");
    assert_eq!(ids(), configured);
    for (id, part) in [(id, "no client"), ("app", "auth.clients")] {
        let (code, told) = place.run(&["client", "remove", id]);
        assert!(code == 2 && told.as_str().unwrap().contains(part), "{told}");
    }
}

#[tokio::test]
async fn consents_are_listed_and_withdrawn() {
    let place = Place::start();
    let gate = place.site.gate();
    let tokens = gate.log_in("crm:read").await;
    let (code, listed) = place.run(&["consent", "list"]);
    assert_eq!(code, 0, "{listed}");
    assert_eq!(
        (&listed[0]["subject"], &listed[0]["client"], &listed[0]["scopes"]),
        (&json!("user:ada"), &json!("app"), &json!(["crm:read"])),
        "{listed}"
    );
    assert_eq!(place.run(&["consent", "list", "--user", "grace"]), (0, json!([])));
    let (code, _) = place.run(&["consent", "withdraw", "ada", "app"]);
    assert_eq!(code, 0);
    let (code, told) = place.run(&["consent", "withdraw", "ada", "app"]);
    assert!(code == 1 && told.as_str().unwrap().contains("no consent of user:ada"), "{told}");
    assert_eq!(place.run(&["consent", "list"]), (0, json!([])));
    assert!(!is_good(&gate, &tokens["access_token"]).await);
}

#[tokio::test]
async fn a_key_is_retired_and_a_configured_one_is_not() {
    let place = Place::start();
    let gate = place.site.gate();
    let tokens = gate.log_in("crm:read").await;
    let before = place.run(&["key", "list"]).1[0]["kid"].as_str().unwrap().to_owned();
    let header = tokens["access_token"].as_str().unwrap().split('.').next().unwrap();
    let header = base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, header).unwrap();
    assert!(String::from_utf8(header).unwrap().contains(&before), "the key signed it");
    assert!(is_good(&gate, &tokens["access_token"]).await);
    let (code, printed) = place.run(&["key", "retire", &before]);
    assert_eq!((code, &printed["retired"]), (0, &json!(before)), "{printed}");
    assert!(!printed["keys"].as_array().unwrap().iter().any(|key| key["kid"] == json!(before)), "{printed}");
    let (code, told) = place.run(&["key", "retire", &before]);
    assert!(code == 2 && told.as_str().unwrap().contains("no key"), "{told}");
    // Instances look at the ring every 30 seconds; a start looks at once.
    let text = std::fs::read_to_string(place.file()).unwrap();
    let mut all: Value = serde_json::from_str(&text).unwrap();
    all.as_object_mut().unwrap().shift_remove("audit");
    let started_later = Site::start(&all);
    let next = Gate::new(&gate.public, vec![started_later.base.clone()]);
    assert!(!is_good(&next, &tokens["access_token"]).await, "a token of the retired key");
    let fresh = next.log_in("crm:read").await;
    assert!(is_good(&next, &fresh["access_token"]).await);

    let configured = Command::new(gatewright()).args(["key", "generate"]).output().unwrap();
    let configured = String::from_utf8(configured.stdout).unwrap();
    let mut local = config(json!({}))["auth"]["local"].clone();
    local["signKey"] = json!(configured);
    let place = Place::with(json!({"local": local}));
    let gate = place.site.gate();
    let tokens = gate.log_in("crm:read").await;
    let (_, keys) = place.run(&["key", "list"]);
    let kid = keys[0]["kid"].as_str().unwrap();
    let (code, told) = place.run(&["key", "retire", kid]);
    let told = told.as_str().unwrap();
    assert!(code == 2 && told.contains("auth.local.signKey") && told.contains(kid), "{told}");
    assert_eq!(place.run(&["key", "list"]).1, keys, "nothing changed");
    assert!(is_good(&gate, &tokens["access_token"]).await);
}

#[tokio::test]
async fn a_key_of_a_machine_works_until_it_is_revoked_and_is_printed_once() {
    let place = Place::start();
    let gate = place.site.gate();
    let make = |name: &str, scope: &str| {
        let (code, made) = place.run(&["api-key", "create", name, "--scope", scope, "--days", "1"]);
        assert_eq!(code, 0, "{made}");
        made["key"].as_str().unwrap().to_owned()
    };
    let (reader, biller) = (make("reader", "crm:read"), make("biller", "billing:read"));
    for (key, subject, tool) in
        [(&reader, "key:reader", "crm:users_list"), (&biller, "key:biller", "billing:products_list")]
    {
        assert_eq!(gate.mcp(Some(key), "tools/list", json!({})).await.status, 200);
        gate.call(Some(key), tool, json!({})).await;
        let audit = std::fs::read_to_string(place.folder.path().join("audit.jsonl")).unwrap();
        assert!(audit.contains(&format!("\"{subject}\"")), "{audit}");
    }
    let (code, listed) = place.run(&["api-key", "list"]);
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|key| key["name"].clone()).collect();
    assert_eq!((code, names), (0, vec![json!("biller"), json!("reader")]));
    assert!(!listed.to_string().contains("gwk_"), "{listed}");
    let (code, told) = place.run(&["api-key", "create", "reader"]);
    assert!(code == 2 && told.as_str().unwrap().contains("already"), "{told}");
    let (code, told) = place.run(&["api-key", "create", "third", "--scope", "crm:reed"]);
    assert!(code == 2 && told.as_str().unwrap().contains("did you mean `crm:read`?"), "{told}");
    assert_eq!(place.run(&["api-key", "revoke", "reader"]), (0, json!({"revoked": "reader"})));
    assert_eq!(gate.mcp(Some(&reader), "tools/list", json!({})).await.status, 401);
    assert_eq!(gate.mcp(Some(&biller), "tools/list", json!({})).await.status, 200);
    let (code, told) = place.run(&["api-key", "revoke", "reader"]);
    assert!(code == 2 && told.as_str().unwrap().contains("no key"), "{told}");
}

#[tokio::test]
async fn changes_by_commands_are_in_a_file_beside_the_audit_of_the_running_server() {
    let place = Place::start();
    let gate = place.site.gate();
    let file = place.folder.path().join("audit.jsonl.commands");
    let headers = [("content-type", "application/json")];
    let body = json!({"redirect_uris": ["https://c.example/cb"], "token_endpoint_auth_method": "none"});
    let registered = gate.send(Method::POST, "/oauth/register", &headers, body.to_string()).await.json();
    let id = registered["client_id"].as_str().unwrap();
    let tokens = gate.log_in("crm:read").await;
    let kid = place.run(&["key", "list"]).1[0]["kid"].as_str().unwrap().to_owned();
    let ada = Some("user:ada");
    let mut all: Value = serde_json::from_str(&std::fs::read_to_string(place.file()).unwrap()).unwrap();
    all["auth"]["local"]["passkeys"] = json!({"enabled": true});
    // Passkeys need a name in the address.
    all["http"]["publicUrl"] = json!(place.site.base.replace("127.0.0.1", "localhost"));
    let with_passkeys = place.folder.path().join("passkeys.json").display().to_string();
    std::fs::write(&with_passkeys, all.to_string()).unwrap();
    let plain = place.file();
    let commands: [(&[&str], &str, &str, Option<&str>); 9] = [
        (&["api-key", "create", "ci"], "", "api_key.created", Some("key:ci")),
        (&["api-key", "revoke", "ci"], "", "api_key.revoked", Some("key:ci")),
        (&["token", "revoke"], tokens["access_token"].as_str().unwrap(), "token.revoked", ada),
        (&["consent", "withdraw", "ada", "app"], "", "consent.withdrawn", ada),
        (&["user", "sign-out", "ada"], "", "admin.user_revoked", ada),
        (&["client", "remove", id], "", "client.deleted", None),
        (&["user", "enrol", "ada"], "", "passkey.invited", ada),
        (&["key", "rotate"], "", "keys.rotated", None),
        (&["key", "retire", &kid], "", "keys.retired", None),
    ];
    let lines = || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    for (command, input, event, actor) in commands {
        let before = lines().len();
        let config = if event.starts_with("passkey") { &with_passkeys } else { &plain };
        let output = feed(&[command, &["--config", config]].concat(), input);
        assert_eq!(output.status.code(), Some(0), "{command:?}: {output:?}");
        let lines = lines();
        assert_eq!(lines.len(), before + 1, "{command:?}");
        let line = &lines[before];
        assert_eq!((line["event"].as_str(), line["actor"].as_str()), (Some(event), actor), "{command:?}");
        assert!(line["at_ms"].is_u64() && line["chain"].is_string(), "{line}");
    }
    let audit = Command::new(gatewright()).args(["audit", "verify"]).arg(&file).output().unwrap();
    assert_eq!(audit.status.code(), Some(0), "{audit:?}");
    assert_eq!(mode(&file), 0o600);
}

#[tokio::test]
async fn a_command_that_cannot_write_the_audit_file_changes_nothing() {
    let place = Place::start();
    assert_eq!(place.run(&["api-key", "create", "ci", "--scope", "crm:read"]).0, 0);
    let mut all: Value = serde_json::from_str(&std::fs::read_to_string(place.file()).unwrap()).unwrap();
    let foreign = place.folder.path().join("notes.txt");
    std::fs::write(place.folder.path().join("notes.txt.commands"), "dear diary\n").unwrap();
    for (file, reason) in
        [(place.folder.path().join("none/audit.jsonl"), "No such file"), (foreign, "not an audit file")]
    {
        all["audit"] = json!({"file": file});
        std::fs::write(place.file(), all.to_string()).unwrap();
        for command in [["api-key", "create", "other"], ["api-key", "revoke", "ci"]] {
            let (code, told) = place.run(&command);
            let told = told.as_str().unwrap();
            assert!(code == 2 && told.contains("`audit.file`") && told.contains(reason), "{told}");
            assert!(told.contains("nothing was changed"), "{told}");
        }
        let (code, listed) = place.run(&["api-key", "list"]);
        let names: Vec<_> = listed.as_array().unwrap().iter().map(|key| key["name"].clone()).collect();
        assert_eq!((code, names), (0, vec![json!("ci")]), "a list needs no audit");
    }
}

#[test]
fn commands_that_need_a_shared_store_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gatewright.json");
    let commands: [&[&str]; 9] = [
        &["api-key", "create", "ci"],
        &["api-key", "list"],
        &["api-key", "revoke", "ci"],
        &["token", "revoke"],
        &["user", "sign-out", "ada"],
        &["client", "list"],
        &["client", "remove", "x"],
        &["consent", "list"],
        &["consent", "withdraw", "ada", "x"],
    ];
    for (auth, part) in [
        (config(json!({}))["auth"].clone(), "tokenStorage.type: memory"),
        (json!({"mode": "public"}), "auth.mode"),
        (
            json!({"mode": "transparent", "expectedAudience": "x", "provider": {"url": "https://idp.example"}}),
            "identity provider",
        ),
    ] {
        let all = json!({"apps": {"crm": {"builtin": "crm"}}, "auth": auth});
        std::fs::write(&file, all.to_string()).unwrap();
        for command in commands {
            let output = feed(&[command, &["--config", file.to_str().unwrap()]].concat(), "a-token\n");
            let told = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.code() == Some(2) && told.contains(part), "{command:?}: {told}");
        }
    }
    let help = Command::new(gatewright()).args(["token", "revoke", "--help"]).output().unwrap();
    assert!(help.status.success());
}
