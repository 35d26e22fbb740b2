//! `gatewright mock` and `gatewright token`.

use std::{path::Path, process::Output};

use gatewright_testing::Server;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::gatewright;

async fn run(args: &[&str]) -> Output {
    Command::new(gatewright()).args(args).kill_on_drop(true).output().await.unwrap()
}

async fn token(args: &[&str]) -> String {
    let output = run(&[&["token"], args].concat()).await;
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

async fn mock(kind: &str, args: &[&str]) -> (Server, Value) {
    let mut builder =
        Server::builder(gatewright().display().to_string()).ready_path("/.well-known/jwks.json");
    for arg in [&["mock", kind, "--json", "--port", "{port}"], args].concat() {
        builder = builder.arg(arg);
    }
    let server = builder.start().await.unwrap();
    let line = server.wait_for_log("baseUrl", std::time::Duration::from_secs(10)).await.unwrap();
    (server, serde_json::from_str(&line).unwrap())
}

/// Whom the mock server takes the bearer of `token` for; nobody when it refuses.
async fn who(base: &str, token: &str) -> Option<String> {
    let answer =
        reqwest::Client::new().get(format!("{base}/userinfo")).bearer_auth(token).send().await.unwrap();
    let status = answer.status().as_u16();
    let body: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    match status {
        200 => Some(body["sub"].as_str().unwrap().to_owned()),
        401 => None,
        _ => panic!("{status}: {body}"),
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test]
async fn a_token_of_the_command_line_is_taken_by_a_mock_server_with_the_same_key() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key.pem");
    let key = text(&key);
    let (server, info) = mock("oauth", &["--key", key]).await;
    let base = info["baseUrl"].as_str().unwrap();
    let issuer = ["--key", key, "--issuer", base];
    let admin = token(&[&issuer[..], &["--user", "admin"]].concat()).await;
    assert_eq!(who(base, &admin).await.as_deref(), Some("test-admin"));
    for bad in ["--expired", "--invalid-signature"] {
        assert_eq!(who(base, &token(&[&issuer[..], &[bad]].concat()).await).await, None, "{bad}");
    }
    assert_eq!(who(base, &token(&["--issuer", base]).await).await, None, "another key");
    assert_eq!(
        who(base, info["tokens"]["readOnly"].as_str().unwrap()).await.as_deref(),
        Some("test-readonly")
    );
    let published: Value = reqwest_json(&format!("{base}/.well-known/jwks.json")).await;
    assert_eq!(serde_json::from_str::<Value>(&token(&["--key", key, "--jwks"]).await).unwrap(), published);
    server.stop().await;
}

async fn reqwest_json(url: &str) -> Value {
    serde_json::from_slice(&reqwest::get(url).await.unwrap().bytes().await.unwrap()).unwrap()
}

#[tokio::test]
async fn options_of_a_token_are_its_claims() {
    let made = token(&[
        "--json",
        "--sub",
        "ada",
        "--scope",
        "a b",
        "--scope",
        "c",
        "--email",
        "ada@example.com",
        "--name",
        "Ada",
        "--claim",
        "roles=[\"x\"]",
        "--claim",
        "team=red",
        "--issuer",
        "https://idp.example",
        "--audience",
        "crm",
        "--expires-in",
        "60",
    ])
    .await;
    let made: Value = serde_json::from_str(&made).unwrap();
    let claims = &made["claims"];
    let wanted = json!({"sub": "ada", "scope": "a b c", "email": "ada@example.com", "name": "Ada", "roles": ["x"],
        "team": "red", "iss": "https://idp.example", "aud": "crm"});
    assert!(gatewright_testing::is_subset(&wanted, claims), "{claims:#}");
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 60);
    assert_eq!(made["jwks"]["keys"][0]["kty"], "RSA");
    assert_eq!(made["token"].as_str().unwrap().split('.').count(), 3);
}

#[tokio::test]
async fn a_token_that_nothing_can_verify_comes_with_a_note_on_standard_error() {
    let output = run(&["token"]).await;
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 1);
    assert!(String::from_utf8(output.stderr).unwrap().contains("--key FILE"));
}

#[tokio::test]
async fn a_mock_server_logs_in_by_options_and_breaks_by_options() {
    let (server, info) = mock(
        "oauth",
        &[
            "--auto-approve",
            "--user",
            "grace",
            "--client-id",
            "app",
            "--redirect-uri",
            "http://localhost:*/back",
            "--fault",
            "jwks=status:500",
        ],
    )
    .await;
    let base = info["baseUrl"].as_str().unwrap();
    let ask = |client: &str| {
        let url = format!(
            "{base}/oauth/authorize?response_type=code&client_id={client}&redirect_uri=http://localhost:1/back&state=s\
             &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256"
        );
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        async move { client.get(url).send().await.unwrap() }
    };
    assert_eq!(ask("stranger").await.status(), 400);
    let location = ask("app").await.headers()["location"].to_str().unwrap().to_owned();
    let code = location.split(['?', '&']).find_map(|part| part.strip_prefix("code=")).unwrap();
    // The pair of RFC 7636, appendix B.
    let form = format!(
        "grant_type=authorization_code&client_id=app&code={code}&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    );
    let post = reqwest::Client::new()
        .post(format!("{base}/oauth/token"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form);
    let body: Value = serde_json::from_slice(&post.send().await.unwrap().bytes().await.unwrap()).unwrap();
    assert_eq!(who(base, body["access_token"].as_str().unwrap()).await.as_deref(), Some("grace"), "{body}");
    assert_eq!(reqwest::get(format!("{base}/.well-known/jwks.json")).await.unwrap().status(), 500);
    server.stop().await;
}

#[tokio::test]
async fn client_documents_good_and_bad_are_served() {
    let dir = tempfile::tempdir().unwrap();
    let (file, bad) = (dir.path().join("clients.json"), dir.path().join("bad.json"));
    std::fs::write(
        &file,
        r#"[{"name": "Other App", "path": "other.json", "scope": "read", "contacts": ["a@b.example"]}]"#,
    )
    .unwrap();
    std::fs::write(&bad, "{\"client_id\": 7").unwrap();
    let (server, info) = mock(
        "cimd",
        &[
            "--client",
            "My App",
            "--redirect-uri",
            "http://localhost:9/x",
            "--clients",
            text(&file),
            "--document",
            &format!("/bad.json={}", text(&bad)),
            "--error",
            "/gone=410",
        ],
    )
    .await;
    let base = info["baseUrl"].as_str().unwrap();
    let id = info["clientIds"]["My App"].as_str().unwrap();
    assert_eq!(id, format!("{base}/clients/my-app/metadata.json"));
    let wanted = json!({"client_id": id, "client_name": "My App", "redirect_uris": ["http://localhost:9/x"],
        "grant_types": ["authorization_code"]});
    let document = reqwest_json(id).await;
    assert!(gatewright_testing::is_subset(&wanted, &document), "{document}");
    let other = reqwest_json(&format!("{base}/other.json")).await;
    assert_eq!((&other["scope"], &other["contacts"][0]), (&json!("read"), &json!("a@b.example")));
    assert_eq!(
        reqwest::get(format!("{base}/bad.json")).await.unwrap().text().await.unwrap(),
        "{\"client_id\": 7"
    );
    assert_eq!(reqwest::get(format!("{base}/gone")).await.unwrap().status(), 410);
    server.stop().await;
}

#[tokio::test]
async fn a_mock_server_for_people_prints_what_to_paste_and_ends_with_sigterm() {
    let server = Server::builder(gatewright().display().to_string())
        .arg("mock")
        .arg("oauth")
        .arg("--port={port}")
        .ready_path("/.well-known/jwks.json")
        .start()
        .await
        .unwrap();
    let base = server.info().base_url;
    server.wait_for_log("Ctrl-C stops it", std::time::Duration::from_secs(10)).await.unwrap();
    let lines = server.get_logs().join("\n");
    assert!(
        lines.contains(&format!("IDP_PROVIDER_URL={base} IDP_EXPECTED_AUDIENCE=test-audience")),
        "{lines}"
    );
    let token = lines.lines().find(|line| line.trim().starts_with("eyJ")).unwrap();
    assert_eq!(who(&base, token.trim()).await.as_deref(), Some("test-user"));
    server.stop().await;
    std::net::TcpListener::bind(("127.0.0.1", server.info().port)).unwrap();
}

#[tokio::test]
async fn wrong_options_say_what_is_right() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().port().to_string();
    let dir = tempfile::tempdir().unwrap();
    let no_key = dir.path().join("no.pem");
    std::fs::write(&no_key, "not a key").unwrap();
    let rows: &[(&[&str], i32, &str)] = &[
        (&["mock", "oauth", "--port", &taken], 1, "is taken; name another with --port"),
        (
            &["mock", "oauth", "--fault", "jwks=broken"],
            2,
            "there is no fault `broken`; there are slow:MILLISECONDS",
        ),
        (&["mock", "oauth", "--fault", "keys=garbage"], 2, "there are metadata, jwks"),
        (&["mock", "oauth", "--client-secret", "x"], 2, "--client-id"),
        (&["mock", "cimd"], 2, "nothing to serve: name a client with --client NAME"),
        (&["mock", "cimd", "--clients", "/no/such.json"], 2, "/no/such.json cannot be read"),
        (&["mock", "cimd", "--error", "/x=9"], 2, "not an HTTP status"),
        (&["mock", "cimd", "--client", "a", "--ca", "x"], 2, "--https"),
        (&["token", "--expires-in", "0"], 2, "1..=31536000"),
        (&["token", "--claim", "x"], 2, "a name, `=` and a value"),
        (&["token", "--expired", "--invalid-signature"], 2, "cannot be used with"),
        (&["token", "--jwks"], 2, "--key"),
        (&["token", "--key", text(&no_key)], 2, "openssl genpkey"),
        (&["token", "--user", "root"], 2, "read-only"),
    ];
    for (args, code, part) in rows {
        let output = run(args).await;
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(*code), "{args:?}: {said}");
        assert!(said.contains(part), "{args:?}: {said}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[tokio::test]
async fn https_documents_are_trusted_through_the_written_authority() {
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.pem");
    let mut child = Command::new(gatewright())
        .args(["mock", "cimd", "--https", "--json", "--client", "app", "--ca", text(&ca)])
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines =
        tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(child.stdout.take().unwrap()));
    let info: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    let id = info["clientIds"]["app"].as_str().unwrap();
    let get = |trusted: bool| {
        let mut curl = Command::new("curl");
        curl.args(["-s", id]);
        if trusted {
            curl.arg("--cacert").arg(&ca);
        }
        curl
    };
    assert!(!get(false).output().await.unwrap().status.success());
    let body: Value = serde_json::from_slice(&get(true).output().await.unwrap().stdout).unwrap();
    assert_eq!(body["client_id"], id);
    child.kill().await.unwrap();
}
