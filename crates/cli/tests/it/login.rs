//! `gatewright login` and `gatewright logout`.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use gatewright_server::axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use reqwest::Url;
use serde_json::{Value, json};

use crate::{
    gate::{Gate, Person, Site, config},
    support::gatewright,
    terminal::Terminal,
};

/// The program, for a user of this home folder.
fn program(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(gatewright());
    command.args(arguments).env("HOME", home).env_remove("XDG_CONFIG_HOME").env_remove("GATEWRIGHT_TOKEN");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Exit code, and everything that was printed.
fn run(home: &Path, arguments: &[&str]) -> (i32, String) {
    let output = program(home, arguments).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

fn kept(home: &Path) -> Value {
    let file = home.join(".config/gatewright/tokens.json");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// A sign-in that waits for its user, and the address that it shows.
struct Login {
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: String,
}

impl Login {
    fn start(home: &Path, arguments: &[&str]) -> Self {
        let mut child = program(home, &[&["login", "--no-browser"], arguments].concat()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.trim().starts_with("http") {
            line.clear();
            assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it ended");
        }
        Self { child, stderr, address: line.trim().to_owned() }
    }

    fn end(mut self) -> (i32, String) {
        let mut text = String::new();
        self.stderr.read_to_string(&mut text).unwrap();
        self.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        (self.child.wait().unwrap().code().unwrap(), text)
    }

    /// Signs in as `ada`, and brings her browser back.
    async fn by_ada(self, gate: &Gate) -> (i32, String) {
        let back = Person::default().authorize(gate, &self.address).await;
        assert_eq!(reqwest::get(back).await.unwrap().status(), 200);
        self.end()
    }
}

#[tokio::test]
async fn a_user_signs_in_uses_tools_with_tokens_that_are_refreshed_and_signs_out() {
    let site = Site::start(&config(json!({"dcrEnabled": true, "refresh": {"accessTokenTtl": 30}})));
    let (gate, home) = (site.gate(), tempfile::tempdir().unwrap());
    let (home, url) = (home.path(), gate.resource());
    let list = ["tools", "list", "--url", url.as_str()];
    let (code, text) = run(home, &list);
    assert!(code == 1 && text.contains(&format!("`gatewright login {url}`")), "{text}");

    let (code, text) = Login::start(home, &[&url]).by_ada(&gate).await;
    assert!(code == 0 && text.contains("signed in at"), "{text}");
    let first = kept(home)[&url].clone();
    let (code, text) = run(home, &list);
    assert!(code == 0 && text.contains("crm:users_list"), "{text}");
    // The token has less than a minute left.
    let second = kept(home)[&url].clone();
    assert_ne!(first["refreshToken"], second["refreshToken"]);
    assert!(!text.contains(second["accessToken"].as_str().unwrap()), "{text}");

    let (code, text) = run(home, &["logout", &url]);
    assert!(code == 0 && kept(home) == json!({}), "{text}");
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", second["refreshToken"].as_str().unwrap()),
        ("client_id", second["clientId"].as_str().unwrap()),
    ];
    assert_eq!(gate.token(&fields).await.status, 400, "it is revoked");
    assert_eq!(run(home, &["logout", &url]).0, 1);
    assert_eq!(run(home, &list).0, 1);
}

#[tokio::test]
async fn a_sign_in_that_was_ended_at_the_server_asks_for_a_new_one() {
    let site = Site::start(&config(json!({"refresh": {"accessTokenTtl": 30}})));
    let (gate, home) = (site.gate(), tempfile::tempdir().unwrap());
    let (home, url) = (home.path(), gate.resource());
    let (code, text) =
        Login::start(home, &["--client-id", "app", "--scope", "crm:read", &url]).by_ada(&gate).await;
    assert!(code == 0 && text.contains("(crm:read)"), "{text}");
    let refresh = kept(home)[&url]["refreshToken"].clone();
    let fields = [("client_id", "app"), ("token", refresh.as_str().unwrap())];
    assert_eq!(gate.post_form("/oauth/revoke", &[], &fields).await.status, 200);
    let (code, text) = run(home, &["tools", "list", "--url", &url]);
    assert!(code == 1 && text.contains(&format!("sign in again with `gatewright login {url}`")), "{text}");
    assert_eq!(kept(home), json!({}));
}

#[tokio::test]
async fn only_the_answer_to_its_own_request_ends_the_wait_for_the_browser() {
    let site = Site::start(&config(json!({})));
    let (gate, home) = (site.gate(), tempfile::tempdir().unwrap());
    let url = gate.resource();
    let login = Login::start(home.path(), &["--client-id", "app", &url]);
    let asked = Url::parse(&login.address).unwrap();
    let value = |name: &str| asked.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned();
    let (redirect, state) = (value("redirect_uri"), value("state"));
    let at = |query: &str| format!("{redirect}?{query}");
    assert_eq!(reqwest::get(at("code=stolen&state=guessed")).await.unwrap().status(), 404);
    assert_eq!(reqwest::get(redirect.replace("callback", "other")).await.unwrap().status(), 404);
    // The right state from another server.
    let page = reqwest::get(at(&format!("code=mixed-up&iss=https%3A%2F%2Fother.example&state={state}")))
        .await
        .unwrap();
    assert_eq!(page.headers()["content-security-policy"], "default-src 'none'");
    let (code, text) = login.end();
    assert!(code == 1 && text.contains("another authorization server"), "{text}");

    let login = Login::start(home.path(), &["--client-id", "app", &url]);
    let asked = Url::parse(&login.address).unwrap();
    let value = |name: &str| asked.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned();
    let denied = [("error", "access_denied"), ("state", &value("state")), ("iss", &gate.public)];
    let denied = Url::parse_with_params(&value("redirect_uri"), denied).unwrap();
    reqwest::get(denied).await.unwrap();
    let (code, text) = login.end();
    assert!(code == 1 && text.contains("the sign-in was refused: access_denied"), "{text}");
}

#[tokio::test]
async fn the_address_at_which_a_browser_on_another_machine_ends_is_pasted() {
    let site = Site::start(&config(json!({})));
    let (gate, home) = (site.gate(), tempfile::tempdir().unwrap());
    let url = gate.resource();
    let arguments = ["login", "--no-browser", "--client-id", "app", &url];
    let mut terminal = Terminal::start(home.path(), home.path(), &arguments);
    terminal.until("to sign in:");
    let shown = terminal.until("paste it here.");
    let address = shown.lines().map(str::trim).find(|line| line.starts_with("http")).unwrap();
    // The browser cannot come back: nobody opens this address.
    let back = Person::default().authorize(&gate, address).await;
    for wrong in ["", "no address", address, back.as_str().split("&state=").next().unwrap()] {
        terminal.types(wrong);
        terminal.until("Paste all of it:");
    }
    terminal.types(back.as_str());
    let (code, text) = terminal.end();
    assert!(code == 0 && text.contains("signed in at"), "{text}");
    let (code, text) = run(home.path(), &["tools", "list", "--url", &url]);
    assert!(code == 0 && text.contains("crm:users_list"), "{text}");
}

#[tokio::test]
async fn without_a_client_or_a_sign_in_the_command_says_what_to_do() {
    let site = Site::start(&config(json!({})));
    let home = tempfile::tempdir().unwrap();
    let (code, text) = run(home.path(), &["login", &site.gate().resource()]);
    assert!(code == 1 && text.contains("--client-id") && text.contains("auth.dcrEnabled"), "{text}");
    let (code, text) = run(home.path(), &["login", "mcp.example.com"]);
    assert!(code == 2 && text.contains("is not the address of an MCP endpoint"), "{text}");
    let (code, text) = run(home.path(), &["login", "http://mcp.example.com/mcp"]);
    assert!(code == 1 && text.contains("is not https"), "{text}");
    let open = Site::launch("yaml", "http: { port: 0 }\napps: { crm: { builtin: crm } }\n", &[], &[]);
    let (code, text) = run(home.path(), &["login", &open.gate().resource()]);
    assert!(code == 1 && text.contains("asks for no sign-in"), "{text}");
}

/// A server of the device flow: its base address, the polls so far, and the page to sign in at if it is not its own.
#[derive(Clone)]
struct Device(&'static str, &'static AtomicU32, Option<&'static str>);

async fn tokens(State(Device(_, polls, _)): State<Device>, form: String) -> Response {
    assert!(form.contains("device_code=the-device") && form.contains("client_id=the-client"), "{form}");
    match polls.fetch_add(1, Ordering::SeqCst) {
        0 => (StatusCode::BAD_REQUEST, Json(json!({"error": "authorization_pending"}))).into_response(),
        _ => Json(json!({"access_token": "an-access-token", "token_type": "Bearer", "scope": "a b"}))
            .into_response(),
    }
}

/// Starts a server of the device flow.
async fn device_server(page: Option<&'static str>) -> Device {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = &*Box::leak(format!("http://{}", listener.local_addr().unwrap()).into_boxed_str());
    let polls = &*Box::leak(Box::default());
    let resource = async |State(Device(base, ..)): State<Device>| {
        Json(
            json!({"resource": format!("{base}/mcp"), "authorization_servers": [base], "scopes_supported": ["a", "b"]}),
        )
    };
    let metadata = async |State(Device(base, ..)): State<Device>| {
        Json(
            json!({"issuer": base, "token_endpoint": format!("{base}/token"), "device_authorization_endpoint": format!("{base}/device"),
            "registration_endpoint": format!("{base}/register")}),
        )
    };
    let register = async |Json(asked): Json<Value>| {
        assert_eq!(asked["grant_types"][0], "urn:ietf:params:oauth:grant-type:device_code");
        (StatusCode::CREATED, Json(json!({"client_id": "the-client"})))
    };
    let device = async |State(Device(base, _, page)): State<Device>, form: String| {
        assert!(form.contains("scope=a+b"), "{form}");
        let page = page.map_or_else(|| format!("{base}/here"), str::to_owned);
        Json(json!({"device_code": "the-device", "user_code": "WDJB-MJHT", "verification_uri": page,
            "expires_in": 600, "interval": 1}))
    };
    let routes = Router::new()
        .route("/mcp", post(async || StatusCode::UNAUTHORIZED))
        .route("/.well-known/oauth-protected-resource/mcp", get(resource))
        .route("/.well-known/oauth-authorization-server", get(metadata))
        .route("/register", post(register))
        .route("/device", post(device))
        .route("/token", post(tokens))
        .with_state(Device(base, polls, page));
    tokio::spawn(async move { gatewright_server::axum::serve(listener, routes).await });
    Device(base, polls, page)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_to_sign_in_at_that_is_neither_https_nor_on_this_machine_is_not_shown() {
    for page in
        ["javascript:alert(1)", "file:///etc/passwd", "vscode://evil/x", "-x", "http://evil.example/x"]
    {
        let Device(base, polls, _) = device_server(Some(page)).await;
        let home = tempfile::tempdir().unwrap();
        let (code, text) = run(home.path(), &["login", "--no-browser", &format!("{base}/mcp")]);
        assert!(code == 1 && text.contains("no page to sign in at"), "{page}: {text}");
        assert!(!text.contains("Open this address") && !text.contains("WDJB-MJHT"), "{page}: {text}");
        assert_eq!(polls.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_the_device_flow_is_signed_in_at_on_any_machine() {
    let Device(base, polls, _) = device_server(None).await;
    let home = tempfile::tempdir().unwrap();
    let url = format!("{base}/mcp");
    let login = Login::start(home.path(), &[&url]);
    assert_eq!(login.address, format!("{base}/here"));
    let (code, text) = login.end();
    assert!(code == 0 && text.contains("WDJB-MJHT") && text.contains("(a b)"), "{text}");
    assert_eq!(kept(home.path())[&url]["accessToken"], "an-access-token");
    assert_eq!(polls.load(Ordering::SeqCst), 2);
}
