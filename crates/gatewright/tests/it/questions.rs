//! Questions of plans on the page of users: a client that cannot ask, the login, the form and the result, over HTTP.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use gatewright::{
    AuthConfig, CodeCallConfig, Guard, GuardConfig, LocalApp, Running,
    rmcp::{
        ErrorData, RoleServer, ServerHandler,
        model::{
            CallToolRequestParams, CallToolResponse, CallToolResult, ListToolsResult, PaginatedRequestParams,
            ServerConfig,
        },
        service::RequestContext,
    },
};
use reqwest::{Client, StatusCode, redirect::Policy};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const REDIRECT: &str = "http://127.0.0.1:1/cb";
/// RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// An app whose tool `book` asks for the number of seats.
#[derive(Clone)]
struct BoxOffice;

impl ServerHandler for BoxOffice {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::default();
        info.capabilities = serde_json::from_value(json!({"tools": {}})).unwrap();
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = json!({"tools": [{"name": "book", "description": "Books seats", "inputSchema": {"type": "object"}}]});
        Ok(serde_json::from_value(tools).unwrap())
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(mut answers) = call.input_responses else {
            let schema = json!({"type": "object", "required": ["seats"], "properties": {
                "seats": {"type": "integer", "minimum": 1, "maximum": 8, "title": "Seats"}}});
            let asks = json!({"resultType": "input_required", "requestState": "asked", "inputRequests": {"seats":
                {"method": "elicitation/create", "params": {"mode": "form", "message": "How many seats?", "requestedSchema": schema}}}});
            return Ok(CallToolResponse::InputRequired(serde_json::from_value(asks).unwrap()));
        };
        let answer = answers.remove("seats").unwrap_or_default();
        Ok(CallToolResponse::Complete(CallToolResult::structured(json!({"answer": answer}))))
    }
}

struct Site {
    base: String,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    running: Running,
}

impl Site {
    async fn start() -> Self {
        let auth: AuthConfig = serde_json::from_value(json!({
            "mode": "orchestrated", "local": {"login": "demo"}, "consent": {"enabled": false},
            "clients": [{"clientId": "app", "redirectUris": [REDIRECT]}],
        }))
        .unwrap();
        let mut config = GuardConfig { auth, ..GuardConfig::new("box", "1.0.0") };
        config.http.port = 0;
        let code: CodeCallConfig =
            serde_json::from_value(json!({"worker": {"adapter": "in_process"}})).unwrap();
        let (guard, builder) = Guard::open(config).await.unwrap();
        let app = Arc::new(LocalApp::start(BoxOffice).await.unwrap());
        let running = builder.app("box", app).code_mode(code).build().unwrap();
        let server = guard.bind(&running).await.unwrap();
        let (base, stop) = (format!("http://{}", server.local_addr()), CancellationToken::new());
        let serving = tokio::spawn(server.serve(stop.clone()));
        Self { base, stop, serving, running }
    }

    async fn stop(self) {
        self.stop.cancel();
        self.serving.await.unwrap();
        self.running.stop().await;
    }

    /// Calls `codecall:execute` as a client that can ask nobody.
    async fn execute(&self, token: &str, input: Value) -> Value {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        });
        let params = json!({"name": "codecall:execute", "arguments": input, "_meta": meta});
        let request = Client::new()
            .post(format!("{}/mcp", self.base))
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "codecall:execute")
            .bearer_auth(token)
            .json(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        answer["result"]["structuredContent"].clone()
    }

    /// The answer of a run in the background that has one by now.
    async fn ended(&self, token: &str, id: &Value) -> Value {
        loop {
            let answer = self.execute(token, json!({"resume": id})).await;
            if answer["status"] != "running" {
                return answer;
            }
        }
    }
}

/// An answer to a browser.
struct Page {
    status: StatusCode,
    location: String,
    text: String,
}

impl Page {
    fn field(&self, name: &str) -> String {
        let mark = format!("name=\"{name}\" value=\"");
        let (_, rest) = self.text.split_once(&mark).unwrap_or_else(|| panic!("no {name}: {}", self.text));
        rest.split('"').next().unwrap().to_owned()
    }
}

/// A browser that keeps cookies and runs no scripts.
struct Browser {
    http: Client,
    base: String,
    cookies: Mutex<BTreeMap<String, String>>,
}

impl Browser {
    fn new(site: &Site) -> Self {
        let http = Client::builder().redirect(Policy::none()).build().unwrap();
        Self { http, base: site.base.clone(), cookies: Mutex::default() }
    }

    async fn send(&self, path: &str, form: Option<&[(&str, &str)]>) -> Page {
        let url = if path.starts_with("http") { path.to_owned() } else { format!("{}{path}", self.base) };
        let request = match form {
            Some(fields) => {
                let mut address = reqwest::Url::parse("http://form/").unwrap();
                address.query_pairs_mut().extend_pairs(fields);
                let body = address.query().unwrap_or_default().to_owned();
                let request = self.http.post(url).header("content-type", "application/x-www-form-urlencoded");
                request.header("origin", &self.base).body(body)
            }
            None => self.http.get(url),
        };
        let cookies: Vec<_> =
            self.cookies.lock().unwrap().iter().map(|(name, value)| format!("{name}={value}")).collect();
        let answer = request.header("cookie", cookies.join("; ")).send().await.unwrap();
        let header = |value: &reqwest::header::HeaderValue| value.to_str().unwrap().to_owned();
        for set in answer.headers().get_all("set-cookie") {
            let set = header(set);
            let (name, value) = set.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.lock().unwrap().insert(name.to_owned(), value.to_owned());
        }
        let location = answer.headers().get("location").map(header).unwrap_or_default();
        Page { status: answer.status(), location, text: answer.text().await.unwrap() }
    }

    /// Opens `path` and follows redirects to a page, or to the client.
    async fn open(&self, path: &str) -> Page {
        let page = self.send(path, None).await;
        self.follow(page).await
    }

    async fn follow(&self, mut page: Page) -> Page {
        while page.status.is_redirection() && !page.location.starts_with(REDIRECT) {
            page = self.send(&page.location.clone(), None).await;
        }
        page
    }

    /// Signs in at the login page that `path` leads to.
    async fn sign_in(&self, path: &str, user: &str) -> Page {
        let login = self.open(path).await;
        let (pending, csrf) = (login.field("pending"), login.field("csrf"));
        let fields = [("pending", &*pending), ("csrf", &csrf), ("username", user)];
        let answer = self.send("/oauth/login", Some(&fields)).await;
        self.follow(answer).await
    }

    /// A token of `user` for the client `app`. The browser is signed in then.
    async fn token(&self, user: &str) -> String {
        let path = format!(
            "/oauth/authorize?response_type=code&client_id=app&redirect_uri={REDIRECT}&code_challenge={CHALLENGE}&code_challenge_method=S256&state=s"
        );
        let back = self.sign_in(&path, user).await;
        let url =
            reqwest::Url::parse(&back.location).unwrap_or_else(|_| panic!("{} {}", back.status, back.text));
        let code = url.query_pairs().find(|(name, _)| name == "code").unwrap().1.into_owned();
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("client_id", "app"),
            ("redirect_uri", REDIRECT),
            ("code_verifier", VERIFIER),
        ];
        let answer = self.send("/oauth/token", Some(&fields)).await;
        let answer: Value = serde_json::from_str(&answer.text).unwrap();
        answer["access_token"].as_str().unwrap_or_else(|| panic!("no token: {answer}")).to_owned()
    }

    async fn answer(&self, page: &Page, action: &str, seats: &str) -> Page {
        let [csrf, plan, question] = ["csrf", "plan", "question"].map(|name| page.field(name));
        let fields = [
            ("csrf", &*csrf),
            ("plan", &plan),
            ("question", &question),
            ("action", action),
            ("q0.f0", seats),
        ];
        self.send("/oauth/account/questions", Some(&fields)).await
    }
}

const BOOK: &str = "return (await callTool('box:book', {})).answer";

#[tokio::test]
async fn a_user_answers_on_the_page_that_a_client_without_elicitation_is_given() {
    let site = Site::start().await;
    let (ada, eve) = (Browser::new(&site), Browser::new(&site));
    let token = ada.token("ada").await;
    let told = site.execute(&token, json!({"script": BOOK})).await;
    assert_eq!(
        (&told["status"], &told["error"]["code"]),
        (&json!("tool_error"), &json!("INPUT_REQUIRED")),
        "{told}"
    );
    let url = told["url"].as_str().unwrap_or_else(|| panic!("no address: {told}"));
    assert!(url.starts_with(&format!("{}/oauth/account/questions?plan=", site.base)), "{url}");

    // Another user is led to the page by the login, and sees nothing of the plan.
    let others = eve.sign_in(url, "eve").await;
    assert!(
        others.text.contains("Nothing waits for you") && !others.text.contains("seats"),
        "{}",
        others.text
    );

    let page = ada.open(url).await;
    assert!(page.status == StatusCode::OK && page.text.contains("How many seats?"), "{}", page.text);
    let wrong = ada.answer(&page, "accept", "9").await;
    assert!(wrong.text.contains("This must be at most 8."), "{}", wrong.text);
    assert_eq!(
        site.execute(&token, json!({"resume": told["executionId"]})).await["url"],
        url,
        "it still waits"
    );
    let stolen = eve.answer(&page, "accept", "1").await;
    assert!(stolen.status.is_client_error(), "{}", stolen.text);
    let taken = ada.answer(&wrong, "accept", "8").await;
    assert_eq!(taken.status, StatusCode::SEE_OTHER, "{}", taken.text);
    let after = ada.follow(taken).await;
    assert!(after.text.contains("Go back to your application"), "{}", after.text);
    assert_eq!(ada.answer(&page, "accept", "2").await.status, StatusCode::BAD_REQUEST, "once");

    let over = site.execute(&token, json!({"resume": told["executionId"]})).await;
    assert_eq!(over["result"], json!({"action": "accept", "content": {"seats": 8}}), "{over}");
    site.stop().await;
}

#[tokio::test]
async fn a_run_in_the_background_goes_on_once_its_user_has_declined_on_the_page() {
    let site = Site::start().await;
    let ada = Browser::new(&site);
    let token = ada.token("ada").await;
    let begun = site.execute(&token, json!({"script": BOOK, "detach": true})).await;
    assert_eq!(begun["status"], "running", "{begun}");
    let told = site.ended(&token, &begun["executionId"]).await;
    let page = ada.open(told["url"].as_str().unwrap_or_else(|| panic!("no address: {told}"))).await;
    let after = ada.follow(ada.answer(&page, "decline", "").await).await;
    assert_eq!(after.status, StatusCode::OK, "{}", after.text);
    let over = site.ended(&token, &begun["executionId"]).await;
    assert_eq!(over["result"], json!({"action": "decline"}), "{over}");
    site.stop().await;
}
